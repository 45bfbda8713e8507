"""Accounting of a node's devices: the load of each, the pieces of each task, and the interface of a device
kind.

`deviceshare.py` owns the books and follows allocations; the kinds only read them to choose. All amounts are
integers and a task's pieces are kept as they were taken, so that returning them restores the earlier state.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from maniple.framework.reasons import Reason
from maniple.objects.core import Node, Pod
from maniple.plugins.devices.wire import CardRequest

NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of one device, or all of it."""

    device: str
    memory: int = 0  # what counts against the device
    cores: int = 0
    instance: str = ""  # of a partitioned device: which part
    asked: int = 0  # memory as requested, which annotations state
    settled: bool = True  # the node's agent has confirmed it


@dataclass(frozen=True, slots=True)
class Traits:
    """What matters of a task beyond its class: its exclusive rules, its pod group, some labels."""

    rules: frozenset[int] = frozenset()
    group: str = ""
    labels: tuple[str, ...] = ()


NO_TRAITS = Traits()


@dataclass(frozen=True, slots=True)
class Requester:
    """A task that requests devices, as far as the choice depends on it."""

    pod: Pod  # of its class
    card_requests: tuple[CardRequest, ...]
    traits: Traits = NO_TRAITS


@dataclass(frozen=True, slots=True)
class Grant:
    """Devices for one task: pieces container by container, and the score of the choice."""

    containers: tuple[tuple[Piece, ...], ...] = ()
    score: float = 0.0
    lesser: bool = False  # less than was requested, as far as that is allowed

    def pieces(self) -> Iterable[Piece]:
        return (piece for container in self.containers for piece in container)


@dataclass(slots=True)
class Load:
    """The load of one device."""

    number: int = 0
    memory: int = 0
    cores: int = 0
    instances: tuple[str, ...] = ()  # sorted

    def add(self, piece: Piece) -> None:
        self.number += 1
        self.memory += piece.memory
        self.cores += piece.cores
        if piece.instance:
            self.instances = tuple(sorted((*self.instances, piece.instance)))

    def remove(self, piece: Piece) -> None:
        self.number -= 1
        self.memory -= piece.memory
        self.cores -= piece.cores
        if piece.instance:
            left = list(self.instances)
            left.remove(piece.instance)
            self.instances = tuple(left)

    def copy(self) -> "Load":
        return Load(self.number, self.memory, self.cores, self.instances)


@dataclass(slots=True, eq=False)
class Books:
    """The devices of one kind on one node in one session."""

    loads: dict[str, Load]
    held: dict[int, tuple[Grant, Traits]] = field(default_factory=dict)  # by task

    @classmethod
    def of(cls, devices: Iterable[str]) -> "Books":
        return cls({device: Load() for device in devices})

    def take(self, task: int, grant: Grant, traits: Traits) -> None:
        self.held[task] = (grant, traits)
        for piece in grant.pieces():
            if piece.device in self.loads:  # a card may have been removed that still serves a pod
                self.loads[piece.device].add(piece)

    def give_back(self, task: int) -> tuple[Grant, Traits] | None:
        held = self.held.pop(task, None)
        if held is not None:
            for piece in held[0].pieces():
                if piece.device in self.loads:
                    self.loads[piece.device].remove(piece)
        return held

    def users(self, device: str) -> Iterable[tuple[Traits, Piece]]:
        """The tasks with pieces on a device."""
        for grant, traits in self.held.values():
            for piece in grant.pieces():
                if piece.device == device:
                    yield traits, piece

    def trial(self) -> dict[str, Load]:
        """A copy of the loads to choose on."""
        return {device: load.copy() for device, load in self.loads.items()}


class NodeDevices(Protocol):
    """The devices of one kind on one node."""

    books: Books

    def choose(self, requester: Requester) -> Grant | Reason:
        """Devices for a task, or why there are none."""

    def held_by(self, pod: Pod) -> Grant | None:
        """The pieces of a pod on this node, from its annotations."""

    def written(self, requester: Requester, grant: Grant, now: datetime | None) -> Mapping[str, str]:
        """The annotations that pass a choice to the node's agent."""


class DeviceKind(Protocol):
    """Devices of one make.

    `lock` names the annotation that locks a node while one of its devices is assigned.
    """

    @property
    def name(self) -> str: ...
    @property
    def lock(self) -> str: ...

    def card_requests(self, pod: Pod) -> tuple[CardRequest, ...]:
        """What a pod requests of such devices; empty if it requests none."""

    def on(self, node: Node) -> NodeDevices | None:
        """The devices of a node, all unused; None if it has none."""


def seconds_of(now: datetime | None) -> str:
    """Unix time as annotations have it; without a clock, 0."""
    return str(int(now.timestamp())) if now is not None else "0"


def nanoseconds_of(now: datetime | None) -> str:
    if now is None:
        return "0"
    return str(int(now.timestamp()) * NANOSECONDS + now.microsecond * 1000)
