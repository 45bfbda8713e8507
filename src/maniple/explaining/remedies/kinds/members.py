"""A smaller minimum: of the job, of a role, of a sub-group."""

from collections.abc import Iterator
from dataclasses import dataclass

from maniple.explaining.remedies.kinds.amounts import listed
from maniple.explaining.remedies.kinds.min_resources import without
from maniple.explaining.remedies.kinds.owners import saying
from maniple.explaining.remedies.search import Choice, Levels
from maniple.explaining.remedies.subject import Subject, setting
from maniple.explaining.remedies.values import Change, Step, field_of
from maniple.objects.kai import KaiPodGroup
from maniple.objects.printable import printable
from maniple.objects.volcano import VolcanoPodGroup
from maniple.workloads.wishes import MINIMUM


@dataclass(frozen=True, slots=True)
class _Minimum:
    """A field with a minimum; `words` is what people call it."""

    path: tuple[Step, ...]
    value: int
    words: str
    role: str = ""


def members(subject: Subject) -> Iterator[Choice]:
    """Lower the minimum of each part; the job's own follows where it is stated apart."""
    if subject.is_made:
        yield from _of_owner(subject)
        return
    parts = [one for one in _parts(subject) if one.value > 1]
    if not parts:
        return
    group = subject.group

    def build(levels: Levels) -> tuple[Change, ...]:
        lowered = [(part, level) for part, level in zip(parts, levels, strict=True) if level]
        found = [setting(group, part.path, part.value, part.value - level) for part, level in lowered]
        if isinstance(group, VolcanoPodGroup):
            found += _with_total(group, parts, sum(levels))
            fewer = {part.role: level for part, level in lowered}
            found += without(subject, fewer, {})
        return tuple(found)

    def words(levels: Levels) -> tuple[str, str]:
        said = [
            f"{part.words} of {part.value - level} instead of {part.value} ({field_of(part.path)})"
            for part, level in zip(parts, levels, strict=True)
            if level
        ]
        return f"{sum(levels)} fewer", f"With {listed(said)}"

    yield Choice("members", tuple(part.value - 1 for part in parts), build, words)


def _of_owner(subject: Subject) -> Iterator[Choice]:
    """A group in memory has the minimum that its owner says, or its kind derives: one number for all parts."""
    minimum = subject.facts.minimum
    if minimum < 2:
        return

    def build(levels: Levels) -> tuple[Change, ...]:
        return saying(subject, MINIMUM[0], str(minimum - levels[0]))[0] if levels[0] else ()

    def words(levels: Levels) -> tuple[str, str]:
        where = saying(subject, MINIMUM[0], str(minimum - levels[0]))[1]
        text = f"With a minimum of {minimum - levels[0]} instead of {minimum} ({where})"
        return f"{levels[0]} fewer", printable(text)

    yield Choice("members", (minimum - 1,), build, words)


def _with_total(group: VolcanoPodGroup, parts: list[_Minimum], fewer: int) -> Iterator[Change]:
    """Roles have minimums of their own, beside that of the job."""
    if fewer and group.spec.min_task_member and parts[0].path[1] == "minTaskMember":
        before = group.spec.min_member
        yield setting(group, ("spec", "minMember"), before, max(before - fewer, 1))


def _parts(subject: Subject) -> Iterator[_Minimum]:
    group = subject.group
    if isinstance(group, KaiPodGroup):
        parents = {one.parent for one in group.spec.sub_groups}
        for number, one in enumerate(group.spec.sub_groups):
            if one.name not in parents:
                field: tuple[Step, ...] = ("spec", "subGroups", number, "minMember")
                yield _Minimum(field, one.min_member, f"a minimum for sub-group {one.name}", one.name)
        if not group.spec.sub_groups:
            yield _Minimum(("spec", "minMember"), group.spec.min_member, "a minimum")
    elif isinstance(group, VolcanoPodGroup):
        roles = group.spec.min_task_member
        for role, minimum in roles.items():
            field = ("spec", "minTaskMember", role)
            yield _Minimum(field, minimum, f"a minimum for role {role}", role)
        if not roles and not group.spec.sub_group_policy:
            yield _Minimum(("spec", "minMember"), group.spec.min_member, "a minimum")
        for number, policy in enumerate(group.spec.sub_group_policy):
            field = ("spec", "subGroupPolicy", number, "minSubGroups")
            yield _Minimum(field, policy.min_sub_groups, f"a minimum of sub-groups for policy {policy.name}")
