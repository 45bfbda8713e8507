"""`maniple plan` from end to end: input, output, and the exit code that scripts go by."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from maniple.cli.main import main

QUEUE_API = "scheduling.volcano.sh/v1beta1"


def node(name: str, cpu: str = "8") -> dict[str, Any]:
    room = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": room, "allocatable": room},
    }


def queue(name: str = "q") -> dict[str, Any]:
    return {
        "apiVersion": QUEUE_API,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1},
        "status": {"state": "Open"},
    }


def group(name: str, members: int) -> dict[str, Any]:
    return {
        "apiVersion": QUEUE_API,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"minMember": members, "queue": "q"},
        "status": {"phase": "Pending"},
    }


def pod(name: str, group_name: str, cpu: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "annotations": {"scheduling.k8s.io/group-name": group_name},
        },
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}],
        },
        "status": {"phase": "Pending"},
    }


def gang(name: str, cpus: list[str]) -> list[dict[str, Any]]:
    return [group(name, len(cpus)), *(pod(f"{name}-{index}", name, cpu) for index, cpu in enumerate(cpus))]


FITTING = [node("n1"), node("n2"), queue(), *gang("fits", ["6", "6"])]
WAITING = [*FITTING, *gang("huge", ["100"])]


def run(*arguments: str, objects: list[dict[str, Any]] | None = None, text: str | None = None) -> Result:
    given = text if objects is None else json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    return CliRunner(env={"COLUMNS": "160"}).invoke(
        main, ["plan", "--profile", "volcano", *arguments], input=given
    )


def test_objects_from_kubectl_are_planned() -> None:
    result = run("-", "-o", "json", objects=FITTING)
    assert result.exit_code == 0, result.output
    binds = json.loads(result.stdout)["binds"]
    assert set(binds) == {"ml/fits-0", "ml/fits-1"}
    assert set(binds.values()) == {"n1", "n2"}


def test_files_and_folders_are_planned_together(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "all.yaml").write_text(yaml.safe_dump_all(FITTING[:3]))
    (tmp_path / "job.json").write_text(json.dumps(FITTING[3:]))
    result = run(str(tmp_path / "cluster"), str(tmp_path / "job.json"), "-o", "yaml")
    assert result.exit_code == 0, result.output
    assert len(yaml.safe_load(result.stdout)["binds"]) == 2


def test_the_table_says_what_is_placed_and_what_waits() -> None:
    result = run("-", objects=WAITING)
    assert result.exit_code == 0, result.output
    assert "ml/fits" in result.stdout
    assert "ml/huge" in result.stdout
    assert "Insufficient cpu" in result.stdout


def test_standard_input_is_read_when_no_path_is_given() -> None:
    assert run(objects=FITTING).exit_code == 0


@pytest.mark.parametrize(("objects", "code"), [(FITTING, 0), (WAITING, 1)])
def test_waiting_jobs_fail_only_on_demand(objects: list[dict[str, Any]], code: int) -> None:
    assert run("-", "--fail-on-waiting", objects=objects).exit_code == code
    assert run("-", objects=objects).exit_code == 0


def preempting() -> list[dict[str, Any]]:
    """A node full of a job that has to make room for a more important one."""
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 9,
    }
    new, old = group("new", 1), group("old", 1)
    new["spec"]["priorityClassName"] = "high"
    old["status"]["phase"] = "Running"
    asks, runs = pod("new-0", "new", "8"), pod("old-0", "old", "8")
    asks["spec"]["priorityClassName"] = "high"
    runs["spec"]["nodeName"], runs["status"]["phase"] = "n1", "Running"
    return [high, node("n1"), queue(), new, old, asks, runs]


def test_a_job_that_starts_when_its_victims_have_left_does_not_wait() -> None:
    result = run("-", "--actions", "allocate, preempt", "--fail-on-waiting", objects=preempting())
    assert result.exit_code == 0, result.output
    assert "Waiting" not in result.stdout
    assert "1 task starts when others have left, 1 task evicted, 0 jobs wait" in result.stdout
    served, gone = (line for line in result.stdout.splitlines() if line.startswith("ml/"))
    assert served.split("   ")[0] == "ml/new"
    assert "starts when 1 pod of ml/old has left n1" in served
    assert gone.split()[:5] == ["ml/old", "q", "1", "n1", "ml/new"]
    assert "preempt: makes room for job ml/new" in gone


@pytest.mark.parametrize("profile", ["volcano", "maniple"])
def test_jobs_that_cannot_be_served_are_in_every_format_with_their_reason(profile: str) -> None:
    lost, empty = group("lost", 1), group("empty", 2)
    lost["spec"]["queue"] = "nowhere"
    work = pod("lost-0", "lost", "1")
    work["spec"]["schedulerName"] = profile
    objects = [node("n1"), queue(), lost, work, empty]
    values = json.loads(run("-", "-o", "json", "--profile", profile, objects=objects).stdout)
    reasons = {row["job"]: row["reasons"] for row in values["summary"]["waiting"]}
    assert reasons.keys() == {"ml/lost", "ml/empty"}
    assert reasons["ml/lost"] == ["queue 'nowhere' does not exist; create it, or name another queue"]
    assert {name: values["jobs"][name]["reasons"] for name in reasons} == reasons
    table = run("-", "--profile", profile, objects=objects).stdout
    assert all(reason in table for several in reasons.values() for reason in several)


def test_actions_replace_the_configured_ones() -> None:
    result = run("-", "--actions", "enqueue", "-o", "json", objects=FITTING)
    assert result.exit_code == 0, result.output
    values = json.loads(result.stdout)
    assert values["binds"] == {}
    assert values["jobs"]["ml/fits"]["phase"] == "Inqueue"


def test_a_bad_object_costs_only_itself_and_is_named() -> None:
    result = run("-", "-o", "json", objects=[*FITTING, pod("broken", "fits", "lots")])
    assert result.exit_code == 0, result.output
    assert "problem: standard input:1: Pod ml/broken" in result.stderr
    assert len(json.loads(result.stdout)["binds"]) == 2
    assert len(json.loads(result.stdout)["problems"]) == 1


def test_a_bad_file_is_reported_and_the_rest_is_planned(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("kind: [Pod\n")
    (tmp_path / "good.json").write_text(json.dumps(FITTING))
    result = run(str(tmp_path), "-o", "json")
    assert result.exit_code == 2
    assert "bad.yaml:" in result.stderr
    assert len(json.loads(result.stdout)["binds"]) == 2


def test_a_long_list_of_problems_is_cut_and_says_so() -> None:
    broken = [pod(f"broken-{index}", "fits", f"lots-{index}") for index in range(25)]
    result = run("-", objects=[*FITTING, *broken])
    assert "problem: Pod: spec.containers[].resources.requests.cpu: 20 more like these" in result.stderr


def test_problems_that_are_alike_are_one_line() -> None:
    broken = [pod(f"broken-{index}", "fits", "lots") for index in range(5000)]
    (line,) = run("-", "--profile", "volcano", objects=[*FITTING, *broken]).stderr.splitlines()
    assert line.startswith(
        "problem: standard input:1: Pod ml/broken-0: spec.containers[0].resources.requests"
    )
    assert line.endswith("(and 4,999 more of kind Pod: ml/broken-1, ml/broken-2, ...)")


@pytest.mark.parametrize(
    ("arguments", "text", "words"),
    [
        (["-"], "", "no Kubernetes objects"),
        (["-"], "[]", "no Kubernetes objects"),
        (["-"], "{oops", "standard input:1: not JSON"),
        (["no-such-file.yaml"], "", "does not exist"),
        (["-", "--now", "yesterday"], "[]", "not a time"),
        (["-", "--now", "2026-01-01T00:00:00"], "[]", "no time zone"),
        (["-", "--option", "shard"], "[]", "key=value"),
        (["-", "--option", "shard={"], "[]", "not JSON"),
        (["-", "--profile", "slurm"], "[]", "slurm"),
    ],
)
def test_bad_input_is_one_clear_error(arguments: list[str], text: str, words: str) -> None:
    result = run(*arguments, text=text)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("conf", "line"),
    [('actions: "enqueue, alocate"\ntiers: []\n', 1), ("actions: allocate\ntiers:\n- plugins: [\n", None)],
)
def test_a_bad_configuration_names_its_file_and_line(tmp_path: Path, conf: str, line: int | None) -> None:
    file = tmp_path / "scheduler.conf"
    file.write_text(conf)
    result = run("-", "--conf", str(file), objects=FITTING)
    assert result.exit_code == 2
    assert f"{file}:{line or ''}" in result.stderr


def test_an_unknown_action_is_one_clear_error() -> None:
    result = run("-", "--actions", "alocate", objects=FITTING)
    assert result.exit_code == 2
    assert "alocate" in result.stderr
    assert "Traceback" not in result.output


def test_options_and_time_reach_the_planner(monkeypatch: pytest.MonkeyPatch) -> None:
    from maniple import planner

    seen: dict[str, Any] = {}

    class Spy(planner.Planner):
        def __init__(self, conf: Any, profile: str, actions: Any, options: Any) -> None:
            seen["options"] = options
            super().__init__(conf, profile, actions)

        def cycle(self, cluster: Any, now: Any = None, *more: Any, **settings: Any) -> planner.Plan:
            seen["now"] = now
            return super().cycle(cluster, now, *more, **settings)

    monkeypatch.setattr(planner, "Planner", Spy)
    result = run(
        "-",
        "--now",
        "2026-01-01T01:00:00+01:00",
        "--option",
        'shard={"mode": "hard", "nodes": ["n1"]}',
        "--option",
        "name=word",
        objects=FITTING,
    )
    assert result.exit_code == 0, result.output
    assert seen["now"].isoformat() == "2026-01-01T00:00:00+00:00"
    assert seen["options"] == {"shard": {"mode": "hard", "nodes": ["n1"]}, "name": "word"}
