"""Nodes that are there and take no pods: uncordoned, or ready again. As few as are enough, by name."""

from collections.abc import Callable, Iterator
from itertools import combinations

import msgspec

from maniple.explaining.remedies.kinds.amounts import listed, plural
from maniple.explaining.remedies.search import Choice, Levels
from maniple.explaining.remedies.subject import Subject, setting
from maniple.explaining.remedies.values import Change, KindName
from maniple.objects.core import Node, Taint

_FEW = 5  # nodes of which every choice is tried
_MANY = 64
_NAMED = 5
_CORDON = "node.kubernetes.io/unschedulable"
_UNWELL = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def uncordoned(subject: Subject) -> Iterator[Choice]:
    """Nodes that are cordoned and otherwise well."""
    found = _suited(subject, lambda node: _is_cordoned(node) and not _is_unready(node))
    yield from _choices("cordoned nodes", found, "uncordoned")


def ready(subject: Subject) -> Iterator[Choice]:
    """Nodes that are not ready; those that are cordoned as well are uncordoned."""
    found = _suited(subject, _is_unready)
    yield from _choices("nodes not ready", found, "ready")


def uncordoned_each(subject: Subject) -> Iterator[Choice]:
    """The same as `uncordoned`, with a knob for each node, to be combined with other kinds of changes."""
    found = _suited(subject, lambda node: _is_cordoned(node) and not _is_unready(node))
    if found:
        yield _each("cordoned nodes", found, "uncordoned")


def ready_each(subject: Subject) -> Iterator[Choice]:
    found = _suited(subject, _is_unready)
    if found:
        yield _each("nodes not ready", found, "ready")


def well(node: Node) -> Node:
    """The node as it would be if it took pods: the same one if it does."""
    if not (_is_cordoned(node) or _is_unready(node)):
        return node
    conditions = tuple(
        msgspec.structs.replace(one, status="True") if one.type == "Ready" else one
        for one in node.status.conditions
    )
    spec = msgspec.structs.replace(node.spec, unschedulable=False, taints=_kept_taints(node))
    status = msgspec.structs.replace(node.status, conditions=conditions)
    return msgspec.structs.replace(node, spec=spec, status=status)


def _kept_taints(node: Node) -> tuple[Taint, ...]:
    """Without those that say that it takes no pods."""
    return tuple(one for one in node.spec.taints if one.key not in (_CORDON, *_UNWELL))


def _is_cordoned(node: Node) -> bool:
    return node.spec.unschedulable or any(one.key == _CORDON for one in node.spec.taints)


def _is_unready(node: Node) -> bool:
    stated = any(one.type == "Ready" and one.status != "True" for one in node.status.conditions)
    return stated or any(one.key in _UNWELL for one in node.spec.taints)


def _suited(subject: Subject, concerned: Callable[[Node], bool]) -> list[Node]:
    """Such nodes, those that would hold most of the job's pods first."""
    nodes = [node for node in subject.cluster.nodes.objects.values() if concerned(node)]
    nodes.sort(key=lambda node: (-_holds(subject, node), node.metadata.name))
    return nodes[:_MANY]


def _holds(subject: Subject, node: Node) -> int:
    """How many of the job's pods it would hold beside those that it has."""
    cluster, row = subject.cluster, subject.cluster.nodes.index_of(node.metadata.name)
    if row is None:
        return 0
    idle = (cluster.nodes.allocatable[:, row] - cluster.nodes.used[:, row]).tolist()
    free = dict(zip(cluster.resources.names, idle, strict=False))
    most = 0
    for kind in subject.kinds:
        wanted = cluster.resources.vector({**kind.requests, "pods": 1}).tolist()
        pairs = zip(cluster.resources.names, wanted, strict=False)
        rooms = [max(free.get(name, 0), 0) // amount for name, amount in pairs if amount > 0]
        most = max(most, min(rooms, default=0))
    return most


def _choices(kind: KindName, nodes: list[Node], state: str) -> Iterator[Choice]:
    if not nodes:
        return
    if len(nodes) <= _FEW:
        yield _subsets(kind, nodes, state)
        return

    def build(levels: Levels) -> tuple[Change, ...]:
        return _changes(nodes[: levels[0]])

    def words(levels: Levels) -> tuple[str, str]:
        return _words(nodes[: levels[0]], state)

    def refined(levels: Levels) -> Choice:
        return _each(kind, nodes[: levels[0]], state)

    yield Choice(kind, (len(nodes),), build, words, refined=refined)


def _subsets(kind: KindName, nodes: list[Node], state: str) -> Choice:
    """Every choice of a few nodes, the smallest first."""
    chosen = [list(some) for size in range(1, len(nodes) + 1) for some in combinations(nodes, size)]

    def build(levels: Levels) -> tuple[Change, ...]:
        return _changes(chosen[levels[0] - 1]) if levels[0] else ()

    def words(levels: Levels) -> tuple[str, str]:
        return _words(chosen[levels[0] - 1], state)

    return Choice(kind, (len(chosen),), build, words, in_order=True, top_includes_all=True)


def _each(kind: KindName, nodes: list[Node], state: str) -> Choice:
    """A knob for each node; those that hold least are the first to be left as they are."""
    turned = nodes[::-1]

    def chosen(levels: Levels) -> list[Node]:
        return [node for node, level in zip(turned, levels, strict=True) if level]

    def build(levels: Levels) -> tuple[Change, ...]:
        return _changes(chosen(levels))

    def words(levels: Levels) -> tuple[str, str]:
        return _words(chosen(levels), state)

    return Choice(kind, (1,) * len(turned), build, words)


def _words(nodes: list[Node], state: str) -> tuple[str, str]:
    names = [node.metadata.name for node in sorted(nodes, key=lambda one: one.metadata.name)]
    shown = names[:_NAMED] + ([f"{len(names) - _NAMED} more"] if len(names) > _NAMED else [])
    return plural(
        len(nodes), "node"
    ), f"With {'node' if len(nodes) == 1 else 'nodes'} {listed(shown)} {state}"


def _changes(nodes: list[Node]) -> tuple[Change, ...]:
    return tuple(change for node in nodes for change in _mended(node))


def _mended(node: Node) -> Iterator[Change]:
    if node.spec.unschedulable:
        yield setting(node, ("spec", "unschedulable"), True, None)
    for number, one in enumerate(node.status.conditions):
        if one.type == "Ready" and one.status != "True":
            yield setting(node, ("status", "conditions", number, "status"), one.status, "True")
    kept = _kept_taints(node)
    if kept != node.spec.taints:
        before, after = msgspec.to_builtins(node.spec.taints), msgspec.to_builtins(kept)
        yield setting(node, ("spec", "taints"), before, after or None)
