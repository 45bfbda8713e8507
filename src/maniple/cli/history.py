"""The command `maniple history`: what happened to a job, in every cycle, or to pods that were evicted."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from maniple.cli import InputError, reader_may_leave
from maniple.cli.echo import echo
from maniple.cli.journal_input import At, journal_argument, moment_of, opened

if TYPE_CHECKING:
    from maniple.cli.tables import Table
    from maniple.journal.history import Event, Loss, Summary
    from maniple.journal.reading import Journal, Step

DEFAULT_LIMIT = 100


@click.command("history")
@journal_argument
@click.argument("job", metavar="[NAMESPACE/JOB]", required=False)
@click.option("--evictions", is_flag=True, help="Show evicted pods: what each lost, to which job, and why.")
@click.option("--since", metavar="CYCLE|TIME", callback=moment_of, help="Leave out what came before.")
@click.option("--until", metavar="CYCLE|TIME", callback=moment_of, help="Leave out what came after.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Rows at most in the table, the last ones; 0: all.",
)
@click.option(
    "--export",
    metavar="FILE.parquet",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write all rows to this file instead, for further analysis; needs maniple[parquet].",
)
@click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Format."
)
def command(
    path: Path,
    job: str | None,
    evictions: bool,
    since: At | None,
    until: At | None,
    limit: int,
    export: Path | None,
    output: str,
) -> None:
    """Show what happened to a job, or in every cycle.

    JOURNAL is the folder that `maniple run --journal` writes, or one of its files. With a job: when it arrived, why it
    waited, where it was placed, for which job it was evicted and what that cost, and how it ended. Without one: the
    cycles. --evictions is the ledger of all evictions, or of those that a job suffered or caused.

    \b
    Examples:
      maniple history journal/
      maniple history journal/ research/train
      maniple history journal/ --evictions -o json
      maniple history journal/ --evictions --export evictions.parquet

    Exit code: 0; 2 if usage or input is bad, or if the journal does not know the job.
    """
    from maniple.journal import history

    with opened(path) as journal:
        steps = _steps(journal, since, until)
        rows: list[Any]
        if evictions:
            rows = [one for one in history.losses(steps) if not job or job in (one.job, one.by)]
        elif job:
            rows = [*history.events(steps, job)]
        else:
            rows = [*history.summaries(steps)]
    if job and not evictions and not rows:
        raise InputError(f"{job}: not in this journal")
    if export is not None:
        _export(rows, export)
        return
    with reader_may_leave():
        if output == "json":
            from maniple.cli import render

            echo(render.as_json({"items": [asdict(row) for row in rows]}))
        else:
            _print(rows, limit, _ledger if evictions else _story if job else _cycles)
            _remark(rows, evictions)


def _steps(journal: "Journal", since: At | None, until: At | None) -> "Iterator[Step]":
    """The cycles between two moments; what came before the first is read, so that its end is known."""
    for step in journal.steps(run=since.run if since is not None else None):
        if until is not None and _later(step, until):
            return
        if since is None or not _earlier(step, since):
            yield step


def _later(step: "Step", at: At) -> bool:
    if isinstance(at.moment, int):
        return step.number > at.moment and (at.run is None or step.run >= at.run)
    return step.when > at.moment


def _earlier(step: "Step", at: At) -> bool:
    return step.number < at.moment if isinstance(at.moment, int) else step.when < at.moment


def _print(rows: list[Any], limit: int, table_of: "Callable[[Iterable[Any]], Table]") -> None:
    from maniple.cli import render

    if not rows:
        return
    left_out = len(rows) - limit if limit else 0
    if left_out > 0:
        echo(f"the last {limit:,} of {len(rows):,}; --limit 0 shows all", err=True)
    render.console().print(table_of(islice(rows, max(0, left_out), None)))


def _remark(rows: list[Any], evictions: bool) -> None:
    from maniple.explaining.losses import amounts

    if not rows:
        echo("nothing", err=True)
        return
    if evictions:
        total: dict[str, float] = {}
        for row in rows:
            for name, value in row.lost.items():
                total[name] = total.get(name, 0.0) + value
        echo(f"{len(rows):,} pods evicted; lost: {amounts(total)}")


def _cycles(rows: "Iterable[Summary]") -> "Table":
    from maniple.cli.tables import Table

    numbers = ("took ms", "changes", "placed", "starting", "evicted", "jobs waiting")
    table = Table("Cycles", "time", "run", "cycle", *numbers, right=("run", "cycle", *numbers))
    for one in rows:
        figures = (one.changes, one.placed, one.promised, one.evicted, one.waiting)
        table.add_row(
            _time(one),
            str(one.run),
            str(one.cycle),
            f"{one.seconds * 1000:.1f}",
            *(f"{each:,}" for each in figures),
        )
    return table


def _story(rows: "Iterable[Event]") -> "Table":
    from maniple.cli.tables import Table

    table = Table("History", "time", "run", "cycle", "what", "about", right=("run", "cycle"))
    for one in rows:
        table.add_row(_time(one), str(one.run), str(one.cycle), one.what, one.text)
    return table


def _ledger(rows: "Iterable[Loss]") -> "Table":
    from maniple.cli.tables import Table
    from maniple.explaining.losses import amounts, duration

    columns = ("time", "cycle", "pod", "node", "for", "action", "had run", "lost", "why")
    table = Table("Evictions", *columns, right=("cycle",))
    for one in rows:
        lost = amounts(one.lost) if one.ran else ""
        ran = duration(one.ran) if one.ran else ""
        table.add_row(_time(one), str(one.cycle), one.pod, one.node, one.by, one.action, ran, lost, one.why)
    return table


def _time(one: "Event | Loss | Summary") -> str:
    return f"{one.when:%Y-%m-%dT%H:%M:%S}.{one.when.microsecond // 1000:03}Z"


def _export(rows: list[Any], file: Path) -> None:
    from maniple.journal.parquet import MissingLibraryError, write

    try:
        write(rows, file)
    except MissingLibraryError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from None
    echo(f"{len(rows):,} rows written to {file}", err=True)
