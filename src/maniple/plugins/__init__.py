"""Policies: one a file, in rooms by what they decide.

order/ who comes first; fairness/ how much a queue or a job may have; gang/ all or nothing; feasibility/ where a task may run;
score/ where it should rather run; topology/ how near tasks are to each other; devices/ which cards and cpus of a node a task gets;
victims/ who must not be evicted, and who should be; extender/ what somebody else is asked. A plugin is made for one session and asked through the extension points of
`framework/points.py`; `profiles/` says which name in a configuration file stands for which plugin.
"""
