"""Plugins that care how near to each other a job's tasks are."""
