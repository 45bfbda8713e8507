"""The control plane that tests use in turn: each gets it as if it were new, or gets a new one."""

import json
import os
import signal
from typing import Any

import pytest

from plane.reuse import ReusedPlane
from tests.live_support import ALL
from tests.plane.api import Api, bind, eventually, make_namespace, make_node, make_pod, phase

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
HELD = {"finalizers": ["example.com/held"]}


def listed(api: Api) -> dict[str, set[str]]:
    """The uids of all objects of every kind that the server serves, by path."""
    versions = ["/api/v1"]
    for group in api.call("GET", "/apis").content["groups"]:
        versions += [f"/apis/{version['groupVersion']}" for version in group["versions"]]
    paths = [
        f"{version}/{kind['name']}"
        for version in versions
        for kind in api.call("GET", version).content["resources"]
        if "list" in kind["verbs"] and kind["name"] != "componentstatuses"  # not stored
    ]
    return {path: {item["metadata"]["uid"] for item in _items(api, path)} for path in paths}


def _items(api: Api, path: str) -> list[dict[str, Any]]:
    # A kind whose definition has just come is answered with "try again" for a moment.
    eventually(lambda: api.call("GET", path).status == 200)
    items: list[dict[str, Any]] = api.call("GET", path).content["items"]
    return items


def make_widgets(api: Api) -> None:
    """A kind of the test's own, and an object of it that a finalizer holds."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    body = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    api.create(DEFINITIONS, body)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one", **HELD}}
    eventually(lambda: api.call("POST", "/apis/example.com/v1/widgets", widget).status == 201)


def use(api: Api) -> None:
    """What tests do: create, change and delete, in and outside namespaces, and leave some of it half deleted."""
    namespace = make_namespace(api, "team")
    make_node(api, "n1")
    pod = make_pod(api, namespace, "same")
    bind(api, pod, "n1")
    eventually(lambda: phase(api, pod) == "Running")
    api.create(f"{namespace}/configmaps", {"metadata": {"name": "held", **HELD}})
    assert api.call("DELETE", f"{namespace}/configmaps/held").status == 200
    lease = {"metadata": {"name": "maniple"}, "spec": {"holderIdentity": "another"}}
    api.create("/apis/coordination.k8s.io/v1/namespaces/team/leases", lease)
    api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 9})
    api.create(f"{RBAC}/clusterroles", {"metadata": {"name": "reader"}, "rules": []})
    service = {"metadata": {"name": "web"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    api.create(f"{namespace}/services", service)
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "research"}}
    api.create("/apis/scheduling.volcano.sh/v1beta1/queues", queue)
    make_widgets(api)
    labels = {"metadata": {"labels": {"changed": "yes"}}}
    assert api.call("PATCH", "/api/v1/namespaces/default", labels, content="merge-patch+json").status == 200
    assert api.call("DELETE", f"{RBAC}/clusterroles/view").status == 200
    assert api.call("DELETE", f"{DEFINITIONS}/topologies.kai.scheduler").status == 200


def test_after_wiping_the_plane_is_as_it_was_given_to_the_test_before(reused_plane: ReusedPlane) -> None:
    plane = reused_plane.clean(ALL)
    starts, before = reused_plane.starts, listed(Api(plane))
    assert before["/apis/scheduling.volcano.sh/v1beta1/queues"] == set()
    use(Api(plane))
    assert {
        "/registry/configmaps/team/held",
        "/registry/example.com/widgets/one",
        "/registry/namespaces/default",
        "/registry/pods/team/same",
        "/registry/clusterroles/view",
    } <= {*reused_plane.leftovers()}

    assert reused_plane.clean(ALL) is plane
    assert reused_plane.starts == starts
    assert reused_plane.leftovers() == []
    api = Api(plane)
    assert listed(api) == before
    assert "changed" not in api.call("GET", "/api/v1/namespaces/default").content["metadata"]["labels"]
    use(api)


def test_definitions_go_when_the_next_test_wants_others(reused_plane: ReusedPlane) -> None:
    def names(furnishing: str) -> set[str]:
        return {item["spec"]["group"] for item in _items(Api(reused_plane.clean(furnishing)), DEFINITIONS)}

    assert "scheduling.run.ai" in names("kai")
    assert "scheduling.run.ai" not in names("volcano")
    assert names("") == set()


def test_what_the_server_remembers_is_not_wiped_but_left_behind(reused_plane: ReusedPlane) -> None:
    plane = reused_plane.clean()
    api = Api(plane)
    quota = {"metadata": {"name": "all"}, "spec": {"hard": {"pods": "0"}}}
    api.create(f"{make_namespace(api, 'team')}/resourcequotas", quota)
    assert reused_plane.clean() is not plane


@pytest.mark.parametrize("name", ["etcd", "kube-apiserver"])
def test_a_plane_that_lost_a_process_is_replaced(reused_plane: ReusedPlane, name: str) -> None:
    plane = reused_plane.clean()
    record = json.loads((plane.directory / "processes.json").read_text())
    os.kill(record["members"][name][0], signal.SIGKILL)
    another = reused_plane.clean()
    assert another is not plane
    assert not plane.directory.exists()
    assert reused_plane.leftovers() == []


def test_a_plane_whose_server_was_paused_is_replaced(reused_plane: ReusedPlane) -> None:
    plane = reused_plane.clean()
    plane.pause()
    assert reused_plane.clean() is not plane
