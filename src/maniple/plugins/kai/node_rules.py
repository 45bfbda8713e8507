"""Which nodes KAI's `predicates` rejects by what they are: their GPUs, their conditions, their role.

All of it but one holds as long as node objects stay the same: a node with a pod that holds a legacy MIG slice
accepts no new slices.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.nodes import MISSING, PRESSURES
from maniple.cluster.statuses import ON_NODE
from maniple.framework.criteria import Cells, Dependence, Filter
from maniple.framework.devices.gpu_facts import MIXED, SINGLE
from maniple.framework.reasons import FITS, Code, Detail, Verdicts, joined
from maniple.framework.session import Session
from maniple.objects.core import Node
from maniple.plugins.feasibility.taints import CORDON_DETAIL
from maniple.plugins.kai.gpu_requests import requests_device_plugin, requests_gpu, requests_mig

Mask = NDArray[np.bool_]

UNREADABLE = "the pod's annotation {name} must be {range}"
RANGES = {
    "gpu-fraction": "a part of a GPU from 0.01 to 1, such as 0.5",
    "gpu-memory": "a number of MiB above 0, such as 2000",
}
LEGACY_MIG = "legacy MIG jobs cannot be scheduled"
DRA_ONLY = "device-plugin GPU requests cannot be scheduled on DRA-only nodes"
NO_MIG = "MIG job cannot be scheduled on non-MIG node"
AMONG_LEGACY_MIG = "MIG job cannot be scheduled on node with legacy MIG jobs"
ONLY_WHOLE = "only whole gpu jobs can run on a node with MigStrategy='single'"
ONLY_MIG = "non MIG jobs cant run on a node with MigStrategy='mixed'"
NOT_SYNCED = "node is not a gpu node or the gpu memory count on the node was not synced yet"
CORDONED = "node is unschedulable"
NOT_READY = "node has NotReady condition"
NO_GPU_WORKER = "gpu task can't run on non gpu nodes"
NO_CPU_WORKER = "cpu task can't run on non cpu nodes"

UNSYNCED = Detail(
    "GpuMemoryUnknown",
    "the label nvidia.com/gpu.memory is missing, so that the memory of its GPUs is not known",
    "nvidia.com/gpu.memory",
)
_ROLES = ("node-role.kubernetes.io/gpu-worker", "node-role.kubernetes.io/cpu-worker")


class NodeRules:
    """The filters, for one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._facts = session.nodes.facts
        self._legacy = self._nodes_with_legacy_slices()
        self._kinds: dict[tuple[bool, bool, bool], Verdicts] = {}

    def _number(self, text: str) -> int:
        return self._session.reasons.number(text, Code.UNRESOLVABLE)

    def _nodes_with_legacy_slices(self) -> Mask:
        session = self._session
        holders = [one.number for one in session.classes if _is_legacy(one)]
        nodes = np.zeros(len(self._facts), dtype=np.bool_)
        if holders:
            tasks = session.tasks
            there = (tasks.node >= 0) & ON_NODE[tasks.status] & np.isin(tasks.class_of, holders)
            nodes[tasks.node[there]] = True
        return nodes

    def by_gpus(self) -> list[Filter]:
        """Legacy slices, devices of DRA drivers, MIG slices and the nodes that have any."""
        any_legacy = bool(self._legacy.any())
        return [
            Filter(
                "GpuKind",
                Dependence.STATIC,
                self._check_kind,
                lambda class_: asks_anything(self._session, class_),
            ),
            Filter(
                "LegacyMig",
                Dependence.NODE,
                self._check_neighbours,
                lambda class_: any_legacy and requests_mig(self._session, class_),
            ),
            Filter(
                "GpuMemorySynced",
                Dependence.STATIC,
                self._check_synced,
                _asks_memory,
                detail=lambda _class, _node: UNSYNCED,
            ),
        ]

    def _check_kind(self, class_: TaskClass, cells: Cells) -> Verdicts:
        if name := _unreadable(class_):
            return self._everywhere(UNREADABLE.format(name=name, range=RANGES[name]))[cells.rows]
        if _is_legacy(class_):
            return self._everywhere(LEGACY_MIG)[cells.rows]
        mig, shares = requests_mig(self._session, class_), class_.share is not None
        return self._of_kind(mig, shares, requests_device_plugin(self._session, class_))[cells.rows]

    def _everywhere(self, text: str) -> Verdicts:
        return np.full(len(self._facts), self._number(text), dtype=np.int16)

    def _of_kind(self, mig: bool, shares: bool, device_plugin: bool) -> Verdicts:
        """Of nodes, for classes that request GPUs in the same way; few ways, many classes."""
        known = self._kinds.get((mig, shares, device_plugin))
        if known is not None:
            return known
        gpus = self._session.gpus
        verdict = np.zeros(len(self._facts), dtype=np.int16)
        if mig:
            verdict[~gpus.mig_enabled] = self._number(NO_MIG)
        else:
            verdict[gpus.mig == MIXED] = self._number(ONLY_MIG)
        if mig or shares:
            verdict[gpus.mig == SINGLE] = self._number(ONLY_WHOLE)
        if device_plugin:
            verdict[gpus.dra > 0] = self._number(DRA_ONLY)
        self._kinds[mig, shares, device_plugin] = verdict
        return verdict

    def _check_neighbours(self, _: TaskClass, cells: Cells) -> Verdicts:
        refused = self._session.reasons.number(AMONG_LEGACY_MIG)
        return np.where(self._legacy, refused, FITS).astype(np.int16)[cells.rows]

    def _check_synced(self, _: TaskClass, cells: Cells) -> Verdicts:
        synced = self._session.gpus.synced
        return np.where(synced, FITS, self._number(NOT_SYNCED)).astype(np.int16)[cells.rows]

    def by_conditions(self) -> list[Filter]:
        """Cordoned, not ready, short of memory, disk, process ids or network; tolerations do not help."""
        facts = self._facts
        bad = np.flatnonzero(~facts.ready)
        if not len(bad):
            return []
        verdict = np.full(len(facts), FITS, dtype=np.int16)
        verdict[bad] = [self._number(_bad_conditions(facts.objects[row])) for row in bad.tolist()]
        return [
            Filter(
                "NodeConditions",
                Dependence.STATIC,
                lambda _, cells: verdict[cells.rows],
                detail=lambda _, node: _condition_detail(facts.objects[node]),
            )
        ]

    def by_role(self) -> list[Filter]:
        """With restricted node scheduling: GPU tasks on GPU workers, the others on CPU workers."""
        options = self._session.options
        if not options.get("restrictNodeScheduling", False):
            return []
        return [Filter("WorkerRole", Dependence.STATIC, self._check_role)]

    def _check_role(self, class_: TaskClass, cells: Cells) -> Verdicts:
        options, gpu = self._session.options, requests_gpu(self._session, class_)
        for_gpu, for_cpu = _ROLES
        key = (
            options.get("gpuWorkerNodeLabelKey", for_gpu)
            if gpu
            else options.get("cpuWorkerNodeLabelKey", for_cpu)
        )
        right = self._facts.label(str(key)).codes != MISSING
        number = self._number(NO_GPU_WORKER if gpu else NO_CPU_WORKER)
        return np.where(right, FITS, number).astype(np.int16)[cells.rows]


def asks_anything(session: Session, class_: TaskClass) -> bool:
    return bool(_unreadable(class_)) or _is_legacy(class_) or requests_gpu(session, class_)


def _unreadable(class_: TaskClass) -> str:
    return class_.spec.gpu.unreadable if class_.spec.gpu is not None else ""


def _is_legacy(class_: TaskClass) -> bool:
    return class_.spec.gpu is not None and class_.spec.gpu.legacy_mig


def _asks_memory(class_: TaskClass) -> bool:
    return class_.share is not None and class_.share.memory > 0


def _condition_detail(node: Node) -> Detail:
    if node.spec.unschedulable:
        return CORDON_DETAIL
    bad = [
        one.type
        for one in node.status.conditions
        if (one.type == "Ready" and one.status != "True") or (one.type in PRESSURES and one.status != "False")
    ]
    words = ["not ready" if one == "Ready" else f"in condition {one}" for one in bad]
    return Detail("NodeNotReady", " and ".join(words), ", ".join(bad))


def _bad_conditions(node: Node) -> str:
    """All conditions that keep a node from accepting pods."""
    found = [CORDONED] if node.spec.unschedulable else []
    for condition in node.status.conditions:
        if condition.type == "Ready" and condition.status != "True":
            found.append(NOT_READY)
        elif condition.type in PRESSURES and condition.status != "False":
            found.append(f"node has {condition.type} condition")
    return joined(found)
