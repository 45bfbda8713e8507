"""The two clusters that the same scenarios run on: the embedded one in virtual time, and a real API server.

A scenario sees only what both have. What goes wrong on request goes wrong in the way of each: the embedded
store cuts its watches and forgets; in front of the real server stands a relay that hangs up, and the server
is restarted on a compacted database.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from maniple.kube import crds
from maniple.kube.client import Client
from maniple.kube.cluster import KubeCluster
from maniple.kube.configuration import load_configuration
from maniple.kube.errors import ApiError
from maniple.kube.kinds import DEFINITIONS, EVENTS, KINDS
from maniple.kube.watch import list_all
from maniple.live.port import Clock, Port, SystemClock
from maniple.objects.core import Namespace, Pod
from maniple.objects.load import load
from maniple.objects.meta import Object
from maniple.objects.owners import OWNERS
from maniple.sim.cluster import SimCluster
from maniple.sim.faults import Fault
from maniple.sim.store import moment
from maniple.sim.world import World as SimWorld
from plane.plane import Plane
from tests.live.controllers import Controllers
from tests.live.objects import NAMESPACE
from tests.live.relay import Relay


@dataclass(frozen=True, slots=True)
class Note:
    """An event as people see it."""

    regarding: str  # "Kind namespace/name"
    type: str
    reason: str
    note: str


SLOW = "example.com/slow"  # a finalizer of pods that take long to leave


class World(Protocol):
    clock: Clock
    inline: bool  # decide in the event loop's thread

    def port(self) -> Port:
        """What a scheduler is given."""

    async def create(self, raws: Iterable[Mapping[str, Any]]) -> None: ...

    async def delete(self, kind: type[Object], key: str) -> None:
        """At once, without a grace period."""

    async def begin_to_leave(self, pod: str) -> None:
        """Delete a pod with the finalizer `SLOW`: it terminates, and stays for the rest of the scenario."""

    async def patch(
        self, kind: type[Object], key: str, patch: dict[str, Any], *, status: bool = False
    ) -> None: ...

    def controllers(self) -> AbstractAsyncContextManager[None]:
        """While it lasts, volumes are bound and made, and those who are gone use no resource claims."""

    def refuse_volumes(self, claim: str, times: int) -> None:
        """So many times, no volume can be made for a claim."""

    async def objects(self, kind: type[Object]) -> list[Any]: ...

    async def notes(self) -> list[Note]: ...

    async def hang_up(self) -> None:
        """Every watch is cut, and none comes back until `reconnect`."""

    async def reconnect(self) -> None: ...

    async def forget(self) -> None:
        """The past is forgotten: where a watch was cut, it cannot be resumed."""

    def relists(self) -> int:
        """How often a kind was listed again because its watch could not be resumed."""


async def until(
    holds: Callable[[], Awaitable[object]], what: str, seconds: float = 120.0, every: float = 0.05
) -> None:
    """Wait for something to become true; fail with its name if it does not."""
    try:
        async with asyncio.timeout(seconds):
            while not await holds():
                await asyncio.sleep(every)
    except TimeoutError:
        raise AssertionError(f"not in {seconds:g} s: {what}") from None


class EmbeddedWorld:
    """The embedded cluster."""

    inline = True

    def __init__(self) -> None:
        self._world = SimWorld(start_seconds=0.1)
        self.clock: Clock = self._world.clock
        self._ports: list[SimCluster] = []

    def port(self) -> Port:
        self._ports.append(self._world.port())
        return self._ports[-1]

    async def create(self, raws: Iterable[Mapping[str, Any]]) -> None:
        for raw in raws:
            self._world.store.create(raw)

    async def delete(self, kind: type[Object], key: str) -> None:
        self._world.store.remove(kind, key)

    async def begin_to_leave(self, pod: str) -> None:
        self._world.store.patch(Pod, pod, {"metadata": {"deletionTimestamp": moment(self.clock.now())}})

    async def patch(
        self, kind: type[Object], key: str, patch: dict[str, Any], *, status: bool = False
    ) -> None:
        self._world.store.patch(kind, key, patch)

    def controllers(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()  # they are part of it

    def refuse_volumes(self, claim: str, times: int) -> None:
        self._world.volumes.faults.plan(Fault("provision", 422, times, claim))

    async def objects(self, kind: type[Object]) -> list[Any]:
        return [load(raw) for raw in self._world.store.list(kind)[0]]

    async def notes(self) -> list[Note]:
        return [
            Note(event.regarding, event.type, event.reason, event.note)
            for port in self._ports
            for event in port.events
        ]

    async def hang_up(self) -> None:
        self._world.store.cut(until_mended=True)

    async def reconnect(self) -> None:
        self._world.store.mend()

    async def forget(self) -> None:
        self._world.store.compact()

    def relists(self) -> int:
        return sum(port.relists for port in self._ports)


class _InformerLog(logging.Handler):
    """Counts what informers say that they do."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.relists = 0
        self._logger = logging.getLogger("maniple.kube.informer")
        self._logger.setLevel(logging.INFO)
        self._logger.addHandler(self)

    def close(self) -> None:
        self._logger.removeHandler(self)
        super().close()

    def emit(self, record: logging.LogRecord) -> None:
        self.relists += "listing again" in record.getMessage()


class RealWorld:
    """A real API server, reached by schedulers through a relay and by scenarios directly."""

    inline = False

    def __init__(self, plane: Plane, client: Client, behind: Client, relay: Relay) -> None:
        self.clock: Clock = SystemClock()
        self._plane = plane
        self._client = client
        self._behind = behind
        self._relay = relay
        self._informers = _InformerLog()
        self._controllers = Controllers(client)

    def port(self) -> Port:
        return KubeCluster(self._behind, look_again=0.5)

    def direct_port(self) -> Port:
        """The same without the relay, for whoever does not take part in what goes wrong."""
        return KubeCluster(self._client, look_again=0.5)

    async def create(self, raws: Iterable[Mapping[str, Any]]) -> None:
        # Many at once, as users do; in the order given as far as kinds depend on one another.
        gate = asyncio.Semaphore(32)

        async def one(raw: Mapping[str, Any]) -> None:
            async with gate:
                await KubeCluster(self._client).create(raw)

        await asyncio.gather(*(one(raw) for raw in raws))

    async def delete(self, kind: type[Object], key: str) -> None:
        await self._client.delete(_resource(kind), key, {"gracePeriodSeconds": 0})
        if kind is Pod:
            # kwok deletes by name what it sees leaving: were the name in use again by then, the new pod would go.
            await asyncio.sleep(1.0)

    async def begin_to_leave(self, pod: str) -> None:
        await self._client.delete(_resource(Pod), pod, {"gracePeriodSeconds": 3600})

    async def patch(
        self, kind: type[Object], key: str, patch: dict[str, Any], *, status: bool = False
    ) -> None:
        await self._client.patch(_resource(kind), key, patch, subresource="status" if status else "")

    def controllers(self) -> AbstractAsyncContextManager[None]:
        return self._controllers.running()

    def refuse_volumes(self, claim: str, times: int) -> None:
        self._controllers.refusals[claim] = times

    async def objects(self, kind: type[Object]) -> list[Any]:
        for version in KINDS[kind].versions:
            try:
                found = await list_all(self._client, KINDS[kind], KINDS[kind].at(version))
                return list(found.objects)
            except ApiError as error:
                if error.status != 404 or kind not in OWNERS:  # few custom owners are installed
                    raise
        return []

    async def notes(self) -> list[Note]:
        found = msgspec.json.decode(await self._client.list(EVENTS))
        notes = []
        for event in found["items"]:
            if event.get("reportingController") != "maniple":
                continue  # the API server and controllers record events of their own
            about = event["regarding"]
            key = "/".join(filter(None, (about.get("namespace"), about["name"])))
            notes.append(Note(f"{about['kind']} {key}", event["type"], event["reason"], event["note"]))
        return notes

    async def hang_up(self) -> None:
        await self._relay.close()

    async def reconnect(self) -> None:
        await self._relay.open()

    async def forget(self) -> None:
        self._plane.compact()
        await asyncio.to_thread(self._plane.restart_apiserver)

    def relists(self) -> int:
        return self._informers.relists

    def close(self) -> None:
        self._informers.close()


@asynccontextmanager
async def real_world(plane: Plane, dialect: str = "volcano") -> AsyncIterator[RealWorld]:
    """A world on a control plane that has nothing else, with the definitions and the namespace that scenarios use."""
    configuration = load_configuration(plane.kubeconfig)
    address = urlsplit(configuration.server)
    assert address.hostname is not None
    assert address.port is not None
    relay = Relay(address.hostname, address.port)
    await relay.open()
    through = replace(configuration, server=f"https://{address.hostname}:{relay.port}")
    try:
        async with Client(configuration) as client, Client(through) as behind, AsyncExitStack() as stack:
            if not await _has_definitions(client, dialect):
                async for _ in crds.install(client, crds.manifests(dialect)):
                    pass
            world = stack.enter_context(closing(RealWorld(plane, client, behind, relay)))
            await world.create(
                [{"apiVersion": "v1", "kind": Namespace.kind, "metadata": {"name": NAMESPACE}}]
            )
            yield world
    finally:
        await relay.close()


@cache
def _definitions(dialect: str) -> frozenset[str]:
    return frozenset(manifest.name for manifest in crds.manifests(dialect))


async def _has_definitions(client: Client, dialect: str) -> bool:
    """A plane that is used in turn keeps them (tests/live_support.py)."""
    found = msgspec.json.decode(await client.list(DEFINITIONS))
    return _definitions(dialect) <= {one["metadata"]["name"] for one in found["items"]}


def _resource(kind: type[Object]) -> Any:
    row = KINDS[kind]
    return row.at(row.versions[0])


async def pods_of(world: World, group: str) -> list[Pod]:
    """The pods of a group of either system."""
    pods = await world.objects(Pod)
    names = ("scheduling.k8s.io/group-name", "pod-group-name")
    return [p for p in pods if group in [p.metadata.annotations.get(name) for name in names]]
