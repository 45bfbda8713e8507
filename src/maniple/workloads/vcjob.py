"""Volcano's Job (vcjob), CronJob and JobFlow.

Each task is a set of the group. Its minimum is `minAvailable`, or else all of its replicas; `spec.minAvailable` is that
of the group. Below the sum of the tasks' it counts alone, as in Volcano, and the tasks have none of their own. A task
that depends on others comes after them; one that waits for *any* of several has no minimum, for it may come before
some of them. A partition is a set below that of its task; of those, the first `minPartitions` count.

Life-cycle policies and plugins are not read: they change nothing in how pods are placed. The pods of a manifest have
no volumes of `spec.volumes`, whose claims the controller creates.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from maniple.workloads.building import (
    Path,
    child,
    first_priority,
    group_of,
    in_order,
    pod,
    shared,
    template_of,
    with_minimum,
)
from maniple.workloads.fields import (
    choice,
    count,
    fail,
    flag,
    given_count,
    items_of,
    section,
    sections,
    shown,
    text,
    value,
)
from maniple.workloads.kind import Kind
from maniple.workloads.labels import foreign, label, labelled_number
from maniple.workloads.model import Chain, DomainWish, Group, Member, PodSet, Raw

_TASK = "volcano.sh/task-spec"
_INDEX = "volcano.sh/task-index"
_PARTITION = "volcano.sh/partition-id"
# Of a Job, on its pods as well.
_INHERITED = ("volcano.sh/preemptable", "volcano.sh/cooldown-time")
_INHERITED_NOTES = (
    *_INHERITED,
    "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
)
_MODES = ("hard", "soft")
_ITERATIONS = ("all", "any")
_MOST_SETS = 1_000


@dataclass(frozen=True, slots=True)
class _Task:
    path: Path
    name: str
    replicas: int
    minimum: int
    after: tuple[str, ...]
    any_of: bool
    partitions: int = 0
    partition_size: int = 0
    partition_domain: DomainWish | None = None


def _member(chain: Chain) -> Member:
    tasks = chain.once("tasks", lambda: {task.name: task for task in _tasks(chain.top)})
    mine = tasks.get(label(chain.pod, _TASK))
    if mine is None:
        raise foreign(chain.pod, _TASK, chain.top, "task")
    group = chain.once("group", lambda: _group(chain, [*tasks.values()]))
    return Member(group, _set_name(chain.pod, mine) if group.sets else "")


def _group(chain: Chain, tasks: list[_Task]) -> Group:
    sets = tuple(one for task in tasks for one in _sets(task))
    parents = {one.parent for one in sets}
    total = sum(one.minimum for one in sets if one.name not in parents)
    minimum = _minimum(chain.top, tasks) or total
    if minimum < total:
        needed = any(one.after or one.parent for one in sets)
        sets = with_minimum(sets, minimum) if needed else ()
    templates = [template_of(chain.top, (*task.path, "template")) for task in tasks]
    return group_of(
        shared(chain, templates),
        max(minimum, 1),
        sets,
        most=sum(task.replicas for task in tasks),
        queue=text(chain.top, ("spec", "queue")),
        priority_class=text(chain.top, ("spec", "priorityClassName")) or first_priority(templates),
        domain=_domain(chain.top, ("spec", "networkTopology")),
    )


def _minimum(job: Raw, tasks: list[_Task]) -> int:
    """What the job says, without pods that may come late; 0 if it says nothing."""
    said = count(job, ("spec", "minAvailable"))
    replicas = sum(task.replicas for task in tasks)
    if said > replicas:
        raise fail(job, ("spec", "minAvailable"), f"must not be above the {replicas} replicas of all tasks")
    return min(said, sum(task.replicas for task in tasks if not task.any_of))


def _sets(task: _Task) -> Iterator[PodSet]:
    minimum = 0 if task.any_of else task.minimum
    after = () if task.any_of else task.after
    yield PodSet(task.name, minimum, after=after, most=task.replicas)
    for number in range(task.partitions):
        share = min(minimum, task.partition_size)
        minimum -= share
        name = f"{task.name}-{number}"
        most = min(task.partition_size, task.replicas - number * task.partition_size)
        yield PodSet(name, share, parent=task.name, domain=task.partition_domain, after=after, most=most)


def _set_name(pod: Raw, task: _Task) -> str:
    if not task.partitions:
        return task.name
    number = labelled_number(pod, _PARTITION)
    if number is None or number >= task.partitions:
        raise fail(pod, ("metadata", "labels", _PARTITION), f"must be below {task.partitions} in {task.name}")
    return f"{task.name}-{number}"


def _tasks(job: Raw) -> list[_Task]:
    tasks = [_task(job, number) for number, _ in enumerate(sections(job, ("spec", "tasks")))]
    seen: set[str] = set()
    for task in tasks:
        if task.name in seen:
            raise fail(job, (*task.path, "name"), f"must be there once, not {shown(task.name)}")
        seen.add(task.name)
    paths = {task.name: (*task.path, "dependsOn", "name") for task in tasks}
    in_order(job, {task.name: task.after for task in tasks}, paths)
    empty = {task.name for task in tasks if not task.replicas}
    return [replace(task, after=tuple(one for one in task.after if one not in empty)) for task in tasks]


def _task(job: Raw, number: int) -> _Task:
    path: Path = ("spec", "tasks", number)
    after = _depends_on(job, (*path, "dependsOn"))
    replicas = count(job, (*path, "replicas"))
    policy: Path = (*path, "partitionPolicy")
    size, partitions = _partitions(job, policy, replicas)
    least = count(job, (*policy, "minPartitions")) * size
    minimum = given_count(job, (*path, "minAvailable"))
    if minimum is None:
        minimum = least or replicas
    if minimum > replicas:
        raise fail(job, path, f"asks for a minimum of {minimum} pods and has {replicas} replicas")
    return _Task(
        path=path,
        name=text(job, (*path, "name")) or f"default{number}",
        replicas=replicas,
        minimum=minimum,
        after=after,
        any_of=choice(job, (*path, "dependsOn", "iteration"), _ITERATIONS) == "any" and len(after) > 1,
        partitions=partitions,
        partition_size=size,
        partition_domain=_domain(job, (*policy, "networkTopology")),
    )


def _depends_on(job: Raw, path: Path) -> tuple[str, ...]:
    names = (*path, "name")
    found = items_of(job, names, value(job, names))
    return tuple(text(job, (*names, number)) for number in range(len(found)))


def _partitions(job: Raw, policy: Path, replicas: int) -> tuple[int, int]:
    """The size of a partition and their number."""
    if value(job, policy) is None:
        return 0, 0
    size = count(job, (*policy, "partitionSize"))
    if size < 1:
        raise fail(job, (*policy, "partitionSize"), "must be 1 or more")
    partitions = -(-replicas // size)
    if partitions > _MOST_SETS:
        raise fail(job, (*policy, "partitionSize"), f"must be larger: no more than {_MOST_SETS:,} partitions")
    return size, partitions


def _domain(job: Raw, path: Path) -> DomainWish | None:
    if value(job, path) is None:
        return None
    return DomainWish(
        highest_tier=given_count(job, (*path, "highestTierAllowed")),
        highest_tier_name=text(job, (*path, "highestTierName")),
        mode=choice(job, (*path, "mode"), _MODES),
    )


# -- what its controller creates ---------------------------------------------------------------------------------------


def _children(job: Raw) -> Iterator[dict[str, Any]]:
    for task in _tasks(job):
        for index in range(task.replicas):
            yield _pod(job, task, index)


def _pod(job: Raw, task: _Task, index: int) -> dict[str, Any]:
    name, queue = text(job, ("metadata", "name")), text(job, ("spec", "queue"))
    marks = {
        _TASK: task.name,
        _INDEX: str(index),
        "volcano.sh/job-name": name,
        "volcano.sh/queue-name": queue,
    }
    inherited = section(job, ("metadata", "labels"))
    labels = {key: inherited[key] for key in _INHERITED if key in inherited}
    if task.partitions:
        labels[_PARTITION] = str(index // task.partition_size)
    inherited = section(job, ("metadata", "annotations"))
    notes = {key: inherited[key] for key in _INHERITED_NOTES if key in inherited}
    namespace = text(job, ("metadata", "namespace"))
    made = pod(
        job,
        (*task.path, "template"),
        f"{name}-{task.name}-{index}",
        labels={**labels, **marks, "volcano.sh/job-namespace": namespace},
        annotations={**notes, **marks, "volcano.sh/template-uid": f"{name}-{task.name}"},
    )
    for field in ("schedulerName", "priorityClassName"):
        said = text(job, ("spec", field))
        if said and not made["spec"].get(field):
            made["spec"][field] = said
    return made


def _cron_job_children(cron: Raw) -> Iterator[dict[str, Any]]:
    """The Job of the next time."""
    if flag(cron, ("spec", "suspend")):
        return
    template: Path = ("spec", "jobTemplate")
    yield child(
        cron,
        "batch.volcano.sh/v1alpha1",
        "Job",
        f"{text(cron, ('metadata', 'name'))}-next",
        labels=section(cron, (*template, "metadata", "labels")),
        annotations=section(cron, (*template, "metadata", "annotations")),
        spec=dict(section(cron, (*template, "spec"))),
    )


KINDS = (
    Kind(
        api_group="batch.volcano.sh",
        name="Job",
        plural="jobs",
        versions=("v1alpha1",),
        reads=(
            "spec.minAvailable",
            "spec.queue",
            "spec.priorityClassName",
            "spec.schedulerName",
            "spec.networkTopology.mode",
            "spec.networkTopology.highestTierAllowed",
            "spec.networkTopology.highestTierName",
            "spec.tasks[].name",
            "spec.tasks[].replicas",
            "spec.tasks[].minAvailable",
            "spec.tasks[].dependsOn.name",
            "spec.tasks[].dependsOn.iteration",
            "spec.tasks[].partitionPolicy.partitionSize",
            "spec.tasks[].partitionPolicy.minPartitions",
            "spec.tasks[].partitionPolicy.networkTopology",
            "spec.tasks[].template",
        ),
        member=_member,
        reads_of_pod=(_TASK, _PARTITION),
        children=_children,
    ),
    Kind(
        api_group="batch.volcano.sh",
        name="CronJob",
        plural="cronjobs",
        versions=("v1alpha1",),
        reads=("spec.jobTemplate", "spec.suspend"),
        children=_cron_job_children,
        leaves_to_others=True,
    ),
    # The Jobs are in its JobTemplates, which are other objects.
    Kind(
        api_group="flow.volcano.sh",
        name="JobFlow",
        plural="jobflows",
        versions=("v1alpha1",),
        reads=(),
        leaves_to_others=True,
    ),
)
