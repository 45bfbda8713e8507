"""The flags of `maniple run` about its journal."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from maniple.journal.recorder import Recorder

DEFAULT_SIZE = "256Mi"


@dataclass(frozen=True, slots=True)
class JournalFlags:
    """`size`: bytes of all segments together."""

    folder: Path
    size: int


def _size(ctx: click.Context, param: click.Parameter, value: str) -> int:
    from maniple.journal.writer import SMALLEST_SIZE
    from maniple.objects.quantity import parse

    try:
        size = int(parse(value))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a size such as 256Mi or 1Gi") from None
    if size < SMALLEST_SIZE:
        raise click.BadParameter(f"{value} is less than {SMALLEST_SIZE // 2**20}Mi")
    return size


_OPTIONS = (
    click.option(
        "--journal",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help="Record every cycle in files of this folder, for `maniple history` and `maniple rewind`.",
    ),
    click.option(
        "--journal-size",
        metavar="SIZE",
        default=DEFAULT_SIZE,
        show_default=True,
        callback=_size,
        help="The most that these files may take together; the oldest are removed.",
    ),
)


def journal_flags(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the flags to a command, which gets them as one `recording`: None without a folder."""

    @functools.wraps(function)
    def asking(*arguments: Any, journal: Path | None, journal_size: int, **given: Any) -> None:
        flags = JournalFlags(journal, journal_size) if journal is not None else None
        function(*arguments, **given, recording=flags)

    decorated: Callable[..., None] = asking
    for decorate in reversed(_OPTIONS):
        decorated = decorate(decorated)
    return decorated


@contextmanager
def recorder_of(flags: JournalFlags | None, *, virtual_time: bool = False) -> "Iterator[Recorder | None]":
    """The recorder of a scheduler while it runs; in virtual time it waits for the disk."""
    if flags is None:
        yield None
        return
    from maniple.journal.recorder import Recorder
    from maniple.journal.writer import Writer

    recorder = Recorder(Writer(flags.folder, flags.size, waits=virtual_time))
    try:
        yield recorder
    finally:
        recorder.close()
