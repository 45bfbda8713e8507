"""Hints about the input that explain a surprising plan; printed by `plan`, `replay` and `run`.

Each hint is about something that is no error in any one object, and yet hardly intended: a cluster without
nodes, a class that pods name and that does not exist, pods that all belong to
another scheduler.
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
_CLASS_FIELDS = {"PriorityClass": "priorityClassName", "RuntimeClass": "runtimeClassName"}


def hints(
    objects: Iterable[Mapping[str, Any]], plan: "Plan", profile: str, options: Mapping[str, Any]
) -> list[str]:
    """All hints, as text; `options`: those that were given."""
    given = list(objects)
    found = []
    if not plan.nodes:
        found.append("no nodes in the input: nothing can be placed")
    found += missing_classes(given)
    return found + list(pods_of_others(given, options, profile))


def missing_classes(objects: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Classes that pods name and that do not exist.

    Pods with a uid have been in a cluster, and got the values of their classes there.
    """
    from maniple.objects.admission import SYSTEM_PRIORITIES

    known: set[tuple[str, str]] = {("PriorityClass", name) for name in SYSTEM_PRIORITIES}
    named: Counter[tuple[str, str]] = Counter()
    for item in objects:
        kind, metadata, spec = str(item.get("kind")), item.get("metadata"), item.get("spec")
        if kind in _CLASS_FIELDS and isinstance(metadata, Mapping):
            known.add((kind, str(metadata.get("name"))))
        elif kind == "Pod" and isinstance(metadata, Mapping) and not metadata.get("uid"):
            fields = spec if isinstance(spec, Mapping) else {}
            named.update(
                (kind, str(fields[field])) for kind, field in _CLASS_FIELDS.items() if fields.get(field)
            )
    for (kind, name), number in named.items():
        if (kind, name) not in known:
            pods = "1 pod names" if number == 1 else f"{number:,} pods name"
            yield f"{kind} {name}: {pods} it, but it is not in the input; ignored (an API server would reject them)"


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
