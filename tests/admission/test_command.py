"""`maniple admission`: its usage, and that it works with exactly the roles of deploy/admission."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from maniple.admission.registration import MUTATING, VALIDATING
from maniple.cli.main import main
from maniple.kube import crds
from maniple.kube.client import Client
from maniple.kube.configuration import load_configuration
from maniple.kube.errors import ApiError
from maniple.kube.kinds import resource_of
from plane.control import free_port
from plane.plane import Plane
from tests.admission.scene import Raw, group, namespace, pod, queue
from tests.live.audit import refused, used
from tests.live.test_permissions import PATHS
from tests.live.worlds import until
from tests.plane.api import Api

ROOT = Path(__file__).parent.parent.parent
MANIFEST = ROOT / "deploy" / "admission" / "admission.yaml"
ACCOUNT = "system:serviceaccount:maniple-system:maniple-admission"
ROLE = "maniple:maniple-system:admission"
NAME = "maniple-admission.maniple-system"


def run(*words: str) -> Any:
    return CliRunner().invoke(main, ["admission", *words])


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """Of a cluster that does not answer."""
    content = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{free_port()}"}}],
        "users": [{"name": "u", "user": {}}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return str(file)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--service", "hook"], "name the cluster: --kubeconfig, --context or --in-cluster"),
        (["--in-cluster", "--context", "x"], "--in-cluster takes neither --kubeconfig nor --context"),
        (["--context", "x"], "--service NAME, or --url URL"),
        (["--context", "x", "--service", "hook", "--url", "https://h:1"], "--service NAME, or --url URL"),
        (["--context", "x", "--url", "http://h:1"], "--url 'http://h:1': expected https://HOST:PORT"),
        (["--context", "x", "--url", "https://h:1/path"], "expected https://HOST:PORT"),
        (["--context", "x", "--service", "hook", "--listen", "nowhere"], "'nowhere' is not an address"),
        (["--context", "x", "--service", "hook", "--profile", "yunikorn"], "unknown profile 'yunikorn'"),
        (
            ["--context", "x", "--service", "hook", "--fail", "maybe"],
            "'maybe' is not one of 'open', 'closed'",
        ),
    ],
)
def test_bad_usage(words: list[str], message: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert message in result.output


def test_a_configuration_that_is_wrong_is_named(tmp_path: Path, kubeconfig: str) -> None:
    conf = tmp_path / "conf"
    conf.write_text("policy: {queueAccess: shut}\n")
    result = run("--kubeconfig", kubeconfig, "--service", "hook", "--conf", str(conf))
    assert result.exit_code == 2
    assert "policy.queueAccess: must be one of open, closed" in result.output


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, kubeconfig: str) -> None:
    for name in [*sys.modules]:
        if name.startswith(("maniple.admission.", "cryptography")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    result = run("--kubeconfig", kubeconfig, "--service", "hook")
    assert result.exit_code == 2
    assert "pip install 'maniple[admission]'" in result.output


# -- on a real API server ---------------------------------------------------------------------------------------------


def token_of_the_account(plane: Plane) -> str:
    api = Api(plane)
    api.create("/api/v1/namespaces", {"metadata": {"name": "maniple-system"}})
    for item in yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8")):
        if item["kind"] in PATHS:
            api.create(PATHS[item["kind"]], item)
    answer = api.create(f"{PATHS['ServiceAccount']}/maniple-admission/token", {"spec": {}})
    return str(answer["status"]["token"])


def allowed() -> set[tuple[str, str, str]]:
    return {
        (one, resource, verb)
        for item in yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8"))
        if item["kind"] in ("ClusterRole", "Role")
        for rule in item["rules"]
        for one in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@contextmanager
def process(words: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    code = f"from maniple.cli.main import main; main({words!r})"
    with log.open("w") as output:
        one = subprocess.Popen([sys.executable, "-c", code], stdout=output, stderr=subprocess.STDOUT)
        try:
            yield one
        finally:
            one.kill()
            one.wait()


def test_the_roles_are_enough_and_no_more_than_are_used(audited_plane: Plane, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    token, port = token_of_the_account(audited_plane), free_port()
    kubeconfig = audited_plane.write_kubeconfig(tmp_path / "kubeconfig", "admission", token)
    words = ["admission", f"--kubeconfig={kubeconfig}", f"--url=https://127.0.0.1:{port}", f"--name={NAME}"]
    words += [
        f"--listen=127.0.0.1:{port}",
        "--namespace=maniple-system",
        f"--owner-role={ROLE}",
        "--log-format=json",
    ]
    log = tmp_path / "output"

    async def scenario() -> int | None:
        async with Client(load_configuration(audited_plane.kubeconfig)) as client:
            async for _ in crds.install(client, crds.manifests()):
                pass

            async def refusal(raw: Raw, *, dry: bool = False) -> str:
                path = resource_of(raw).path_in(raw["metadata"].get("namespace", ""))
                query = {"dryRun": "All"} if dry else None
                try:
                    await client.request("POST", path, query=query, body=raw, idempotent=False)
                except ApiError as error:
                    return error.message
                return ""

            async def in_force() -> bool:
                assert one.poll() is None
                return "gpu-fraction" in await refusal(
                    pod("bad", annotations={"gpu-fraction": "7"}), dry=True
                )

            assert await refusal(namespace()) == ""
            with process(words, log) as one:
                await until(in_force, "the webhook is in force")
                # A namespace and queues that the caches may not have yet.
                for raw in (queue("gold"), namespace("new"), group("g", "gold", "new")):
                    assert await refusal(raw) == ""
                assert "'glod' does not exist" in await refusal(group("h", "glod"))
                assert "'glod' does not exist" in await refusal(
                    {**group("h", "glod"), "apiVersion": "scheduling.run.ai/v2alpha2"}
                )
                await _spoil(client)
                found = await client.get(VALIDATING, NAME)
                assert found["metadata"]["ownerReferences"][0]["name"] == ROLE
                one.terminate()
                return await asyncio.to_thread(one.wait)

    try:
        assert asyncio.run(scenario()) == 0
    except AssertionError as error:
        raise AssertionError(f"{error}\n{log.read_text()}") from error
    assert token not in log.read_text()
    assert "PRIVATE KEY" not in log.read_text()
    assert not refused(audited_plane, ACCOUNT)
    # A Secret is updated when it is two thirds of its life old; tests of rotation do that.
    rarely = {("", "secrets", "update"), ("", "namespaces", "get")}
    assert allowed() - used(audited_plane, ACCOUNT) <= rarely


async def _spoil(client: Client) -> None:
    """Configurations that someone changed are put right when it looks again, within a minute."""
    both = (VALIDATING, MUTATING)
    for resource in both:
        there = await client.get(resource, NAME)
        changed = [{**one, "timeoutSeconds": 7} for one in there["webhooks"]]
        await client.update(resource, NAME, {**there, "webhooks": changed})

    async def mended() -> bool:
        webhooks = [one for resource in both for one in (await client.get(resource, NAME))["webhooks"]]
        return all(one["timeoutSeconds"] == 5 for one in webhooks)

    await until(mended, "the configurations are as before")
