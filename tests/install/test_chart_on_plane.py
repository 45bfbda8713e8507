"""A real API server takes everything that the chart renders, and Helm installs, upgrades and uninstalls it there."""

import asyncio
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import pytest

from maniple.kube import crds
from plane.control import free_port
from plane.plane import Plane
from tests.install.applying import Applying
from tests.install.chart import (
    CHART,
    NAMESPACE,
    PLAIN,
    PROFILES,
    RELEASE,
    ROOT,
    Raw,
    call,
    container,
    objects,
    one,
    rendered,
)
from tests.install.monitoring import definitions
from tests.install.test_chart import FULL
from tests.live import kai_objects
from tests.live import objects as volcano_objects
from tests.live.audit import refused, used
from tests.live.binder import binding
from tests.live.maniple_scenarios import OPTIONS
from tests.live.scenarios import runs
from tests.live.test_permissions import running
from tests.live.worlds import real_world, until
from tests.plane.api import Api, eventually

BASE = f"{RELEASE}:{NAMESPACE}:scheduler"
OPERATOR = {name: {"enabled": True} for name in ("serviceMonitor", "prometheusRule", "dashboard")}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def establish(api: Api, items: list[Raw]) -> None:
    """Create definitions and wait until the server serves them."""
    for item in items:
        api.create(DEFINITIONS, item)

    def served() -> bool:
        groups = [group["name"] for group in api.call("GET", "/apis").content["groups"]]
        return all(item["spec"]["group"] in groups and _serves(api, item["spec"]) for item in items)

    eventually(served)


def _serves(api: Api, spec: Raw) -> bool:
    path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}"
    answer = api.call("GET", path)
    kinds = [row["kind"] for row in answer.content["resources"]] if answer.status == 200 else []
    return spec["names"]["kind"] in kinds


def test_the_server_takes_every_object_and_admits_the_pods(own_plane: Plane, helm: Path) -> None:
    api = Api(own_plane)
    establish(api, definitions())
    applying = Applying(api)
    for folder in PROFILES:
        applying.accepted(objects((ROOT / "deploy" / folder / "maniple.yaml").read_text(encoding="utf-8")))
    webhook = objects((ROOT / "deploy" / "admission" / "admission.yaml").read_text(encoding="utf-8"))
    applying.accepted(webhook)
    _admitted(api, one(webhook, "Deployment")["spec"]["template"])
    for dialect in crds.DIALECTS:
        text = (ROOT / "deploy" / "crds" / f"{dialect}.yaml").read_text(encoding="utf-8")
        applying.accepted(objects(text))
    for values in ({**PLAIN, **OPERATOR}, {**FULL, **OPERATOR}):
        items = rendered(helm, values)
        applying.accepted(items)
        _admitted(api, one(items, "Deployment")["spec"]["template"])


def _admitted(api: Api, template: Raw) -> None:
    """The namespace enforces the restricted standard; a Deployment is never refused for it, a pod is."""
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    metadata = {**template["metadata"], "generateName": "scheduler-"}
    api.create(pods, {"metadata": metadata, "spec": template["spec"]})
    careless = json.loads(json.dumps(template["spec"]))
    del careless["containers"][0]["securityContext"]
    answer = api.call("POST", pods, {"metadata": metadata, "spec": careless})
    assert answer.status == 403, answer


def test_helm_installs_upgrades_and_uninstalls(own_plane: Plane, helm: Path, tmp_path: Path) -> None:
    api = Api(own_plane)
    # Volcano is there already: its definition stays as it is.
    foreign = next(one.body for one in crds.manifests("volcano") if one.name.startswith("queues."))
    foreign["metadata"]["labels"] = {"app": "volcano"}
    establish(api, [foreign, *definitions()])
    place = ["--namespace", NAMESPACE, "--kubeconfig", str(own_plane.kubeconfig)]

    def do(*words: str, values: Raw | None = None) -> None:
        call(helm, *words, *place, values=values, home=tmp_path)

    do("install", RELEASE, str(CHART), "--create-namespace", values=OPERATOR)
    assert api.call("GET", f"{DEFINITIONS}/{foreign['metadata']['name']}").content["metadata"]["labels"] == {
        "app": "volcano"
    }
    ours = [one.name for one in crds.manifests() if one.name != foreign["metadata"]["name"]]
    assert all(api.call("GET", f"{DEFINITIONS}/{name}").status == 200 for name in ours)
    role = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{BASE}"
    assert api.call("GET", role).status == 200
    deployment = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{RELEASE}"
    do("upgrade", RELEASE, str(CHART), values={"replicaCount": 3, "configuration": "actions: allocate\n"})
    assert api.call("GET", deployment).content["spec"]["replicas"] == 3
    config = api.call("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/{RELEASE}").content["data"]
    assert config == {"scheduler.conf": "actions: allocate\n"}
    do("rollback", RELEASE, "1")
    assert api.call("GET", deployment).content["spec"]["replicas"] == 2
    do("uninstall", RELEASE)
    assert api.call("GET", deployment).status == 404
    assert api.call("GET", role).status == 404
    assert all(
        api.call("GET", f"{DEFINITIONS}/{name}").status == 200
        for name in [*ours, foreign["metadata"]["name"]]
    )


# -- with nothing but what the chart installs --------------------------------------------------------------------------

FAST = {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}


@pytest.mark.parametrize("profile", PROFILES)
def test_two_replicas_schedule_and_one_takes_over(
    audited_plane: Plane, helm: Path, tmp_path: Path, profile: str
) -> None:
    values = {**PLAIN, "profile": profile, "leaderElection": FAST, "schedulerNames": OPTIONS["schedulerName"]}
    items = rendered(helm, values)
    Applying(Api(audited_plane)).accepted(items)
    ports = [free_port(), free_port()]
    commands = [_command(audited_plane, items, tmp_path, port) for port in ports]
    kai = profile == "kai"
    gang = kai_objects.gang if kai else volcano_objects.gang
    node = kai_objects.node("n1", 16) if kai else volcano_objects.node("n1", 16)
    # The base role creates none.
    queues = [kai_objects.queue()] if kai else [volcano_objects.queue(name) for name in ("root", "default")]

    async def main() -> None:
        async with (
            real_world(audited_plane, {"maniple": ""}.get(profile, profile)) as world,
            AsyncExitStack() as stack,
        ):
            if kai:
                await stack.enter_async_context(binding(world.direct_port()))
            await world.create([*queues, node, *gang("train", 4)])
            leader = stack.enter_context(_started(*commands[0]))
            await until(lambda: runs(world, "train", 4), "the gang runs")
            stack.enter_context(_started(*commands[1]))
            await until(lambda: asyncio.to_thread(_is_ready, ports[1]), "the standby is ready")
            assert [_leads(port) for port in ports] == [True, False]
            leader.kill()
            await world.create(gang("next", 4))
            await until(lambda: runs(world, "next", 4), "the other one takes over")
            assert _leads(ports[1])

    asyncio.run(main())
    assert refused(audited_plane) <= {("", "configmaps", "list")}
    assert used(audited_plane) >= {
        ("coordination.k8s.io", "leases", verb) for verb in ("create", "get", "patch")
    }


@contextmanager
def _started(command: list[str], log: Path) -> Iterator["subprocess.Popen[str]"]:
    with log.open("w") as output, running(command, output) as process:
        yield process


def _get(port: int, path: str) -> tuple[int, str]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


def _is_ready(port: int) -> bool:
    """As the probes of the Deployment see it."""
    return [_get(port, path)[0] for path in ("/healthz", "/readyz")] == [200, 200]


def _leads(port: int) -> bool:
    return "maniple_leader 1.0" in _get(port, "/metrics")[1].splitlines()


def _command(plane: Plane, items: list[Raw], folder: Path, port: int) -> tuple[list[str], Path]:
    """The container's command, with the service account's token instead of the mounted one."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{RELEASE}/token"
    token = Api(plane).create(path, {"spec": {}})["status"]["token"]
    kubeconfig = plane.write_kubeconfig(folder / "kubeconfig", "maniple", token)
    conf = folder / "scheduler.conf"
    conf.write_text(one(items, "ConfigMap")["data"]["scheduler.conf"])
    instead = {
        "--in-cluster": f"--kubeconfig={kubeconfig}",
        "--conf=/etc/maniple/scheduler.conf": f"--conf={conf}",
    }
    # Both are on one machine here.
    instead["--listen=:8080"] = f"--listen=127.0.0.1:{port}"
    assert instead.keys() <= set(container(items)["args"])
    words = [instead.get(word, word) for word in container(items)["args"]]
    code = f"from maniple.cli.main import main; main({words!r})"
    return [sys.executable, "-c", code], folder / f"log-{port}"
