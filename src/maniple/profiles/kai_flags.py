"""The flags of KAI's scheduler, as data: spelling, type, and effect here.

Read by `options` (what `plan(options=...)` takes), by `shards` (a SchedulingShard's `args`) and by the
commands, which offer them as flags of their own. A flag with an `option` changes decisions; the others
control KAI's own process and are accepted so that scripts work, with `instead` as the message about them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from maniple.framework.configuration.durations import long_nanoseconds
from maniple.framework.configuration.scalars import parse_bool

Form = Literal["text", "switch", "number", "duration"]


@dataclass(frozen=True, slots=True)
class Flag:
    """`default` is KAI's.

    `spellings` are further names of the option: the flag's own, and that of KAI's snapshots.
    """

    name: str
    form: Form
    default: str | int | bool
    about: str
    option: str = ""
    spellings: tuple[str, ...] = ()
    instead: str = ""

    def problem_with(self, value: Any) -> str:
        """What is wrong with a value; empty if nothing."""
        match self.form:
            case "text":
                return "" if isinstance(value, str) else "must be a string"
            case "switch":
                return "" if isinstance(value, bool) else "must be true or false"
            case "number":
                right = isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31
                return "" if right else "must be a whole number"
        try:
            long_nanoseconds(duration_text(value))
        except (TypeError, ValueError):
            return 'must be a duration such as "60s", or a number of nanoseconds'
        return ""

    def read(self, text: str) -> str | int | bool:
        """The value of a command-line text; raises ValueError."""
        value: str | int | bool | None = text
        if self.form == "switch":
            value = parse_bool(text)
        elif self.form == "number":
            value = int(text) if text.lstrip("+-").isdecimal() and len(text) < 12 else None
        problem = self.problem_with(value)
        if problem:
            raise ValueError(f"{problem}: {text[:60]!r}")
        assert value is not None
        return value


def duration_text(value: Any) -> str:
    """A duration as text; KAI's snapshots write nanoseconds."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value}ns"
    if isinstance(value, str):
        return value
    raise TypeError(f"not a duration: {value!r}")


_PROCESS = "it concerns KAI's own process"
_WRITES = "a plan writes nothing"
_LEASE = "a plan needs no lease"
_RUNNING = "it concerns a running scheduler"
_READ_ONLY = "plans are made without an election"

KAI_FLAGS: tuple[Flag, ...] = (
    Flag(
        "scheduler-name",
        "text",
        "kai-scheduler",
        "Schedule pods with this schedulerName; resources of other pods are not divided.",
        option="schedulerName",
    ),
    Flag(
        "resource-reservation-app-label",
        "text",
        "kai-resource-reservation",
        "The label app of pods that hold a shared GPU.",
        option="resourceReservationAppLabel",
    ),
    Flag(
        "restrict-node-scheduling",
        "switch",
        False,
        "Only nodes that are labelled as workers, GPU tasks on GPU workers.",
        option="restrictNodeScheduling",
        spellings=("restrictSchedulingNodes",),
    ),
    Flag(
        "nodepool-label-key",
        "text",
        "kai.scheduler/node-pool",
        "The label that says which shard a node, queue or group is in.",
        option="nodePoolLabelKey",
        spellings=("nodepoolLabelKey",),
    ),
    Flag(
        "partition-label-value",
        "text",
        "",
        "The shard to schedule; without it everything that has no such label.",
        option="nodePoolLabelValue",
        spellings=("partitionLabelValue",),
    ),
    Flag(
        "queue-label-key",
        "text",
        "kai.scheduler/queue",
        "The label in which pods and shared resource claims name their queue.",
        option="queueLabelKey",
    ),
    Flag(
        "max-consolidation-preemptees",
        "number",
        16,
        "Jobs that may be moved for another; 0 moves none, -1 any number.",
        option="maxConsolidationPreemptees",
        spellings=("maxNumberConsolidationPreemptees",),
    ),
    Flag(
        "detailed-fit-errors",
        "switch",
        False,
        "Name every node in the reasons, instead of counting them.",
        option="detailedFitErrors",
    ),
    Flag(
        "update-pod-eviction-condition",
        "switch",
        False,
        "Write DisruptionTarget on pods before they are evicted.",
        option="updatePodEvictionCondition",
    ),
    Flag(
        "schedule-csi-storage",
        "switch",
        False,
        "Count the capacity of CSI storage.",
        option="scheduleCSIStorage",
        spellings=("scheduleCsiStorage",),
    ),
    Flag(
        "use-scheduling-signatures",
        "switch",
        True,
        "Pass over jobs that are no easier than one that failed.",
        option="useSchedulingSignatures",
    ),
    Flag(
        "full-hierarchy-fairness",
        "switch",
        True,
        "Divide among all levels of queues; else the top level is left out.",
        option="fullHierarchyFairness",
    ),
    Flag(
        "allow-consolidating-reclaim",
        "switch",
        True,
        "Victims that find another place do not count as reclaimed.",
        option="allowConsolidatingReclaim",
    ),
    Flag(
        "default-staleness-grace-period",
        "duration",
        "60s",
        "How long a stale gang may run; negative: forever.",
        option="stalenessGracePeriod",
        spellings=("defaultStalenessGracePeriod", "globalDefaultStalenessGracePeriod"),
    ),
    Flag(
        "cpu-worker-node-label-key",
        "text",
        "node-role.kubernetes.io/cpu-worker",
        "The label of nodes for tasks without GPUs.",
        option="cpuWorkerNodeLabelKey",
    ),
    Flag(
        "gpu-worker-node-label-key",
        "text",
        "node-role.kubernetes.io/gpu-worker",
        "The label of nodes for tasks with GPUs.",
        option="gpuWorkerNodeLabelKey",
    ),
    Flag(
        "mig-worker-node-label-key",
        "text",
        "node-role.kubernetes.io/mig-enabled",
        "The label of nodes with divided GPUs.",
        option="migWorkerNodeLabelKey",
    ),
    Flag(
        "schedule-period",
        "duration",
        "1s",
        "The pause between cycles.",
        spellings=("schedulePeriod",),
        instead="a cycle begins when something has changed",
    ),
    Flag(
        "num-of-status-recording-workers",
        "number",
        5,
        "Writers of statuses.",
        spellings=("numOfStatusRecordingWorkers",),
        instead=_WRITES,
    ),
    Flag("qps", "number", 50, "Requests a second.", instead=_WRITES),
    Flag("burst", "number", 300, "Requests at once.", instead=_WRITES),
    Flag("namespace", "text", "kai-scheduler", "Of lease and events.", instead=_LEASE),
    Flag(
        "leader-elect",
        "switch",
        False,
        "Only the leader schedules.",
        instead=_READ_ONLY,
    ),
    Flag("metrics-namespace", "text", "kai", "Prefix of metrics.", instead=_RUNNING),
    Flag("listen-address", "text", ":8080", "Where metrics are.", instead=_RUNNING),
    Flag("plugin-server-port", "number", 8081, "Where plugins answer.", instead=_RUNNING),
    Flag("enable-profiler", "switch", False, "Go's profiler.", instead=_PROCESS),
    Flag("profiler-port", "text", "8182", "Where it answers.", instead=_PROCESS),
    Flag("pyroscope-address", "text", "", "A profiling service.", instead=_PROCESS),
    Flag("pyroscope-mutex-profiler-rate", "number", 5, "Of that service.", instead=_PROCESS),
    Flag("pyroscope-block-profiler-rate", "number", 5, "Of that service.", instead=_PROCESS),
    Flag("log-flush-frequency", "duration", "5s", "Of the log.", instead=_PROCESS),
    Flag("log-json", "switch", False, "Log as JSON.", instead=_PROCESS),
    Flag(
        "stuck-in-releasing-threshold",
        "duration",
        "2m",
        "When a pod that does not end is stuck.",
        spellings=("stuckInReleasingThreshold",),
        instead="a pod that is being deleted counts as leaving until it is gone",
    ),
    Flag("v", "number", 3, "Verbosity of the log.", instead=_PROCESS),
    Flag("feature-gates", "text", "", "Of Kubernetes.", instead="what the cluster serves is used"),
)

BY_NAME: Mapping[str, Flag] = MappingProxyType({flag.name: flag for flag in KAI_FLAGS})
DECIDING: tuple[Flag, ...] = tuple(flag for flag in KAI_FLAGS if flag.option)
