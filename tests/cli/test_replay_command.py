"""`maniple replay`, and `plan` on KAI's snapshots, shards and flags: their settings apply unless overridden."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from maniple.cli.main import main
from maniple.planner import Planner
from maniple.plugins.kai.snapshot import snapshot_file, written
from tests.cli.kai_cluster import QUEUES, TWO_NODES, Raw, gang, node, queue, shard, snapshot, zipped

# Each node is half used by a gang that could move; a task needs a whole node.
HALF_USED = [*TWO_NODES, *gang("a", 1, 4, "n1"), *gang("b", 1, 4, "n2"), *gang("wide", 1, 8)]
ALL_ON = {
    "schedulerName": "kai-scheduler",
    "useSchedulingSignatures": True,
    "fullHierarchyFairness": True,
    "allowConsolidatingReclaim": True,
    "maxNumberConsolidationPreemptees": 16,
    "globalDefaultStalenessGracePeriod": 60_000_000_000,
}


def run(command: str, *arguments: str, given: bytes | str | None = None) -> Result:
    return CliRunner(env={"COLUMNS": "160"}).invoke(main, [command, *arguments], input=given)


def values(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def as_list(objects: list[Raw]) -> str:
    return json.dumps(objects)


@pytest.mark.parametrize("command", ["plan", "replay"])
@pytest.mark.parametrize("form", ["zip", "json", "input", "zipped input"])
def test_a_snapshot_is_planned_as_kai_in_every_form(command: str, form: str, tmp_path: Path) -> None:
    document = snapshot([*TWO_NODES, *gang("train", 4, 2)], schedulerParams=ALL_ON)
    packed, plain = zipped(document), json.dumps(document)
    (tmp_path / "s.zip").write_bytes(packed)
    (tmp_path / "s.json").write_text(plain)
    path, given = {
        "zip": (str(tmp_path / "s.zip"), None),
        "json": (str(tmp_path / "s.json"), None),
        "input": ("-", plain),
        "zipped input": ("-", packed),
    }[form]
    found = values(run(command, path, "-o", "json", given=given))
    assert set(found["binds"]) == {f"ml/train-{index}" for index in range(4)}
    assert found["queues"].keys() == {"department", "team"}


def test_its_configuration_and_parameters_count() -> None:
    plain = snapshot(HALF_USED, schedulerParams=ALL_ON)
    assert values(run("plan", "-", "-o", "json", given=json.dumps(plain)))["pipelined"]
    off = snapshot(HALF_USED, schedulerParams={**ALL_ON, "maxNumberConsolidationPreemptees": 0})
    assert values(run("plan", "-", "-o", "json", given=json.dumps(off)))["evictions"] == []
    one = snapshot(HALF_USED, schedulerParams=ALL_ON, config={"actions": "allocate"})
    assert values(run("plan", "-", "-o", "json", given=json.dumps(one)))["evictions"] == []


def test_flags_options_and_files_win_over_a_snapshot(tmp_path: Path) -> None:
    document = json.dumps(
        snapshot(HALF_USED, schedulerParams={**ALL_ON, "maxNumberConsolidationPreemptees": 0})
    )
    for words in (
        ["--max-consolidation-preemptees", "5"],
        ["--max-consolidation-preemptees=5"],
        ["--option", "maxConsolidationPreemptees=5"],
        ["--option", "maxNumberConsolidationPreemptees=5"],
    ):
        assert values(run("plan", "-", "-o", "json", *words, given=document))["evictions"], words
    (tmp_path / "conf").write_text("actions: allocate")
    words = ["--max-consolidation-preemptees", "5", "--scheduler-conf", str(tmp_path / "conf")]
    assert values(run("plan", "-", "-o", "json", *words, given=document))["evictions"] == []


def test_rounds_go_on_until_nothing_is_left_to_do() -> None:
    found = values(
        run("replay", "--profile", "kai", "--rounds", "10", "-o", "json", given=as_list(HALF_USED))
    )
    first, second, third = found["rounds"][0], found["rounds"][1], found["rounds"][-1]
    assert len(first["evictions"]) == 1
    assert "ml/wide-0" in first["pipelined"]
    assert set(second["binds"]) >= {"ml/wide-0"}
    assert third == {"binds": {}, "pipelined": {}, "evictions": []}
    assert found["settled"]
    assert found["plan"]["tasks"]["ml/wide-0"]["status"] == "Running"


def test_a_line_a_round_and_how_it_ended() -> None:
    result = run("replay", "--profile", "kai", "--rounds", "2", given=as_list(HALF_USED))
    assert result.exit_code == 0, result.output
    assert "round 1: 0 bound, 2 pipelined, 1 evicted" in result.stdout
    assert "still going on after 2 rounds." in result.stdout
    result = run("replay", "--profile", "kai", "--rounds", "9", given=as_list([*TWO_NODES, *gang("a", 1, 1)]))
    assert "round 1: 1 bound, 0 pipelined, 0 evicted" in result.stdout
    assert "round 3" not in result.stdout
    assert "nothing is left to do." in result.stdout


def test_volcano_s_objects_are_replayed_too() -> None:
    from tests.cli.test_plan_command import FITTING

    found = values(
        run("replay", "--profile", "volcano", "--rounds", "5", "-o", "json", given=as_list(FITTING))
    )
    assert set(found["rounds"][0]["binds"]) == {"ml/fits-0", "ml/fits-1"}
    assert found["settled"]
    assert found["plan"]["jobs"]["ml/fits"]["phase"] == "Running"


def test_what_waits_in_the_end_fails_on_demand() -> None:
    waiting = as_list([*TWO_NODES, *gang("huge", 3, 8)])
    arguments = ["--profile", "kai", "--rounds", "3", "--fail-on-waiting"]
    assert run("replay", *arguments, given=waiting).exit_code == 1


# -- shards and flags --------------------------------------------------------------------------------------------------

POOL = "kai.scheduler/node-pool"
TWO_POOLS = [
    queue("department"),
    queue("team", "department"),
    node("n1"),
    *gang("free", 1, 1),
    queue("department-a", **{POOL: "a"}),
    queue("team-a", "department-a", **{POOL: "a"}),
    node("n2", **{POOL: "a"}),
    shard("default"),
    shard("pool-a", partitionLabelValue="a", actions={"stalegangeviction": {"enabled": False}}),
]


@pytest.mark.parametrize(
    ("words", "nodes"),
    [
        (["--profile", "kai"], {"n1"}),
        (["--shard", "default"], {"n1"}),
        (["--shard", "pool-a"], {"n2"}),
        (["--profile", "kai", "--partition-label-value", "a"], {"n2"}),
        (["--profile", "kai", "--option", 'partitionParams={"NodePoolLabelValue": "a"}'], {"n2"}),
        (["--shard", "pool-a", "--partition-label-value", ""], {"n1"}),
        (["--profile", "kai", "--nodepool-label-key", "other"], {"n1", "n2"}),
    ],
)
def test_a_shard_sees_its_own_nodes(words: list[str], nodes: set[str]) -> None:
    result = run("plan", "-o", "json", *words, given=as_list(TWO_POOLS))
    assert values(result)["nodes"].keys() == nodes


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--shard", "c"], "no SchedulingShard 'c'; expected one of default, pool-a"),
        (["--shard", "default", "--profile", "volcano"], "--shard is for the profile kai"),
        (
            ["--profile", "volcano", "--max-consolidation-preemptees", "3"],
            "--max-consolidation-preemptees is for the profile kai",
        ),
        (["--profile", "kai", "--max-consolidation-preemptees", "many"], "whole number"),
        (["--profile", "kai", "--default-staleness-grace-period", "soon"], "duration"),
        (["--profile", "kai", "--use-scheduling-signatures=maybe"], "use-scheduling-signatures"),
    ],
)
def test_bad_words_are_one_clear_error(words: list[str], said: str) -> None:
    result = run("plan", *words, given=as_list(TWO_POOLS))
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.output


def test_a_wrong_shard_is_named_with_its_field() -> None:
    result = run(
        "plan", "--shard", "s", given=as_list([*TWO_NODES, shard("s", queueDepthPerAction={"x": 1})])
    )
    assert result.exit_code == 2
    assert "SchedulingShard s: spec.queueDepthPerAction.x" in result.stderr


def test_what_is_odd_about_a_shard_is_said() -> None:
    result = run("plan", "--shard", "s", given=as_list([*TWO_NODES, shard("s", args={"kubeconfig": "x"})]))
    assert result.exit_code == 0
    assert "warning: SchedulingShard s: spec.args.kubeconfig: unknown flag, ignored" in result.stderr


def test_flags_of_kai_s_process_are_taken_and_said_to_do_nothing() -> None:
    words = ["--profile", "kai", "--qps", "5", "--leader-elect", "--v=3", "--enable-profiler=false"]
    result = run("plan", *words, given=as_list(TWO_NODES))
    assert result.exit_code == 0, result.output
    assert result.stderr.count("has no effect here") == 4


def test_a_switch_before_a_path_does_not_swallow_it(tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text(as_list(TWO_NODES))
    result = run("plan", "--profile", "kai", "--detailed-fit-errors", str(tmp_path / "all.json"))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (zipped({}, "other.json"), "a zip without snapshot.json"),
        (b"PK\x03\x04 and then nothing", "not a readable zip"),
        (zipped({"rawObjects": 3}), "s.zip:1: rawObjects: must be a mapping of lists"),
    ],
)
def test_a_bad_snapshot_is_one_clear_error(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "s.zip").write_bytes(content)
    result = run("plan", str(tmp_path / "s.zip"))
    assert result.exit_code == 2
    assert said in result.stderr


def test_two_snapshots_are_one_too_many(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(json.dumps(snapshot(QUEUES)))
    result = run("plan", str(tmp_path))
    assert result.exit_code == 2
    assert "several KAI snapshots" in result.stderr


def test_our_own_snapshot_is_planned_like_the_cluster_it_was_taken_of() -> None:
    objects = [*HALF_USED, *gang("late", 2, 2)]
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    planner = Planner(profile="kai", options={"maxConsolidationPreemptees": 1})
    plan = planner.cycle(planner.build(objects), moment)
    file = snapshot_file(planner.configuration, planner.options, written(objects))
    again = values(run("plan", "-", "-o", "json", "--now", moment.isoformat(), given=file))
    assert again["binds"] == plan.binds
    # The snapshot was taken of the cluster as it was, whatever the cycle then did with it.
    assert again["evictions"] == plan.evictions
    assert again["pipelined"] == plan.pipelined
