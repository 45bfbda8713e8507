"""The control plane that tests share: nodes and pods live on it as on a real cluster, and RBAC guards it."""

from plane.plane import Plane
from tests.plane.api import Api, bind, eventually, make_namespace, make_node, make_pod, phase


def condition(api: Api, path: str, kind: str) -> str | None:
    conditions = api.call("GET", path).content["status"].get("conditions", [])
    return next((one["status"] for one in conditions if one["type"] == kind), None)


def test_a_node_becomes_ready_with_the_capacity_that_it_was_given(plane: Plane) -> None:
    api = Api(plane)
    node = make_node(api, "plane-ready")

    eventually(lambda: condition(api, node, "Ready") == "True")

    status = api.call("GET", node).content["status"]
    assert status["capacity"] == status["allocatable"] == {"cpu": "4", "memory": "8Gi", "pods": "110"}
    assert {address["type"] for address in status["addresses"]} == {"InternalIP", "Hostname"}


def test_a_bound_pod_runs_completes_after_its_time_and_goes_when_deleted(plane: Plane) -> None:
    api = Api(plane)
    namespace = make_namespace(api, "plane-life")
    make_node(api, "plane-life")
    short = make_pod(api, namespace, "short", {"maniple.dev/run-for": "200ms"})
    endless = make_pod(api, namespace, "endless")
    waiting = make_pod(api, namespace, "waiting")

    bind(api, short, "plane-life")
    bind(api, endless, "plane-life")
    eventually(lambda: phase(api, short) == "Succeeded")
    eventually(lambda: phase(api, endless) == "Running")

    status = api.call("GET", endless).content["status"]
    assert condition(api, endless, "Ready") == "True"
    assert condition(api, endless, "PodScheduled") == "True"
    assert status["containerStatuses"][0]["ready"]
    assert phase(api, waiting) == "Pending"

    assert api.call("DELETE", endless).status == 200
    eventually(lambda: api.call("GET", endless).status == 404)


def test_a_stranger_is_refused(plane: Plane) -> None:
    assert Api(plane, token="unknown").call("GET", "/api/v1/pods").status == 401
    assert Api(plane, token="").call("GET", "/api/v1/pods").status == 403


def test_a_service_account_may_do_what_its_role_says_and_no_more(plane: Plane) -> None:
    api = Api(plane)
    namespace = make_namespace(api, "plane-rbac")
    api.create(f"{namespace}/serviceaccounts", {"metadata": {"name": "reader"}})
    request = api.create(f"{namespace}/serviceaccounts/reader/token", {"spec": {}})
    reader = Api(plane, token=request["status"]["token"])
    assert reader.call("GET", f"{namespace}/pods").status == 403

    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/plane-rbac"
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    api.create(f"{rbac}/roles", {"metadata": {"name": "reader"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    subjects = [{"kind": "ServiceAccount", "name": "reader", "namespace": "plane-rbac"}]
    body = {"metadata": {"name": "reader"}, "roleRef": role, "subjects": subjects}
    api.create(f"{rbac}/rolebindings", body)

    eventually(lambda: reader.call("GET", f"{namespace}/pods").status == 200)
    assert reader.call("GET", "/api/v1/pods").status == 403
    assert reader.call("DELETE", f"{namespace}/pods").status == 403
