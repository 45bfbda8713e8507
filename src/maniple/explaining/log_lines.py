"""The events of a cycle as lines of a log, by klog's levels: 3 queues, jobs and transactions; 4 pods and why nodes
refuse them; 5 every node's verdicts and scores.

Each line begins with the action and with what it is about, so that `grep job=` and `grep pod=` follow one.
"""

from collections.abc import Iterable, Iterator

from maniple.explaining.story import depth, number, sentence
from maniple.framework.traces import events as made
from maniple.framework.traces.events import AnyEvent, TaskTried
from maniple.framework.traces.recorder import Depth


def log_lines(events: Iterable[AnyEvent], most: Depth) -> Iterator[tuple[Depth, str]]:
    """Lines up to a level, each with its own."""
    action = ""
    for event in events:
        if isinstance(event, made.Action):
            action = event.name
        elif isinstance(event, made.Outcome):
            action = "result"
        yield from _lines(event, action, most)


def _lines(event: AnyEvent, action: str, most: Depth) -> Iterator[tuple[Depth, str]]:
    level = depth(event)
    if level > most:
        return
    about = "".join(f" {name}={value}" for name, value in _about(event))
    yield level, f"{action}{about}: {sentence(event)}"
    if isinstance(event, made.Trial):
        for inner in event.events:
            yield from _lines(inner, action, most)
    elif isinstance(event, TaskTried) and most >= Depth.NODES:
        for text in _by_node(event):
            yield Depth.NODES, f"{action}{about} {text}"


def _about(event: AnyEvent) -> Iterator[tuple[str, str]]:
    for name in ("queue", "job", "pod"):
        value = getattr(event, name, "")
        if value:
            yield name, value


def _by_node(event: TaskTried) -> Iterator[str]:
    for one in event.refused:
        by = f"{one.filter} of plugin {one.plugin}" if one.plugin else one.filter
        for node, detail in one.nodes.items():
            yield f"node={node}: refused by {by}: {one.reason}{', ' if detail else ''}{detail}"
    for scored in event.scores:
        parts = ", ".join(f"{part.scorer} {number(part.points)}" for part in scored.parts)
        yield f"node={scored.node}: score {number(scored.total)} ({parts})"


__all__ = ["log_lines"]
