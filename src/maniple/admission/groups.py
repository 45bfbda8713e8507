"""Pod groups of both systems: minimums, sub-groups, size, queue and priority class."""

from collections import Counter
from collections.abc import Iterable, Iterator

from maniple.admission.naming import Missing, priority_findings, queue_findings, right_findings
from maniple.admission.verdict import Finding, Raw
from maniple.admission.world import Group, Settings, World
from maniple.cluster.facts import GroupFacts
from maniple.objects.kai import KaiPodGroup
from maniple.objects.limits import too_large
from maniple.objects.volcano import VolcanoPodGroup


def group_findings(
    group: Group, raw: Raw, world: World, settings: Settings, missing: Missing
) -> Iterator[Finding]:
    """What is wrong with a group that is created or changed."""
    if text := too_large(group):
        yield Finding("", text)
        return
    yield from _stated_minimum(raw)
    if isinstance(group, KaiPodGroup):
        yield from _kai_parts(group, world)
    else:
        yield from _volcano_parts(group)
    namespace = group.metadata.namespace or "default"
    queue = group.spec.queue or world.default_queue
    if group.spec.queue:
        yield from queue_findings("spec.queue", queue, namespace, world, settings, missing)
    elif not queue:
        yield Finding("spec.queue", "missing; name the queue that the group waits in")
    else:
        yield from right_findings("spec.queue", queue, namespace, world, missing)
    name = group.spec.priority_class_name
    yield from priority_findings("spec.priorityClassName", name, namespace, queue, world, missing)


def _stated_minimum(raw: Raw) -> Iterator[Finding]:
    """A group without a minimum needs one pod; to write 0 promises something else."""
    spec = raw.get("spec")
    stated = spec.get("minMember") if isinstance(spec, dict) else None
    if isinstance(stated, int) and stated < 1:
        yield Finding("spec.minMember", f"must be at least 1: {stated}")


# -- Volcano ----------------------------------------------------------------------------------------------------------


def _volcano_parts(group: VolcanoPodGroup) -> Iterator[Finding]:
    spec = group.spec
    roles = sum(spec.min_task_member.values())
    if spec.min_member and roles > spec.min_member:
        text = f"{spec.min_member} is below the sum of minTaskMember, {roles}; raise it to {roles}"
        yield Finding("spec.minMember", text, False)
    yield from _duplicates("spec.subGroupPolicy", [one.name for one in spec.sub_group_policy])
    for index, one in enumerate(spec.sub_group_policy):
        if one.sub_group_size < 1:
            field = f"spec.subGroupPolicy[{index}].subGroupSize"
            yield Finding(field, f"must be at least 1: {one.sub_group_size}")


# -- KAI --------------------------------------------------------------------------------------------------------------


def _kai_parts(group: KaiPodGroup, world: World) -> Iterator[Finding]:
    if not group.spec.sub_groups:
        return
    yield from _duplicates("spec.subGroups", [one.name for one in group.spec.sub_groups])
    facts = world.dialect.job(group)
    if facts is None:
        return
    wrong = [*_lost(facts.groups)]
    yield from wrong
    stated = group.spec.min_member
    if not wrong and stated > facts.minimum:
        yield Finding(
            "spec.minMember",
            f"{stated} is above the sum of its sub-groups' minimums, {facts.minimum}, which is what counts; "
            "lower it, or raise minMember of the sub-groups",
        )


def _lost(groups: Iterable[GroupFacts]) -> Iterator[Finding]:
    """Sub-groups whose parents lead nowhere, or in a circle."""
    above = {one.name: one.parent for one in groups}
    in_circles: set[str] = set()
    for index, one in enumerate(groups):
        field = f"spec.subGroups[{index}].parent"
        if one.parent and one.parent not in above:
            yield Finding(field, f"there is no sub-group {one.parent!r}; name one of this pod group")
            continue
        way = [one.name]
        while (parent := above.get(way[-1], "")) and parent not in way:
            way.append(parent)
        if parent == one.name and one.name not in in_circles:
            in_circles.update(way)
            yield Finding(field, f"closes a circle: {' -> '.join((*way, one.name))}; leave one parent out")


def _duplicates(field: str, names: list[str]) -> Iterator[Finding]:
    for name, count in Counter(names).items():
        if count > 1:
            yield Finding(field, f"{count} sub-groups are called {name!r}; give each a name of its own")
