"""Jobs that could not be served, remembered by their requests: a backlog of hopeless jobs costs one search.

Used by `making_room.py`. By default a job is skipped if, since the last change, another job has failed that was
under the same constraints and requested no more: each of its tasks can be matched with a task that requests at
least as much in every dimension. Constraints that concern only the pods of a job among themselves are the same
for jobs of other names. A search that ran out of budget counts against jobs that may spend no more. With
`compat: strict` KAI's rule applies: jobs under the same placement constraints are compared by the requests of
their pending pods, and a failure counts until the end of the action.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import ACTIVE_ALLOCATED, Status
from maniple.framework.criteria import Filter
from maniple.framework.devices.gpu_facts import UNIT
from maniple.framework.groups.tree import Group, PodSet
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.objects.core import Pod
from maniple.objects.storage import PersistentVolumeClaim, Volume
from maniple.placement.criteria import Criteria
from maniple.placement.engine import Placement

COMPLETE = float("inf")  # the effort of a search that was not cut short
_KEPT = 64  # failures that are remembered under one key, the latest
_PARTS = 10**9  # of a device, in which shares are compared
_FINEST = 0.01  # portions of devices that differ by less are the same
_encoder = msgspec.json.Encoder(order="deterministic")


class Failures(Protocol):
    """What has failed so far, of one queue or of all."""

    def rules_out(self, job: int, effort: float = COMPLETE) -> float | None:
        """The effort with which a job that requested no more has failed, if no less than this one; else None."""

    def remember(self, job: int, effort: float = COMPLETE) -> None:
        """The job has failed after a complete search, or with all the effort that it was allowed."""

    def changed(self) -> None:
        """A job was served."""


def failures(
    session: Session, constraints: "Constraints", asks: Callable[[int], TaskRows] | None = None
) -> Failures:
    """`asks`: the tasks that a job requests next; by default those that its pod sets lack."""
    by_dominance = session.rules.victims.larger_requests_fail_too
    asks = session.groups.to_allocate if asks is None else asks
    return _ByDominance(session, constraints, asks) if by_dominance else _AsInKai(session)


class Constraints:
    """Under what constraints tasks of a class are placed, as a number: equal for classes that differ in amounts only.

    Where it matters where other pods are, the number may be another one once pods were placed.
    """

    def __init__(self, session: Session, placement: Placement) -> None:
        self._session = session
        self._placement = placement
        # Where other pods do not matter: by class, and by the classes of a job's next tasks
        self._of_class: dict[int, tuple[int, list[int]]] = {}
        self._of_classes: dict[tuple[int, ...], _Asked] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}
        # By criteria and kind of spec, where nothing but amounts matters besides
        self._of_kind: dict[tuple[int, int], int] = {}

    @classmethod
    def shared(cls, session: Session, placement: Placement) -> "Constraints":
        """Those of the session."""
        if cls not in session.shared:
            session.shared[cls] = cls(session, placement)
        constraints: Constraints = session.shared[cls]
        return constraints

    def asked(self, number: int) -> tuple[int, list[int]]:
        """What a task of a class requests: the number of its constraints, and amounts."""
        known = self._of_class.get(number)
        if known is None:
            class_ = self._session.classes[number]
            known = self._number(class_), _amounts(class_)
            if not self._placement.criteria(class_).cluster_filters:
                self._of_class[number] = known
        return known

    def asked_by_all(self, numbers: tuple[int, ...]) -> "_Asked":
        """The same of several tasks; their classes are given."""
        known = self._of_classes.get(numbers)
        if known is None:
            alike = len(set(numbers)) == 1
            rows = [self.asked(number) for number in (numbers[:1] if alike else numbers)]
            rows.sort(key=lambda row: (row[0], [-amount for amount in row[1]]))
            each = np.array([[number + 1, *amounts] for number, amounts in rows], dtype=np.int64)
            known = _Asked(each, len(numbers))
            if all(number in self._of_class for number in numbers):
                self._of_classes[numbers] = known
        return known

    def alike(self, class_: TaskClass) -> int:
        """A number that is equal for classes with tasks that would be placed alike.

        Classes share a number only where placement depends on other pods.
        """
        coupled = self._placement.criteria(class_).cluster_filters
        return -1 - self._number(class_) if coupled else class_.number

    def _number(self, class_: TaskClass) -> int:
        criteria = self._placement.criteria(class_)
        kind = (id(criteria), class_.spec.kind)  # criteria of a class without marks stay
        shares = not class_.marks and self._session.hooks.pre_predicate(class_) is None
        known = self._of_kind.get(kind) if shares else None
        if known is None:
            known = self._numbers.setdefault(self._key(class_), len(self._numbers))
            if shares and not _others(criteria):
                self._of_kind[kind] = known
        return known

    def _key(self, class_: TaskClass) -> tuple[Any, ...]:
        """The nodes that are open to the class, and what else decides but nodes and amounts."""
        criteria, share = self._placement.criteria(class_), class_.share
        annotations = class_.spec.pod.metadata.annotations
        named = self._session.cluster.dialect.placement_annotations
        kind = (class_.best_effort, share is not None, share is not None and bool(share.memory))
        said = [annotations.get(name) for name in named]
        return (self._more(class_, criteria), *kind, *said, criteria.open.tobytes())

    def _more(self, class_: TaskClass, criteria: Criteria) -> Hashable:
        """What filters look at besides amounts.

        Where placement depends on other pods, whatever determines the choice of nodes counts too.
        """
        others = _others(criteria)
        refused = self._session.hooks.pre_predicate(class_) is not None
        if not others and not refused:
            return -1
        alike = [one.alike(class_) for one in others]
        alike += [one.alike(class_) for one in criteria.cluster_scorers]
        if refused or None in alike:
            return class_.number
        raw = [one.raw.tobytes() for one in criteria.relative]
        return (*alike, *_amounts(class_), criteria.fixed.tobytes(), *raw)


def _others(criteria: Criteria) -> list[Filter]:
    """The filters that look at more than amounts."""
    return [one for one in (*criteria.node_filters, *criteria.cluster_filters) if not one.by_amounts]


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """What tasks request: a row for each, or one row if all are alike.

    A row has the task's constraints, numbered from 1, and then amounts. Rows of tasks that differ are in order, the
    largest amounts first under each constraint.
    """

    rows: Amounts
    count: int

    def each(self) -> Amounts:
        """A row for each task."""
        return self.rows if len(self.rows) == self.count else self.rows.repeat(self.count, axis=0)


class _Failed:
    """The latest failed requests as one array: one plane per request, one row per task."""

    def __init__(self, width: int) -> None:
        self._planes = np.zeros((0, 0, width), dtype=np.int64)
        self._efforts = np.zeros(0)
        self._counts = np.zeros(0, dtype=np.int64)  # of tasks
        # By request, what tasks that are all alike must request to be no smaller: constraints, 0 where its tasks
        # have different ones; and the largest amounts.
        self._bounds = np.zeros((0, width), dtype=np.int64)

    def effort(self, asked: _Asked) -> float:
        """The most that was spent on a request that is no larger; nothing if there is none."""
        smaller = self._smaller_than_alike(asked) if len(asked.rows) == 1 else self._smaller(asked)
        return float(self._efforts[smaller].max(initial=-1.0))

    def _smaller_than_alike(self, asked: _Asked) -> NDArray[np.bool_]:
        (wanted,) = asked.rows
        smaller: NDArray[np.bool_] = (self._bounds <= wanted).all(axis=1)
        smaller &= self._bounds[:, 0] == wanted[0]
        smaller &= self._counts <= asked.count
        return smaller

    def _smaller(self, asked: _Asked) -> NDArray[np.bool_]:
        width = min(asked.count, self._planes.shape[1])
        planes, wanted = self._planes[:, :width], asked.rows[:width]
        # Rows beyond a request are all 0, constraints included: see `_padded`.
        alike = (planes[:, :, 0] == wanted[:, 0]) | (planes[:, :, 0] == 0)
        smaller: NDArray[np.bool_] = (self._counts <= asked.count) & alike.all(axis=1)
        smaller &= (planes[:, :, 1:] <= wanted[:, 1:]).all(axis=(1, 2))
        return smaller

    def add(self, asked: _Asked, effort: float) -> None:
        """Another one; those that it is no larger than need not be kept."""
        rows, count = asked.each(), asked.count
        width = max(count, self._planes.shape[1])
        planes, wanted = _padded(self._planes, width), _padded(rows[None], width)
        own = np.arange(width) < count
        alike = (planes[:, :, 0] == wanted[:, :, 0]) | ~own
        larger = (self._counts >= count) & alike.all(axis=1)
        larger &= (planes[:, :, 1:] >= wanted[:, :, 1:]).all(axis=(1, 2)) & (self._efforts <= effort)
        kept = np.flatnonzero(~larger)[-_KEPT + 1 :]
        bound = rows.max(axis=0, keepdims=True)
        bound[:, 0] *= rows[0, 0] == rows[-1, 0]
        self._planes = np.concatenate([planes[kept], wanted])
        self._bounds = np.concatenate([self._bounds[kept], bound])
        self._counts = np.append(self._counts[kept], count)
        self._efforts = np.append(self._efforts[kept], effort)


def _padded(planes: Amounts, width: int) -> Amounts:
    more = width - planes.shape[1]
    return np.pad(planes, ((0, 0), (0, more), (0, 0))) if more else planes


class _ByDominance:
    """By constraints and amounts; whatever else a search depends on is part of the key."""

    def __init__(self, session: Session, constraints: Constraints, asks: Callable[[int], TaskRows]) -> None:
        self._session = session
        self._constraints = constraints
        self._asks = asks
        self._failed: dict[tuple[Any, ...], _Failed] = {}
        # What was spent on requests that are no larger, by request: most jobs in line are like one before them.
        self._spent: dict[tuple[tuple[Any, ...], tuple[int, ...]], float] = {}

    def rules_out(self, job: int, effort: float = COMPLETE) -> float | None:
        key = self._key(job)
        known = self._failed.get(key)
        if known is None:
            return None
        request = key, self._classes(job)
        spent = self._spent.get(request)
        if spent is None:
            asked = self._constraints.asked_by_all(request[1])
            spent = self._spent[request] = known.effort(asked) if asked.count else -1.0
        return spent if spent >= effort else None

    def remember(self, job: int, effort: float = COMPLETE) -> None:
        key, asked = self._key(job), self._constraints.asked_by_all(self._classes(job))
        if not asked.count:
            return  # every job requests at least as much as one that requests nothing
        known = self._failed.setdefault(key, _Failed(asked.rows.shape[1]))
        if known.effort(asked) < effort:
            known.add(asked, effort)
            self._spent.clear()

    def changed(self) -> None:
        self._failed.clear()
        self._spent.clear()

    def _key(self, job: int) -> tuple[Any, ...]:
        session, facts = self._session, self._session.job_facts(job)
        parted = facts.level_wish or facts.groups or facts.shaped or facts.role_minimums
        shape = (facts.level_wish, facts.groups, job) if parted else None
        return (shape, int(session.jobs.priority[job]), session.preemptible(job))

    def _classes(self, job: int) -> tuple[int, ...]:
        """Of each of a job's next tasks."""
        return tuple(self._session.tasks.class_of[self._asks(job)].tolist())


def _amounts(class_: TaskClass) -> list[int]:
    """What a task requests in every dimension; of a shared device, the devices, the portion and the memory."""
    share = class_.share
    if share is None:
        return [*class_.request.tolist(), 0, 0, 0]
    part = round((share.exact or share.portion / 100) * _PARTS)
    return [*class_.request.tolist(), share.devices, part, share.memory]


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """A pod's request as KAI compares it: devices and the portion of each separately, GPU memory not at all."""

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
        """The requests of the pending pods, the smaller first as far as they can be compared."""
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
            parts = sorted(self._of_pod_set(one) for one in self._session.groups.of(job))
            known = self._signatures[job] = b"\n".join(parts)
        return known

    def _of_pod_set(self, pod_set: PodSet) -> bytes:
        """The topology constraints up to the root, and the pods without a place when the session was opened.

        So a job keeps its signature.
        """
        session, wishes = self._session, [pod_set.wish]
        group: Group | None = pod_set.parent
        while group is not None:
            wishes.append(group.wish)
            group = group.parent
        rows = pod_set.rows[~ACTIVE_ALLOCATED[session.cluster.tasks.status[pod_set.rows]]]
        if not len(rows):
            return b""
        return _encoder.encode((wishes, sorted(self._of_pods(rows))))

    def _of_pods(self, rows: TaskRows) -> Sequence[bytes]:
        """What decides where a pod may go, without its request."""
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
        """What identifies a volume: a known claim's class, size and phase, any other volume without its name.

        Claims are known only where volume capacity is tracked; the volume of an unknown claim is kept as it is.
        """
        if volume.persistent_volume_claim is None:
            return msgspec.structs.replace(volume, name="")
        namespace = pod.metadata.namespace or "default"
        claim = self._claims.get(f"{namespace}/{volume.persistent_volume_claim.claim_name}")
        if claim is None:
            return volume
        size = claim.spec.resources.requests.get("storage", 0)
        return (claim.spec.storage_class_name, str(size), claim.status.phase)


__all__ = ["COMPLETE", "Constraints", "Failures", "failures"]
