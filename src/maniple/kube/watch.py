"""Lists in pages, and watches that resume after a cut: the two halves of an informer.

A list is consistent: if the server drops its version halfway, it begins again. A watch resumes from the last
version that it saw, for as long as the server has it; then `ExpiredError` is raised and the caller lists
again.
"""

import asyncio
import logging
import math
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Literal

from maniple.kube.client import Client
from maniple.kube.decode import (
    Bad,
    Envelope,
    Lines,
    ListBody,
    ObjectReader,
    read_envelope,
    read_list,
    read_position,
)
from maniple.kube.errors import ApiError, api_error
from maniple.kube.kinds import Kind, Resource
from maniple.objects.meta import Object

log = logging.getLogger(__name__)

PAGE = 500
# After this many restarts the list is requested in one piece, which cannot expire halfway.
RESTARTS = 3
# How long the server keeps a watch open; each one gets up to twice as long, so that they do not all end
# together. Shortly before the end it sends a bookmark, from which the next one resumes at no cost. A connection that
# is open but dead shows when that end does not come, so watches are short.
WATCH_SECONDS = 30
OVERDUE_SECONDS = 5.0
# A connection that lasted longer than this was a good one, even if no event arrived.
GOOD_SECONDS = 5.0
# The network or the server may be back soon, and there is nothing else to do.
_PASSING = frozenset({0, 401, 403, 408, 429})


EventType = Literal["put", "gone"]
_TYPES: dict[str, EventType] = {"ADDED": "put", "MODIFIED": "put", "DELETED": "gone"}


class ExpiredError(Exception):
    """The server no longer has the version from which to resume the watch: list again."""


@dataclass(slots=True)
class Page:
    """One page of a list; with `first` a list begins, and earlier pages are void."""

    first: bool
    resource_version: str
    objects: list[Object] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a watch: an object as it is now, or a deleted one in its last state."""

    type: EventType
    object: Object | Bad


class LogOnce:
    """Logs a problem once, not once per attempt, and logs when it is over."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._said = ""

    def say(self, message: str) -> None:
        level = logging.DEBUG if message == self._said else logging.WARNING
        log.log(level, "%s: %s", self._subject, message)
        self._said = message

    def over(self) -> None:
        if self._said:
            log.info("%s: works again", self._subject)
        self._said = ""


async def list_bodies(
    client: Client, kind: Kind, resource: Resource, limit: int = PAGE
) -> AsyncGenerator[tuple[bool, ListBody]]:
    """All pages of a list, undecoded; with True a list begins, and earlier pages are void."""
    token, restarts = "", 0
    while True:
        query = {"limit": str(limit)} if restarts <= RESTARTS else {}
        if token:
            query["continue"] = token
        try:
            body = read_list(await client.list(resource, query))
        except ApiError as error:
            if error.status != 410 or not token:
                raise
            restarts += 1
            token = ""
            log.info("%s: the list expired halfway (%s), beginning again", kind, error)
            continue
        yield not token, body
        token = body.metadata.continue_
        if not token:
            return
        await asyncio.sleep(0)


async def list_pages(
    client: Client, kind: Kind, resource: Resource, limit: int = PAGE
) -> AsyncGenerator[Page]:
    """All objects of a kind, page by page; the caller starts afresh whenever a page is `first`."""
    reader = ObjectReader(kind, resource)
    async with aclosing(list_bodies(client, kind, resource, limit)) as bodies:
        async for first, body in bodies:
            page = Page(first, body.metadata.resource_version)
            for raw in body.items or ():
                thing = reader.read(raw)
                if isinstance(thing, Bad):
                    page.bad.append(thing)
                else:
                    page.objects.append(thing)
            yield page


async def list_all(client: Client, kind: Kind, resource: Resource, limit: int = PAGE) -> Page:
    """The whole list as one page: the state of a kind at one version."""
    whole = Page(first=True, resource_version="")
    async with aclosing(list_pages(client, kind, resource, limit)) as pages:
        async for page in pages:
            if page.first:
                whole = page
            else:
                whole.objects += page.objects
                whole.bad += page.bad
                whole.resource_version = page.resource_version
    return whole


async def watch(
    client: Client,
    kind: Kind,
    resource: Resource,
    since: str,
    seconds: int = WATCH_SECONDS,
    overdue: float = OVERDUE_SECONDS,
) -> AsyncGenerator[Event]:
    """What happens to a kind after version `since`, forever, through cuts and restarts of the server.

    A watch that is silent for longer than it was to last is opened again. Raises `ExpiredError` if only a new list
    can help, and `ApiError` 404 if the kind is no longer served.
    """
    position = _Position(since, ObjectReader(kind, resource))
    log_once = LogOnce(f"watching {kind}")
    attempt = 0
    while True:
        before, opened = position.lines, math.inf
        retry_after = None
        failure = "the server ends the watch at once"
        lasting = round(seconds * (1 + random.random()))
        query = {
            "resourceVersion": position.version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(lasting),
        }
        try:
            async with (
                client.watch(resource, query, lasting + overdue) as chunks,
                aclosing(position.events(chunks)) as events,
            ):
                opened = time.monotonic()
                async for event in events:
                    log_once.over()
                    yield event
        except ApiError as error:
            _raise_unless_passing(error)
            failure, retry_after = str(error), error.retry_after
        if position.lines > before or time.monotonic() - opened > GOOD_SECONDS:
            log_once.over()
            attempt = 0
            log.debug("watching %s: resuming from %s", kind, position.version)
        else:
            log_once.say(failure)
            attempt += 1
            await client.sleep(client.backoff.pause(attempt - 1, retry_after))


def _raise_unless_passing(error: ApiError) -> None:
    if error.status == 404:
        raise error
    if error.status in _PASSING or (error.status >= 500 and "ResourceVersionTooLarge" not in error.causes):
        return
    raise ExpiredError(str(error)) from None


class _Position:
    """How far a watch has come: the last version and the count of lines."""

    def __init__(self, version: str, reader: ObjectReader) -> None:
        self.version = version
        self.lines = 0
        self._reader = reader

    async def events(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[Event]:
        lines = Lines()
        async for chunk in chunks:
            for line in lines.feed(chunk):
                event = self._read(line)
                self.lines += 1
                if event is not None:
                    yield event

    def _read(self, line: bytes) -> Event | None:
        event = self._reader.read_event(line)
        if event is not None and event.type in _TYPES:
            self.version = event.object.metadata.resource_version or self.version
            return Event(_TYPES[event.type], event.object)
        return self._read_other(read_envelope(line))

    def _read_other(self, envelope: Envelope) -> Event | None:
        """A bookmark, an error, or an object that did not decode."""
        if envelope.type == "BOOKMARK":
            self.version = read_position(envelope.object) or self.version
            return None
        if envelope.type not in _TYPES:
            raise ExpiredError(str(api_error(0, bytes(envelope.object))))
        thing = self._reader.read(envelope.object)
        version = thing.resource_version if isinstance(thing, Bad) else thing.metadata.resource_version
        self.version = version or self.version
        return Event(_TYPES[envelope.type], thing)
