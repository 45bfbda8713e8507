"""Names in objects that nothing in the input has: queues, groups, nodes, claims, classes, labels, resources.

A cluster may have what the input has not, so each message says what was looked for and, where a name is nearly
right, which one is there. Pods that run or have ended need nothing more and are passed over.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from maniple.cli.inspection.fields import near_miss
from maniple.cli.inspection.values import entries, part
from maniple.framework.configuration.document import quoted, suggestion
from maniple.framework.devices.gpu_facts import MIG_PREFIX
from maniple.objects.admission import SYSTEM_PRIORITIES
from maniple.objects.core import (
    Node,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    RuntimeClass,
    StorageClass,
)
from maniple.objects.defaults import DEFAULT_SCHEDULER
from maniple.objects.dra import ResourceClaim, ResourceClaimTemplate
from maniple.objects.kai import KaiPodGroup, KaiQueue, Topology
from maniple.objects.meta import Object
from maniple.objects.storage import LEGACY_STORAGE_CLASS
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue
from maniple.profiles import kai, volcano

Raw = Mapping[str, Any]
Found = Iterator[tuple[str, str]]

# The resource that kubectl takes for a kind.
_EXPORTED = {
    PersistentVolumeClaim: "persistentvolumeclaims",
    PriorityClass: "priorityclasses",
    ResourceClaim: "resourceclaims",
    ResourceClaimTemplate: "resourceclaimtemplates",
    RuntimeClass: "runtimeclasses",
    StorageClass: "storageclasses",
    Topology: "topologies",
}
_SCHEDULERS = (DEFAULT_SCHEDULER, "volcano", "kai-scheduler", "maniple")
# Looking for the nearest name is slow, and only a few messages are shown.
_MOST_HINTS = 200
_DIGITS = re.compile(r"[0-9]+")
_ENDED = ("Succeeded", "Failed")
_ROOT = "root"  # Volcano's queues end there; it need not be in the input
_COMMON_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "cpu", "memory", "ephemeral-storage")


class References:
    """What the input has, by kind and name; each question of a pod or group is answered from there."""

    def __init__(
        self,
        by_kind: Mapping[type[Object], Sequence[Raw]],
        schedulers: Sequence[str],
        default_queue: str,
        *,
        one_tree: bool,
    ) -> None:
        """`one_tree`: the queues of both systems are one tree."""
        self._by_kind = by_kind
        self._one_tree = one_tree
        self._ours = frozenset(schedulers)
        self._schedulers = (*schedulers, *_SCHEDULERS)
        self._default_queue = default_queue
        self._hints: dict[tuple[str, str], str] = {}
        self._checks = {
            Pod: self._pod,
            VolcanoPodGroup: self._volcano_group,
            KaiPodGroup: self._kai_group,
            VolcanoQueue: self._volcano_queue,
            KaiQueue: self._kai_queue,
            PersistentVolumeClaim: self._claim,
        }

    def remarks(self, raw: Raw, kind: type[Object]) -> Found:
        """Field and message of every name that leads nowhere."""
        check = self._checks.get(kind)
        if check is not None:
            yield from check(raw)

    @cached_property
    def _names(self) -> dict[type[Object], dict[str, set[str]]]:
        """Names by kind and namespace; the namespace of cluster-scoped kinds is empty."""
        found: dict[type[Object], dict[str, set[str]]] = {}
        for kind, raws in self._by_kind.items():
            if kind is Pod:
                continue
            names = found[kind] = {}
            for raw in raws:
                metadata = part(raw, "metadata")
                namespace = str(metadata.get("namespace") or "default") if kind.namespaced else ""
                names.setdefault(namespace, set()).add(str(metadata.get("name")))
        return found

    def _known(self, kind: type[Object], namespace: str = "") -> set[str]:
        return self._names.get(kind, {}).get(namespace, set())

    def _missing(self, field: str, kind: type[Object], name: object, namespace: str = "") -> Found:
        """A name of a kind that the input does not have."""
        known = self._known(kind, namespace)
        if not isinstance(name, str) or not name or name in known:
            return
        where = f"{namespace}/{name}" if namespace else name
        hint = self._hint(f"{kind.__name__} {namespace}", name, known)
        if not hint and not self._names.get(kind):
            hint = f"; export {_EXPORTED[kind]}, too" if kind in _EXPORTED else ""
        yield field, f"{kind.kind} {quoted(where)} is not in the input{hint}"

    def _hint(self, about: str, word: str, known: Iterable[str]) -> str:
        """The name that is meant, for as many different words as are likely to be shown."""
        key = about, word
        if key not in self._hints and len(self._hints) < _MOST_HINTS:
            pattern = _DIGITS.sub("0", word)  # of numbered names, another number is another object
            self._hints[key] = suggestion(word, (one for one in known if _DIGITS.sub("0", one) != pattern))
        return self._hints.get(key, "")

    # -- pods ---------------------------------------------------------------------------------------------------------

    def _pod(self, raw: Raw) -> Found:
        spec, phase = part(raw, "spec"), part(raw, "status").get("phase")
        if phase in _ENDED:
            return
        node = spec.get("nodeName")
        if isinstance(node, str) and node:
            known = self._known(Node)
            if known and node not in known:
                hint = self._hint("node", node, known)
                yield "spec.nodeName", f"there is no node {quoted(node)}; the pod counts nowhere{hint}"
            return
        namespace = str(part(raw, "metadata").get("namespace") or "default")
        yield from self._scheduler(spec)
        if str(spec.get("schedulerName") or DEFAULT_SCHEDULER) not in self._ours:
            return
        yield from self._group(raw, namespace)
        yield from self._selector(spec)
        yield from self._resources(spec)
        created = bool(part(raw, "metadata").get("uid"))
        yield from self._volumes(spec, namespace, created=created)
        if not created:
            yield from self._classes(spec)

    def _scheduler(self, spec: Raw) -> Found:
        name = spec.get("schedulerName")
        if isinstance(name, str) and name and name not in self._schedulers:
            meant = self._meant_scheduler(name)
            if meant is not None:
                message = f"no such scheduler is known: {quoted(name)}; did you mean {quoted(meant)}?"
                yield "spec.schedulerName", message

    @lru_cache(maxsize=1024)  # noqa: B019  # as long as the inspection
    def _meant_scheduler(self, name: str) -> str | None:
        return near_miss(name, self._schedulers)

    def _group(self, raw: Raw, namespace: str) -> Found:
        annotations = part(raw, "metadata", "annotations")
        for key, kind in ((volcano.GROUP_NAME, VolcanoPodGroup), (kai.GROUP_NAME, KaiPodGroup)):
            name = annotations.get(key)
            if isinstance(name, str) and name and name not in self._known(kind, namespace):
                hint = self._hint(f"{kind.__name__} {namespace}", name, self._known(kind, namespace))
                yield f"metadata.annotations.{key}", f"there is no PodGroup {namespace}/{name}{hint}"

    def _selector(self, spec: Raw) -> Found:
        """Labels that nodes nearly have; others may be of nodes that an autoscaler has yet to add."""
        for key, value in part(spec, "nodeSelector").items():
            yield from self._label(f"spec.nodeSelector.{key}", f"spec.nodeSelector.{key}", str(key), [value])
        required = part(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
        inside = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        for term_path, term in entries(required, "nodeSelectorTerms"):
            for path, wanted in entries(term, "matchExpressions"):
                if wanted.get("operator") in ("In", "Exists"):
                    field, values = f"{inside}.{term_path}.{path}", wanted.get("values")
                    listed = values if isinstance(values, list) else []
                    yield from self._label(f"{field}.key", f"{field}.values", str(wanted.get("key")), listed)

    def _label(self, key_field: str, value_field: str, key: str, values: list[Any]) -> Found:
        """A label with one of these values that no node has."""
        labels = self._node_labels
        if key not in labels:
            hint = self._hint("label", key, labels) if labels else ""
            if hint:
                yield key_field, f"no node has the label {quoted(key)}{hint}"
        elif values and not labels[key].intersection(map(str, values)):
            hint = self._hint(f"label {key}", str(values[0]), labels[key])
            if hint:
                yield value_field, f"no node has {key}={values[0]}{hint}"

    @cached_property
    def _node_labels(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for raw in self._by_kind.get(Node, ()):
            for key, value in part(raw, "metadata", "labels").items():
                found.setdefault(str(key), set()).add(str(value))
            name = str(part(raw, "metadata").get("name"))
            found.setdefault("kubernetes.io/hostname", set()).add(name)
        return found

    @cached_property
    def _offered(self) -> set[str]:
        """The resources that nodes have."""
        found: set[str] = set()
        for raw in self._by_kind.get(Node, ()):
            found.update(map(str, part(raw, "status", "allocatable") or part(raw, "status", "capacity")))
        return found

    def _resources(self, spec: Raw) -> Found:
        for name in ("initContainers", "containers"):
            for path, container in entries(spec, name):
                for kind in ("requests", "limits"):
                    asked = part(container, "resources", kind)
                    if not self._offered.issuperset(asked):
                        yield from self._unknown_resources(f"spec.{path}.resources.{kind}", asked)

    def _unknown_resources(self, field: str, asked: Raw) -> Found:
        for resource in asked:
            if resource in self._offered or not self._by_kind.get(Node, ()):
                continue
            if resource in _COMMON_RESOURCES or str(resource).startswith(MIG_PREFIX):
                continue  # spelled right; the plan says that no node has it
            hint = self._hint("resource", str(resource), {*self._offered, *_COMMON_RESOURCES})
            if hint or "/" not in str(resource):
                yield f"{field}.{resource}", f"no node has the resource {quoted(str(resource))}{hint}"

    def _volumes(self, spec: Raw, namespace: str, *, created: bool) -> Found:
        for path, volume in entries(spec, "volumes"):
            name = part(volume, "persistentVolumeClaim").get("claimName")
            field = f"spec.{path}.persistentVolumeClaim.claimName"
            yield from self._missing(field, PersistentVolumeClaim, name, namespace)
        for path, claim in entries(spec, "resourceClaims"):
            name, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
            yield from self._missing(f"spec.{path}.resourceClaimName", ResourceClaim, name, namespace)
            if not created:  # otherwise the claim has been made from its template
                field = f"spec.{path}.resourceClaimTemplateName"
                yield from self._missing(field, ResourceClaimTemplate, template, namespace)

    def _classes(self, spec: Raw) -> Found:
        """Of a pod that has not been in a cluster: there it would have got the values of its classes."""
        yield from self._priority_class("spec.priorityClassName", spec)
        for field, message in self._missing(
            "spec.runtimeClassName", RuntimeClass, spec.get("runtimeClassName")
        ):
            yield field, f"{message}; ignored (an API server would reject the pod)"

    def _priority_class(self, field: str, spec: Raw) -> Found:
        name = spec.get("priorityClassName")
        if str(name) not in SYSTEM_PRIORITIES:
            for place, message in self._missing(field, PriorityClass, name):
                yield place, f"{message}; the default priority counts"

    # -- groups, queues, claims ---------------------------------------------------------------------------------------

    def _volcano_group(self, raw: Raw) -> Found:
        spec = part(raw, "spec")
        yield from self._queue(spec, self._queues[VolcanoQueue])
        yield from self._priority_class("spec.priorityClassName", spec)

    def _kai_group(self, raw: Raw) -> Found:
        spec = part(raw, "spec")
        yield from self._queue(spec, self._queues[KaiQueue])
        yield from self._priority_class("spec.priorityClassName", spec)
        constraint = part(spec, "topologyConstraint")
        yield from self._missing("spec.topologyConstraint.topology", Topology, constraint.get("topology"))

    @cached_property
    def _queues(self) -> dict[type[Object], set[str]]:
        """The queues that groups and queues of a system may name."""
        volcanos, kais = self._known(VolcanoQueue), self._known(KaiQueue)
        both = volcanos | kais
        return (
            dict.fromkeys((VolcanoQueue, KaiQueue), both)
            if self._one_tree
            else {VolcanoQueue: volcanos, KaiQueue: kais}
        )

    def _queue(self, spec: Raw, known: set[str]) -> Found:
        name = spec.get("queue") or self._default_queue
        if not name:
            yield "spec.queue", "missing: the group is in no queue"
        elif isinstance(name, str) and name != self._default_queue and name not in known:
            yield "spec.queue", f"there is no queue {quoted(name)}{self._hint('queue', name, known)}"

    def _volcano_queue(self, raw: Raw) -> Found:
        return self._parent(raw, VolcanoQueue, "parent")

    def _kai_queue(self, raw: Raw) -> Found:
        return self._parent(raw, KaiQueue, "parentQueue")

    def _parent(self, raw: Raw, kind: type[Object], field: str) -> Found:
        name, known = str(part(raw, "metadata").get("name")), self._queues[kind]
        parents = self._parents[None] if self._one_tree else self._parents[kind]
        parent = parents.get(name, "")
        if parent and parent != _ROOT and parent not in known:
            yield f"spec.{field}", f"there is no queue {quoted(parent)}{self._hint('queue', parent, known)}"
            return
        way = [name]
        while (above := parents.get(way[-1], "")) and above not in way:
            way.append(above)
        if above == name:
            yield f"spec.{field}", f"the queues above form a cycle: {' -> '.join((*way, name))}"

    @cached_property
    def _parents(self) -> dict[type[Object] | None, dict[str, str]]:
        """Parents of queues by kind, and of all together."""
        found: dict[type[Object] | None, dict[str, str]] = {VolcanoQueue: {}, KaiQueue: {}, None: {}}
        for kind, field in ((VolcanoQueue, "parent"), (KaiQueue, "parentQueue")):
            for raw in self._by_kind.get(kind, ()):
                name = str(part(raw, "metadata").get("name"))
                found[kind][name] = found[None][name] = str(part(raw, "spec").get(field) or "")
        return found

    def _claim(self, raw: Raw) -> Found:
        spec = part(raw, "spec")
        if spec.get("volumeName") or LEGACY_STORAGE_CLASS in part(raw, "metadata", "annotations"):
            return
        yield from self._missing("spec.storageClassName", StorageClass, spec.get("storageClassName"))
