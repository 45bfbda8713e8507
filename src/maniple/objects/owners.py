"""Owners of pods as typed objects: a struct for each kind of `workloads/`, with a spec that only `workloads/` reads.

So owners are listed, watched, stored, journaled and replayed like any other object, and nothing else has to know their
fields. What is wrong in a spec is found where it is read, and named there. Kinds that scheduling reads for other
reasons have their structs in `core`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import msgspec

from maniple.objects.core import ReplicaSet, ReplicationController, StatefulSet
from maniple.objects.meta import Object, OwnerReference
from maniple.workloads.kind import Kind
from maniple.workloads.kinds import KINDS, Table
from maniple.workloads.model import Raw

_IN_CORE: tuple[type[Object], ...] = (ReplicaSet, ReplicationController, StatefulSet)
_PODS = ("", "Pod")  # which may own others, too


class WorkloadOwner(Object, frozen=True, kw_only=True):
    """An object that pods belong to."""

    api_version: ClassVar[str] = ""
    spec: Any = msgspec.field(default_factory=dict)
    status: Any = msgspec.field(default_factory=dict)


def _struct(kind: Kind) -> type[WorkloadOwner]:
    own = {
        "api_group": kind.api_group,
        "kind": kind.name,
        "api_version": f"{kind.api_group}/{kind.versions[0]}".removeprefix("/"),
        "__doc__": f"{kind.name} of {kind.api_group or 'v1'}.",
    }
    made = msgspec.defstruct(
        kind.name,
        [],
        bases=(WorkloadOwner,),
        namespace=own,
        module=__name__,
        frozen=True,
        kw_only=True,
        gc=False,
    )
    assert issubclass(made, WorkloadOwner)
    return made


_CORE_NAMES = {(one.api_group, one.kind): one for one in _IN_CORE}
# The kinds that have no struct elsewhere, and all.
OWNERS: dict[type[Object], Kind] = {
    _struct(kind): kind for kind in KINDS if kind.key not in _CORE_NAMES and kind.key != _PODS
}
OWNER_KINDS: tuple[type[Object], ...] = tuple(OWNERS)
_BY_NAME: dict[tuple[str, str], type[Object]] = {
    **{kind.key: struct for struct, kind in OWNERS.items()},
    **_CORE_NAMES,
}
NATIVE_GROUP = _BY_NAME["scheduling.k8s.io", "PodGroup"]
_VERSIONS = {ReplicaSet: "apps/v1", StatefulSet: "apps/v1", ReplicationController: "v1"}


def owner_struct(group: str, kind: str) -> type[Object] | None:
    """The struct of a kind of owner."""
    return _BY_NAME.get((group, kind))


def owner_kinds(table: Table) -> tuple[type[Object], ...]:
    """The structs of all kinds of a table.

    That of a kind which a configuration describes is made when it is first asked for. From then on this process can
    read its objects; which of them are workloads, and how, is a matter of the table.
    """
    return tuple(_known(kind) for kind in table.values() if kind.key != _PODS)


def _known(kind: Kind) -> type[Object]:
    struct = _BY_NAME.get(kind.key)
    if struct is None:
        struct = _BY_NAME[kind.key] = _struct(kind)
        OWNERS[struct] = kind
    elif struct in OWNERS and not {*kind.reads} <= {*OWNERS[struct].reads}:
        known = OWNERS[struct]
        OWNERS[struct] = replace(known, reads=tuple(dict.fromkeys((*known.reads, *kind.reads))))
    return struct


def is_owner(item: Object) -> bool:
    return isinstance(item, WorkloadOwner | ReplicaSet | ReplicationController | StatefulSet)


def raw_owner(item: Object) -> Raw:
    """An owner as `workloads/` reads it."""
    if isinstance(item, WorkloadOwner):
        version, spec, status = item.api_version, item.spec, item.status
    else:
        version, status = _VERSIONS[type(item)], {}
        spec = msgspec.to_builtins(item.spec)  # type: ignore[attr-defined]
    return {
        "apiVersion": version,
        "kind": item.kind,
        "metadata": raw_metadata(item),
        "spec": spec,
        "status": status,
    }


def raw_metadata(item: Object) -> dict[str, Any]:
    """What `workloads/` reads of an object's metadata."""
    known = item.metadata
    metadata: dict[str, Any] = {"name": known.name, "namespace": known.namespace, "uid": known.uid}
    if known.labels:
        metadata["labels"] = known.labels
    if known.annotations:
        metadata["annotations"] = known.annotations
    if known.owner_references:
        metadata["ownerReferences"] = [*map(_raw_reference, known.owner_references)]
    return metadata


def _raw_reference(one: OwnerReference) -> dict[str, Any]:
    return {
        "apiVersion": one.api_version,
        "kind": one.kind,
        "name": one.name,
        "uid": one.uid,
        "controller": one.controller,
    }


# Never read of an owner, and most of its size; some of it may be secret.
_UNREAD = frozenset(
    [
        "affinity",
        "args",
        "arguments",
        "command",
        "containers",
        "entrypoint",
        "env",
        "envFrom",
        "ephemeralContainers",
        "initContainers",
        "runtimeEnvYAML",
        "sparkConf",
        "tolerations",
        "volumes",
    ]
)


# Settings among which there may be credentials: the only ones that are kept.
_SETTINGS = {"sparkConf": frozenset({"spark.kubernetes.allocation.batch.size"})}


def slim_fields(item: WorkloadOwner) -> dict[str, Any]:
    """The spec and the status of an owner with the fields that its kind reads, and nothing of containers."""
    return {"spec": _read(item, "spec", item.spec), "status": _read(item, "status", item.status)}


def _read(item: WorkloadOwner, part: str, found: Any) -> Any:
    kind = OWNERS.get(type(item))
    if kind is None or not isinstance(found, Mapping):
        return found
    # As `spec.tasks[].replicas` is written in the table of kinds.
    paths = [[name.partition("[")[0] for name in path.split(".")] for path in kind.reads]
    names = {path[1] for path in paths if path[0] == part and len(path) > 1}
    unread = _UNREAD - {name for path in paths for name in path[2:]}
    kept = {key: _slim(value, unread) for key, value in found.items() if key in names}
    for key in _SETTINGS.keys() & kept.keys():
        if isinstance(kept[key], dict):
            kept[key] = {name: text for name, text in kept[key].items() if name in _SETTINGS[key]}
    return kept


def _slim(value: Any, unread: frozenset[str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _slim(part, unread) for key, part in value.items() if key not in unread}
    if isinstance(value, list):
        return [_slim(part, unread) for part in value]
    return value
