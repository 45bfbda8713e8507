"""Volcano's own actions, for its profile alone: docs/architecture.md says why they do not share the engine's."""
