"""Whether an object of the right shape is also valid; `load` checks every object.

Later code relies on what passes here: names that make keys, quantities that parse, selectors that can be
matched.
"""

from collections.abc import Callable
from typing import Any

from maniple.objects import core, core_checks, custom_checks, dra, kai, volcano
from maniple.objects.checks import FieldError, require_word
from maniple.objects.meta import Object


def check(thing: Object) -> None:
    """Raise `FieldError` for the first thing that is wrong with an object."""
    _check_name(thing)
    checker = _CHECKERS.get(type(thing))
    if checker is not None:
        checker(thing)


def _check_name(thing: Object) -> None:
    metadata = thing.metadata
    name = metadata.name
    if not name:
        raise FieldError("metadata.name", "must not be empty")
    require_word("metadata.name", name)
    if thing.namespaced:
        # Keys are "namespace/name": a slash inside either would make two objects look like one.
        if "/" in name:
            raise FieldError("metadata.name", f"must not contain a slash: {name!r}")
        if metadata.namespace:
            require_word("metadata.namespace", metadata.namespace)
            if "/" in metadata.namespace:
                raise FieldError("metadata.namespace", f"must not contain a slash: {metadata.namespace!r}")


# Each function is looked up by the exact type that it takes.
_CHECKERS: dict[type[Object], Callable[[Any], None]] = {
    core.Pod: core_checks.check_pod,
    core.Node: core_checks.check_node,
    core.PersistentVolumeClaim: core_checks.check_claim,
    core.PersistentVolume: core_checks.check_persistent_volume,
    core.StorageClass: core_checks.check_storage_class,
    core.CSIStorageCapacity: core_checks.check_storage_capacity,
    core.RuntimeClass: core_checks.check_runtime_class,
    core.LimitRange: core_checks.check_limit_range,
    core.ResourceQuota: core_checks.check_quota,
    core.PodDisruptionBudget: core_checks.check_budget,
    core.ReplicaSet: core_checks.check_workload,
    core.StatefulSet: core_checks.check_workload,
    volcano.VolcanoQueue: custom_checks.check_volcano_queue,
    volcano.VolcanoPodGroup: custom_checks.check_volcano_pod_group,
    volcano.HyperNode: custom_checks.check_hyper_node,
    volcano.Numatopology: custom_checks.check_numa_topology,
    kai.KaiQueue: custom_checks.check_kai_queue,
    kai.KaiPodGroup: custom_checks.check_kai_pod_group,
    kai.BindRequest: custom_checks.check_bind_request,
    dra.ResourceClaim: custom_checks.check_resource_claim,
    dra.ResourceSlice: custom_checks.check_resource_slice,
}
