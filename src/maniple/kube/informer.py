"""The state of one kind on the server, kept up to date: one list, then its changes.

`KubeCluster` runs one informer for each kind. The changes of a kind, applied in order, give the state of the
server: exactly after every "sync", a moment behind between two of them. Nothing is lost while the connection
is cut: after a new list, objects that vanished are reported as gone and those that changed as put.
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal

from maniple.kube.client import Client
from maniple.kube.decode import Bad
from maniple.kube.discovery import Discovery
from maniple.kube.errors import ApiError
from maniple.kube.kinds import Kind, Resource
from maniple.kube.watch import PAGE, WATCH_SECONDS, Event, ExpiredError, LogOnce, Page, list_all, watch
from maniple.objects.load import Problem
from maniple.objects.meta import Object
from maniple.objects.owners import WorkloadOwner

log = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 30.0

Struct = type[Object]
ChangeType = Literal["put", "gone", "bad", "sync", "absent", "forbidden", "synced"]


@dataclass(frozen=True, slots=True)
class Change:
    """One step of the state of a cluster.

    | type | meaning |
    |---|---|
    | put | `object` exists, new or changed |
    | gone | `object`, in its last known state, has been deleted |
    | bad | an object cannot be read, see `problem`; while that is so it counts as absent |
    | sync | all objects of this kind have been reported |
    | absent | the server does not have this kind; the informer keeps looking for it |
    | forbidden | this user may not list the kind, which has not been listed before; the informer keeps trying |
    | synced | every kind has reached its first sync, absent or forbidden (`kind` is None) |
    """

    type: ChangeType
    kind: Struct | None
    object: Object | None = None
    problem: Problem | None = None


class Informer:
    """An endless stream of changes of one kind; iterate over it once.

    `look_again` is the pause, in seconds, before looking again for a kind that the server does not have.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind,
        discovery: Discovery | None = None,
        *,
        look_again: float = LOOK_AGAIN_SECONDS,
        page: int = PAGE,
        watch_seconds: int = WATCH_SECONDS,
    ) -> None:
        self.kind = kind
        self._struct = kind.struct
        self._client = client
        self._discovery = discovery or Discovery(client)
        self._look_again = look_again
        self._page = page
        self._watch_seconds = watch_seconds
        self._known: dict[str, Object] = {}
        # Problems already reported and still current, by key, so that a new list does not repeat them.
        self._bad: dict[str, Problem] = {}

    async def __aiter__(self) -> AsyncGenerator[Change]:
        absent = False
        log_once = LogOnce(f"listing {self.kind}")
        attempt = 0
        listed_before = told = False
        while True:
            try:
                found = await self._list()
            except ApiError as error:
                log_once.say(str(error))
                if error.status == HTTPStatus.FORBIDDEN and not listed_before and not told:
                    told = True
                    yield Change("forbidden", self._struct)
                await self._client.sleep(self._client.backoff.pause(attempt, error.retry_after))
                attempt += 1
                continue
            log_once.over()
            attempt = 0
            if found is None:
                if not absent:
                    for change in self._vanish():
                        yield change
                    absent = True
                await self._client.sleep(self._look_again)
                continue
            if absent:
                log.info("%s: now installed", self.kind)
                absent = False
            listed_before = True
            resource, listed = found
            for change in self._replace(listed):
                yield change
            async with aclosing(self._follow(resource, listed.resource_version)) as changes:
                async for change in changes:
                    yield change

    async def _list(self) -> tuple[Resource, Page] | None:
        """The whole state, or None if the server does not have the kind."""
        resource = await self._discovery.find(self.kind)
        if resource is None:
            return None
        try:
            return resource, await list_all(self._client, self.kind, resource, self._page)
        except ApiError as error:
            if error.status != 404:
                raise
            self._discovery.forget(self.kind)
            return None

    async def _follow(self, resource: Resource, since: str) -> AsyncGenerator[Change]:
        """Changes until the server no longer has the version to resume from, or no longer has the kind."""
        stream = watch(self._client, self.kind, resource, since, self._watch_seconds)
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    for change in self._take(event):
                        yield change
        except ExpiredError as error:
            log.info("%s: listing again (%s)", self.kind, error)
        except ApiError as error:
            log.info("%s: looking again (%s)", self.kind, error)
            self._discovery.forget(self.kind)

    def _vanish(self) -> list[Change]:
        """The kind is absent, and so are all its objects."""
        level = logging.INFO if issubclass(self._struct, WorkloadOwner) else logging.WARNING
        log.log(
            level, "%s: not installed on this cluster; looking again every %g s", self.kind, self._look_again
        )
        gone = [Change("gone", self._struct, thing) for thing in self._known.values()]
        self._known.clear()
        self._bad.clear()
        return [*gone, Change("absent", self._struct)]

    def _replace(self, page: Page) -> list[Change]:
        """The differences between the known state and the list, deletions first."""
        listed = {thing.key: thing for thing in page.objects}
        changes = []
        for key, old in self._known.items():
            new = listed.get(key)
            if new is None or new.metadata.uid != old.metadata.uid:
                changes.append(Change("gone", self._struct, old))
        for key, new in listed.items():
            before = self._known.get(key)
            version = new.metadata.resource_version
            if before is None or not version or version != before.metadata.resource_version:
                changes.append(Change("put", self._struct, new))
        self._known = listed
        known, self._bad = self._bad, {}
        for bad in page.bad:
            self._bad[bad.key] = bad.problem
            if known.get(bad.key) != bad.problem:
                changes.append(Change("bad", self._struct, problem=bad.problem))
        return [*changes, Change("sync", self._struct)]

    def _take(self, event: Event) -> list[Change]:
        """The changes that one event implies."""
        thing = event.object
        if isinstance(thing, Bad):
            old = self._known.pop(thing.key, None)
            changes = [Change("gone", self._struct, old)] if old is not None else []
            if event.type == "gone":
                self._bad.pop(thing.key, None)
                return changes
            if self._bad.get(thing.key) != thing.problem:
                self._bad[thing.key] = thing.problem
                changes.append(Change("bad", self._struct, problem=thing.problem))
            return changes
        key = thing.key
        self._bad.pop(key, None)
        if event.type == "gone":
            self._known.pop(key, None)
            return [Change("gone", self._struct, thing)]
        before = self._known.get(key)
        self._known[key] = thing
        if before is not None and before.metadata.uid != thing.metadata.uid:
            return [Change("gone", self._struct, before), Change("put", self._struct, thing)]
        return [Change("put", self._struct, thing)]
