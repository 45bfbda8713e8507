"""Plugins that say who must not be evicted just now, and who should be."""
