"""The log: its forms and levels, and that a pod can be followed through it."""

import json
import logging

import pytest
from click.testing import CliRunner

from maniple.cli.log_flags import Logging, logging_of
from maniple.cli.logs import JsonFormatter, TextFormatter
from maniple.cli.main import main
from maniple.cli.process_flags import Process

WAY = ["seen, pending", "decided in cycle", "bind to node", "bound to node", "seen, on node"]


def log_of(*arguments: str) -> list[str]:
    result = CliRunner().invoke(main, ["run", "--virtual-time", "--until-done", *arguments])
    assert result.exit_code == 0, result.output
    return result.stderr.splitlines()


def test_a_pod_can_be_followed_from_the_watch_to_its_bind() -> None:
    lines = [json.loads(line) for line in log_of("--log-level", "debug", "--log-format", "json")]
    assert all(line.keys() >= {"time", "level", "cycle", "logger", "message"} for line in lines)
    mine = [line for line in lines if "research/notebook" in line["message"]]
    steps = [next(i for i, line in enumerate(mine) if text in line["message"]) for text in WAY]
    assert steps == sorted(steps)
    decided, sent, bound = (mine[step] for step in steps[1:4])
    assert f"decided in cycle {decided['cycle']}" in decided["message"]
    assert decided["cycle"] == sent["cycle"] == bound["cycle"] > 0


def test_info_tells_of_cycles_and_not_of_pods() -> None:
    lines = log_of("-v", "3")
    assert any(" info cycle=1 maniple.live.tracing: cycle 1: pods placed: 8" in line for line in lines)
    assert not any("Pod " in line for line in lines)


def test_the_levels_of_klog_give_the_steps_of_every_cycle() -> None:
    turns, pods = log_of("-v", "3"), log_of("-v", "4")
    steps = [line for line in turns if " maniple.steps: " in line]
    assert any(
        " info cycle=1 maniple.steps: allocate queue=research job=research/pretrain: " in line
        for line in steps
    )
    assert any("job=research/pretrain: committed for job research/pretrain" in line for line in steps)
    assert not any(" pod=" in line for line in steps)
    assert any(" debug cycle=1 maniple.steps: allocate job=research/pretrain pod=" in line for line in pods)
    assert not any(" node=" in line for line in pods)
    assert any(" node=" in line and ": score " in line for line in log_of("-v", "5"))


def test_a_level_of_the_log_alone_gives_no_steps() -> None:
    assert not any("maniple.steps" in line for line in log_of("--log-level", "debug"))


def test_by_default_nothing_is_added() -> None:
    assert log_of() == []


@pytest.mark.parametrize(
    ("level", "form", "process", "expected"),
    [
        (None, None, Process(), Logging(logging.WARNING, "")),
        (None, None, Process(verbosity=0), Logging(logging.INFO, "text")),
        (None, None, Process(verbosity=3), Logging(logging.INFO, "text", 3)),
        (None, None, Process(verbosity=10), Logging(logging.DEBUG, "text", 5)),
        ("error", None, Process(verbosity=10), Logging(logging.ERROR, "text")),
        (None, None, Process(logs_json=True), Logging(logging.WARNING, "json")),
        ("debug", "text", Process(logs_json=True), Logging(logging.DEBUG, "text")),
    ],
)
def test_flags(level: str | None, form: str | None, process: Process, expected: Logging) -> None:
    assert logging_of(level, form, process) == expected


def test_a_record_is_one_line() -> None:
    record = logging.LogRecord("maniple.x", logging.INFO, "", 0, "a\nb %s", ("c",), None)
    assert TextFormatter().format(record).endswith("info cycle=0 maniple.x: a b c")
    assert json.loads(JsonFormatter().format(record))["message"] == "a\nb c"
