"""An explanation as tables: called by the command `explain`."""

from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.text import Text

from maniple.cli.tables import Table, prose
from maniple.explaining.losses import amounts, duration
from maniple.explaining.model import Explanation, Part
from maniple.explaining.remedies.values import Remedy
from maniple.objects.printable import printable_lines

_NODES = 20  # to list


def print_explanation(found: Explanation, out: Console) -> None:
    """The sentence, then every table that has rows."""
    where = f" in queue {found.queue}" if found.queue else ""
    out.print(Text(f"{found.job}{where}: {found.state}", style="bold"))
    out.print(Text(printable_lines(found.sentence)))
    for table in (
        _also(found),
        _queues(found),
        _gang(found),
        *_nodes(found),
        _domains(found),
        _spared(found),
        _places(found),
        _departures(found),
    ):
        if table.row_count:
            out.print()
            out.print(table)
    for line in (*_turn(found), *_remedies(found), *_original(found)):
        out.print()
        out.print(Text(printable_lines(line)))


def _also(found: Explanation) -> Table:
    table = Table("Further causes", "kind", "cause")
    for one in found.causes[1:]:
        if one.sentence not in found.sentence:
            table.add_row(one.kind, prose([one.sentence]))
    return table


def _queues(found: Explanation) -> Table:
    table = Table(
        "Queues, from its own to the top", "queue", "allocated", "limit", "quota", "share", "in the way"
    )
    for level in found.levels:
        table.add_row(
            level.name,
            _amounts(level.allocated),
            _amounts(level.limit),
            _amounts(level.quota),
            _amounts(level.share),
            ", ".join(level.exceeded),
        )
    return table


def _amounts(amounts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items())


def _gang(found: Explanation) -> Table:
    columns = ("part", "minimum", "have", "can be placed", "waiting", "each requests")
    table = Table("Pods", *columns, right=columns[1:5])
    for part in found.parts:
        numbers = (part.minimum, part.have, part.found, part.waiting)
        table.add_row(part.name or "all", *map(str, numbers), part.request)
    return table


def _nodes(found: Explanation) -> Iterator[Table]:
    for part in found.parts:
        if part.groups:
            yield _of_part(part)


def _of_part(part: Part) -> Table:
    whose = f"the next pod of {part.name}" if part.name else "the next pod"
    nodes = "The node" if part.nodes == 1 else f"The {part.nodes:,} nodes"
    table = Table(f"{nodes} and {whose}", "nodes", "answer", "such as", right=("nodes",))
    for group in part.groups:
        table.add_row(f"{group.count:,}", prose([group.phrase]), ", ".join(group.examples))
    return table


def _domains(found: Explanation) -> Table:
    table = Table(
        "Network domains, roomiest first",
        "domain",
        "nodes",
        "room for pods",
        right=("nodes", "room for pods"),
    )
    for one in found.domains[:10]:
        table.add_row(one.name, str(one.nodes), str(one.room))
    return table


def _spared(found: Explanation) -> Table:
    table = Table("Pods that hold the room, and why they stay", "pods", "why", "jobs", right=("pods",))
    for one in found.protections:
        table.add_row(str(one.pods), one.phrase, ", ".join(one.jobs))
    return table


def _places(found: Explanation) -> Table:
    table = Table("Where its pods are, and what speaks for it now", "node", "pods", "why", right=("pods",))
    shown = sorted(found.places, key=lambda one: not one.why)[:_NODES]
    for one in shown:
        table.add_row(one.node, str(one.pods), prose([one.why]))
    left = found.places[_NODES:]
    if left:
        table.add_row(f"{len(left):,} more", f"{sum(one.pods for one in left):,}", "")
    return table


def _departures(found: Explanation) -> Table:
    columns = ("pod", "node", "for", "action", "had run", "lost", "why")
    table = Table("Pods that leave", *columns)
    for one in found.departures:
        ran, lost = (duration(one.seconds), amounts(one.lost)) if one.seconds else ("", "")
        table.add_row(one.pod, one.node, one.by, one.action, ran, lost, prose([one.why]))
    return table


def _turn(found: Explanation) -> Iterator[str]:
    turn = found.turn
    if turn is not None and turn.waiting > 1:
        ahead = (
            f"; ahead: {', '.join(turn.ahead[:5])}{' ...' if len(turn.ahead) > 5 else ''}"
            if turn.ahead
            else ""
        )
        yield f"In line: number {turn.position} of {turn.waiting} jobs of its queue that wait{ahead}"


def _remedies(found: Explanation) -> Iterator[str]:
    advice = found.advice
    if advice is None or advice.starts:  # its gang is whole, and only further pods wait
        return
    lines = [f"- {one.sentence}{_surely(one)}" for one in advice.remedies]
    lines += [f"- {one.sentence}" for one in advice.alone]
    if lines:
        yield "\n".join(["What would help, each by itself:", *lines])
    else:
        yield "What would help: no change of one kind, and none of several together, was found to start it."
    cut_short = sorted({one.kind for one in advice.untried})
    if cut_short:
        yield f"Not looked into to the end: {', '.join(cut_short)}"


def _surely(remedy: Remedy) -> str:
    """What was not tried of a remedy, and which jobs it would cost their place; its sentence tells of evictions."""
    parts = []
    if not remedy.proven:
        unknown = remedy.kind == "scheduler name"
        parts.append("not proven: these pods are not planned here" if unknown else "not proven with all jobs")
    if remedy.competes_with:
        parts.append(f"at the cost of {', '.join(remedy.competes_with[:3])}")
    return f" ({'; '.join(parts)})" if parts else ""


def _original(found: Explanation) -> Iterator[str]:
    systems = {"volcano": "Volcano", "kai": "KAI"}
    system = systems.get(found.profile)
    words = [one for one in found.original if one not in found.sentence]
    if system and words and found.state == "waiting":
        yield f"In {system}'s words: {words[0]}"
