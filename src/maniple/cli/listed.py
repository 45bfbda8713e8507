"""Queues and jobs as tables: called by `maniple queue` and `maniple job`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.text import Text

from maniple.cli.listing import JobDetails, JobLine, QueueDetails, QueueLine
from maniple.cli.render import bar
from maniple.cli.summary import Fill, human_amount, listed_amounts, shown_resources
from maniple.cli.tables import Table, prose
from maniple.objects.printable import printable, printable_lines

_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
BRIEF = 100  # characters of a reason in a list; `-o wide` has all of it


def age_of(seconds: float | None) -> str:
    """ "3d", "5h", "12m", as kubectl writes it."""
    if seconds is None:
        return "-"
    whole = max(int(seconds), 0)
    return next(f"{whole // size}{unit}" for size, unit in _UNITS if whole >= size or size == 1)


# -- jobs --------------------------------------------------------------------------------------------------------------


def job_table(lines: Sequence[JobLine], *, wide: bool = False, title: str = "") -> Table:
    columns = ("job", "queue", "phase", "priority", "pods", "age", "why")
    table = Table(title, *columns, right=("priority", "pods", "age"))
    for one in lines:
        table.add_row(
            one.job,
            one.queue,
            one.phase,
            str(one.priority),
            f"{one.running}/{one.minimum}/{one.total}",
            age_of(one.age),
            prose([one.why if wide else _brief(one.why)]),
        )
    return table


def order_table(lines: Sequence[JobLine]) -> Table:
    """As `sprio` has it: the turn of each job, and what decided it."""
    columns = ("turn", "job", "queue", "priority", "key of queue", "key of job")
    table = Table("", *columns, right=("turn", "priority"))
    for one in lines:
        keys = (one.turn.queue_key, one.turn.key) if one.turn is not None else ({}, {})
        texts = (", ".join(_parts(key)) or "-" for key in keys)
        place = str(one.turn.place) if one.turn is not None else "-"
        table.add_row(place, one.job, one.queue, str(one.priority), *texts)
    return table


def print_job(found: JobDetails, out: Console) -> None:
    line = found.line
    out.print(Text(f"{printable(line.job)} in queue {printable(line.queue)}: {line.phase}", style="bold"))
    for name, value in _about(found):
        out.print(Text(f"{name + ':':<12}{printable(value)}"))
    pods = Table("Pods", "pod", "status", "node", "why")
    for one in found.pods:
        pods.add_row(one.pod, one.status, one.node or "-", prose([one.why]))
    conditions = Table("Conditions", "type", "status", "reason", "message")
    for each in found.conditions:
        conditions.add_row(each["type"], each["status"], each["reason"], prose([each["message"]]))
    for table in (pods, conditions):
        if table.row_count:
            out.print()
            out.print(table)
    if line.why:
        out.print()
        out.print(Text(f"Waits: {printable_lines(line.why)}"))
        out.print(Text(f"`maniple explain {printable(line.job)}` says more, and what would help."))


def _about(found: JobDetails) -> Iterator[tuple[str, str]]:
    line = found.line
    yield "group", found.group or "none; made for its pods"
    if found.owners:
        yield "owner", ", ".join(found.owners)
    priority = str(line.priority)
    yield "priority", f"{priority} ({found.priority_class})" if found.priority_class else priority
    yield "pods", f"{line.running} on nodes, at least {line.minimum} needed, {line.total} in all"
    if line.holds:
        yield "holds", ", ".join(f"{name} {amount}" for name, amount in line.holds.items())
    if line.turn is not None:
        yield "turn", str(line.turn.place)
    yield "age", age_of(line.age)


def _brief(why: str) -> str:
    first = why.splitlines()[0] if why else ""
    return first if len(first) <= BRIEF else f"{first[: BRIEF - 3].rstrip()}..."


def _parts(key: Mapping[str, Any]) -> Iterator[str]:
    """What decides before names and ids do; those are in the other formats."""
    for name, value in key.items():
        if name == "created":
            yield f"created {datetime.fromtimestamp(value, UTC):%Y-%m-%dT%H:%M:%SZ}" if value else "created -"
        elif name not in ("uid", "name"):
            yield f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


# -- queues ------------------------------------------------------------------------------------------------------------


def queue_table(lines: Sequence[QueueLine], *, wide: bool = False, title: str = "") -> Table:
    """Amounts as allocated of deserved, in the resources that matter."""
    fills = [Fill(one.queue, one.share, one.allocated, one.deserved) for one in lines]
    wanted = [name for one in lines for name in (*one.quota, *one.limit, *one.requested)]
    resources = shown_resources(fills, wanted)
    more = ("requested", "systems") if wide else ()
    columns = ("queue", "state", "running", "pending", "share", *resources, "weight", "quota", "limit", *more)
    table = Table(title, *columns, "parent", right=("running", "pending", *resources, "weight"))
    for one in lines:
        amounts = [_amount(name, one) for name in resources]
        extra = (listed_amounts(one.requested), ", ".join(one.systems)) if wide else ()
        table.add_row(
            "  " * one.depth + one.queue,
            one.state,
            str(one.running),
            str(one.pending),
            bar(one.share),
            *amounts,
            str(one.weight),
            listed_amounts({name: amount for name, amount in one.quota.items() if amount}),
            listed_amounts(one.limit),
            *extra,
            one.parent or "-",
        )
    return table


def print_queue(found: QueueDetails, out: Console) -> None:
    line = found.line
    path = " > ".join(one.queue for one in found.path)
    out.print(Text(f"{printable(line.queue)}: {line.state}", style="bold"))
    out.print(Text(f"{'path:':<12}{printable(path)}"))
    if found.children:
        out.print(Text(f"{'below:':<12}{printable(', '.join(found.children))}"))
    for table in (
        queue_table(found.path, title="Queues, from the top; allocated of fair share"),
        _holders(found.holders),
        job_table(found.waiting, title="In line, in the order of turns"),
    ):
        if table.row_count:
            out.print()
            out.print(table)


def _holders(lines: Iterable[JobLine]) -> Table:
    table = Table("Holders", "job", "priority", "pods", "holds", right=("priority", "pods"))
    for one in lines:
        held = ", ".join(f"{name} {amount}" for name, amount in one.holds.items() if name != "pods")
        table.add_row(one.job, str(one.priority), f"{one.running}/{one.minimum}/{one.total}", held)
    return table


def _amount(resource: str, line: QueueLine) -> str:
    amount, deserved = line.allocated.get(resource, 0), line.deserved.get(resource)
    text = human_amount(resource, amount)
    return text if deserved is None else f"{text}/{human_amount(resource, deserved)}"
