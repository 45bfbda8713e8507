"""Carrying out changes: on plain objects, as files have them, and on typed ones, as a cluster has them.

Both go the same way: a typed object becomes a plain one, is edited, and is read and checked again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from maniple.explaining.remedies.values import Change, Step
from maniple.objects.core import Node
from maniple.objects.meta import Object
from maniple.objects.validate import check

Kind = TypeVar("Kind", bound=Object)
Raw = Mapping[str, Any]
HOST_NAME = "kubernetes.io/hostname"
# What belongs to one object only, and not to a copy of it.
_OWN_METADATA = ("uid", "resourceVersion", "deletionTimestamp")


def applied(objects: Iterable[Raw], changes: Sequence[Change]) -> list[Raw]:
    """Plain objects after some changes; those that are not concerned are the same ones."""
    by_name: dict[tuple[str, str, str], Raw] = {}
    others: list[Raw] = []
    for raw in objects:
        name = _identity(raw)
        if name is None:
            others.append(raw)
        else:
            by_name[name] = raw
    for change in sorted(changes, key=lambda one: one.operation == "create"):
        for key in change.objects:
            name = (change.api_group, change.kind, key)
            if change.operation == "delete":
                by_name.pop(name, None)
            elif change.operation == "create":
                like = by_name[change.api_group, change.kind, change.like] if change.like else None
                by_name[name] = created(change, key, like)
            else:
                by_name[name] = with_field(by_name[name], change.path, change.after)
    return [*others, *by_name.values()]


def edited(item: Kind, changes: Iterable[Change]) -> Kind:
    """A typed object with other values in some fields."""
    raw: Raw = msgspec.to_builtins(item)
    for change in changes:
        raw = with_field(raw, change.path, change.after)
    return _read(raw, item)


def created(change: Change, key: str, like: Raw | None) -> Raw:
    """The plain object of this name that a change creates; `like`: the one that it is a copy of."""
    made = copied(like, key) if like is not None else _named(change.kind, key)
    found: Raw = _merged(made, change.after)
    return found


def new_nodes(change: Change, like: Node) -> Iterator[Node]:
    """The nodes that a change creates: copies of one that differ in their names only."""
    first: Node | None = None
    for key in change.objects:
        if first is None:
            first = _read(created(change, key, msgspec.to_builtins(like)), like)
        metadata = msgspec.structs.replace(
            first.metadata, name=key, labels=_own_labels(first.metadata.labels, key)
        )
        yield msgspec.structs.replace(first, metadata=metadata)


def _own_labels(labels: Mapping[str, str], name: str) -> Mapping[str, str]:
    return {**labels, HOST_NAME: name} if HOST_NAME in labels else labels


def _named(kind: str, key: str) -> Raw:
    namespace, _, name = key.rpartition("/")
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"kind": kind, "metadata": metadata}


def _merged(value: Any, more: Any) -> Any:
    """A plain value with the fields of another on top."""
    if more is None:
        return value
    if not isinstance(more, Mapping) or not isinstance(value, Mapping):
        return more
    return {**value, **{field: _merged(value.get(field), part) for field, part in more.items()}}


def _read(raw: Raw, item: Kind) -> Kind:
    made = msgspec.convert(raw, type(item))
    check(made)
    return made


def copied(raw: Raw, key: str) -> Raw:
    """A plain object like this one, as it would be when it is created."""
    name = key.rpartition("/")[2]
    metadata = {field: value for field, value in raw["metadata"].items() if field not in _OWN_METADATA}
    metadata["name"] = name
    if metadata.get("labels"):
        metadata["labels"] = _own_labels(metadata["labels"], name)
    made = {**raw, "metadata": metadata}
    if "containers" in (raw.get("spec") or {}):
        made["spec"] = {field: value for field, value in raw["spec"].items() if field != "nodeName"}
        made["status"] = {"phase": "Pending"}
    return made


def with_field(value: Any, path: Sequence[Step], after: Any) -> Any:
    """A plain value with another one at a path; None removes what is there."""
    if not path:
        return after
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        made = list(value)
        made[step] = with_field(made[step], rest, after)
        return made
    inner = with_field((value or {}).get(step), rest, after)
    kept = {field: part for field, part in (value or {}).items() if field != step}
    return kept if inner is None else {**kept, step: inner}


def _identity(raw: Raw) -> tuple[str, str, str] | None:
    metadata = raw.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        return None
    group, _, _ = str(raw.get("apiVersion")).rpartition("/")
    kind, namespace = str(raw.get("kind")), metadata.get("namespace")
    cluster_scoped = not namespace and kind in _CLUSTER_SCOPED
    key = metadata["name"] if cluster_scoped else f"{namespace or 'default'}/{metadata['name']}"
    return group, kind, key


# The kinds of this scope that remedies change.
_CLUSTER_SCOPED = ("Node", "Queue", "PriorityClass", "PersistentVolume", "ResourceSlice")
