"""KAI's topologies: levels of node labels, and the domains that the labels' values make.

A `Topology` object names labels from the widest to the narrowest. A domain is a path of values from the top,
so that rack "1" of one zone is not rack "1" of another. A node that lacks any of the labels is in no domain
of that topology at all. Built by `domains.py`, read by the topology plugin.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.nodes import MISSING, NodeFacts
from maniple.objects.kai import Topology

OUTSIDE = -1
Numbers = NDArray[np.int32]
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class KaiTopology:
    """One topology. Domains are numbered level by level, inside a level by their path of values."""

    name: str
    levels: list[str]  # node labels, the widest first
    paths: list[Path]  # per domain, the values of the labels from the top
    level: Numbers  # per domain, its place in `levels`
    parent: Numbers  # per domain; -1 at the widest level
    domain_of: Numbers  # levels x nodes; -1 for a node outside

    def __len__(self) -> int:
        return len(self.paths)

    def id(self, domain: int) -> str:
        """The domain's name in messages: the values from the top, with dots between them."""
        return ".".join(self.paths[domain])

    def nodes(self, domain: int) -> NDArray[np.intp]:
        return np.flatnonzero(self.domain_of[self.level[domain]] == domain)

    def children(self, domain: int) -> list[int]:
        return [int(child) for child in np.flatnonzero(self.parent == domain)]


def topology_of(item: Topology, facts: NodeFacts) -> KaiTopology:
    """The domains of a topology over these nodes."""
    levels = [level.node_label for level in item.spec.levels]
    columns = [facts.label(key) for key in levels]
    inside = np.full(len(facts), bool(levels), dtype=np.bool_)
    for column in columns:
        inside &= column.codes != MISSING
    rows = np.flatnonzero(inside).tolist()
    full = {row: tuple(column.values[column.codes[row]] for column in columns) for row in rows}
    paths = sorted(
        {path[:depth] for path in full.values() for depth in range(1, len(levels) + 1)},
        key=lambda path: (len(path), path),
    )
    numbers = {path: number for number, path in enumerate(paths)}
    domain_of = np.full((len(levels), len(facts)), OUTSIDE, dtype=np.int32)
    for row, path in full.items():
        domain_of[:, row] = [numbers[path[: depth + 1]] for depth in range(len(levels))]
    domain_of.setflags(write=False)
    return KaiTopology(
        name=item.metadata.name,
        levels=levels,
        paths=paths,
        level=_fixed([len(path) - 1 for path in paths]),
        parent=_fixed([numbers.get(path[:-1], OUTSIDE) for path in paths]),
        domain_of=domain_of,
    )


def _fixed(values: list[int]) -> Numbers:
    array = np.array(values, dtype=np.int32)
    array.setflags(write=False)
    return array
