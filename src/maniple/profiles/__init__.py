"""Profiles: what a configuration's names stand for, its defaults, and how a system's objects are read."""
