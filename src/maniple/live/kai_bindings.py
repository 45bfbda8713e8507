"""The BindRequest of a placement, as KAI's binder reads it; called by `kai.py`, pure."""

from typing import Any

import msgspec

from maniple.framework.devices.gpu_facts import DEVICE_PLUGINS, MIG_PREFIX
from maniple.framework.plans.plan import Plan
from maniple.live.dialect import Find
from maniple.objects.core import Pod
from maniple.objects.dra import ResourceClaim
from maniple.objects.requests import pod_requests
from maniple.profiles.kai import NodePool

SELECTED_NODE = "selected-node"
REGULAR, FRACTION, SLICES = "Regular", "Fraction", "MigInstance"


def bind_request(plan: Plan, pod: Pod, node: str, pool: NodePool, find: Find) -> dict[str, Any]:
    """What the binder needs to bind a pod: the node, the shared devices, the allocations of its claims."""
    metadata, namespace = pod.metadata, pod.metadata.namespace or "default"
    labels = {SELECTED_NODE: node} | ({pool.key: pool.value} if pool.key and pool.value else {})
    spec: dict[str, Any] = {"podName": metadata.name, "selectedNode": node, **_received(plan, pod)}
    claims = _claims(plan, pod, find)
    if claims:
        spec["resourceClaimAllocations"] = claims
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata.name, "uid": metadata.uid}
    return {
        "apiVersion": "scheduling.run.ai/v1alpha2",
        "kind": "BindRequest",
        "metadata": {
            "name": metadata.name,
            "namespace": namespace,
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def _received(plan: Plan, pod: Pod) -> dict[str, Any]:
    """The kind of devices that a pod gets, how many, and what part of each."""
    share = plan.gpu_shares.get(pod.key)
    if share is not None:
        gpu = {"count": share.devices, "portion": f"{share.portion:.2f}"}
        return {"receivedResourceType": FRACTION, "receivedGPU": gpu, "selectedGPUGroups": [*share.groups]}
    asked = pod_requests(pod)
    if any(name.startswith(MIG_PREFIX) for name in asked):
        return {"receivedResourceType": SLICES, "receivedGPU": {"count": 0, "portion": "0.00"}}
    devices = sum(int(asked.get(name, 0)) for name in DEVICE_PLUGINS)
    portion_of_each = "1.00" if devices else "0.00"
    return {"receivedResourceType": REGULAR, "receivedGPU": {"count": devices, "portion": portion_of_each}}


def _claims(plan: Plan, pod: Pod, find: Find) -> list[dict[str, Any]]:
    """The allocations of a pod's claims: new in this plan, or existing."""
    if not pod.spec.resource_claims:
        return []
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    found = []
    for one in pod.spec.resource_claims:
        key = f"{pod.metadata.namespace or 'default'}/{one.resource_claim_name or made.get(one.name)}"
        allocation = plan.claims.get(key, {}).get("allocation")
        known = find(ResourceClaim, key) if allocation is None else None
        if isinstance(known, ResourceClaim) and known.status.allocation is not None:
            allocation = msgspec.to_builtins(known.status.allocation)
        if allocation is not None:
            found.append({"name": one.name, "allocation": allocation})
    return found
