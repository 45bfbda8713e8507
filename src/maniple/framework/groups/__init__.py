"""The parts of a job: the tree of groups that every dialect's objects become, and what can be asked about it."""
