"""What is written into a journal, as values.

A segment begins with a `Head`, then come cycles. What a cycle has to say about objects may be spread over `Part`s
before it, so that no record has to hold a whole cluster. The first cycle of a segment states everything (`whole`),
the others only what has changed. Objects stay encoded until they are needed: a reader that looks for one job decodes
no others.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from maniple.framework.plans.plan import Plan
from maniple.objects.load import KINDS
from maniple.objects.meta import Object

FORMAT = 1  # raised when an older reader would misread a segment
# The parts of a plan that say what was decided. The rest follows from these and the objects.
DECISIONS = (
    "binds",
    "held",
    "annotations",
    "claims",
    "volumes",
    "gpu_shares",
    "evicted",
    "admitted",
    "started",
    "stale_since",
    "pipelined",
    "nominations",
)
# These come in the order of rows, which says nothing: it differs for a cluster that was built anew.
_UNORDERED = ("started", "stale_since", "pipelined", "nominations")
PROMISED = "starts when others have left its nodes"
NO_CAUSE = "it has not had its turn yet"
TRANSPORT = "extenderTransport"
# Options that no file can hold.
UNRECORDED = ("extensions", TRANSPORT)
KIND_NAMES: Mapping[type[Object], str] = {
    kind: f"{kind.api_group}/{kind.kind}" if kind.api_group else kind.kind for kind in KINDS
}
KINDS_BY_NAME = {name: kind for kind, name in KIND_NAMES.items()}

Ref = tuple[type[Object], str]


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a planner is made from.

    `unrecorded`: options that a file cannot hold, plugins of the user's own for example. `warnings` are those of the
    configuration in the words in which they were reported.
    """

    profile: str
    conf: str | dict[str, Any] | None = None
    actions: list[str] | None = None
    options: dict[str, Any] = {}
    warnings: tuple[str, ...] = ()
    unrecorded: tuple[str, ...] = ()


class Head(msgspec.Struct, frozen=True, tag="head"):
    """`run` counts the starts of schedulers that wrote here; `cycle` and `when` are those of the first cycle."""

    format: int
    version: str
    run: int
    cycle: int
    when: datetime


class Part(msgspec.Struct, frozen=True, tag="part"):
    """Objects of the next cycle, by kind."""

    put: dict[str, list[msgspec.Raw]]


class Cycle(msgspec.Struct, frozen=True, tag="cycle", omit_defaults=True):
    """One cycle: what had changed before it, and what it decided. None stands for "as before".

    `kept` are placeholders that hold room on a node, `more` the options that changed since the planner was made,
    `unlisted` the kinds that may not be read, `memory` what plugins remember (`memory.py`), `answers` what extenders
    answered. `causes`: by job that waits, why, where that has changed; empty if it no longer waits. `aside`: objects
    with which planning had failed, and why.
    """

    cycle: int
    when: datetime
    whole: bool = False
    gone: dict[str, list[str]] = {}
    kept: list[msgspec.Raw] | None = None
    settings: Settings | None = None
    more: dict[str, Any] | None = None
    unlisted: list[str] | None = None
    aside: dict[str, str] | None = None
    memory: dict[str, Any] | None = None
    answers: tuple[tuple[bytes, int, bytes], ...] = ()
    decisions: dict[str, msgspec.Raw] = {}
    causes: dict[str, str] = {}
    seconds: float = 0.0


Record = Head | Part | Cycle


def decisions_of(plan: Plan) -> dict[str, Any]:
    """What a plan decides, without the parts that are empty."""
    found = {name: part for name in DECISIONS if (part := getattr(plan, name))}
    return {name: dict(sorted(part.items())) if name in _UNORDERED else part for name, part in found.items()}


def causes_of(plan: Plan) -> dict[str, str]:
    """By job with pods that have no node: why, in one text."""
    found: dict[str, dict[str, None]] = {}
    seen: set[int] = set()
    for one in plan.waiting.values():
        if id(one) in seen:  # pods that wait for the same thing share one record
            continue
        seen.add(id(one))
        texts = found.setdefault(one.job, {})
        if one.node:
            texts[PROMISED] = None
        elif one.own and one.reason:
            texts[one.reason] = None
    return {job: _cause(plan, job, [*texts]) for job, texts in found.items()}


def _cause(plan: Plan, job: str, own: list[str]) -> str:
    group = plan.group(job)
    said = [*group.refusals, group.queue_problem, group.not_ready] if group is not None else []
    return "; ".join(filter(None, dict.fromkeys([*said, *own]))) or NO_CAUSE
