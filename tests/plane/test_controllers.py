"""Kubernetes' own controllers of workloads on the control plane: they create the pods that Maniple places."""

from typing import Any

import pytest

from tests.live_support import CleanPlane
from tests.plane.api import Api, eventually, make_namespace

SELECTOR = {"matchLabels": {"app": "web"}}


def template(restart: str) -> dict[str, Any]:
    spec = {"restartPolicy": restart, "containers": [{"name": "main", "image": "none"}]}
    return {"metadata": {"labels": {"app": "web"}}, "spec": spec}


ONCE, ALWAYS = template("Never"), template("Always")
WORKLOADS = {
    "jobs": ("/apis/batch/v1", {"parallelism": 3, "completions": 3, "template": ONCE}),
    "deployments": ("/apis/apps/v1", {"replicas": 3, "selector": SELECTOR, "template": ALWAYS}),
    "replicasets": ("/apis/apps/v1", {"replicas": 3, "selector": SELECTOR, "template": ALWAYS}),
    "statefulsets": (
        "/apis/apps/v1",
        {"replicas": 3, "selector": SELECTOR, "template": ALWAYS, "podManagementPolicy": "Parallel"},
    ),
}


@pytest.mark.parametrize("plural", WORKLOADS)
def test_a_workload_gets_its_pods(plural: str, clean_plane: CleanPlane) -> None:
    plane = clean_plane()
    plane.start_controllers()
    api, (root, spec) = Api(plane), WORKLOADS[plural]
    namespace = make_namespace(api, plural)
    api.create(f"{root}/namespaces/{plural}/{plural}", {"metadata": {"name": "three"}, "spec": spec})
    eventually(lambda: len(api.call("GET", f"{namespace}/pods").content["items"]) == 3)


def test_a_job_gets_a_native_group_that_its_pods_name(clean_plane: CleanPlane) -> None:
    plane = clean_plane()
    plane.start_controllers(native_groups=True)
    api = Api(plane)
    namespace = make_namespace(api, "native")
    spec = {"parallelism": 3, "completions": 3, "completionMode": "Indexed", "template": ONCE}
    api.create("/apis/batch/v1/namespaces/native/jobs", {"metadata": {"name": "three"}, "spec": spec})
    eventually(lambda: len(api.call("GET", f"{namespace}/pods").content["items"]) == 3)
    (group,) = api.call("GET", "/apis/scheduling.k8s.io/v1alpha2/namespaces/native/podgroups").content[
        "items"
    ]
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    pods = api.call("GET", f"{namespace}/pods").content["items"]
    assert {one["spec"]["schedulingGroup"]["podGroupName"] for one in pods} == {group["metadata"]["name"]}
