"""Objects of any kind, read and written one at a time: for commands that act on a cluster for a person.

A kind is found by what an owner reference says of it, so that owners need no table here. With `dry_run` the server
checks everything and keeps nothing.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from maniple.kube.client import MERGE_PATCH, Body, Client
from maniple.kube.discovery import Discovery
from maniple.kube.errors import ApiError
from maniple.kube.kinds import KINDS, PODS, Resource
from maniple.objects.meta import Object

_DRY = {"dryRun": "All"}


class Editor:
    def __init__(self, client: Client, *, dry_run: bool = False) -> None:
        self._client = client
        self._query: Mapping[str, str] = _DRY if dry_run else {}
        self._dry_run = dry_run
        self._discovery = Discovery(client)
        self._kinds: dict[str, dict[str, Resource]] = {}

    # -- where ---------------------------------------------------------------------------------------------------------

    async def known(self, kind: type[Object]) -> Resource | None:
        """One of our kinds, in the version that is served; None if it is not."""
        return await self._discovery.find(KINDS[kind])

    async def named(self, api_version: str, kind: str) -> Resource | None:
        """A kind as an owner reference names it; None if the server does not serve it."""
        if api_version not in self._kinds:
            self._kinds[api_version] = await self._look(api_version)
        return self._kinds[api_version].get(kind)

    async def _look(self, api_version: str) -> dict[str, Resource]:
        group, _, version = api_version.rpartition("/")
        try:
            answer = await self._client.request(
                "GET", f"/apis/{api_version}" if group else f"/api/{api_version}"
            )
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return {}
            raise
        found = {}
        for one in msgspec.json.decode(answer).get("resources", ()):
            if "/" not in one["name"]:
                found[one["kind"]] = Resource(group, version, one["name"], bool(one["namespaced"]))
        return found

    # -- reading -------------------------------------------------------------------------------------------------------

    async def get(self, resource: Resource, key: str) -> Body | None:
        try:
            return await self._client.get(resource, key)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    async def pods_in(self, namespace: str) -> list[Body]:
        answer = msgspec.json.decode(await self._client.request("GET", PODS.path_in(namespace)))
        found: list[Body] = answer.get("items", [])
        return found

    # -- writing -------------------------------------------------------------------------------------------------------

    async def create(self, resource: Resource, namespace: str, body: Body) -> None:
        path = resource.path_in(namespace)
        await self._client.request("POST", path, query=self._query, body=body)

    async def patch(self, resource: Resource, key: str, body: Body) -> None:
        """Merge a patch into the object; a conflict if another has its name by now and the patch names the uid."""
        path = resource.path(key)
        await self._client.request(
            "PATCH", path, query=self._query, body=body, content_type=MERGE_PATCH, idempotent=True
        )

    async def delete(self, resource: Resource, key: str, uid: str) -> None:
        """Delete this object, and what it owns in the background; succeeds if it is gone already."""
        body: Body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        if self._dry_run:
            body["dryRun"] = ["All"]
        try:
            await self._client.request("DELETE", resource.path(key), body=body, idempotent=True)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise

    async def evict(self, pod: Mapping[str, Any]) -> bool:
        """Evict a pod by the Eviction API; false if a disruption budget keeps it now."""
        metadata = pod["metadata"]
        options: Body = {"preconditions": {"uid": metadata["uid"]}}
        if self._dry_run:
            options["dryRun"] = ["All"]
        body: Body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
            "deleteOptions": options,
        }
        path = PODS.path(f"{metadata['namespace']}/{metadata['name']}", "eviction")
        try:
            await self._client.request("POST", path, body=body)
        except ApiError as error:
            if error.status == HTTPStatus.TOO_MANY_REQUESTS:
                return False
            if error.status != HTTPStatus.NOT_FOUND:
                raise
        return True
