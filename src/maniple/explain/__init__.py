"""Explaining what was decided: in words for people, from values that the core gives."""
