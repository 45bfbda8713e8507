"""The objects of a cluster as they are now, as plain dictionaries; read-only: discovery and lists, nothing else.

For `maniple plan --kubeconfig`. A kind that the server does not serve, or does not let this user list, costs
only itself. The lists of different kinds are not of one moment, as with `kubectl get` of several kinds.
"""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec

from maniple.kube.client import Body, Client
from maniple.kube.decode import shallow
from maniple.kube.discovery import Discovery
from maniple.kube.errors import ApiError
from maniple.kube.kinds import KINDS, Kind, Resource
from maniple.kube.watch import list_bodies
from maniple.objects.meta import Object


@dataclass(slots=True)
class ClusterObjects:
    """What was listed, in the order of the kinds; which kinds are not served, and which were refused and why."""

    objects: list[Body] = field(default_factory=list)
    absent: list[type[Object]] = field(default_factory=list)
    refused: dict[type[Object], ApiError] = field(default_factory=dict)


async def read_cluster(client: Client, kinds: Iterable[type[Object]]) -> ClusterObjects:
    """All objects of these kinds; raises `ApiError` if the server cannot be reached or fails."""
    discovery = Discovery(client)
    wanted = list(dict.fromkeys(kinds))
    await _reach(client)
    lists = await asyncio.gather(*(_listed(client, discovery, KINDS[kind]) for kind in wanted))
    found = ClusterObjects()
    for kind, listed in zip(wanted, lists, strict=True):
        if listed is None:
            found.absent.append(kind)
        elif isinstance(listed, ApiError):
            found.refused[kind] = listed
        else:
            found.objects += listed
    return found


async def _reach(client: Client) -> None:
    """If the server is not there or does not know us there is one error, not one for each kind."""
    try:
        await client.request("GET", "/version")
    except ApiError as error:
        if error.status in (0, HTTPStatus.UNAUTHORIZED):
            raise


async def _listed(client: Client, discovery: Discovery, kind: Kind) -> list[Body] | ApiError | None:
    """The objects of a kind; None if it is not served, the error if this user may not list it."""
    try:
        resource = await discovery.find(kind)
        return None if resource is None else await _all(client, kind, resource)
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        if error.status == HTTPStatus.FORBIDDEN:
            return error
        raise


async def _all(client: Client, kind: Kind, resource: Resource) -> list[Body]:
    """Items of a list omit kind and version, which are the list's own."""
    named = {"apiVersion": resource.api_version, "kind": kind.struct.kind}
    objects: list[Body] = []
    async with aclosing(list_bodies(client, kind, resource)) as bodies:
        async for first, body in bodies:
            if first:
                objects.clear()
            objects += [{**named, **_decoded(item)} for item in body.items or ()]
    return objects


def _decoded(raw: msgspec.Raw) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(shallow(bytes(raw)))
    except msgspec.MsgspecError as error:
        raise ApiError(200, "BadAnswer", f"unreadable object in a list: {error}") from None
    return body if isinstance(body, dict) else {}
