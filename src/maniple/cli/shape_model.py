"""The model of a benchmark cluster, independent of a system's objects: nodes, queues, jobs.

Shared by `shapes`, which defines each cluster, and `shape_objects`, which writes it as the objects of a
dialect.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

Object = dict[str, Any]

# Running jobs were created from here on, one a second; pending ones after all of them.
FIRST_CREATED = 1_760_000_000
FIRST_PENDING = FIRST_CREATED + 100_000
GPU = "nvidia.com/gpu"
UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class NodeKind:
    """The capacity of a node: cores, MiB and GPUs, and the kind of GPU."""

    cores: int = 64
    memory: int = 262144
    gpus: int = 8
    model: str = ""

    @property
    def allocatable(self) -> dict[str, str]:
        """As Kubernetes writes it, without the number of pods."""
        found = {"cpu": str(self.cores), "memory": f"{self.memory}Mi"}
        return found | {GPU: str(self.gpus)} if self.gpus else found


@dataclass(frozen=True, slots=True)
class Job:
    """One gang, mostly of equal tasks, pending, or running on the given nodes."""

    name: str
    queue: str
    tasks: int
    minimum: int
    created: int
    priority: int = 50
    gpus: int = 1
    placed: tuple[str, ...] = ()
    # tasks that have to be in one rack (HyperNode of tier 1), the job below one spine; 0 for a plain gang
    sub_group: int = 0
    # where tasks differ, or request something else than GPUs: the requests of each, as Kubernetes writes them
    asks: tuple[Mapping[str, str], ...] = ()
    # further fields of its pods' specs; the pods then have labels: their job, and their number in it
    constraints: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    admitted: bool = False  # Volcano's action enqueue has nothing left to decide

    @property
    def requests(self) -> dict[str, int]:
        """Of one task: cores, MiB and GPUs."""
        return {"cpu": 4 * self.gpus, "memory": 16384 * self.gpus, GPU: self.gpus}


@dataclass(frozen=True, slots=True)
class Share:
    """The quota of a KAI queue, in devices, cores and MiB, and its weight for the rest."""

    gpus: int = 0
    cores: int = 0
    memory: int = 0
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Shape:
    """A cluster to plan: nodes, queues and jobs.

    Nodes have 64 cores, 256 GiB and 8 GPUs and queues equal weights, unless stated otherwise.
    """

    nodes: tuple[str, ...]
    queues: tuple[str, ...]
    jobs: tuple[Job, ...]
    # Volcano's actions and configuration, if not its default; those of the other profiles cover every shape
    actions: tuple[str, ...] | None = None
    conf: dict[str, Any] | None = None
    # nodes that are close together: HyperNodes of tier 1 below one of tier 2, or levels of a topology
    racks: tuple[tuple[str, ...], ...] = ()
    # of queues that are not equal; not part of the objects of the profile volcano
    shares: Mapping[str, Share] = field(default_factory=lambda: MappingProxyType({}))
    # by node, where they are not all alike
    kinds: Mapping[str, NodeKind] = field(default_factory=lambda: MappingProxyType({}))
    labels: Mapping[str, dict[str, str]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def tasks(self) -> int:
        return sum(job.tasks for job in self.jobs)
