"""More nodes, like one that is there."""

from collections.abc import Callable, Iterator
from fractions import Fraction

import msgspec

from maniple.explaining.remedies.edits import HOST_NAME
from maniple.explaining.remedies.kinds.amounts import plural, written
from maniple.explaining.remedies.search import Choice, Levels
from maniple.explaining.remedies.subject import Subject, admits
from maniple.explaining.remedies.values import Change
from maniple.objects.core import Node, Pod
from maniple.objects.quantity import parse

_KINDS = 4  # kinds of nodes that are offered, the best first
_MORE = 4  # times as many as the job alone needs
_MOST = 512
OpenTo = Callable[[Pod, Node], bool]
_SHOWN = ("nvidia.com/gpu", "cpu", "memory")


def nodes(subject: Subject) -> Iterator[Choice]:
    """For each kind of node on which pods of the job fit: as many as it takes."""
    for node, most in _suitable(subject, open_to=admits)[:_KINDS]:
        yield _choice(subject, node, most)


def nodes_for_any(subject: Subject) -> Iterator[Choice]:
    """The same for pods whose selectors, tolerations and requests are changed, too: one pod a node will do."""
    found = _suitable(subject, open_to=lambda _, node: not node.spec.unschedulable, at_least=1)
    for node, most in found[:_KINDS]:
        yield _choice(subject, node, most)


def _choice(subject: Subject, node: Node, most: int) -> Choice:
    name, top = node.metadata.name, min(_MORE * most + 2 * _taken(subject, node), max(most, _MOST))

    def build(levels: Levels) -> tuple[Change, ...]:
        made = tuple(f"{name}-new-{number}" for number in range(levels[0]))
        return (Change(operation="create", kind="Node", objects=made, like=name),) if made else ()

    def words(levels: Levels) -> tuple[str, str]:
        amount = plural(levels[0], "node")
        return amount, f"With {plural(levels[0], 'more node')} like {name} ({_described(node)})"

    return Choice("nodes", (top,), build, words, guess=(most,))


def _taken(subject: Subject, node: Node) -> int:
    """How many such nodes the jobs ahead would fill."""
    offered = node.status.allocatable
    return max(
        (
            int(-(-amount // Fraction(parse(offered[name]))))
            for name, amount in subject.demand_ahead().items()
            if name in offered and parse(offered[name]) > 0
        ),
        default=0,
    )


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
    objects = subject.cluster.nodes.objects
    for row in sorted(objects, key=subject.cluster.nodes.keys.__getitem__):
        node = objects[row]
        kinds.setdefault(_likeness(node), node)
    found = [(node, count) for node in kinds.values() if (count := _count(subject, node, open_to, at_least))]
    return sorted(found, key=lambda one: (one[1], one[0].metadata.name))


def _likeness(node: Node) -> bytes:
    labels = {key: value for key, value in node.metadata.labels.items() if key != HOST_NAME}
    parts = (labels, node.status.allocatable, node.spec.taints, node.spec.unschedulable, _unready(node))
    return msgspec.json.encode(parts, order="sorted")


def _unready(node: Node) -> bool:
    return any(one.type == "Ready" and one.status != "True" for one in node.status.conditions)


def _count(subject: Subject, node: Node, open_to: OpenTo, at_least: int) -> int:
    """How many such nodes hold the pods that the job lacks, of every kind that fits; 0 if none does."""
    if _unready(node):
        return 0
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
