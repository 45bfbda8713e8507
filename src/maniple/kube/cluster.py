"""The port through which the running scheduler reads and writes a real cluster.

`live/` uses this and, in simulations, an object with the same interface. Reading is one stream of changes
over all kinds. Every write may be repeated without harm, and raises `ApiError` if it did not happen.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from maniple.kube.client import STRATEGIC_PATCH, Body, Client
from maniple.kube.discovery import Discovery
from maniple.kube.errors import ApiError
from maniple.kube.events import EventRecorder, EventType
from maniple.kube.informer import LOOK_AGAIN_SECONDS, Change, Informer
from maniple.kube.kinds import KINDS, PODS, REVIEWS, Kind, resource_of
from maniple.kube.watch import WATCH_SECONDS
from maniple.objects.core import Node, Pod
from maniple.objects.covers import covers
from maniple.objects.load import load
from maniple.objects.meta import Condition, Object
from maniple.objects.owners import WorkloadOwner

# Bound on unread changes. At the bound the watches are not read, the server drops them, and they resume
# later.
WAITING_CHANGES = 20_000
# Without these every decision would be wrong; without any other kind, what depends on it waits.
ESSENTIAL: tuple[type[Object], ...] = (Pod, Node)


class KubeCluster:
    """A cluster behind an open `Client`; `controller` is the name under which events are reported."""

    def __init__(
        self,
        client: Client,
        controller: str = "maniple",
        instance: str = "",
        *,
        look_again: float = LOOK_AGAIN_SECONDS,
        watch_seconds: int = WATCH_SECONDS,
        recorder: EventRecorder | None = None,
    ) -> None:
        self._client = client
        self._discovery = Discovery(client)
        self._look_again = look_again
        self._watch_seconds = watch_seconds
        self._recorder = recorder or EventRecorder(client, controller, instance or socket.gethostname())

    async def changes(self, kinds: Iterable[type[Object]]) -> AsyncGenerator[Change]:
        """The changes of all kinds in one stream: in order within a kind, in no order between kinds.

        "synced" comes once, when every kind has been listed, found absent or found forbidden; not while one of
        `ESSENTIAL` is forbidden. Close the stream (`aclosing`) to stop watching.
        """
        waiting: asyncio.Queue[Change | Exception] = asyncio.Queue(WAITING_CHANGES)
        wanted = tuple(dict.fromkeys(kinds))
        unlisted = set(wanted)
        tasks = [
            asyncio.create_task(self._follow(KINDS[kind], waiting), name=f"informer of {KINDS[kind]}")
            for kind in wanted
        ]
        try:
            if not unlisted:
                yield Change("synced", None)
            while True:
                change = await waiting.get()
                if isinstance(change, Exception):
                    raise change
                yield change
                if unlisted and change.kind is not None and _settles(change):
                    unlisted.discard(change.kind)
                    if not unlisted:
                        yield Change("synced", None)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _pause_for(self, kind: Kind) -> float:
        """Of some fifty kinds of owners most clusters have a few: looking for the others costs little."""
        is_owner = issubclass(kind.struct, WorkloadOwner)
        return max(self._look_again, LOOK_AGAIN_SECONDS) if is_owner else self._look_again

    async def _follow(self, kind: Kind, waiting: asyncio.Queue[Change | Exception]) -> None:
        informer = Informer(
            self._client,
            kind,
            self._discovery,
            look_again=self._pause_for(kind),
            watch_seconds=self._watch_seconds,
        )
        try:
            async with aclosing(aiter(informer)) as changes:
                async for change in changes:
                    await waiting.put(change)
        except Exception as error:
            # An informer recovers from what it can; any other error must not end it silently.
            await waiting.put(error)

    async def bind(self, pod: Pod, node: str, annotations: Mapping[str, str] | None = None) -> None:
        """Bind a pod to a node and add annotations to it; succeeds if it is on that node already."""
        metadata = pod.metadata
        binding: Body = {
            "apiVersion": "v1",
            "kind": "Binding",
            # With the uid the server refuses to bind a new pod of the same name.
            "metadata": _without_empty(
                {
                    "name": metadata.name,
                    "namespace": metadata.namespace or "default",
                    "uid": metadata.uid,
                    "annotations": dict(annotations or {}),
                }
            ),
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            await self._client.create(PODS, pod.key, binding, subresource="binding", idempotent=True)
        except ApiError as error:
            if error.status != 409 or not await self._is_bound(pod, node):
                raise

    async def _is_bound(self, pod: Pod, node: str) -> bool:
        current = await self._current(pod)
        spec = current.get("spec") if current is not None else None
        return isinstance(spec, dict) and spec.get("nodeName") == node

    async def _current(self, pod: Pod) -> Body | None:
        """This pod (same uid) as it is now, or None if it is gone, even if another one has its name."""
        try:
            current = await self._client.get(PODS, pod.key)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        metadata = current.get("metadata")
        uid = metadata.get("uid") if isinstance(metadata, dict) else None
        return current if not pod.metadata.uid or uid == pod.metadata.uid else None

    async def evict(self, pod: Pod, grace: int | None = None) -> None:
        """Delete this pod (same uid), with its own grace period or `grace` seconds; succeeds if it is gone
        already."""
        options: Body = {}
        if pod.metadata.uid:
            options["preconditions"] = {"uid": pod.metadata.uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        try:
            await self._client.delete(PODS, pod.key, options)
        except ApiError as error:
            if error.status == 404:
                return
            if error.status != 409 or await self._current(pod) is not None:
                raise

    async def patch_status(
        self, kind: type[Object], key: str, patch: Mapping[str, Any], subresource: bool | None = None
    ) -> None:
        """Merge `patch`, such as {"status": {...}}, into an object.

        The kind knows whether its status is a subresource.
        """
        known = KINDS[kind]
        resource = await self._discovery.find(known)
        if resource is None:
            raise ApiError(404, "NotFound", f"{known} is not installed on this cluster")
        if subresource is None:
            subresource = known.status_subresource
        await self._client.patch(resource, key, dict(patch), subresource="status" if subresource else "")

    async def patch_pod_condition(
        self, pod: Pod, condition: Condition, now: datetime, nominated_node: str | None = None
    ) -> None:
        """Set one condition of this pod and, unless None, its nominated node; an empty name clears it.

        The transition time is `now`, unless the pod already has the condition with the same status.
        """
        old = next((each for each in pod.status.conditions if each.type == condition.type), Condition())
        since = old.last_transition_time if old.status == condition.status else None
        new = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": (since or now).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        patch: Body = {"status": {"conditions": [new]}}
        if nominated_node is not None:
            patch["status"]["nominatedNodeName"] = nominated_node or None
        if pod.metadata.uid:
            patch["metadata"] = {"uid": pod.metadata.uid}
        # Only this kind of patch merges lists by their key, so that the other conditions stay.
        try:
            await self._client.patch(PODS, pod.key, patch, subresource="status", content_type=STRATEGIC_PATCH)
        except ApiError as error:
            # The server reports a changed uid as invalid: another pod has the name by now.
            if error.status == 422 and "metadata.uid" in error.fields:
                raise ApiError(409, "Conflict", f"{pod.key} is another pod by now") from error
            raise

    async def create(self, raw: Mapping[str, Any], *, same: bool = False) -> None:
        """Create an object; an existing one of that name is left as it is.

        If it has to be the `same`, the existing object must contain everything that this one states.
        """
        metadata, resource = raw.get("metadata") or {}, resource_of(raw)
        namespace = metadata.get("namespace") or "default"
        try:
            await self._client.create(resource, namespace, dict(raw), idempotent=True)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            if same:
                key = f"{namespace}/{metadata['name']}" if resource.namespaced else str(metadata["name"])
                if not covers(await self._client.get(resource, key), raw):
                    raise

    async def read(self, kind: type[Object], key: str) -> Object | None:
        """An object as it is now, with its version; None if it does not exist."""
        resource = await self._discovery.find(KINDS[kind])
        if resource is None:
            return None
        try:
            return load(await self._client.get(resource, key))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def change(self, item: Object, patch: Mapping[str, Any], *, status: bool = False) -> Object:
        """Merge a patch into an object or its status; a conflict if it changed since it was read."""
        resource = await self._discovery.find(KINDS[type(item)])
        if resource is None:
            raise ApiError(404, "NotFound", f"{KINDS[type(item)]} is not installed on this cluster")
        metadata = {
            **patch.get("metadata", {}),
            "uid": item.metadata.uid,
            "resourceVersion": item.metadata.resource_version,
        }
        body = {**patch, "metadata": metadata}
        answer = await self._client.patch(resource, item.key, body, subresource="status" if status else "")
        return load(answer)

    async def delete(self, item: Object) -> None:
        """Delete this object (same uid); succeeds if it is gone already or another has its name."""
        resource = await self._discovery.find(KINDS[type(item)])
        if resource is None:
            return
        options: Body = {"preconditions": {"uid": item.metadata.uid}} if item.metadata.uid else {}
        try:
            await self._client.delete(resource, item.key, options)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    async def may(self, verb: str, kind: type[Object], namespace: str = "") -> bool:
        """Whether this user may do something with objects of a kind, in all namespaces unless one is given."""
        row = KINDS[kind]
        about = {"verb": verb, "group": row.group, "resource": row.plural, "namespace": namespace}
        review: Body = {
            "apiVersion": REVIEWS.api_version,
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": about},
        }
        answer = await self._client.create(REVIEWS, "", review, idempotent=True)
        status = answer.get("status")
        return isinstance(status, dict) and status.get("allowed") is True

    async def record_event(
        self,
        regarding: Object,
        event_type: EventType,
        reason: str,
        note: str,
        action: str = "Scheduling",
        *,
        annotations: Mapping[str, str] | None = None,
    ) -> bool:
        """Record an event on an object; false if it was held back or lost, which is never an error."""
        return await self._recorder.record(regarding, event_type, reason, note, action, annotations)


def _settles(change: Change) -> bool:
    """Whether decisions need not wait for the kind any longer."""
    if change.type == "forbidden":
        return change.kind not in ESSENTIAL
    return change.type in ("sync", "absent")


def _without_empty(body: Body) -> Body:
    return {name: value for name, value in body.items() if value}
