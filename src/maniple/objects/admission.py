"""Admission: complete manifests as an API server would store them, before any decision.

`load` calls this for the manifests of a plan and the embedded store for objects created in it, so that both
decide on the same objects. Every object gets the defaults of its schema (`defaults`). An object without a
`metadata.uid` has never been in a cluster: it also gets what is set once at creation from other objects, by
Kubernetes' admission plugins (Priority, RuntimeClass, LimitRanger, DefaultTolerationSeconds,
DefaultStorageClass) and by Volcano's webhooks. Values in the manifest are kept; nothing is rejected here.

A reference to a missing object, such as a priority class outside the manifests, is treated as unset.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from maniple.objects.core import (
    LimitRange,
    LimitRangeItem,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    RuntimeClass,
    StorageClass,
)
from maniple.objects.defaults import Raw, changed, defaulted, each_container, section
from maniple.objects.meta import Object, ObjectMeta, ResourceList
from maniple.objects.storage import LEGACY_STORAGE_CLASS
from maniple.objects.volcano import VolcanoQueue

POLICY_KINDS: frozenset[type[Object]] = frozenset({PriorityClass, RuntimeClass, LimitRange, StorageClass})
# These two exist in every cluster.
SYSTEM_PRIORITIES: Mapping[str, int] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_SYSTEM_CLASSES = [
    PriorityClass(metadata=ObjectMeta(name=name), value=value) for name, value in SYSTEM_PRIORITIES.items()
]
_NO_CLASS = PriorityClass(metadata=ObjectMeta(name=""))
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_HIERARCHY, _HIERARCHY_WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATION_SECONDS = 300


class Policies:
    """The objects that admission looks up."""

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        given = {(type(one), one.key): one for one in objects}.values()  # of duplicates, the last one counts
        classes = [one for one in given if isinstance(one, PriorityClass)]
        self._priorities = {one.metadata.name: one for one in (*_SYSTEM_CLASSES, *classes)}
        # Of several defaults the API server takes the lowest.
        self._usual = min(
            (one for one in classes if one.global_default),
            key=lambda one: (one.value, one.metadata.name),
            default=_NO_CLASS,
        )
        self._runtimes = {one.metadata.name: one for one in given if isinstance(one, RuntimeClass)}
        self.storage_class = _default_storage_class(one for one in given if isinstance(one, StorageClass))
        self._resources = _container_defaults(one for one in given if isinstance(one, LimitRange))

    def priority_class(self, name: str) -> PriorityClass:
        """The named priority class, or the cluster's default if the pod names none or one that does not
        exist."""
        return self._priorities.get(name, self._usual)

    def runtime_class(self, name: str) -> RuntimeClass | None:
        return self._runtimes.get(name)

    def container_resources(self, namespace: str) -> LimitRangeItem | None:
        """The `default` and `defaultRequest` of containers in a namespace."""
        return self._resources.get(namespace)


def admitted(kind: type[Object], raw: Raw, policies: Policies) -> Raw:
    """The object as it would be stored; the same dictionary if nothing is missing."""
    raw = defaulted(kind, raw)
    metadata = section(raw.get("metadata"))
    if not metadata:
        return raw
    if kind.namespaced and not metadata.get("namespace"):
        metadata = {**metadata, "namespace": "default"}
        raw = {**raw, "metadata": metadata}
    admit = _ADMITTERS.get(kind)
    return raw if admit is None or metadata.get("uid") else admit(raw, metadata, policies)


# -- pods ------------------------------------------------------------------------------------------------------------


def _pod(raw: Raw, metadata: Raw, policies: Policies) -> Raw:
    spec = section(raw.get("spec"))
    if spec is None:
        return raw
    made = dict(spec)
    _fill_resources(made, policies.container_resources(str(metadata["namespace"])))
    _fill_priority(made, policies)
    _fill_tolerations(made)
    _fill_runtime(made, policies)
    return {**raw, "spec": made}


def _fill_priority(spec: dict[str, Any], policies: Policies) -> None:
    name = str(spec.get("priorityClassName") or "")
    class_ = policies.priority_class(name)
    if not name and class_.metadata.name:
        spec["priorityClassName"] = class_.metadata.name
    if spec.get("priority") is None:
        spec["priority"] = class_.value
    if spec.get("preemptionPolicy") is None:
        spec["preemptionPolicy"] = class_.preemption_policy


def _fill_tolerations(spec: dict[str, Any]) -> None:
    """Tolerate a lost node for five minutes, unless the pod says how long."""
    stated = spec.get("tolerations") or ()
    if not isinstance(stated, list | tuple) or not all(isinstance(one, Mapping) for one in stated):
        return
    lasting = [one.get("key") or "" for one in stated if one.get("effect") in (None, "", "NoExecute")]
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}
        for key in _TOLERATED
        if key not in lasting and "" not in lasting
    ]
    if added:
        spec["tolerations"] = [*stated, *added]


def _fill_runtime(spec: dict[str, Any], policies: Policies) -> None:
    """Add the overhead of the pod's runtime class and the nodes on which that runtime exists."""
    class_ = policies.runtime_class(str(spec.get("runtimeClassName") or ""))
    if class_ is None:
        return
    if class_.overhead is not None and not spec.get("overhead"):
        spec["overhead"] = dict(class_.overhead.pod_fixed)
    places = class_.scheduling
    if places is None:
        return
    selector, tolerations = section(spec.get("nodeSelector")), spec.get("tolerations") or ()
    if selector is not None:
        spec["nodeSelector"] = {**places.node_selector, **selector}
    if isinstance(tolerations, list | tuple):
        spec["tolerations"] = [*tolerations, *(one for one in places.tolerations if one not in tolerations)]


def _fill_resources(spec: dict[str, Any], usual: LimitRangeItem | None) -> None:
    if usual is None:
        return

    def fill(container: Raw) -> Raw:
        resources = section(container.get("resources"))
        limits = section(resources.get("limits")) if resources is not None else None
        requests = section(resources.get("requests")) if resources is not None else None
        if resources is None or limits is None or requests is None:
            return container
        made = {
            "limits": {**usual.default, **limits},
            "requests": {**usual.default_request, **requests},
        }
        return {**container, "resources": {**resources, **made}}

    for field in ("containers", "initContainers"):
        if spec.get(field):
            spec[field] = each_container(spec[field], fill)


def _container_defaults(ranges: Iterable[LimitRange]) -> dict[str, LimitRangeItem]:
    """Container defaults by namespace; if two ranges set the same resource, the first by name counts."""
    found: dict[str, LimitRangeItem] = {}
    for one in sorted(ranges, key=lambda one: one.key):
        default: ResourceList = {}
        request: ResourceList = {}
        for item in one.spec.limits:
            if item.type == "Container":
                limits = {**item.max, **item.default}
                default |= limits
                request |= {**item.min, **limits, **item.default_request}
        namespace = one.metadata.namespace or "default"
        before = found.get(namespace, LimitRangeItem())
        found[namespace] = LimitRangeItem(
            default={**default, **before.default}, default_request={**request, **before.default_request}
        )
    return found


# -- other kinds -----------------------------------------------------------------------------------------------------


def _claim(raw: Raw, metadata: Raw, policies: Policies) -> Raw:
    """A claim without a class gets the default class; the class "" means none."""
    spec, annotations = section(raw.get("spec")), section(metadata.get("annotations"))
    if not policies.storage_class or spec is None or annotations is None:
        return raw
    if spec.get("storageClassName") is not None or LEGACY_STORAGE_CLASS in annotations:
        return raw
    return {**raw, "spec": {**spec, "storageClassName": policies.storage_class}}


def _default_storage_class(classes: Iterable[StorageClass]) -> str:
    """The newest class marked as default, then the first by name; one without a creation time counts as
    newest."""
    found = [
        one.metadata
        for one in classes
        if any(one.metadata.annotations.get(key) == "true" for key in _DEFAULT_CLASS)
    ]
    ages = {
        one.name: -one.creation_timestamp.timestamp() if one.creation_timestamp else -math.inf
        for one in found
    }
    return min(ages, key=lambda name: (ages[name], name), default="")


def _volume(raw: Raw, _: Raw, __: Policies) -> Raw:
    """A volume without a claim is available: the volume controller marks it so as soon as it exists."""
    spec, status = section(raw.get("spec")), section(raw.get("status"))
    if spec is None or status is None or status.get("phase") or spec.get("claimRef"):
        return raw
    return {**raw, "status": {**status, "phase": "Available"}}


def _volcano_queue(raw: Raw, metadata: Raw, _: Policies) -> Raw:
    """A weight of 0 means unset; every path begins at the root."""
    spec, annotations = section(raw.get("spec")), section(metadata.get("annotations"))
    if spec is None or annotations is None:
        return raw
    changes: dict[str, Any] = {"spec": {**spec, "weight": 1}} if spec.get("weight") == 0 else {}
    path, weights = annotations.get(_HIERARCHY), annotations.get(_HIERARCHY_WEIGHTS)
    if path and weights and not str(path).startswith("root"):
        rooted = {_HIERARCHY: f"root/{path}", _HIERARCHY_WEIGHTS: f"1/{weights}"}
        changes["metadata"] = {**metadata, "annotations": {**annotations, **rooted}}
    return changed(raw, changes)


_ADMITTERS: dict[type[Object], Callable[[Raw, Raw, Policies], Raw]] = {
    Pod: _pod,
    PersistentVolumeClaim: _claim,
    PersistentVolume: _volume,
    VolcanoQueue: _volcano_queue,
}
