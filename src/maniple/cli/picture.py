"""The hidden command `maniple picture`: a plan as an SVG, for the README; `make picture` calls it.

The same input gives the same picture. It names only fonts that are installed where it is looked at, and
loads nothing from anywhere.
"""

import io
from pathlib import Path

import click

from maniple.cli import InputError
from maniple.cli.profile_choice import choose
from maniple.cli.read import read_paths
from maniple.objects.printable import printable

WIDTH = 100
# Rich's own format has fonts from a network.
SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
  font-variant-east-asian: full-width;
}}
.{unique_id}-title {{
  font-size: 18px;
  font-weight: bold;
  font-family: ui-sans-serif, system-ui, sans-serif;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
  <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


@click.command("picture", hidden=True)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("path")
def command(file: Path, path: str) -> None:
    """Draw the plan of a folder of objects into an SVG."""
    try:
        file.write_text(drawn(path), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from None


def drawn(path: str, named: str = "") -> str:
    """The picture of the command `maniple plan PATH` and its output; `named` is the path as it is shown."""
    from rich.console import Console
    from rich.terminal_theme import DIMMED_MONOKAI
    from rich.text import Text

    import maniple
    from maniple.cli.render import print_plan
    from maniple.cli.summary import jobs_of_tasks

    reading = read_paths([path], io.BytesIO())
    plan = maniple.plan(reading.objects, profile=choose(reading.objects).profile)
    out = Console(
        record=True,
        width=WIDTH,
        force_terminal=True,
        color_system="truecolor",
        file=io.StringIO(),
        highlight=False,
        legacy_windows=False,
    )
    out.print(Text.assemble(("$ ", "dim"), printable(f"maniple plan {named or path}")))
    print_plan(plan, jobs_of_tasks(plan), out)
    return out.export_svg(title="maniple", theme=DIMMED_MONOKAI, code_format=SVG, unique_id="maniple")
