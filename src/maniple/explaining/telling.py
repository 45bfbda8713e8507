"""A trace as lines to read: the steps of the traced job in full, the turns of other jobs in one line each.

Turns of other jobs after the last step of the job are only counted, and so are the first of many before it, unless
everything is asked for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from maniple.explaining.story import sentence
from maniple.framework.traces import events as made
from maniple.framework.traces.events import AnyEvent, Trace

_TURNS = 10  # of other jobs that are told before a step of the job


@dataclass(slots=True)
class Line:
    """A step; `event` is what it tells of, if it is a single event."""

    text: str
    indent: int = 0
    event: AnyEvent | None = None


@dataclass(slots=True)
class Chapter:
    """An action; the title is empty for what comes after the last one."""

    title: str
    lines: list[Line] = field(default_factory=list)


def chapters(trace: Trace, *, everything: bool = False) -> Iterator[Chapter]:
    """The actions in which something happened to the job, or that other jobs had turns in."""
    for title, events in _by_action(trace.events):
        lines = list(_lines(trace.job, events, everything))
        if lines:
            yield Chapter(title, lines)


def _by_action(events: Sequence[AnyEvent]) -> Iterator[tuple[str, list[AnyEvent]]]:
    title, own = "", list[AnyEvent]()
    for event in events:
        if isinstance(event, made.Action | made.Outcome):
            if own:
                yield title, own
            title, own = (event.name, []) if isinstance(event, made.Action) else ("", [event])
        else:
            own.append(event)
    if own:
        yield title, own


def _lines(job: str, events: list[AnyEvent], everything: bool) -> Iterator[Line]:
    others: list[Line] = []
    queue: list[AnyEvent] = []  # turns of queues, until it is known whose job comes
    for event in events:
        if isinstance(event, made.QueueTurn):
            queue.append(event)
        elif isinstance(event, made.JobTurn) and event.job != job:
            others.append(Line(_turn_of_other(event, queue), event=event))
            queue = []
        elif isinstance(event, made.Kept) and event.job != job:
            _result(others, event)
            if event.evicted:  # pods of the job
                yield from _before(others, everything)
                others = []
        else:
            yield from _before(others, everything)
            others = []
            yield from (Line(sentence(one), event=one) for one in queue if _had_choice(one))
            queue = []
            yield from _own(event, 0)
    if others and (everything or not any(_is_about(job, event) for event in events)):
        yield from _before(others, everything)
    elif others:
        yield Line(f"then {len(others)} {'turn' if len(others) == 1 else 'turns'} of other jobs")


def _before(others: list[Line], everything: bool) -> Iterator[Line]:
    """The turns of other jobs before a step of the job."""
    hidden = 0 if everything else max(len(others) - _TURNS, 0)
    if hidden:
        yield Line(f"{hidden} {'turn' if hidden == 1 else 'turns'} of other jobs")
    yield from others[hidden:]


def _own(event: AnyEvent, indent: int) -> Iterator[Line]:
    yield Line(sentence(event), indent, event)
    if isinstance(event, made.Trial):
        for inner in event.events:
            yield from _own(inner, indent + 1)


def _turn_of_other(event: made.JobTurn, queues: list[AnyEvent]) -> str:
    deciding = [one for one in queues if isinstance(one, made.QueueTurn) and one.rivals]
    if not deciding:
        return sentence(event)
    return f"job {event.job} of {sentence(deciding[0])}"


def _result(others: list[Line], event: made.Kept) -> None:
    told = sentence(event).removeprefix("committed").removeprefix(f" for job {event.job}").lstrip(": ")
    if others and isinstance(others[-1].event, made.JobTurn) and others[-1].event.job == event.job:
        others[-1].text += f"; {told}"
    else:
        others.append(Line(sentence(event), event=event))


def _had_choice(event: AnyEvent) -> bool:
    return isinstance(event, made.QueueTurn) and bool(event.rivals)


def _is_about(job: str, event: AnyEvent) -> bool:
    return getattr(event, "job", None) == job


__all__ = ["Chapter", "Line", "chapters"]
