"""The claims of a class's pods, by what has to happen to them before a pod can run.

- bound: the claim has its volume; the node must be able to reach it
- delayed: the volume is chosen or provisioned once a node is known (WaitForFirstConsumer)

Everything else keeps the pod from being considered at all, with kube-scheduler's message from `VolumeZone`
and `VolumeBinding`.
"""

from dataclasses import dataclass, field

from maniple.cluster.classes import TaskClass
from maniple.cluster.storage import Storage
from maniple.framework.reasons import Code, Detail, Reason
from maniple.objects.core import PersistentVolumeClaim, Pod
from maniple.objects.printable import printable

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_WAIT = "WaitForFirstConsumer"


@dataclass(slots=True)
class VolumeClaims:
    bound: list[PersistentVolumeClaim] = field(default_factory=list)
    delayed: list[PersistentVolumeClaim] = field(default_factory=list)
    refusal: str = ""  # why VolumeBinding refuses the pod as a whole


def uses_claims(class_: TaskClass) -> bool:
    return any(v.persistent_volume_claim or v.ephemeral for v in class_.spec.pod.spec.volumes)


def sorted_claims(storage: Storage, pod: Pod) -> VolumeClaims:
    """A pod's claims as VolumeBinding sees them."""
    claims = VolumeClaims()
    immediate = False
    seen: set[str] = set()
    for volume, key, claim in storage.claims_of(pod):
        if key in seen:  # mounted twice, but one volume
            continue
        seen.add(key)
        claims.refusal = _unusable(pod, volume.ephemeral is not None, key, claim)
        if claims.refusal or claim is None:
            return claims
        if claim.spec.volume_name and BIND_COMPLETED in claim.metadata.annotations:
            claims.bound.append(claim)
        elif not claim.spec.volume_name and waits_for_node(storage, claim):
            claims.delayed.append(claim)
        else:
            immediate = True
    if immediate:
        claims.refusal = "pod has unbound immediate PersistentVolumeClaims"
    return claims


def waits_for_node(storage: Storage, claim: PersistentVolumeClaim) -> bool:
    storage_class = storage.classes.get(storage.class_name(claim))
    return storage_class is not None and storage_class.volume_binding_mode == _WAIT


def _unusable(pod: Pod, ephemeral: bool, key: str, claim: PersistentVolumeClaim | None) -> str:
    name = printable(key.partition("/")[2])  # a pod may name anything; nothing may break the line
    if claim is None and ephemeral:
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
    if claim is None:
        return f'persistentvolumeclaim "{name}" not found'
    if claim.status.phase == "Lost":
        volume = printable(claim.spec.volume_name)
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if ephemeral and not owned_by(claim, pod):
        whose = f"{pod.metadata.namespace}/{pod.metadata.name}"
        return f"PVC {key} was not created for pod {whose} (pod is not owner)"
    return ""


def owned_by(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether an ephemeral volume's claim was created for the pod.

    By name: a spec outlives its pod, so the uid here may be that of an earlier pod of the same name.
    """
    return any(
        owner.controller and owner.kind == "Pod" and owner.name == pod.metadata.name
        for owner in claim.metadata.owner_references
    )


def refused(plugin: str, message: str, storage: Storage, pod: Pod) -> Reason:
    """A pod that is not considered at all, because of one of its claims."""
    text = f"plugin {plugin} pre-predicates failed {message}"
    return Reason(text, Code.UNRESOLVABLE, claims_detail(storage, pod, message))


def claims_detail(storage: Storage, pod: Pod, message: str) -> Detail:
    """Which claim is not there, or is not bound; otherwise the message."""
    for _, key, claim in storage.claims_of(pod):
        name = printable(key)
        if claim is None:
            return Detail("VolumeClaimMissing", f"PersistentVolumeClaim {name} does not exist", name)
        bound = claim.spec.volume_name and BIND_COMPLETED in claim.metadata.annotations
        if bound and claim.spec.volume_name not in storage.volumes:
            volume = printable(claim.spec.volume_name)
            return Detail(
                "VolumeMissing",
                f"PersistentVolume {volume} of PersistentVolumeClaim {name} does not exist",
                volume,
            )
        if not bound and not waits_for_node(storage, claim):
            return Detail("VolumeClaimUnbound", _unbound(storage, claim, name), name)
    return Detail("VolumeClaim", message)


def _unbound(storage: Storage, claim: PersistentVolumeClaim, name: str) -> str:
    """Why a claim that has to be bound before its pod is placed is not bound yet."""
    class_name = printable(storage.class_name(claim))
    stated = f"PersistentVolumeClaim {name} is not bound"
    if not class_name:
        return f"{stated}: it names no storage class and no volume"
    if class_name not in storage.classes:
        return f"{stated}: its storage class {class_name} does not exist"
    if claim.spec.volume_name:
        return f"{stated} to its volume {printable(claim.spec.volume_name)} yet"
    return f"{stated}: its storage class {class_name} binds volumes at once (Immediate), and none was provisioned yet"
