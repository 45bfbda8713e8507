"""The commands. The outermost room: it reads files and clocks, calls the planner, and prints."""

# What a command assumes when no --profile is given.
DEFAULT_PROFILE = "volcano"
