"""Credential plugins: what they are told, how long their answer counts, and what happens when they fail."""

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from maniple.kube import credentials
from maniple.kube.configuration import Configuration, load_configuration
from maniple.kube.credentials import ExecPlugin
from maniple.kube.errors import ApiError, KubeconfigError
from maniple.kube.kinds import PODS
from maniple.kube.kubeconfig import ExecPart, Origin, UserPart
from maniple.objects.core import Pod
from tests.kube.fake_server import Answer, FakeServer, status
from tests.kube.test_configuration import SECRET, write

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


class Plugin:
    """A small script that counts its runs, keeps what it was told, and prints what the test wants."""

    def __init__(self, directory: Path, *, fails: str = "") -> None:
        self._directory = directory
        self.path = directory / "plugin"
        self.path.write_text(
            f"#!{sys.executable}\n"
            "import json, os, pathlib, sys\n"
            f"here = pathlib.Path({str(directory)!r})\n"
            "with (here / 'runs').open('a') as runs:\n"
            "    told = {'info': json.loads(os.environ['KUBERNETES_EXEC_INFO']), 'args': sys.argv[1:]}\n"
            "    runs.write(json.dumps({**told, 'extra': os.environ.get('EXTRA'), 'input': sys.stdin.read()}) + '\\n')\n"
            f"{fails}\n"
            "print((here / 'answer').read_text())\n"
        )
        self.path.chmod(0o755)
        self.answer(token="first")

    def answer(self, api_version: str = V1, kind: str = "ExecCredential", **fields: Any) -> None:
        content = {"apiVersion": api_version, "kind": kind, "status": fields}
        (self._directory / "answer").write_text(json.dumps(content))

    def say(self, text: str) -> None:
        (self._directory / "answer").write_text(text)

    @property
    def runs(self) -> list[Any]:
        file = self._directory / "runs"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def configuration(self, cluster: Any = None, **fields: Any) -> Configuration:
        plugin = {"command": str(self.path), "apiVersion": V1, **fields}
        return load_configuration(write(self._directory / "config", {"exec": plugin}, cluster))


def token(configuration: Configuration) -> str | None:
    return asyncio.run(configuration.credentials.current()).authorization


def test_a_plugin_is_run_once_with_its_input(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    configuration = plugin.configuration(
        args=["login", "--quiet"], env=[{"name": "EXTRA", "value": "x"}], interactiveMode="IfAvailable"
    )
    assert [token(configuration), token(configuration)] == ["Bearer first"] * 2
    (told,) = plugin.runs
    assert told["args"] == ["login", "--quiet"]
    assert told["extra"] == "x"
    assert told["input"] == ""
    assert told["info"] == {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False}}


def test_the_older_version_and_what_a_plugin_may_know_about_the_cluster(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.answer(V1BETA1, token="beta")
    extension = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}]
    cluster = {"extensions": extension, "tls-server-name": "other"}
    configuration = plugin.configuration(cluster, apiVersion=V1BETA1, provideClusterInfo=True)
    assert token(configuration) == "Bearer beta"
    assert plugin.runs[0]["info"]["spec"]["cluster"] == {
        "server": "http://127.0.0.1:1",
        "tls-server-name": "other",
        "config": {"audience": "a"},
    }


def test_a_command_with_a_path_is_relative_to_the_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    plugin = Plugin(tmp_path / "there")
    monkeypatch.chdir(tmp_path)
    spec = {"command": "./plugin", "apiVersion": V1}
    write(tmp_path / "there" / "config", {"exec": spec})
    assert token(load_configuration(Path("there/config"))) == "Bearer first"
    monkeypatch.chdir(tmp_path / "there")
    assert token(load_configuration(Path("config"))) == "Bearer first"
    assert len(plugin.runs) == 2


def test_an_answer_counts_until_it_expires(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    now = datetime(2025, 1, 1, tzinfo=UTC)
    user = UserPart(exec=ExecPart(command=str(plugin.path), api_version=V1))
    assert user.exec is not None
    origin = Origin(tmp_path / "config", "users[u].user", user)
    asked = ExecPlugin(origin, user.exec, now=lambda: now)

    async def scenario() -> None:
        nonlocal now
        plugin.answer(token="first", expirationTimestamp="2025-01-01T01:00:00Z")
        assert (await asked.current()).authorization == "Bearer first"
        plugin.answer(token="second")
        now += timedelta(minutes=59)
        assert (await asked.current()).authorization == "Bearer first"
        now += timedelta(minutes=1)
        assert (await asked.current()).authorization == "Bearer second"
        now += timedelta(days=365)
        assert (await asked.current()).authorization == "Bearer second"
        assert len(plugin.runs) == 2

    asyncio.run(scenario())


def test_a_rejected_credential_is_renewed_once_for_all_rejected_requests(tmp_path: Path) -> None:
    async def scenario() -> None:
        plugin = Plugin(tmp_path)
        configuration = plugin.configuration()
        async with FakeServer(Pod) as server, server.client(configuration.credentials) as client:
            await client.list(PODS)
            plugin.answer(token="second")
            server.answers += [Answer(401, status(401, "Unauthorized"))] * 5
            server.gate.clear()
            requests = [asyncio.create_task(client.list(PODS)) for _ in range(5)]
            await asyncio.sleep(0)
            server.gate.set()
            await asyncio.gather(*requests)
            assert len(plugin.runs) == 2
            used = {asked.headers["Authorization"] for asked in server.requests}
            assert used == {"Bearer first", "Bearer second"}

    asyncio.run(scenario())


def test_an_older_credential_that_is_refused_late_does_not_cost_the_newer_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        plugin = Plugin(tmp_path)
        asked = plugin.configuration().credentials
        first = await asked.current()
        assert asked.rejected(first)
        second = await asked.current()
        assert asked.rejected(first)
        assert await asked.current() is second
        assert len(plugin.runs) == 2

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (f"{SECRET}", "its output is not an ExecCredential"),
        (
            json.dumps({"apiVersion": V1, "kind": "Secret", "status": {"token": SECRET}}),
            "not an ExecCredential of",
        ),
        (json.dumps({"apiVersion": V1BETA1, "kind": "ExecCredential"}), "not an ExecCredential of"),
        (json.dumps({"apiVersion": V1, "kind": "ExecCredential"}), "has no status"),
        (json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {}}), "neither a token nor"),
        (
            json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"clientKeyData": SECRET}}),
            "a key without a certificate",
        ),
        (
            json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": f"{SECRET}\n\nx y"}}),
            "the token contains invalid",
        ),
        (
            json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": [SECRET]}}),
            r"not an ExecCredential \(\$\.status\.token\)",
        ),
    ],
)
def test_an_answer_that_is_none_is_not_quoted(tmp_path: Path, answer: str, message: str) -> None:
    plugin = Plugin(tmp_path)
    plugin.say(answer)
    with pytest.raises(KubeconfigError, match=message) as refused:
        token(plugin.configuration())
    assert str(refused.value).startswith(f"{tmp_path / 'config'}: users[u].user.exec.command: ")
    assert SECRET not in str(refused.value)


def test_a_plugin_that_fails_or_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    failing = Plugin(tmp_path, fails="sys.exit(3)").configuration(installHint="get it at the shop\n")
    with pytest.raises(KubeconfigError, match=r"plugin: ended with code 3; get it at the shop$"):
        token(failing)
    missing = Plugin(tmp_path).configuration(command="no-such-plugin", installHint="get it at the shop")
    with pytest.raises(
        KubeconfigError, match=r"no-such-plugin: No such file or directory; get it at the shop$"
    ):
        token(missing)


def test_a_plugin_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "EXEC_SECONDS", 0.2)
    plugin = Plugin(tmp_path, fails="import time; time.sleep(600)")
    with pytest.raises(KubeconfigError, match="no answer within 0 s"):
        token(plugin.configuration())


def test_a_request_without_credentials_is_an_answer_not_a_crash(tmp_path: Path) -> None:
    async def scenario() -> None:
        failing = Plugin(tmp_path, fails="sys.exit(3)").configuration()
        async with FakeServer(Pod) as server, server.client(failing.credentials) as client:
            with pytest.raises(ApiError, match=r"^Unreachable: .*ended with code 3"):
                await client.list(PODS)
            assert server.requests == []

    asyncio.run(scenario())
