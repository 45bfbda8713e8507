"""What the commands about journals share: the argument, how a moment is named, and errors."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from maniple.cli import InputError
from maniple.cli.reporting import print_messages

if TYPE_CHECKING:
    from maniple.journal.reading import Journal, Step

_CYCLE = re.compile(r"(?:(\d{1,6}):)?(\d{1,10})")

journal_argument = click.argument(
    "path", metavar="JOURNAL", type=click.Path(exists=True, path_type=Path, allow_dash=False)
)


@dataclass(frozen=True, slots=True)
class At:
    """A cycle, of a run or of the last one; or a time."""

    moment: int | datetime
    run: int | None = None

    def step(self, journal: "Journal") -> "Step":
        return journal.step(self.moment, self.run)


def moment_of(ctx: click.Context, param: click.Parameter, value: str | None) -> At | None:
    """17, 2:17 or an RFC 3339 time."""
    if value is None:
        return None
    found = _CYCLE.fullmatch(value)
    if found is not None:
        return At(int(found[2]), int(found[1]) if found[1] else None)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is neither a cycle such as 17 or 2:17 nor a time such as 2026-01-31T12:00:00Z"
        ) from None
    if moment.tzinfo is None:
        raise click.BadParameter(f"{value!r} has no time zone; add Z or an offset such as +02:00")
    return At(moment.astimezone(UTC))


@contextmanager
def opened(path: Path) -> "Iterator[Journal]":
    """A journal to read; what is wrong with it ends the command."""
    from maniple.framework.configuration.loading import ConfigurationError
    from maniple.journal import JournalError, read

    try:
        journal = read(path)
        print_messages(
            "warning",
            (
                f"{segment}: damaged at byte {at:,}; what follows is not read"
                for segment, at in journal.torn().items()
            ),
        )
        yield journal
    except (JournalError, ConfigurationError) as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{error.filename or path}: {error.strerror or error}") from None
