"""Hints about the input that explain a surprising plan; printed by `plan`, `replay` and `run`.

Each hint is about something that is no error in any one object, and yet hardly intended: a cluster without
nodes, pods that all belong to another scheduler. What is doubtful in one object is found by `inspection`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from maniple.cli import DEFAULT_PROFILE

if TYPE_CHECKING:
    from maniple.planner import Plan

# The scheduler name of each profile by default.
PROFILE_OF_NAME = {"volcano": "volcano", "kai-scheduler": "kai", "maniple": DEFAULT_PROFILE}
NAME_OF_PROFILE = {profile: name for name, profile in PROFILE_OF_NAME.items()}
NAMES_SHOWN = 3


def hints(
    objects: Iterable[Mapping[str, Any]], plan: "Plan", profile: str, options: Mapping[str, Any]
) -> list[str]:
    """All hints, as text; `options`: those that were given."""
    given = list(objects)
    found = []
    if not plan.nodes:
        found.append("no nodes in the input: nothing can be placed")
    return found + list(pods_of_others(given, options, profile))


def pods_of_others(
    objects: Iterable[Mapping[str, Any]], options: Mapping[str, Any], profile: str
) -> Iterator[str]:
    """Pending pods, if none of them names this scheduler."""
    from maniple.profiles.options import strings

    ours = strings(options, "schedulerName") or (NAME_OF_PROFILE[profile],)
    names = Counter(name for item in objects if (name := _awaited_scheduler(item)))
    if not names or any(name in names for name in ours):
        return
    theirs = ", ".join(f"{name} ({number:,})" for name, number in names.most_common(NAMES_SHOWN))
    first = names.most_common(1)[0][0]
    other = PROFILE_OF_NAME.get(first)
    remedy = f"--profile {other}" if other not in (None, profile) else f"--scheduler-name {first}"
    yield (
        f"no pending pod names this scheduler: they name {theirs}, but the profile {profile} schedules"
        f" {' and '.join(ours)}; try {remedy}"
    )


def _awaited_scheduler(item: Mapping[str, Any]) -> str:
    """The scheduler that a pending pod names; empty for everything else."""
    from maniple.objects.defaults import DEFAULT_SCHEDULER

    spec, status = item.get("spec"), item.get("status")
    if item.get("kind") != "Pod" or not isinstance(spec, Mapping) or spec.get("nodeName"):
        return ""
    phase = status.get("phase") if isinstance(status, Mapping) else None
    return str(spec.get("schedulerName") or DEFAULT_SCHEDULER) if phase in (None, "", "Pending") else ""
