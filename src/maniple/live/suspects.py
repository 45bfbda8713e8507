"""Whom an exception is about: read from the frames that it passed through, innermost first.

Nothing is written down in advance, so planning pays nothing for it. It is a suspicion and no more: `guard.py` tries
whether planning succeeds without the object.
"""

import traceback
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from maniple.cluster.cluster import Cluster
from maniple.objects.meta import Object

JOB, TASK = "job", "task"  # what rows are called wherever one is worked on


def suspects(error: BaseException, cluster: Cluster) -> list[Object]:
    """Objects in namespaces that were being worked on when it was raised, the likeliest first."""
    found: dict[tuple[type[Object], str], Object] = {}
    for frame in reversed([*_frames(error.__traceback__)]):
        for item in _objects(frame, cluster):
            found.setdefault((type(item), item.key), item)
    return [*found.values()]


def modules(error: BaseException) -> list[str]:
    """The modules that it passed through, innermost first."""
    return [str(frame.f_globals.get("__name__", "")) for frame in reversed([*_frames(error.__traceback__)])]


def trace(error: BaseException) -> str:
    """As a traceback, with the middle of a deep recursion left out."""
    return "".join(traceback.TracebackException.from_exception(error, limit=-40, compact=True).format())


def _frames(link: TracebackType | None) -> Iterator[FrameType]:
    while link is not None:
        yield link.tb_frame
        link = link.tb_next


def _objects(frame: FrameType, cluster: Cluster) -> Iterator[Object]:
    values = frame.f_locals
    for name, of_row in ((TASK, cluster.tasks.pods), (JOB, cluster.jobs.objects)):
        row = _row(values.get(name))
        if row is not None and row in of_row:
            yield of_row[row]
    for value in values.values():
        if isinstance(value, Object) and value.namespaced:
            yield value


def _row(value: Any) -> int | None:
    return int(value) if isinstance(value, int | np.integer) else None
