"""The CPUs of a node: the NUMA node, socket and core of each, and how some of them are chosen.

A set of CPUs, or of NUMA nodes, is an integer used as bits: number n is in it if bit n is set. A choice takes
whole sockets while it needs as many CPUs as one has, then whole cores, then single threads; the fullest
socket and core first, so that whole ones stay whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from maniple.objects.remembering import remembered
from maniple.objects.volcano import CpuPlace
from maniple.plugins.devices.wire import whole

Bits = int
_MOST_CPUS = 4096
_FEW_NODES = 8  # up to which all sets are considered; the kubelet does not start with more


def bits(numbers: Iterable[int]) -> Bits:
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def numbers(found: Bits) -> list[int]:
    listed = []
    while found:
        low = found & -found
        listed.append(low.bit_length() - 1)
        found ^= low
    return listed


@remembered(16384)
def cpuset(text: str) -> Bits:
    """A list like "0-3,8"; empty if it cannot be parsed, as nothing may be promised then."""
    found = 0
    for part in filter(None, (one.strip() for one in text.split(","))):
        first, dash, last = part.partition("-")
        low, high = whole(first), whole(last if dash else first)
        if low is None or high is None or not low <= high < _MOST_CPUS:
            return 0
        found |= (1 << high + 1) - (1 << low)
    return found


@dataclass(frozen=True, slots=True)
class Hint:
    """NUMA nodes that could satisfy a request; preferred: with as few of them as possible on an empty node."""

    nodes: Bits
    preferred: bool


class CpuTopology:
    """The CPUs of one node.

    Results do not depend on allocations, so they are cached as long as the description.
    """

    def __init__(self, detail: Mapping[str, CpuPlace]) -> None:
        self.places = {
            int(cpu): place for cpu, place in sorted(detail.items(), key=lambda item: int(item[0]))
        }
        self.places = {cpu: place for cpu, place in self.places.items() if cpu < _MOST_CPUS}
        self.cpus = bits(self.places)
        self.sockets: dict[int, Bits] = {}
        # Exporters number cores per socket, so that a core is identified by both numbers.
        self.cores: dict[tuple[int, int], Bits] = {}
        self.nodes: dict[int, Bits] = {}
        for cpu, place in self.places.items():
            self.sockets[place.socket] = self.sockets.get(place.socket, 0) | 1 << cpu
            core = (place.socket, place.core)
            self.cores[core] = self.cores.get(core, 0) | 1 << cpu
            self.nodes[place.numa] = self.nodes.get(place.numa, 0) | 1 << cpu

    @cached_property
    def all_nodes(self) -> Bits:
        return bits(self.nodes)

    @cached_property
    def groups(self) -> list[tuple[Bits, int, Bits]]:
        """All sets of NUMA nodes, the smaller first: the set, how many, their cpus."""
        return [
            (bits(chosen), size, self.cpus_of(bits(chosen)))
            for size in range(1, len(self.nodes) + 1)
            for chosen in _sets(sorted(self.nodes), size)
        ]

    def cpus_of(self, nodes: Bits) -> Bits:
        return bits_of(self.nodes.get(node, 0) for node in numbers(nodes))

    def nodes_of(self, cpus: Bits) -> Bits:
        return bits(node for node, own in self.nodes.items() if own & cpus)

    def hints(self, available: Bits, wanted: int) -> list[Hint]:
        """The sets of NUMA nodes with that many CPUs."""
        least = min(
            (size for _, size, cpus in self.groups if cpus.bit_count() >= wanted), default=len(self.nodes)
        )
        return [
            Hint(nodes, size == least)
            for nodes, size, cpus in self.groups
            if (cpus & available).bit_count() >= wanted
        ]

    def take(self, available: Bits, wanted: int) -> Bits | None:
        """That many of the available CPUs; None if there are too few."""
        available &= self.cpus
        if available.bit_count() < wanted:
            return None
        taken = 0
        for whole_ones in (self._sockets_by_number, self._cores_by_use):
            for unit in whole_ones(available):
                if 0 < unit.bit_count() <= wanted:
                    taken |= unit
                    available &= ~unit
                    wanted -= unit.bit_count()
        for cpu in self._threads_by_use(available, taken)[:wanted]:
            taken |= 1 << cpu
        return taken

    def _sockets_by_number(self, available: Bits) -> list[Bits]:
        return [own for _, own in sorted(self.sockets.items()) if own & available == own]

    def _cores_by_use(self, available: Bits) -> list[Bits]:
        """Whole cores: of the socket with the fewest first."""
        free = [core for core, own in sorted(self.cores.items()) if own & available == own]
        per_socket = {socket: sum(core[0] == socket for core in free) for socket in self.sockets}
        return [self.cores[core] for core in sorted(free, key=lambda core: (per_socket[core[0]], *core))]

    def _threads_by_use(self, available: Bits, taken: Bits) -> list[int]:
        """Threads: on sockets in use first, then where fewest are left."""

        def key(cpu: int) -> tuple[int, ...]:
            place = self.places[cpu]
            socket, core = self.sockets[place.socket], self.cores[place.socket, place.core]
            return (
                -(socket & taken).bit_count(),
                (socket & available).bit_count(),
                (core & available).bit_count(),
                place.socket,
                place.core,
                cpu,
            )

        return sorted(numbers(available), key=key)


def bits_of(sets: Iterable[Bits]) -> Bits:
    """The set of all these numbers."""
    found = 0
    for one in sets:
        found |= one
    return found


def _sets(nodes: list[int], size: int) -> Iterable[Sequence[int]]:
    """Sets of that many NUMA nodes; if there would be too many, only neighbours."""
    if len(nodes) <= _FEW_NODES:
        return combinations(nodes, size)
    return (nodes[first : first + size] for first in range(len(nodes) - size + 1))
