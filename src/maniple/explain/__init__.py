"""Why a job waits, what would help, and the proof of it; asked by commands and by programs."""
