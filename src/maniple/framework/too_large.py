"""Pods that are not placed because they are too large to be scheduled (`objects/limits.py`).

Part of every session, like a plugin that is always configured and asked first. Groups that are too large are held
back as a whole (`held_back.py`).
"""

from maniple.cluster.classes import TaskClass
from maniple.framework.reasons import Code, Reason


def too_large(class_: TaskClass) -> Reason | None:
    why = class_.spec.refusal
    return Reason(why, Code.UNRESOLVABLE) if why else None
