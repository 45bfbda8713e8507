"""A plan that was carried out: what was placed runs, what was evicted waits again, what was leaving is gone."""

import copy
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import maniple
from maniple.sim.rounds import GPU_GROUP, LAST_START, STALE_SINCE, Raw, carried_out, key_of
from tests.cli.kai_cluster import TWO_NODES, gang, pod

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def after(objects: list[Any], now: datetime = NOW) -> dict[str, Raw]:
    """Everything by kind and key, one round later; the round must leave its input alone."""
    before = copy.deepcopy(objects)
    found = carried_out(objects, maniple.plan(objects, profile="kai", now=now))
    assert objects == before
    return {f"{item['kind']} {key_of(item)}": item for item in found}


def test_placed_pods_run_and_their_group_remembers_when() -> None:
    found = after([*TWO_NODES, *gang("train", 2, 8)])
    pods = [found[f"Pod ml/train-{index}"] for index in range(2)]
    assert {one["spec"]["nodeName"] for one in pods} == {"n1", "n2"}
    assert all(one["status"] == {"phase": "Running"} for one in pods)
    assert found["PodGroup ml/train"]["metadata"]["annotations"] == {LAST_START: "2026-01-01T12:00:00Z"}


def test_pods_that_wait_are_left_as_they_are() -> None:
    objects = [*TWO_NODES, *gang("huge", 3, 8)]
    assert after(objects)["Pod ml/huge-0"] == objects[5]


def test_what_a_gang_keeps_while_the_rest_of_it_waits_is_not_bound() -> None:
    kept = SimpleNamespace(status="Allocated", node="n2", gpu_groups=())
    plan: Any = SimpleNamespace(evictions=[], problems=[], annotations={}, tasks={"ml/x-0": kept})
    (found,) = carried_out([pod("x-0", "x", 1)], plan)
    assert "nodeName" not in found["spec"]


def test_evicted_pods_wait_again() -> None:
    found = after([*TWO_NODES, *gang("a", 1, 4, "n1"), *gang("b", 1, 4, "n2"), *gang("wide", 1, 8)])
    nodes = [found[f"Pod ml/{name}"]["spec"].get("nodeName") for name in ("a-0", "b-0")]
    assert nodes.count(None) == 1
    assert "nodeName" not in found["Pod ml/wide-0"]["spec"]


def test_leaving_pods_are_gone() -> None:
    leaving = gang("a", 1, 4, "n1")
    leaving[1]["metadata"]["deletionTimestamp"] = "2026-01-01T11:59:00Z"
    assert "Pod ml/a-0" not in after([*TWO_NODES, *leaving])


def test_shared_gpus_are_labelled_as_the_binder_labels_them() -> None:
    objects = [*TWO_NODES, *gang("part", 1, 0)]
    objects[-1]["metadata"]["annotations"]["gpu-fraction"] = "0.5"
    objects[-1]["metadata"]["labels"] = {f"{GPU_GROUP}/old": "old", "mine": "stays"}
    labels = after(objects)["Pod ml/part-0"]["metadata"]["labels"]
    assert labels.pop("mine") == "stays"
    assert set(labels) == {GPU_GROUP}
    objects[-1]["metadata"]["annotations"]["gpu-fraction-num-devices"] = "2"
    labels = after(objects)["Pod ml/part-0"]["metadata"]["labels"]
    assert all(name == f"{GPU_GROUP}/{value}" for name, value in labels.items() if name != "mine")
    assert len(labels) == 3


def test_groups_of_one_name_in_both_systems_are_distinguished() -> None:
    notes = ("scheduling.k8s.io/group-name", "pod-group-name")
    apis = ("scheduling.volcano.sh/v1beta1", "scheduling.run.ai/v2alpha2")
    objects: list[Any] = [*TWO_NODES]
    for api, note in zip(apis, notes, strict=True):
        name = note.partition("-")[0].partition(".")[0]
        one = pod(name, "train", 8)
        one["spec"]["schedulerName"] = "maniple"
        one["metadata"]["annotations"] = {note: "train"}
        spec = {"minMember": 1, "queue": "team"}
        group = {"apiVersion": api, "kind": "PodGroup", "metadata": {"name": "train", "namespace": "ml"}}
        objects += [{**group, "spec": spec}, one]
    found = carried_out(objects, maniple.plan(objects, now=NOW))
    first, second = (item for item in found if item["kind"] == "PodGroup")
    assert first["status"] == {"phase": "Inqueue"}  # let in; that is what it is until its pods run
    assert LAST_START in second["metadata"]["annotations"]


def test_a_bind_request_is_done() -> None:
    request = {
        "apiVersion": "scheduling.run.ai/v1alpha2",
        "kind": "BindRequest",
        "metadata": {"name": "train-0", "namespace": "ml"},
        "spec": {"podName": "train-0", "selectedNode": "n2"},
    }
    found = after([*TWO_NODES, *gang("train", 1, 1), request])
    assert found["Pod ml/train-0"]["spec"]["nodeName"] == "n2"
    assert "BindRequest ml/train-0" not in found


def test_a_broken_gang_is_remembered_until_it_is_whole() -> None:
    objects: list[Any] = [*TWO_NODES, *gang("broken", 2, 8, "n1")]
    del objects[-1]
    found = after(objects)
    annotations = found["PodGroup ml/broken"]["metadata"]["annotations"]
    assert annotations == {STALE_SINCE: "2026-01-01T12:00:00Z"}
    whole = [*found.values(), pod("broken-9", "broken", 8, "n2")]
    later = after(whole, NOW + timedelta(seconds=5))
    assert later["PodGroup ml/broken"]["metadata"]["annotations"] == {}


def claims_after(claim: Raw, **plan: Any) -> Raw:
    made: Any = SimpleNamespace(**{"evictions": [], "problems": [], "claims": {}, **plan})
    (found,) = carried_out([claim], made)
    return found["status"]  # type: ignore[no-any-return]


def claim(*users: str) -> Raw:
    status = {"allocation": {"devices": {}}, "reservedFor": [{"name": name} for name in users]}
    return {"kind": "ResourceClaim", "metadata": {"name": "c", "namespace": "ml"}, "status": status}


def test_devices_are_written_into_claims_and_freed_by_the_last_user() -> None:
    change = {"allocation": {"devices": {"results": []}}, "reservedFor": [{"name": "b"}]}
    empty = {**claim(), "status": {}}
    assert claims_after(empty, claims={"ml/c": change}) == change
    assert claims_after(claim("a", "b"), evictions=["ml/a"]) == claim("b")["status"]
    assert claims_after(claim("a"), evictions=["ml/a"]) == {"reservedFor": []}
    assert claims_after(claim("a"), evictions=["other/a"]) == claim("a")["status"]
