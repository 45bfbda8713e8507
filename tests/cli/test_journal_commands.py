"""`maniple run --journal`, and the commands that read what it wrote: history, rewind and snapshot."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from maniple import journal
from maniple.cli.main import main
from maniple.journal.frames import segments


def run(*words: str | Path, given: str | None = None) -> Result:
    return CliRunner(env={"COLUMNS": "160"}).invoke(main, [str(word) for word in words], input=given)


def values(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of the example on the embedded cluster."""
    made = tmp_path_factory.mktemp("journal") / "new"
    result = run("run", "--virtual-time", "--journal", made)
    assert result.exit_code == 0, result.output
    return made


def test_run_records_every_cycle_for_its_owner_only(folder: Path) -> None:
    (segment,) = segments(folder)
    assert segment.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert journal.read(folder).last().number > 10


def test_a_folder_that_cannot_be_written_does_not_stop_scheduling(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run("run", "--virtual-time", "--journal", tmp_path / "file" / "below")
    assert result.exit_code == 0, result.output
    assert result.output.count("cannot be written") == 1
    assert "all work is done" in result.output


@pytest.mark.parametrize(("size", "words"), [("12", "less than 1Mi"), ("large", "is not a size")])
def test_a_wrong_size_is_refused(size: str, words: str) -> None:
    result = run("run", "--virtual-time", "--journal", "j", "--journal-size", size)
    assert result.exit_code == 2
    assert words in result.output


# -- rewind ----------------------------------------------------------------------------------------------------------


def test_rewind_shows_the_plan_of_a_cycle(folder: Path) -> None:
    result = run("rewind", folder, "--at", "1")
    assert result.exit_code == 0, result.output
    assert "research/pretrain" in result.output
    assert "run 1, cycle 1 at 2026-01-01T00:00:00" in result.output
    by_time = run("rewind", folder, "--at", "2026-01-01T00:00:00Z")
    assert by_time.stdout == result.stdout
    assert run("rewind", folder, "--at", "1:1").stdout == result.stdout


def test_what_rewind_lists_is_planned_to_the_same_plan(folder: Path) -> None:
    for step in journal.read(folder).steps():
        listed = run("rewind", folder, "--at", str(step.number), "-o", "list")
        assert listed.exit_code == 0, listed.output
        planned = values(run("plan", "-", "-o", "json", given=listed.stdout))
        assert planned == values(run("rewind", folder, "--at", str(step.number), "-o", "json"))


def test_a_recorded_cluster_can_be_planned_with_more(folder: Path, tmp_path: Path) -> None:
    listed = tmp_path / "cluster.json"
    listed.write_text(run("rewind", folder, "--at", "1", "-o", "list").stdout)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one-more", "namespace": "research"},
        "spec": {
            "schedulerName": "maniple",
            "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
        },
    }
    (tmp_path / "pod.json").write_text(json.dumps(pod))
    plan = values(run("plan", listed, tmp_path / "pod.json", "-o", "json"))
    assert "research/one-more" in plan["binds"]
    assert values(run("plan", listed, "--actions", "stalegangeviction", "-o", "json"))["binds"] == {}
    assert run("plan", listed, listed).exit_code == 2


def test_check_plans_every_cycle_again(folder: Path) -> None:
    result = run("rewind", folder, "--check")
    assert result.exit_code == 0, result.output
    assert "all plans are equal" in result.output
    found = values(run("rewind", folder, "--check", "-o", "json"))
    assert found["cycles"] == journal.read(folder).last().number
    assert found["different"] == []
    assert values(run("rewind", folder, "--check", "--at", "3", "-o", "json"))["cycles"] == 1


def test_check_finds_a_plan_that_differs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from maniple.actions.allocate import Allocate

    monkeypatch.setattr(Allocate, "run", lambda *_: None)
    result = run("rewind", folder, "--check", "-o", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["different"][0]["differs"][0] == "binds"


def test_a_torn_journal_is_read_up_to_there(folder: Path, tmp_path: Path) -> None:
    (segment,) = segments(folder)
    torn = tmp_path / segment.name
    torn.write_bytes(segment.read_bytes()[:-7])
    result = run("rewind", torn, "--check")
    assert result.exit_code == 0, result.output
    assert "damaged at byte" in result.output
    assert f"{journal.read(folder).last().number - 1} cycles" in result.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--at", "1000"), "no cycle 1000; the last run (1) has cycles up to"),
        (("--at", "7:1"), "no cycle 1 of run 7"),
        (("--at", "2020-01-01T00:00:00Z"), "the journal begins at 2026-01-01T00:00:00Z"),
        (("--at", "yesterday"), "neither a cycle such as 17"),
        (("--at", "2026-01-01T00:00:00"), "has no time zone"),
        (("--check", "-o", "name"), "--check prints"),
    ],
)
def test_bad_usage_says_what_to_do(folder: Path, words: tuple[str, ...], says: str) -> None:
    result = run("rewind", folder, *words)
    assert result.exit_code == 2
    assert says in " ".join(result.output.split())


def test_another_file_or_folder_is_no_journal(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("a text that is no journal at all")
    for path, says in ((tmp_path, "no segments"), (tmp_path / "other.txt", "not a segment")):
        for command in ("rewind", "history"):
            result = run(command, path)
            assert result.exit_code == 2
            assert says in result.output


# -- history ---------------------------------------------------------------------------------------------------------


def test_history_tells_a_job_and_the_cycles(folder: Path) -> None:
    result = run("history", folder, "research/sweep")
    assert result.exit_code == 0, result.output
    words = [line.split()[3] for line in result.stdout.splitlines()[2:]]
    assert [
        one["what"] for one in values(run("history", folder, "research/sweep", "-o", "json"))["items"]
    ] == words
    assert words[0] == "arrived"
    assert words[-1] == "finished"
    cycles = values(run("history", folder, "-o", "json"))["items"]
    assert [one["cycle"] for one in cycles] == [*range(1, len(cycles) + 1)]
    few = run("history", folder, "--limit", "3")
    assert len(few.stdout.splitlines()) == 5
    assert "the last 3 of" in few.stderr
    part = values(run("history", folder, "--since", "3", "--until", "5", "-o", "json"))["items"]
    assert [one["cycle"] for one in part] == [3, 4, 5]


def test_a_job_that_the_journal_does_not_know(folder: Path) -> None:
    result = run("history", folder, "research/nothing")
    assert result.exit_code == 2
    assert "research/nothing: not in this journal" in result.output


def test_no_evictions_are_nothing(folder: Path) -> None:
    assert values(run("history", folder, "--evictions", "-o", "json"))["items"] == []


def test_export_without_the_library_says_how_to_get_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run("history", folder, "--export", tmp_path / "cycles.parquet")
    assert result.exit_code == 2
    assert "pip install 'maniple[parquet]'" in result.output


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is an extra")
@pytest.mark.parametrize("words", [(), ("research/sweep",)])
def test_export_writes_all_rows(folder: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    import pyarrow.parquet

    file = tmp_path / "rows.parquet"
    assert run("history", folder, *words, "--export", file).exit_code == 0
    rows = pyarrow.parquet.read_table(file).to_pylist()
    expected = values(run("history", folder, *words, "-o", "json"))["items"]
    assert [row["cycle"] for row in rows] == [row["cycle"] for row in expected]


# -- snapshot --------------------------------------------------------------------------------------------------------


def test_a_snapshot_of_a_journal_is_its_last_cycle(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    assert run("snapshot", folder, "-f", file).exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["maniple"]["cycle"] == journal.read(folder).last().number
    assert [*tmp_path.iterdir()] == [file]


def test_an_anonymised_snapshot_has_no_names_and_the_same_plan(folder: Path, tmp_path: Path) -> None:
    listed = tmp_path / "cluster.json"
    listed.write_text(run("rewind", folder, "--at", "4", "-o", "list").stdout)
    result = run("snapshot", listed, "--anonymise")
    assert result.exit_code == 0, result.output
    for name in ("research", "production", "pretrain", "sweep", "gpu-1", "trainer"):
        assert name in listed.read_text()
        assert name not in result.stdout
    original = values(run("plan", listed, "-o", "json"))
    renamed = values(run("plan", "-", "-o", "json", given=result.stdout))
    assert len(renamed["binds"]) == len(original["binds"]) > 0


@pytest.mark.parametrize(
    ("content", "says"),
    [("[1, 2", "not JSON"), ('{"kind": "List", "items": []}', "not a snapshot"), ("{}", "not a snapshot")],
)
def test_another_file_is_no_snapshot(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "file.json"
    file.write_text(content)
    result = run("snapshot", file)
    assert result.exit_code == 2
    assert says in result.output


def test_nothing_at_the_address_is_said(tmp_path: Path) -> None:
    for source, says in (("http://127.0.0.1:9", "no answer"), (str(tmp_path / "none"), "neither an address")):
        result = run("snapshot", source)
        assert result.exit_code == 2
        assert says in result.output
