"""What a plan says about pods, jobs, queues and nodes: plain records, by name, for comparing, pickling and JSON.

The first four are what people ask for. The others are what a running scheduler writes statuses and events from.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Amounts = dict[str, int | float]
# waiting: the job lacks pods of its minimum, or has pods without a node. starting: with all of its pods, as soon as
# others have left. evicted: it loses pods, or they move. placed: it got nodes in this cycle. idle: it needs no pods.
State = Literal["waiting", "starting", "evicted", "placed", "running", "completed", "idle"]


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    status: str
    node: str | None = None
    gpu_groups: tuple[str, ...] = ()
    reason: str = ""
    job: str | None = None


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """`state` is one word for all of it, see `State`; the four numbers are of pods."""

    phase: str
    conditions: list[dict[str, Any]]
    reasons: list[str]
    queue: str
    ready: int
    minimum: int
    total: int
    state: State = "waiting"
    placed: int = 0  # bound in this cycle, or as soon as their volumes are
    starting: int = 0  # on a node as soon as others have left it
    waiting: int = 0
    evicted: int = 0


@dataclass(frozen=True, slots=True)
class QueueOutcome:
    """Cpu in milli, memory in bytes, everything else in whole units.

    Where jobs are served by a queue tree, a queue has what those below it have, `deserved` is the fair share,
    `capability` the limit and `quota` the guaranteed amount; a resource missing from the latter two is
    unlimited. `usage` is past usage, as a fraction of the cluster's capacity.
    """

    deserved: Amounts
    allocated: Amounts
    capability: Amounts
    weight: int
    share: float
    jobs: int
    quota: Amounts | None = None
    parent: str = ""
    usage: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    idle: Amounts
    releasing: Amounts
    used: Amounts
    allocatable: Amounts


# -- what statuses and events are written from -------------------------------------------------------------------------


# Stands for a job that may not be named.
OTHERS = "a job of another namespace"


@dataclass(frozen=True, slots=True)
class Eviction:
    """One evicted pod: which action evicts it, for which job (`actor`) and pods, and by which rule.

    `text` is the message in the words of the profile, `why` the same in plain words. What is not known is empty.
    """

    pod: str
    job: str  # empty for a pod that belongs to no job
    text: str
    action: str = ""
    actor: str = ""
    together: int = 1  # how many pods of its job the cycle evicts
    node: str = ""  # that it leaves
    moves_to: str = ""  # the node that is kept for it
    pods: tuple[str, ...] = ()  # of the actor, that get its node
    allowed_by: tuple[str, ...] = ()  # the plugins that could have protected it
    why: str = ""

    @property
    def sentence(self) -> str:
        return f"Pod {self.pod} {self.why}" if self.actor else f"Pod {self.pod} is evicted: {self.why}"


@dataclass(frozen=True, slots=True)
class Starting:
    """A pod that starts on a node as soon as others have left it. `after`: these others."""

    job: str
    node: str
    after: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class PodSetOutcome:
    """One part of a gang. Of its pods, so many are there, behind a scheduling gate, and on nodes or about to be."""

    name: str
    minimum: int
    there: int
    gated: int
    used: int

    @property
    def ready(self) -> bool:
        """Enough of its pods could be placed."""
        return self.there - self.gated >= self.minimum

    @property
    def satisfied(self) -> bool:
        return self.used >= self.minimum


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """What the status of one pod group is written from. `served`: its queue exists, so that the cycle looked at it.

    `conditions` are those that plugins state, `refusals` the causes of the job as a whole, `over` the capacity answer
    of the queue that is in its way, as `reason`, `message` and `details`. Parts of gangs are counted where jobs are
    served by them.
    """

    key: str
    api_group: str
    queue: str
    served: bool
    phase: str
    counts: dict[str, int]  # tasks by status; a status that no task has is left out
    conditions: list[dict[str, str]] = field(default_factory=list)
    queue_problem: str = ""
    not_ready: str = ""  # which pods it still needs before it can be tried
    refusals: list[str] = field(default_factory=list)
    over: dict[str, Any] | None = None
    pod_sets: tuple[PodSetOutcome, ...] = ()
    gated: tuple[str, ...] = ()  # its pods that wait behind a scheduling gate
    stale_since: datetime | None = None  # when its gang broke, as of the end of the cycle
    of_others: bool = False  # it has pods, and all of them name other schedulers
    held_back: bool = False  # it is not served at all, as its only refusal says

    def count(self, *statuses: str) -> int:
        return sum(self.counts.get(status, 0) for status in statuses)

    @property
    def satisfied(self) -> bool:
        """Every part of the gang has its minimum."""
        return all(one.satisfied for one in self.pod_sets)


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """A pod of a job that is on no node yet. Pods that wait for the same thing share one record.

    `own`: the reason is the pod's own, not its job's. `fits`: it had a place, which it does not get because others of
    its gang have none. `node`: where it claims what is being released. `held_back`: its job is not served at all.
    """

    job: str
    reason: str = ""
    own: bool = False
    fits: bool = False
    gated: bool = False
    node: str = ""
    held_back: bool = False


@dataclass(frozen=True, slots=True)
class QueueHolding:
    """What the jobs of one queue hold, without those of queues below it, in base units (see `ResourceSpace`).

    `fixed` is what of it non-preemptible jobs hold, `requested` what jobs hold and wait for, `jobs` how many have not
    ended.
    """

    parent: str
    amounts: dict[str, int]
    shared: bool = False  # with pods of other schedulers, whose amounts are not among these
    fixed: dict[str, int] = field(default_factory=dict)
    requested: dict[str, int] = field(default_factory=dict)
    jobs: int = 0


@dataclass(frozen=True, slots=True)
class QueueAccount:
    """A queue with those below it: milli-cpu, bytes of memory and GPUs. `used` is as of the opening of the cycle.

    None has no end. `parent` is the queue above that shares are divided among, if there is one.
    """

    parent: str
    used: tuple[float, float, float]
    quota: tuple[float | None, float | None, float | None]
    fair_share: tuple[float | None, float | None, float | None]
    priority: int


@dataclass(frozen=True, slots=True)
class GpuShare:
    """Parts of GPUs that a placed pod gets: of how many devices, what part of each, and under which names."""

    devices: int
    portion: float
    groups: tuple[str, ...]
