"""A fake of Kubernetes' volume controller and of the provisioners of all storage classes.

A volume and a claim that name each other are bound; a claim that binds immediately gets an existing or a new
volume; one that waits for the first consumer gets one when it is annotated with a node. A planned fault of
the verb "provision" makes provisioning fail, and the annotation is removed, as provisioners do. Claims of
ephemeral volumes are created and deleted with their pods; a provisioned volume is deleted with its claim. The
store notifies it of every change; everything is done a moment later.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from maniple.objects.core import Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from maniple.objects.generated import own_volumes, volume_claim
from maniple.objects.quantity import parse
from maniple.sim.errors import ApiError
from maniple.sim.faults import Faults
from maniple.sim.store import Raw, Store, StoreEvent

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_BY_HAND = ("", "kubernetes.io/no-provisioner")
_PLACES = ("topology.kubernetes.io/zone", "kubernetes.io/hostname")


class Volumes:
    def __init__(self, store: Store, *, seconds: float = 0.05) -> None:
        self.faults = Faults()
        self._store = store
        self._seconds = seconds
        self._timers: dict[tuple[str, str], asyncio.TimerHandle] = {}
        store.observers.append(self._told)

    @property
    def busy(self) -> bool:
        """Whether something is still to be bound or provisioned."""
        return bool(self._timers)

    def stop(self) -> None:
        """Bind and provision nothing more, as controllers that are not running."""
        self._store.observers.remove(self._told)
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _told(self, event: StoreEvent) -> None:
        if event.kind is PersistentVolume and event.after is not None:
            self._later("volume", event.key, self._volume)
        elif event.kind is PersistentVolumeClaim:
            if event.after is not None:
                self._later("claim", event.key, self._claim)
            elif event.before is not None:
                self._leave(event.before)
        elif event.kind is Pod and own_volumes(event.after or event.before or {}):
            self._later("pod", event.key, self._pod)

    def _later(self, what: str, key: str, action: Callable[[str], None]) -> None:
        def act() -> None:
            del self._timers[what, key]
            action(key)

        if (what, key) not in self._timers:
            self._timers[what, key] = asyncio.get_running_loop().call_later(self._seconds, act)

    # -- binding -----------------------------------------------------------------------------------------------------

    def _volume(self, name: str) -> None:
        """Bind a volume to the claim that it names; one that names none is available."""
        volume = self._store.find(PersistentVolume, name)
        if volume is None:
            return
        reference = volume["spec"].get("claimRef")
        claim = self._store.find(PersistentVolumeClaim, _claim_key(reference)) if reference else None
        if reference is None or claim is None:
            used = reference is not None and reference.get("uid")
            self._say(volume, "Released" if used else "Available")
        elif reference.get("uid") not in (None, "", claim["metadata"]["uid"]):
            self._say(volume, "Released")
        elif claim["spec"].get("volumeName") in (None, "", name):
            self._bind(volume, claim)

    def _say(self, volume: Raw, phase: str) -> None:
        self._store.patch(PersistentVolume, volume["metadata"]["name"], {"status": {"phase": phase}})

    def _bind(self, volume: Raw, claim: Raw) -> None:
        name, metadata, spec = volume["metadata"]["name"], claim["metadata"], claim["spec"]
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        patch = {"spec": {"claimRef": reference}, "status": {"phase": "Bound"}}
        self._store.patch(PersistentVolume, name, patch)
        notes = {BIND_COMPLETED: "yes", **({} if spec.get("volumeName") else {BOUND_BY_CONTROLLER: "yes"})}
        self._store.patch(
            PersistentVolumeClaim,
            f"{metadata['namespace']}/{metadata['name']}",
            {
                "metadata": {"annotations": notes},
                "spec": {"volumeName": name},
                "status": {"phase": "Bound", "capacity": volume["spec"].get("capacity", {})},
            },
        )

    def _claim(self, key: str) -> None:
        claim = self._store.find(PersistentVolumeClaim, key)
        if claim is None or BIND_COMPLETED in _annotations(claim):
            return
        wanted = claim["spec"].get("volumeName")
        volumes = self._store.list(PersistentVolume)[0]
        found = next((one for one in volumes if wanted and one["metadata"]["name"] == wanted), None)
        found = found or next((one for one in volumes if _names(one, claim)), None)
        if found is not None:
            self._bind(found, claim)
        elif not wanted:
            self._serve(key, claim, volumes)

    def _serve(self, key: str, claim: Raw, volumes: list[Raw]) -> None:
        class_ = self._store.find(StorageClass, str(claim["spec"].get("storageClassName") or ""))
        node = _annotations(claim).get(SELECTED_NODE, "")
        waits = class_ is not None and class_.get("volumeBindingMode") == "WaitForFirstConsumer"
        if waits and not node:
            return
        fitting = [] if waits else [one for one in volumes if _fits(one, claim)]
        if fitting:
            self._bind(min(fitting, key=_size), claim)
        elif class_ is not None and class_.get("provisioner", "") not in _BY_HAND:
            self._make(key, claim, str(class_["provisioner"]), node)

    # -- provisioning ------------------------------------------------------------------------------------------------

    def _make(self, key: str, claim: Raw, provisioner: str, node: str) -> None:
        try:
            self.faults.before("provision", key)
            if node:
                self._store.get(Node, node)
        except ApiError:
            if node:
                taken_off = {"metadata": {"annotations": {SELECTED_NODE: None}}}
                self._store.patch(PersistentVolumeClaim, key, taken_off)
            return
        metadata, spec = claim["metadata"], claim["spec"]
        reference = {"namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}
        name = f"pvc-{metadata['uid']}"
        volume: Raw = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: provisioner}},
            "spec": {
                "capacity": dict(spec.get("resources", {}).get("requests", {})),
                "accessModes": list(spec.get("accessModes", [])),
                "storageClassName": spec.get("storageClassName", ""),
                "claimRef": reference,
                "csi": {"driver": provisioner, "volumeHandle": name},
                **self._affinity(node),
            },
        }
        self._bind(self._store.create(volume), claim)

    def _affinity(self, node: str) -> Raw:
        """A volume is available in the zone of its node, or on the node alone if there are no zones."""
        there = self._store.find(Node, node) if node else None
        labels = there["metadata"].get("labels", {}) if there is not None else {}
        place = next((label for label in _PLACES if label in labels), None)
        if place is None:
            return {}
        term = {"matchExpressions": [{"key": place, "operator": "In", "values": [labels[place]]}]}
        return {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}

    # -- ephemeral volumes and deletion ------------------------------------------------------------------------------

    def _pod(self, key: str) -> None:
        """The claims of ephemeral volumes are created and deleted with their pod."""
        pod = self._store.find(Pod, key)
        for name, template in own_volumes(pod or {}):
            assert pod is not None
            with suppress(ApiError):  # it exists, or the template is not valid
                self._store.create(volume_claim(template, pod, name))
        uid = pod["metadata"]["uid"] if pod is not None else ""
        for claim in self._store.list(PersistentVolumeClaim)[0]:
            metadata = claim["metadata"]
            owners = metadata.get("ownerReferences") or ()
            mine = [one for one in owners if f"{metadata['namespace']}/{one.get('name')}" == key]
            if any(one.get("kind") == "Pod" and one.get("uid") != uid for one in mine):
                self._store.remove(PersistentVolumeClaim, f"{metadata['namespace']}/{metadata['name']}")

    def _leave(self, claim: Raw) -> None:
        """Delete a volume with its claim if it was provisioned for it."""
        for volume in self._store.list(PersistentVolume)[0]:
            reference = volume["spec"].get("claimRef") or {}
            if reference.get("uid") == claim["metadata"]["uid"]:
                name = volume["metadata"]["name"]
                if PROVISIONED_BY in _annotations(volume):
                    self._store.remove(PersistentVolume, name)
                else:
                    self._later("volume", name, self._volume)


def _annotations(item: Mapping[str, Any]) -> Mapping[str, str]:
    return item["metadata"].get("annotations") or {}


def _claim_key(reference: Mapping[str, Any]) -> str:
    return f"{reference.get('namespace') or 'default'}/{reference.get('name')}"


def _names(volume: Raw, claim: Raw) -> bool:
    reference, metadata = volume["spec"].get("claimRef"), claim["metadata"]
    return (
        reference is not None
        and _claim_key(reference) == f"{metadata['namespace']}/{metadata['name']}"
        and reference.get("uid") in (None, "", metadata["uid"])
    )


def _fits(volume: Raw, claim: Raw) -> bool:
    wanted = claim["spec"]
    return (
        volume["spec"].get("claimRef") is None
        and (volume["spec"].get("storageClassName") or "") == (wanted.get("storageClassName") or "")
        and set(wanted.get("accessModes", [])) <= set(volume["spec"].get("accessModes", []))
        and _size(volume) >= parse(wanted.get("resources", {}).get("requests", {}).get("storage", 0))
    )


def _size(volume: Raw) -> Any:
    return parse(volume["spec"].get("capacity", {}).get("storage", 0))
