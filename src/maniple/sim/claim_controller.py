"""A fake of Kubernetes' resource claim controller.

A pod that no longer runs is removed from its claims, and an unused claim is deallocated. Claims of a pod's
own are created from their templates, and deleted with it; those of a PodGroup of Kubernetes' own are created once, and
deleted with the group. The store notifies it of every change; everything
is done a moment later. Allocation is up to schedulers.
"""

import asyncio
from contextlib import suppress

from maniple.objects.core import Pod
from maniple.objects.dra import ResourceClaim, ResourceClaimTemplate
from maniple.objects.generated import missing_claims, resource_claim, sharing_group
from maniple.objects.owners import NATIVE_GROUP
from maniple.sim.errors import ApiError
from maniple.sim.kubelet import finished
from maniple.sim.store import Raw, Store, StoreEvent


class ResourceClaims:
    def __init__(self, store: Store, *, seconds: float = 0.05) -> None:
        self._store = store
        self._seconds = seconds
        self._timers: dict[str, asyncio.TimerHandle] = {}  # by the uid of the pod
        store.observers.append(self._told)

    @property
    def busy(self) -> bool:
        """Whether some devices are still to be freed."""
        return bool(self._timers)

    def _told(self, event: StoreEvent) -> None:
        before, after = event.before, event.after
        if event.kind is ResourceClaimTemplate and after is not None:
            for pod in self._store.list(Pod)[0]:
                self._make_later(pod)
        if event.kind is Pod and after is not None:
            self._make_later(after)
        if event.kind is NATIVE_GROUP and before is not None and after is None:
            self._remove_owned(str(before["metadata"]["uid"]))
        if event.kind is not Pod or before is None or not before.get("spec", {}).get("resourceClaims"):
            return
        uid = str(before["metadata"]["uid"])
        replaced = after is None or after["metadata"]["uid"] != uid
        over = replaced or (after is not None and finished(after) and not finished(before))
        if over:
            if uid in self._timers:
                self._timers[uid].cancel()
            loop = asyncio.get_running_loop()
            self._timers[uid] = loop.call_later(self._seconds, self._leave, uid)

    # -- claims of a pod's own ---------------------------------------------------------------------------------------

    def _make_later(self, pod: Raw) -> None:
        uid, key = str(pod["metadata"]["uid"]), f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        if missing_claims(pod) and uid not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[uid] = loop.call_later(self._seconds, self._make, uid, key)

    def _make(self, uid: str, key: str) -> None:
        del self._timers[uid]
        pod = self._store.find(Pod, key)
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        made = list(pod["status"].get("resourceClaimStatuses") or [])
        for name, template in missing_claims(pod):
            found = self._store.find(ResourceClaimTemplate, f"{pod['metadata']['namespace']}/{template}")
            owner = sharing_group(pod, name, template, self._group) or pod
            claim = resource_claim(found, owner, name) if found is not None else None
            if claim is not None:
                with suppress(ApiError):  # it exists, or the template is not valid
                    self._store.create(claim)
                made.append({"name": name, "resourceClaimName": claim["metadata"]["name"]})
        self._store.patch(Pod, key, {"status": {"resourceClaimStatuses": made}})

    def _group(self, key: str) -> Raw | None:
        found = self._store.find(NATIVE_GROUP, key)
        return (
            {"apiVersion": f"{NATIVE_GROUP.api_group}/v1alpha2", "kind": NATIVE_GROUP.kind, **found}
            if found
            else None
        )

    # -- finished pods -----------------------------------------------------------------------------------------------

    def _leave(self, uid: str) -> None:
        del self._timers[uid]
        for claim in self._store.list(ResourceClaim)[0]:
            metadata = claim["metadata"]
            key = f"{metadata['namespace']}/{metadata['name']}"
            if any(one.get("uid") == uid for one in metadata.get("ownerReferences") or ()):
                self._store.remove(ResourceClaim, key)
            else:
                self._release(key, claim, uid)

    def _remove_owned(self, uid: str) -> None:
        for claim in self._store.list(ResourceClaim)[0]:
            metadata = claim["metadata"]
            if any(one.get("uid") == uid for one in metadata.get("ownerReferences") or ()):
                self._store.remove(ResourceClaim, f"{metadata['namespace']}/{metadata['name']}")

    def _release(self, key: str, claim: Raw, uid: str) -> None:
        users = claim.get("status", {}).get("reservedFor") or []
        others = [one for one in users if one.get("uid") != uid]
        if len(others) < len(users):
            status: Raw = {"reservedFor": others or None}
            if not others:
                status["allocation"] = None
            self._store.patch(ResourceClaim, key, {"status": status})
