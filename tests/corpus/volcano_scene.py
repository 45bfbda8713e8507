"""The parts of a random cluster for Volcano: nodes, queues, jobs and the configuration that plans them.

Used by the topics. A scene tracks how much room is left on its nodes, so that what runs at the beginning
really fits, and gives every object a name, a uid and an age of its own, so that as few decisions as possible
are random in the original.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

Raw = dict[str, Any]
Entry = str | tuple[str, Mapping[str, Any]]

NOW = "2026-11-16T12:00:00Z"
NAMESPACE = "c1"
GROUP_NAME = "scheduling.k8s.io/group-name"
ROLE = "volcano.sh/task-spec"
SCHEDULING = "scheduling.volcano.sh/v1beta1"
_NOT_SWITCHES = frozenset({"enablePreferredOrder"})
_CORES = (2, 3, 4, 5, 6, 8, 10, 12, 16)
_PRIORITIES = {"low": 10, "mid": 50, "high": 90, **{f"p{rank}": 20 + rank for rank in range(10)}}


class Scene:
    """One cluster in the making."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.objects: list[Raw] = []
        self.actions: list[str] = ["allocate"]
        self.first: list[Entry] = ["priority", "gang", "conformance"]
        self.second: list[Entry] = ["predicates", "proportion", "nodeorder", "binpack"]
        self.arguments: dict[str, Mapping[str, Any]] = {}
        self.options: Raw = {}
        self.nodes: list[Raw] = []
        self.queues: list[str] = []
        self.free: dict[str, list[float]] = {}
        self._age = 600
        self._classes: set[str] = set()

    # -- chance ---------------------------------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def pick(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def ago(self, minutes: float) -> str:
        moment = datetime.fromisoformat(NOW) - timedelta(minutes=minutes)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    # -- objects --------------------------------------------------------------------------------------------------

    def add(self, api: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Raw:
        """Any object; what belongs into the metadata is put there. Each is a little younger than the one before."""
        self._age -= 1
        metadata: Raw = {
            "name": name,
            "uid": f"{kind[:2].lower()}-{name}",
            "creationTimestamp": self.ago(self._age),
        }
        if namespace:
            metadata["namespace"] = namespace
        for key in ("labels", "annotations", "deletionTimestamp"):
            value = fields.pop(key, None)
            if value:
                metadata[key] = value
        made = {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}
        self.objects.append(made)
        return made

    def node(self, cpu: float, memory: float, more: Mapping[str, Any] | None = None, **fields: Any) -> Raw:
        name = f"n{len(self.nodes)}"
        amounts = {"cpu": amount(cpu), "memory": f"{memory}Gi", "pods": "20", **(more or {})}
        labels = {"kubernetes.io/hostname": name, **fields.pop("labels", {})}
        spec = fields.pop("spec", {})
        status = {"capacity": amounts, "allocatable": amounts, **fields.pop("status", {})}
        node = self.add("v1", "Node", name, labels=labels, spec=spec, status=status, **fields)
        self.nodes.append(node)
        self.free[name] = [cpu, memory]
        return node

    def some_nodes(
        self, low: int = 2, high: int = 4, cores: Sequence[int] = _CORES, **fields: Any
    ) -> list[Raw]:
        """Nodes of different sizes and shapes, so that scores seldom tie."""
        sizes = self.random.sample(cores, min(self.number(low, high), len(cores)))
        return [self.node(size, 2 * size + self.number(0, 5), **fields) for size in sizes]

    def queue(self, name: str, annotations: Mapping[str, str] | None = None, **spec: Any) -> Raw:
        state = spec.pop("state", "Open")
        self.queues.append(name)
        body = {"weight": 1, "reclaimable": True, **spec}
        return self.add(
            SCHEDULING, "Queue", name, annotations=annotations, spec=body, status={"state": state}
        )

    def some_queues(self, low: int = 1, high: int = 3) -> None:
        for i in range(self.number(low, high)):
            self.queue(f"q{i}", weight=self.number(1, 4))

    def priority_class(self, name: str) -> None:
        """The class is made when the first job is of it."""
        if name and name not in self._classes:
            self._classes.add(name)
            self.add("scheduling.k8s.io/v1", "PriorityClass", name, value=_PRIORITIES[name])

    # -- jobs -----------------------------------------------------------------------------------------------------

    def group(
        self, name: str, queue: str, *, annotations: Mapping[str, str] | None = None, phase: str, **spec: Any
    ) -> Raw:
        body = {"queue": queue, **spec}
        return self.add(
            SCHEDULING,
            "PodGroup",
            name,
            NAMESPACE,
            annotations=annotations,
            spec=body,
            status={"phase": phase},
        )

    def pod(
        self,
        group: str,
        index: int,
        cpu: float,
        memory: float,
        *,
        role: str = "",
        node: str = "",
        priority: str = "",
    ) -> Raw:
        requests = {
            key: value
            for key, value in (("cpu", amount(cpu)), ("memory", f"{memory}Gi"))
            if value not in {"0", "0Gi"}
        }
        name = f"{group}-{role or 'w'}-{index}"
        container: Raw = {"name": "c", "resources": {"requests": requests} if requests else {}}
        spec: Raw = {"schedulerName": "volcano", "containers": [container]}
        if node:
            spec["nodeName"] = node
        if priority:
            spec.update(priorityClassName=priority, priority=_PRIORITIES[priority])
        notes = {GROUP_NAME: group, **({ROLE: role} if role else {})}
        status = {"phase": "Running" if node else "Pending"}
        return self.add(
            "v1", "Pod", name, NAMESPACE, annotations=notes, labels={"app": group}, spec=spec, status=status
        )

    def place(self, cpu: float, memory: float, among: Iterable[str] | None = None) -> str:
        """A node with room, or nothing; the room is taken."""
        fits = [
            name
            for name in (self.free if among is None else among)
            if self.free[name][0] >= cpu and self.free[name][1] >= memory
        ]
        if not fits:
            return ""
        name = self.random.choice(fits)
        self.free[name][0] -= cpu
        self.free[name][1] -= memory
        return name

    def job(
        self,
        name: str,
        queue: str = "q0",
        *,
        count: int = 1,
        running: int = 0,
        cpu: float = 1,
        memory: float = 1,
        least: int | None = None,
        roles: Sequence[str] = (),
        priority: str = "",
        phase: str = "",
        annotations: Mapping[str, str] | None = None,
        asks: bool = True,
        **spec: Any,
    ) -> list[Raw]:
        """A PodGroup with its pods; the first `running` of them run, as far as there is room."""
        least = count if least is None else least
        self.priority_class(priority)
        pods = []
        for i in range(count):
            node = self.place(cpu, memory) if i < running else ""
            pods.append(
                self.pod(
                    name,
                    i,
                    cpu,
                    memory,
                    role=roles[i % len(roles)] if roles else "",
                    node=node,
                    priority=priority,
                )
            )
        runs = sum("nodeName" in pod["spec"] for pod in pods)
        if not phase:
            phase = (
                "Running"
                if runs and runs >= least
                else "Pending"
                if "enqueue" in self.actions and not runs
                else "Inqueue"
            )
        if asks:
            spec.setdefault("minResources", {"cpu": amount(cpu * least), "memory": f"{memory * least}Gi"})
        if priority:
            spec["priorityClassName"] = priority
        self.group(name, queue, annotations=annotations, phase=phase, minMember=least, **spec)
        return pods

    def random_job(self, name: str, *, running: bool | int = False, **given: Any) -> list[Raw]:
        """A job of any size, all of it waiting, or running as far as there is room."""
        count = given.pop("count", self.number(1, 4))
        shape: Raw = {
            "count": count,
            "least": self.number(1, count),
            "cpu": self.pick(0.5, 1, 1, 1.5, 2, 3),
            "memory": self.pick(1, 1, 2, 3, 5),
            "queue": self.random.choice(self.queues),
            "running": count if running is True else int(running),
            "asks": self.chance(0.8),
            **given,
        }
        return self.job(name, shape.pop("queue"), **shape)

    def some_jobs(self, prefix: str, low: int, high: int, **given: Any) -> list[Raw]:
        return [
            pod for i in range(self.number(low, high)) for pod in self.random_job(f"{prefix}{i}", **given)
        ]

    def fill(self, queues: Sequence[str], priorities: Sequence[str]) -> None:
        """Jobs that could do with less take what is left, so that room can only come from others.

        Mostly they could do with nothing: which pods a gang loses first is left to chance in the original.
        """
        for i, priority in enumerate(priorities):
            if not any(cpu >= 1 and memory >= 1 for cpu, memory in self.free.values()):
                break
            cpu, count = self.pick(1, 1.5, 2), self.number(2, 4)
            queue = self.random.choice(queues)
            pods = self.job(
                f"fill{i}",
                queue,
                count=count,
                running=count,
                cpu=cpu,
                least=self.pick(0, 0, 0, 1, 2),
                priority=priority,
            )
            for pod in pods:
                if "nodeName" not in pod["spec"]:
                    self.objects.remove(pod)

    def one_on_each(self, queues: Sequence[str], priorities: Sequence[str]) -> None:
        """The same with one large pod on every node, so that nobody has to choose between victims."""
        for (name, (cpu, memory)), priority in zip(list(self.free.items()), priorities, strict=False):
            if cpu >= 1 and memory >= 1:
                self.priority_class(priority)
                size = int(cpu) - self.pick(0, 0, 0.5)
                self.free[name][0] -= size
                self.free[name][1] -= 1
                self.pod(f"big-{name}", 0, size, 1, node=name, priority=priority)
                queue = self.random.choice(queues)
                self.group(
                    f"big-{name}",
                    queue,
                    phase="Running",
                    minMember=self.pick(0, 0, 1),
                    priorityClassName=priority,
                )

    # -- the whole ------------------------------------------------------------------------------------------------

    def without(self, *plugins: str) -> None:
        for tier in (self.first, self.second):
            tier[:] = [entry for entry in tier if named(entry) not in plugins]

    def case(self, seed: int, topic: str) -> Raw:
        tiers = [
            {"plugins": [_plugin(entry) for entry in tier]} for tier in (self.first, self.second) if tier
        ]
        configurations = [
            {"name": name, "arguments": dict(values)} for name, values in self.arguments.items()
        ]
        conf: Raw = {"tiers": tiers, **({"configurations": configurations} if configurations else {})}
        made: Raw = {
            "id": f"volcano-{seed:05d}",
            "profile": "volcano",
            "topic": topic,
            "actions": self.actions,
            "conf": conf,
            "objects": self.objects,
            "now": NOW,
        }
        return {**made, "options": self.options} if self.options else made


def named(entry: Entry) -> str:
    return entry if isinstance(entry, str) else entry[0]


def _plugin(entry: Entry) -> Raw:
    """A plugin by its name; what begins with `enable` is a switch, the rest are arguments."""
    if isinstance(entry, str):
        return {"name": entry}
    name, settings = entry
    switches = {
        key: value for key, value in settings.items() if key.startswith("enable") and key not in _NOT_SWITCHES
    }
    arguments = {key: value for key, value in settings.items() if key not in switches}
    return {"name": name, **switches, **({"arguments": arguments} if arguments else {})}


def amount(cores: float) -> str:
    """Cores as Kubernetes writes them."""
    return str(int(cores)) if float(cores).is_integer() else f"{round(cores * 1000)}m"
