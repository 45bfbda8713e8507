"""Remedies as values: what to change, by how much, and what was tried to be sure of it.

They are frozen, comparable and JSON as they are (`msgspec.json.encode`). `edits.py` carries a change out.
"""

from typing import Any, Literal

import msgspec

Operation = Literal["set", "create", "delete"]
Step = str | int  # a field's name, or a number in a list
KindName = Literal[
    "scheduling gates",
    "missing pods",
    "scheduler name",
    "queue",
    "queue state",
    "suspension",
    "volume claims",
    "resource claims",
    "devices",
    "members",
    "request",
    "selector",
    "toleration",
    "affinity",
    "spread",
    "topology",
    "cordoned nodes",
    "nodes not ready",
    "nodes",
    "queue limit",
    "queue quota",
    "queue weight",
    "resource quota",
    "preemptibility",
    "priority",
    "ending jobs",
    "combined",
]


def field_of(path: tuple[Step, ...]) -> str:
    """A path as messages write it: spec.containers[0].resources.requests[nvidia.com/gpu]."""
    text = ""
    for step in path:
        plain = isinstance(step, str) and step.isidentifier()
        text += f".{step}" if plain else f"[{step}]"
    return text.removeprefix(".")


class Value(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Base of every struct here; it only carries the settings."""


class Change(Value, frozen=True, kw_only=True):
    """One thing to do to objects of one kind.

    `set`: the field at `path` of each goes from `before` to `after`; None is a field that is absent. `create`: they
    are copies of the object `like` as it is after the other changes, under names of their own and with the fields of
    `after` on top; without `like`, `after` is all of them. `delete`: they are removed.
    """

    operation: Operation
    kind: str
    api_group: str = ""
    objects: tuple[str, ...]  # namespace/name, or the name
    path: tuple[Step, ...] = ()
    before: Any = None
    after: Any = None
    like: str = ""

    @property
    def field(self) -> str:
        return field_of(self.path)


class Remedy(Value, frozen=True, kw_only=True):
    """One change, or several together, after which the job starts in the next cycle.

    `amount` is how much is changed, in whatever the kind counts. `sentence` says it all. `proven`: a full cycle,
    with every rival and every eviction, starts the job; otherwise one that passed over jobs without any chance did.
    `smallest`: one step less was tried, in full cycles, and does not start it; of jobs to be ended that are alike, one
    was kept. `evictions` are the pods that leave for the job, `competes_with` the jobs that get nodes in this cycle
    without the remedy and do not with it.
    """

    kind: KindName
    changes: tuple[Change, ...]
    amount: str
    sentence: str
    proven: bool = False
    smallest: bool = False
    evictions: tuple[str, ...] = ()
    competes_with: tuple[str, ...] = ()


class Untried(Value, frozen=True, kw_only=True):
    """A kind of change that was not looked into, or not to the end, and why."""

    kind: str
    why: str


class Advice(Value, frozen=True, kw_only=True):
    """All that was found out about one job.

    `alone` are changes that would be enough if no other job waited; an empty `changes` there means that the job
    would start as it is. `cycles` counts the cycles that were planned, `full` those of them with every job.
    """

    job: str
    starts: bool = False  # it needs no remedy
    remedies: tuple[Remedy, ...] = ()
    alone: tuple[Remedy, ...] = ()
    untried: tuple[Untried, ...] = ()
    cycles: int = 0
    full: int = 0
