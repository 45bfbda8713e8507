"""Actions: what a cycle does, in the order of the configuration.

An action is a class made from its arguments, with `run(session, placement)`. It decides which job is next,
calls plugins, and moves tasks in transactions; it holds no state between cycles.
"""
