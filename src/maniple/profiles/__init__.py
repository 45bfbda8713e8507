"""Profiles: the names in a configuration, its defaults, and how a system's objects are read."""
