"""A stand-in for Kubernetes' controller of resource claims: who does not run any more uses no claim, and a claim that nobody uses has no devices.

Claims that belong to a pod go with it. The store tells it of every change; everything is done a moment later. Who gets which devices, schedulers decide.
"""

import asyncio

from maniple.objects.core import Pod
from maniple.objects.dra import ResourceClaim
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
        """Some devices are still going to be free."""
        return bool(self._timers)

    def _told(self, event: StoreEvent) -> None:
        before, after = event.before, event.after
        if event.kind is not Pod or before is None or not before.get("spec", {}).get("resourceClaims"):
            return
        uid = str(before["metadata"]["uid"])
        replaced = after is None or after["metadata"]["uid"] != uid
        over = replaced or (after is not None and finished(after) and not finished(before))
        if over and uid not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[uid] = loop.call_later(self._seconds, self._leave, uid)

    def _leave(self, uid: str) -> None:
        del self._timers[uid]
        for claim in self._store.list(ResourceClaim)[0]:
            metadata = claim["metadata"]
            key = f"{metadata['namespace']}/{metadata['name']}"
            if any(one.get("uid") == uid for one in metadata.get("ownerReferences") or ()):
                self._store.remove(ResourceClaim, key)
            else:
                self._release(key, claim, uid)

    def _release(self, key: str, claim: Raw, uid: str) -> None:
        users = claim.get("status", {}).get("reservedFor") or []
        others = [one for one in users if one.get("uid") != uid]
        if len(others) < len(users):
            status: Raw = {"reservedFor": others or None}
            if not others:
                status["allocation"] = None
            self._store.patch(ResourceClaim, key, {"status": status})
