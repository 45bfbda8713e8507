"""Volcano's own searches for victims, for its profile alone: docs/architecture.md says why."""
