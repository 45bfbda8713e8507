"""Manifests among other objects: those whose pods are not there are expanded into them.

An object with a uid has been in a cluster, where its controller has created its pods. One that others name as their
owner has them among the objects. All other workloads of known kinds are manifests, as people write them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from maniple.workloads.expanding import expanded
from maniple.workloads.kind import Find, no_children
from maniple.workloads.kinds import TABLE, Table, kind_of
from maniple.workloads.model import FieldError, Owner, Raw

# An object by group of the API, kind, namespace and name.
Key = tuple[str, str, str, str]


@dataclass(slots=True)
class Expansion:
    """All objects, those that controllers would create last."""

    objects: Sequence[Any]
    manifests: dict[Key, Raw] = field(default_factory=dict)
    children: dict[Key, list[dict[str, Any]]] = field(default_factory=dict)
    errors: dict[Key, FieldError] = field(default_factory=dict)


def with_pods(
    objects: Sequence[Any],
    table: Table = TABLE,
    inherited: Collection[str] = (),
    besides: Sequence[Any] = (),
) -> Expansion:
    """The objects with the pods of manifests.

    `inherited`: annotations that these have from their manifest; `besides`: what else a controller may read.
    """
    found = Expansion(objects, {key_of(one): one for one in objects if is_manifest(one, table)})
    if not found.manifests:
        return found
    named = {key for one in objects for key in owners_named_by(one)}
    for key, manifest in found.manifests.items():
        if key in named:
            continue
        try:
            children = expanded(manifest, table, finder([*objects, *besides], key[2]))
        except FieldError as error:
            found.errors[key] = error
            continue
        found.children[key] = [_inheriting(one, manifest, inherited) for one in children]
    found.objects = [*objects, *(child for children in found.children.values() for child in children)]
    return found


def is_manifest(raw: Any, table: Table = TABLE) -> bool:
    """Whether an object is a workload that has not been in a cluster, and of a kind that can be expanded."""
    if not isinstance(raw, Mapping) or raw.get("kind") == "Pod":
        return False
    kind = kind_of(raw, table)
    if kind is None or _metadata(raw).get("uid"):
        return False
    return kind.children is not no_children or kind.children_with is not None


def key_of(raw: Raw) -> Key:
    metadata = _metadata(raw)
    group = str(raw.get("apiVersion")).rpartition("/")[0]
    return group, str(raw.get("kind")), str(metadata.get("namespace") or "default"), str(metadata.get("name"))


def owners_named_by(raw: Any) -> Iterator[Key]:
    """The owners that an object refers to."""
    metadata = _metadata(raw) if isinstance(raw, Mapping) else {}
    references = metadata.get("ownerReferences")
    namespace = str(metadata.get("namespace") or "default")
    for one in references if isinstance(references, list | tuple) else ():
        if isinstance(one, Mapping):
            group = str(one.get("apiVersion")).rpartition("/")[0]
            yield group, str(one.get("kind")), namespace, str(one.get("name"))


def finder(objects: Sequence[Any], namespace: str) -> Find:
    """What a controller reads besides a manifest of this namespace; kinds without a namespace are found, too."""

    def find(owner: Owner) -> Raw | None:
        group = owner.api_version.rpartition("/")[0]
        for one in objects:
            if isinstance(one, Mapping) and one.get("kind") == owner.kind:
                key = key_of(one)
                if key[0] == group and key[3] == owner.name and key[2] in (namespace, "default"):
                    return one
        return None

    return find


def _inheriting(child: dict[str, Any], manifest: Raw, names: Iterable[str]) -> dict[str, Any]:
    annotations = _metadata(manifest).get("annotations")
    known = annotations if isinstance(annotations, Mapping) else {}
    more = {name: known[name] for name in names if name in known}
    if not more:
        return child
    metadata = child["metadata"]
    annotations = {**more, **metadata.get("annotations", {})}
    return {**child, "metadata": {**metadata, "annotations": annotations}}


def _metadata(raw: Raw) -> Mapping[str, Any]:
    metadata = raw.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}
