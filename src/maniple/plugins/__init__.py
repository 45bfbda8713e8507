"""Policies: one a file, in rooms by what they decide.

order/ who comes first; fairness/ how much a queue or a job may have; gang/ all or nothing; feasibility/ where a task may run;
score/ where it should rather run. A plugin is made for one session and asked through the extension points of
`framework/points.py`; `profiles/` says which name in a configuration file stands for which plugin.
"""
