"""Jobs that could not be served, remembered by what they asked for: a backlog of hopeless jobs costs one search.

Used by `making_room.py`. By default a job is passed over if another one has failed since anything changed that was under
the same constraints and asked for no more: each of its tasks can be matched with a task that asks for at least as much
in every dimension. A search that ran out of budget counts against those that may spend no more. With `compat: strict` it is KAI's rule: jobs under the same placement constraints are compared by
what their waiting pods ask for, and a failure counts until the end of the action.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import ACTIVE_ALLOCATED, Status
from maniple.framework.gpu_facts import UNIT
from maniple.framework.pod_sets import GroupSet, PodSet
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.objects.core import Pod
from maniple.objects.storage import PersistentVolumeClaim, Volume
from maniple.placement.engine import Placement

COMPLETE = float("inf")  # the effort of a search that was not cut short
_KEPT = 64  # failures that are remembered under one key, the latest
_PARTS = 10**9  # of a device, in which shares are compared
_FINEST = 0.01  # portions of devices that differ by less are the same
_encoder = msgspec.json.Encoder(order="deterministic")


class Failures(Protocol):
    """What has failed so far, of one queue or of all."""

    def rules_out(self, job: int, effort: float = COMPLETE) -> float | None:
        """A job that asked for no more has failed with no less effort: with how much. None if there was none."""

    def remember(self, job: int, effort: float = COMPLETE) -> None:
        """The job has failed after a complete search, or with all the effort that it was allowed."""

    def changed(self) -> None:
        """Somebody was served."""


def failures(
    session: Session, constraints: "Constraints", asks: Callable[[int], TaskRows] | None = None
) -> Failures:
    """`asks`: the tasks that a job asks for next; those that its pod sets lack unless told otherwise."""
    by_dominance = session.rules.victims.larger_requests_fail_too
    asks = session.pod_sets.to_allocate if asks is None else asks
    return _ByDominance(session, constraints, asks) if by_dominance else _AsInKai(session)


class Constraints:
    """Under what constraints tasks of a class are placed, as a number: equal for classes that differ in amounts only."""

    def __init__(self, session: Session, placement: Placement) -> None:
        self._session = session
        self._placement = placement
        self._of_class: dict[int, int] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}

    def number(self, class_: TaskClass) -> int:
        known = self._of_class.get(class_.number)
        if known is None:
            key = self._key(class_)
            known = self._of_class[class_.number] = self._numbers.setdefault(key, len(self._numbers))
        return known

    def _key(self, class_: TaskClass) -> tuple[Any, ...]:
        """The nodes that are open to the class, and the class itself where more than nodes and amounts decides."""
        column, share = self._placement.column(class_), class_.share
        criteria, annotations = column.criteria, class_.spec.pod.metadata.annotations
        filters = (*criteria.node_filters, *criteria.cluster_filters)
        own = not all(one.by_amounts for one in filters) or self._session.hooks.pre_predicate(class_)
        named = self._session.cluster.dialect.placement_annotations
        kind = (class_.best_effort, share is not None, share is not None and bool(share.memory))
        said = [annotations.get(name) for name in named]
        return (class_.number if own else -1, *kind, *said, column.open.tobytes())


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """What a job's next tasks ask for: constraints and amounts of each, the largest amounts first under each constraint."""

    constraints: NDArray[np.int64]
    amounts: Amounts  # a row a task

    def no_less_than(self, other: "_Asked") -> bool:
        count = len(other.constraints)
        if count > len(self.constraints):
            return False
        alike = (self.constraints[:count] == other.constraints).all()
        return bool(alike) and bool((self.amounts[:count] >= other.amounts).all())


class _ByDominance:
    """By constraints and amounts; whatever else a search depends on is part of the key."""

    def __init__(self, session: Session, constraints: Constraints, asks: Callable[[int], TaskRows]) -> None:
        self._session = session
        self._constraints = constraints
        self._asks = asks
        self._failed: dict[tuple[Any, ...], list[tuple[_Asked, float]]] = {}
        self._rows: dict[int, tuple[int, list[int]]] = {}  # by class: its constraints and amounts

    def rules_out(self, job: int, effort: float = COMPLETE) -> float | None:
        known = self._failed.get(self._key(job))
        if not known:
            return None
        asked = self._asked(job)
        if not len(asked.constraints):
            return None
        found = [spent for one, spent in known if spent >= effort and asked.no_less_than(one)]
        return max(found, default=None)

    def remember(self, job: int, effort: float = COMPLETE) -> None:
        known, asked = self._failed.setdefault(self._key(job), []), self._asked(job)
        if not len(asked.constraints):
            return  # everybody asks for as much as one that asks for nothing
        if not any(spent >= effort and asked.no_less_than(one) for one, spent in known):
            others = [(one, spent) for one, spent in known if spent > effort or not one.no_less_than(asked)]
            known[:] = [*others[-_KEPT + 1 :], (asked, effort)]

    def changed(self) -> None:
        self._failed.clear()

    def _key(self, job: int) -> tuple[Any, ...]:
        session, facts = self._session, self._session.job_facts(job)
        parted = facts.level_wish or facts.groups or facts.shaped or facts.role_minimums
        shape = (facts.level_wish, facts.groups, job) if parted else None
        return (shape, int(session.jobs.priority[job]), session.preemptible(job))

    def _asked(self, job: int) -> _Asked:
        session = self._session
        numbers = session.tasks.class_of[self._asks(job)].tolist()
        rows = [self._row(number) for number in numbers]
        if len(set(numbers)) > 1:
            rows.sort(key=lambda row: (row[0], [-amount for amount in row[1]]))
        amounts = np.array([amounts for _, amounts in rows], dtype=np.int64)
        return _Asked(np.array([number for number, _ in rows], dtype=np.int64), amounts)

    def _row(self, number: int) -> tuple[int, list[int]]:
        known = self._rows.get(number)
        if known is None:
            class_ = self._session.classes[number]
            known = self._rows[number] = (self._constraints.number(class_), _amounts(class_))
        return known


def _amounts(class_: TaskClass) -> list[int]:
    """What a task asks for in every dimension; of a device that it shares, the devices, the part and the memory."""
    share = class_.share
    if share is None:
        return [*class_.request.tolist(), 0, 0, 0]
    part = round((share.exact or share.portion / 100) * _PARTS)
    return [*class_.request.tolist(), share.devices, part, share.memory]


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """What a pod asks for as KAI compares it: the devices and the part of each apart, amounts of GPU memory not at all."""

    amounts: Amounts  # of everything but GPUs
    devices: float
    portion: float

    @classmethod
    def of(cls, session: Session, class_: TaskClass) -> "_Request":
        amounts, gpu, share = class_.request.copy(), session.gpus.dimension, class_.share
        devices = 0.0
        if gpu is not None:
            devices, amounts[gpu] = float(amounts[gpu]) / UNIT, 0
        if share is not None:
            return cls(amounts, share.devices, share.exact or share.portion / 100)
        return cls(amounts, devices, 1.0 if devices else 0.0)

    def __le__(self, other: "_Request") -> bool:
        if self.devices > other.devices or self.portion - other.portion >= _FINEST:
            return False
        return bool((self.amounts <= other.amounts).all())


class _AsInKai:
    """By placement constraints, with one representative each: the smallest job that failed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._representatives: dict[bytes, int] = {}
        self._signatures: dict[int, bytes] = {}
        books = bool(session.options.get("scheduleCSIStorage", False))
        self._claims: Mapping[str, PersistentVolumeClaim] = (
            session.cluster.all(PersistentVolumeClaim) if books else {}
        )

    def rules_out(self, job: int, effort: float = COMPLETE) -> float | None:
        other = self._representatives.get(self._signature(job))
        return COMPLETE if other is not None and not self._easier(job, other) else None

    def remember(self, job: int, effort: float = COMPLETE) -> None:
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
        return any(one <= its and not its <= one for one, its in zip(mine, theirs, strict=False))

    def _smaller(self, job: int, other: int) -> bool:
        mine, theirs = self._requests(job), self._requests(other)
        if not mine or len(mine) > len(theirs):
            return False
        return all(one <= its for one, its in zip(mine, theirs, strict=False))

    def _requests(self, job: int) -> list[_Request]:
        """What the waiting pods ask for, the smaller first as far as they can be compared."""
        session = self._session
        rows = session.tasks_of(job)
        rows = rows[session.tasks.status[rows] == Status.PENDING]
        ordered: list[_Request] = []
        for number in session.tasks.class_of[rows].tolist():
            asked, place = _Request.of(session, session.classes[number]), len(ordered)
            while place and asked <= ordered[place - 1]:
                place -= 1
            ordered.insert(place, asked)
        return ordered

    def _signature(self, job: int) -> bytes:
        known = self._signatures.get(job)
        if known is None:
            parts = sorted(self._of_pod_set(one) for one in self._session.pod_sets.of(job))
            known = self._signatures[job] = b"\n".join(parts)
        return known

    def _of_pod_set(self, pod_set: PodSet) -> bytes:
        """The wishes on the way up, and the pods that had no place when the session was opened: a job keeps its signature."""
        session, wishes = self._session, [pod_set.wish]
        group: GroupSet | None = pod_set.parent
        while group is not None:
            wishes.append(group.wish)
            group = group.parent
        rows = pod_set.rows[~ACTIVE_ALLOCATED[session.cluster.tasks.status[pod_set.rows]]]
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
            found.append(
                _encoder.encode(
                    (
                        *(
                            [self._of_volume(pods[row], volume) for volume in spec.volumes if volume.ties],
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

    def _of_volume(self, pod: Pod, volume: Volume) -> object:
        """A claim goes by its class, size and phase where the room for volumes is kept books of, any other volume without its name."""
        if volume.persistent_volume_claim is None:
            return msgspec.structs.replace(volume, name="")
        namespace = pod.metadata.namespace or "default"
        claim = self._claims.get(f"{namespace}/{volume.persistent_volume_claim.claim_name}")
        if claim is None:
            return volume
        size = claim.spec.resources.requests.get("storage", 0)
        return (claim.spec.storage_class_name, str(size), claim.status.phase)


__all__ = ["COMPLETE", "Constraints", "Failures", "failures"]
