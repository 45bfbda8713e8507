"""The sums of jobs and nodes, of which each task is a part."""

from maniple.cluster.classes import Spec
from maniple.cluster.statuses import ALLOCATED_LIKE, ON_NODE, Status
from maniple.cluster.tables import JobTable, NodeTable, TaskTable


def account(tasks: TaskTable, jobs: JobTable, nodes: NodeTable, row: int, spec: Spec, sign: int) -> None:
    """Add a task to the sums of its job and its node (+1), or take it out again (-1)."""
    status, job, node = int(tasks.status[row]), int(tasks.job[row]), int(tasks.node[row])
    request = spec.request if sign > 0 else -spec.request
    height = len(request)
    if job >= 0:
        jobs.counts[status, job] += sign
        jobs.total[:height, job] += request
        if ALLOCATED_LIKE[status]:
            jobs.allocated[:height, job] += request
        elif status in (Status.PENDING, Status.GATED):
            jobs.pending[:height, job] += request
            if spec.best_effort and not tasks.gated[row]:
                jobs.pending_best_effort[job] += sign
    if node >= 0 and ON_NODE[status]:
        nodes.used[:height, node] += request
        nodes.pods[node] += sign
        nodes.nonzero_cpu[node] += sign * spec.nonzero_cpu
        nodes.nonzero_memory[node] += sign * spec.nonzero_memory
        if status == Status.RELEASING:
            nodes.releasing[:height, node] += request
