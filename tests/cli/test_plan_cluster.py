"""`maniple plan --kubeconfig` reads a cluster by itself: lists only, and what cannot be listed costs only itself."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from maniple.cli.cluster_input import first_kinds
from maniple.cli.main import main
from maniple.cli.read import read_paths
from maniple.kube.kinds import KINDS
from maniple.live import volcano
from maniple.objects.core import Namespace, Node, Pod, PriorityClass
from maniple.objects.meta import Object
from maniple.objects.owners import owner_kinds
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue
from maniple.workloads.kinds import TABLE
from tests.kube.fake_server import Answer, FakeServer, status

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"
SERVED = (Node, Pod, VolcanoQueue, VolcanoPodGroup, PriorityClass, Namespace)


@contextmanager
def serving(*kinds: type[Object]) -> Iterator[FakeServer]:
    """The server, in a thread of its own: the command has an event loop itself."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> FakeServer:
        return await FakeServer(*kinds).__aenter__()

    server = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def fill(server: FakeServer, path: Path = QUICKSTART) -> None:
    structs = {(kind.group, struct.kind): struct for struct, kind in KINDS.items()}
    with open("/dev/null", "rb") as nothing:
        given = read_paths([str(path)], nothing).objects
    for item in given:
        struct = structs[item["apiVersion"].rpartition("/")[0], item["kind"]]
        name, namespace = item["metadata"]["name"], item["metadata"].get("namespace", "default")
        parts = {part: item[part] for part in ("spec", "status") if part in item}
        raw = server.put(struct, f"{namespace}/{name}" if struct.namespaced else name, **parts)
        raw["metadata"] |= {
            key: value for key, value in item["metadata"].items() if key not in raw["metadata"]
        }
        del raw["apiVersion"], raw["kind"]  # as a real server's lists have them


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving(*SERVED) as found:
        fill(found)
        yield found


@pytest.fixture
def kubeconfig(server: FakeServer, tmp_path: Path) -> Path:
    file = tmp_path / "config"
    parts: dict[str, Any] = {
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "here",
    }
    file.write_text(json.dumps(parts))
    return file


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["plan", *map(str, arguments)])


def test_the_plan_of_a_cluster_is_that_of_its_objects(server: FakeServer, kubeconfig: Path) -> None:
    result = run("--kubeconfig", kubeconfig)
    assert result.exit_code == 0
    assert result.stdout == run(QUICKSTART).stdout
    assert "note: profile volcano, from 20 pending pods with schedulerName 'volcano'" in result.stderr


def test_it_only_ever_lists(server: FakeServer, kubeconfig: Path) -> None:
    run("--kubeconfig", kubeconfig)
    assert {asked.method for asked in server.requests} == {"GET"}
    assert not any("watch" in asked.query for asked in server.requests)
    assert {asked.headers.get("Authorization") for asked in server.requests} == {"Bearer secret"}


def test_a_context_is_enough_and_a_wrong_one_is_named(
    server: FakeServer, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    assert run("--context", "here").exit_code == 0
    result = run("--context", "there")
    assert result.exit_code == 2
    assert "there" in result.stderr


def test_a_new_job_is_planned_on_the_cluster_as_it_is(server: FakeServer, kubeconfig: Path) -> None:
    server.remove(VolcanoPodGroup, "research/sweep")
    for number in range(6):
        server.remove(Pod, f"research/sweep-trial-{number}")
    result = run(
        "--kubeconfig", kubeconfig, QUICKSTART / "sweep.yaml", "--job", "research/sweep", "-o", "name"
    )
    assert result.stdout == "podgroup/research/sweep\n"


def test_kinds_that_are_not_served_are_told_with_what_that_costs(
    server: FakeServer, kubeconfig: Path
) -> None:
    (line,) = [line for line in run("--kubeconfig", kubeconfig).stderr.splitlines() if "not served" in line]
    assert line.startswith("note: not served by this cluster, skipped: ")
    assert "hypernodes.topology.volcano.sh (there is no network topology)" in line
    assert "resourceclaims.resource.k8s.io (pods with resource claims are pending)" in line
    assert "scheduling.run.ai" not in line  # which the profile does not read


def test_kinds_that_may_not_be_listed_are_told_with_what_that_costs(
    server: FakeServer, kubeconfig: Path
) -> None:
    refusal = status(403, "Forbidden", "priorityclasses is forbidden: User u cannot list it")
    server.answers.append(Answer(403, refusal, ending="/priorityclasses"))
    result = run("--kubeconfig", kubeconfig)
    assert result.exit_code == 0
    assert (
        "warning: priorityclasses.scheduling.k8s.io: priorityclasses is forbidden: User u cannot list it; skipped:"
        " priorities of new pods and of groups are those in their specs\n"
    ) in result.stderr
    assert "15 tasks bound" in result.stdout


@pytest.mark.parametrize("ending", ["/pods", "/nodes"])
def test_there_is_no_plan_without_pods_and_nodes(server: FakeServer, kubeconfig: Path, ending: str) -> None:
    server.answers.append(Answer(403, status(403, "Forbidden", "you may not"), ending=ending))
    result = run("--kubeconfig", kubeconfig)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert f"{ending[1:]}: you may not; there is no plan without" in result.stderr


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (Answer(401, status(401, "Unauthorized", "who are you"), ending="/version"), "401 Unauthorized"),
        (Answer(400, status(400, "BadRequest", "nonsense"), ending="/pods"), "400 BadRequest"),
        (Answer(200, b"not json", ending="/pods"), "unreadable list"),
    ],
)
def test_a_server_that_fails_is_one_error(
    server: FakeServer, kubeconfig: Path, answer: Answer, word: str
) -> None:
    server.answers.append(answer)
    result = run("--kubeconfig", kubeconfig)
    assert result.exit_code == 2
    assert word in result.stderr
    assert "Traceback" not in result.output
    assert "secret" not in result.output


def test_a_list_that_expires_halfway_begins_again(server: FakeServer, kubeconfig: Path) -> None:
    for number in range(1200):
        server.put(Namespace, f"n-{number}")
    server.answers.append(Answer(410, status(410, "Expired"), ending="/namespaces", method="PUT"))
    assert "15 tasks bound" in run("--kubeconfig", kubeconfig).stdout
    assert len(server.asked("GET", "/namespaces")) == 3


def test_a_server_that_is_not_there_is_one_error(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c"}}],
                "current-context": "x",
            }
        )
    )
    result = run("--kubeconfig", file)
    assert result.exit_code == 2
    assert "http://127.0.0.1:9: Unreachable: cannot connect" in result.stderr


def test_the_kinds_are_those_that_the_running_scheduler_watches() -> None:
    assert first_kinds("volcano", shard=False, new_objects=False) == [
        *dict.fromkeys((*volcano.KINDS, *owner_kinds(TABLE)))
    ]
    assert set(first_kinds(None, shard=False, new_objects=False)) == {
        *first_kinds("volcano", shard=False, new_objects=False),
        *first_kinds("kai", shard=False, new_objects=False),
    }
