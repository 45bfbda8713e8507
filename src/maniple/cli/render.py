"""Formats a plan: tables for people, plain values for programs; called by the command `plan`.

Programs get everything. Tables have a row per job, the fullest nodes and the queues; `everything=True` adds a
row per task and every node.
"""

import errno
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import yaml
from rich.console import Console
from rich.text import Text

from maniple.cli.summary import (
    Evicted,
    Fill,
    Later,
    Placed,
    Summary,
    Waiting,
    deserved_resources,
    human_amount,
    node_fill,
    queue_fill,
    queue_lines,
    shown_resources,
    summary,
)
from maniple.cli.tables import Bar, Table, prose
from maniple.objects.printable import printable_json, printable_lines

if TYPE_CHECKING:
    from maniple.planner import Plan

PARTS = (
    "binds",
    "held",
    "pipelined",
    "starting",
    "evictions",
    "evicted",
    "tasks",
    "jobs",
    "queues",
    "nodes",
    "problems",
    "warnings",
)
NODE_ROWS = 10
NODES_IN_A_ROW = 4
BAR_CELLS = 10
WIDTH_WITHOUT_TERMINAL = 1_000_000


class _Output(Console):
    """Leaves a closed pipe to the command."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes what is not printable: between double quotes, our escapes are YAML's own."""

    def represent_str(self, text: str) -> yaml.Node:
        style = None if printable_lines(text) == text else '"'
        node: yaml.Node = self.represent_scalar("tag:yaml.org,2002:str", text, style=style)
        return node


_Dumper.add_representer(str, _Dumper.represent_str)


def console() -> Console:
    """Standard output: as wide as the terminal, or without bounds when there is none."""
    return bounded(_Output(highlight=False))


def bounded(out: Console) -> Console:
    """The same console; one that is no terminal never wraps a line."""
    if not out.is_terminal:
        out.width = WIDTH_WITHOUT_TERMINAL
    return out


def plan_values(plan: "Plan") -> dict[str, Any]:
    """The whole plan as dictionaries, lists, strings and numbers; `summary` has the rows of the tables about jobs."""
    values = {"summary": summary(plan), **{name: getattr(plan, name) for name in PARTS}}
    plain: dict[str, Any] = msgspec.to_builtins(values)
    return plain


def plan_json(plan: "Plan") -> str:
    return as_json(plan_values(plan))


def as_json(values: Mapping[str, Any]) -> str:
    return document(msgspec.json.encode(values))


def document(text: str | bytes) -> str:
    """A JSON document, indented."""
    encoded = text.encode() if isinstance(text, str) else text
    return printable_json(msgspec.json.format(encoded, indent=2).decode())


def plan_yaml(plan: "Plan") -> str:
    return as_yaml(plan_values(plan))


def as_yaml(values: Mapping[str, Any]) -> str:
    text: str = yaml.dump(msgspec.to_builtins(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return printable_lines(text.rstrip("\n"))


def plan_names(plan: "Plan", jobs_of: Mapping[str, str]) -> list[str]:
    """The jobs that the tables have rows for, as kind and name; a pod without a job is one itself."""
    rows = summary(plan, jobs_of)
    names = [row.job for some in (rows.placed, rows.starting, rows.evicted, rows.waiting) for row in some]
    return [f"{'podgroup' if job in plan.jobs else 'pod'}/{job}" for job in dict.fromkeys(names)]


def print_plan(
    plan: "Plan", jobs_of: Mapping[str, str], out: Console, everything: bool = False, *, wide: bool = False
) -> None:
    """The headline, then every table that has rows; `wide` shortens no list and wraps no line."""
    if wide:
        out = _Output(file=out.file, highlight=False, force_terminal=False, width=WIDTH_WITHOUT_TERMINAL)
    rows = summary(plan, jobs_of)
    nodes = node_fill(plan)
    shown = nodes if everything or wide else nodes[:NODE_ROWS]
    out.print(headline(plan, rows))
    for table in (
        _task_table(plan, jobs_of) if everything else _placed_table(rows.placed, wide),
        _starting_table(rows.starting),
        _eviction_table(rows.evicted),
        _waiting_table(rows.waiting),
        fill_table("Nodes, fullest first", "node", "in use", shown, shown_resources(nodes)),
        _queue_table(plan),
    ):
        if table.row_count:
            out.print()
            out.print(table)
    if len(shown) < len(nodes):
        out.print()
        out.print(_other_nodes(nodes))


def headline(plan: "Plan", rows: Summary) -> Text:
    starting, waiting = sum(row.tasks for row in rows.starting), len(rows.waiting)
    parts = [count(len(plan.binds) + len(plan.held), "task") + " bound"]
    if starting:
        parts.append(
            f"{count(starting, 'task')} {'starts' if starting == 1 else 'start'} when others have left"
        )
    if plan.evictions:
        parts.append(count(len(plan.evictions), "task") + " evicted")
    parts.append(count(waiting, "job") + (" waits" if waiting == 1 else " wait"))
    size = f"{count(len(plan.nodes), 'node')}, {count(len(queue_fill(plan)), 'queue')}"
    return Text(f"{', '.join(parts)}; {size}.", style="bold")


def count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _placed_table(rows: list[Placed], wide: bool) -> Table:
    table = Table("Placed", "job", "queue", "tasks", "on", right=("tasks",))
    for row in rows:
        where = places(row.nodes, len(row.nodes) if wide else NODES_IN_A_ROW)
        if row.held:
            where += f" ({row.held} once volumes are bound)"
        table.add_row(row.job, row.queue, str(row.tasks), where)
    return table


def places(nodes: Mapping[str, int], most: int = NODES_IN_A_ROW) -> str:
    """ "node-1 ×4, node-2 ×4", the nodes with most tasks first."""
    ranked = sorted(nodes.items(), key=lambda each: (-each[1], each[0]))
    shown = [name if number == 1 else f"{name} ×{number}" for name, number in ranked[:most]]
    more = len(ranked) - most
    return ", ".join(shown) + (f" and {count(more, 'more node')}" if more > 0 else "")


def _task_table(plan: "Plan", jobs_of: Mapping[str, str]) -> Table:
    table = Table("Placed", "task", "job", "node", "how")
    for placements, how in (
        (plan.binds, "bind"),
        (plan.held, "once volumes are bound"),
        (plan.pipelined, "pipelined"),
    ):
        for task, node in placements.items():
            table.add_row(task, jobs_of.get(task, ""), node, how)
    return table


def _starting_table(rows: list[Later]) -> Table:
    table = Table("Starting when others have left", "job", "queue", "tasks", "on", "when", right=("tasks",))
    for row in rows:
        table.add_row(row.job, row.queue, str(row.tasks), places(row.nodes), prose(row.reasons))
    return table


def _eviction_table(rows: list[Evicted]) -> Table:
    columns = ("job", "queue", "tasks", "from", "for", "why")
    table = Table("Evicted", *columns, right=("tasks",))
    for row in rows:
        where = places(row.nodes) + (f" → {places(row.moves_to)}" if row.moves_to else "")
        table.add_row(row.job, row.queue, str(len(row.pods)), where, row.actor or "-", prose([row.reason]))
    return table


def _waiting_table(rows: list[Waiting]) -> Table:
    table = Table("Waiting", "job", "queue", "tasks", "ready", "why", right=("tasks", "ready"))
    for row in rows:
        ready = f"{row.ready}/{row.minimum}"
        table.add_row(row.job, row.queue, str(row.tasks), ready, prose(row.reasons))
    return table


def fill_table(
    title: str, name: str, share: str, rows: list[Fill], resources: list[str] | None = None
) -> Table:
    resources = shown_resources(rows) if resources is None else resources
    table = Table(title, name, share, *resources, right=tuple(resources))
    for row in rows:
        amounts = [_amount_of(resource, row) for resource in resources]
        table.add_row(row.name, bar(row.share), *amounts)
    return table


def _queue_table(plan: "Plan") -> Table:
    """Queues against what they deserve; in a tree, with quota and limit where the plan has them."""
    lines = queue_lines(plan)
    if not lines:
        rows = queue_fill(plan)
        resources = shown_resources(rows, deserved_resources(rows))
        return fill_table("Queues, allocated of deserved", "queue", "share", rows, resources)
    rows = [line.fill for line in lines]
    resources = shown_resources(rows, deserved_resources(rows))
    used = any(line.usage for line in lines)
    columns = ["queue", "share", *resources, "quota", "limit", *(["past usage"] if used else [])]
    table = Table("Queues, allocated of fair share", *columns, right=tuple(resources))
    for line in lines:
        amounts = [_amount_of(resource, line.fill) for resource in resources]
        words = [line.quota, line.limit, *([line.usage] if used else [])]
        table.add_row("  " * line.depth + line.fill.name, bar(line.fill.share), *amounts, *words)
    return table


def _amount_of(resource: str, row: Fill) -> str:
    amount = human_amount(resource, row.amounts.get(resource, 0))
    limit = row.limits.get(resource)
    return amount if limit is None else f"{amount}/{human_amount(resource, limit)}"


def bar(share: float) -> Bar:
    """ "█████░░░░░  50%"; shares above one fill the bar and keep their number."""
    cells = round(min(max(share, 0.0), 1.0) * BAR_CELLS)
    number = "∞" if share == float("inf") else f"{share:.0%}"
    style = "red" if share > 0.9 else "yellow" if share > 0.6 else "green"
    drawn = Bar("█" * cells, style="")
    drawn.stylize(style)
    drawn.append("░" * (BAR_CELLS - cells), "dim").append(f" {number:>4}")
    drawn.number = number
    return drawn


def _other_nodes(nodes: list[Fill]) -> Text:
    mean = sum(node.share for node in nodes) / len(nodes)
    more = count(len(nodes) - NODE_ROWS, "more node")
    return Text(
        f"{more} not shown (--all shows them); all nodes are {mean:.0%} in use on average.", style="dim"
    )
