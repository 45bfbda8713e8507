"""numa-aware: guaranteed pods with whole CPUs go where the kubelet's NUMA policy can be satisfied.

A pod that names a policy (annotation volcano.sh/numa-topology-policy) goes only to nodes with that
TopologyManager policy and the static CPUManager policy. A pod that names none is checked on nodes with static
and some policy. For each container, CPUs are searched that are free and not reserved:
- best-effort: the fewest NUMA nodes with enough of them; never refuses a pod
- restricted: only as few NUMA nodes as on an empty node
- single-numa-node: only one NUMA node

score = weight * (100 - 100 * NUMA nodes used / most used by a candidate), for pods that name a policy.

The CPUs of placed pods stay taken over cycles until the exporter (Numatopology) has reported all newly placed
pods of the node. The choice is part of the binding as volcano.sh/topology-decision: CPUs by NUMA node.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any

import msgspec

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import WAITING
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.criteria import Cells, Dependence, Filter, Scorer, Scores
from maniple.framework.points import Event
from maniple.framework.reasons import FITS, Code, Reason, Verdicts
from maniple.framework.session import Session
from maniple.framework.triggers import Triggers
from maniple.objects.core import Container, Pod
from maniple.objects.meta import ResourceList
from maniple.objects.quantity import parse
from maniple.objects.volcano import CpuPlace, Numatopology
from maniple.plugins.devices.answers import Answers
from maniple.plugins.devices.cpu_topology import Bits, CpuTopology, Hint, cpuset, numbers
from maniple.plugins.devices.wire import amount
from maniple.plugins.normalise import reversed_by_maximum
from maniple.plugins.settings import report

POLICY = "volcano.sh/numa-topology-policy"
DECISION = "volcano.sh/topology-decision"
_MANAGER, _TOPOLOGY = "CPUManagerPolicy", "TopologyManagerPolicy"
_STATIC = "static"
_NO_POLICY = ("", "none")
GUESSED_CPUS = "numa-aware: cpus of pods that no exporter has reported"

NO_TOPOLOGY = Reason("numa info is empty")
NOT_STATIC = Reason("cpu manager policy isn't static")
OTHER_POLICY = Reason("task topology policy is different with node")
NO_CPUS = Reason("cpu allocatable map is empty")


@dataclass(frozen=True, slots=True)
class NumaAwareSettings:
    weight: int = 1

    @classmethod
    def read(cls, session: Session, values: Mapping[str, Any]) -> "NumaAwareSettings":
        given = Arguments(values, NumaAware.name)
        weight = given.int("weight", 1)
        report(session, given)
        return cls(weight)


@dataclass(slots=True, eq=False)
class NodeCpus:
    """A node in one session."""

    topology: CpuTopology
    manager: str
    policy: str
    free: Bits
    reserved: Bits

    @property
    def applies_to_all(self) -> bool:
        """Whether the kubelet applies a NUMA policy to pods that do not name one."""
        return self.manager == _STATIC and self.policy not in _NO_POLICY


@dataclass(frozen=True, slots=True)
class CpuDemand:
    """What matters of a class: its policy, and whole CPUs by container (0: not whole, None: none stated)."""

    policy: str
    cpus: tuple[tuple[str, int | None], ...]


# By node name: the cpus of newly placed pods, by (uid, pod key).
Preoccupied = dict[str, dict[tuple[str, str], Bits]]


class NumaAware:
    name = "numa-aware"
    triggers = Triggers(kinds=(Numatopology,))

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        self._settings = NumaAwareSettings.read(session, arguments)
        self._known: Preoccupied = session.cluster.memory.setdefault(GUESSED_CPUS, {})  # type: ignore[assignment]
        self._topologies = session.cluster.all(Numatopology)
        self._nodes: dict[int, NodeCpus | None] = {}
        self._demands: dict[int, CpuDemand | None] = {}
        self._taken: dict[int, tuple[int, Bits]] = {}  # by task: node and cpus
        self._answers = Answers(len(session.nodes), self._judge)
        self._forget_reported()

    def _forget_reported(self) -> None:
        """The kubelet may have chosen differently, so drop a node's guesses together, once it has chosen for
        all."""
        for name in list(self._known):
            topology = self._topologies.get(name)
            reported = set() if topology is None else _reported(topology)
            here = {pod: cpus for pod, cpus in self._known[name].items() if self._is_on(pod, name)}
            if all(pod[0] in reported or pod[1] in reported for pod in here):
                del self._known[name]
            else:
                self._known[name] = here

    def _is_on(self, pod: tuple[str, str], node: str) -> bool:
        tasks = self._session.cluster.tasks
        row = tasks.index_of(pod[1])
        found = None if row is None else tasks.pods[row]
        return found is not None and found.metadata.uid == pod[0] and found.spec.node_name == node

    def _node(self, row: int) -> NodeCpus | None:
        if row not in self._nodes:
            name = self._session.node_name(row)
            topology = self._topologies.get(name)
            self._nodes[row] = None if topology is None else self._opened(name, topology)
        return self._nodes[row]

    def _opened(self, name: str, topology: Numatopology) -> NodeCpus:
        spec, cpus = topology.spec, _cpus(topology)
        free = cpuset(spec.numares["cpu"].allocatable) if "cpu" in spec.numares else 0
        for taken in self._known.get(name, {}).values():
            free &= ~taken
        reserved = cpus.take(cpus.cpus, max(0, ceil(Fraction(parse(spec.res_reserved.get("cpu", 0))))))
        policies = spec.policies
        return NodeCpus(cpus, policies.get(_MANAGER, ""), policies.get(_TOPOLOGY, ""), free, reserved or 0)

    # -- criteria -------------------------------------------------------------------------------------------------

    def filters(self) -> list[Filter]:
        # Only pods with whole CPUs are concerned.
        return [Filter("NumaAware", Dependence.CLUSTER, self._check, self._concerns, amounts_decide=True)]

    def scorers(self) -> list[Scorer]:
        return [
            Scorer(
                "NumaAware",
                self._settings.weight,
                Dependence.CLUSTER,
                self._score,
                reversed_by_maximum,
                applies=self._names_policy,
                amounts_decide=True,
            )
        ]

    def _demand(self, class_: TaskClass) -> CpuDemand | None:
        """None for pods that are not guaranteed: they share CPUs with others."""
        number = class_.spec.number
        if number not in self._demands:
            self._demands[number] = _demand(class_.spec.pod)
        return self._demands[number]

    def _concerns(self, class_: TaskClass) -> bool:
        demand = self._demand(class_)
        return demand is not None and (bool(self._topologies) or demand.policy not in _NO_POLICY)

    def _names_policy(self, class_: TaskClass) -> bool:
        demand = self._demand(class_)
        return demand is not None and demand.policy not in _NO_POLICY

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        return self._answers.of(class_)[0][cells.rows]

    def _score(self, class_: TaskClass, cells: Cells) -> Scores:
        return self._answers.of(class_)[1][cells.rows]

    def _judge(self, class_: TaskClass, row: int) -> tuple[int, float]:
        """A verdict, and the number of NUMA nodes that the pod would use."""
        node, demand = self._node(row), self._demand(class_)
        assert demand is not None  # otherwise the class is not concerned
        found = _choose(node, demand)
        if isinstance(found, Reason):
            return self._session.reasons.number(found.text, found.code), 0.0
        nodes = 0 if node is None else node.topology.nodes_of(found).bit_count()
        return FITS, float(nodes)

    # -- events ---------------------------------------------------------------------------------------------------

    def on_allocate(self, event: Event) -> None:
        demand = self._demand(event.class_) if self._topologies else None
        if demand is None:
            return
        for task, row in zip(event.rows.tolist(), event.nodes.tolist(), strict=True):
            node = self._node(row)
            cpus = _choose(node, demand) if WAITING[self._session.cluster.tasks.status[task]] else 0
            if node is None or isinstance(cpus, Reason) or not cpus:
                continue
            node.free &= ~cpus
            self._taken[task] = (row, cpus)
            self._answers.touch(row)
            if demand.policy not in _NO_POLICY:
                self._session.decisions.annotations.setdefault(task, {})[DECISION] = decision(
                    node.topology, cpus
                )

    def on_deallocate(self, event: Event) -> None:
        for task in event.rows.tolist() if self._taken else ():
            row, cpus = self._taken.pop(task, (-1, 0))
            node = self._nodes.get(row)
            if node is None:
                continue
            node.free |= cpus
            self._answers.touch(row)
            notes = self._session.decisions.annotations.get(task, {})
            notes.pop(DECISION, None)
            if not notes:
                self._session.decisions.annotations.pop(task, None)

    def on_close(self) -> None:
        """Remember the assigned CPUs until they are reported."""
        session, pods = self._session, self._session.cluster.tasks.pods
        for rows, _ in (*session.decisions.bound, *session.decisions.held):
            for task in rows.tolist() if self._taken else ():
                if task in self._taken:
                    row, cpus = self._taken[task]
                    pod = (pods[task].metadata.uid, session.task_key(task))
                    self._known.setdefault(session.node_name(row), {})[pod] = cpus


def _reported(topology: Numatopology) -> set[str]:
    """Pods for which the kubelet has chosen, by uid and by key: exporters report one or the other."""
    allocations = topology.spec.pod_allocations
    named = {f"{one.namespace}/{one.name}" for one in allocations if one.name}
    return named | {one.uid for one in allocations if one.uid}


@lru_cache(maxsize=8192)
def _described(detail: bytes) -> CpuTopology:
    return CpuTopology(msgspec.json.decode(detail, type=dict[str, CpuPlace]))


def _cpus(topology: Numatopology) -> CpuTopology:
    """Nodes of a kind have the same CPUs."""
    return _described(msgspec.json.encode(topology.spec.cpu_detail, order="deterministic"))


def _demand(pod: Pod) -> CpuDemand | None:
    if not is_guaranteed(pod):
        return None
    cpus = tuple((one.name, _whole_cpus(one.resources.requests)) for one in pod.spec.containers)
    return CpuDemand(pod.metadata.annotations.get(POLICY, ""), cpus)


def _whole_cpus(requests: ResourceList) -> int | None:
    return amount(requests["cpu"]) if "cpu" in requests else None


def is_guaranteed(pod: Pod) -> bool:
    """Quality of service: every container limits cpu and memory to exactly what it requests."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return bool(containers) and all(map(_is_exact, containers))


def _is_exact(container: Container) -> bool:
    limits, requests = container.resources.limits, container.resources.requests
    stated = ((parse(limits.get(name, 0)), parse(requests.get(name, 0))) for name in ("cpu", "memory"))
    return all(limit > 0 and limit == request for limit, request in stated)


def _choose(node: NodeCpus | None, demand: CpuDemand) -> Bits | Reason:
    """The CPUs for a pod; none if the kubelet has no preference."""
    if demand.policy not in _NO_POLICY:
        if node is None:
            return NO_TOPOLOGY
        if node.manager != _STATIC:
            return NOT_STATIC
        if node.policy != demand.policy:
            return OTHER_POLICY
        if not node.free:
            return NO_CPUS
    elif node is None or not node.applies_to_all:
        return 0
    free, chosen = node.free & ~node.reserved, 0
    for name, wanted in demand.cpus:
        hint = best(node, free, wanted)
        if hint is None:
            return Reason(f"container {name} cannot be assigned by numa", Code.UNRESOLVABLE)
        cpus = _aligned(node.topology, free, wanted or 0, hint)
        free &= ~cpus
        chosen |= cpus
    return chosen


def best(node: NodeCpus, free: Bits, wanted: int | None) -> Hint | None:
    """The hint that the node's policy accepts; None if it accepts none."""
    topology = node.topology
    anywhere = Hint(topology.all_nodes, not wanted)  # a request for other than whole CPUs fits anywhere
    hints = topology.hints(free, wanted) if wanted else []
    if node.policy == "single-numa-node":
        hints = [hint for hint in hints if hint.preferred and hint.nodes.bit_count() == 1]
    found = min((*hints, anywhere), key=lambda hint: (not hint.preferred, hint.nodes.bit_count(), hint.nodes))
    insists = node.policy in ("restricted", "single-numa-node")
    return None if insists and not found.preferred else found


def _aligned(topology: CpuTopology, free: Bits, wanted: int, hint: Hint) -> Bits:
    """CPUs on the hint's NUMA nodes as far as there are enough, then others; none if that is not enough."""
    near = free & topology.cpus_of(hint.nodes)
    chosen = topology.take(near, min(wanted, (near & topology.cpus).bit_count())) or 0
    rest = topology.take(free & ~chosen, wanted - chosen.bit_count())
    return 0 if rest is None else chosen | rest


def decision(topology: CpuTopology, cpus: Bits) -> str:
    """Whole CPUs by NUMA node, as the kubelet's side reads it."""
    by_node = {
        str(node): {"cpu": str((topology.nodes[node] & cpus).bit_count())}
        for node in numbers(topology.nodes_of(cpus))
    }
    return msgspec.json.encode({"numa": by_node}).decode()
