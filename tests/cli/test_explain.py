"""The command `maniple explain`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import maniple
from maniple.cli.main import main
from tests.explain.reasons import REASONS
from tests.explain.scene import JOB, Scene


def run(folder: Path, name: str, *arguments: str, profile: str = "maniple") -> Result:
    scene = REASONS[name].scene(profile)
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": scene.objects}))
    more = ["--now", scene.now.isoformat(), "--profile", profile]
    return CliRunner().invoke(main, ["explain", *arguments, str(file), *more])


def test_the_sentence_comes_first_and_the_nodes_are_counted(tmp_path: Path) -> None:
    found = run(tmp_path, "full-and-tainted", JOB)
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert lines[0] == "ml/job in queue team: waiting"
    assert "taint dedicated=research:NoSchedule is not tolerated" in lines[1]
    assert "The 3 nodes and the next pod" in lines
    assert any(line.split()[:2] == ["2", "too"] for line in lines)


def test_a_pod_stands_for_its_job(tmp_path: Path) -> None:
    assert (
        run(tmp_path, "taint", "ml/job-1", "-o", "name").stdout
        == run(tmp_path, "taint", JOB, "-o", "name").stdout
    )


def test_programs_get_every_part(tmp_path: Path) -> None:
    found = json.loads(run(tmp_path, "parent-at-its-limit", JOB, "-o", "json").stdout)
    assert found["causes"][0]["kind"] == "QueueLimit"
    assert [level["name"] for level in found["levels"]] == ["team", "dep"]
    assert found["levels"][1]["holders"] == [{"job": "ml/cousin", "amounts": {"cpu": "4"}}]


@pytest.mark.parametrize(("flags", "code"), [((), 0), (("--fail-on-waiting",), 1)])
def test_the_exit_code_says_that_it_waits_if_asked(tmp_path: Path, flags: tuple[str, ...], code: int) -> None:
    assert run(tmp_path, "taint", JOB, *flags).exit_code == code


def test_an_unknown_name_gets_the_nearest(tmp_path: Path) -> None:
    found = run(tmp_path, "taint", "ml/jop")
    assert found.exit_code == 2
    assert "no job or pod ml/jop; did you mean ml/job?" in found.stderr


def test_the_original_words_are_kept(tmp_path: Path) -> None:
    found = run(tmp_path, "taint", JOB, profile="volcano")
    assert "In Volcano's words: 0/2 nodes are unavailable: 2 node(s) had untolerated taint(s)" in found.stdout


def test_the_library_says_the_same(tmp_path: Path) -> None:
    scene = REASONS["taint"].scene("kai")
    found = maniple.explain(scene.objects, JOB, profile="kai", now=scene.now)
    assert run(tmp_path, "taint", JOB, "-o", "name", profile="kai").stdout.strip() == found.sentence


def test_what_would_help_is_said_unless_it_is_not_asked_for(tmp_path: Path) -> None:
    remedy = "- With the limit of queue dep raised from 4 to 5 cpu the job would start"
    assert remedy in run(tmp_path, "parent-at-its-limit", JOB).stdout.splitlines()
    assert "What would help" not in run(tmp_path, "parent-at-its-limit", JOB, "--no-remedies").stdout
    advice = json.loads(run(tmp_path, "parent-at-its-limit", JOB, "-o", "json").stdout)["advice"]
    limit = next(one for one in advice["remedies"] if one["kind"] == "queue limit")
    assert limit["proven"]
    assert limit["smallest"]


def test_a_job_that_is_being_served_needs_no_remedy(tmp_path: Path) -> None:
    found = run(tmp_path, "being-served-by-eviction", JOB)
    assert found.stdout.splitlines()[1] == "starts when 1 pod of ml/old has left n0"
    assert "What would help" not in found.stdout


def test_a_whole_gang_whose_further_pods_wait_is_not_called_beyond_help(tmp_path: Path) -> None:
    scene = Scene("maniple")
    scene.nodes(1)
    scene.queue()
    scene.job(pods=12, minimum=4)
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": scene.objects}))
    found = CliRunner().invoke(main, ["explain", JOB, str(file), "--now", scene.now.isoformat()])
    assert found.stdout.splitlines()[0] == "ml/job in queue team: waiting"
    assert "What would help" not in found.stdout
