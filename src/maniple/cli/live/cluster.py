"""The cluster under a live measurement: whether it may be used, what is created on it, and its removal."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any

import msgspec

from maniple.cli import InputError
from maniple.cli.live import objects
from maniple.cli.live.dialects import DIALECTS, QUEUES_OF_KAI, Dialect
from maniple.cli.live.objects import Raw
from maniple.kube import crds
from maniple.kube.client import Client
from maniple.kube.errors import ApiError
from maniple.kube.kinds import KINDS, PODS, Resource
from maniple.objects.core import Namespace, Node

CONCURRENCY = 32
NODES = KINDS[Node].at("v1")
NAMESPACES = KINDS[Namespace].at("v1")
GROUPS = [*dict.fromkeys(dialect.groups for dialect in DIALECTS.values())]
_OURS = {"labelSelector": objects.LABEL}


class Stage:
    """The namespace of one run, and its nodes."""

    def __init__(self, client: Client, dialect: Dialect, gang: int) -> None:
        self.client = client
        self.namespace = f"maniple-bench-{secrets.token_hex(3)}"
        self.gang = gang
        self.nodes = 0
        self._dialect = dialect

    async def open(self, *, beside_others: bool) -> None:
        """Remove what an earlier run left, refuse a cluster that is in use, create definitions and namespace."""
        await self._remove_all()
        if not beside_others:
            await self._refuse_if_in_use()
        async for _ in crds.install(self.client, crds.manifests(self._dialect.definitions)):
            pass
        for queue in self._dialect.queues:
            await self.client.create(QUEUES_OF_KAI, "", queue)
        await self.client.create(NAMESPACES, "", objects.namespace(self.namespace))

    async def close(self) -> None:
        await self._remove_all()

    async def add_nodes(self, wanted: int) -> None:
        bodies = [objects.node(number) for number in range(self.nodes, wanted)]
        await at_once([self._create(NODES, body) for body in bodies])
        self.nodes = max(self.nodes, wanted)

    async def create_gangs(self, names: Sequence[str], concurrency: int = CONCURRENCY) -> dict[str, float]:
        """Gangs of pending pods, group by group; by gang: when the server had answered for the last of its pods."""
        created: dict[str, float] = {}

        async def one(name: str) -> None:
            await self._create(self._dialect.groups, self._dialect.group(name, self.gang))()
            bodies = [self._member(name, each) for each in self.pods_of(name)]
            await asyncio.gather(*(self._create(PODS, body)() for body in bodies))
            created[name] = time.perf_counter()

        await at_once([partial(one, name) for name in names], max(1, concurrency // self.gang))
        return created

    async def create_running(self, names: Sequence[str]) -> None:
        """Gangs whose pods are on nodes already, evenly over all of them."""
        bodies: list[tuple[Resource, Raw]] = []
        place = 0
        for name in names:
            bodies.append((self._dialect.groups, self._dialect.group(name, self.gang)))
            for each in self.pods_of(name):
                on = objects.node_name(place % self.nodes)
                bodies.append((PODS, self._member(name, each, on)))
                place += 1
        await at_once([self._create(resource, body) for resource, body in bodies])

    async def create_single(self, names: Iterable[str], scheduler: str) -> None:
        """Pods without a gang."""
        await at_once([self._create(PODS, objects.pod(name, scheduler)) for name in names])

    def _member(self, gang: str, name: str, on: str = "") -> Raw:
        return objects.pod(name, self._dialect.scheduler, {self._dialect.annotation: gang}, on=on)

    def pods_of(self, gang: str) -> list[str]:
        return objects.members(gang, self.gang)

    async def remove_work(self) -> None:
        """All pods and groups; the nodes stay."""
        for resource in (PODS, self._dialect.groups):
            await self._remove_in(resource, self.namespace)

    def _create(self, resource: Resource, body: Raw) -> Callable[[], Awaitable[Any]]:
        return lambda: self.client.create(resource, self.namespace, body)

    async def _remove_all(self) -> None:
        for name in await self._names(NAMESPACES, _OURS):
            for resource in (PODS, *GROUPS):
                await self._remove_in(resource, name)
            await self.client.delete(NAMESPACES, name)
        await self.client.request("DELETE", NODES.path(), query=_OURS)
        if await self._serves(QUEUES_OF_KAI):
            await self.client.request("DELETE", QUEUES_OF_KAI.path(), query=_OURS)

    async def _remove_in(self, resource: Resource, namespace: str) -> None:
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        path = resource.path_in(namespace)
        if not await self._serves(resource):
            return
        # A page at a time: the deletion of a collection ends with the time limit of one request.
        while await self._count(path):
            await self.client.request("DELETE", path, query={"limit": "2000"}, body=options)

    async def _serves(self, resource: Resource) -> bool:
        """Whether the cluster has a resource; its own ones it has."""
        if not resource.group:
            return True
        try:
            await self.client.request("GET", resource.path(), query={"limit": "1"})
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    async def _count(self, path: str) -> int:
        answer = msgspec.json.decode(await self.client.request("GET", path, query={"limit": "1"}))
        return len(answer.get("items") or ())

    async def _names(self, resource: Resource, query: dict[str, str]) -> list[str]:
        answer = msgspec.json.decode(await self.client.list(resource, query))
        return [str(item["metadata"]["name"]) for item in answer.get("items") or ()]

    async def _refuse_if_in_use(self) -> None:
        found = {
            name: await self._count(resource.path()) for name, resource in (("nodes", NODES), ("pods", PODS))
        }
        if any(found.values()):
            kinds = " and ".join(name for name, number in found.items() if number)
            raise InputError(
                f"{self.client.configuration.server}: this cluster has {kinds} of its own; "
                "use an empty one, such as `make plane` starts, or give --beside-others"
            )


async def at_once(calls: Iterable[Callable[[], Awaitable[Any]]], concurrency: int = CONCURRENCY) -> None:
    """Carry out all of them, in order, so many at a time."""
    left = iter(calls)

    async def work() -> None:
        for call in left:
            await call()

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
