"""The objects of a cluster as input of `plan` and `replay`: lists of the kinds that the profile needs.

What cannot be listed is told with what it costs, and skipped; without nodes and pods there is no plan.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maniple.cli import InputError
from maniple.cli.echo import echo
from maniple.cli.lines import Origin, Source

if TYPE_CHECKING:
    from maniple.kube.configuration import Configuration
    from maniple.kube.reading import ClusterObjects
    from maniple.objects.meta import Object

# What a plan lacks without a kind, by its name. Any other kind is simply not there.
_COSTS = {
    "PriorityClass": "priorities of new pods and of groups are those in their specs",
    "Namespace": "selectors of namespaces match none, and rules in annotations of namespaces do not count",
    "ResourceQuota": "resource quotas are not checked",
    "PersistentVolumeClaim": "pods with volumes are pending",
    "PersistentVolume": "claims can only get new volumes",
    "StorageClass": "unbound claims get no volume",
    "ConfigMap": "pods that need a config map are pending, if the configuration checks that",
    "CSINode": "limits on attached volumes are not checked",
    "CSIDriver": "storage capacity is not checked",
    "CSIStorageCapacity": "storage capacity is not checked",
    "Service": "pods are not spread by their services",
    "ReplicationController": "pods are not spread by their controllers",
    "ReplicaSet": "pods are not spread by their controllers",
    "StatefulSet": "pods are not spread by their controllers",
    "ResourceClaim": "pods with resource claims are pending",
    "ResourceSlice": "pods with resource claims are pending",
    "DeviceClass": "pods with resource claims are pending",
    "ResourceClaimTemplate": "new pods with claim templates are pending",
    "RuntimeClass": "overhead and node selectors of runtime classes are not added to new pods",
    "LimitRange": "default requests are not added to new pods",
    "Queue": "jobs that name a queue are pending",
    "PodGroup": "there are no gangs",
    "HyperNode": "there is no network topology",
    "Topology": "topology constraints cannot be met",
    "BindRequest": "decisions that the binder has not carried out are not seen",
}
_NEEDED = ("Node", "Pod")
ATTEMPTS = 3  # a person waits for the response


@dataclass(slots=True)
class ClusterInput:
    """A cluster to read, and what has been read of it."""

    configuration: "Configuration"
    objects: list[dict[str, Any]] = field(default_factory=list)
    _read: set[type["Object"]] = field(default_factory=set)
    _absent: list[type["Object"]] = field(default_factory=list)
    _refused: dict[type["Object"], str] = field(default_factory=dict)

    @property
    def origin(self) -> Origin:
        """Where its objects come from, for messages."""
        return Origin(Source(self.configuration.server, "json", _no_text), ())

    def read(self, kinds: Iterable[type["Object"]]) -> list[dict[str, Any]]:
        """List the kinds that were not listed before; returns the new objects."""
        wanted = [kind for kind in dict.fromkeys(kinds) if kind not in self._read]
        if not wanted:
            return []
        self._read.update(wanted)
        found = asyncio.run(_fetch(self.configuration, wanted))
        self._absent += found.absent
        self._refused |= {kind: error.message for kind, error in found.refused.items()}
        self.objects += found.objects
        return found.objects

    def tell(self, kinds: Iterable[type["Object"]]) -> None:
        """Say which of these kinds could not be listed, and what that costs."""
        from maniple.kube.kinds import KINDS

        wanted = dict.fromkeys(kinds)
        for kind in wanted:
            if kind.kind in _NEEDED and (kind in self._refused or kind in self._absent):
                why = self._refused.get(kind, "not served")
                raise InputError(
                    f"{self.configuration.server}: {KINDS[kind]}: {why}; there is no plan without"
                )
        for kind in wanted:
            if kind in self._refused:
                message = f"warning: {KINDS[kind]}: {self._refused[kind]}; skipped: {_cost(kind)}"
                echo(message, err=True)
        missing = [kind for kind in wanted if kind in self._absent and not _is_owner(kind)]
        absent = [f"{KINDS[kind]} ({_cost(kind)})" for kind in missing]
        if absent:
            echo(f"note: not served by this cluster, skipped: {', '.join(absent)}", err=True)


def _is_owner(kind: type["Object"]) -> bool:
    """Whether it is a kind of which few clusters have many: no loss where it is absent."""
    from maniple.objects.owners import OWNERS

    return kind in OWNERS


def _no_text() -> bytes:
    raise OSError("objects of a cluster have no lines")


def _cost(kind: type["Object"]) -> str:
    if _is_owner(kind):
        return "its pods are planned one by one unless they have a group"
    return _COSTS.get(kind.kind, f"no {kind.kind} is seen")


def open_cluster(kubeconfig: Path | None, context: str) -> ClusterInput:
    from maniple.kube.configuration import load_configuration
    from maniple.kube.errors import KubeconfigError

    try:
        return ClusterInput(load_configuration(kubeconfig, context))
    except KubeconfigError as error:
        raise InputError(str(error)) from None


async def _fetch(configuration: "Configuration", kinds: list[type["Object"]]) -> "ClusterObjects":
    from maniple.kube.client import Client
    from maniple.kube.errors import ApiError
    from maniple.kube.reading import read_cluster

    async with Client(configuration, attempts=ATTEMPTS) as client:
        try:
            return await read_cluster(client, kinds)
        except ApiError as error:
            raise InputError(f"{configuration.server}: {error}") from None


# -- which kinds -----------------------------------------------------------------------------------------------------


def first_kinds(profile: str | None, *, shard: bool, new_objects: bool) -> list[type["Object"]]:
    """What to list before the configuration is known: the kinds of a profile, or of all of them.

    `new_objects`: files add objects that have never been in a cluster, and admission reads further kinds.
    """
    from maniple.live import kai, volcano
    from maniple.objects.core import LimitRange, RuntimeClass
    from maniple.objects.dra import ResourceClaimTemplate
    from maniple.objects.kai import KaiConfig, SchedulingShard
    from maniple.objects.owners import owner_kinds
    from maniple.workloads.kinds import TABLE

    kinds: list[type[Object]] = []
    kinds += volcano.KINDS if profile != "kai" else ()
    kinds += kai.KINDS if profile != "volcano" else ()
    kinds += owner_kinds(TABLE)
    kinds += (SchedulingShard, KaiConfig) if shard else ()
    kinds += (RuntimeClass, LimitRange, ResourceClaimTemplate) if new_objects else ()
    return list(dict.fromkeys(kinds))
