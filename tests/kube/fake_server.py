"""A small API server on loopback, over real HTTP, that can be told to misbehave.

It keeps objects and their history, pages lists, streams watches, and answers discovery for the kinds that it
was given. What it is asked is kept in `requests`; what it shall answer instead is put into `answers`.
"""

import asyncio
import json
import ssl
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from maniple.kube.client import Client
from maniple.kube.configuration import Configuration
from maniple.kube.credentials import Credentials, Fixed
from maniple.kube.kinds import KINDS, Kind
from maniple.kube.retry import Backoff
from maniple.objects.meta import Object

Raw = dict[str, Any]
END = None  # put into a watcher's queue, it ends the stream


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """What to answer instead of the truth, once, to requests whose path ends like this."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = ""
    ending: str = ""
    watch: bool | None = None
    carry_out: bool = False  # do it all the same: the answer is lost, not the request
    cut: bool = False  # close the connection without an answer


def status(code: int, reason: str, message: str = "told so", **details: Any) -> bytes:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return json.dumps({**body, "message": message, "details": details}).encode()


class FakeServer:
    def __init__(self, *structs: type[Object], tls: ssl.SSLContext | None = None) -> None:
        self.kinds: set[Kind] = {KINDS[struct] for struct in structs}
        self.requests: list[Asked] = []
        self.answers: deque[Answer] = deque()
        self.slept: list[float] = []
        self.version = 10
        self.oldest = 0
        self._objects: dict[str, dict[str, Raw]] = {}
        self._history: list[tuple[str, int, Raw]] = []
        self._watchers: dict[asyncio.Queue[Raw | bytes | None], str] = {}
        self._snapshots: dict[str, list[Raw]] = {}
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self.url = ""
        # While it is not set, requests wait; and how many do, now and at most.
        self.gate = asyncio.Event()
        self.gate.set()
        self.under_way = 0
        self.most_under_way = 0

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *error: object) -> None:
        self.cut_watches()
        assert self._runner is not None
        await self._runner.cleanup()

    def client(self, credentials: Credentials | None = None, **settings: Any) -> Client:
        """A client that notes its pauses instead of making them."""

        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)
            await asyncio.sleep(0)

        configuration = Configuration(self.url, "a test", credentials=credentials or Fixed())
        defaults: Raw = {
            "backoff": Backoff(chance=lambda: 1.0),
            "sleep": sleep,
            "attempts": 6,
            "seconds": 5.0,
        }
        return Client(configuration, **{**defaults, **settings})

    # ---- what is there

    def put(self, struct: type[Object], key: str, **fields: Any) -> Raw:
        kind = KINDS[struct]
        things = self._objects.setdefault(_path(kind), {})
        kind_of_event = "MODIFIED" if key in things else "ADDED"
        self.version += 1
        namespace, _, name = key.rpartition("/")
        uid = things[key]["metadata"]["uid"] if key in things else f"uid-{self.version}"
        metadata = {"name": name, "uid": uid, "resourceVersion": str(self.version)}
        if namespace:
            metadata["namespace"] = namespace
        api_version = kind.at(kind.versions[0]).api_version
        raw = {"apiVersion": api_version, "kind": struct.kind, "metadata": metadata, **fields}
        things[key] = raw
        self._tell(_path(kind), kind_of_event, raw)
        return raw

    def remove(self, struct: type[Object], key: str) -> None:
        path = _path(KINDS[struct])
        raw = self._objects[path].pop(key)
        self.version += 1
        last = {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(self.version)}}
        self._tell(path, "DELETED", last)

    def _tell(self, path: str, kind_of_event: str, raw: Raw) -> None:
        event = {"type": kind_of_event, "object": raw}
        self._history.append((path, self.version, event))
        self.send(event, path)

    def send(self, line: Raw | bytes | None, path: str = "") -> None:
        """To everybody who watches: an event, bytes as they are, or the end."""
        for queue, watched in self._watchers.items():
            if not path or watched == path:
                queue.put_nowait(line)

    def cut_watches(self) -> None:
        self.send(END)

    def compact(self) -> None:
        """Forget the history: watches can begin from now only."""
        self.version += 1
        self.oldest = self.version
        self._history.clear()
        self._snapshots.clear()

    @property
    def watching(self) -> int:
        return len(self._watchers)

    def asked(self, method: str = "", ending: str = "", **query: str) -> list[Asked]:
        return [
            each
            for each in self.requests
            if method in ("", each.method)
            and each.path.endswith(ending)
            and all(each.query.get(name) == value for name, value in query.items())
        ]

    # ---- HTTP

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.requests.append(
            Asked(request.method, request.path, dict(request.query), dict(request.headers), body)
        )
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await self.gate.wait()
        self.under_way -= 1
        told = self._told(request)
        if told is not None:
            if told.carry_out:
                await self._answer(request, body)
            if told.cut:
                assert request.transport is not None
                request.transport.abort()
            return web.Response(status=told.status, body=told.body, headers=dict(told.headers))
        return await self._answer(request, body)

    def _told(self, request: web.Request) -> Answer | None:
        for answer in self.answers:
            if (
                answer.method in ("", request.method)
                and request.path.endswith(answer.ending)
                and answer.watch in (None, "watch" in request.query)
            ):
                self.answers.remove(answer)
                return answer
        return None

    async def _answer(self, request: web.Request, body: bytes) -> web.StreamResponse:
        contents = self._contents(request.path)
        if contents is not None:
            return web.json_response(contents)
        path = request.path
        if request.method == "GET" and any(_path(kind) == path for kind in self.kinds):
            if "watch" in request.query:
                return await self._watch(request)
            return self._list(request)
        return web.Response(status=404, body=status(404, "NotFound", path))

    def _contents(self, path: str) -> Raw | None:
        """The pages of discovery."""
        if path == "/api":
            return {"versions": ["v1"]}
        groups: dict[str, set[str]] = {}
        plurals: dict[str, list[Raw]] = {}
        for kind in self.kinds:
            version = kind.versions[-1]
            root = f"/apis/{kind.group}" if kind.group else "/api"
            groups.setdefault(root, set()).add(version)
            plurals.setdefault(f"{root}/{version}", []).append({"name": kind.plural})
        if path in groups and path != "/api":
            return {"versions": [{"version": version} for version in sorted(groups[path])]}
        return {"resources": plurals[path]} if path in plurals else None

    def _list(self, request: web.Request) -> web.Response:
        token = request.query.get("continue", "")
        name, _, offset = token.partition(":")
        if token and name not in self._snapshots:
            return web.Response(status=410, body=status(410, "Expired"))
        if not token:
            name = str(self.version)
            self._snapshots[name] = [*self._objects.get(request.path, {}).values()]
        items, begin = self._snapshots[name], int(offset or 0)
        end = begin + int(request.query.get("limit", len(items) or 1))
        metadata = {"resourceVersion": name, "continue": f"{name}:{end}" if end < len(items) else ""}
        return web.json_response({"metadata": metadata, "items": items[begin:end] or None})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        if since < self.oldest:
            expired = json.loads(status(410, "Expired", "too old resource version"))
            await response.write(json.dumps({"type": "ERROR", "object": expired}).encode() + b"\n")
            return response
        queue: asyncio.Queue[Raw | bytes | None] = asyncio.Queue()
        for path, version, event in self._history:
            if path == request.path and version > since:
                queue.put_nowait(event)
        self._watchers[queue] = request.path
        try:
            while (line := await queue.get()) is not END:
                await response.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
        finally:
            del self._watchers[queue]
        return response


def _path(kind: Kind) -> str:
    return kind.at(kind.versions[-1]).path()


async def eventually(seen: Callable[[], object]) -> None:
    """Waits for what must come; how long it takes is not judged."""
    async with asyncio.timeout(30):
        while not seen():
            await asyncio.sleep(0.002)


def names(things: Iterable[Object]) -> list[str]:
    return [thing.metadata.name for thing in things]
