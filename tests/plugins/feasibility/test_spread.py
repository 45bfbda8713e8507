"""Topology spread, filter and score, against loops over nodes and pods."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.asking import NAMESPACE, Raw, World, node, other, pod, where
from tests.plugins.feasibility import clusters, reference
from tests.plugins.feasibility.reference import HOSTNAME, ZONE


def constraints(kinds: Sequence[str]) -> st.SearchStrategy[list[Raw]]:
    one = st.builds(
        lambda key, skew, kind, selector, least, affinity, taints, same: {
            "topologyKey": key,
            "maxSkew": skew,
            "whenUnsatisfiable": kind,
            **({"labelSelector": selector} if selector is not None else {}),
            **({"minDomains": least} if least and kind == "DoNotSchedule" else {}),
            **({"nodeAffinityPolicy": affinity} if affinity else {}),
            **({"nodeTaintsPolicy": taints} if taints else {}),
            "matchLabelKeys": same,
        },
        st.sampled_from(clusters.KEYS),
        st.integers(1, 3),
        st.sampled_from(kinds),
        clusters.label_selectors,
        st.sampled_from((0, 0, 1, 2, 4)),
        st.sampled_from(("", "Honor", "Ignore")),
        st.sampled_from(("", "Honor", "Ignore")),
        st.lists(st.just("app"), max_size=1),
    )
    return st.lists(one, min_size=1, max_size=2)


def specs(kinds: Sequence[str]) -> st.SearchStrategy[Raw]:
    return st.builds(
        lambda spread, selector, tolerations: {
            "topologySpreadConstraints": spread,
            "nodeSelector": selector,
            "tolerations": tolerations,
        },
        constraints(kinds),
        clusters.node_selectors,
        clusters.tolerations,
    )


BOTH = ("DoNotSchedule", "ScheduleAnyway")


@given(clusters.nodes(least=4), st.data())
def test_skew_of_hard_constraints(nodes: list[Raw], data: st.DataObject) -> None:
    placed = data.draw(clusters.pods(6, "e", st.just({})))
    (asking,) = data.draw(clusters.pods(1, "p", specs(BOTH), on=False))
    world = World([*nodes, *placed, asking])
    rules = reference.Spread(nodes, placed, asking)
    expected = {reference.name_of(n): rules.verdict(n) for n in nodes}
    assert world.verdicts("PodTopologySpread", "p0") == expected


@given(clusters.nodes(least=4), st.sets(st.sampled_from(("n0", "n1", "n2", "n3")), min_size=1), st.data())
def test_score_of_soft_constraints(nodes: list[Raw], among: set[str], data: st.DataObject) -> None:
    placed = data.draw(clusters.pods(6, "e", st.just({})))
    (asking,) = data.draw(clusters.pods(1, "p", specs(BOTH), on=False))
    world = World([*nodes, *placed, asking])
    candidates = [n for n in nodes if reference.name_of(n) in among]
    expected = reference.Spread(nodes, placed, asking).scores(candidates)
    assert world.scores("PodTopologySpread", "p0", among) == expected


workload_selectors = st.dictionaries(
    st.sampled_from(("app", "tier")), st.sampled_from(("x", "y")), max_size=2
)


@given(
    clusters.nodes(least=4),
    st.sets(st.sampled_from(("n0", "n1", "n2", "n3")), min_size=1),
    st.lists(workload_selectors, max_size=3),
    clusters.label_selectors,
    st.data(),
)
def test_pods_without_constraints_are_spread_with_their_services_and_controllers(
    nodes: list[Raw],
    among: set[str],
    services: list[dict[str, str]],
    replicas: Raw | None,
    data: st.DataObject,
) -> None:
    placed = data.draw(clusters.pods(6, "e", st.just({})))
    (asking,) = data.draw(clusters.pods(1, "p", st.just({}), on=False))
    objects = [service(f"s{i}", selector) for i, selector in enumerate(services)]
    selectors: list[Raw] = [{"matchLabels": selector} for selector in services]
    if replicas is not None:
        objects.append(other("apps/v1", "ReplicaSet", "r", metadata=IN_WORK, spec={"selector": replicas}))
        selectors.append(replicas)
    selectors = [s for s in selectors if reference.selects(s, reference.labels_of(asking))]
    world = World([*nodes, *objects, *placed, asking])
    candidates = [n for n in nodes if reference.name_of(n) in among]
    expected = reference.Spread(nodes, placed, asking, selectors).scores(candidates)
    assert world.scores("PodTopologySpread", "p0", among) == expected


IN_WORK = {"namespace": NAMESPACE}


def service(name: str, selector: dict[str, str]) -> Raw:
    return other("v1", "Service", name, metadata=IN_WORK, spec={"selector": selector})


def spread(skew: int = 1, key: str = ZONE, kind: str = "DoNotSchedule", **more: Any) -> list[Raw]:
    selector = {"matchLabels": {"app": "x"}}
    return [
        {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": kind, "labelSelector": selector, **more}
    ]


def mine(name: str, on: str = "", **spec: Any) -> Raw:
    return pod(name, on, {"app": "x"}, **spec)


ZONES = [node("a", {ZONE: "1"}), node("b", {ZONE: "2"}), node("c", {ZONE: "2"}), node("d")]


def test_a_node_without_the_label_is_out_and_no_eviction_helps() -> None:
    world = World([*ZONES, mine("p", topologySpreadConstraints=spread())])
    found = world.verdicts("PodTopologySpread", "p")
    assert where(found) == {"a", "b", "c"}
    assert found["d"].endswith("(missing required label)")


def test_the_pod_itself_counts_when_it_is_meant() -> None:
    both = [mine("e", "a"), mine("f", "b"), mine("g", "b")]
    world = World([*ZONES, *both, mine("p", topologySpreadConstraints=spread())])
    assert where(world.verdicts("PodTopologySpread", "p")) == {"a"}
    not_meant = pod("p", labels={"app": "y"}, topologySpreadConstraints=spread())
    world = World([*ZONES, *both, not_meant])
    assert where(world.verdicts("PodTopologySpread", "p")) == {"a", "b", "c"}


def test_too_few_domains_count_as_one_more_that_is_empty() -> None:
    both = [mine("e", "a"), mine("f", "b")]
    world = World([*ZONES, *both, mine("p", topologySpreadConstraints=spread(minDomains=3))])
    assert where(world.verdicts("PodTopologySpread", "p")) == set()
    world = World([*ZONES, *both, mine("p", topologySpreadConstraints=spread(minDomains=2))])
    assert where(world.verdicts("PodTopologySpread", "p")) == {"a", "b", "c"}


def test_placing_and_undoing_moves_the_skew() -> None:
    world = World([*ZONES, *(mine(name, topologySpreadConstraints=spread()) for name in ("p", "q"))])
    placed = world.place("q", "a")
    assert where(world.verdicts("PodTopologySpread", "p")) == {"b", "c"}
    placed.discard()
    assert where(world.verdicts("PodTopologySpread", "p")) == {"a", "b", "c"}


@pytest.mark.parametrize(("policy", "open_to"), [("Honor", {"a", "b"}), ("Ignore", {"b"})])
def test_nodes_that_the_pod_s_selector_rules_out_are_no_domain(policy: str, open_to: set[str]) -> None:
    """Zone 2 is empty but out of reach: only if it counts is zone 1 too full."""
    zones = [node("a", {ZONE: "1", "disk": "ssd"}), node("b", {ZONE: "2"})]
    stated = spread(nodeAffinityPolicy=policy)
    asking = mine("p", topologySpreadConstraints=stated, nodeSelector={"disk": "ssd"})
    assert where(World([*zones, mine("e", "a"), asking]).verdicts("PodTopologySpread", "p")) == open_to


@pytest.mark.parametrize(("policy", "open_to"), [("Honor", {"a", "b"}), ("Ignore", {"b"})])
def test_nodes_with_untolerated_taints_are_no_domain_if_the_pod_says_so(
    policy: str, open_to: set[str]
) -> None:
    tainted = node("b", {ZONE: "2"}, taints=[{"key": "gpu", "effect": "NoSchedule"}])
    asking = mine("p", topologySpreadConstraints=spread(nodeTaintsPolicy=policy))
    world = World([node("a", {ZONE: "1"}), tainted, mine("e", "a"), asking])
    assert where(world.verdicts("PodTopologySpread", "p")) == open_to


def test_without_policies_affinity_is_honoured_and_taints_are_not() -> None:
    marked = {ZONE: "1", "disk": "ssd"}
    tainted = node("c", {ZONE: "3", "disk": "ssd"}, taints=[{"key": "gpu", "effect": "NoSchedule"}])
    asking = mine("p", topologySpreadConstraints=spread(), nodeSelector={"disk": "ssd"})
    world = World([node("a", marked), node("b", {ZONE: "2"}), mine("e", "a"), asking])
    assert "a" in where(world.verdicts("PodTopologySpread", "p"))
    world = World([node("a", marked), tainted, mine("e", "a"), asking])
    assert "a" not in where(world.verdicts("PodTopologySpread", "p"))


def test_candidates_without_the_label_do_not_make_the_spread_wider() -> None:
    """The weight is the logarithm of the candidates that count, so those left out must not change who scores what."""
    hosts = [node(name, {HOSTNAME: name, ZONE: name}) for name in "abc"]
    running = [mine("e", "a"), mine("f", "a"), mine("g", "b")]
    soft = [
        *spread(1, HOSTNAME, "ScheduleAnyway"),
        *spread(3, ZONE, "ScheduleAnyway"),
    ]
    asking = mine("p", topologySpreadConstraints=soft)
    alone = World([*hosts, *running, asking]).scores("PodTopologySpread", "p")
    plain = [node(f"x{i}") for i in range(6)]
    beside = World([*hosts, *plain, *running, asking]).scores("PodTopologySpread", "p")
    assert beside == {**alone, **dict.fromkeys((reference.name_of(one) for one in plain), 0)}


def test_the_first_constraint_that_fails_names_the_reason() -> None:
    """Zone 1 is too full, and the node lacks the rack label that the second constraint asks for."""
    stated = [*spread(), *spread(key="rack")]
    zones = [node("a", {ZONE: "1"}), node("b", {ZONE: "1", "rack": "r"}), node("c", {ZONE: "2", "rack": "s"})]
    world = World([*zones, mine("e", "b"), mine("p", topologySpreadConstraints=stated)])
    found = world.verdicts("PodTopologySpread", "p")
    assert found["a"] == "node(s) didn't match pod topology spread constraints"
    assert where(found) == {"c"}


def test_an_empty_selector_counts_only_the_pod_itself() -> None:
    """So no domain is ever fuller than another, and the pod alone is within any skew."""
    stated = spread(labelSelector={})
    world = World([*ZONES, mine("e", "a"), mine("f", "a"), mine("p", topologySpreadConstraints=stated)])
    assert where(world.verdicts("PodTopologySpread", "p")) == {"a", "b", "c"}


def test_pods_on_their_way_out_do_not_count() -> None:
    leaving = mine("e", "a")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world = World([*ZONES, leaving, mine("p", topologySpreadConstraints=spread())])
    assert where(world.verdicts("PodTopologySpread", "p")) == {"a", "b", "c"}


def test_match_label_keys_spread_each_revision_by_itself() -> None:
    old = [pod(name, "a", {"app": "x", "revision": "1"}) for name in ("e", "f")]
    new = pod(
        "p",
        labels={"app": "x", "revision": "2"},
        topologySpreadConstraints=spread(matchLabelKeys=["revision"]),
    )
    assert where(World([*ZONES, *old, new]).verdicts("PodTopologySpread", "p")) == {"a", "b", "c"}


@pytest.mark.parametrize("labelled", [True, False])
def test_default_spreading_is_asked_only_where_something_selects_the_pod(labelled: bool) -> None:
    asking = pod("p", labels={"app": "x"} if labelled else {})
    world = World([*ZONES, service("s", {"app": "x"}), asking])
    assert world.scorers["PodTopologySpread"].applies(world.class_of("p")) is labelled


def test_default_spreading_moves_away_from_the_service_s_other_pods() -> None:
    hosts = [node("a", {HOSTNAME: "a"}), node("b", {HOSTNAME: "b"})]
    world = World([*hosts, service("s", {"app": "x"}), mine("e", "a"), mine("p")])
    scores = world.scores("PodTopologySpread", "p")
    assert scores["b"] > scores["a"]
