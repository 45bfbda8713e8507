"""`maniple trace` from end to end: the story, its parts, the format for programs, and the exit code."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from maniple.cli.main import main
from maniple.framework.traces.events import Trace

EXAMPLE = Path(__file__).parents[2] / "examples" / "debugging"


def run(subject: str, *arguments: str) -> Result:
    conf = ["--conf", str(EXAMPLE / "volcano-scheduler.conf")]
    return CliRunner().invoke(main, ["trace", subject, str(EXAMPLE), *conf, *arguments])


def titles(output: str) -> list[str]:
    return [line for line in output.splitlines()[1:] if line and not line.startswith(" ")]


def test_the_story_has_the_actions_in_order_and_the_result() -> None:
    result = run("research/train")
    assert result.exit_code == 0
    assert result.stdout.startswith("Trace of job research/train, profile volcano\n")
    assert titles(result.stdout)[:2] == ["enqueue", "allocate"]
    assert titles(result.stdout)[-1] == "result"
    assert "it gets a-1 with" in result.stdout


def test_a_pod_has_its_own_tables_only() -> None:
    output = run("research/train-1").stdout
    assert "Trace of pod research/train-1 of job research/train" in output
    lines = output.splitlines()
    first, second = (
        next(i for i, line in enumerate(lines) if f"pod research/train-{n}: " in line) for n in (0, 1)
    )
    assert lines[first + 1].startswith("  pod")
    assert lines[second + 1].split()[:2] == ["nodes", "filter"]


def test_nodes_shows_each_verdict_of_each_node() -> None:
    output = run("research/typo", "--nodes").stdout
    rows = [line.split()[:3] for line in output.splitlines() if line.startswith("    ")]
    assert ["b-3", "refused", "NodeAffinity"] in rows
    assert ["b-3", "refused", "TaintToleration"] in rows
    assert ["a-1", "refused", "resources"] in rows
    assert "has its turn" not in output


def test_node_narrows_it_to_one() -> None:
    output = run("research/typo", "--node", "b-3").stdout
    assert "b-3" in output
    assert "a-1" not in output


def test_scores_shows_what_every_scorer_gave() -> None:
    output = run("research/train", "--scores").stdout
    header = next(line.split("   ") for line in output.splitlines() if line.strip().startswith("node"))
    assert any("×" in column for column in header)
    assert "refused" not in output


def test_victims_shows_who_may_go_and_what_protects_the_others() -> None:
    output = run("production/urgent", "--victims").stdout
    assert titles(output) == ["reclaim", "preempt"]
    assert "protected by plugin pdb" in output
    assert "candidates" in output
    assert "pod production/urgent-0: " not in output


def test_a_part_that_did_not_happen_says_so() -> None:
    assert "the cycle looked at no victims for it" in run("research/train", "--victims").stdout


def test_json_has_the_typed_events() -> None:
    result = run("research/typo", "-o", "json")
    trace = Trace.from_json(result.stdout)
    assert trace.job == "research/typo"
    assert {event["event"] for event in json.loads(result.stdout)["events"]} >= {
        "job-turn",
        "task-tried",
        "undone",
    }


@pytest.mark.parametrize(
    ("name", "near"), [("research/trian", "research/train"), ("urgent", "production/urgent"), ("zzz/zzz", "")]
)
def test_an_unknown_name_ends_with_2_and_the_nearest(name: str, near: str) -> None:
    result = run(name)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "no pod or job" in result.stderr
    assert (f"did you mean {near}" in result.stderr) if near else ("did you mean" not in result.stderr)


def test_a_name_without_namespace_is_of_the_one_that_is_given() -> None:
    assert run("train", "-n", "research").exit_code == 0


def test_bad_usage_ends_with_2() -> None:
    assert CliRunner().invoke(main, ["trace"]).exit_code == 2
    assert run("research/train", "--output", "svg").exit_code == 2


def test_names_that_control_a_terminal_are_shown_with_escapes(tmp_path: Path) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ml"},
        "spec": {
            "schedulerName": "volcano",
            "nodeSelector": {"\u001b[31mred": "x"},
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        },
    }
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": room}}
    file = tmp_path / "objects.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [pod, node]}))
    result = CliRunner().invoke(main, ["trace", "ml/p", str(file), "--profile", "volcano"])
    assert result.exit_code == 0, result.output
    assert "\u001b" not in result.output
