"""KAI's snapshot file: a cluster as its scheduler saw it, with the scheduler's configuration and parameters.

`/get-snapshot` returns a zip that contains `snapshot.json`; the commands read it here, and the plugin
`snapshot` writes it from the same table. Objects are as the API server writes them, but without kind and
version, which their list implies. A snapshot contains neither past usage nor the time at which it was taken.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    "persistentVolumes": ("v1", "PersistentVolume"),
    "csiStorageCapacities": ("storage.k8s.io/v1", "CSIStorageCapacity"),
    "storageClasses": ("storage.k8s.io/v1", "StorageClass"),
    "csiDrivers": ("storage.k8s.io/v1", "CSIDriver"),
    "resourceClaims": ("resource.k8s.io/v1", "ResourceClaim"),
    "resourceSlices": ("resource.k8s.io/v1", "ResourceSlice"),
    "deviceClasses": ("resource.k8s.io/v1", "DeviceClass"),
    "topologies": ("kai.scheduler/v1alpha1", "Topology"),
}

# The parts of a snapshot; `discovery`, what the API server serves, is not needed to plan.
_PARTS = ("rawObjects", "config", "schedulerParams", "discovery")
# Where in the snapshot, and what is wrong there.
Finding = tuple[tuple[str | int, ...], str]

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
    """`configuration` and `parameters` are None if the file has none; `problems` lists what could not be used.

    `warnings` lists what another version of KAI may have added. `source` is the file's name.
    """

    objects: list[dict[str, Any]]
    configuration: dict[str, Any] | None = None
    parameters: dict[str, Any] | None = None
    problems: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    # the place of each object in the document
    places: list[tuple[str | int, ...]] = field(default_factory=list)
    source: str = "snapshot"


def is_snapshot(document: object) -> bool:
    return isinstance(document, Mapping) and "rawObjects" in document and "kind" not in document


def read_snapshot(document: Mapping[str, Any], source: str = "snapshot") -> KaiSnapshot:
    """The parts of a snapshot.json; an error costs only the list or the item concerned."""
    found = KaiSnapshot([], source=source)
    found.warnings.extend(
        ((name,), "unknown part of a snapshot, ignored") for name in document if name not in _PARTS
    )
    _read_objects(document["rawObjects"], found)
    configuration = _mapping(document, "config", found)
    if configuration is not None:
        # The source of past usage; a snapshot is planned without any, and without querying it.
        configuration.pop("usageDBConfig", None)
    parameters = _mapping(document, "schedulerParams", found)
    if parameters is not None:
        parameters = {**_OFF, **{name: value for name, value in parameters.items() if value is not None}}
    return replace(found, configuration=configuration, parameters=parameters)


def _read_objects(raw: object, found: KaiSnapshot) -> None:
    if not isinstance(raw, Mapping):
        found.problems.append((("rawObjects",), "must be a mapping of lists"))
        return
    for name, items in raw.items():
        place = ("rawObjects", name)
        if name not in LISTS:
            if items:
                found.warnings.append((place, f"unknown list of {_counted(items)}, ignored"))
        elif items is not None and not isinstance(items, list):
            found.problems.append((place, "must be a list"))
        else:
            _read_list(name, items or (), found)


def _read_list(name: str, items: Sequence[object], found: KaiSnapshot) -> None:
    api_version, kind = LISTS[name]
    implied = {"apiVersion": api_version, "kind": kind}
    for position, item in enumerate(items):
        place = ("rawObjects", name, position)
        if isinstance(item, dict):
            found.objects.append({**implied, **item})
            found.places.append(place)
        else:
            found.problems.append((place, f"expected an object ({kind})"))


def _counted(items: object) -> str:
    size = len(items) if isinstance(items, list) else 1
    return "1 object" if size == 1 else f"{size:,} objects"


def _mapping(document: Mapping[str, Any], name: str, found: KaiSnapshot) -> dict[str, Any] | None:
    value = document.get(name)
    if value is None:
        return None
    if not isinstance(value, Mapping):
        found.problems.append(((name,), "must be a mapping"))
        return None
    return dict(value)
