"""Feature gates, in Kubernetes' spelling: `--feature-gates=A=true,B=false`.

A gate that is switched off means here that kinds are not read: `unread_kinds` of `FeatureGates`. The others are
known by name, so that a mistyped one is found, and say why they change nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from maniple.framework.configuration.document import suggestion
from maniple.framework.configuration.scalars import parse_bool
from maniple.objects import core, dra
from maniple.objects.meta import Object
from maniple.objects.volcano import Numatopology

_DRA = (dra.ResourceClaim, dra.ResourceSlice, dra.DeviceClass)
# What is not read while the gate is off.
KINDS_OF_GATES: Mapping[str, tuple[type[Object], ...]] = {
    "PriorityClass": (core.PriorityClass,),
    "PodDisruptionBudgetsSupport": (core.PodDisruptionBudget,),
    "WorkLoadSupport": (core.ReplicationController, core.ReplicaSet, core.StatefulSet),
    "ResourceTopology": (Numatopology,),
    "DynamicResourceAllocation": _DRA,
}
_CONTROLLER = "it concerns Volcano's controllers"
_CLUSTER = "what the API server serves is used"
# Why a gate changes nothing, whatever it is set to.
GATES_WITHOUT_EFFECT: Mapping[str, str] = {
    "VolcanoJobSupport": _CONTROLLER,
    "QueueCommandSync": _CONTROLLER,
    "CronVolcanoJobSupport": _CONTROLLER,
    "SchedulingGatesQueueAdmission": "a pod behind Volcano's queue gate is always admitted by its queue",
    "CSIStorage": "--csi-storage says whether storage capacities are read",
    "DRAConsumableCapacity": _CLUSTER,
    "DRADeviceTaints": _CLUSTER,
    "DRAExtendedResource": _CLUSTER,
    "DRAPartitionableDevices": _CLUSTER,
    "DRAPrioritizedList": _CLUSTER,
    "DRAAdminAccess": _CLUSTER,
    "StorageCapacityScoring": "volumebinding.shape of the plugin predicates says how volumes are scored",
    "AllAlpha": _CLUSTER,
    "AllBeta": _CLUSTER,
}


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """The gates that were set, and what there is to say about them."""

    set: Mapping[str, bool] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def unread_kinds(self) -> frozenset[type[Object]]:
        off = [kinds for name, kinds in KINDS_OF_GATES.items() if not self.set.get(name, True)]
        return frozenset(kind for kinds in off for kind in kinds)


def parse_gates(text: str) -> FeatureGates:
    """The gates of a text; raises ValueError if it has another form. An unknown gate is a remark."""
    found: dict[str, bool] = {}
    remarks: list[str] = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, equals, value = part.partition("=")
        on = parse_bool(value.strip())
        if not equals or on is None:
            raise ValueError(f"must be a list such as A=true,B=false: {part[:60]!r}")
        found[name] = on
        if name in GATES_WITHOUT_EFFECT:
            remarks.append(f"--feature-gates: {name} has no effect here: {GATES_WITHOUT_EFFECT[name]}")
        elif name not in KINDS_OF_GATES:
            hint = suggestion(name, [*KINDS_OF_GATES, *GATES_WITHOUT_EFFECT])
            remarks.append(f"--feature-gates: {name} is unknown and has no effect here{hint}")
    return FeatureGates(found, tuple(remarks))
