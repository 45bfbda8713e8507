"""GPUs: how queues count them, and which tasks hold parts of which device.

Tasks that request a part of a device share one: the device is a *group*, named after the task that opened it.
Per node, `GpuBooks` holds the memory that the tasks of a group take, those that stay and those that leave;
from that follows how many whole devices of the node are idle or will be. The rules are KAI's, case by case
(`add`, `remove`), except that a device is idle when no pod has a part of it: KAI guesses that from sums that
include claims. The transaction is the only writer; it takes a copy of what it touches, so that an undo is
exact.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.facts import GpuAsk
from maniple.cluster.resources import CPU, MEMORY, Amounts
from maniple.cluster.statuses import ON_NODE, Status
from maniple.framework.devices.gpu_facts import UNIT, GpuFacts, Quota

if TYPE_CHECKING:
    from maniple.framework.session import Session

NodeRows = NDArray[np.intp]
TaskRows = NDArray[np.int64]
Groups = tuple[str, ...]


@dataclass(slots=True)
class SharedDevice:
    """One shared device. Memory in MiB."""

    used: int = 0
    allocated: int = 0  # without tasks that only claim it
    releasing: int = 0
    taken: bool = False  # its device is not idle: a pod has a part of it, and does not only claim one
    marked: bool = False  # counts as a whole device that is being released
    known: bool = False  # a task was allocated on it, not only pipelined


@dataclass(frozen=True, slots=True)
class Saved:
    """A node's books of devices as they were."""

    node: int
    groups: dict[str, SharedDevice]
    taken: int
    freed: int


class GpuBooks(GpuFacts):
    """The GPUs of one session, nodes by name."""

    def __init__(self, session: "Session") -> None:
        super().__init__(session)
        self._guesses = session.rules.devices.last_part_is_guessed
        self.groups_of: dict[int, Groups] = {}
        self._nodes: dict[int, dict[str, SharedDevice]] = {}
        # By node: shared devices of which a pod has a part and stays, or claims one
        self.shared: Amounts = np.zeros(len(session.nodes), dtype=np.int64)
        # Of these, those that were opened in this session: the pods that reserve them do not exist yet
        self.unreserved: Amounts = np.zeros(len(session.nodes), dtype=np.int64)
        # By node: devices that were shared when the session opened
        self._reserved: dict[int, frozenset[str]] = {}
        # By node: MiB that the emptiest of the shared devices has left, or will have; -1 where none is shared
        self._most_left: Amounts = np.full(len(session.nodes), -1, dtype=np.int64)
        # By node: what all shared devices have left, in devices
        self._parts_left: NDArray[np.float64] = np.zeros(len(session.nodes))
        self._opened_on: dict[int, set[int]] = {}  # task -> nodes where devices may bear its name
        self._taken: dict[int, int] = {}  # node -> devices that groups took from what is idle
        self._freed: dict[int, int] = {}  # node -> devices that groups release, less those that they claim
        # Sums by node as of a length of the change log, see `_sum`
        self._sums: dict[tuple[bool, bool], tuple[int, Quota]] = {}
        self._asked: dict[int, Quota] = {}
        self._of_classes: Quota = np.zeros((3, 0))
        self._shares: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)  # by class
        self._load()

    def _load(self) -> None:
        session = self._session
        held = session.cluster.tasks.gpu_groups if self.dimension is not None else {}
        for row in sorted(held, key=session.task_key):
            self.groups_of[row] = held[row]
            node, status = int(session.tasks.node[row]), Status(session.tasks.status[row])
            self._opened_on[row] = {node}
            class_ = session.classes[session.tasks.class_of[row]]
            if node >= 0 and ON_NODE[status] and class_.share is not None:
                self.add(node, class_, held[row], status)
        self._reserved = {node: frozenset(groups) for node, groups in self._nodes.items()}
        self.unreserved[:] = 0

    # -- what tasks ask for ---------------------------------------------------------------------------------------

    def asked(self, class_: TaskClass) -> Quota:
        """What a task counts with in queues before its node is known."""
        known = self._asked.get(class_.number)
        if known is None:
            share = class_.share
            devices = self._whole_devices(class_)
            if share is not None and share.portion:
                devices += share.portion * share.devices / 100
            elif share is not None:
                devices += share.memory / self.least_memory * share.devices
            known = self._asked[class_.number] = _quota(class_, devices)
        return known

    def accepted(self, class_: TaskClass, node: int) -> Quota:
        """What a task counts with on a node."""
        share = class_.share
        if share is None or not share.memory:
            return self.asked(class_)
        hundredths = round(self.portion_on(class_, node) * 100)
        return _quota(class_, self._whole_devices(class_) + hundredths * share.devices / 100)

    def _whole_devices(self, class_: TaskClass) -> float:
        units = self.units
        return float(class_.request[: len(units)] @ units)

    def portion_on(self, class_: TaskClass, node: int) -> float:
        """The part of each device that a task takes on a node."""
        share = class_.share
        assert share is not None
        return share.portion / 100 if share.portion else self._portion(share.memory, node)

    def _portion(self, memory: int, node: int) -> float:
        return math.ceil(memory / int(self.memory[node]) * 100) / 100

    def of_tasks(self, rows: TaskRows) -> Quota:
        """A column a task: accepted where it is on a node, asked otherwise."""
        session = self._session
        class_of = session.tasks.class_of[rows]
        amounts: Quota = self.of_classes.take(class_of, axis=1)
        for place in self.sharing(class_of):
            class_, node = session.classes[class_of[place]], int(session.tasks.node[rows[place]])
            amounts[:, place] = self.accepted(class_, node) if node >= 0 else self.asked(class_)
        return amounts

    @property
    def of_classes(self) -> Quota:
        """A column a class: what a task of it counts with, parts of devices apart."""
        self._know_classes()
        return self._of_classes

    def _know_classes(self) -> None:
        """Catch up with classes that were made since the last call."""
        session, units = self._session, self.units
        if len(self._shares) < len(session.classes):
            requests = session.class_requests.T
            self._of_classes = np.vstack([requests[[CPU, MEMORY]], units @ requests[: len(units)]])
            self._shares = np.array([one.share is not None for one in session.classes], dtype=np.bool_)

    def sharing(self, class_of: NDArray[np.int32]) -> list[int]:
        """Which of many tasks ask for parts of devices."""
        self._know_classes()
        places: list[int] = self._shares[class_of].nonzero()[0].tolist()
        return places

    def need(self, class_: TaskClass, node: int) -> int:
        """MiB of a device that a task takes on a node."""
        share = class_.share
        assert share is not None
        return share.memory or max(1, int((share.exact or share.portion / 100) * int(self.memory[node])))

    def _needs(self, share: GpuAsk, rows: NodeRows) -> Amounts:
        """The same on many nodes."""
        if share.memory:
            return np.full(rows.shape, share.memory, dtype=np.int64)
        needed = ((share.exact or share.portion / 100) * self.memory[rows]).astype(np.int64)
        return np.maximum(needed, 1)

    # -- groups ---------------------------------------------------------------------------------------------------

    def groups(self, node: int) -> dict[str, SharedDevice]:
        return self._nodes.get(node, {})

    def portion_used(self, node: int, group: str) -> float:
        found = self.groups(node).get(group)
        return found.used / int(self.memory[node]) if found is not None else 0.0

    def fits_group(self, class_: TaskClass, node: int, group: SharedDevice) -> bool:
        """The device has the part, now or once leaving tasks are gone.

        It must be in use, and not only by tasks that are leaving.
        """
        return _open_to_others(group) and self._left(node, group) >= self.need(class_, node)

    def _left(self, node: int, group: SharedDevice) -> int:
        return int(self.memory[node]) - group.allocated + group.releasing

    def has_group(self, class_: TaskClass, rows: NodeRows) -> NDArray[np.bool_]:
        """Nodes with a device that is in use, and has what a task takes of one."""
        assert class_.share is not None
        enough: NDArray[np.bool_] = self._most_left[rows] >= self._needs(class_.share, rows)
        return enough

    def fits_now(self, class_: TaskClass, node: int, group: str) -> bool:
        found = self.groups(node).get(group)
        if found is None or not found.known:
            return False
        return int(self.memory[node]) - found.allocated >= self.need(class_, node)

    def fitting_groups(self, class_: TaskClass, node: int) -> list[str]:
        return sorted(name for name, one in self.groups(node).items() if self.fits_group(class_, node, one))

    def fits(self, class_: TaskClass, rows: NodeRows, free: Amounts) -> NDArray[np.bool_]:
        """Whether nodes that have so many base units of whole devices free can give a task its parts."""
        share = class_.share
        assert share is not None
        devices = free // UNIT
        shared = self.has_group(class_, rows)
        # Where one device more is enough, or none is, it does not matter how many of the shared ones would do.
        counted = shared & (devices < share.devices - 1)
        devices += shared
        for place in counted.nonzero()[0].tolist():
            devices[place] += len(self.fitting_groups(class_, int(rows[place]))) - 1
        parts = np.ceil(share.memory / self.memory[rows] * 100) / 100
        whole = self._session.rules.devices.whole_multiples_are_parts
        possible = (parts <= 1) | (whole & (parts == np.floor(parts)))
        fitting: NDArray[np.bool_] = (devices >= share.devices) & possible
        return fitting

    def idle_sum(self, *, exact: bool = False) -> Quota:
        """Idle GPUs by node: whole ones, slices, and what is left of shared ones, in hundredths unless `exact`."""
        return self._sum(self._state.idle, idle=True, exact=exact)

    def releasing_sum(self, *, exact: bool = False) -> Quota:
        """By node, GPUs that are being released and not claimed yet."""
        state = self._state
        return self._sum(lambda: state.releasing - state.pipelined, idle=False, exact=exact)

    def _sum(self, amounts: Callable[[], Amounts], *, idle: bool, exact: bool) -> Quota:
        units, changes = self.units, self._session.changes
        stamp, known = self._sums.get((idle, exact), (-1, np.zeros(len(self.memory))))
        if stamp == len(changes):
            return known.copy()
        total: Quota = units @ amounts()[: len(units)]
        spared = changes.spared(np.arange(len(total)), stamp)
        total[spared] = known[spared]
        self._sums[idle, exact] = len(changes), total
        for node, groups in self._nodes.items():
            for group in () if spared[node] else groups.values():
                memory = group.allocated if idle else group.releasing
                if memory <= 0 or (not idle and memory == group.used):
                    continue
                part = memory / int(self.memory[node]) if exact else self._portion(memory, node)
                total[node] += 1 - part if idle else part
        return total.copy()

    def free_parts(self) -> Quota:
        """By node, devices that are free or will be, whole ones and what is left of shared ones: never too few."""
        free: Quota = self.units @ self._state.future_idle()[: len(self.units)]
        return np.maximum(free, 0.0) + self._parts_left

    def largest_part(self) -> Quota:
        """By node, the most that is free of one device, or will be: never too little."""
        whole = self.units @ self._state.future_idle()[: len(self.units)] > 0
        return np.where(whole, 1.0, self._most_left / np.maximum(self.memory, 1))

    def held_parts(self, row: int, class_: TaskClass) -> tuple[float, float]:
        """Of shared devices, what a task on a node has of them; and how much of each device's users it is, added up."""
        node, groups = int(self._session.tasks.node[row]), self.groups_of.get(row, ())
        own, memory = self.need(class_, node), max(int(self.memory[node]), 1)
        users = [max(self.groups(node)[name].used, 1) for name in groups if name in self.groups(node)]
        return own / memory * len(groups), sum(own / used for used in users)

    def new_name(self, row: int, node: int, taken: Sequence[str] = ()) -> str:
        """A device that a task opens is named after the task.

        No other device has that name, not even one that the task has just left.
        """
        uid = self._session.cluster.tasks.pods[row].metadata.uid
        owner = uid or self._session.task_key(row).replace("/", ".")
        opened = self._opened_on.setdefault(row, set())
        opened.add(node)
        number = 0
        while (name := f"{owner}-{number}") in taken or any(name in self.groups(one) for one in opened):
            number += 1
        return name

    # -- books ----------------------------------------------------------------------------------------------------

    def booked(self) -> tuple[Amounts, Amounts]:
        """By node: idle devices that groups took, and those that groups release less those that they claim."""
        return self._by_node(self._taken), self._by_node(self._freed)

    def _by_node(self, counts: Mapping[int, int]) -> Amounts:
        column = np.zeros(len(self._state), dtype=np.int64)
        column[list(counts)] = list(counts.values())
        return column

    def save(self, node: int) -> Saved:
        groups = {name: replace(one) for name, one in self.groups(node).items()}
        return Saved(node, groups, self._taken.get(node, 0), self._freed.get(node, 0))

    def restore(self, saved: Saved) -> None:
        node = saved.node
        self._nodes[node] = saved.groups
        self._count_shared(node)
        self._take(node, saved.taken - self._taken.get(node, 0))
        self._release(node, saved.freed - self._freed.get(node, 0))

    def add(self, node: int, class_: TaskClass, groups: Iterable[str], status: Status) -> None:
        memory = self.need(class_, node)
        for name in groups:
            group = self._nodes.setdefault(node, {}).setdefault(name, SharedDevice())
            group.used += memory
            if status is Status.RELEASING:
                self._add_leaving(node, group, memory)
            elif status is Status.PIPELINED:
                group.releasing -= memory
                if group.used - memory == group.releasing + memory:
                    self._release(node, -1)
            else:
                self._add_staying(node, group, memory)
        self._count_shared(node)

    def _count_shared(self, node: int) -> None:
        # Allocated is what stays and what leaves, releasing what leaves less what is claimed.
        groups = self.groups(node)
        staying = [name for name, one in groups.items() if one.allocated > one.releasing]
        self.shared[node] = len(staying)
        self.unreserved[node] = len(staying) - len(self._reserved.get(node, _NONE).intersection(staying))
        left = [self._left(node, one) for one in groups.values() if _open_to_others(one)]
        self._most_left[node] = max(left, default=-1)
        self._parts_left[node] = sum(max(one, 0) for one in left) / max(int(self.memory[node]), 1)

    def _add_leaving(self, node: int, group: SharedDevice, memory: int) -> None:
        group.releasing += memory
        group.allocated += memory
        group.known = True
        if group.used == group.releasing and not group.marked:
            self._release(node, +1)
            group.marked = True
        self._open(node, group, first=group.used == group.releasing)

    def _add_staying(self, node: int, group: SharedDevice, memory: int) -> None:
        group.allocated += memory
        group.known = True
        self._open(node, group, first=group.used <= memory)
        if group.marked:
            self._release(node, -1)
            group.marked = False

    def remove(self, node: int, class_: TaskClass, groups: Iterable[str], status: Status) -> None:
        memory = self.need(class_, node)
        for name in groups:
            group = self._nodes[node][name]
            group.used -= memory
            if status is Status.RELEASING:
                self._remove_leaving(node, group, memory)
            elif status is Status.PIPELINED:
                group.releasing += memory
                was_claimed = group.used + memory == group.releasing - memory
                if was_claimed or (group.used == 0 and group.releasing == 0):
                    self._release(node, +1)
            else:
                self._remove_staying(node, group, memory)
        self._count_shared(node)

    def _remove_leaving(self, node: int, group: SharedDevice, memory: int) -> None:
        group.releasing -= memory
        group.allocated -= memory
        self._close(node, group)
        if group.used <= 0 and group.marked:
            self._release(node, -1)
            group.marked = False

    def _remove_staying(self, node: int, group: SharedDevice, memory: int) -> None:
        group.allocated -= memory
        self._close(node, group)
        if group.used != 0 and group.releasing == group.used and not group.marked:
            self._release(node, +1)
            group.marked = True

    def _open(self, node: int, group: SharedDevice, *, first: bool) -> None:
        """A pod has a part of the device, so it is not idle. `first`: for a guess, no pod had one before."""
        if (first and self._overbooked(node)) if self._guesses else not group.taken:
            group.taken = True
            self._take(node, +1)

    def _close(self, node: int, group: SharedDevice) -> None:
        """A device of which no pod has a part is idle, claimed or not. A guess counts claims as used."""
        last = group.used <= 0 and not self._overbooked(node)
        if last if self._guesses else group.taken and group.allocated <= 0:
            group.taken = False
            self._take(node, -1)

    def _overbooked(self, node: int) -> bool:
        """More devices are idle or in use than there are: to a guess, a group's device is not taken yet."""
        state, dimension = self._state, self.dimension
        used, claimed = int(state.used[dimension, node]), int(state.pipelined[dimension, node])
        idle = (int(state.allocatable[dimension, node]) - used) // UNIT
        whole = (used + claimed) // UNIT - self._taken.get(node, 0)
        shared = sum(group.used > 0 for group in self._nodes[node].values())
        return int(self.count[node]) < idle + whole + shared

    def _take(self, node: int, devices: int) -> None:
        self._taken[node] = self._taken.get(node, 0) + devices
        self._state.used[self.dimension, node] += devices * UNIT

    def _release(self, node: int, devices: int) -> None:
        self._freed[node] = self._freed.get(node, 0) + devices
        self._state.releasing[self.dimension, node] += devices * UNIT


_NONE: frozenset[str] = frozenset()


def _open_to_others(group: SharedDevice) -> bool:
    """The device is in use, and not only by pods that leave."""
    return group.used != 0 and group.allocated != group.releasing


def _quota(class_: TaskClass, gpus: float) -> Quota:
    return np.array([class_.request[CPU], class_.request[MEMORY], gpus], dtype=np.float64)
