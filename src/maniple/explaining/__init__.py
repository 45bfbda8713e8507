"""Why a job waits, what would help, and the proof: questions that are answered by the code that decides."""
