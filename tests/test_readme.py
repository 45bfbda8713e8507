"""The README shows what a new user sees."""

import re
from pathlib import Path

from click.testing import CliRunner

from maniple.cli.main import main

README = Path(__file__).parent.parent / "README.md"


def told(text: str) -> list[str]:
    """The subject and the event of each line, without the time and the text of a reason."""
    lines = [re.sub(r"^ *[0-9.]+s  ", "", line) for line in text.splitlines()]
    return [line.partition("waits: ")[0] for line in lines]


def test_the_readme_shows_what_make_run_shows() -> None:
    shown = re.search(r"```text\n( +0\.0s  cluster.*?)```", README.read_text(encoding="utf-8"), re.S)
    assert shown is not None
    result = CliRunner().invoke(main, ["run", "--virtual-time", "--until-done"])
    assert told(shown[1]) == told(result.output)
