"""The command `maniple snapshot`: everything that a plan depends on, from a running scheduler or from its journal."""

import os
from pathlib import Path
from typing import Any

import click
import msgspec

from maniple.cli import InputError, reader_may_leave
from maniple.cli.echo import echo
from maniple.cli.journal_input import opened
from maniple.cli.scheduler_input import (
    DEFAULT_ADDRESS,
    LONGEST,
    SNAPSHOT,
    Access,
    RunningScheduler,
    access_options,
    is_address,
)
from maniple.objects.lists import has_settings
from maniple.objects.printable import printable_json


@click.command("snapshot")
@click.argument("source", metavar="[SOURCE]", default=DEFAULT_ADDRESS)
@click.option(
    "--anonymise", is_flag=True, help="Replace names of namespaces, objects, images and labels' values."
)
@click.option(
    "-f",
    "--file",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write it there, readable by its owner only.  [default: standard output]",
)
@access_options
def command(source: str, anonymise: bool, file: Path | None, access: Access) -> None:
    """Take a snapshot of a running scheduler.

    SOURCE is the address of a scheduler that was started with --debug-endpoints (see `maniple run --listen`), the
    folder of its journal, or a file that this command or `maniple rewind -o list` wrote; by default
    http://127.0.0.1:8080. The snapshot holds the cluster as the scheduler believes it to be, its configuration and
    options: `maniple plan` reads it and decides as the scheduler would.

    With --anonymise the snapshot can be given to others. Pseudonyms keep the order of names, so that the plan stays the
    same but for the names. Labels and annotations of Kubernetes, schedulers and device plugins stay as they are.

    \b
    Examples:
      maniple snapshot > cluster.json
      maniple snapshot https://scheduler:8443 --token-file token --ca-file ca.crt --anonymise -f for-a-report.json
      maniple snapshot journal/ --anonymise | maniple plan -

    Exit code: 0; 2 if usage or input is bad, or the scheduler does not answer.
    """
    if is_address(source):
        document = _document(RunningScheduler(source, access).page(SNAPSHOT), source)
    elif Path(source).exists():
        document = _read(Path(source))
    else:
        raise InputError(
            f"{source}: neither an address with http:// or https:// nor an existing file or folder"
        )
    if anonymise:
        from maniple.journal.pseudonyms import pseudonymised

        document = pseudonymised(document)
    text = printable_json(msgspec.json.encode(document).decode())
    if file is None:
        with reader_may_leave():
            echo(text)
    else:
        _write(file, text)


def _read(path: Path) -> dict[str, Any]:
    """From a journal, or from a file that has a snapshot."""
    from maniple.journal.frames import SUFFIX

    if path.is_dir() or path.suffix == SUFFIX:
        with opened(path) as journal:
            return journal.last().moment().to_list()
    try:
        with path.open("rb") as stream:
            return _document(stream.read(LONGEST), str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def _document(content: bytes, source: str) -> dict[str, Any]:
    from maniple.journal.moment import Moment

    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InputError(f"{source}: not JSON, so not a snapshot") from None
    if not has_settings(document):
        raise InputError(
            f"{source}: not a snapshot; expected what `maniple snapshot` or `maniple rewind -o list` writes"
        )
    try:
        Moment.of_list(document)
    except ValueError as error:
        raise InputError(f"{source}: not a snapshot that this version reads: {error}") from None
    found: dict[str, Any] = document
    return found


def _write(file: Path, text: str) -> None:
    # A new name first: a reader never sees half a file, and a link of that name is not followed.
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        with open(
            os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as out:
            out.write(text + "\n")
        unfinished.replace(file)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from None
