"""A plan made by hand, for tests of what is printed about one. It has the attributes of the planner's own."""

from dataclasses import dataclass, field
from typing import Any

from maniple.framework.plans.outcome import Eviction, Starting


@dataclass
class Task:
    status: str
    node: str | None = None
    gpu_groups: tuple[str, ...] = ()
    reason: str = ""
    job: str | None = None


@dataclass
class Job:
    phase: str = "Inqueue"
    conditions: list[dict[str, Any]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    queue: str = "research"
    ready: int = 0
    minimum: int = 1
    total: int = 1
    state: str = "waiting"
    placed: int = 0
    starting: int = 0
    waiting: int = 0
    evicted: int = 0


@dataclass
class Queue:
    deserved: dict[str, float]
    allocated: dict[str, float]
    capability: dict[str, float] = field(default_factory=dict)
    weight: int = 1
    share: float = 0.0
    jobs: int = 1
    quota: dict[str, float] | None = None
    parent: str = ""
    usage: dict[str, float] = field(default_factory=dict)


@dataclass
class Node:
    used: dict[str, int]
    allocatable: dict[str, int]
    idle: dict[str, int] = field(default_factory=dict)
    releasing: dict[str, int] = field(default_factory=dict)


@dataclass
class FakePlan:
    binds: dict[str, str] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)
    pipelined: dict[str, str] = field(default_factory=dict)
    starting: dict[str, Starting] = field(default_factory=dict)
    evicted: tuple[Eviction, ...] = ()
    tasks: dict[str, Task] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    problems: list[Any] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def evictions(self) -> list[str]:
        return [one.pod for one in self.evicted]


GIB = 1024**3
TOO_FEW_GPUS = "0/2 nodes: 2 Insufficient nvidia.com/gpu"


def make_plan(**parts: Any) -> Any:
    """A plan with these parts and nothing else; of any type, so that it can stand where the planner's own would."""
    return FakePlan(**parts)


def gang_plan() -> tuple[Any, dict[str, str]]:
    """Eight tasks of one gang on two nodes, one job that waits, and the job of each task."""
    binds = {f"ml/train-{index}": f"node-{index % 2}" for index in range(8)}
    room = {"cpu": 64_000, "memory": 256 * GIB, "nvidia.com/gpu": 8}
    plan = make_plan(
        binds=binds,
        tasks={task: Task("Binding", node, job="ml/train") for task, node in binds.items()}
        | {f"ml/big-{index}": Task("Pending", reason=TOO_FEW_GPUS, job="ml/big") for index in range(2)},
        jobs={
            "ml/train": Job(ready=8, minimum=8, total=8, state="placed", placed=8),
            "ml/big": Job(phase="Pending", reasons=[TOO_FEW_GPUS], minimum=2, total=2, waiting=2),
        },
        queues={"research": Queue({"cpu": 64_000.0}, {"cpu": 32_000.0}, share=0.5)},
        nodes={
            "node-0": Node({"cpu": 16_000, "memory": 64 * GIB, "nvidia.com/gpu": 4}, room),
            "node-1": Node({"cpu": 16_000, "memory": 64 * GIB, "nvidia.com/gpu": 8}, room),
        },
    )
    jobs_of = dict.fromkeys(binds, "ml/train") | {"ml/big-0": "ml/big", "ml/big-1": "ml/big"}
    return plan, jobs_of
