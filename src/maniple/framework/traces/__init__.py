"""Traces: what happened in a cycle, as typed events in order (`events.py`), and what records them (`recorder.py`)."""
