"""The command `maniple man`: writes a manual page for each command, made from its help.

The format is that of man(7). Everything comes from the commands themselves: the first sentence is the name's
description, the section Examples and the paragraph about exit codes become sections of their own.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from maniple import __version__
from maniple.cli import InputError

PROGRAM = "maniple"


@click.command("man")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write manual pages, made from the help.

    One page for each command, in section 1: maniple.1, maniple-plan.1 and so on. The folder is created.

    \b
    Examples:
      maniple man ~/.local/share/man/man1 && man maniple-plan
      maniple man build/man

    Exit code: 0; 2 if usage is bad or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in pages().items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {error.strerror or error}") from None


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    from maniple.cli.main import COMMANDS, main

    root = click.Context(main, info_name=PROGRAM)
    about = {name: line for name, (_, line) in COMMANDS.items()}
    found = {f"{PROGRAM}.1": _page(PROGRAM, main, root, about)}
    for name in COMMANDS:
        one = main.get_command(root, name)
        assert one is not None
        context = click.Context(one, info_name=name, parent=root)
        parts = one.commands if isinstance(one, click.Group) else {}
        shown = {f"{name}-{part}": _paragraphs(each)[0] for part, each in parts.items()}
        found[f"{PROGRAM}-{name}.1"] = _page(f"{PROGRAM}-{name}", one, context, shown)
        for part, each in parts.items():
            page = f"{PROGRAM}-{name}-{part}"
            found[f"{page}.1"] = _page(page, each, click.Context(each, info_name=part, parent=context), {})
    return found


def _page(name: str, one: click.Command, context: click.Context, commands: dict[str, str]) -> str:
    paragraphs = _paragraphs(one)
    usage = " ".join(one.collect_usage_pieces(context))
    lines = [
        f'.TH "{name.upper()}" "1" "" "{PROGRAM} {__version__}" "Maniple"',
        ".SH NAME",
        f"{_escaped(name)} \\- {_escaped(paragraphs[0].rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {_escaped(context.command_path)}",
        _escaped(usage),
        ".SH DESCRIPTION",
        *_described(paragraphs),
    ]
    if commands:
        lines.append(".SH COMMANDS")
        for command_name, about in commands.items():
            lines += [".TP", f".B {PROGRAM}\\-{command_name}(1)", _escaped(about)]
    lines += [".SH OPTIONS", *_options(one, context)]
    for title, wanted in (("EXAMPLES", "Examples:"), ("EXIT STATUS", "Exit code:")):
        found = [text for text in paragraphs if text.startswith(wanted)]
        if found:
            lines += [f".SH {title}", *_section(found[0].removeprefix(wanted))]
    lines += [".SH SEE ALSO", _see_also(name)]
    return "\n".join(lines) + "\n"


def _paragraphs(one: click.Command) -> list[str]:
    text = inspect.cleandoc(one.help or "").replace("\b\n", "")
    return [paragraph.strip("\n") for paragraph in text.split("\n\n") if paragraph.strip()]


def _described(paragraphs: list[str]) -> Iterator[str]:
    for text in paragraphs:
        if not text.startswith(("Examples:", "Exit code:")):
            yield ".PP"
            yield from _section(text)


def _section(text: str) -> Iterator[str]:
    """Prose is filled; what has lines that are indented is printed as it stands."""
    if not any(line.startswith("  ") for line in text.splitlines()):
        yield _escaped(" ".join(text.split()))
        return
    yield ".nf"
    yield from (_escaped(line) for line in text.strip("\n").splitlines())
    yield ".fi"


def _options(one: click.Command, context: click.Context) -> Iterator[str]:
    for param in one.get_params(context):
        record = param.get_help_record(context)
        if record is not None and record[1]:
            names, about = record
            yield from (".TP", f".B {_escaped(names)}", _escaped(" ".join(about.split())))


def _see_also(name: str) -> str:
    from maniple.cli.main import COMMANDS

    others = [PROGRAM, *(f"{PROGRAM}-{one}" for one in COMMANDS)]
    return ", ".join(f"{_escaped(one)}(1)" for one in others if one != name)


def _escaped(text: str) -> str:
    """A line that starts with a dot or a quote would be a request, and a bare hyphen a dash."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{safe}" if safe.startswith((".", "'")) else safe
