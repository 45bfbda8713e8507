"""Plugins that say who comes first: by priority, by deadline."""
