"""Follows the objects that the rules look up, and reads single ones that the caches do not have yet."""

import asyncio
import logging
import re
from contextlib import aclosing

from maniple.admission.verdict import NAMESPACE, Lookup
from maniple.admission.world import World
from maniple.kube.client import Client
from maniple.kube.cluster import KubeCluster
from maniple.kube.informer import LOOK_AGAIN_SECONDS, Change
from maniple.objects.core import Namespace
from maniple.objects.load import ObjectError
from maniple.objects.meta import Object

log = logging.getLogger(__name__)

# The API server waits five seconds for an answer, and everything else takes milliseconds.
LOOKUP_SECONDS = 2.0
# What tenants write becomes part of a path: no object has another name than such a one.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class Follower:
    """Keeps a world up to date while `run` runs; `synced` is set when every kind has been listed."""

    def __init__(self, client: Client, world: World, *, look_again: float = LOOK_AGAIN_SECONDS) -> None:
        self._world = world
        self._port = KubeCluster(client, "maniple-admission", look_again=look_again)
        self.synced = asyncio.Event()

    async def run(self) -> None:
        async with aclosing(self._port.changes(self._world.kinds)) as changes:
            async for change in changes:
                self._take(change)

    def _take(self, change: Change) -> None:
        world = self._world
        match change.type:
            case "put" if change.object is not None:
                world.apply(change.object)
            case "gone" if change.object is not None:
                world.delete(change.object)
            case "bad":
                log.debug("%s", change.problem)
            case "sync" | "absent" if change.kind is not None:
                world.know(change.kind, known=True)
            case "forbidden" if change.kind is not None:
                world.know(change.kind, known=False)
                log.warning("%s may not be listed: names of this kind are not checked", change.kind.kind)
            case "synced":
                self.synced.set()

    async def look_up(self, names: tuple[Lookup, ...]) -> bool:
        """Read what the caches did not have; whether any of it exists. Raises `ApiError` or `TimeoutError`."""
        found = False
        async with asyncio.timeout(LOOKUP_SECONDS):
            for one in names:
                kinds = (Namespace,) if one.what == NAMESPACE else self._world.queue_kinds
                for kind in kinds if _NAME.fullmatch(one.name) else ():
                    found |= await self._read(kind, one.name)
        return found

    async def _read(self, kind: type[Object], name: str) -> bool:
        try:
            item = await self._port.read(kind, name)
        except ObjectError:
            return False  # it cannot be read, and counts as absent
        if item is not None:
            self._world.apply(item)
        return item is not None
