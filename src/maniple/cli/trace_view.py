"""How the command `trace` shows a trace in a terminal or a file: lines, and tables of verdicts, scores and victims."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from maniple.cli.tables import Table, field
from maniple.explaining.story import number
from maniple.explaining.telling import Line, chapters
from maniple.framework.traces import events as made
from maniple.framework.traces.events import NodeScore, Refused, TaskTried, Trace

_INDENT = "  "
_CANDIDATE = "candidate"
_TAKEN = "taken"


class View:
    """A trace to show. `parts`: only nodes, scores or victims; empty: the whole story."""

    def __init__(
        self, out: Console, trace: Trace, nodes: Iterable[str], parts: frozenset[str], *, everything: bool
    ) -> None:
        self._out = out
        self._trace = trace
        self._nodes = frozenset(nodes)
        self._parts = parts
        self._everything = everything
        self._shown: set[tuple[str, ...]] = set()  # pods of a kind whose tables were shown

    def show(self) -> None:
        subject = (
            f"pod {self._trace.pod} of job {self._trace.job}" if self._trace.pod else f"job {self._trace.job}"
        )
        self._out.print(field(f"Trace of {subject}, profile {self._trace.profile}", "bold"))
        found = False
        for chapter in chapters(self._trace, everything=self._everything):
            title = False
            for line in chapter.lines:
                if not self._is_wanted(line):
                    continue
                if not title:
                    title = found = True
                    self._out.print()
                    self._out.print(field(chapter.title or "result", "bold"))
                self._line(line)
        if self._parts and not found:
            self._out.print(field(f"the cycle looked at no {', '.join(sorted(self._parts))} for it"))

    def _is_wanted(self, line: Line) -> bool:
        if not self._parts:
            return True
        event = line.event
        if isinstance(event, TaskTried):
            looked_at = bool(event.refused or event.scores)
            return looked_at and bool(self._parts & {"nodes", "scores"}) and self._is_subject(event)
        return "victims" in self._parts and isinstance(event, made.Search | made.Trial | made.SearchEnded)

    def _is_subject(self, event: TaskTried) -> bool:
        return not self._trace.pod or event.pod == self._trace.pod

    def _line(self, line: Line) -> None:
        pad = _INDENT * (line.indent + 1)
        self._out.print(Text(pad) + field(line.text), soft_wrap=not self._out.is_terminal)
        event = line.event
        if isinstance(event, TaskTried) and self._has_tables(event):
            self._tables(event)
        elif isinstance(event, made.Search) and (not self._parts or "victims" in self._parts):
            self._victims(event)

    # -- nodes and scores ---------------------------------------------------------------------------------------------

    def _has_tables(self, event: TaskTried) -> bool:
        """Of pods that are alike, the first has them, and the last that found nothing."""
        if self._everything or self._parts:
            return self._is_subject(event)
        kind = (*(f"{name}={amount}" for name, amount in event.request.items()), str(bool(event.node)))
        if self._trace.pod:
            return event.pod == self._trace.pod
        known = kind in self._shown
        self._shown.add(kind)
        return not known

    def _tables(self, event: TaskTried) -> None:
        if "nodes" in self._parts:
            self._print(self._by_node(event))
        elif not self._parts and event.refused:
            self._print(self._refusals(event.refused))
        if event.scores and (not self._parts or "scores" in self._parts):
            self._print(self._scores(event))

    def _refusals(self, refused: Iterable[Refused]) -> Table:
        table = Table("", "nodes", "filter", "plugin", "reason", "for example", right=("nodes",))
        for one in (one for one in refused if not one.outside):
            table.add_row(str(one.count), one.filter, one.plugin, one.reason, _examples(one))
        return table

    def _by_node(self, event: TaskTried) -> Table:
        table = Table("", "node", "verdict", "filter", "reason")
        for node, rows in sorted(_verdicts(event).items()):
            if not self._nodes or node in self._nodes:
                for verdict, name, reason in rows:
                    table.add_row(node, verdict, name, reason)
        return table

    def _scores(self, event: TaskTried) -> Table:
        shown = [one for one in event.scores if not self._nodes or one.node in self._nodes]
        names = [f"{part.scorer} ×{number(part.weight)}" for part in event.scores[0].parts]
        # Scorers that say the same of all nodes decide nothing.
        kept = [place for place in range(len(names)) if self._everything or _differs(event.scores, place)]
        columns = [names[place] for place in kept]
        table = Table("", "node", "score", *columns, right=("score", *columns))
        for one in shown:
            cells = [_points(one, place) for place in kept]
            table.add_row(one.node, number(one.total), *cells)
        return table

    # -- victims ------------------------------------------------------------------------------------------------------

    def _victims(self, event: made.Search) -> None:
        if event.candidates:
            table = Table("", "may go", "queue", "pods", "")
            for one in event.candidates:
                table.add_row(one.job, one.queue, ", ".join(one.pods), "the whole job" if one.whole else "")
            self._print(table)
        if event.spared:
            table = Table("", "protected", "queue", "pods", "by", "why", right=("pods",))
            for kept in event.spared:
                table.add_row(kept.job, kept.queue, str(kept.pods), kept.by, kept.why)
            self._print(table)

    def _print(self, table: Table) -> None:
        if table.row_count:
            table.indent = 2 * len(_INDENT)
            self._out.print(table)


def _examples(one: Refused) -> str:
    told = [f"{node} ({detail})" if detail else node for node, detail in one.nodes.items()]
    more = one.count - len(told)
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")


def _verdicts(event: TaskTried) -> dict[str, list[tuple[str, str, str]]]:
    """By node: verdict, filter and reason, a row for each refusal."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for one in event.scores:
        verdict = _TAKEN if one.node == event.node else _CANDIDATE
        found[one.node] = [(verdict, "", f"score {number(one.total)}")]
    for refusal in event.refused:
        for node, detail in refusal.nodes.items():
            reason = f"{refusal.reason}, {detail}" if detail else refusal.reason
            found.setdefault(node, []).append(("refused", refusal.filter, reason))
    return found


def _differs(scores: Iterable[NodeScore], place: int) -> bool:
    return len({one.parts[place].points for one in scores}) > 1


def _points(one: NodeScore, place: int) -> str:
    part = one.parts[place]
    raw = part.raw if part.normalised is None else part.normalised
    return number(part.points) if part.weight == 1 else f"{number(part.points)} ({number(raw)})"


__all__ = ["View"]
