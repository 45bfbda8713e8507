"""The kinds of `maniple.objects` as the API server knows them: group, versions, plural, path.

Every other module of this package names kinds by the rows of this table. `Kind` is a kind that can be read;
`Resource` is a kind in the version that a particular server serves (see `discovery`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from maniple.objects import core, dra, kai, lease, volcano
from maniple.objects.meta import Object
from maniple.objects.owners import OWNERS, owner_struct


@dataclass(frozen=True, slots=True)
class Resource:
    """Where the objects of a kind are: everything that a path needs."""

    group: str
    version: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, key: str = "", subresource: str = "") -> str:
        """The path of one object (`namespace/name`, or `name`), or of all objects everywhere."""
        if not key:
            return f"{self._root}/{self.plural}"
        namespace, _, name = key.rpartition("/")
        tail = f"/{subresource}" if subresource else ""
        return f"{self.path_in(namespace)}/{_quoted(name)}{tail}"

    def path_in(self, namespace: str) -> str:
        """The path of the objects in a namespace, or of all objects of a cluster-scoped kind."""
        if not self.namespaced:
            return self.path()
        return f"{self._root}/namespaces/{_quoted(namespace or 'default')}/{self.plural}"

    @property
    def _root(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


def _quoted(segment: str) -> str:
    """Names may contain a colon; any other special character must not change the path."""
    return quote(segment, safe=":")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind that can be read; `versions` are the supported ones, the best first."""

    struct: type[Object]
    plural: str
    versions: tuple[str, ...]
    # Volcano's PodGroup is the one kind whose status is not a subresource.
    status_subresource: bool = True

    @property
    def group(self) -> str:
        return self.struct.api_group

    @property
    def namespaced(self) -> bool:
        return self.struct.namespaced

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def at(self, version: str) -> Resource:
        return Resource(self.group, version, self.plural, self.namespaced)


_TABLE = (
    Kind(core.Pod, "pods", ("v1",)),
    Kind(core.Node, "nodes", ("v1",)),
    Kind(core.Namespace, "namespaces", ("v1",)),
    Kind(core.ConfigMap, "configmaps", ("v1",)),
    Kind(core.PriorityClass, "priorityclasses", ("v1",)),
    Kind(core.RuntimeClass, "runtimeclasses", ("v1",)),
    Kind(core.LimitRange, "limitranges", ("v1",)),
    Kind(core.PersistentVolumeClaim, "persistentvolumeclaims", ("v1",)),
    Kind(core.PersistentVolume, "persistentvolumes", ("v1",)),
    Kind(core.StorageClass, "storageclasses", ("v1",)),
    Kind(core.CSINode, "csinodes", ("v1",)),
    Kind(core.CSIDriver, "csidrivers", ("v1",)),
    Kind(core.CSIStorageCapacity, "csistoragecapacities", ("v1",)),
    Kind(core.ResourceQuota, "resourcequotas", ("v1",)),
    Kind(core.PodDisruptionBudget, "poddisruptionbudgets", ("v1",)),
    Kind(core.Service, "services", ("v1",)),
    Kind(core.ReplicationController, "replicationcontrollers", ("v1",)),
    Kind(core.ReplicaSet, "replicasets", ("v1",)),
    Kind(core.StatefulSet, "statefulsets", ("v1",)),
    Kind(dra.ResourceClaim, "resourceclaims", ("v1", "v1beta2", "v1beta1")),
    Kind(dra.ResourceClaimTemplate, "resourceclaimtemplates", ("v1", "v1beta2", "v1beta1")),
    Kind(dra.ResourceSlice, "resourceslices", ("v1", "v1beta2", "v1beta1")),
    Kind(dra.DeviceClass, "deviceclasses", ("v1", "v1beta2", "v1beta1")),
    Kind(volcano.VolcanoQueue, "queues", ("v1beta1",)),
    Kind(volcano.VolcanoPodGroup, "podgroups", ("v1beta1",), status_subresource=False),
    Kind(volcano.HyperNode, "hypernodes", ("v1alpha1",)),
    Kind(volcano.Numatopology, "numatopologies", ("v1alpha1",)),
    Kind(volcano.NodeShard, "nodeshards", ("v1alpha1",)),
    Kind(kai.KaiQueue, "queues", ("v2",)),
    Kind(kai.KaiPodGroup, "podgroups", ("v2alpha2",)),
    Kind(kai.BindRequest, "bindrequests", ("v1alpha2",)),
    Kind(kai.Topology, "topologies", ("v1alpha1",)),
    Kind(kai.SchedulingShard, "schedulingshards", ("v1",)),
    Kind(kai.KaiConfig, "configs", ("v1",)),
    Kind(lease.Lease, "leases", ("v1",)),
    *(Kind(struct, kind.plural, kind.versions) for struct, kind in OWNERS.items()),
)


class _Kinds(dict[type[Object], Kind]):
    """With the kinds of owners that a configuration describes."""

    def __missing__(self, struct: type[Object]) -> Kind:
        if struct not in OWNERS:
            raise KeyError(struct)
        kind = self[struct] = Kind(struct, OWNERS[struct].plural, OWNERS[struct].versions)
        return kind


KINDS = _Kinds({kind.struct: kind for kind in _TABLE})
_BY_NAME = {(kind.group, kind.struct.kind): kind for kind in _TABLE}


def resource_of(raw: Mapping[str, Any]) -> Resource:
    """The resource of an object as Kubernetes writes it; raises `ValueError` for an unsupported kind."""
    group, _, version = str(raw.get("apiVersion", "")).rpartition("/")
    kind = _BY_NAME.get((group, str(raw.get("kind"))))
    if kind is None and (struct := owner_struct(group, str(raw.get("kind")))) is not None:
        kind = KINDS[struct]
    if kind is None or not version:
        raise ValueError(f"unknown kind {raw.get('kind')} of {raw.get('apiVersion')}")
    return kind.at(version)


def resource_in(path: str) -> str:
    """The resource that a path is about, without the names of objects: `pods/binding`, say."""
    parts = path.split("/")  # "", "api", version, ... or "", "apis", group, version, ...
    rest = parts[4:] if parts[1] == "apis" else parts[3:]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    if not rest:
        return parts[1]
    return f"{rest[0]}/{rest[2]}" if len(rest) > 2 else rest[0]


# Kinds that are written but not read.
PODS = KINDS[core.Pod].at("v1")
EVENTS = Resource("events.k8s.io", "v1", "events", namespaced=True)
REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", namespaced=False)
DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
