"""A small KAI cluster under construction: nodes with their free amounts, queues, pending and running jobs.

Everything is drawn from one random number generator, so that a number alone makes the same cluster again.
Objects are plain dictionaries with uids unrelated to their names, and sometimes equal ages: ties are
intended.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

Raw = dict[str, Any]

NAMESPACE = "ml"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PRIORITIES = {"train": 50, "burst": 75, "build": 100, "inference": 125}
PLUGINS = [
    "predicates",
    "proportion",
    "priority",
    "elastic",
    "kubeflow",
    "ray",
    "nodeavailability",
    "gpusharingorder",
    "gpupack",
    "resourcetype",
    "subgrouporder",
    "taskorder",
    "nominatednode",
    "dynamicresources",
    "nodeplacement",
    "minruntime",
    "topology",
]


def ago(**duration: float) -> str:
    return (NOW - timedelta(**duration)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Request:
    """What a pod requests: whole GPUs, a part of `devices` by `fraction` or `memory` (MiB), or named
    resources."""

    gpus: int = 0
    cpu: int = 500
    gigabytes: int = 1
    fraction: str = ""
    memory: int = 0
    devices: int = 1
    named: tuple[tuple[str, int], ...] = ()

    @property
    def shares(self) -> bool:
        return bool(self.fraction or self.memory)

    def resources(self) -> Raw:
        listed: Raw = {"cpu": f"{self.cpu}m", "memory": f"{self.gigabytes}Gi"}
        if self.gpus:
            listed["nvidia.com/gpu"] = str(self.gpus)
        return listed | {name: str(amount) for name, amount in self.named}

    def annotations(self) -> Raw:
        parts = {"gpu-fraction": self.fraction, "gpu-memory": str(self.memory or "")}
        many = {"gpu-fraction-num-devices": str(self.devices)} if self.shares and self.devices > 1 else {}
        return {key: value for key, value in parts.items() if value} | many


@dataclass
class Job:
    """How a job is to be made. `running`: how many of its pods have a place already."""

    queue: str
    pods: int = 1
    minimum: int = 1
    running: int = 0
    request: Request = field(default_factory=Request)
    priority: str = ""
    preemptibility: str = ""
    sub_groups: list[Raw] = field(default_factory=list)
    leaves: list[str] = field(default_factory=list)
    topology: Raw = field(default_factory=dict)
    minutes: float = 0
    annotations: Raw = field(default_factory=dict)
    labels: Raw = field(default_factory=dict)
    dress: Callable[[Raw, int], None] | None = None
    """Changes a pod before it is added; it is told which one of the job it is."""


class Scene:
    """The cluster, its configuration, and what is left of its nodes."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.objects: list[Raw] = []
        self.room: dict[str, dict[str, int]] = {}
        self.devices: dict[str, dict[str, int]] = {}
        self.queues: list[str] = []
        self.actions = ["allocate"]
        self.plugins: dict[str, Raw] = {name: {} for name in PLUGINS}
        self.plugins["nodeplacement"] = {"cpu": "binpack", "gpu": "binpack"}
        self.conf: Raw = {}
        self.options: Raw = {}
        self.gpu_memory = 1000
        self._made = 0
        for name, value in PRIORITIES.items():
            self.add("scheduling.k8s.io/v1", "PriorityClass", name, value=value)

    def chance(self, part: float) -> bool:
        return self.random.random() < part

    def add(
        self, api: str, kind: str, name: str, *, namespace: str = "", minutes: float = 600, **body: Any
    ) -> Raw:
        meta = {"name": name, "uid": f"{self.random.getrandbits(16):04x}-{name}"}
        meta |= {"creationTimestamp": ago(minutes=minutes), **body.pop("metadata", {})}
        if namespace:
            meta["namespace"] = namespace
        made = {"apiVersion": api, "kind": kind, "metadata": meta, **body}
        self.objects.append(made)
        return made

    def node(
        self,
        *,
        gpus: int = 0,
        cpu: int = 8,
        gigabytes: int = 32,
        pods: int = 20,
        labels: Raw | None = None,
        named: Raw | None = None,
    ) -> Raw:
        name = f"n{len(self.room)}"
        room = {"cpu": str(cpu), "memory": f"{gigabytes}Gi", "pods": str(pods), **(named or {})}
        told: Raw = {"kubernetes.io/hostname": name}
        if gpus:
            room["nvidia.com/gpu"] = str(gpus)
            told |= {"nvidia.com/gpu.memory": str(self.gpu_memory), "nvidia.com/gpu.count": str(gpus)}
        self.room[name] = {"gpus": gpus, "cpu": cpu * 1000, "gigabytes": gigabytes, "pods": pods}
        self.room[name] |= {key: int(amount) for key, amount in (named or {}).items()}
        self.devices[name] = {}
        return self.add(
            "v1",
            "Node",
            name,
            metadata={"labels": told | (labels or {})},
            spec={},
            status={
                "allocatable": room,
                "capacity": dict(room),
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        )

    def queue(self, name: str, parent: str = "", *, leaf: bool = True, **spec: Any) -> Raw:
        """`gpu`, `cpu` and `memory` as (quota, limit, weight); without them there is no quota and no limit."""
        resources = {}
        for resource in ("gpu", "cpu", "memory"):
            quota, limit, weight = spec.pop(resource, (0, -1, 1))
            resources[resource] = {"quota": quota, "limit": limit, "overQuotaWeight": weight}
        if leaf:
            self.queues.append(name)
        above = {"parentQueue": parent} if parent else {}
        minutes = self.random.choice([600, 600, 500, 400, 300])
        return self.add(
            "scheduling.run.ai/v2",
            "Queue",
            name,
            minutes=minutes,
            spec={**above, "resources": resources, **spec},
        )

    def job(self, job: Job) -> list[Raw]:
        """The pod group and its pods; of those that should run, as many as there is room for."""
        name = f"j{self._made}"
        self._made += 1
        spec: Raw = {"minMember": job.minimum, "queue": job.queue}
        said: Raw = {"priorityClassName": job.priority, "preemptibility": job.preemptibility}
        said |= {"subGroups": job.sub_groups, "topologyConstraint": job.topology}
        minutes = job.minutes or self.random.randint(1, 12)
        group = self.add(
            "scheduling.run.ai/v2alpha2",
            "PodGroup",
            name,
            namespace=NAMESPACE,
            minutes=minutes,
            metadata={"annotations": job.annotations, "labels": job.labels},
            spec=spec | {key: value for key, value in said.items() if value},
        )
        pods = [self._pod(name, job, index, minutes) for index in range(job.pods)]
        return [group, *pods]

    def _pod(self, name: str, job: Job, index: int, minutes: float) -> Raw:
        labels = {"app": name}
        if job.leaves:
            labels["kai.scheduler/subgroup-name"] = job.leaves[index % len(job.leaves)]
        container: Raw = {"name": "main", "image": "x", "resources": {"requests": job.request.resources()}}
        pod = self.add(
            "v1",
            "Pod",
            f"{name}-{index}",
            namespace=NAMESPACE,
            minutes=minutes,
            metadata={
                "annotations": {"pod-group-name": name, **job.request.annotations()},
                "labels": labels,
            },
            spec={"schedulerName": "kai-scheduler", "containers": [container]},
            status={"phase": "Pending"},
        )
        if job.dress is not None:
            job.dress(pod, index)
        if index < job.running:
            self.run(pod, job.request)
        return pod

    def run(self, pod: Raw, request: Request, among: list[str] | None = None) -> str:
        """Places the pod on a node that has room, and books it; on none, it waits. The node's name, or nothing."""
        fitting = [name for name in (among or self.room) if self._fits(name, request)]
        if not fitting:
            return ""
        node = self.random.choice(fitting)
        self._book(node, request, pod)
        pod["spec"]["nodeName"] = node
        pod["status"] = {"phase": "Running"}
        return node

    def _portion(self, request: Request) -> int:
        return request.memory or round(float(request.fraction) * self.gpu_memory)

    def _open_devices(self, node: str, request: Request) -> list[str]:
        portion = self._portion(request)
        return [name for name, used in self.devices[node].items() if used + portion <= self.gpu_memory]

    def _fits(self, node: str, request: Request) -> bool:
        room = self.room[node]
        whole = request.gpus
        if request.shares:
            whole = max(0, request.devices - len(self._open_devices(node, request)))
        plain = {"gpus": whole, "cpu": request.cpu, "gigabytes": request.gigabytes, "pods": 2}
        wanted = plain | dict(request.named)
        return all(room.get(key, 0) >= amount for key, amount in wanted.items())

    def _book(self, node: str, request: Request, pod: Raw) -> None:
        room = self.room[node]
        taken = {"gpus": request.gpus, "cpu": request.cpu, "gigabytes": request.gigabytes, "pods": 1}
        for key, amount in (taken | dict(request.named)).items():
            room[key] -= amount
        if not request.shares:
            return
        chosen = self._open_devices(node, request)[: request.devices]
        while len(chosen) < request.devices:
            chosen.append(self._open_device(node))
        for device in chosen:
            self.devices[node][device] += self._portion(request)
        labels = pod["metadata"]["labels"]
        if request.devices == 1:
            labels["runai-gpu-group"] = chosen[0]
        else:
            labels |= {f"runai-gpu-group/{device}": device for device in chosen}
        pod["metadata"]["annotations"]["received-resource-type"] = "Fraction"

    def _open_device(self, node: str) -> str:
        """A whole GPU becomes one that is shared: a pod of the binder holds it."""
        name = f"{node}-g{len(self.devices[node])}-{self.random.getrandbits(24):06x}"
        self.devices[node][name] = 0
        self.room[node]["gpus"] -= 1
        self.room[node]["pods"] -= 1
        self.add(
            "v1",
            "Pod",
            f"reservation-{name}",
            namespace="kai-resource-reservation",
            metadata={"labels": {"app": "kai-resource-reservation", "runai-gpu-group": name}},
            spec={
                "schedulerName": "default-scheduler",
                "nodeName": node,
                "containers": [
                    {"name": "hold", "image": "x", "resources": {"requests": {"nvidia.com/gpu": "1"}}}
                ],
            },
            status={"phase": "Running"},
        )
        return name

    def nodes(self) -> list[Raw]:
        return [one for one in self.objects if one["kind"] == "Node"]

    def pods(self) -> list[Raw]:
        """Those of jobs."""
        return [
            one for one in self.objects if one["kind"] == "Pod" and one["metadata"]["namespace"] == NAMESPACE
        ]

    def waiting(self) -> list[Raw]:
        return [pod for pod in self.pods() if "nodeName" not in pod["spec"]]

    def running(self) -> list[Raw]:
        return [pod for pod in self.pods() if pod["status"]["phase"] == "Running"]

    def configuration(self) -> Raw:
        plugins = [
            {"name": name, **({"arguments": arguments} if arguments else {})}
            for name, arguments in self.plugins.items()
        ]
        return {"tiers": [{"plugins": plugins}], **self.conf}
