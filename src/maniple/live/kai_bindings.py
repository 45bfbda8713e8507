"""A placement as KAI's binder reads it: the BindRequest that is to be made. Called by `kai.py`; pure."""

from typing import Any

import msgspec

from maniple.framework.gpu_facts import DEVICE_PLUGINS, MIG_PREFIX
from maniple.framework.outcome import Plan
from maniple.objects.core import Pod
from maniple.objects.dra import ResourceClaim
from maniple.objects.requests import pod_requests
from maniple.profiles.kai import NodePool

SELECTED_NODE = "selected-node"
REGULAR, FRACTION, SLICES = "Regular", "Fraction", "MigInstance"


def bind_request(plan: Plan, key: str, node: str, pool: NodePool) -> dict[str, Any]:
    """What the binder needs to bind a pod: where to, on which shared devices, with what in its claims."""
    session = plan.session
    row = session.cluster.tasks.index_of(key)
    assert row is not None  # it is in the plan
    pod = session.cluster.tasks.pods[row]
    metadata, namespace = pod.metadata, pod.metadata.namespace or "default"
    labels = {SELECTED_NODE: node} | ({pool.key: pool.value} if pool.key and pool.value else {})
    spec: dict[str, Any] = {"podName": metadata.name, "selectedNode": node, **_received(plan, row, pod)}
    claims = _claims(plan, pod)
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


def _received(plan: Plan, row: int, pod: Pod) -> dict[str, Any]:
    """The kind of devices that a pod gets, how many, and what part of each."""
    session = plan.session
    class_ = session.classes[session.tasks.class_of[row]]
    if class_.share is not None:
        portion = session.gpus.portion_on(class_, int(session.tasks.node[row]))
        gpu = {"count": class_.share.devices, "portion": f"{portion:.2f}"}
        groups = list(session.gpus.groups_of.get(row, ()))
        return {"receivedResourceType": FRACTION, "receivedGPU": gpu, "selectedGPUGroups": groups}
    asked = pod_requests(pod)
    if any(name.startswith(MIG_PREFIX) for name in asked):
        return {"receivedResourceType": SLICES, "receivedGPU": {"count": 0, "portion": "0.00"}}
    devices = sum(int(asked.get(name, 0)) for name in DEVICE_PLUGINS)
    portion_of_each = "1.00" if devices else "0.00"
    return {"receivedResourceType": REGULAR, "receivedGPU": {"count": devices, "portion": portion_of_each}}


def _claims(plan: Plan, pod: Pod) -> list[dict[str, Any]]:
    """The allocations of a pod's claims: those that this plan makes, and those that others made."""
    if not pod.spec.resource_claims:
        return []
    known = plan.session.cluster.all(ResourceClaim)
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    found = []
    for one in pod.spec.resource_claims:
        key = f"{pod.metadata.namespace or 'default'}/{one.resource_claim_name or made.get(one.name)}"
        allocation = plan.claims.get(key, {}).get("allocation")
        if allocation is None and key in known and known[key].status.allocation is not None:
            allocation = msgspec.to_builtins(known[key].status.allocation)
        if allocation is not None:
            found.append({"name": one.name, "allocation": allocation})
    return found
