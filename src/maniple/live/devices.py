"""Resource claims of a placed pod: write its devices and its name into their status, and undo that.

Called by `preparing.py`; pure. A claim that was allocated differently since the decision is refused, never
overwritten. It is allocated under Kubernetes' own finalizer, so that it outlives its devices' use.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from maniple.framework.plans.plan import Plan
from maniple.live.assumptions import Assumption
from maniple.live.dialect import Find
from maniple.live.refs import Ref
from maniple.live.rewriting import Missing, Part, conflict
from maniple.objects.core import Pod
from maniple.objects.dra import AllocationResult, Consumer, ResourceClaim, ResourceClaimStatus
from maniple.objects.group_claims import consumer_of, group_claims

FINALIZER = "resource.kubernetes.io/delete-protection"


@dataclass(frozen=True, slots=True)
class Grant:
    """The devices of a claim that a pod needs; `new`: the claim is allocated with it."""

    allocation: AllocationResult
    new: bool


def grants(plan: Plan, find: Find) -> dict[str, dict[str, Grant]]:
    """By the uid of the pod and by claim: everything to be written for pods of a plan."""
    found: dict[str, dict[str, Grant]] = {}
    for key, change in plan.claims.items():
        new, known = "allocation" in change, find(ResourceClaim, key)
        standing = known.status.allocation if isinstance(known, ResourceClaim) else None
        allocation = msgspec.convert(change["allocation"], AllocationResult) if new else standing
        if allocation is not None:
            for consumer in change["reservedFor"]:
                found.setdefault(consumer["uid"], {})[key] = Grant(allocation, new)
    return found


def granted_to(pod: Pod, granted: Mapping[str, Mapping[str, Grant]], find: Find) -> dict[str, Grant]:
    """By claim: what has to be written for a pod, or for its PodGroup, before it is bound.

    That a claim is reserved for the PodGroup may be believed and not written yet, so it is looked at in any case.
    """
    found = dict(granted.get(pod.metadata.uid, {}))
    for key in group_claims(pod):
        known = find(ResourceClaim, key)
        standing = known.status.allocation if isinstance(known, ResourceClaim) else None
        new = granted.get(consumer_of(pod, key).uid, {}).get(key)
        if new is not None:
            found[key] = new
        elif standing is not None:
            found[key] = Grant(standing, new=False)
    return found


def resource_claim_ref(key: str) -> Ref:
    return ResourceClaim, key


def reserving(grant: Grant, consumers: Collection[Consumer]) -> Missing:
    """Allocate these devices to a claim, for these pods."""

    def missing(claim: ResourceClaim) -> Part | None:
        standing, ref = claim.status.allocation, resource_claim_ref(claim.key)
        known = {one.uid for one in claim.status.reserved_for}
        if standing is not None and not same_devices(standing, grant.allocation):
            raise conflict(ref, "has been allocated other devices")
        if standing is None and not grant.new:
            raise conflict(ref, "is no longer allocated")
        missing = [one for one in consumers if one.uid not in known]
        if standing is not None and not missing:
            return None
        if claim.metadata.deletion_timestamp is not None:
            raise conflict(ref, "is being deleted")
        if standing is None and FINALIZER not in claim.metadata.finalizers:
            return Part({"metadata": {"finalizers": [*claim.metadata.finalizers, FINALIZER]}})
        users = [*claim.status.reserved_for, *missing]
        written: dict[str, Any] = {"reservedFor": [_plain(one) for one in users]}
        if standing is None:
            written["allocation"] = _plain(grant.allocation)
        return Part({"status": written}, status=True)

    return missing


def reserved(grant: Grant, consumer: Consumer) -> Assumption:
    def change(claim: ResourceClaim) -> ResourceClaim:
        others = tuple(one for one in claim.status.reserved_for if one.uid != consumer.uid)
        status = ResourceClaimStatus(allocation=grant.allocation, reserved_for=(*others, consumer))
        return replace(claim, status=status)

    return Assumption(uid="", change=change, shown=lambda seen: False, lasting=True)


def releasing(uid: str, *, free: bool) -> Missing:
    """Remove a pod from a claim; `free`: also deallocate the claim if it was the last."""

    def missing(claim: ResourceClaim) -> Part | None:
        after = _without(claim.status, uid, free=free)
        if after == claim.status:
            return None
        written: dict[str, Any] = {"reservedFor": [_plain(one) for one in after.reserved_for] or None}
        if after.allocation is None:
            written["allocation"] = None
        return Part({"status": written}, status=True)

    return missing


def released(uid: str, *, free: bool) -> Assumption:
    def change(claim: ResourceClaim) -> ResourceClaim:
        return replace(claim, status=_without(claim.status, uid, free=free))

    return Assumption(uid="", change=change, shown=lambda seen: False, lasting=True)


def _without(status: ResourceClaimStatus, uid: str, *, free: bool) -> ResourceClaimStatus:
    others = tuple(one for one in status.reserved_for if one.uid != uid)
    if len(others) == len(status.reserved_for):
        return status
    return ResourceClaimStatus(
        allocation=None if free and not others else status.allocation, reserved_for=others
    )


def same_devices(one: AllocationResult, other: AllocationResult) -> bool:
    """Whether two allocations are equal; amounts may be written differently."""
    return _devices(one) == _devices(other)


def _devices(allocation: AllocationResult) -> list[tuple[str, str, str, str, str | None]]:
    return [(r.request, r.driver, r.pool, r.device, r.share_id) for r in allocation.devices.results]


def _plain(record: msgspec.Struct) -> Any:
    return msgspec.to_builtins(record)
