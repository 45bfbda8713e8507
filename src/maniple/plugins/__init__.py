"""Policies: one per file, in packages by what they decide.

order/: which jobs and tasks come first; fairness/: how much a queue or a job may have; gang/: all or nothing;
feasibility/: where a task may run; score/: where it should run; topology/: how close tasks are to each other;
devices/: which cards and CPUs of a node a task gets; victims/: which tasks must not be evicted, and which
should be; extender/: decisions delegated to a webhook. A plugin is made for one session and called through
the extension points of `framework/points.py`; `profiles/` maps names in a configuration file to plugins.
"""
