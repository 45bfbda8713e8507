"""Room in domains: how many tasks could go there at most, and which domains are alike."""

from typing import Any

import numpy as np
import pytest

from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.placement.engine import Placement
from maniple.placement.room import DomainRoom
from maniple.plugins.feasibility.predicates import Predicates
from maniple.plugins.topology.network_topology_aware import NetworkTopologyAware
from tests.networks import hard, nodes, rack, spine, two_racks
from tests.plugins.opening import session_on, task, use
from tests.support import group, node, pod, queue

LEAVING = "2026-01-01T00:00:00Z"


def opened(*objects: Object, **fields: Any) -> tuple[Session, DomainRoom, dict[int, int]]:
    """A session with one waiting pod of one cpu, and a demand for four of its class."""
    asked = pod("p", {"cpu": "1", "memory": "1Gi"}, group="g", **fields)
    session = session_on([queue("default"), group("g", 1, networkTopology=hard(1)), asked, *objects])
    use(session, Predicates(session, {}), NetworkTopologyAware(session, {}))
    number = int(session.tasks.class_of[task(session, "p")])
    return session, DomainRoom(session, Placement(session)), {number: 4}


def room(session: Session, found: DomainRoom, demand: dict[int, int]) -> dict[str, int]:
    return dict(zip(session.domains.names[1:], found.for_demand(demand)[1:].tolist(), strict=True))


def alike(session: Session, found: DomainRoom, demand: dict[int, int], *names: str) -> bool:
    keys = found.likeness(demand, np.array([session.domains.index[name] for name in names]))
    assert keys is not None
    return len(set(keys.values())) == 1


def test_a_domain_has_the_slots_of_its_nodes_and_no_more_than_are_asked_for() -> None:
    assert room(*opened(*two_racks(cpu=1), *nodes("c1", cpu=9), rack("c", "c1"))) == {
        "a": 2,
        "b": 2,
        "c": 4,
        "s": 4,
    }


def test_what_is_being_released_counts() -> None:
    leaving = pod("old", {"cpu": "2"}, group="old", on="a1", deleted=LEAVING)
    running = pod("new", {"cpu": "2"}, group="old", on="b1")
    assert room(*opened(*two_racks(cpu=2), group("old", 1), leaving, running)) == {"a": 4, "b": 2, "s": 4}


def test_nodes_that_refuse_the_class_have_no_slots() -> None:
    tainted = node("b2", {"cpu": "2"}, taints=[{"key": "k", "effect": "NoSchedule"}])
    assert room(*opened(*two_racks(cpu=2), tainted))["b"] == 2


def test_equal_domains_are_alike() -> None:
    assert alike(*opened(*two_racks(cpu=2)), "a", "b")


@pytest.mark.parametrize(
    "difference",
    [
        [node("b1", {"cpu": "3", "memory": "2Gi"})],  # not only more room: how full the domain is
        [node("b1", {"cpu": "2", "memory": "9Gi"})],
        [node("b1", {"cpu": "2", "memory": "2Gi", "example.com/gpu": "1"})],
        [node("b1", {"cpu": "2", "memory": "2Gi"}, taints=[{"key": "k", "effect": "NoSchedule"}])],
        [group("old", 1), pod("old", {"cpu": "10m"}, group="old", on="b1")],
        [group("old", 1), pod("old", {"cpu": "10m"}, group="old", on="b1", deleted=LEAVING)],
        [rack("b", "b1", "b2", "b3"), *nodes("b3")],
    ],
)
def test_anything_that_could_matter_makes_them_differ(difference: list[Object]) -> None:
    assert not alike(*opened(*two_racks(cpu=2), *difference), "a", "b")


def test_domains_inside_count_too() -> None:
    objects = [
        *nodes("a1", "a2", "b1", "b2"),
        *(rack(name, name, tier=0) for name in ("a1", "a2")),
        rack("b12", "b1", "b2", tier=0),
        spine("a", "a1", "a2", tier=1),
        spine("b", "b12", tier=1),
    ]
    assert not alike(*opened(*objects), "a", "b")


def test_tasks_of_several_classes_or_tied_to_other_pods_are_not_compared() -> None:
    session, found, demand = opened(*two_racks())
    domains = np.array([session.domains.index[name] for name in ("a", "b")])
    assert found.likeness({**demand, max(demand) + 1: 1}, domains) is None
    term = {"labelSelector": {"matchLabels": {"x": "y"}}, "topologyKey": "zone"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    session, found, demand = opened(*two_racks(), affinity=affinity)
    assert found.likeness(demand, domains) is None
