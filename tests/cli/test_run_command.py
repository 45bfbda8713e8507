"""The command `run`: the embedded cluster from start to end, and what it says about wrong usage."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from maniple.cli.main import main
from maniple.cli.planning import shard_among
from maniple.cli.policy_flags import given_policy
from maniple.cli.run import command
from maniple.cli.run_cluster import shard_objects
from maniple.kube.errors import ApiError, UnreachableError
from maniple.objects.kai import KaiConfig, SchedulingShard
from tests.cli import kai_cluster
from tests.kube.fake_server import Answer, FakeServer, status
from tests.live.objects import gang, node, pod

NOWHERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {"token": "x"}}],
}
FAST = ["--virtual-time", "--until-done"]

VOLCANO = ("--profile", "volcano")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["run", *arguments])


def written(path: Path, *raws: object) -> str:
    path.write_text(json.dumps(list(raws)))
    return str(path)


def test_the_example_runs_to_its_end_and_shows_what_it_promises() -> None:
    result = run(*FAST)
    assert result.exit_code == 0, result.output
    lines = [line.split("s  ", 1)[1].strip() for line in result.output.splitlines()]
    story = [
        "8 of 8 bound",  # a gang at once
        "production/vision       waits: ",  # another has to wait
        "gpu-3, gpu-4            joined the cluster",
        "production/vision       2 of 2 bound: gpu-3, gpu-4",
        "research/pretrain       done: 8 tasks succeeded",
        "all work is done",
    ]
    places = [next(i for i, line in enumerate(lines) if part in line) for part in story]
    assert places == sorted(places)
    assert any("failed: 1 of 1 task" in line for line in lines)


def test_the_example_runs_from_any_folder_and_twice_the_same(tmp_path: Path) -> None:
    code = "from maniple.cli.main import main; main(['run', '--virtual-time', '--until-done'])"
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert outputs[0] == outputs[1]
    assert "all work is done" in outputs[0]


def test_own_objects_are_run_instead_of_the_example(tmp_path: Path) -> None:
    ending = [pod(f"train-{n}", "train", **{"maniple.dev/run-for": "1h"}) for n in range(2)]
    path = written(tmp_path / "mine.json", node("n1"), gang("train", 2)[0], *ending)
    result = run(*VOLCANO, "-f", path, *FAST)
    assert result.exit_code == 0, result.output
    assert "team/train" in result.output
    assert " 3600." in result.output
    assert "pretrain" not in result.output


def test_when_something_waits_for_ever_it_ends_with_one_and_says_what(tmp_path: Path) -> None:
    result = run(*VOLCANO, "-f", written(tmp_path / "mine.json", node("n1", 4), *gang("train", 8)), *FAST)
    assert result.exit_code == 1
    assert "8 pods are left: team/train-0" in result.output
    assert "Insufficient cpu" in result.output


def test_work_that_runs_for_ever_is_done_when_it_runs(tmp_path: Path) -> None:
    result = run(*VOLCANO, "-f", written(tmp_path / "mine.json", node("n1"), *gang("train", 8)), *FAST)
    assert result.exit_code == 0
    assert "8 of 8 running" in result.output


def test_bad_objects_are_named_and_the_rest_runs(tmp_path: Path) -> None:
    bad = node("broken")
    bad["status"]["allocatable"]["cpu"] = "many"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    result = run(
        *VOLCANO, "-f", written(tmp_path / "mine.json", bad, secret, node("n1"), *gang("train", 2)), *FAST
    )
    assert result.exit_code == 2
    assert result.output.count("mine.json:1: Node broken: status.") == 1
    assert "Secret" not in result.output
    assert "2 of 2 running" in result.output
    assert "all work that was accepted is done; 1 object was refused or ignored" in result.output


def test_the_configuration_is_followed(tmp_path: Path) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text('actions: "enqueue"\ntiers:\n- plugins:\n  - name: gang\n')
    path = written(tmp_path / "mine.json", node("n1"), *gang("train", 2))
    assert run(*VOLCANO, "-f", path, "--conf", str(conf), *FAST).exit_code == 1


def test_other_scheduler_names_and_default_queues(tmp_path: Path) -> None:
    raws = [node("n1"), *gang("train", 2)]
    for raw in raws[2:]:
        raw["spec"]["schedulerName"] = "mine"
    del raws[1]["spec"]["queue"]
    path = written(tmp_path / "mine.json", *raws)
    left = run(*VOLCANO, "-f", path, *FAST)
    assert left.exit_code == 1
    assert left.stderr.endswith("try --scheduler-name mine\n")
    result = run(*VOLCANO, "-f", path, "--scheduler-name", "mine", "--default-queue", "main", *FAST)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        (("--queue-access", "closed"), "queueAccess is closed"),
        (("--priority-classes", "low, usual"), "option priorityClasses of the scheduler allows low, usual"),
        (("--system-priorities", "kube-system"), "systemPriorities allows it in kube-system only"),
    ],
)
def test_flags_say_what_tenants_may_name(tmp_path: Path, flag: tuple[str, str], told: str) -> None:
    group, *pods = gang("train", 2)
    group["spec"]["priorityClassName"] = "system-node-critical"
    path = written(tmp_path / "mine.json", node("n1"), group, *pods)
    assert run(*VOLCANO, "-f", path, *FAST).exit_code == 0
    refused = run(*VOLCANO, "-f", path, *flag, *FAST)
    assert refused.exit_code == 1
    assert told in refused.output


def test_a_flag_says_whether_anti_affinity_reaches_other_namespaces() -> None:
    ctx = command.make_context("run", ["--affinity-across-namespaces", "own"])
    assert given_policy(ctx) == {"affinityAcrossNamespaces": "own"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kubeconfig", "x", "--until-done"], "for the embedded cluster"),
        (["--in-cluster", "--virtual-time"], "for the embedded cluster"),
        (["--in-cluster", "--context", "x"], "takes neither"),
        (["--schedule-period", "soon"], "not a duration"),
        (["--schedule-period", "0s"], "must be positive"),
        (["--profile", "nomad"], "unknown profile 'nomad'"),
        (["--shard", "pool-a"], "no SchedulingShard 'pool-a'"),
        (["--shard", "pool-a", "--profile", "volcano"], "--shard is for the profile kai"),
        ([*VOLCANO, "--partition-label-value", "a"], "--partition-label-value is for the profile kai"),
        (["--kubeconfig", "/nowhere/config"], "/nowhere/config"),
        (["-f", "/nowhere"], "does not exist"),
    ],
)
def test_wrong_usage_is_said_and_ends_with_two(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_a_cluster_that_cannot_be_reached_is_one_error_and_not_one_for_each_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maniple.kube.client.Client.request", unreachable)
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(json.dumps(NOWHERE))
    result = run("--kubeconfig", str(kubeconfig))
    assert result.exit_code == 2
    assert result.stderr == "Error: https://127.0.0.1:1: Unreachable: cannot connect\n"


async def unreachable(*_: object, **__: object) -> bytes:
    raise UnreachableError("cannot connect", sent=False)


def test_a_wrong_configuration_names_its_file(tmp_path: Path) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text("actions: [")
    result = run("--conf", str(conf))
    assert result.exit_code == 2
    assert "scheduler.conf" in result.output


def test_a_shard_and_the_operator_s_settings_are_fetched_from_the_cluster() -> None:
    async def scenario() -> None:
        async with FakeServer(SchedulingShard, KaiConfig) as server, server.client() as client:
            bare = {"metadata": {"name": "a"}, "spec": {"partitionLabelValue": "a"}}
            operator = {"metadata": {"name": "x"}, "spec": {"global": {"schedulerName": "mine"}}}
            server.answers += [Answer(200, json.dumps(raw).encode()) for raw in (bare, operator)]
            found = await shard_objects(client, "a")
            assert shard_among(found, "a").options == {"nodePoolLabelValue": "a", "schedulerName": "mine"}
            assert len(server.asked("GET", "/apis/kai.scheduler/v1/schedulingshards/a")) == 1
            assert len(server.asked("GET", "/apis/kai.scheduler/v1/configs/kai-config")) == 1
            assert await shard_objects(client, "b") == []

    asyncio.run(scenario())


def test_a_cluster_that_refuses_is_not_a_cluster_without_shards() -> None:
    async def scenario() -> None:
        async with FakeServer(SchedulingShard) as server, server.client() as client:
            server.answers.append(Answer(403, status(403, "Forbidden")))
            with pytest.raises(ApiError, match="403"):
                await shard_objects(client, "a")

    asyncio.run(scenario())


# -- KAI's objects -----------------------------------------------------------------------------------------------------


def ending(raws: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Pods that run for a minute."""
    for raw in raws:
        if raw["kind"] == "Pod":
            raw["metadata"]["annotations"]["maniple.dev/run-for"] = "1m"
    return raws


def test_kai_s_objects_are_run_to_their_end(tmp_path: Path) -> None:
    objects = [*kai_cluster.TWO_NODES, *kai_cluster.gang("first", 4, 4), *kai_cluster.gang("second", 4, 4)]
    result = run("-f", written(tmp_path / "mine.json", *ending(objects)), "--profile", "kai", *FAST)
    assert result.exit_code == 0, result.output
    assert result.output.count("4 of 4 bound") == 2
    assert "waits: Resources were found for 0 pods while 4 are required" in result.output
    assert "all work is done" in result.output


def test_without_the_binder_what_needs_it_is_left_and_says_why(tmp_path: Path) -> None:
    shares = kai_cluster.gang("shares", 1, 0)
    shares[1]["metadata"]["annotations"]["gpu-fraction"] = "0.5"
    del shares[1]["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"]
    objects = ending([*kai_cluster.TWO_NODES, *kai_cluster.gang("plain", 4, 4), *shares])
    path = written(tmp_path / "mine.json", *objects)
    assert run("-f", path, "--profile", "kai", *FAST).exit_code == 0
    result = run("-f", path, "--profile", "kai", "--bind", "direct", *FAST)
    assert result.exit_code == 1
    assert "only KAI's binder assigns" in result.output
    assert "1 pod is left: ml/shares-0" in result.output


def test_how_to_bind_is_a_choice_of_the_profile_kai_only(tmp_path: Path) -> None:
    result = run("--bind", "direct", "--profile", "volcano", *FAST)
    assert result.exit_code == 2
    assert "cannot be set with the profile" in result.output


def test_a_shard_s_scheduler_runs_on_its_own_node_pool(tmp_path: Path) -> None:
    pool = {"kai.scheduler/node-pool": "a"}
    queues = [kai_cluster.queue("department", **pool), kai_cluster.queue("team", "department", **pool)]
    mine = [kai_cluster.node("n1", **pool), *kai_cluster.gang("mine", 2, 4, **pool)]
    theirs = kai_cluster.gang("theirs", 2, 4)
    shard = kai_cluster.shard("pool-a", partitionLabelValue="a")
    path = written(tmp_path / "mine.json", shard, *queues, *ending([*mine, *theirs]), kai_cluster.node("n2"))
    result = run("-f", path, "--shard", "pool-a", *FAST)
    assert result.exit_code == 1
    assert "2 of 2 bound: n1 ×2" in result.output
    assert "2 pods are left: ml/theirs-0, ml/theirs-1" in result.output
