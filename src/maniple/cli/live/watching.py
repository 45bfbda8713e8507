"""When pods were bound, as a watch of the cluster shows it: the same clock for every scheduler that is measured."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import msgspec

from maniple.kube.client import Client
from maniple.kube.decode import Lines
from maniple.kube.kinds import PODS

# Without a bind for so long, something is wrong.
PATIENCE_SECONDS = 120.0
_SILENCE_SECONDS = 3600.0


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Status(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _Line(msgspec.Struct):
    type: str
    object: _Pod


_LINE = msgspec.json.Decoder(_Line)


class NotBoundError(Exception):
    """Pods were not bound in time; the message says how many."""


class Bindings:
    """By pod: when the watch showed it bound."""

    def __init__(self, namespace: str) -> None:
        self.bound: dict[str, float] = {}
        self.started: set[str] = set()
        self._namespace = namespace
        self._news = asyncio.Event()

    def forget(self) -> None:
        self.bound.clear()
        self.started.clear()

    async def wait(self, names: Iterable[str], seconds: float = PATIENCE_SECONDS) -> None:
        """Until these are bound; raises `NotBoundError` after so many seconds without a bind."""
        missing = set(names)
        while missing := {name for name in missing if name not in self.bound}:
            self._news.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._news.wait()
            except TimeoutError:
                raise NotBoundError(
                    f"{len(missing)} pods are not bound after {seconds:g} s without a bind"
                ) from None

    def take(self, line: bytes) -> None:
        event = _LINE.decode(line)
        pod = event.object
        if event.type == "DELETED" or pod.metadata.namespace != self._namespace or not pod.spec.node_name:
            return
        name = pod.metadata.name
        if name not in self.bound:
            self.bound[name] = time.perf_counter()
            self._news.set()
        if pod.status.phase != "Pending":
            self.started.add(name)


@asynccontextmanager
async def bindings(client: Client, namespace: str) -> AsyncIterator[Bindings]:
    """A watch of the pods of a namespace, from now on."""
    found = Bindings(namespace)
    opened = asyncio.Event()

    async def read() -> None:
        # A server may end a watch at any time; a new one begins with all that exists.
        while True:
            async with client.watch(PODS, {"timeoutSeconds": "86400"}, _SILENCE_SECONDS) as chunks:
                opened.set()
                lines = Lines()
                async for chunk in chunks:
                    for line in lines.feed(chunk):
                        found.take(line)

    async with asyncio.TaskGroup() as group:
        reading = group.create_task(read())
        await opened.wait()
        try:
            yield found
        finally:
            reading.cancel()
