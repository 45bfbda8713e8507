"""Names that pods bring: as many as they like, and none of them stays when the pods are gone."""

import numpy as np
import pytest

import maniple
from maniple.cluster import classes as classes_module
from maniple.cluster import cluster as cluster_module
from maniple.cluster.check import validate
from maniple.cluster.resources import MOST_UNOFFERED, OTHERS, PODS
from maniple.objects.load import load
from tests.live.objects import Raw, group, node, pod, queue
from tests.support import cluster_of

OFFERED = "example.com/device-40000"


def greedy(name: str, *resources: str) -> Raw:
    raw = pod(name, "gang")
    raw["metadata"]["uid"] = name
    amounts = {"cpu": "1", **dict.fromkeys(resources, "1")}
    raw["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return raw


def with_device(name: str) -> Raw:
    raw = node(name)
    raw["status"]["allocatable"] = {**raw["status"]["allocatable"], OFFERED: "8"}
    return raw


def many(first: int, count: int) -> list[str]:
    return [f"example.com/device-{number}" for number in range(first, first + count)]


def test_a_pod_that_names_thousands_of_resources_costs_a_bounded_number_of_dimensions() -> None:
    cluster = cluster_of(*map(load, (node("n1"), group("gang", 1), greedy("p", *many(0, 30_000)))))
    cluster.settle()
    assert len(cluster.resources) <= PODS + 1 + MOST_UNOFFERED + 1
    validate(cluster)


def test_such_a_pod_waits_for_the_resources_as_any_other() -> None:
    plan = maniple.plan(
        [node("n1"), queue("default"), group("gang", 1), greedy("p", *many(0, 1000))], profile="volcano"
    )
    assert plan.binds == {}
    assert "Insufficient example.com/device-0" in plan.waiting["team/p"].reason


def test_pods_beyond_the_bound_wait_for_a_resource_that_is_named_so() -> None:
    crowd = [greedy(f"p{number}", name) for number, name in enumerate(many(0, MOST_UNOFFERED + 1))]
    plan = maniple.plan([node("n1"), queue("default"), group("gang", 1), *crowd], profile="volcano")
    assert plan.binds == {}
    assert sum(OTHERS in waiting.reason for waiting in plan.waiting.values()) == 1


def test_a_resource_that_shares_a_dimension_gets_its_own_when_a_node_offers_it() -> None:
    objects = [
        node("n1"),
        group("gang", 1),
        greedy("crowd", *many(0, MOST_UNOFFERED + 10)),
        greedy("p", OFFERED),
    ]
    cluster = cluster_of(*map(load, objects))
    cluster.settle()
    assert cluster.resources.known(OFFERED) is None
    cluster.apply(load(with_device("n2")))
    cluster.settle()
    dimension = cluster.resources.known(OFFERED)
    assert dimension is not None
    row = cluster.tasks.index_of("team/p")
    assert cluster.specs.specs[cluster.tasks.spec[row]].request[dimension] == 1000
    assert cluster.jobs.total[dimension].sum() == 1000
    assert not cluster.resources.stale
    validate(cluster)


@pytest.mark.parametrize("order", ["node first", "node last"])
def test_what_a_node_offers_is_never_crowded_out(order: str) -> None:
    crowd = greedy("crowd", *many(0, 1000))
    objects = [queue("default"), group("gang", 1), crowd, greedy("p", OFFERED)]
    given = [with_device("n1"), *objects] if order == "node first" else [*objects, with_device("n1")]
    assert maniple.plan(given, profile="volcano").binds == {"team/p": "n1"}


def test_resources_and_roles_of_pods_long_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "_MANY_ROLES", 20)
    monkeypatch.setattr(cluster_module, "_MANY_RESOURCES", 20)
    cluster = cluster_of(*map(load, (with_device("n1"), group("gang", 1))))
    stays = greedy("stays", OFFERED, "example.com/wanted")
    stays["metadata"]["annotations"]["volcano.sh/task-spec"] = "role-stays"
    cluster.apply(load(stays))
    for number in range(200):
        raw = greedy(f"p{number}", f"example.com/r{number}")
        raw["metadata"]["annotations"]["volcano.sh/task-spec"] = f"role-{number}"
        cluster.apply(load(raw))
        cluster.settle()
        cluster.delete(load(raw))
    cluster.settle()
    assert len(cluster.resources) < 50
    assert len(cluster.tasks.roles) < 50
    row = cluster.tasks.index_of("team/stays")
    assert cluster.tasks.roles[cluster.tasks.role[row]] == "role-stays"
    assert cluster.tasks.known_role("role-stays") == cluster.tasks.role[row]
    request = cluster.specs.specs[cluster.tasks.spec[row]].request
    named = {cluster.resources.names[one] for one in np.flatnonzero(request)}
    assert named == {"cpu", "pods", OFFERED, "example.com/wanted"}
    validate(cluster)


def test_large_pods_long_gone_are_forgotten_before_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes_module, "_MANY_BYTES", 2**20)
    cluster = cluster_of(*map(load, (node("n1"), group("gang", 1), greedy("stays"))))
    for number in range(50):
        raw = greedy(f"p{number}")
        raw["spec"]["nodeSelector"] = {f"key-{number}-{one}": "x" for one in range(5000)}
        cluster.apply(load(raw))
        cluster.settle()
        cluster.delete(load(raw))
        cluster.settle()
    assert len(cluster.specs.specs) < 20
    validate(cluster)
