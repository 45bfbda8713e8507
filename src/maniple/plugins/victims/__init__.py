"""Plugins about which pods must not be evicted just now, and which should be."""
