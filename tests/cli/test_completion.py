"""`maniple completion` and `maniple man`: made from the commands, so that they know every one of them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from maniple.cli.completion import SHELLS
from maniple.cli.main import COMMANDS, main


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_calls_maniple(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert f"_MANIPLE_COMPLETE={shell}_complete" in result.stdout


def test_another_shell_is_bad_usage() -> None:
    assert CliRunner().invoke(main, ["completion", "tcsh"]).exit_code == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("words", "completions"),
    [
        (["maniple", "pl"], ["plan"]),
        (["maniple", "plan", "--fail"], ["--fail-on-waiting"]),
        (["maniple", "plan", "--profile", "v"], ["volcano"]),
        (["maniple", "plan", "-o", ""], ["json", "name", "table", "wide", "yaml"]),
        (["maniple", "completion", "z"], ["zsh"]),
    ],
)
def test_bash_completes(words: list[str], completions: list[str], tmp_path: Path) -> None:
    program = tmp_path / "maniple"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m maniple.cli.main "$@"\n')
    program.chmod(0o755)
    script = CliRunner().invoke(main, ["completion", "bash"]).stdout
    quoted = " ".join(f"'{word}'" for word in words)
    asking = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _maniple_completion maniple"
    (tmp_path / "script").write_text(f'{script}\n{asking}\nprintf "%s\\n" "${{COMPREPLY[@]}}"\n')
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", str(tmp_path / "script")], capture_output=True, text=True, env=environment, check=True
    )
    assert sorted(done.stdout.split()) == completions


def test_there_is_a_manual_page_for_every_command(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "man1"
    assert CliRunner().invoke(main, ["man", str(folder)]).exit_code == 0
    assert {file.name for file in folder.iterdir()} == {
        "maniple.1",
        *(f"maniple-{name}.1" for name in COMMANDS),
        *(f"maniple-config-{part}.1" for part in ("check", "diff", "show")),
        *(f"maniple-queue-{part}.1" for part in ("list", "show", "create", "close", "open", "delete")),
        *(f"maniple-job-{part}.1" for part in ("list", "show", "cancel", "suspend", "resume")),
    }
    for name in COMMANDS:
        text = (folder / f"maniple-{name}.1").read_text(encoding="utf-8").replace("\\-", "-")
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"):
            assert f".SH {section}\n" in text
        command = main.get_command(click.Context(main), name)
        assert command is not None
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert all(one in text for one in option.opts), option


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff here")
def test_the_pages_are_without_fault(tmp_path: Path) -> None:
    CliRunner().invoke(main, ["man", str(tmp_path)])
    for file in tmp_path.iterdir():
        done = subprocess.run(
            ["groff", "-man", "-ww", "-z", "-Tutf8", str(file)], capture_output=True, text=True, check=True
        )
        assert done.stderr == ""


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(main, ["man", str(tmp_path / "file" / "below")])
    assert result.exit_code == 2
    assert "Not a directory" in result.stderr
