"""Sums over domains: one pass over all nodes of all domains, and what else is asked of a tree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.cluster import snapshot
from maniple.cluster.changes import ChangeLog
from maniple.cluster.domain_sums import DomainSums, KeptSums, sums_of
from maniple.cluster.domains import NONE, ROOT
from maniple.objects.meta import Object
from tests.networks import four_racks, nodes, rack, spine, two_racks
from tests.support import cluster_of


def sums_over(*objects: Object) -> DomainSums:
    return DomainSums(snapshot.take(cluster_of(*objects)).domains)


def named(places: DomainSums, *names: str) -> list[int]:
    return [places.tree.index[name] for name in names]


@given(st.lists(st.sets(st.integers(0, 5)), max_size=5), st.lists(st.integers(-9, 9), min_size=6, max_size=6))
def test_a_sum_is_that_over_the_nodes_of_the_domain(members: list[set[int]], values: list[int]) -> None:
    """Domains may be empty, and may share nodes."""
    racks = [rack(f"r{i}", *(f"n{node}" for node in held)) for i, held in enumerate(members)]
    places = sums_over(*nodes(*(f"n{i}" for i in range(6))), *racks)
    amounts = np.array([values, values[::-1]], dtype=np.int64)
    for domain in range(len(places.tree)):
        expected = amounts[:, places.tree.members[domain]].sum(axis=1).tolist()
        assert places.over(amounts)[:, domain].tolist() == expected
        assert places.over(amounts[0])[domain] == expected[0]


def test_a_cluster_without_nodes_sums_to_nothing() -> None:
    places = sums_over(rack("r", "gone"))
    assert places.over(np.zeros(0, dtype=np.int64)).tolist() == [0, 0]


def test_what_is_below_a_domain() -> None:
    places = sums_over(*four_racks())
    assert places.below(ROOT).tolist() == list(range(len(places.tree)))
    (spine_row,) = named(places, "s")
    assert sorted(places.below(spine_row).tolist()) == sorted(named(places, "a", "b", "s"))


def test_the_highest_value_in_a_domain_or_below_it() -> None:
    places = sums_over(*four_racks())
    values = np.zeros(len(places.tree))
    values[named(places, "a", "b", "t")] = [3, 5, 4]
    highest = dict(zip(places.tree.names, places.highest_below(values).tolist(), strict=True))
    assert highest == {
        "<cluster-top-hypernode>": 5, "a": 3, "b": 5, "c": 0, "d": 0, "s": 5, "t": 4, "core": 5
    }  # fmt: skip


def test_a_node_is_at_home_only_in_the_lowest_tier() -> None:
    places = sums_over(*two_racks(), *nodes("far", "near"), rack("wide", "near", tier=2))
    names = {name: places.home[row] for row, name in enumerate(["a1", "a2", "b1", "b2", "far", "near"])}
    a, b = named(places, "a", "b")
    assert names == {"a1": a, "a2": a, "b1": b, "b2": b, "far": NONE, "near": NONE}


def test_without_hyper_nodes_everybody_is_at_home_in_the_root() -> None:
    places = sums_over(*nodes("n1", "n2"))
    assert places.home.tolist() == [ROOT, ROOT]
    assert places.uniform.tolist() == [True]
    assert places.tiers == [1]


def test_a_domain_is_uniform_when_its_nodes_are_at_home_together() -> None:
    places = sums_over(*two_racks())
    assert {places.tree.names[row]: bool(same) for row, same in enumerate(places.uniform)} == {
        "<cluster-top-hypernode>": False,
        "a": True,
        "b": True,
        "s": False,
    }


def test_the_tiers_count_the_root() -> None:
    assert sums_over(*nodes("n"), rack("r", "n", tier=0), spine("s", "r", tier=4)).tiers == [0, 4, 5]


@pytest.mark.parametrize(
    ("held", "around"),
    [(["a1"], "a"), (["a1", "a2"], "a"), (["a1", "b2"], "s"), (["a1", "d1"], "core")],
)
def test_the_narrowest_domain_around_nodes(held: list[str], around: str) -> None:
    places = sums_over(*four_racks())
    index = {name: row for row, name in enumerate(["a1", "a2", "b1", "b2", "c1", "c2", "d1", "d2"])}
    found = places.around(np.array([index[name] for name in held], dtype=np.int64))
    assert places.tree.names[found] == around


def test_none_joined_with_a_domain_is_the_domain() -> None:
    places = sums_over(*four_racks())
    a, b, c, s, core = named(places, "a", "b", "c", "s", "core")
    assert (places.joined(NONE, a), places.joined(a, NONE), places.joined(NONE, NONE)) == (a, a, NONE)
    assert (places.joined(a, b), places.joined(a, a), places.joined(a, s), places.joined(a, c)) == (
        s,
        a,
        s,
        core,
    )


def test_sums_are_kept_for_as_long_as_the_tree() -> None:
    cluster = cluster_of(*two_racks())
    tree = snapshot.take(cluster).domains
    assert sums_of(tree, cluster.memory) is sums_of(snapshot.take(cluster).domains, cluster.memory)
    cluster.apply(rack("a", "a1"))
    assert sums_of(snapshot.take(cluster).domains, cluster.memory).tree is not tree


def test_the_domains_that_hold_a_node() -> None:
    places = sums_over(*two_racks(), *nodes("far"))
    held = [sorted(row for row in own if row < len(places.tree)) for own in places.holders.tolist()]
    a, b, s = named(places, "a", "b", "s")
    assert held == [
        sorted([ROOT, a, s]),
        sorted([ROOT, a, s]),
        sorted([ROOT, b, s]),
        sorted([ROOT, b, s]),
        [ROOT],
    ]


CHANGES = st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), max_size=4), max_size=6)


@given(st.lists(st.sets(st.integers(0, 5)), max_size=4), CHANGES)
def test_kept_sums_are_those_worked_out_anew(
    members: list[set[int]], changes: list[list[tuple[int, int]]]
) -> None:
    racks = [rack(f"r{i}", *(f"n{node}" for node in held)) for i, held in enumerate(members)]
    places = sums_over(*nodes(*(f"n{i}" for i in range(6))), *racks)
    values, log = np.zeros((2, 6), dtype=np.int64), ChangeLog(6)
    kept = KeptSums(places, log)
    for number, change in enumerate(changes):
        for node, amount in change:
            values[:, node] += [amount, 2 * amount]
            log.append(np.array([node]))
        if number % 2 == 0:  # sums are not read after every change
            assert kept.of(values).tolist() == places.over(values).tolist()
    assert kept.of(values).tolist() == places.over(values).tolist()
    values += 1  # more than the log says
    assert kept.of(values, afresh=True).tolist() == places.over(values).tolist()
