"""The kinds of remedies, a file for each subject: which knobs a job has, and what turning them changes.

Each has functions that take a `Subject` and give `Choice`s. None of them plans anything: `search.py` does.
"""
