"""RayCluster, RayJob, RayCronJob and RayService."""

from typing import Any

import pytest

from maniple.workloads.expanding import expanded
from maniple.workloads.grouping import member
from maniple.workloads.model import DomainWish, FieldError, Group
from tests.workloads.support import example, groups, members

TEMPLATE: dict[str, Any] = {"spec": {"containers": []}}
TOPOLOGY = {"kai.scheduler/topology": "net", "kai.scheduler/topology-required-placement": "rack"}


def workers(name: str = "workers", **spec: Any) -> dict[str, Any]:
    return {"groupName": name, "template": TEMPLATE, **spec}


def cluster(*groups: dict[str, Any], labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "analysis", "namespace": "ml", "labels": labels or {}},
        "spec": {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [*groups], **spec},
    }


def group(manifest: dict[str, Any]) -> Group:
    (found,) = groups(members(manifest)).values()
    return found


def minimums(found: Group) -> dict[str, int]:
    return {one.name: one.minimum for one in found.sets}


def test_head_and_workers_are_one_gang() -> None:
    found = members(*example("raycluster.yaml"))
    (only,) = groups(found).values()
    assert minimums(only) == {"headgroup": 1, "small": 2, "hosts": 2}
    assert (only.name, only.minimum, only.queue) == ("raycluster:analysis", 5, "default")
    assert {name: one.set_name for name, one in found.items()} == {
        "analysis-head": "headgroup",
        "analysis-small-worker-0": "small",
        "analysis-small-worker-1": "small",
        "analysis-small-worker-2": "small",
        "analysis-hosts-worker-0": "hosts",
        "analysis-hosts-worker-1": "hosts",
    }


def test_pods_are_known_as_kuberay_labels_them() -> None:
    manifest = cluster(workers(replicas=2))
    labels = {
        "ray.io/is-ray-node": "yes",
        "ray.io/cluster": "analysis",
        "ray.io/node-type": "worker",
        "ray.io/group": "workers",
        "ray.io/identifier": "analysis-worker",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    pod = {
        "kind": "Pod",
        "metadata": {"name": "analysis-workers-worker-d8hkj", "namespace": "ml", "labels": labels},
    }
    assert member(pod, [manifest]) == members(manifest)["analysis-workers-worker-0"]


def test_without_the_autoscaler_all_replicas_are_needed() -> None:
    found = group(cluster(workers(replicas=3, minReplicas=1, maxReplicas=4)))
    assert minimums(found) == {"headgroup": 1, "workers": 3}


def test_with_the_autoscaler_a_group_may_start_with_none() -> None:
    found = group(cluster(workers(replicas=2, minReplicas=0), enableInTreeAutoscaling=True))
    assert (found.minimum, minimums(found)) == (1, {"headgroup": 1, "workers": 0})


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({"replicas": 2}, 2),
        ({"replicas": 1, "minReplicas": 3}, 3),
        ({"replicas": 9, "maxReplicas": 4}, 4),
        ({"minReplicas": 2}, 2),
        ({"replicas": 2, "numOfHosts": 3}, 6),
        ({"replicas": 2, "numOfHosts": 0}, 2),
        ({"replicas": 2, "suspend": True}, 0),
        ({}, 0),
    ],
)
def test_replicas_stay_within_the_limits_of_their_group(spec: dict[str, Any], pods: int) -> None:
    found = members(cluster(workers(**spec)))
    assert len(found) == pods + 1
    assert minimums(found["analysis-head"].group)["workers"] == pods


def test_a_template_says_the_topology_of_its_own_pods() -> None:
    template = {"metadata": {"annotations": TOPOLOGY}, **TEMPLATE}
    found = group(cluster(workers(replicas=1), workers("near", replicas=2, template=template)))
    assert found.domain is None
    assert [one.domain for one in found.sets] == [None, None, DomainWish(topology="net", required="rack")]


def test_priority_by_ray_s_own_label() -> None:
    found = group(cluster(workers(replicas=1), labels={"ray.io/priority-class-name": "high"}))
    assert found.priority_class == "high"


def test_a_suspended_cluster_has_no_pods() -> None:
    assert not members(cluster(workers(replicas=1), suspend=True))


def test_the_cluster_of_a_ray_job_is_a_gang_and_its_submitter_is_not_part_of_it() -> None:
    found = members(*example("rayjob.yaml"))
    by_name = groups(found)
    assert [*by_name] == ["raycluster:tune-new", "job:tune"]
    assert minimums(by_name["raycluster:tune-new"]) == {"headgroup": 1, "workers": 2}
    assert by_name["job:tune"].independent
    assert {one.queue for one in by_name.values()} == {"default"}
    assert found["tune-0"].group is by_name["job:tune"]


def test_a_minimum_of_a_ray_job_is_one_of_its_cluster() -> None:
    (manifest,) = example("rayjob.yaml")
    manifest["metadata"]["labels"]["maniple.dev/min-member"] = "2"
    by_name = groups(members(manifest))
    assert (by_name["raycluster:tune-new"].minimum, by_name["job:tune"].minimum) == (2, 1)


def test_a_ray_job_on_a_cluster_that_is_there_only_submits() -> None:
    (manifest,) = example("rayjob.yaml")
    manifest["spec"]["clusterSelector"] = {"ray.io/cluster": "analysis"}
    assert [*members(manifest)] == ["tune-0"]


@pytest.mark.parametrize("mode", ["HTTPMode", "InteractiveMode", "SidecarMode"])
def test_a_ray_job_that_is_submitted_otherwise_has_no_pod_for_it(mode: str) -> None:
    (manifest,) = example("rayjob.yaml")
    manifest["spec"]["submissionMode"] = mode
    assert [*groups(members(manifest))] == ["raycluster:tune-new"]


def test_a_submitter_without_a_template_is_left_to_the_default_scheduler() -> None:
    (manifest,) = example("rayjob.yaml")
    del manifest["spec"]["submitterPodTemplate"]
    (submitter,) = (one for one in expanded(manifest) if one["metadata"]["name"] == "tune-0")
    assert "schedulerName" not in submitter["spec"]


def test_the_clusters_of_a_cron_job_and_a_service() -> None:
    assert [*groups(members(*example("raycronjob.yaml")))] == ["raycluster:nightly-next-new"]
    (only,) = groups(members(*example("rayservice.yaml"))).values()
    assert (only.name, only.queue) == ("raycluster:answers-new", "default")


@pytest.mark.parametrize("file", ["rayjob.yaml", "raycronjob.yaml", "rayservice.yaml"])
def test_what_is_suspended_has_no_pods(file: str) -> None:
    (manifest,) = example(file)
    manifest["spec"]["suspend"] = True
    assert not members(manifest)


@pytest.mark.parametrize(
    ("worker_group", "field"),
    [
        (workers(replicas="2"), "spec.workerGroupSpecs[0].replicas: must be a whole number"),
        (workers(replicas=2, numOfHosts=-1), "spec.workerGroupSpecs[0].numOfHosts: must be a whole number"),
        (
            workers("headgroup"),
            'spec.workerGroupSpecs[0].groupName: must be a name of its own, not "headgroup"',
        ),
        (workers(suspend="yes"), "spec.workerGroupSpecs[0].suspend: must be true or false"),
    ],
)
def test_a_wrong_field_is_named(worker_group: dict[str, Any], field: str) -> None:
    with pytest.raises(FieldError) as error:
        members(cluster(worker_group))
    assert str(error.value).startswith(f"RayCluster ml/analysis: {field}")


def test_a_pod_of_no_group_is_named() -> None:
    labels = {"ray.io/group": "gone"}
    pod = {"kind": "Pod", "metadata": {"name": "stray", "namespace": "ml", "labels": labels}}
    expected = (
        '^Pod ml/stray: metadata.labels.ray.io/group: names no worker group of RayCluster analysis: "gone"'
    )
    with pytest.raises(FieldError, match=expected):
        member(pod, [cluster(workers(replicas=1))])
