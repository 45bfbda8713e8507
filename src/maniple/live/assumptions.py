"""Decisions that the watch has not shown yet: what is believed of an object from the moment of the decision."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from maniple.objects.core import Pod
from maniple.objects.meta import Condition, Object
from maniple.objects.pod import MOVES_TO


@dataclass(eq=False, slots=True)
class Assumption:
    """One decision about an object that the watch has not shown yet."""

    uid: str
    change: Callable[[Any], Any]  # applies it to what was seen
    shown: Callable[[Any], bool]  # whether what was seen includes it already
    # A lasting one ends only when it is shown: nothing but this decision can make it untrue. Others yield to
    # whatever the watch shows once they are written, because another client may have written since.
    lasting: bool = False
    # The object is to be created: it counts before it was ever seen, and in place of another of its name.
    makes: bool = False
    written: bool = False
    version: int = 0  # of the object after the write, if known: any later version includes the write


def bound(pod: Pod, node: str, annotations: Mapping[str, str] | None = None) -> Assumption:
    """A pod is on its node from the moment of the decision, with the devices of its future annotations."""

    def change(seen: Pod) -> Pod:
        placed = replace(seen, spec=replace(seen.spec, node_name=node))
        if not annotations:
            return placed
        merged = {**seen.metadata.annotations, **annotations}
        return replace(placed, metadata=replace(seen.metadata, annotations=merged))

    return Assumption(
        uid=pod.metadata.uid,
        change=change,
        shown=lambda seen: bool(seen.spec.node_name),
        lasting=True,
    )


def ungated(pod: Pod) -> Assumption:
    """A pod may be scheduled from the moment of the decision."""
    return Assumption(
        uid=pod.metadata.uid,
        change=lambda seen: replace(seen, spec=replace(seen.spec, scheduling_gates=())),
        shown=lambda seen: not seen.spec.scheduling_gates,
        lasting=True,
    )


def leaving(pod: Pod, since: datetime, promised: str = "") -> Assumption:
    """A pod releases its resources from the moment of the decision.

    `promised`: the node that it is to move to.
    """

    def change(seen: Pod) -> Pod:
        metadata = replace(seen.metadata, deletion_timestamp=since)
        if not promised:
            return replace(seen, metadata=metadata)
        others = (one for one in seen.status.conditions if one.type != MOVES_TO)
        conditions = (*others, Condition(type=MOVES_TO, status="True", message=promised))
        return replace(seen, metadata=metadata, status=replace(seen.status, conditions=conditions))

    return Assumption(
        uid=pod.metadata.uid,
        change=change,
        shown=lambda seen: seen.metadata.deletion_timestamp is not None,
        lasting=True,
    )


def made(item: Object, shown: Callable[[Any], bool]) -> Assumption:
    """An object exists from the moment of the decision."""
    return Assumption(uid="", change=lambda _: item, shown=shown, lasting=True, makes=True)
