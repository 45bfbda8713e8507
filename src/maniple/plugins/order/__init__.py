"""Plugins for the order of jobs and tasks: by priority, by deadline."""
