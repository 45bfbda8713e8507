"""Domains: the network topology as one tree of node sets, from HyperNodes, and KAI's topologies beside it.

`Cluster` hands HyperNode and Topology objects to `DomainSources`; a snapshot takes from it the `DomainTree`
over the session's nodes. The tree holds only what can be relied on. A HyperNode that two others claim, or
that is part of a cycle, is left out together with everything below it, is named in `broken`, and is reported
to the user in `problems`; the HyperNodes that claim it stay, without its nodes. A part of a domain is still
inside that domain, so whatever is placed by the rest of the tree is placed correctly.

The same objects give the same tree, in whichever order they came.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.levels import KaiTopology, topology_of
from maniple.cluster.nodes import MISSING, LabelColumn, NodeFacts
from maniple.cluster.patterns import compile_pattern
from maniple.objects.kai import Topology
from maniple.objects.load import Problem
from maniple.objects.meta import LabelSelector, Object, Requirement
from maniple.objects.volcano import HyperNode, HyperNodeMember

ROOT_NAME = "<cluster-top-hypernode>"
ROOT = 0
NONE = -1

Kept = TypeVar("Kept")
Numbers = NDArray[np.int64]
NodeRows = NDArray[np.intp]
NodeMask = NDArray[np.bool_]
Children = dict[
    str, dict[str, int]
]  # HyperNode -> the HyperNodes that it names, with the number of the member


@dataclass(frozen=True, slots=True, eq=False)
class DomainTree:
    """Sound HyperNodes in rows: the root, which holds every node, then the rest by tier and name."""

    names: list[str]
    index: dict[str, int]
    tier: Numbers  # the lower, the closer together
    parent: Numbers  # -1 for the root
    members: NodeMask  # domains x nodes, nodes by name
    # Per node, the HyperNode of the lowest tier that holds it (of several the first by name); -1 for none
    leaf_of: Numbers
    # Also of broken HyperNodes: a constraint must not lapse because its domain is broken
    tier_names: dict[str, int]
    kai: dict[str, KaiTopology]
    problems: list[Problem]
    broken: frozenset[str]
    child_rows: list[list[int]]

    def __len__(self) -> int:
        return len(self.names)

    def children(self, row: int) -> list[int]:
        return self.child_rows[row]

    def nodes(self, row: int) -> NodeRows:
        return np.flatnonzero(self.members[row])

    def ancestors(self, row: int) -> list[int]:
        """The row itself, its parent and so on up to the root; nothing for -1."""
        found = []
        while row >= 0:
            found.append(row)
            row = int(self.parent[row])
        return found

    def lowest_common(self, a: int, b: int) -> int:
        """The narrowest domain above both (or one of them).

        A node that is in no HyperNode (-1) has only the root above it.
        """
        above = set(self.ancestors(a))
        return next((row for row in self.ancestors(b) if row in above), ROOT)


class DomainSources:
    """The objects that make the tree, and the tree as last made."""

    def __init__(self) -> None:
        self._hyper_nodes: dict[str, HyperNode] = {}
        self._topologies: dict[str, Topology] = {}
        self._facts: NodeFacts | None = None
        self._tree: DomainTree | None = None
        self._patterns = _PatternMemory()

    def note(self, item: Object, *, gone: bool) -> bool:
        """Take in a change; False when the object is neither a HyperNode nor a Topology."""
        name = item.metadata.name
        if isinstance(item, HyperNode):
            _keep(self._hyper_nodes, name, item, gone)
        elif isinstance(item, Topology):
            _keep(self._topologies, name, item, gone)
        else:
            return False
        self._tree = None
        return True

    def tree(self, facts: NodeFacts) -> DomainTree:
        """The tree over these nodes; the same object as long as neither they nor the sources changed."""
        if self._tree is None or self._facts is not facts:
            self._patterns.use(facts.names)
            kai = {name: topology_of(self._topologies[name], facts) for name in sorted(self._topologies)}
            self._tree = _Builder(self._hyper_nodes, facts, self._patterns).tree(kai)
            self._facts = facts
        return self._tree


class _PatternMemory:
    """Nodes by pattern, remembered as long as the names of the nodes stay: they change less often than the nodes do."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._found: dict[str, NodeRows] = {}

    def use(self, names: list[str]) -> None:
        if names != self._names:
            self._names = list(names)
            self._found.clear()

    def nodes(self, pattern: str) -> NodeRows:
        found = self._found.get(pattern)
        if found is None:
            matches = compile_pattern(pattern)
            rows = [row for row, name in enumerate(self._names) if matches(name)]
            found = self._found[pattern] = np.array(rows, dtype=np.intp)
        return found


class _Builder:
    """One making of the tree."""

    def __init__(
        self, hyper_nodes: Mapping[str, HyperNode], facts: NodeFacts, patterns: _PatternMemory
    ) -> None:
        self._hyper_nodes = {name: hyper_nodes[name] for name in sorted(hyper_nodes)}
        self._facts = facts
        self._patterns = patterns
        self._problems: list[Problem] = []
        self._own: dict[str, NodeMask] = {}  # nodes that a HyperNode names itself
        self._children: Children = {}

    def tree(self, kai: dict[str, KaiTopology]) -> DomainTree:
        for name, item in self._hyper_nodes.items():
            self._read(name, item)
        if ROOT_NAME in self._hyper_nodes:
            self._complain(ROOT_NAME, "metadata.name", "this name is the root's")
        tier_names = self._tier_names()
        parents = self._single_parents()
        wrong = {name for name in self._children if name not in parents} | set(self._cycles(parents))
        broken = self._below(wrong)
        sound = [name for name in self._hyper_nodes if name not in broken]
        self._check_tiers(sound, parents)
        return self._assembled(sound, parents, tier_names, frozenset(broken), kai)

    # -- members --------------------------------------------------------------------------------------------------

    def _read(self, name: str, item: HyperNode) -> None:
        own = self._own[name] = np.zeros(len(self._facts), dtype=np.bool_)
        children = self._children[name] = {}
        for number, member in enumerate(item.spec.members):
            try:
                if member.type == "Node":
                    own |= self._nodes_of(member)
                else:
                    children.setdefault(self._child_of(member), number)
            except ValueError as error:
                self._complain(name, f"spec.members[{number}]", str(error))

    def _child_of(self, member: HyperNodeMember) -> str:
        exact = member.selector.exact_match
        if exact is None:
            raise ValueError("a member of type HyperNode can be chosen by exactMatch only")
        if exact.name not in self._hyper_nodes:
            raise ValueError(f"there is no HyperNode {exact.name!r}")
        return exact.name

    def _nodes_of(self, member: HyperNodeMember) -> NodeMask:
        selector = member.selector
        chosen = np.zeros(len(self._facts), dtype=np.bool_)
        if selector.exact_match is not None:
            row = self._facts.index.get(selector.exact_match.name)
            if row is None:
                raise ValueError(f"there is no node {selector.exact_match.name!r}")
            chosen[row] = True
        if selector.regex_match is not None:
            chosen[self._patterns.nodes(selector.regex_match.pattern)] = True
        if selector.label_match is not None:
            chosen |= _labelled(self._facts, selector.label_match)
        return chosen

    # -- what is wrong --------------------------------------------------------------------------------------------

    def _complain(self, name: str, field: str, message: str) -> None:
        self._problems.append(Problem(f"HyperNode {name}", field, message))

    def _single_parents(self) -> dict[str, str]:
        """The parent of every HyperNode, or the root; those that several claim are reported and left out."""
        claimants: dict[str, list[str]] = {name: [] for name in self._hyper_nodes}
        for parent, children in self._children.items():
            for child in children:
                claimants[child].append(parent)
        for child, several in claimants.items():
            for parent in several[1:]:
                field = f"spec.members[{self._children[parent][child]}]"
                self._complain(parent, field, f"HyperNode {child!r} is already a member of {several[0]!r}")
        return {
            child: several[0] if several else ROOT_NAME
            for child, several in claimants.items()
            if len(several) < 2 and child != ROOT_NAME
        }

    def _cycles(self, parents: Mapping[str, str]) -> Iterator[str]:
        """HyperNodes that lie above themselves. Each has one parent here, so walking up is enough."""
        settled: set[str] = set()
        for start in parents:
            walk: dict[str, None] = {}
            name = start
            while name in parents and name not in settled and name not in walk:
                walk[name] = None
                name = parents[name]
            settled |= walk.keys()
            if name not in walk:
                continue
            circle = list(walk)[list(walk).index(name) :]
            told = " -> ".join(reversed([*circle, name]))
            for child in circle:
                yield child
                parent = parents[child]
                self._complain(parent, f"spec.members[{self._children[parent][child]}]", f"cycle: {told}")

    def _below(self, names: set[str]) -> set[str]:
        """The names and all that hangs on them."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self._children[name]
        return found

    def _check_tiers(self, sound: list[str], parents: Mapping[str, str]) -> None:
        for child in sound:
            parent = parents[child]
            if parent != ROOT_NAME and self._tier(child) >= self._tier(parent):
                field = f"spec.members[{self._children[parent][child]}]"
                lower, upper = self._tier(child), self._tier(parent)
                message = f"tier {lower} of HyperNode {child!r} is not below this one's {upper}"
                self._complain(parent, field, message)

    def _tier_names(self) -> dict[str, int]:
        """Tiers by name. A name that two tiers use means the lower one: the narrower promise."""
        found: dict[str, int] = {}
        for name in sorted(self._hyper_nodes, key=lambda name: (self._tier(name), name)):
            tier_name, tier = self._hyper_nodes[name].spec.tier_name, self._tier(name)
            if tier_name and found.setdefault(tier_name, tier) != tier:
                self._complain(name, "spec.tierName", f"{tier_name!r} is the name of tier {found[tier_name]}")
        return found

    def _tier(self, name: str) -> int:
        return self._hyper_nodes[name].spec.tier

    # -- the tree -------------------------------------------------------------------------------------------------

    def _assembled(
        self,
        sound: list[str],
        parents: Mapping[str, str],
        tier_names: dict[str, int],
        broken: frozenset[str],
        kai: dict[str, KaiTopology],
    ) -> DomainTree:
        # The root stands above broken HyperNodes too: otherwise it would slip under a limit that was meant for them.
        top = max((self._tier(name) for name in self._hyper_nodes), default=0) + 1
        names = [ROOT_NAME, *sorted(sound, key=lambda name: (self._tier(name), name))]
        index = {name: row for row, name in enumerate(names)}
        parent = [NONE, *(index[parents[name]] for name in names[1:])]
        children: list[list[int]] = [[] for _ in names]
        for row, above in enumerate(parent[1:], start=1):
            children[above].append(row)
        members = self._members(names, parent, children)
        return DomainTree(
            names=names,
            index=index,
            tier=_fixed([top, *(self._tier(name) for name in names[1:])]),
            parent=_fixed(parent),
            members=members,
            leaf_of=_leaves(members),
            tier_names=tier_names,
            kai=kai,
            problems=sorted(self._problems, key=lambda problem: problem.object),
            broken=broken,
            child_rows=children,
        )

    def _members(self, names: list[str], parent: list[int], children: list[list[int]]) -> NodeMask:
        members = np.ones((len(names), len(self._facts)), dtype=np.bool_)
        for row, name in enumerate(names[1:], start=1):
            members[row] = self._own[name]
        downwards = [ROOT]
        for row in downwards:
            downwards += children[row]
        for row in reversed(downwards[1:]):
            members[parent[row]] |= members[row]
        members.setflags(write=False)
        return members


def _leaves(members: NodeMask) -> Numbers:
    """Per node the first row below the root that holds it: rows stand in the order of tiers and names."""
    leaves = np.full(members.shape[1], NONE, dtype=np.int64)
    if len(members) > 1:
        held = members[1:].any(axis=0)
        leaves[held] = members[1:].argmax(axis=0)[held] + 1
    leaves.setflags(write=False)
    return leaves


def _labelled(facts: NodeFacts, selector: LabelSelector) -> NodeMask:
    """The nodes that a selector means. An empty one means none here, unlike in most places."""
    if not selector.match_labels and not selector.match_expressions:
        raise ValueError("an empty labelMatch chooses no node")
    chosen = np.ones(len(facts), dtype=np.bool_)
    for key, value in selector.match_labels.items():
        chosen &= _among(facts.label(key), (value,))
    for requirement in selector.match_expressions:
        chosen &= _satisfying(facts.label(requirement.key), requirement)
    return chosen


def _satisfying(column: LabelColumn, requirement: Requirement) -> NodeMask:
    """As `selectors.requirement_matches`, for all nodes at once. `load` has let no other operator through."""
    match requirement.operator:
        case "In":
            return _among(column, requirement.values)
        case "NotIn":
            return ~_among(column, requirement.values)
        case "Exists":
            return np.not_equal(column.codes, MISSING)
        case _:
            return np.equal(column.codes, MISSING)


def _among(column: LabelColumn, values: tuple[str, ...]) -> NodeMask:
    return np.isin(column.codes, [column.code(value) for value in values])


def _keep(kept: dict[str, Kept], name: str, item: Kept, gone: bool) -> None:
    if gone:
        kept.pop(name, None)
    else:
        kept[name] = item


def _fixed(values: list[int]) -> Numbers:
    array = np.array(values, dtype=np.int64)
    array.setflags(write=False)
    return array
