"""Configuration: files, arguments of plugins and actions, and the registry of their names."""
