"""Affinity between pods, filter and score, against loops over nodes and pods."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.framework.reasons import Code
from maniple.plugins.feasibility.inter_pod import InterPodScore
from maniple.plugins.feasibility.placed import Placements
from tests.plugins.asking import NAMESPACE, Raw, World, node, other, pod, where
from tests.plugins.feasibility import clusters, reference
from tests.plugins.feasibility.reference import HOSTNAME, ZONE

NAMESPACES = {NAMESPACE: {"team": "a"}, "elsewhere": {"team": "b"}}
namespace_objects = [other("v1", "Namespace", n, metadata={"labels": m}) for n, m in NAMESPACES.items()]

terms = st.builds(
    lambda key, selector, listed, chosen, same, differ: {
        "topologyKey": key,
        **({"labelSelector": selector} if selector is not None else {}),
        "namespaces": listed,
        **({"namespaceSelector": chosen} if chosen is not None else {}),
        "matchLabelKeys": same,
        "mismatchLabelKeys": differ,
    },
    st.sampled_from(clusters.KEYS),
    clusters.label_selectors,
    st.lists(st.sampled_from((NAMESPACE, "elsewhere")), max_size=1),
    st.sampled_from((None, None, {}, {"matchLabels": {"team": "b"}})),
    st.lists(st.just("app"), max_size=1),
    st.lists(st.just("tier"), max_size=1),
)
weighted = st.builds(lambda w, t: {"weight": w, "podAffinityTerm": t}, st.integers(1, 100), terms)


def wishes(required: st.SearchStrategy[list[Raw]], preferred: st.SearchStrategy[list[Raw]]) -> Any:
    return st.builds(
        lambda r, p: {
            "requiredDuringSchedulingIgnoredDuringExecution": r,
            "preferredDuringSchedulingIgnoredDuringExecution": p,
        },
        required,
        preferred,
    )


specs = st.builds(
    lambda near, far: {"affinity": {"podAffinity": near, "podAntiAffinity": far}},
    wishes(st.lists(terms, max_size=2), st.lists(weighted, max_size=1)),
    wishes(st.lists(terms, max_size=1), st.lists(weighted, max_size=2)),
)


@given(clusters.nodes(least=4), st.booleans(), st.data())
def test_the_three_rules_of_the_filter(nodes: list[Raw], strict: bool, data: st.DataObject) -> None:
    placed = data.draw(clusters.pods(4, "e", specs))
    (asking,) = data.draw(clusters.pods(1, "p", specs, on=False))
    world = World([*nodes, *namespace_objects, *placed, asking], strict=strict)
    rules = reference.InterPod(nodes, placed, NAMESPACES, leaving_too=strict)
    expected = {reference.name_of(n): rules.verdict(asking, n) for n in nodes}
    assert world.verdicts("InterPodAffinity", "p0") == expected


@given(clusters.nodes(least=4), st.sets(st.sampled_from(("n0", "n1", "n2", "n3")), min_size=1), st.data())
def test_preferences_of_both_sides_add_up(nodes: list[Raw], among: set[str], data: st.DataObject) -> None:
    placed = data.draw(clusters.pods(4, "e", specs))
    (asking,) = data.draw(clusters.pods(1, "p", specs, on=False))
    world = World([*nodes, *namespace_objects, *placed, asking])
    candidates = [n for n in nodes if reference.name_of(n) in among]
    rules = reference.InterPod(nodes, placed, NAMESPACES)
    assert world.scores("InterPodAffinity", "p0", among) == rules.scores(asking, candidates, 0)


@given(clusters.nodes(least=4), st.integers(1, 100), st.data())
def test_required_affinity_of_placed_pods_counts_where_it_has_a_weight(
    nodes: list[Raw], hard_weight: int, data: st.DataObject
) -> None:
    placed = data.draw(clusters.pods(4, "e", specs))
    (asking,) = data.draw(clusters.pods(1, "p", specs, on=False))
    world = World([*nodes, *namespace_objects, *placed, asking])
    index = Placements(world.session, world)
    scorer = InterPodScore(world.session, index, hard_weight).scorer(1)
    world.scorers[scorer.name] = scorer
    expected = reference.InterPod(nodes, placed, NAMESPACES).scores(asking, nodes, hard_weight)
    assert world.scores("InterPodAffinity", "p0") == expected


@given(clusters.nodes(least=4), st.data())
def test_following_placements_equals_looking_afresh(nodes: list[Raw], data: st.DataObject) -> None:
    """Place and evict pods one by one; after each step the answer is that of a cluster built that way."""
    running = data.draw(clusters.pods(3, "e", specs))
    for one in running:
        one["metadata"].update(namespace=NAMESPACE)
        one["metadata"].pop("deletionTimestamp", None)
    waiting = data.draw(clusters.pods(3, "w", specs, on=False))
    (asking,) = data.draw(clusters.pods(1, "p", specs, on=False))
    world = World([*nodes, *namespace_objects, *running, *waiting, asking])

    def check(placed: list[Raw]) -> None:
        rules = reference.InterPod(nodes, placed, NAMESPACES)
        found = world.verdicts("InterPodAffinity", "p0")
        assert found == {reference.name_of(n): rules.verdict(asking, n) for n in nodes}
        assert world.scores("InterPodAffinity", "p0") == rules.scores(asking, nodes, 0)

    check(running)
    placed = list(running)
    transactions = []
    for one in waiting:
        target = data.draw(st.sampled_from(("n0", "n1", "n2", "n3")))
        transactions.append(world.place(reference.name_of(one), target))
        placed.append({**one, "spec": {**one["spec"], "nodeName": target}})
        check(placed)
    transactions.append(world.evict("e0"))
    check(placed[1:])
    for transaction in reversed(transactions):
        transaction.discard()
    check(running)


def near(selector: Mapping[str, str], key: str = ZONE) -> Raw:
    term = {"labelSelector": {"matchLabels": dict(selector)}, "topologyKey": key}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def far(selector: Mapping[str, str], key: str = ZONE) -> Raw:
    return {"podAntiAffinity": near(selector, key)["podAffinity"]}


ZONES = [node("a", {ZONE: "1", HOSTNAME: "a"}), node("b", {ZONE: "2", HOSTNAME: "b"}), node("c")]


def test_the_first_of_a_group_may_go_anywhere_with_the_label() -> None:
    world = World([*ZONES, pod("p", labels={"app": "x"}, affinity=near({"app": "x"}))])
    assert where(world.verdicts("InterPodAffinity", "p")) == {"a", "b"}


def test_a_pod_that_does_not_match_its_own_terms_has_to_wait_for_another() -> None:
    world = World([*ZONES, pod("p", labels={"app": "y"}, affinity=near({"app": "x"}))])
    assert where(world.verdicts("InterPodAffinity", "p")) == set()


def test_one_of_the_group_on_a_node_without_the_label_does_not_count_as_the_first() -> None:
    """It is in no domain, so nobody could ever be placed near it."""
    world = World(
        [*ZONES, *(pod(name, labels={"app": "x"}, affinity=near({"app": "x"})) for name in ("p", "q"))]
    )
    world.place("q", "c")
    assert where(world.verdicts("InterPodAffinity", "p")) == {"a", "b"}


def test_the_second_of_a_group_follows_the_first() -> None:
    world = World(
        [*ZONES, *(pod(name, labels={"app": "x"}, affinity=near({"app": "x"})) for name in ("p", "q"))]
    )
    world.place("q", "b")
    assert where(world.verdicts("InterPodAffinity", "p")) == {"b"}


def test_one_pod_has_to_match_all_terms() -> None:
    both = near({"app": "x"})
    both["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"].append(
        {"labelSelector": {"matchLabels": {"tier": "y"}}, "topologyKey": HOSTNAME}
    )
    apart = [pod("e", "a", {"app": "x"}), pod("f", "a", {"tier": "y"})]
    world = World([*ZONES, *apart, pod("p", affinity=both)])
    assert where(world.verdicts("InterPodAffinity", "p")) == set()
    world = World([*ZONES, pod("e", "a", {"app": "x", "tier": "y"}), pod("p", affinity=both)])
    assert where(world.verdicts("InterPodAffinity", "p")) == {"a"}


def leaving(one: Raw) -> Raw:
    one["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return one


@pytest.mark.parametrize(("strict", "nodes"), [(False, set()), (True, {"a"})])
def test_no_pod_relies_on_one_that_is_being_deleted(strict: bool, nodes: set[str]) -> None:
    objects = [*ZONES, leaving(pod("e", "a", {"app": "x"})), pod("p", affinity=near({"app": "x"}))]
    world = World(objects, strict=strict)
    assert where(world.verdicts("InterPodAffinity", "p")) == nodes


def test_a_pod_is_not_the_first_of_its_kind_while_another_is_being_deleted() -> None:
    labels, affinity = {"app": "x"}, near({"app": "x"})
    world = World([*ZONES, leaving(pod("e", "a", labels)), pod("p", labels=labels, affinity=affinity)])
    assert where(world.verdicts("InterPodAffinity", "p")) == set()


def test_a_pod_that_is_being_deleted_is_still_avoided() -> None:
    world = World([*ZONES, leaving(pod("e", "a", {"app": "x"})), pod("p", affinity=far({"app": "x"}))])
    assert where(world.verdicts("InterPodAffinity", "p")) == {"b", "c"}


def test_nodes_without_the_label_never_clash() -> None:
    world = World([*ZONES, pod("e", "c", {"app": "x"}), pod("p", affinity=far({"app": "x"}))])
    assert where(world.verdicts("InterPodAffinity", "p")) == {"a", "b", "c"}


def test_a_placed_pod_keeps_out_those_that_it_avoids() -> None:
    world = World([*ZONES, pod("e", "a", affinity=far({"app": "x"})), pod("p", labels={"app": "x"})])
    found = world.verdicts("InterPodAffinity", "p")
    assert found["a"] == "node(s) didn't satisfy existing pods anti-affinity rules"
    assert where(found) == {"b", "c"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("node(s) didn't match pod affinity rules", Code.UNRESOLVABLE),
        ("node(s) didn't match pod anti-affinity rules", Code.UNSCHEDULABLE),
        ("node(s) didn't satisfy existing pods anti-affinity rules", Code.UNSCHEDULABLE),
    ],
)
def test_evictions_help_against_anti_affinity_only(text: str, code: Code) -> None:
    reasons = World([node("a")]).session.reasons.reasons
    assert {reason.text: reason.code for reason in reasons}[text] is code


def test_only_pods_that_a_term_concerns_are_asked() -> None:
    world = World([*ZONES, pod("e", "a", affinity=far({"app": "x"})), pod("p", labels={"app": "y"})])
    assert not world.filters["InterPodAffinity"].applies(world.class_of("p"))
    assert not world.scorers["InterPodAffinity"].applies(world.class_of("p"))
