"""Kubernetes' volume and resource claim controllers and a provisioner, faked on a real API server without
them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from maniple.kube.client import Client
from maniple.kube.errors import ApiError
from maniple.kube.kinds import KINDS
from maniple.kube.watch import list_all
from maniple.objects.core import PersistentVolume, PersistentVolumeClaim, Pod
from maniple.objects.dra import ResourceClaim
from maniple.objects.meta import Object

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"


class Controllers:
    """`refusals`: how many times no volume is made for a claim."""

    def __init__(self, client: Client) -> None:
        self.refusals: dict[str, int] = {}
        self._client = client

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        running = asyncio.create_task(self._run())
        try:
            yield
            if running.done():
                running.result()
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    async def _run(self) -> None:
        while True:
            # Somebody else may have written meanwhile: seen in the next round.
            with suppress(ApiError):
                await self._volumes()
                await self._claims()
            await asyncio.sleep(0.1)

    async def _all(self, kind: type[Object]) -> list[Any]:
        row = KINDS[kind]
        return list((await list_all(self._client, row, row.at(row.versions[0]))).objects)

    async def _patch(self, item: Object, body: dict[str, Any], subresource: str = "") -> None:
        row = KINDS[type(item)]
        metadata = {**body.get("metadata", {}), "resourceVersion": item.metadata.resource_version}
        resource = row.at(row.versions[0])
        await self._client.patch(resource, item.key, {**body, "metadata": metadata}, subresource=subresource)

    # -- volumes ------------------------------------------------------------------------------------------------------

    async def _volumes(self) -> None:
        volumes, claims = await self._all(PersistentVolume), await self._all(PersistentVolumeClaim)
        for one in volumes:
            phase = "Available" if one.spec.claim_ref is None else "Bound"
            if one.status.phase != phase:
                await self._patch(one, {"status": {"phase": phase}}, "status")
        by_claim = {v.spec.claim_ref.uid: v for v in volumes if v.spec.claim_ref is not None}
        for claim in claims:
            if BIND_COMPLETED in claim.metadata.annotations:
                continue
            volume = by_claim.get(claim.metadata.uid)
            if volume is not None:
                notes = {"annotations": {BIND_COMPLETED: "yes"}}
                await self._patch(claim, {"metadata": notes, "spec": {"volumeName": volume.metadata.name}})
            elif SELECTED_NODE in claim.metadata.annotations:
                await self._make(claim)

    async def _make(self, claim: PersistentVolumeClaim) -> None:
        if self.refusals.get(claim.key):
            self.refusals[claim.key] -= 1
            await self._patch(claim, {"metadata": {"annotations": {SELECTED_NODE: None}}})
            return
        name = claim.metadata.annotations[SELECTED_NODE]
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"pvc-{claim.metadata.uid}"},
            "spec": {
                "capacity": claim.spec.resources.requests,
                "accessModes": list(claim.spec.access_modes),
                "storageClassName": claim.spec.storage_class_name,
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": claim.metadata.namespace,
                    "name": claim.metadata.name,
                    "uid": claim.metadata.uid,
                },
                "csi": {"driver": "disk.example.com", "volumeHandle": claim.metadata.uid},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            },
        }
        await self._client.create(KINDS[PersistentVolume].at("v1"), "", volume)

    # -- resource claims ----------------------------------------------------------------------------------------------

    async def _claims(self) -> None:
        claims, pods = await self._all(ResourceClaim), await self._all(Pod)
        there = {pod.metadata.uid for pod in pods}
        for claim in claims:
            users = claim.status.reserved_for
            left = [{"resource": "pods", "name": u.name, "uid": u.uid} for u in users if u.uid in there]
            if len(left) < len(users):
                status = {"reservedFor": left, **({} if left else {"allocation": None})}
                await self._patch(claim, {"status": status}, "status")
