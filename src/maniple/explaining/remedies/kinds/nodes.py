"""More nodes, like one that is there, in the zone of the job's volumes."""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from math import ceil
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.explaining.remedies.edits import HOST_NAME
from maniple.explaining.remedies.kinds.amounts import listed, plural, written
from maniple.explaining.remedies.kinds.node_states import well
from maniple.explaining.remedies.search import Choice, Levels
from maniple.explaining.remedies.subject import Subject, admits
from maniple.explaining.remedies.values import Change
from maniple.objects.core import Node, Pod
from maniple.objects.quantity import parse
from maniple.objects.storage import PersistentVolume
from maniple.plugins.feasibility.volume_zone import ZONE_LABELS

_KINDS = 4  # kinds of nodes that are offered, the best first
_MORE = 4  # times as many as the job alone needs
_MOST = 512
_NONE: Mapping[str, str] = {}
OpenTo = Callable[[Pod, Node], bool]
_SHOWN = ("nvidia.com/gpu", "cpu", "memory")


def nodes(subject: Subject) -> Iterator[Choice]:
    """For each kind of node on which pods of the job fit: as many as it takes."""
    found = _suitable(subject, open_to=admits)[:_KINDS]
    for node, most in found:
        yield _choice(subject, node, most)
    labels = _labels_of_volumes(subject)
    for node, most in found:
        if any(node.metadata.labels.get(key) != value for key, value in labels.items()):
            yield _choice(subject, node, most, labels)


def nodes_for_any(subject: Subject) -> Iterator[Choice]:
    """The same for pods whose selectors, tolerations and requests are changed, too: one pod a node will do."""
    found = _suitable(subject, open_to=lambda _, __: True, at_least=1)
    for node, most in found[:_KINDS]:
        yield _choice(subject, node, most, _labels_of_volumes(subject))


def _choice(subject: Subject, node: Node, most: int, labels: Mapping[str, str] = _NONE) -> Choice:
    """`labels`: those that new nodes have instead of the node's own."""
    name, taken = node.metadata.name, _taken(subject, node)
    spread = subject.pods_ahead()  # a node for each: pods may be spread, and leave no node whole
    top = min(max(_MORE * most + 2 * taken, most + spread), max(most, _MOST))
    other = {key: value for key, value in labels.items() if node.metadata.labels.get(key) != value}
    after = _unlike(node, other)

    names = tuple(f"{name}-new-{number}" for number in range(top))

    def build(levels: Levels) -> tuple[Change, ...]:
        made = names[: levels[0]]
        return (
            (Change(operation="create", kind="Node", objects=made, like=name, after=after),) if made else ()
        )

    def words(levels: Levels) -> tuple[str, str]:
        amount = plural(levels[0], "node")
        where = f" in {listed(f'{key}={value}' for key, value in other.items())}" if other else ""
        return amount, f"With {plural(levels[0], 'more node')} like {name} ({_described(node)}){where}"

    def enough(filled: Mapping[str, float]) -> tuple[int, ...]:
        """As many as pods take together, and as many as have any: pods may be spread."""
        parts = [part for one in names if (part := filled.get(one, 0.0))]
        return ceil(round(sum(parts), 6)), len(parts)

    others = {taken, max(taken, spread)} | ({0} if _all_larger(subject, node, most) else set())
    sums = sorted({min(most + other, top) for other in others})
    guesses = tuple((one,) for one in sums)
    alone = (most,), (min(ceil(most / subject.queue_part), top),)
    return Choice("nodes", (top,), build, words, guesses=guesses, alone=alone, enough=enough)


def _unlike(node: Node, labels: Mapping[str, str]) -> dict[str, Any] | None:
    """The fields in which a new node differs from this one: it is ready, and not cordoned."""
    found: dict[str, Any] = {"metadata": {"labels": dict(labels)}} if labels else {}
    fresh = well(node)
    if fresh is not node:
        taints, conditions = msgspec.to_builtins((fresh.spec.taints, fresh.status.conditions))
        found |= {"spec": {"unschedulable": False, "taints": taints}, "status": {"conditions": conditions}}
    return found or None


def _labels_of_volumes(subject: Subject) -> dict[str, str]:
    """The zone, or other labels, that nodes need which can reach the volumes of the job's pods."""
    storage, found = subject.cluster.storage, dict[str, str]()
    for kind in subject.kinds:
        for _, _, claim in storage.claims_of(kind.sample):
            volume = storage.volumes.get(claim.spec.volume_name) if claim is not None else None
            if volume is not None:
                found |= {key: value for key, value in _reached_from(volume) if key != HOST_NAME}
    return found


def _reached_from(volume: PersistentVolume) -> Iterator[tuple[str, str]]:
    """By its labels, where several zones are separated like this, and its node affinity: the first of each."""
    for key, values in volume.metadata.labels.items():
        if key in ZONE_LABELS:
            yield key, values.partition("__")[0]
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    for term in required.node_selector_terms[:1] if required is not None else ():
        for one in term.match_expressions:
            if one.operator == "In" and one.values:
                yield one.key, one.values[0]


def _taken(subject: Subject, node: Node) -> int:
    """How many such nodes the jobs ahead would fill."""
    return ceil(float(_filled(subject, node, subject.demands_ahead.sum(axis=1, keepdims=True))[0]))


def _all_larger(subject: Subject, node: Node, count: int) -> bool:
    """Whether every job ahead needs more than so many nodes, and so may leave them alone."""
    return bool((_filled(subject, node, subject.demands_ahead) > count).all())


def _filled(subject: Subject, node: Node, demands: Amounts) -> NDArray[np.float64]:
    """How many such nodes each of some demands, in columns, would fill."""
    table = subject.cluster.nodes
    offered = table.allocatable[:, table.index_of(node.metadata.name), None]
    parts = np.where(offered > 0, demands / np.maximum(offered, 1), 0.0)
    return np.asarray(parts.max(axis=0, initial=0.0))


def _described(node: Node) -> str:
    offered = node.status.allocatable
    return ", ".join(
        f"{written(resource, parse(offered[resource]))} {resource}"
        for resource in _SHOWN
        if resource in offered
    )


def _suitable(subject: Subject, open_to: OpenTo, at_least: int = 0) -> list[tuple[Node, int]]:
    """A node of each kind that fits, and how many empty ones the job needs; those that take fewest first."""
    kinds: dict[bytes, Node] = {}
    nodes = subject.cluster.nodes.objects.values()
    for node in sorted(nodes, key=lambda one: (well(one) is not one, one.metadata.name)):
        kinds.setdefault(likeness(well(node)), node)
    found = [(node, count) for node in kinds.values() if (count := _count(subject, node, open_to, at_least))]
    return sorted(found, key=lambda one: (one[1], one[0].metadata.name))


def likeness(node: Node) -> bytes:
    """Equal for nodes that differ in nothing that matters to pods but their names."""
    labels = {key: value for key, value in node.metadata.labels.items() if key != HOST_NAME}
    parts = (labels, node.status.allocatable, node.spec.taints)
    return msgspec.json.encode(parts, order="sorted")


def _count(subject: Subject, node: Node, open_to: OpenTo, at_least: int) -> int:
    """How many such nodes hold the pods that the job lacks, of every kind that fits; 0 if none does."""
    node = well(node)
    offered = {name: Fraction(parse(amount)) for name, amount in node.status.allocatable.items()}
    lacking, nodes_needed = subject.needed, 0
    for kind in subject.kinds:
        if lacking <= 0 or not open_to(kind.sample, node):
            continue
        on_one = min(
            (int(offered.get(name, Fraction(0)) // amount) for name, amount in kind.requests.items()),
            default=1,
        )
        on_one = max(on_one, at_least)
        if on_one:
            count = min(len(kind.pods), lacking)
            nodes_needed += -(-count // min(on_one, int(offered.get("pods", Fraction(110)))))
            lacking -= count
    return nodes_needed
