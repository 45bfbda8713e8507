"""KAI's snapshot file: a cluster as its scheduler saw it, with the scheduler's configuration and parameters.

`/get-snapshot` returns a zip that contains `snapshot.json`; the commands read it here, and the plugin
`snapshot` writes it from the same table. Objects are as the API server writes them, but without kind and
version, which their list implies. A snapshot contains neither past usage nor the time at which it was taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FILE_NAME = "snapshot.json"

# The lists of `rawObjects`, in the order in which KAI writes them, and the kinds in them.
LISTS: Mapping[str, tuple[str, str]] = {
    "pods": ("v1", "Pod"),
    "nodes": ("v1", "Node"),
    "queues": ("scheduling.run.ai/v2", "Queue"),
    "podGroups": ("scheduling.run.ai/v2alpha2", "PodGroup"),
    "bindRequests": ("scheduling.run.ai/v1alpha2", "BindRequest"),
    "priorityClasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "configMaps": ("v1", "ConfigMap"),
    "persistentVolumeClaims": ("v1", "PersistentVolumeClaim"),
    "csiStorageCapacities": ("storage.k8s.io/v1", "CSIStorageCapacity"),
    "storageClasses": ("storage.k8s.io/v1", "StorageClass"),
    "csiDrivers": ("storage.k8s.io/v1", "CSIDriver"),
    "resourceClaims": ("resource.k8s.io/v1", "ResourceClaim"),
    "resourceSlices": ("resource.k8s.io/v1", "ResourceSlice"),
    "deviceClasses": ("resource.k8s.io/v1", "DeviceClass"),
    "topologies": ("kai.scheduler/v1alpha1", "Topology"),
}

# KAI omits these from a snapshot when they are off or zero, which is not their default.
_OFF: Mapping[str, Any] = {
    "restrictSchedulingNodes": False,
    "maxNumberConsolidationPreemptees": 0,
    "scheduleCSIStorage": False,
    "useSchedulingSignatures": False,
    "fullHierarchyFairness": False,
    "allowConsolidatingReclaim": False,
    "globalDefaultStalenessGracePeriod": 0,
    "detailedFitErrors": False,
    "updatePodEvictionCondition": False,
    "partitionParams": {"NodePoolLabelKey": "", "NodePoolLabelValue": ""},
}


@dataclass(frozen=True, slots=True)
class KaiSnapshot:
    """`configuration` and `parameters` are None if the file has none; `problems` lists what could not be
    used."""

    objects: list[dict[str, Any]]
    configuration: dict[str, Any] | None = None
    parameters: dict[str, Any] | None = None
    problems: list[str] = field(default_factory=list)


def is_snapshot(document: object) -> bool:
    return isinstance(document, Mapping) and "rawObjects" in document and "kind" not in document


def read_snapshot(document: Mapping[str, Any]) -> KaiSnapshot:
    """The parts of a snapshot.json; an error costs only the list or the item concerned."""
    problems: list[str] = []
    objects = _objects(document["rawObjects"], problems)
    configuration = _mapping(document, "config", problems)
    if configuration is not None:
        # The source of past usage; a snapshot is planned without any, and without querying it.
        configuration.pop("usageDBConfig", None)
    parameters = _mapping(document, "schedulerParams", problems)
    if parameters is not None:
        parameters = {**_OFF, **{name: value for name, value in parameters.items() if value is not None}}
    return KaiSnapshot(objects, configuration, parameters, problems)


def _objects(raw: object, problems: list[str]) -> list[dict[str, Any]]:
    if not isinstance(raw, Mapping):
        problems.append("rawObjects: not a mapping of lists")
        return []
    found = []
    for name, items in raw.items():
        if name not in LISTS:
            continue  # a list of a later version
        if items is not None and not isinstance(items, list):
            problems.append(f"rawObjects.{name}: not a list")
        else:
            api_version, kind = LISTS[name]
            implied = {"apiVersion": api_version, "kind": kind}
            for position, item in enumerate(items or ()):
                if isinstance(item, dict):
                    found.append({**implied, **item})
                else:
                    problems.append(f"rawObjects.{name}[{position}]: not an object")
    return found


def _mapping(document: Mapping[str, Any], name: str, problems: list[str]) -> dict[str, Any] | None:
    value = document.get(name)
    if value is None:
        return None
    if not isinstance(value, Mapping):
        problems.append(f"{name}: not a mapping")
        return None
    return dict(value)
