"""What pods claim and cannot have yet: claims for volumes and devices that do not exist, volumes, devices.

A claim that is created here is as small as a claim can be: which volume and which devices a job wants, its owner
knows. That it exists is what the pods wait for.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from maniple.cluster.claims import claims_of
from maniple.explaining.remedies.kinds.amounts import listed, plural
from maniple.explaining.remedies.search import Choice, Levels
from maniple.explaining.remedies.subject import Subject, admits, creating, setting
from maniple.explaining.remedies.values import Change, KindName
from maniple.objects.core import Pod
from maniple.objects.dra import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from maniple.objects.generated import resource_claim
from maniple.objects.kai import KaiPodGroup
from maniple.objects.printable import printable
from maniple.objects.storage import PersistentVolumeClaim
from maniple.plugins.feasibility.volume_claims import BIND_COMPLETED

_MANY = 16  # claims, or slices of devices, that are looked at
_CLASSES = 4  # device classes that a missing claim is tried with
_MOST_DEVICES = 64
_VOLUME = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}


def _switches(
    kind: KindName, names: Sequence[str], start: str, changes: Callable[[int], Iterator[Change]]
) -> Choice:
    """A knob with one level for each thing to do."""

    def chosen(levels: Levels) -> list[int]:
        return [number for number, level in enumerate(levels) if level]

    def build(levels: Levels) -> tuple[Change, ...]:
        return tuple(change for number in chosen(levels) for change in changes(number))

    def words(levels: Levels) -> tuple[str, str]:
        found = listed(names[number] for number in chosen(levels))
        return found, f"{start} {found}"

    return Choice(kind, (1,) * len(names), build, words)


# -- volumes ----------------------------------------------------------------------------------------------------------


def volume_claims(subject: Subject) -> Iterator[Choice]:
    """Claims that do not exist, created; those without a volume, bound to one that every node can reach."""
    storage = subject.cluster.storage
    found: dict[str, PersistentVolumeClaim | None] = {}
    for pod in subject.waiting:
        for volume, key, claim in storage.claims_of(pod):
            named = volume.persistent_volume_claim is not None
            if claim is None and named:
                found[key] = None
            elif claim is not None and (
                not claim.spec.volume_name
                or BIND_COMPLETED not in claim.metadata.annotations
                or claim.spec.volume_name not in storage.volumes
            ):
                found[key] = claim
    keys = sorted(found)[:_MANY]
    if not keys:
        return
    names = [
        printable(
            f"PersistentVolumeClaim {key} {'created and bound' if found[key] is None else 'bound to a volume'}"
        )
        for key in keys
    ]

    def changes(number: int) -> Iterator[Change]:
        key = keys[number]
        claim = found[key]
        volume = _volume_name(subject, key, claim)
        yield from _bound(key, claim, volume)
        if volume not in storage.volumes:
            yield _new_volume(key, claim, volume)

    yield _switches("volume claims", names, "With", changes)


def _volume_name(subject: Subject, key: str, claim: PersistentVolumeClaim | None) -> str:
    stated = claim.spec.volume_name if claim is not None else ""
    return stated or f"{key.replace('/', '-')}-new"


def _bound(key: str, claim: PersistentVolumeClaim | None, volume: str) -> Iterator[Change]:
    notes = {BIND_COMPLETED: "yes"}
    if claim is None:
        spec = {
            "volumeName": volume,
            "storageClassName": "",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
        after: dict[str, Any] = {
            "apiVersion": "v1",
            "metadata": {"annotations": notes},
            "spec": spec,
            "status": {"phase": "Bound"},
        }
        yield Change(operation="create", kind="PersistentVolumeClaim", objects=(key,), after=after)
        return
    if claim.spec.volume_name != volume:
        yield setting(claim, ("spec", "volumeName"), claim.spec.volume_name or None, volume)
    if BIND_COMPLETED not in claim.metadata.annotations:
        yield setting(claim, ("metadata", "annotations", BIND_COMPLETED), None, "yes")
    if claim.status.phase != "Bound":
        yield setting(claim, ("status", "phase"), claim.status.phase, "Bound")


def _new_volume(key: str, claim: PersistentVolumeClaim | None, name: str) -> Change:
    namespace, _, own = key.partition("/")
    reference: dict[str, str] = {"namespace": namespace, "name": own}
    if claim is not None and claim.metadata.uid:
        reference["uid"] = claim.metadata.uid
    stated = claim.spec.storage_class_name if claim is not None else None
    spec = {**_VOLUME, "claimRef": reference, "storageClassName": stated or ""}
    after = {"apiVersion": "v1", "spec": spec, "status": {"phase": "Bound"}}
    return Change(operation="create", kind="PersistentVolume", objects=(name,), after=after)


# -- devices ----------------------------------------------------------------------------------------------------------


def resource_claims(subject: Subject) -> Iterator[Choice]:
    """ResourceClaims and templates that do not exist, created: for one device of a class, of each class in turn."""
    missing, templates = _missing(subject)[:_MANY], _missing_templates(subject)
    if not missing and not templates:
        return
    classes = sorted(one.metadata.name for one in subject.cluster.all(DeviceClass).values())[:_CLASSES]
    for class_name in (*classes, ""):
        names = [printable(f"ResourceClaim {key} created{_for_class(class_name)}") for key in missing]
        if templates:
            said = listed(f"ResourceClaimTemplate {key}" for key in templates)
            names.append(printable(f"{said} created{_for_class(class_name)}"))

        def changes(number: int, class_name: str = class_name) -> Iterator[Change]:
            if number < len(missing):
                yield _new_claim(subject, missing[number], class_name)
            else:
                yield from _new_templates(subject, templates, class_name)

        yield _switches("resource claims", names, "With", changes)


def _for_class(name: str) -> str:
    return f" (1 device of class {name})" if name else ""


def _missing(subject: Subject) -> list[str]:
    known, found = subject.cluster.all(ResourceClaim), dict[str, None]()
    for pod in subject.waiting:
        namespace = pod.metadata.namespace or "default"
        for one in pod.spec.resource_claims:
            key = f"{namespace}/{one.resource_claim_name}"
            if one.resource_claim_name and key not in known:
                found[key] = None
    return sorted(found)


def _missing_templates(subject: Subject) -> list[str]:
    known = subject.cluster.all(ResourceClaimTemplate)
    found = {key for pod in subject.waiting for _, key in _from_templates(pod)}
    return sorted(key for key in found if key not in known)[:_MANY]


def _from_templates(pod: Pod) -> Iterator[tuple[str, str]]:
    """The claims of a pod that are still to be made: its name for each, and the key of the template."""
    made = {one.name for one in pod.status.resource_claim_statuses}
    namespace = pod.metadata.namespace or "default"
    for one in pod.spec.resource_claims:
        if one.resource_claim_template_name and one.name not in made:
            yield one.name, f"{namespace}/{one.resource_claim_template_name}"


def _new_templates(subject: Subject, templates: Sequence[str], class_name: str) -> Iterator[Change]:
    """The templates, and what Kubernetes makes of them for the pods: their claims, and the names of these."""
    body = _claim_body(subject, class_name)
    template = {"apiVersion": body.pop("apiVersion"), "spec": body}
    for key in templates:
        yield creating(ResourceClaimTemplate, key, template)
    for pod in subject.waiting:
        raw = {"apiVersion": "v1", "kind": "Pod", **msgspec.to_builtins(pod)}
        made = []
        for name, key in _from_templates(pod):
            claim = resource_claim(template, raw, name) if key in templates else None
            if claim is not None:
                own = claim["metadata"].pop("name")
                yield creating(ResourceClaim, f"{key.partition('/')[0]}/{own}", claim)
                made.append({"name": name, "resourceClaimName": own})
        if made:
            known = msgspec.to_builtins(pod.status.resource_claim_statuses)
            yield setting(pod, ("status", "resourceClaimStatuses"), [*known] or None, [*known, *made])


def _new_claim(subject: Subject, key: str, class_name: str) -> Change:
    return creating(ResourceClaim, key, _claim_body(subject, class_name))


def _claim_body(subject: Subject, class_name: str) -> dict[str, Any]:
    exactly = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": 1}
    requests = [{"name": "device", "exactly": exactly}] if class_name else []
    of_kai = isinstance(subject.group, KaiPodGroup)
    labels = {subject.queue_label: subject.facts.queue} if of_kai else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"labels": labels},
        "spec": {"devices": {"requests": requests}},
    }


def devices(subject: Subject) -> Iterator[Choice]:
    """More devices in the slices that drivers publish, like those that are there."""
    wanted = min(_wanted(subject), _MOST_DEVICES)
    found = _slices(subject)[:_MANY]
    if not wanted or not found:
        return

    def build(levels: Levels) -> tuple[Change, ...]:
        return tuple(_with_devices(one, level) for one, level in zip(found, levels, strict=True) if level)

    def words(levels: Levels) -> tuple[str, str]:
        raised = [(one, level) for one, level in zip(found, levels, strict=True) if level]
        said = listed(
            f"{plural(level, 'more device')} of {one.spec.driver}{_where(one)} (ResourceSlice {one.key})"
            for one, level in raised
        )
        return plural(sum(levels), "device"), printable(f"With {said}")

    yield Choice("devices", (wanted,) * len(found), build, words)


def _wanted(subject: Subject) -> int:
    """How many devices all claims of its waiting pods ask for together."""
    known, found = subject.cluster.all(ResourceClaim), dict[str, ResourceClaim]()
    for pod in subject.waiting:
        found |= {one.key: one for one in claims_of(pod, known) if one.status.allocation is None}
    return sum(
        max(exact.count, 1)
        for claim in found.values()
        for request in claim.spec.devices.requests
        if (exact := request.exact) is not None
    )


def _slices(subject: Subject) -> list[ResourceSlice]:
    """Slices of nodes that are open to the job; those with most devices come last, and are kept longest."""
    nodes = {node.metadata.name: node for node in subject.cluster.nodes.objects.values()}

    def is_open(one: ResourceSlice) -> bool:
        node = nodes.get(one.spec.node_name or "")
        everywhere = one.spec.all_nodes or one.spec.node_selector is not None
        return bool(everywhere) or (
            node is not None and any(admits(kind.sample, node) for kind in subject.kinds)
        )

    slices = [one for one in subject.cluster.all(ResourceSlice).values() if one.spec.devices and is_open(one)]
    return sorted(slices, key=lambda one: (len(one.spec.devices), one.key))[-_MANY:]


def _where(one: ResourceSlice) -> str:
    return f" on node {one.spec.node_name}" if one.spec.node_name else ""


def _with_devices(one: ResourceSlice, count: int) -> Change:
    before = msgspec.to_builtins(one.spec.devices)
    last = before[-1]
    more = [{**last, "name": f"{last['name']}-new-{number}"} for number in range(count)]
    return setting(one, ("spec", "devices"), before, [*before, *more])
