"""A proxy between one scheduler and the API server: it records what is written, and does what it is told to requests.

It speaks HTTP on loopback, so that faults can depend on the pod or the node that a request is about. What it does not
fault goes to the real server, with the caller's own credentials.
"""

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from maniple.kube.configuration import Configuration
from plane.control import free_port

_HOP = {"host", "connection", "transfer-encoding", "content-length", "accept-encoding"}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as far as a fault may depend on it."""

    method: str
    path: str
    query: dict[str, str]
    body: bytes

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query

    @property
    def resource(self) -> str:
        """The plural of what it is about: pods, nodes, leases."""
        parts = self.path.strip("/").split("/")
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        if len(parts) > 2 and parts[0] == "namespaces":
            parts = parts[2:]
        return parts[0] if parts else ""

    @property
    def bound_pod(self) -> str:
        """The name of the pod, if this is a bind."""
        parts = self.path.split("/")
        return parts[-2] if self.method == "POST" and parts[-1] == "binding" else ""

    @property
    def target(self) -> str:
        """The node, if this is a bind."""
        return str(json.loads(self.body)["target"]["name"]) if self.bound_pod else ""


@dataclass(frozen=True, slots=True)
class Fault:
    """Answer with a status after some seconds; with status 0 the request goes on after them."""

    status: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Write:
    """A write that was answered: when, what, and how."""

    moment: float
    asked: Asked
    status: int
    uid: str = ""


Rule = Callable[[Asked], Fault | None]


@dataclass
class Proxy:
    """In front of one server, for one scheduler. `rule` says which requests go wrong."""

    configuration: Configuration
    rule: Rule = lambda asked: None
    writes: list[Write] = field(default_factory=list)
    refused: list[Asked] = field(default_factory=list)
    port: int = field(default_factory=free_port)
    most_binds: int | None = None  # those that are more never reach the server
    enough: asyncio.Event = field(default_factory=asyncio.Event)  # as many as that have
    _passed: int = 0
    _binds: int = 0
    _runner: web.AppRunner | None = None
    _session: aiohttp.ClientSession | None = None
    _watches: set[asyncio.Event] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def open(self) -> None:
        """Begin to listen, on the same port every time."""
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        tls = self.configuration.tls
        connector = aiohttp.TCPConnector(limit=0, ssl=tls.context(None) if tls is not None else True)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()

    async def close(self) -> None:
        """Cut every connection and refuse new ones."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()
        if self._session is not None:
            await self._session.close()

    def silence(self) -> None:
        """Watches that are open now stay open and pass nothing on; new ones work."""
        for silenced in self._watches:
            silenced.set()

    def pass_binds(self, number: int | None) -> None:
        """From now on so many binds reach the server, and `enough` is set when they have; None: all of them."""
        self.most_binds, self._passed, self._binds = number, 0, 0
        self.enough.clear()

    def written(self, since: float = 0.0) -> list[Write]:
        """What reached the server, but for the lease."""
        return [one for one in self.writes if one.moment >= since and one.asked.resource != "leases"]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(request.method, request.path, dict(request.query), await request.read())
        fault = self.rule(asked)
        if fault is not None:
            await asyncio.sleep(fault.seconds)
            if fault.status:
                self.refused.append(asked)
                return _refusal(fault.status)
        if asked.bound_pod and self.most_binds is not None:
            self._passed += 1
            if self._passed > self.most_binds:
                await asyncio.Event().wait()  # until the caller is gone
        try:
            return await self._pass_on(request, asked)
        except aiohttp.ClientError:
            return _refusal(502)

    async def _pass_on(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        assert self._session is not None
        headers = {name: text for name, text in request.headers.items() if name.lower() not in _HOP}
        url = self.configuration.server + request.raw_path
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.request(
            asked.method, url, data=asked.body or None, headers=headers, timeout=timeout
        ) as answer:
            kept = {name: text for name, text in answer.headers.items() if name.lower() not in _HOP}
            if asked.is_watch and answer.status == 200:
                return await self._stream(request, answer, kept)
            body = await answer.read()
            self._record(asked, answer.status)
            return web.Response(status=answer.status, body=body, headers=kept)

    def _record(self, asked: Asked, status: int) -> None:
        if asked.method == "GET":
            return
        uid = ""
        if asked.bound_pod and status < 300:
            uid = json.loads(asked.body)["metadata"].get("uid", "")
            self._binds += 1
            if self._binds == self.most_binds:
                self.enough.set()
        self.writes.append(Write(time.monotonic(), asked, status, uid))

    async def _stream(
        self, request: web.Request, answer: aiohttp.ClientResponse, headers: dict[str, str]
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=200, headers=headers)
        await response.prepare(request)
        silenced = asyncio.Event()
        self._watches.add(silenced)
        try:
            with suppress(aiohttp.ClientError, ConnectionError):
                async for chunk in answer.content.iter_any():
                    if silenced.is_set():
                        await asyncio.Event().wait()  # until the caller gives up
                    await response.write(chunk)
        finally:
            self._watches.discard(silenced)
        return response


def _refusal(status: int) -> web.Response:
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "message": "refused on purpose",
        "reason": {403: "Forbidden", 404: "NotFound", 422: "Invalid"}.get(status, "InternalError"),
        "code": status,
    }
    return web.json_response(body, status=status)
