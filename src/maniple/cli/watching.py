"""`--watch` of `plan`, `queue list` and `job list`: look again whenever the input changes, and show what is new.

Files are looked at every second, by their times and sizes; a cluster is listed again every few seconds.
What is wrong with the input is told once, not once for each look; it never ends the watch. Ctrl-C does.
"""

import io
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr
from pathlib import Path
from time import sleep
from typing import TypeVar

import click

from maniple.cli.echo import echo
from maniple.cli.planning_options import Asked
from maniple.cli.read import manifests_below

T = TypeVar("T")

LOOK_SECONDS = 1.0
LIST_SECONDS = 5.0

Stamp = tuple[tuple[str, int, int], ...]


def watch(asked: Asked, make: Callable[[], T], show: Callable[[T], None]) -> None:
    """Call `make` whenever the input may have changed, and `show` with each new result, until Ctrl-C."""
    files = [path for path in (*asked.paths, asked.conf) if path]
    last: T | None = None
    said = ""
    try:
        while True:
            stamp = _stamp(files)
            found, words = _tried(make)
            if words != said:
                echo(words, err=True, nl=False)
                said = words
            if found is not None and found != last:
                show(found)
                sys.stdout.flush()
                last = found
            _wait(files, stamp, listed=asked.on_cluster)
    except KeyboardInterrupt:
        return


def _tried(make: Callable[[], T]) -> tuple[T | None, str]:
    """The result, and everything that was said about it on the way; None where there is none."""
    words = io.StringIO()
    with redirect_stderr(words):
        try:
            found = make()
        except click.ClickException as error:
            echo(f"Error: {error.format_message()}", err=True)
            return None, words.getvalue()
    return found, words.getvalue()


def _wait(files: list[str], stamp: Stamp, *, listed: bool) -> None:
    """Until a file has changed, or it is time to list a cluster again."""
    waited = 0.0
    while _stamp(files) == stamp and not (listed and waited >= LIST_SECONDS):
        sleep(LOOK_SECONDS)
        waited += LOOK_SECONDS


def _stamp(paths: Iterable[str]) -> Stamp:
    """Name, time and size of every file that is there."""
    found = []
    for path in paths:
        for file in manifests_below(Path(path)) if os.path.isdir(path) else (Path(path),):
            try:
                about = file.stat()
            except OSError:
                continue
            found.append((str(file), about.st_mtime_ns, about.st_size))
    return tuple(found)
