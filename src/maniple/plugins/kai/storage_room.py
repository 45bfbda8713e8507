"""Capacity for volumes to be provisioned, for KAI's `predicates` with the option `scheduleCSIStorage`.

A CSIStorageCapacity says how much capacity the nodes that it selects have for volumes of a class. The pending
claims of a pod are summed by class and must fit into it, less what this session and pods on nodes have taken
already; or, if the pod can wait, with the claims added that are deleted with the node's terminating pods.
What a task counts for is derived from its node on every event, so that undoing a step restores the amounts.

Only classes that wait for their first consumer and whose provisioner is a driver count. The largest capacity
that a node sees for a class counts, no volume may exceed the largest possible, and drivers that report no
capacity are not limited. With strict rules: a node that sees several capacities for a class has none for any
class, and neither of the two other rules holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import ACTIVE_USED, ALIVE, ALLOCATED_LIKE, Status
from maniple.framework.criteria import Cells, Dependence, Filter, NodeRows
from maniple.framework.points import Event
from maniple.framework.reasons import FITS, Code, Verdicts
from maniple.framework.session import Session
from maniple.objects.core import CSIDriver, CSIStorageCapacity, PersistentVolumeClaim, Pod
from maniple.objects.quantity import units
from maniple.plugins.feasibility.node_affinity import Mask, label_selector_mask
from maniple.plugins.feasibility.volume_claims import uses_claims, waits_for_node

NO_CAPACITY = "no allocatable storage from storageclass {name} found"
NO_ROOM = "node(s) did not have enough free storage for storageclass {name}"
TOO_LARGE = "node(s) cannot provision a volume of that size for storageclass {name}"

_NONE = -1
_ENDLESS = int(np.iinfo(np.int64).max)
Entry = tuple[int, str, int]  # capacity, claim, bytes


@dataclass(frozen=True, slots=True)
class _Claim:
    key: str
    class_name: str
    size: int
    unbound: bool
    owner: int  # the task that owns it, and with which it is deleted; -1 if there is none
    orphaned: bool  # its owner is a pod that is gone, or terminating


@dataclass(frozen=True, slots=True)
class _Counted:
    """What a task counts for: capacity that it takes, and capacity that it will free on nodes."""

    taken: tuple[Entry, ...] = ()
    leaving: tuple[tuple[int, str, int], ...] = ()  # node, class, bytes


class StorageRoom:
    """The accounting of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._rules = session.rules.storage
        self._storage = session.cluster.storage
        self._size = len(session.nodes)
        self._left: list[int] = []  # by capacity
        self._largest: list[int] = []  # volume that can be made, by capacity
        self._at = self._capacities()
        self._leaving: dict[str, Amounts] = {}
        self._users: dict[tuple[int, str], int] = {}  # capacity and claim -> tasks that count for it
        self._counted: dict[int, _Counted] = {}
        self._claims: dict[int, tuple[_Claim, ...]] = {}
        for row in self._mounting().tolist():
            self._count(row)

    @classmethod
    def shared(cls, session: Session) -> "StorageRoom | None":
        """The accounting, to find out whether a task has to wait; None if there is none."""
        return session.shared.get(cls)

    # -- capacities -----------------------------------------------------------------------------------------------

    def _considered(self, name: str) -> bool:
        """Whether capacity for volumes of a class is accounted for."""
        storage_class = self._storage.classes.get(name)
        if storage_class is None:
            return False
        driver = self._session.cluster.all(CSIDriver).get(storage_class.provisioner)
        return driver is not None and (driver.spec.storage_capacity or self._rules.silent_drivers_are_asked)

    def _capacities(self) -> dict[str, NodeRows]:
        """By class, the capacity that counts on each node."""
        rules, found = self._rules, self._session.cluster.all(CSIStorageCapacity)
        at: dict[str, NodeRows] = {}
        several = np.zeros(self._size, dtype=np.bool_)
        for key in sorted(found):
            one, number = found[key], len(self._left)
            name, amount = one.storage_class_name, one.capacity
            largest = one.maximum_volume_size if rules.largest_volume_counts else None
            if amount is None:
                amount = largest
            self._left.append(units(amount) if amount is not None else 0)
            self._largest.append(units(largest) if largest is not None else _ENDLESS)
            here, mask = at.setdefault(name, np.full(self._size, _NONE, dtype=np.intp)), self._seen_by(one)
            seen = mask & (here != _NONE)
            several |= seen
            smaller = np.array([self._left[other] < self._left[number] for other in here[seen].tolist()])
            mask[seen] = smaller.astype(np.bool_)
            here[mask] = number
        if rules.several_capacities_cancel:
            for here in at.values():
                here[several] = _NONE
        return at

    def _seen_by(self, capacity: CSIStorageCapacity) -> Mask:
        if capacity.node_topology is None:
            return np.full(self._size, self._rules.unplaced_capacities_are_everywhere)
        return label_selector_mask(self._session.nodes.facts, capacity.node_topology).copy()

    # -- requests -------------------------------------------------------------------------------------------------

    def applies(self, class_: TaskClass) -> bool:
        return bool(self._claims_of(class_))

    def _claims_of(self, class_: TaskClass) -> tuple[_Claim, ...]:
        known = self._claims.get(class_.number)
        if known is None:
            pod = class_.spec.pod
            known = tuple(self._read(pod)) if uses_claims(class_) else ()
            self._claims[class_.number] = known
        return known

    def _read(self, pod: Pod) -> Iterator[_Claim]:
        found = {key: claim for _, key, claim in self._storage.claims_of(pod) if claim is not None}
        for key, claim in found.items():
            name = self._storage.class_name(claim)
            if not self._considered(name) or not waits_for_node(self._storage, claim):
                continue
            size = units(claim.spec.resources.requests.get("storage", 0))
            unbound = claim.status.phase in ("", "Pending")
            yield _Claim(key, name, size, unbound, *self._belongs_to(key, claim))

    def _belongs_to(self, key: str, claim: PersistentVolumeClaim) -> tuple[int, bool]:
        """The task whose pod is the only owner of a claim and mounts it; whether that owner will not stay."""
        owners, tasks = claim.metadata.owner_references, self._session.cluster.tasks
        if len(owners) != 1 or owners[0].kind.lower() != "pod":
            return _NONE, False
        row = tasks.index_of(f"{key.partition('/')[0]}/{owners[0].name}")
        pod = tasks.pods.get(row) if row is not None else None
        if row is None or pod is None or pod.metadata.uid != owners[0].uid:
            return _NONE, True
        mounts = any(mounted == key for _, mounted, _ in self._storage.claims_of(pod))
        return (row, pod.metadata.deletion_timestamp is not None) if mounts else (_NONE, True)

    def _wanted(self, class_: TaskClass) -> dict[str, list[_Claim]]:
        """The claims to be provisioned for the next task of a class, by their class."""
        wanted: dict[str, list[_Claim]] = {}
        for claim in self._claims_of(class_):
            if claim.unbound or self._made_anew(claim):
                wanted.setdefault(claim.class_name, []).append(claim)
        return wanted

    def _made_anew(self, claim: _Claim) -> bool:
        """Whether a claim is deleted with a pod that a trial evicts, and recreated wherever that is placed."""
        tasks, owner = self._session.tasks, claim.owner
        return owner >= 0 and bool(tasks.virtual[owner]) and not ALLOCATED_LIKE[tasks.status[owner]]

    # -- the filter -----------------------------------------------------------------------------------------------

    def filter(self) -> Filter:
        return Filter("StorageRoom", Dependence.CLUSTER, self._check, self.applies, self.waits)

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        number, rows = self._session.reasons.number, cells.node_rows()
        verdict = np.zeros(rows.shape, dtype=np.int16)
        for name, claims in self._wanted(class_).items():
            here = self._here(name, rows)
            short = self._room(claims, here) + self._will_leave(name, rows) < 0
            biggest = max(claim.size for claim in claims)
            small = np.array([biggest > self._most(one) for one in here.tolist()], dtype=np.bool_)
            for refused, text, code in (
                (here == _NONE, NO_CAPACITY, Code.UNRESOLVABLE),
                (small, TOO_LARGE, Code.UNRESOLVABLE),
                (short, NO_ROOM, Code.UNSCHEDULABLE),
            ):
                verdict[(verdict == FITS) & refused] = number(text.format(name=name), code)
        return verdict

    def waits(self, class_: TaskClass, cells: Cells) -> Mask:
        """Where a task that fits has to wait for the capacity of terminating claims."""
        rows = cells.node_rows()
        waits = np.full(rows.shape, any(claim.orphaned for claim in self._claims_of(class_)))
        for name, claims in self._wanted(class_).items():
            waits |= self._room(claims, self._here(name, rows)) < 0
        return waits

    def _here(self, name: str, rows: NodeRows) -> NodeRows:
        at = self._at.get(name)
        return np.full(rows.shape, _NONE, dtype=np.intp) if at is None else at[rows]

    def _most(self, capacity: int) -> int:
        return self._largest[capacity] if capacity != _NONE else _ENDLESS

    def _room(self, claims: list[_Claim], here: NodeRows) -> Amounts:
        """What would be left on nodes, by the capacities that count there; negative: too little."""
        left = {capacity: self._left_with(claims, capacity) for capacity in np.unique(here).tolist()}
        return np.array([left[capacity] for capacity in here.tolist()], dtype=np.int64)

    def _left_with(self, claims: list[_Claim], capacity: int) -> int:
        if capacity == _NONE:
            return -_ENDLESS // 2
        # A claim that is already counted there counts once.
        counted = [
            claim
            for claim in claims
            if not self._rules.claims_count_once
            or (capacity, claim.key) not in self._users
            or not claim.unbound
        ]
        return self._left[capacity] - sum(claim.size for claim in counted)

    def _will_leave(self, name: str, rows: NodeRows) -> Amounts:
        leaving = self._leaving.get(name)
        return np.zeros(rows.shape, dtype=np.int64) if leaving is None else leaving[rows]

    # -- accounting -----------------------------------------------------------------------------------------------

    def _mounting(self) -> NodeRows:
        """Tasks on nodes that mount claims, as far as they count."""
        session, tasks = self._session, self._session.tasks
        numbers = [one.number for one in session.classes if self.applies(one)]
        there = np.isin(tasks.class_of, numbers) & (tasks.node >= 0) & ACTIVE_USED[tasks.status]
        if not self._rules.binding_pods_hold_room:
            there &= tasks.status != Status.BINDING
        return np.flatnonzero(there)

    def on_change(self, event: Event) -> None:
        """Tasks were placed or removed."""
        if self.applies(event.class_):
            for row in event.rows.tolist():
                self._count(row)

    def _count(self, row: int) -> None:
        before, now = self._counted.pop(row, None), self._counts_for(row)
        if before is not None:
            self._book(before, -1)
        if now.taken or now.leaving:
            self._counted[row] = now
            self._book(now, +1)

    def _counts_for(self, row: int) -> _Counted:
        """By a task's node, and by the nodes that it is leaving although it claims another."""
        tasks, moved = self._session.tasks, self._session.moved.get(row, [])
        node, status = int(tasks.node[row]), int(tasks.status[row])
        claims = self._claims_of(self._session.classes[tasks.class_of[row]])
        owned = [claim for claim in claims if claim.owner == row]
        taken: list[Entry] = []
        leaving: list[tuple[int, str, int]] = []
        if node >= 0 and ACTIVE_USED[status]:
            taken += self._takes(node, [claim for claim in claims if claim.unbound])
            if not ALIVE[status]:
                leaving += [(node, claim.class_name, claim.size) for claim in owned]
        for old, _ in moved:
            taken += self._takes(old, [claim for claim in claims if claim.unbound])
            leaving += [(old, claim.class_name, claim.size) for claim in owned]
        if moved and node >= 0 and self._rules.moved_pods_take_room:
            again = self._takes(node, [claim for claim in owned if not claim.unbound])
            taken += [(capacity, f"{key} again", size) for capacity, key, size in again]
        return _Counted(tuple(taken), tuple(leaving))

    def _takes(self, node: int, claims: list[_Claim]) -> list[Entry]:
        found = []
        for claim in claims:
            at = self._at.get(claim.class_name)
            if at is not None and at[node] != _NONE:
                found.append((int(at[node]), claim.key, claim.size))
        return found

    def _book(self, counted: _Counted, sign: int) -> None:
        for capacity, key, size in counted.taken:
            users = self._users.get((capacity, key), 0) + sign
            if users:
                self._users[capacity, key] = users
            else:
                del self._users[capacity, key]
            # A claim takes its capacity once, however many tasks mount it.
            if users == (1 if sign > 0 else 0):
                self._left[capacity] -= sign * size
        for node, name, size in counted.leaving:
            if name not in self._leaving:
                self._leaving[name] = np.zeros(self._size, dtype=np.int64)
            self._leaving[name][node] += sign * size


__all__ = ["StorageRoom"]
