"""A fake of KAI's binder: carries BindRequests out, and writes the result into their status.

The store notifies it of every change; timers are the event loop's. It writes what the real one writes on pods
and claims, as far as it is read here: the node, the shared devices, the kind of resource, allocations of
claims. There are no devices and no volumes to prepare. It also acts as the garbage collector for requests of
deleted pods.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from maniple.objects.core import Node, Pod
from maniple.objects.dra import ResourceClaim
from maniple.objects.kai import BindRequest
from maniple.sim import errors
from maniple.sim.errors import ApiError
from maniple.sim.faults import Faults
from maniple.sim.store import Raw, Store, StoreEvent, moment

GPU_GROUP = "runai-gpu-group"
RECEIVED = "received-resource-type"
FRACTION = "Fraction"
DONE = ("Succeeded", "Failed")


class Now(Protocol):
    def now(self) -> datetime: ...


def bind_pod(
    store: Store,
    clock: Now,
    key: str,
    node: str,
    *,
    uid: str = "",
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Raw | None:
    """Bind a pod as the API server does.

    None if it is on that node already; on another one is a conflict.
    """
    current = store.get(Pod, key)
    metadata, bound = current["metadata"], current.get("spec", {}).get("nodeName")
    if uid and metadata["uid"] != uid:
        raise errors.conflict("Pod", key, f"the uid is {metadata['uid']}, not {uid}")
    if bound == node:
        return None
    if bound:
        raise errors.conflict("Pod", key, f"is bound to {bound} already")
    if metadata.get("deletionTimestamp"):
        raise errors.conflict("Pod", key, "is being deleted")
    if current.get("spec", {}).get("schedulingGates"):
        raise errors.conflict("Pod", key, "has scheduling gates")
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": moment(clock.now())}
    others = [c for c in current.get("status", {}).get("conditions", []) if c["type"] != "PodScheduled"]
    written = {"annotations": dict(annotations or {}), "labels": dict(labels or {})}
    return store.patch(
        Pod,
        key,
        {
            "metadata": {name: value for name, value in written.items() if value},
            "spec": {"nodeName": node},
            "status": {"conditions": [*others, scheduled]},
        },
    )


class Binder:
    """Carries out requests after a moment; a planned fault of the verb "bind" makes an attempt fail."""

    def __init__(self, store: Store, clock: Now, *, seconds: float = 0.05) -> None:
        self.faults = Faults()
        self._store = store
        self._clock = clock
        self._seconds = seconds
        self._timers: dict[str, asyncio.TimerHandle] = {}  # by the uid of the request
        store.observers.append(self._told)

    @property
    def busy(self) -> bool:
        """Whether a request is still to be carried out."""
        return bool(self._timers)

    def stop(self) -> None:
        """Carry out nothing more, as a binder that is not running."""
        self._store.observers.remove(self._told)
        for uid in [*self._timers]:
            self._forget(uid)

    def _told(self, event: StoreEvent) -> None:
        if event.kind is Pod and event.before is not None and _uid(event.after) != _uid(event.before):
            self._collect(event.before)
        elif event.kind is BindRequest:
            if event.before is not None and _uid(event.after) != _uid(event.before):
                self._forget(_uid(event.before))
            if event.after is not None and event.before is None and _phase(event.after) not in DONE:
                self._later(event.key, event.after, self._seconds)

    def _later(self, key: str, request: Raw, seconds: float) -> None:
        uid = _uid(request)

        def act() -> None:
            del self._timers[uid]
            self._carry_out(key)

        self._timers[uid] = asyncio.get_running_loop().call_later(seconds, act)

    def _forget(self, uid: str) -> None:
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()

    # -- one request -------------------------------------------------------------------------------------------------

    def _carry_out(self, key: str) -> None:
        request = self._store.get(BindRequest, key)
        try:
            self.faults.before("bind", key)
            self._bind(request)
        except ApiError as error:
            tried = int(request.get("status", {}).get("failedAttempts", 0)) + 1
            self._say(key, {"phase": "Failed", "reason": error.message, "failedAttempts": tried})
            if tried < int(request["spec"].get("backoffLimit") or 0):
                self._later(key, request, 2.0**tried)
        else:
            self._say(key, {"phase": "Succeeded"})

    def _say(self, key: str, status: Mapping[str, Any]) -> None:
        self._store.patch(BindRequest, key, {"status": status})

    def _bind(self, request: Raw) -> None:
        spec, namespace = request["spec"], request["metadata"]["namespace"]
        key, node = f"{namespace}/{spec['podName']}", str(spec["selectedNode"])
        if self._store.find(Node, node) is None:
            raise errors.not_found("Node", node)
        groups = spec.get("selectedGPUGroups") or []
        received = str(spec.get("receivedResourceType", ""))
        if received == FRACTION and not groups:
            raise errors.invalid(f"BindRequest {key}: a part of a device needs selectedGPUGroups")
        pod = self._store.get(Pod, key)
        for one in spec.get("resourceClaimAllocations") or []:
            self._allocate(pod, namespace, one)
        labels = {GPU_GROUP: groups[0]} if len(groups) == 1 else {f"{GPU_GROUP}/{g}": g for g in groups}
        bind_pod(
            self._store,
            self._clock,
            key,
            node,
            uid=_owner(request),
            annotations={RECEIVED: received} if received else {},
            labels=labels,
        )

    def _allocate(self, pod: Raw, namespace: str, allocation: Mapping[str, Any]) -> None:
        """Write the allocation of a pod's claim, and reserve it for the pod."""
        key = f"{namespace}/{_claim_name(pod, str(allocation['name']))}"
        status = self._store.get(ResourceClaim, key).get("status") or {}
        metadata = pod["metadata"]
        user = {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
        users = [one for one in status.get("reservedFor") or [] if one.get("uid") != user["uid"]]
        got = status.get("allocation") or allocation.get("allocation")
        self._store.patch(ResourceClaim, key, {"status": {"allocation": got, "reservedFor": [*users, user]}})

    def _collect(self, pod: Raw) -> None:
        """Delete the request of a deleted pod."""
        key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"  # a request has its pod's name
        request = self._store.find(BindRequest, key)
        if request is not None and _owner(request) == _uid(pod):
            self._store.remove(BindRequest, key)


def _claim_name(pod: Raw, name: str) -> str:
    """The claim behind a name in the pod: an existing one, or one created for the pod."""
    made = {
        one["name"]: one.get("resourceClaimName") for one in pod["status"].get("resourceClaimStatuses", [])
    }
    for one in pod["spec"].get("resourceClaims", []):
        if one["name"] == name:
            return str(one.get("resourceClaimName") or made.get(name) or "")
    return ""


def _uid(raw: Mapping[str, Any] | None) -> str:
    return str(raw["metadata"]["uid"]) if raw is not None else ""


def _phase(request: Mapping[str, Any]) -> str:
    return str((request.get("status") or {}).get("phase", ""))


def _owner(request: Mapping[str, Any]) -> str:
    owners = request["metadata"].get("ownerReferences") or []
    return next((str(one.get("uid", "")) for one in owners if one.get("kind") == "Pod"), "")
