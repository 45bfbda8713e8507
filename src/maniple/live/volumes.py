"""Binding of volumes and claims: what is written for a placed pod, and when it is complete.

As kube-scheduler does it: an existing volume gets the claim's name; a new one is requested by annotating the
claim with the chosen node. The rest is done by Kubernetes' volume controller and the provisioner, which
removes the annotation if it cannot provision there. Called by `preparing.py`; pure.
"""

from msgspec.structs import replace

from maniple.live.assumptions import Assumption
from maniple.live.refs import Ref
from maniple.live.rewriting import Missing, Part, conflict
from maniple.objects.core import ClaimReference, Node, PersistentVolume, PersistentVolumeClaim
from maniple.objects.selectors import node_selector_matches
from maniple.plugins.feasibility.volume_claims import BIND_COMPLETED, SELECTED_NODE

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


def volume_ref(name: str) -> Ref:
    return PersistentVolume, name


def claim_ref(key: str) -> Ref:
    return PersistentVolumeClaim, key


# -- writes ----------------------------------------------------------------------------------------------------------


def naming(claim: PersistentVolumeClaim) -> Missing:
    """Reserve a volume for this claim."""
    namespace, name = claim.metadata.namespace or "default", claim.metadata.name
    uid = claim.metadata.uid

    def missing(volume: PersistentVolume) -> Part | None:
        known, ref = volume.spec.claim_ref, volume_ref(volume.key)
        if known is not None and (known.namespace, known.name, known.uid) == (namespace, name, uid):
            return None
        if known is not None and (known.namespace, known.name, known.uid) != (namespace, name, ""):
            raise conflict(ref, "is claimed by another claim by now")  # of another namespace, perhaps
        if volume.metadata.deletion_timestamp is not None:
            raise conflict(ref, "is being deleted")
        reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace}
        body = {"spec": {"claimRef": {**reference, "name": name, "uid": uid}}}
        # A volume that was pre-bound to the claim stays so when it is released.
        noted = {"metadata": {"annotations": {BOUND_BY_CONTROLLER: "yes"}}} if known is None else {}
        return Part({**body, **noted})

    return missing


def named(claim: PersistentVolumeClaim) -> Assumption:
    reference = ClaimReference(
        namespace=claim.metadata.namespace or "default", name=claim.metadata.name, uid=claim.metadata.uid
    )

    def change(volume: PersistentVolume) -> PersistentVolume:
        return replace(volume, spec=replace(volume.spec, claim_ref=reference))

    return Assumption(uid="", change=change, shown=lambda seen: False, lasting=True)


def choosing(node: str) -> Missing:
    """Request a new volume for the claim on this node."""

    def missing(claim: PersistentVolumeClaim) -> Part | None:
        chosen = claim.metadata.annotations.get(SELECTED_NODE)
        if chosen == node or claim.spec.volume_name:
            return None  # if it has got a volume meanwhile, that one has to do
        if chosen is not None:
            raise conflict(claim_ref(claim.key), f"has been assigned to node {chosen}")
        return Part({"metadata": {"annotations": {SELECTED_NODE: node}}})

    return missing


def chosen(node: str) -> Assumption:
    def change(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        annotations = {**claim.metadata.annotations, SELECTED_NODE: node}
        return replace(claim, metadata=replace(claim.metadata, annotations=annotations))

    return Assumption(uid="", change=change, shown=lambda seen: False, lasting=True)


# -- results ---------------------------------------------------------------------------------------------------------


def is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def binding_failure(claim: PersistentVolumeClaim, node: str, volume: PersistentVolume | None) -> str:
    """Why an unbound claim will not get its volume; empty while it still may.

    `volume`: the one that it was to get, if there is one.
    """
    if claim.status.phase == "Lost":
        return f"{claim.key} has lost its volume"
    if claim.metadata.deletion_timestamp is not None:
        return f"{claim.key} is being deleted"
    if claim.spec.volume_name:
        return ""  # about to be bound
    if volume is not None:
        known = volume.spec.claim_ref
        lost = known is None or known.uid != claim.metadata.uid
        return f"volume {volume.key} is no longer reserved for {claim.key}" if lost else ""
    if claim.metadata.annotations.get(SELECTED_NODE) != node:
        return f"no volume could be provisioned for {claim.key} on node {node}"
    return ""


def reaches(node: Node, volume: PersistentVolume) -> bool:
    """Whether pods on a node can use a volume."""
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    return required is None or node_selector_matches(required, node.metadata.labels, node.metadata.name)
