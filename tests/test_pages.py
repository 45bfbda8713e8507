"""Every command in the README and the pages is run, and prints what the page shows.

`python -m tests.test_pages` writes the outputs anew after an intended change; look at the difference before
it is committed.
"""

import html
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from maniple.cli.main import main
from maniple.cli.picture import drawn
from tests.shown_commands import NOT_RUN, PAGES, ROOT, Command, commands_of, prepare, rewritten, run_in, same

SHOWN = {page: commands_of(page) for page in PAGES}
EXIT_CODES = {"--fail-on-waiting": (0, 1)}


@pytest.fixture(params=[page for page, commands in SHOWN.items() if commands])
def page(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_command_runs_and_prints_what_is_shown(page: str, tmp_path: Path) -> None:
    prepare(tmp_path)
    for command in SHOWN[page]:
        if command.why_not_run:
            continue
        code, output = run_in(tmp_path, command)
        assert "Traceback" not in output, output
        assert code == 0, f"{page}: {command.text}\n{output}"
        if command.output:
            assert same(command.output, output), f"{page}: {command.text} prints\n{output}"


@pytest.mark.parametrize(
    "page", [*PAGES, *sorted(file.name for file in ROOT.glob("*.md") if file.name not in PAGES)]
)
def test_prose_fits_120_columns(page: str) -> None:
    """Rows of tables and what is shown of commands may be wider."""
    text = re.sub(r"^ *```.*?^ *```$", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in text.splitlines() if len(line) > 120 and not line.startswith(("|", "<"))] == []


def test_commands_that_are_not_run_are_still_right(page: str) -> None:
    for command in SHOWN[page]:
        words = shlex.split(command.text.partition("|")[0].partition(">")[0].partition("&&")[0])
        if command.why_not_run and words[:1] == ["maniple"] and "[PATH]..." not in words:
            _parse(words[1:])


def _parse(words: list[str]) -> None:
    """Read the command line without doing anything; a file that it names need not be there."""
    one = main.get_command(click.Context(main), words[0])
    assert one is not None, words
    checked = [one.type for one in one.params if isinstance(one.type, click.Path) and one.type.exists]
    try:
        for path in checked:
            path.exists = False
        with one.make_context(words[0], words[1:], parent=click.Context(main, info_name="maniple")):
            pass
    finally:
        for path in checked:
            path.exists = True


def test_every_reason_for_not_running_is_needed() -> None:
    texts = [command.text for commands in SHOWN.values() for command in commands]
    for begin in NOT_RUN:
        assert any(text.startswith(begin) for text in texts), begin


def test_make_knows_what_the_pages_name() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for commands in SHOWN.values():
        for command in commands:
            if command.text.startswith("make "):
                assert f"\n{command.text.split()[1]}: " in makefile, command


# -- the picture -----------------------------------------------------------------------------------------------------

PICTURE = ROOT / "docs" / "plan.svg"


def words_of(svg: str) -> list[str]:
    return [html.unescape(text) for text in re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL)]


def test_the_picture_shows_what_the_command_prints_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert words_of(PICTURE.read_text(encoding="utf-8")) == words_of(drawn("examples/quickstart"))


def test_the_picture_loads_nothing() -> None:
    text = PICTURE.read_text(encoding="utf-8")
    assert re.findall(r"https?://[^\"' )]+", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"@font-face|@import|<script|<image|xlink|url\((?!#)", text)


def test_the_readme_shows_the_picture() -> None:
    assert "(docs/plan.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")


def outputs_now(page: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        for command in SHOWN[page]:
            if command.why_not_run:
                assert not command.output, command
                continue
            output = run_in(Path(folder), command)[1]
            if command.output:
                cut = _cut(command, output) if "..." in command.output else output
                yield "\n".join(command.output) if same(command.output, output) else cut


def _cut(command: Command, output: str) -> str:
    """As many lines from the start and from the end as the page shows."""
    first, lines = command.output.index("..."), output.splitlines()
    last = len(command.output) - first - 1
    return "\n".join([*lines[:first], "...", *(lines[-last:] if last else [])])


if __name__ == "__main__":
    for name in PAGES:
        (ROOT / name).write_text(rewritten(name, outputs_now(name)), encoding="utf-8")
