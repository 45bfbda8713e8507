"""`maniple plan --kubeconfig` on a real API server: the plan of a cluster is that of its objects, by lists alone."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from maniple.cli.main import main
from maniple.cli.read import read_paths
from maniple.kube.kinds import resource_of
from plane.plane import Plane
from tests.live_support import CleanPlane
from tests.plane.api import Api, eventually

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def maniple(*arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


def applied(api: Api, item: dict[str, Any]) -> None:
    """As `kubectl apply` would: without status, which the cluster reports."""
    bound = item.get("spec", {}).get("nodeName")
    if bound:  # the server would refuse a node that is not there yet: these are left out
        return
    namespace = item["metadata"].get("namespace", "default")
    body = {key: value for key, value in item.items() if key != "status" or item["kind"] == "Node"}
    api.create(resource_of(item).path_in(namespace), body)


@pytest.fixture
def cluster(clean_plane: CleanPlane) -> Plane:
    """A control plane with the quick start on it, except for what runs there."""
    plane = clean_plane()
    api = Api(plane)
    installed = maniple("crds", "--install", "--only", "volcano", "--kubeconfig", plane.kubeconfig)
    assert installed.exit_code == 0, installed.output
    for name in ("research", "production"):
        api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    with open("/dev/null", "rb") as nothing:
        for item in read_paths([str(QUICKSTART)], nothing).objects:
            applied(api, item)
    return plane


def versions(api: Api) -> dict[str, str]:
    pods = api.call("GET", "/api/v1/pods").content["items"]
    return {pod["metadata"]["name"]: pod["metadata"]["resourceVersion"] for pod in pods}


def test_the_plan_is_that_of_the_objects_and_nothing_is_written(cluster: Plane) -> None:
    api = Api(cluster)
    before = versions(api)
    assert len(before) == 20
    result = maniple("plan", "--kubeconfig", cluster.kubeconfig, "--job", "pretrain", "--job", "vision")
    assert result.exit_code == 0, result.output
    assert "note: profile volcano, from 20 pending pods with schedulerName 'volcano'" in result.stderr
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("research/pretrain")]
    assert line.split()[:3] == ["research/pretrain", "research", "8"]
    names = maniple("plan", "--kubeconfig", cluster.kubeconfig, "-n", "research", "-o", "name")
    assert "podgroup/research/sweep" in names.stdout.splitlines()
    assert versions(api) == before


def reader_of(plane: Plane, tmp_path: Path) -> Path:
    """A kubeconfig of somebody who may list pods, nodes, queues and groups, and nothing else."""
    api = Api(plane)
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    api.create(accounts, {"metadata": {"name": "reader"}})
    token = api.create(f"{accounts}/reader/token", {"spec": {}})["status"]["token"]
    rules = [
        {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list"]},
        {"apiGroups": ["scheduling.volcano.sh"], "resources": ["queues", "podgroups"], "verbs": ["list"]},
    ]
    api.create(f"{RBAC}/clusterroles", {"metadata": {"name": "reader"}, "rules": rules})
    binding = {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
    }
    api.create(f"{RBAC}/clusterrolebindings", binding)
    config = yaml.safe_load(Path(plane.kubeconfig).read_text())
    config["users"][0]["user"] = {"token": token}
    file = tmp_path / "reader"
    file.write_text(yaml.safe_dump(config))
    return file


def test_somebody_who_may_list_little_gets_a_plan_and_is_told_what_is_missing(
    cluster: Plane, tmp_path: Path
) -> None:
    reader = reader_of(cluster, tmp_path)
    eventually(lambda: maniple("plan", "--kubeconfig", reader).exit_code == 0)
    result = maniple("plan", "--kubeconfig", reader)
    assert "warning: persistentvolumeclaims: " in result.stderr
    assert "skipped: pods with volumes are pending" in result.stderr
    assert "hypernodes" in result.stderr
    assert "research/pretrain" in result.stdout


def test_a_stranger_is_one_error(plane: Plane, tmp_path: Path) -> None:
    config = yaml.safe_load(Path(plane.kubeconfig).read_text())
    config["users"][0]["user"] = {"token": "unknown"}
    file = tmp_path / "stranger"
    file.write_text(yaml.safe_dump(config))
    result = maniple("plan", "--kubeconfig", file)
    assert result.exit_code == 2
    assert "401" in result.stderr
    assert "unknown" not in result.stderr
