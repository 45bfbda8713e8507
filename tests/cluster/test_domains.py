"""The domain tree: what HyperNodes and topologies make of the nodes, and what is left when some of them are wrong."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.cluster import snapshot
from maniple.cluster.domains import ROOT, ROOT_NAME, DomainTree
from maniple.objects.meta import Object
from maniple.objects.selectors import matches
from maniple.objects.volcano import HyperNode
from tests.support import cluster_of, hyper_node, node, topology


def by_name(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def by_pattern(pattern: str, kind: str = "Node") -> dict[str, Any]:
    return {"type": kind, "selector": {"regexMatch": {"pattern": pattern}}}


def by_label(**selector: Any) -> dict[str, Any]:
    return {"type": "Node", "selector": {"labelMatch": selector}}


def tree_of(*objects: Object) -> DomainTree:
    return snapshot.take(cluster_of(*objects)).domains


def held(tree: DomainTree, name: str) -> list[int]:
    return [int(row) for row in tree.nodes(tree.index[name])]


def said(tree: DomainTree) -> list[tuple[str, str]]:
    return [(problem.object, problem.field) for problem in tree.problems]


NODES = [node(f"n{i}", labels={"rack": f"r{i // 2}", "zone": "a" if i < 4 else "b"}) for i in range(6)]
RACKS = [hyper_node(f"r{i}", 1, by_label(matchLabels={"rack": f"r{i}"}), tier_name="rack") for i in range(3)]
SPINES = [
    hyper_node("s0", 2, by_name("HyperNode", "r0"), by_name("HyperNode", "r1")),
    hyper_node("s1", 2, by_name("HyperNode", "r2")),
]


class TestSoundTree:
    def test_without_hyper_nodes_only_the_root_is_left_at_tier_1(self) -> None:
        tree = tree_of(*NODES)
        assert tree.names == [ROOT_NAME]
        assert tree.tier.tolist() == [1]
        assert tree.parent.tolist() == [-1]
        assert tree.leaf_of.tolist() == [-1] * 6
        assert held(tree, ROOT_NAME) == [0, 1, 2, 3, 4, 5]

    def test_rows_stand_by_tier_and_name_below_the_root(self) -> None:
        tree = tree_of(*reversed(SPINES), *NODES, *reversed(RACKS))
        assert tree.names == [ROOT_NAME, "r0", "r1", "r2", "s0", "s1"]
        assert tree.tier.tolist() == [3, 1, 1, 1, 2, 2]
        assert tree.parent.tolist() == [-1, 4, 4, 5, 0, 0]
        assert tree.children(ROOT) == [4, 5]
        assert tree.children(4) == [1, 2]
        assert not tree.problems
        assert not tree.broken

    def test_a_domain_holds_the_nodes_of_all_below_it(self) -> None:
        tree = tree_of(*NODES, *RACKS, *SPINES)
        assert held(tree, "r1") == [2, 3]
        assert held(tree, "s0") == [0, 1, 2, 3]
        assert tree.leaf_of.tolist() == [1, 1, 2, 2, 3, 3]

    def test_own_nodes_and_child_domains_add_up(self) -> None:
        mixed = hyper_node("mixed", 2, by_name("Node", "n5"), by_name("HyperNode", "r0"))
        tree = tree_of(*NODES, RACKS[0], mixed)
        assert held(tree, "mixed") == [0, 1, 5]
        assert tree.names[tree.leaf_of[5]] == "mixed"
        assert tree.leaf_of[4] == -1

    def test_the_lowest_common_domain(self) -> None:
        tree = tree_of(*NODES, *RACKS, *SPINES)
        row = tree.index
        assert tree.lowest_common(row["r0"], row["r1"]) == row["s0"]
        assert tree.lowest_common(row["r0"], row["r2"]) == ROOT
        assert tree.lowest_common(row["r0"], row["s0"]) == row["s0"]
        assert tree.lowest_common(row["r0"], row["r0"]) == row["r0"]
        assert tree.lowest_common(-1, row["r0"]) == ROOT
        assert tree.ancestors(row["r0"]) == [row["r0"], row["s0"], ROOT]
        assert tree.ancestors(-1) == []

    def test_names_of_tiers(self) -> None:
        assert tree_of(*NODES, *RACKS, *SPINES).tier_names == {"rack": 1}

    def test_the_tree_is_made_again_only_when_something_changed(self) -> None:
        cluster = cluster_of(*NODES, *RACKS)
        first = snapshot.take(cluster).domains
        assert snapshot.take(cluster).domains is first
        cluster.apply(SPINES[0])
        second = snapshot.take(cluster).domains
        assert "s0" in second.index
        cluster.apply(node("n0", labels={"rack": "r2"}))
        third = snapshot.take(cluster).domains
        assert held(third, "r0") == [1]
        cluster.delete(SPINES[0])
        assert "s0" not in snapshot.take(cluster).domains.index

    def test_nobody_can_write_into_the_tree(self) -> None:
        tree = tree_of(*NODES, *RACKS)
        for array in (tree.tier, tree.parent, tree.members, tree.leaf_of):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


class TestMembers:
    @pytest.mark.parametrize(
        ("pattern", "expected"),
        [("n[0-2]", [0, 1, 2]), ("^1$", []), ("1$", [1]), ("", [0, 1, 2, 3, 4, 5]), ("n(0|5)", [0, 5])],
    )
    def test_a_pattern_is_searched_for_and_anchors_itself(self, pattern: str, expected: list[int]) -> None:
        assert held(tree_of(*NODES, hyper_node("h", 1, by_pattern(pattern))), "h") == expected

    @pytest.mark.parametrize(
        ("selector", "expected"),
        [
            ({"matchLabels": {"rack": "r1", "zone": "a"}}, [2, 3]),
            ({"matchLabels": {"rack": "nowhere"}}, []),
            ({"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r0", "r2"]}]}, [0, 1, 4, 5]),
            ({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}, [4, 5]),
            (
                {"matchExpressions": [{"key": "gone", "operator": "NotIn", "values": ["a"]}]},
                [0, 1, 2, 3, 4, 5],
            ),
            ({"matchExpressions": [{"key": "gone", "operator": "Exists"}]}, []),
            ({"matchExpressions": [{"key": "gone", "operator": "DoesNotExist"}]}, [0, 1, 2, 3, 4, 5]),
        ],
    )
    def test_labels(self, selector: dict[str, Any], expected: list[int]) -> None:
        tree = tree_of(*NODES, hyper_node("h", 1, by_label(**selector)))
        assert held(tree, "h") == expected
        assert not tree.problems

    def test_an_empty_label_selector_chooses_no_node_and_is_told(self) -> None:
        tree = tree_of(*NODES, hyper_node("h", 1, by_label()))
        assert held(tree, "h") == []
        assert said(tree) == [("HyperNode h", "spec.members[0]")]

    @pytest.mark.parametrize(
        "member",
        [
            by_name("Node", "n9"),
            by_name("HyperNode", "nobody"),
            by_pattern("n[0-"),
            by_pattern("(?=n)"),
            by_pattern("r.*", "HyperNode"),
        ],
    )
    def test_a_wrong_member_is_told_and_the_others_stay(self, member: dict[str, Any]) -> None:
        tree = tree_of(
            *NODES, *RACKS, hyper_node("h", 2, by_name("Node", "n1"), member, by_name("Node", "n4"))
        )
        assert said(tree) == [("HyperNode h", "spec.members[1]")]
        assert held(tree, "h") == [1, 4]
        assert not tree.broken


class TestBrokenTree:
    def test_a_child_of_two_is_left_out_with_all_below_it(self) -> None:
        deep = hyper_node("s0", 2, by_name("HyperNode", "r0"), by_name("HyperNode", "r1"))
        first = hyper_node("x", 3, by_name("HyperNode", "s0"), by_name("HyperNode", "s1"))
        second = hyper_node("y", 3, by_name("Node", "n0"), by_name("HyperNode", "s0"))
        tree = tree_of(*NODES, *RACKS, deep, SPINES[1], first, second)
        assert said(tree) == [("HyperNode y", "spec.members[1]")]
        assert "'s0' is already a member of 'x'" in tree.problems[0].message
        assert tree.broken == {"s0", "r0", "r1"}
        assert tree.names == [ROOT_NAME, "r2", "s1", "x", "y"]
        assert held(tree, "x") == [4, 5]
        assert held(tree, "y") == [0]

    def test_a_cycle_is_left_out_with_all_that_hangs_on_it(self) -> None:
        a = hyper_node("a", 2, by_name("HyperNode", "b"))
        b = hyper_node("b", 3, by_name("Node", "n0"), by_name("HyperNode", "a"), by_name("HyperNode", "r2"))
        tree = tree_of(*NODES, *RACKS, a, b)
        assert said(tree) == [("HyperNode a", "spec.members[0]"), ("HyperNode b", "spec.members[1]")]
        assert tree.problems[0].message == "cycle: a -> b -> a"
        assert tree.broken == {"a", "b", "r2"}
        assert tree.names == [ROOT_NAME, "r0", "r1"]

    def test_a_hyper_node_inside_itself(self) -> None:
        tree = tree_of(*NODES, hyper_node("a", 2, by_name("HyperNode", "a")))
        assert said(tree) == [("HyperNode a", "spec.members[0]")]
        assert tree.broken == {"a"}

    def test_the_root_stays_above_broken_tiers(self) -> None:
        # Else a job that may use tier 9 could spread over the whole cluster while its HyperNode is broken.
        tree = tree_of(*NODES, *RACKS, hyper_node("a", 9, by_name("HyperNode", "a"), tier_name="hall"))
        assert tree.tier[ROOT] == 10
        assert tree.tier_names == {"rack": 1, "hall": 9}

    def test_a_child_must_be_of_a_lower_tier_than_its_parent(self) -> None:
        tree = tree_of(*NODES, RACKS[0], hyper_node("s", 1, by_name("HyperNode", "r0")))
        assert said(tree) == [("HyperNode s", "spec.members[0]")]
        assert held(tree, "s") == [0, 1]

    def test_a_tier_name_used_for_two_tiers_means_the_narrower(self) -> None:
        tree = tree_of(*NODES, *RACKS, hyper_node("a", 4, tier_name="rack"))
        assert tree.tier_names == {"rack": 1}
        assert said(tree) == [("HyperNode a", "spec.tierName")]

    def test_the_roots_name_is_taken(self) -> None:
        tree = tree_of(*NODES, *RACKS, hyper_node(ROOT_NAME, 4, by_name("HyperNode", "r0")))
        assert tree.names == [ROOT_NAME, "r1", "r2"]
        assert tree.broken == {ROOT_NAME, "r0"}
        assert said(tree) == [(f"HyperNode {ROOT_NAME}", "metadata.name")]

    def test_mending_the_object_mends_the_tree(self) -> None:
        cluster = cluster_of(*NODES, *RACKS, *SPINES, hyper_node("t", 2, by_name("HyperNode", "r0")))
        assert snapshot.take(cluster).domains.broken == {"r0"}
        cluster.apply(hyper_node("t", 2))
        tree = snapshot.take(cluster).domains
        assert not tree.broken
        assert not tree.problems


# -- against a plain reading of the rules --------------------------------------------------------------------------

HYPER_NAMES = [f"h{i}" for i in range(6)]
MEMBERS = st.one_of(
    st.sampled_from([f"n{i}" for i in range(7)]).map(lambda name: by_name("Node", name)),
    st.sampled_from(["n[0-2]", "4", "^n5$", "x"]).map(by_pattern),
    st.sampled_from([{"matchLabels": {"rack": "r1"}}, {"matchLabels": {"zone": "b"}}]).map(
        lambda selector: by_label(**selector)
    ),
    st.sampled_from(HYPER_NAMES).map(lambda name: by_name("HyperNode", name)),
)


@st.composite
def hyper_nodes(draw: st.DrawFn) -> list[Object]:
    names = draw(st.lists(st.sampled_from(HYPER_NAMES), unique=True))
    return [hyper_node(name, draw(st.integers(1, 3)), *draw(st.lists(MEMBERS, max_size=4))) for name in names]


def plain_nodes(item: HyperNode, sound: dict[str, HyperNode]) -> set[str]:
    found = set()
    for member in item.spec.members:
        exact, pattern, labels = (
            member.selector.exact_match,
            member.selector.regex_match,
            member.selector.label_match,
        )
        if member.type == "HyperNode":
            assert exact is not None
            if exact.name in sound:
                found |= plain_nodes(sound[exact.name], sound)
            continue
        for one in NODES:
            name = one.metadata.name
            by_regex = pattern is not None and re.search(pattern.pattern, name) is not None
            if (exact and exact.name == name) or by_regex or matches(labels, one.metadata.labels):
                found.add(name)
    return found


def plain_broken(items: dict[str, HyperNode]) -> set[str]:
    children = {
        name: {exact["exactMatch"]["name"] for exact in _exact(item)} & set(items)
        for name, item in items.items()
    }

    def below(name: str) -> set[str]:
        found: set[str] = set()
        waiting = [*children[name]]
        while waiting:
            child = waiting.pop()
            if child not in found:
                found.add(child)
                waiting += children[child]
        return found

    wrong = {
        name for name in items if name in below(name) or sum(name in named for named in children.values()) > 1
    }
    return wrong.union(*(below(name) for name in wrong))


@given(hyper_nodes(), st.randoms(use_true_random=False))
def test_the_tree_is_what_the_rules_say_in_any_order(items: list[Any], shuffle: Any) -> None:
    tree = tree_of(*NODES, *items)
    by = {item.metadata.name: item for item in items}
    assert tree.broken == plain_broken(by)
    sound = {name: item for name, item in by.items() if name not in tree.broken}
    assert tree.names == [ROOT_NAME, *sorted(sound, key=lambda name: (sound[name].spec.tier, name))]
    for name, item in sound.items():
        assert {f"n{i}" for i in held(tree, name)} == plain_nodes(item, sound)
        parent = tree.names[tree.parent[tree.index[name]]]
        claimed = [p for p, i in sound.items() if by_name("HyperNode", name)["selector"] in _exact(i)]
        assert parent == (claimed[0] if claimed else ROOT_NAME)
    for row in range(6):
        holding = [d for d in range(1, len(tree)) if tree.members[d, row]]
        assert tree.leaf_of[row] == (min(holding) if holding else -1)
    assert bool(tree.broken) <= bool(tree.problems)

    shuffled = [*NODES, *items]
    shuffle.shuffle(shuffled)
    other = tree_of(*shuffled)
    assert (other.names, other.problems, other.broken) == (tree.names, tree.problems, tree.broken)
    assert np.array_equal(other.members, tree.members)


def _exact(item: HyperNode) -> list[dict[str, Any]]:
    return [
        {"exactMatch": {"name": m.selector.exact_match.name}}
        for m in item.spec.members
        if m.type == "HyperNode" and m.selector.exact_match is not None
    ]


class TestTopologies:
    LEVELED = [  # noqa: RUF012
        node("n0", labels={"zone": "b", "rack": "1"}),
        node("n1", labels={"zone": "a", "rack": "1"}),
        node("n2", labels={"zone": "a", "rack": "2"}),
        node("n3", labels={"zone": "a"}),
        node("n4", labels={"zone": "a", "rack": "1"}),
    ]

    def test_domains_are_paths_of_values(self) -> None:
        kai = tree_of(*self.LEVELED, topology("t", "zone", "rack")).kai["t"]
        assert kai.levels == ["zone", "rack"]
        assert [kai.id(domain) for domain in range(len(kai))] == ["a", "b", "a.1", "a.2", "b.1"]
        assert kai.level.tolist() == [0, 0, 1, 1, 1]
        assert kai.parent.tolist() == [-1, -1, 0, 0, 1]
        assert kai.children(0) == [2, 3]

    def test_a_node_that_lacks_a_label_is_outside_at_every_level(self) -> None:
        kai = tree_of(*self.LEVELED, topology("t", "zone", "rack")).kai["t"]
        assert kai.domain_of.tolist() == [[1, 0, 0, -1, 0], [4, 2, 3, -1, 2]]
        assert kai.nodes(0).tolist() == [1, 2, 4]
        assert kai.nodes(2).tolist() == [1, 4]

    def test_a_dot_in_a_value_makes_no_two_domains_one(self) -> None:
        dotted = [node("n0", labels={"z": "a.b", "r": "c"}), node("n1", labels={"z": "a", "r": "b.c"})]
        kai = tree_of(*dotted, topology("t", "z", "r")).kai["t"]
        assert len(set(kai.domain_of[1].tolist())) == 2

    def test_topologies_come_and_go(self) -> None:
        cluster = cluster_of(*self.LEVELED, topology("t", "zone"), topology("empty"))
        kai = snapshot.take(cluster).domains.kai
        assert list(kai) == ["empty", "t"]
        assert len(kai["empty"]) == 0
        cluster.delete(topology("t"))
        assert list(snapshot.take(cluster).domains.kai) == ["empty"]
