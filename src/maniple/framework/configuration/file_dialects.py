"""How each system spells its configuration file, and what it runs without one, as data.

Read by `configuration.py`. A dialect of files says which keys and switches there are and what the built-in
default is; nothing is read here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# The spelling with and without "d" is Volcano's and has to be matched as it is.
VOLCANO_SWITCHES: tuple[str, ...] = (
    "enableJobOrder",
    "enableHierarchy",
    "enableJobReady",
    "enableJobPipelined",
    "enableTaskOrder",
    "enablePreemptable",
    "enableReclaimable",
    "enablePreemptive",
    "enableQueueOrder",
    "enabledClusterOrder",
    "enablePredicate",
    "enableBestNode",
    "enableNodeOrder",
    "enableTargetJob",
    "enableReservedNodes",
    "enableJobEnqueued",
    "enabledVictim",
    "enableJobStarving",
    "enabledOverused",
    "enabledAllocatable",
    "enabledHyperNodeOrder",
    "enabledSubJobReady",
    "enabledSubJobPipelined",
    "enabledSubJobOrder",
    "enabledHyperNodeGradient",
)
# KAI reads these and then never looks at them; a plugin is switched off by leaving it out.
KAI_SWITCHES: tuple[str, ...] = (
    "disableJobOrder",
    "disableTaskOrder",
    "disablePreemptable",
    "disableReclaimable",
    "disableQueueOrder",
    "disablePredicate",
    "disableNodeOrder",
)
OFF_UNLESS_SET = frozenset({"enableHierarchy", "enabledClusterOrder", *KAI_SWITCHES})


@dataclass(frozen=True, slots=True)
class PluginOption:
    """One plugin entry of a tier. `switches` go by their spelling in the file."""

    name: str
    switches: Mapping[str, bool] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    line: int | None = None

    def enabled(self, switch: str) -> bool:
        """Whether a switch is on; one that is not set has its system's default."""
        if switch not in VOLCANO_SWITCHES and switch not in KAI_SWITCHES:
            raise KeyError(switch)
        return self.switches.get(switch, switch not in OFF_UNLESS_SET)


@dataclass(frozen=True, slots=True)
class FileDialect:
    """How one system spells its file, and what it runs without one."""

    system: str
    keys: tuple[str, ...]
    switches: tuple[str, ...]
    map_keys: tuple[str, ...]
    actions: tuple[str, ...]
    plugins: tuple[tuple[str, ...], ...]
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # KAI's file passes through JSON: keys match in any case, and arguments are text.
    any_case: bool = False
    text_arguments: bool = False

    def default_tiers(self) -> tuple[tuple[PluginOption, ...], ...]:
        return tuple(
            tuple(PluginOption(name, self.filled({}), dict(self.arguments.get(name, {}))) for name in tier)
            for tier in self.plugins
        )

    def filled(self, given: Mapping[str, bool]) -> dict[str, bool]:
        """The switches of one entry with the defaults of those that it leaves out."""
        if self.switches is not VOLCANO_SWITCHES:
            return dict(given)
        return {switch: given.get(switch, switch not in OFF_UNLESS_SET) for switch in VOLCANO_SWITCHES}


VOLCANO = FileDialect(
    system="Volcano",
    keys=("actions", "tiers", "configurations", "metrics", "compat", "policy", "workloads"),
    switches=VOLCANO_SWITCHES,
    map_keys=("volcano-scheduler.conf", ".conf"),
    actions=("enqueue", "allocate", "backfill"),
    plugins=(
        ("priority", "gang", "conformance"),
        ("overcommit", "drf", "predicates", "proportion", "nodeorder"),
    ),
)
KAI = FileDialect(
    system="KAI",
    keys=("actions", "tiers", "queueDepthPerAction", "usageDBConfig", "compat", "policy", "workloads"),
    switches=KAI_SWITCHES,
    map_keys=("config.yaml",),
    actions=("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"),
    plugins=(
        (
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
            "snapshot",
        ),
    ),
    arguments={"nodeplacement": {"cpu": "binpack", "gpu": "binpack"}},
    any_case=True,
    text_arguments=True,
)
# Volcano's scores: those for preferences stated in the pod first, then packed GPUs, then everything else.
_WISHES = ("nodeaffinity", "podaffinity", "podtopologyspread")
MANIPLE = FileDialect(
    system="Maniple",
    keys=(
        "actions",
        "tiers",
        "configurations",
        "queueDepthPerAction",
        "usageDBConfig",
        "policy",
        "workloads",
    ),
    switches=VOLCANO_SWITCHES,
    map_keys=("maniple.conf", ".conf", ".yaml"),
    actions=("allocate", "backfill", "consolidation", "reclaim", "preempt", "stalegangeviction"),
    plugins=(
        (
            "priority",
            "elastic",
            "kubeflow",
            "ray",
            "taskorder",
            "subgrouporder",
            "conformance",
            "pdb",
            "minruntime",
        ),
        ("fairness",),
        ("predicates", "dynamicresources", "hypernodes", "topology"),
        ("nodeorder", "binpack", "nodeplacement", "gpusharingorder", "gpupack", "nominatednode"),
    ),
    arguments={
        "nodeorder": {f"{wish}.weight": 200 for wish in _WISHES} | {"tainttoleration.weight": 300},
        "binpack": {
            "binpack.weight": 30,
            "binpack.cpu": 0,
            "binpack.memory": 0,
            "binpack.resources": "nvidia.com/gpu",
        },
        "nodeplacement": {"gpu": "binpack", "cpu": "spread"},
    },
)

__all__ = [
    "KAI",
    "KAI_SWITCHES",
    "MANIPLE",
    "OFF_UNLESS_SET",
    "VOLCANO",
    "VOLCANO_SWITCHES",
    "FileDialect",
    "PluginOption",
]
