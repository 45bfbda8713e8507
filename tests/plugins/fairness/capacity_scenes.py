"""Short ways to open the capacity plugin on a small cluster, for its tests."""

from collections.abc import Mapping
from typing import Any

from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.plugins.fairness.capacity import Capacity
from tests.plugins.opening import names, queue_row, session_on, task, tasks, use
from tests.support import group, node, pod, queue

GPU = "nvidia.com/gpu"
Amounts = Mapping[str, Any]


def opened(
    *objects: Object,
    total: Amounts | None = None,
    tree: bool = False,
    strict: bool = False,
    arguments: Mapping[str, Any] | None = None,
) -> tuple[Session, Capacity]:
    """One node with `total`, the objects, and the plugin answering in the session."""
    offered = {"cpu": "100", "memory": "100Gi", **(total or {})}
    entry = {"name": "capacity", "enableHierarchy": tree}
    session = session_on([node("n1", offered), *objects], strict=strict, plugins=[entry])
    plugin = Capacity(session, arguments or {})
    use(session, plugin)
    return session, plugin


def tree(*objects: Object, **more: Any) -> tuple[Session, Capacity]:
    """The same with queues in a tree, below a root that says nothing."""
    return opened(queue("root"), *objects, tree=True, **more)


def work(name: str, count: int, requests: Amounts, *, of: str, on: str = "", **more: Any) -> list[Object]:
    """A job with `count` equal pods, `name`-0 and on; with `on` they run there."""
    pods = [pod(f"{name}-{i}", requests, group=name, on=on) for i in range(count)]
    return [group(name, 1, queue=of, **more), *pods]


def running(name: str, count: int, requests: Amounts, *, of: str, **more: Any) -> list[Object]:
    return work(name, count, requests, of=of, on="n1", **more)


def child(name: str, parent: str = "", **spec: Any) -> Object:
    return queue(name, parent=parent, **spec) if parent else queue(name, **spec)


def room(session: Session, plugin: Capacity, name: str, count: int = 1) -> int:
    """How many of `count` tasks like this one its queue may take."""
    row = task(session, name)
    class_ = session.classes[session.tasks.class_of[row]]
    return plugin.allocatable(int(session.jobs.queue[session.tasks.job[row]]), class_, count)


def may_reclaim(session: Session, plugin: Capacity, *task_names: str) -> bool:
    rows = tasks(session, *task_names)
    return plugin.preemptive(int(session.jobs.queue[session.tasks.job[rows[0]]]), rows)


def victims(session: Session, plugin: Capacity, asker: str, *candidates: str) -> list[str]:
    """The candidates that may be taken for the asker, in the order in which they would be."""
    return names(session, plugin.reclaimable(task(session, asker), tasks(session, *candidates)))


def amounts(session: Session, plugin: Capacity, name: str, what: str) -> dict[str, int | float]:
    """One line of a queue's report."""
    report = plugin.queue_report(queue_row(session, name))
    return session.resources.describe(report[what])  # type: ignore[arg-type]  # every line but the share is a vector
