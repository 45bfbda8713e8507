"""LeaderWorkerSet."""

from typing import Any

import pytest

from maniple.workloads.expanding import expanded
from maniple.workloads.grouping import member
from maniple.workloads.model import DomainWish, FieldError, Group, PodSet
from tests.workloads.support import example, groups, members

POD = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
PREFIX = "leaderworkerset.sigs.k8s.io/"


def lws(
    size: int = 4,
    sub: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
    worker_annotations: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    worker = {"metadata": {"annotations": worker_annotations or {}}, **POD}
    template: dict[str, Any] = {"size": size, "workerTemplate": worker}
    if sub:
        template["subGroupPolicy"] = sub
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "serve", "namespace": "ml", "annotations": annotations or {}},
        "spec": {"leaderWorkerTemplate": template, **spec},
    }


def only(manifest: dict[str, Any]) -> Group:
    (group,) = groups(members(manifest)).values()
    return group


def test_each_replica_is_a_group_of_a_leader_and_its_workers() -> None:
    found = members(lws(3, replicas=2))
    by_name = groups(found)
    assert [*by_name] == ["leaderworkerset:serve:group-0", "leaderworkerset:serve:group-1"]
    for group in by_name.values():
        assert (group.minimum, group.sets) == (3, (PodSet("leader", 1), PodSet("workers", 2)))
    assert {name: one.set_name for name, one in found.items() if "group-1" in one.group.name} == {
        "serve-1": "leader",
        "serve-1-1": "workers",
        "serve-1-2": "workers",
    }


def test_a_replica_of_one_is_its_leader() -> None:
    assert only(lws(1)).sets == (PodSet("leader", 1),)


def test_workers_come_after_a_leader_that_has_to_be_ready() -> None:
    assert only(lws(3, startupPolicy="LeaderReady")).sets[1] == PodSet("workers", 2, after=("leader",))


def test_workers_come_after_a_leader_that_chooses_the_domain() -> None:
    group = only(lws(3, annotations={PREFIX + "exclusive-topology": "rack"}))
    assert group.domain == DomainWish(required="rack")
    assert group.sets[1].after == ("leader",)


@pytest.mark.parametrize(
    ("size", "policy", "sets"),
    [
        (4, "LeaderWorker", [("segment-0", 2), ("leader", 1), ("segment-0-workers", 1), ("segment-1", 2)]),
        (5, "LeaderWorker", [("segment-0", 3), ("leader", 1), ("segment-0-workers", 2), ("segment-1", 2)]),
        (5, "LeaderExcluded", [("leader", 1), ("segment-0", 2), ("segment-1", 2)]),
    ],
)
def test_sub_groups_are_sets(size: int, policy: str, sets: list[tuple[str, int]]) -> None:
    sub = {"subGroupSize": 2, "subGroupPolicyType": policy}
    found = members(lws(size, sub))
    (group,) = groups(found).values()
    assert [(one.name, one.minimum) for one in group.sets] == sets
    parents = {one.parent for one in group.sets}
    placed = [one.set_name for one in found.values()]
    assert {one.name: one.minimum for one in group.sets if one.name not in parents} == {
        name: placed.count(name) for name in placed
    }


@pytest.mark.parametrize("size", range(1, 14))
@pytest.mark.parametrize("segment", range(1, 6))
@pytest.mark.parametrize("policy", ["LeaderWorker", "LeaderExcluded"])
def test_every_set_has_as_many_pods_as_its_minimum(size: int, segment: int, policy: str) -> None:
    if segment > size:
        return
    found = members(lws(size, {"subGroupSize": segment, "subGroupPolicyType": policy}))
    (group,) = groups(found).values()
    placed = [one.set_name for one in found.values()]
    parents = {one.parent for one in group.sets}
    for one in group.sets:
        assert one.name in parents or one.minimum == placed.count(one.name) > 0
    assert sum(one.minimum for one in group.sets if not one.parent) == size


def test_segments_of_kai_have_a_topology_of_their_own() -> None:
    notes = {
        "kai.scheduler/segment-size": "2",
        "kai.scheduler/topology": "dc",
        "kai.scheduler/segment-topology-required-placement": "rack",
    }
    group = only(lws(4, worker_annotations=notes))
    assert group.sets[0] == PodSet("segment-0", 2, domain=DomainWish(topology="dc", required="rack"))
    assert group.domain is None


def test_pods_are_known_by_the_labels_of_the_webhook() -> None:
    manifest = lws(3)
    labels = {PREFIX + "group-index": "7", PREFIX + "worker-index": "2"}
    pod = {"metadata": {"name": "any", "namespace": "ml", "labels": labels}}
    found = member(pod, [manifest])
    assert (found.group.part, found.set_name) == ("group-7", "workers")


def test_workers_belong_to_their_leader() -> None:
    objects = {
        (one["kind"], one["metadata"]["name"]): one for one in expanded(example("leaderworkerset.yaml")[0])
    }
    worker_set = objects["StatefulSet", "serve-1"]
    (reference,) = worker_set["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["name"]) == ("Pod", "serve-1")
    worker = objects["Pod", "serve-1-3"]
    assert worker["metadata"]["labels"][PREFIX + "group-index"] == "1"
    assert worker["metadata"]["annotations"][PREFIX + "leader-name"] == "serve-1"
    assert worker["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "100m"
    assert objects["Pod", "serve-1"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "200m"


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (lws(0), "spec.leaderWorkerTemplate.size: must be 1 or more"),
        (lws(3, startupPolicy="Soon"), "spec.startupPolicy: must be one of LeaderCreated, LeaderReady"),
        (lws(3, {"subGroupSize": 9}), "subGroupPolicy.subGroupSize: must be from 1 to the size, 3"),
        (
            lws(3, worker_annotations={"kai.scheduler/segment-size": "two"}),
            "segment-size: must be a whole number",
        ),
        (lws(100_000, {"subGroupSize": 2}), "subGroupSize: must be larger"),
    ],
)
def test_a_wrong_field_is_named(manifest: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError, match=rf"^LeaderWorkerSet ml/serve: .*{message}"):
        members(manifest)
