"""`maniple plan --watch`: a new plan when the input changes, nothing when it does not, and an end by Ctrl-C."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from maniple.cli import watching
from maniple.cli.main import main
from tests.cli.test_plan_command import node, queue

PROGRAM = (
    "import sys; from maniple.cli import watching; watching.LOOK_SECONDS = 0.01;"
    "from maniple.cli.main import main; main(['plan', '--watch', *sys.argv[1:]])"
)


def started(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(process: "subprocess.Popen[str]", text: str) -> str:
    assert process.stdout is not None
    seen = ""
    while text not in seen:
        line = process.stdout.readline()
        assert line, process.communicate()
        seen += line
    return seen


def written(file: Path, *objects: dict[str, object]) -> None:
    other = file.with_suffix(".new")
    other.write_text(yaml.safe_dump_all(objects))
    other.rename(file)


def test_a_change_of_a_file_is_planned_and_an_error_does_not_end_it(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    written(file, node("one"), queue())
    with started(str(tmp_path)) as process:
        first = until(process, "1 queue.\n")
        assert first.startswith("at 20")
        assert "1 node," in first
        file.write_text("kind: [")  # half written
        written(file, node("one"), node("two"), queue())
        assert "2 nodes," in until(process, "1 queue.\n")
        os.utime(file)  # touched, and the same: nothing is printed
        (tmp_path / "more.yaml").write_text(yaml.safe_dump(node("three")))
        assert "3 nodes," in until(process, "1 queue.\n")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "bound" not in output
        assert "Traceback" not in errors


def test_what_is_said_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "cluster.yaml"
    written(file, queue())
    looks = []

    def look(*arguments: object, **settings: object) -> None:
        looks.append(1)
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(watching, "_wait", look)
    result = CliRunner().invoke(main, ["plan", "--watch", str(file)])
    assert result.exit_code == 0
    assert result.stderr.count("no nodes in the input") == 1
    assert result.stdout.count("0 tasks bound") == 1


def test_an_unreadable_file_is_told_and_watched_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("kind: [")

    def mend(*arguments: object, **settings: object) -> None:
        if "Node" in file.read_text():
            raise KeyboardInterrupt
        written(file, node("one"))

    monkeypatch.setattr(watching, "_wait", mend)
    result = CliRunner().invoke(main, ["plan", "--watch", str(file)])
    assert "Error: no Kubernetes objects in the input" in result.stderr
    assert "1 node," in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-"], "standard input is read once"),
        ([], "standard input is read once"),
        (["--fail-on-waiting", "."], "--watch goes neither with"),
        (["--snapshot-out", "x.zip", "."], "--watch goes neither with"),
    ],
)
def test_what_cannot_be_watched_is_bad_usage(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["plan", "--watch", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
