"""Groups that are written to the cluster: their names, labels and owners, and the pods that say which is theirs.

A group that was made in memory (`grouping.py`) is written as the originals' controllers write it, so that other tools
read it as they read theirs: Volcano's is called `podgroup-<uid>` and KAI's `pg-<name>-<uid>`, after the owner that
decides, which is its controller. What was written here is known by its label; nothing else is ever changed.

A pod notes which of its annotations and labels it was given (`maniple.dev/added`), so that it can be read as it was
before: the group in memory is made from that, again and again, and what is in the cluster follows it.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from maniple.objects.core import Pod
from maniple.objects.kai import KaiPodGroup
from maniple.objects.limits import WAITS
from maniple.objects.meta import Object, ObjectMeta, OwnerReference
from maniple.objects.volcano import VolcanoPodGroup
from maniple.profiles import kai, volcano
from maniple.profiles.group_forms import ADDED, AskedGroup, topologies_of, without_group
from maniple.workloads.model import Owner

GROUP_KINDS = (VolcanoPodGroup, KaiPodGroup)
MANAGED_BY, MANIPLE = "app.kubernetes.io/managed-by", "maniple"
TITLE = "maniple.dev/group"  # an annotation: the name that people know the group by
# The annotations and labels that put a pod into a group.
NAMES: dict[type[Object], str] = {VolcanoPodGroup: volcano.GROUP_NAME, KaiPodGroup: kai.GROUP_NAME}
_POD_ANNOTATIONS = (*NAMES.values(), volcano.ROLE, ADDED)
_POD_LABELS = (volcano.ROLE, kai.SUB_GROUP)
_VERSIONS = {VolcanoPodGroup: "scheduling.volcano.sh/v1beta1", KaiPodGroup: "scheduling.run.ai/v2alpha2"}
_PREFIXES = ("podgroup-", "pg-")
_OWN_ANNOTATIONS = (volcano.PREEMPTABLE,)  # there or not, as the owner has it
_LEFT_ALONE = ("markUnschedulable", "schedulingBackoff")  # fields that no owner speaks of
_DEFAULT_QUEUE = "default"  # what the API server fills in for Volcano's
_LONGEST_NAME = 253
_DIGITS = 8  # of a digest that keeps shortened names apart
_VALID = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MARKS = {f"annotation:{name}": name for name in NAMES.values()}

Raw = dict[str, Any]


# -- groups ------------------------------------------------------------------------------------------------------------


def to_write(made: Object, asked: AskedGroup) -> Object:
    """A group that was made in memory, as it is to be in the cluster."""
    owner = _owner(asked)
    metadata = made.metadata
    reference = OwnerReference(
        api_version=owner.api_version, kind=owner.kind, name=owner.name, uid=owner.uid, controller=True
    )
    return replace(
        made,
        metadata=replace(
            metadata,
            name=_name(type(made), owner, asked.group.part, asked.name),
            labels={**metadata.labels, MANAGED_BY: MANIPLE},
            annotations={**metadata.annotations, TITLE: asked.name},
            owner_references=(reference,) if owner.uid else (),
        ),
    )


def is_whole(asked: AskedGroup) -> bool:
    """Whether it is a group, and not the pods of one that wait for the others."""
    return asked.name in (asked.group.name, _lone_title(asked.first))


def _owner(asked: AskedGroup) -> Owner:
    """The object that a group goes with: its owner, or the pod if that is a job of its own."""
    name = asked.metadata.name
    if asked.name == _lone_title(asked.first) and name == asked.first.metadata.name:
        return Owner("v1", "Pod", name, asked.metadata.uid)
    return asked.group.owner  # such as the driver pod of a Spark application


def _lone_title(pod: Pod) -> str:
    return f"pod:{pod.metadata.name}"


def _name(kind: type[Object], owner: Owner, part: str, title: str) -> str:
    """As the originals have it; without a uid, after the name that people know the group by."""
    if not owner.uid:
        wanted = f"{'pg' if kind is KaiPodGroup else 'podgroup'}-{title}"
    else:
        wanted = f"pg-{owner.name}-{owner.uid}" if kind is KaiPodGroup else f"podgroup-{owner.uid}"
        wanted = f"{wanted}-{part}" if part else wanted
    if len(wanted) <= _LONGEST_NAME and _VALID.fullmatch(wanted):
        return wanted
    digest = hashlib.sha256(f"{owner.uid}/{title}".encode()).hexdigest()[:_DIGITS]
    plain = re.sub(r"[^a-z0-9]+", "-", wanted.lower())[: _LONGEST_NAME - _DIGITS - 1].strip("-")
    return f"{plain}-{digest}"


def may_be_written(item: Object) -> bool:
    """Whether a PodGroup was written here, or has a name that one may get."""
    metadata = item.metadata
    return metadata.labels.get(MANAGED_BY) == MANIPLE or metadata.name.startswith(_PREFIXES)


def is_written(there: Object) -> bool:
    """Whether a PodGroup of the cluster was written here."""
    return there.metadata.labels.get(MANAGED_BY) == MANIPLE


def is_ours(there: Object, wanted: Object) -> bool:
    """Whether a PodGroup of the cluster was written here for the owner of this one."""
    owners = {one.uid for one in there.metadata.owner_references}
    return is_written(there) and all(one.uid in owners for one in wanted.metadata.owner_references)


def unwritable(wanted: Object) -> str:
    """Why a group can only be in memory; empty for most."""
    if WAITS in wanted.metadata.annotations:
        return wanted.metadata.annotations[WAITS]
    labels = [one.spec.levels[0].node_label for one in topologies_of(wanted).values()]
    if labels:
        return f"it asks for nodes with one value of the label {labels[0]}, for which there is no Topology"
    return ""


def waits(wanted: Object) -> bool:
    """Whether a group may not start yet."""
    return WAITS in wanted.metadata.annotations


def to_create(wanted: Object) -> Raw:
    """The body of a request."""
    metadata = wanted.metadata
    return {
        "apiVersion": _VERSIONS[type(wanted)],
        "kind": wanted.kind,
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace or "default",
            "labels": {**metadata.labels},
            "annotations": {**metadata.annotations},
            **_references(metadata),
        },
        "spec": _spec(wanted),
    }


def _references(metadata: ObjectMeta) -> Raw:
    if not metadata.owner_references:
        return {}
    return {"ownerReferences": [msgspec.to_builtins(one) for one in metadata.owner_references]}


def patch_of(there: Object, wanted: Object) -> Raw:
    """A merge patch that makes a written group what it is to be; empty if it is."""
    old, new = there.metadata, wanted.metadata
    metadata: Raw = {}
    labels = {key: text for key, text in new.labels.items() if old.labels.get(key) != text}
    annotations: dict[str, str | None] = {
        key: text for key, text in new.annotations.items() if old.annotations.get(key) != text
    }
    for key in _OWN_ANNOTATIONS:
        if key in old.annotations and key not in new.annotations:
            annotations[key] = None
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    spec = _difference(_spec(there), _spec(wanted))
    if spec.get("queue", "") is None and _spec(there).get("queue") == _DEFAULT_QUEUE:
        del spec["queue"]
    if not metadata and not spec:
        return {}
    patch: Raw = {"metadata": {"uid": old.uid, **metadata}}
    return {**patch, "spec": spec} if spec else patch


def _spec(group: Object) -> Raw:
    spec: Raw = msgspec.to_builtins(group.spec)  # type: ignore[attr-defined]
    return {key: value for key, value in spec.items() if key not in _LEFT_ALONE}


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Raw:
    patch: Raw = {key: None for key in before if key not in after}
    for key, value in after.items():
        known = before.get(key)
        if key in before and known == value:
            continue
        both = isinstance(known, dict) and isinstance(value, dict)
        patch[key] = _difference(known, value) if both and isinstance(known, dict) else value
    return patch


# -- pods --------------------------------------------------------------------------------------------------------------


def named(pod: Pod, kind: type[Object], name: str) -> Pod:
    """A pod that was given a group in memory, in the group of this name; it notes what it was given."""
    key, known = NAMES[kind], pod.metadata.annotations
    added = ",".join(filter(None, (f"annotation:{key}", known.get(ADDED, ""))))
    annotations = {**known, key: name, ADDED: added}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


def unwritten(pod: Pod) -> Pod:
    """The pod without the group that was written to it here."""
    name = _marked(pod)
    return without_group(pod, (name,)) if name else pod


def group_named(pod: Pod) -> tuple[type[Object], str] | None:
    """The kind and key of the group that was written to a pod here."""
    name = _marked(pod)
    if not name or not pod.metadata.annotations.get(name):
        return None
    kind = next(kind for kind, known in NAMES.items() if known == name)
    return kind, f"{pod.metadata.namespace or 'default'}/{pod.metadata.annotations[name]}"


def _marked(pod: Pod) -> str:
    """The annotation with the name of the group, if it was written here."""
    added = pod.metadata.annotations.get(ADDED)
    return _MARKS.get(added.partition(",")[0], "") if added else ""


def marks(pod: Pod) -> tuple[str | None, ...]:
    """What a pod says about its group."""
    metadata = pod.metadata
    return (*map(metadata.annotations.get, _POD_ANNOTATIONS), *map(metadata.labels.get, _POD_LABELS))


def pod_patch(there: Pod, wanted: Pod) -> Raw:
    """A merge patch that puts a pod into its group; empty if it is there."""
    old, new = there.metadata, wanted.metadata
    annotations = _changed(old.annotations, new.annotations, _POD_ANNOTATIONS)
    labels = _changed(old.labels, new.labels, _POD_LABELS)
    if not annotations and not labels:
        return {}
    metadata: Raw = {"uid": old.uid}
    if annotations:
        metadata["annotations"] = annotations
    if labels:
        metadata["labels"] = labels
    return {"metadata": metadata}


def _changed(old: Mapping[str, str], new: Mapping[str, str], keys: tuple[str, ...]) -> dict[str, str | None]:
    return {key: new.get(key) for key in keys if old.get(key) != new.get(key)}
