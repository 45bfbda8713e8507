"""Jobs that could not be served, remembered by what they asked for: a backlog of hopeless jobs costs one search.

Used by `making_room.py`. By default a job is passed over if one that asked for the same kind of tasks, and for no more of them, has failed since anything changed. With
`compat: strict` it is KAI's rule: jobs under the same placement constraints are compared by what their waiting pods ask for, and a failure counts until the end of the action.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
import numpy as np

from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import ACTIVE_ALLOCATED, Status
from maniple.framework.pod_sets import GroupSet, PodSet
from maniple.framework.points import TaskRows
from maniple.framework.session import Session

_encoder = msgspec.json.Encoder(order="deterministic")


class Failures(Protocol):
    """What has failed so far, of one queue or of all."""

    def rules_out(self, job: int) -> bool:
        """A job that asked for no more has failed."""

    def remember(self, job: int) -> None:
        """The job has failed."""

    def changed(self) -> None:
        """Somebody was served."""


def failures(session: Session) -> Failures:
    return _AsInKai(session) if session.strict else _SameKind(session)


class _SameKind:
    """By classes of tasks and how many of each; whatever else a search depends on is part of the key."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._least: dict[tuple[Any, ...], tuple[int, ...]] = {}

    def rules_out(self, job: int) -> bool:
        key, counts = self._asked(job)
        least = self._least.get(key)
        return least is not None and _no_less(counts, least)

    def remember(self, job: int) -> None:
        key, counts = self._asked(job)
        least = self._least.get(key)
        if least is None or _no_less(least, counts):
            self._least[key] = counts

    def changed(self) -> None:
        self._least.clear()

    def _asked(self, job: int) -> tuple[tuple[Any, ...], tuple[int, ...]]:
        session = self._session
        numbers = session.tasks.class_of[session.pod_sets.to_allocate(job)].tolist()
        kinds = sorted(set(numbers))
        facts = session.job_facts(job)
        shape = (facts.level_wish, facts.groups, job) if facts.level_wish or facts.groups else None
        key = (shape, int(session.jobs.priority[job]), session.preemptible(job), *kinds)
        return key, tuple(numbers.count(kind) for kind in kinds)


def _no_less(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(a >= b for a, b in zip(one, other, strict=True))


class _AsInKai:
    """By placement constraints, with one representative each: the smallest job that failed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._representatives: dict[bytes, int] = {}
        self._signatures: dict[int, bytes] = {}  # jobs keep the one that they had when first asked

    def rules_out(self, job: int) -> bool:
        other = self._representatives.get(self._signature(job))
        return other is not None and not self._easier(job, other)

    def remember(self, job: int) -> None:
        key = self._signature(job)
        other = self._representatives.get(key)
        if other is None or self._smaller(job, other):
            self._representatives[key] = job

    def changed(self) -> None:
        """A failure stays one."""

    def _easier(self, job: int, other: int) -> bool:
        mine, theirs = self._requests(job), self._requests(other)
        if not mine or not theirs:
            return False
        if len(theirs) > len(mine):
            return True
        for one, its in zip(mine, theirs, strict=False):
            if (one <= its).all() and not (its <= one).all():
                return True
        return False

    def _smaller(self, job: int, other: int) -> bool:
        mine, theirs = self._requests(job), self._requests(other)
        if not mine or len(mine) > len(theirs):
            return False
        return all((one <= its).all() for one, its in zip(mine, theirs, strict=False))

    def _requests(self, job: int) -> list[Amounts]:
        """What the waiting pods ask for, the smaller first as far as they can be compared."""
        session = self._session
        rows = session.tasks_of(job)
        rows = rows[session.tasks.status[rows] == Status.PENDING]
        ordered: list[Amounts] = []
        for row in rows.tolist():
            class_ = session.classes[session.tasks.class_of[row]]
            share = class_.share
            parts = (share.portion * share.devices, share.memory) if share is not None else (0, 0)
            amount = np.concatenate([class_.request, parts])
            place = len(ordered)
            while place and (amount <= ordered[place - 1]).all():
                place -= 1
            ordered.insert(place, amount)
        return ordered

    def _signature(self, job: int) -> bytes:
        known = self._signatures.get(job)
        if known is None:
            parts = sorted(self._of_pod_set(one) for one in self._session.pod_sets.of(job))
            known = self._signatures[job] = b"\n".join(parts)
        return known

    def _of_pod_set(self, pod_set: PodSet) -> bytes:
        """The wishes on the way up, and the pods that have no place yet."""
        session, wishes = self._session, [pod_set.wish]
        group: GroupSet | None = pod_set.parent
        while group is not None:
            wishes.append(group.wish)
            group = group.parent
        rows = pod_set.rows[~ACTIVE_ALLOCATED[session.tasks.status[pod_set.rows]]]
        if not len(rows):
            return b""
        return _encoder.encode((wishes, sorted(self._of_pods(rows))))

    def _of_pods(self, rows: TaskRows) -> Sequence[bytes]:
        """What decides where a pod may go, without what it asks for."""
        pods = self._session.cluster.tasks.pods
        found = []
        for row in rows.tolist():
            spec = pods[row].spec
            ports = [
                (port.host_port, port.protocol, port.host_ip)
                for one in (*spec.init_containers, *spec.containers)
                for port in one.ports
                if port.host_port
            ]
            volumes = [volume for volume in spec.volumes if volume.ties]
            found.append(
                _encoder.encode(
                    (
                        *(
                            volumes,
                            spec.node_selector,
                            spec.affinity,
                            spec.tolerations,
                            spec.priority_class_name,
                        ),
                        *(spec.priority, spec.topology_spread_constraints, ports),
                    )
                )
            )
        return found


__all__ = ["Failures", "failures"]
