"""Plugins that keep gangs whole and protect what must not be evicted."""
