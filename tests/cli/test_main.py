"""The command itself: help, version, and start-up that loads nothing heavy."""

import subprocess
import sys

from click.testing import CliRunner

from maniple import __version__
from maniple.cli.main import COMMANDS, main


def test_help_lists_every_command_and_no_hidden_one() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert all(about in result.output for _, about in COMMANDS.values())
    assert "bench-one" not in result.output


def test_version() -> None:
    assert CliRunner().invoke(main, ["--version"]).output.strip().endswith(__version__)


def test_an_unknown_command_is_bad_usage() -> None:
    assert CliRunner().invoke(main, ["plant"]).exit_code == 2


def test_every_command_shows_an_example() -> None:
    for name in COMMANDS:
        result = CliRunner().invoke(main, [name, "--help"])
        assert result.exit_code == 0
        assert f"maniple {name} " in result.output.split("Options:")[0].split("\n", 1)[1]


def test_help_loads_neither_the_engine_nor_the_tables() -> None:
    code = (
        "import sys\nfrom maniple.cli.main import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "print(sorted({'numpy', 'rich', 'yaml', 'msgspec', 'maniple.planner'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
