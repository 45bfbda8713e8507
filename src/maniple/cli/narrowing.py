"""What `plan` and `replay` show of a plan: a namespace, some jobs, some queues. The decision is always over everything.

A narrowed plan is a plan itself, so that every format shows the same: the chosen jobs and their pods, the
nodes that those are on, their queues and the queues above, and the evictions of or for them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maniple.cli import InputError

if TYPE_CHECKING:
    from maniple.planner import Plan


@dataclass(frozen=True, slots=True)
class Scope:
    """The values of the command line; empty ones do not narrow."""

    namespace: str = ""
    jobs: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.namespace or self.jobs or self.queues)


def narrowed(plan: "Plan", scope: Scope) -> "Plan":
    """The part of a plan that is in scope; raises `InputError` for a job or a queue that is not there."""
    from maniple.planner import Plan

    if not scope:
        return plan
    jobs = _jobs_in(plan, scope)
    chosen = {key for key, task in plan.tasks.items() if (task.job or key) in jobs}
    evicted = tuple(one for one in plan.evicted if one.pod in chosen or one.actor in jobs)
    # A pod that makes room for a chosen one is shown with the node that it leaves.
    tasks = {key: plan.tasks[key] for key in (*chosen, *(one.pod for one in evicted))}
    nodes = {task.node for task in tasks.values()} | {plan.pipelined.get(key) for key in tasks}
    shown = _queues_below(plan, scope.queues) if scope.queues else _queues_above(plan, jobs)
    by_pod = {
        name: {key: value for key, value in getattr(plan, name).items() if key in chosen}
        for name in ("binds", "held", "pipelined", "starting")
    }
    return Plan.of_content(
        {
            **plan.content(),
            **by_pod,
            "evictions": [one.pod for one in evicted],
            "evicted": evicted,
            "tasks": {key: task for key, task in plan.tasks.items() if key in tasks},
            "jobs": {key: job for key, job in plan.jobs.items() if key in jobs},
            "queues": {name: queue for name, queue in plan.queues.items() if name in shown},
            "nodes": {name: node for name, node in plan.nodes.items() if name in nodes},
        }
    )


def _jobs_in(plan: "Plan", scope: Scope) -> set[str]:
    """The jobs in scope, and the pods without a job, which stand for themselves."""
    queue_of = {key: job.queue for key, job in plan.jobs.items()}
    queue_of |= {key: "" for key, task in plan.tasks.items() if task.job is None}
    queue_of |= {task.job: "" for task in plan.tasks.values() if task.job and task.job not in queue_of}
    found = set(queue_of)
    if scope.namespace:
        found = {key for key in found if key.startswith(f"{scope.namespace}/")}
    if scope.jobs:
        found &= {key for name in scope.jobs for key in _named(name, found)}
    if scope.queues:
        below = _queues_below(plan, scope.queues)
        found = {key for key in found if queue_of[key] in below}
    return found


def _named(name: str, known: Iterable[str]) -> list[str]:
    """The jobs of this name, with or without its namespace."""
    found = [key for key in known if name in (key, key.partition("/")[2])]
    if not found:
        raise InputError(f"no job {name!r}{_suggestion(name, known)}")
    return found


def _queues_below(plan: "Plan", names: Iterable[str]) -> set[str]:
    """These queues, and all below them."""
    for name in names:
        if name not in plan.queues:
            raise InputError(f"no queue {name!r}{_suggestion(name, plan.queues)}")
    found = set(names)
    while more := {key for key, queue in plan.queues.items() if queue.parent in found} - found:
        found |= more
    return found


def _queues_above(plan: "Plan", jobs: Iterable[str]) -> set[str]:
    """The queues of these jobs, and all above them."""
    found = {plan.jobs[job].queue for job in jobs if job in plan.jobs}
    while more := {plan.queues[name].parent for name in found if name in plan.queues} - found:
        found |= more
    return found


def _suggestion(name: str, known: Iterable[str]) -> str:
    from maniple.framework.configuration.document import suggestion

    full = list(known)
    near = suggestion(name, full)
    if not near and "/" not in name:  # the name alone may be near
        near = suggestion(name, [key.partition("/")[2] for key in full])
    return near or " in the plan"
