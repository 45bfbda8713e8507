"""Plugins about how close to each other a job's tasks are."""
