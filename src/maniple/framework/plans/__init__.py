"""Plans: what a cycle decided, as a value, and the words for it."""
