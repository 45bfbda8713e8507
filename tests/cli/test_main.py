"""The command itself: help, version, and start-up that loads nothing heavy."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from maniple import __version__
from maniple.cli import EXIT_CLOSED_PIPE
from maniple.cli.main import COMMANDS, main

EXAMPLE = Path(__file__).parents[2] / "examples" / "quickstart"


def test_help_lists_every_command_and_no_hidden_one() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert all(about in result.output for _, about in COMMANDS.values())
    assert "bench-one" not in result.output


def test_version() -> None:
    assert CliRunner().invoke(main, ["--version"]).output.strip().endswith(__version__)


def test_kubectl_runs_the_same_commands_as_a_plugin() -> None:
    scripts = tomllib.loads((EXAMPLE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "scripts"
    ]
    module, _, function = scripts["kubectl-maniple"].partition(":")
    code = f"import sys; sys.argv[1:] = ['queue', '--help']; from {module} import {function}; {function}()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: kubectl maniple queue ")


def test_an_unknown_command_is_bad_usage() -> None:
    assert CliRunner().invoke(main, ["plant"]).exit_code == 2


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_every_command_shows_an_example_and_its_exit_codes(name: str) -> None:
    result = CliRunner().invoke(main, [*([name] if name else []), "--help"])
    assert result.exit_code == 0
    about = result.output.split("Options:")[0].split("\n", 1)[1]
    assert "Examples:\n" in about
    assert f"maniple {name}".rstrip() + " " in about
    assert "Exit code: 0; " in " ".join(about.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_fits_its_width(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"], terminal_width=110)
    assert max(map(len, result.output.splitlines())) <= 120


def test_help_loads_neither_the_engine_nor_the_tables() -> None:
    code = (
        "import sys\nfrom maniple.cli.main import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "print(sorted({'numpy', 'rich', 'yaml', 'msgspec', 'maniple.planner'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", f"from maniple.cli.main import main; main({[*arguments]!r})"]


@pytest.mark.parametrize("arguments", [("run", "--virtual-time", "--until-done"), ("crds",)])
def test_a_closed_pipe_ends_it_silently(arguments: tuple[str, ...]) -> None:
    with subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == EXIT_CLOSED_PIPE


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize(
    ("command_name", "given", "code"), [("plan", [], 0), ("replay", ["--fail-on-waiting"], 1)]
)
def test_a_reader_that_leaves_early_does_not_change_the_verdict(
    command_name: str, given: list[str], code: int, form: str, tmp_path: Path
) -> None:
    from tests.cli.test_plan_command import gang, node, queue

    many = [job for index in range(300) for job in gang(f"wide-{index}", ["900"])]
    (tmp_path / "cluster.json").write_text(json.dumps([node("n1"), queue(), *many]))
    words = [command_name, str(tmp_path), "--profile", "volcano", "-o", form, "--all", *given]
    with subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == code


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_an_output_that_takes_no_more_is_one_clear_error() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command("crds"), stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60
        )
    assert (done.returncode, done.stderr) == (
        2,
        "Error: the output cannot be written: No space left on device\n",
    )


def test_a_terminal_that_knows_only_ascii_gets_question_marks() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    arguments = command("plan", str(EXAMPLE), "--profile", "volcano")
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "gpu-1 ?2, gpu-2 ?2" in done.stdout
