"""Plugins that keep gangs whole and leave alone what must not be evicted."""
