"""Tasks, nodes, jobs and queues as Volcano's Go program writes them into JSON, for its extenders.

Field names are Go's; pods, nodes, pod groups and queues inside are Kubernetes objects with the fields in use
here. Amounts are millicores, bytes, whole pods, and thousandths of everything else; a status is a power of
two.
"""

from typing import Any

import msgspec
import numpy as np

from maniple.cluster.resources import CPU, MEMORY, PODS, Amounts
from maniple.cluster.statuses import ON_NODE, Status
from maniple.framework.configuration.durations import nanoseconds
from maniple.framework.configuration.scalars import parse_bool
from maniple.framework.session import Session
from maniple.objects.core import Pod, ResourceQuota
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue
from maniple.plugins.fairness.hierarchy import PATH, PATH_WEIGHTS
from maniple.plugins.feasibility.tdm import ANY_ZONE, ZONE, allows_zones
from maniple.plugins.job_budget import LEAST_AVAILABLE, MOST_UNAVAILABLE
from maniple.plugins.order.sla import ANNOTATIONS as WAITING_TIME

Shape = dict[str, Any]

_POWERS = {
    Status.PENDING: 1,
    Status.GATED: 1,
    Status.ALLOCATED: 2,
    Status.PIPELINED: 4,
    Status.BINDING: 8,
    Status.BOUND: 16,
    Status.RUNNING: 32,
    Status.RELEASING: 64,
    Status.SUCCEEDED: 128,
    Status.FAILED: 256,
    Status.UNKNOWN: 512,
}
_READY_PHASE = 1
_NUMA_POLICY = "volcano.sh/numa-topology-policy"
_OVERSUBSCRIPTION = "volcano.sh/oversubscription"
_EVICTING = "volcano.sh/offline-job-evicting"


class Shapes:
    """Writes the state of a session, as of now."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._pods: dict[int, Shape] = {}

    # -- amounts --------------------------------------------------------------------------------------------------

    def resource(self, vector: Amounts, *, places: int = 0) -> Shape:
        """`places`: the maximum number of pods on a node, which Volcano states separately."""
        amounts: list[int] = vector.tolist()
        resources = self._session.resources
        scalars = {
            resources.names[d]: amount if d == PODS else amount * 1000 // resources.scale(d)
            for d, amount in enumerate(amounts)
            if amount and d not in (CPU, MEMORY)
        }
        return {
            "MilliCPU": amounts[CPU],
            "Memory": amounts[MEMORY],
            "ScalarResources": scalars or None,
            "MaxTaskNum": places,
        }

    # -- tasks ----------------------------------------------------------------------------------------------------

    def task(self, row: int, *, node: int | None = None, status: Status | None = None) -> Shape:
        """A task as it is, or as it would be on a node and in a status that it is about to have."""
        session, tasks = self._session, self._session.tasks
        pod = session.cluster.tasks.pods[row]
        class_ = session.classes[tasks.class_of[row]]
        where = int(tasks.node[row]) if node is None else node
        role = int(tasks.role[row])
        request = self.resource(class_.request)
        return {
            "UID": pod.metadata.uid,
            "Job": session.job_key(int(tasks.job[row])) if tasks.job[row] >= 0 else "",
            "Name": pod.metadata.name,
            "Namespace": pod.metadata.namespace or "default",
            "TaskRole": session.cluster.tasks.roles[role] if role >= 0 else "",
            "Resreq": request,
            "InitResreq": request,
            "NodeName": session.node_name(where) if where >= 0 else "",
            "EvictionOccurred": False,
            "JobAllocatedHyperNode": "",
            "Status": _POWERS[Status(int(tasks.status[row])) if status is None else status],
            "LastTransaction": None,
            "Priority": int(tasks.priority[row]),
            "VolumeReady": False,
            "Preemptable": bool(tasks.preemptable[row]),
            "BestEffort": class_.best_effort,
            "HasRestartableInitContainer": any(
                container.restart_policy == "Always" for container in pod.spec.init_containers
            ),
            "SchGated": bool(tasks.gated[row]),
            "RevocableZone": _zone(pod.metadata.annotations),
            "NumaInfo": {"Policy": pod.metadata.annotations.get(_NUMA_POLICY, ""), "ResMap": {}},
            "Pod": self._pod(row, pod),
            "PodAnnotations": pod.metadata.annotations,
            "CustomBindErrHandlerSucceeded": False,
        }

    def _pod(self, row: int, pod: Pod) -> Shape:
        """With the phase spelled out, which is omitted here if it is the usual one."""
        known = self._pods.get(row)
        if known is None:
            known = msgspec.to_builtins(pod)
            known["status"] = {**known.get("status", {}), "phase": pod.status.phase}
            self._pods[row] = known
        return known

    # -- nodes ----------------------------------------------------------------------------------------------------

    def node(self, row: int) -> Shape:
        session, nodes, tasks = self._session, self._session.nodes, self._session.tasks
        item = nodes.facts.objects[row]
        labels, annotations = item.metadata.labels, item.metadata.annotations
        offered = nodes.allocatable[:, row]
        places = int(offered[PODS])
        lent = offered - self._stated(item.status.allocatable)
        there = (tasks.node == row) & (ON_NODE[tasks.status] | (tasks.status == Status.PIPELINED))
        return {
            "Name": session.node_name(row),
            "Node": item,
            "State": {"Phase": _READY_PHASE, "Reason": ""},
            "Releasing": self.resource(nodes.releasing[:, row]),
            "Pipelined": self.resource(nodes.pipelined[:, row]),
            "Idle": self.resource(offered - nodes.used[:, row], places=places),
            "Used": self.resource(nodes.used[:, row]),
            "Allocatable": self.resource(offered, places=places),
            "Capacity": self.resource(self._stated(item.status.capacity) + lent, places=places),
            "Tasks": {session.task_key(task): self.task(task) for task in np.flatnonzero(there).tolist()},
            "RevocableZone": labels.get(ZONE, ""),
            "OversubscriptionNode": bool(parse_bool(labels.get(_OVERSUBSCRIPTION, ""))),
            "OfflineJobEvicting": bool(parse_bool(annotations.get(_EVICTING, ""))),
            "OversubscriptionResource": self.resource(lent),
        }

    def _stated(self, amounts: dict[str, str | int | float]) -> Amounts:
        known = {
            name: amount
            for name, amount in amounts.items()
            if self._session.resources.known(name) is not None
        }
        stated = self._session.resources.vector(known)[: len(self._session.total)]
        return np.concatenate([stated, np.zeros(len(self._session.total) - len(stated), dtype=np.int64)])

    # -- jobs and queues ------------------------------------------------------------------------------------------

    def job(self, row: int) -> Shape:
        session, jobs = self._session, self._session.jobs
        facts, group = session.job_facts(row), session.cluster.jobs.objects[row]
        meta = group.metadata
        by_status: dict[str, Shape] = {}
        tasks: Shape = {}
        for number in session.tasks_of(row).tolist():
            shape = self.task(number)
            key = shape["UID"] or session.task_key(number)
            tasks[key] = by_status.setdefault(str(shape["Status"]), {})[key] = shape
        return {
            "UID": session.job_key(row),
            "PgUID": meta.uid,
            "Name": meta.name,
            "Namespace": meta.namespace or "default",
            "Queue": facts.queue,
            "Priority": int(jobs.priority[row]),
            "MinAvailable": int(jobs.minimum[row]),
            "WaitingTime": _waiting_time(meta.annotations),
            "TaskStatusIndex": by_status,
            "Tasks": tasks,
            "TaskMinAvailable": dict(facts.role_minimums),
            "TaskMinAvailableTotal": sum(facts.role_minimums.values()),
            "Allocated": self.resource(jobs.allocated[:, row]),
            "TotalRequest": self.resource(jobs.total[:, row]),
            "CreationTimestamp": meta.creation_timestamp,
            "PodGroup": self._group(row, group),
            "Preemptable": facts.preemptable,
            "RevocableZone": _zone(meta.annotations),
            "Budget": _budget(meta.annotations),
        }

    def _group(self, row: int, group: object) -> Shape:
        shape: Shape = msgspec.to_builtins(group)
        if isinstance(group, VolcanoPodGroup):
            shape["status"] = {**shape.get("status", {}), "phase": self._session.phase(row)}
        return {**shape, "Version": "v1beta1"}

    def queue(self, row: int) -> Shape:
        queues = self._session.queues
        item = queues.stated(row, VolcanoQueue) or queues.objects[row]
        name, annotations = self._session.queue_name(row), item.metadata.annotations
        return {
            "UID": name,
            "Name": name,
            "Weight": item.spec.weight if isinstance(item, VolcanoQueue) else 1,
            "Weights": annotations.get(PATH_WEIGHTS, ""),
            "Hierarchy": annotations.get(PATH, ""),
            "Queue": item,
        }

    # -- everything -----------------------------------------------------------------------------------------------

    def everything(self) -> Shape:
        """What an extender gets when a session opens."""
        session = self._session
        nodes = {session.node_name(row): self.node(row) for row in range(len(session.nodes))}
        quotas: dict[str, Shape] = {}
        for quota in session.cluster.all(ResourceQuota).values():
            namespace = quota.metadata.namespace or "default"
            entry = quotas.setdefault(namespace, {"Name": namespace, "QuotaStatus": {}})
            entry["QuotaStatus"][quota.metadata.name] = quota.status
        return {
            "Jobs": {session.job_key(row): self.job(row) for row in session.jobs.rows.tolist()},
            "Nodes": nodes,
            "Queues": {session.queue_name(row): self.queue(row) for row in session.queues.objects},
            "NamespaceInfo": quotas,
            "RevocableNodes": {name: node for name, node in nodes.items() if node["RevocableZone"]},
            "NodeList": None,
        }


def _waiting_time(annotations: dict[str, str]) -> int | None:
    """In nanoseconds; None for a job without a valid one."""
    for key in WAITING_TIME:
        try:
            waiting = nanoseconds(annotations.get(key, ""))
        except ValueError:
            continue
        if waiting > 0:
            return waiting
    return None


def _zone(annotations: dict[str, str]) -> str:
    return ANY_ZONE if allows_zones(annotations) else ""


def _budget(annotations: dict[str, str]) -> Shape:
    least = annotations.get(LEAST_AVAILABLE)
    most = annotations.get(MOST_UNAVAILABLE, "") if least is None else ""
    return {"MinAvailable": least or "", "MaxUnavailable": most}
