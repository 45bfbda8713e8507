"""The HTTP server of a running scheduler, in its event loop. It answers GET and HEAD, and changes nothing.

`/healthz` and `/readyz` are open; everything else asks the guard first.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web

from maniple.objects.printable import printable
from maniple.web.certificates import Certificate
from maniple.web.debug import Debug
from maniple.web.exposition import CONTENT_TYPE
from maniple.web.guard import Delegated, Guard, Open, TokenFile
from maniple.web.health import Health
from maniple.web.metrics import Metrics
from maniple.web.settings import Listen
from maniple.web.view import View

if TYPE_CHECKING:
    from maniple.kube.client import Client
    from maniple.live.scheduler import Scheduler

log = logging.getLogger(__name__)

OPEN = ("/healthz", "/livez", "/readyz")
READING = ("GET", "HEAD")
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    def __init__(self, scheduler: "Scheduler", listen: Listen, client: "Client | None" = None) -> None:
        self._listen = listen
        self.health = Health(scheduler)
        view = View(scheduler, client)
        self.metrics = Metrics(view, self.health, listen.metrics_prefix)
        self._debug = Debug(scheduler)
        self._guard = _guard_of(listen, client)
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Server"]:
        """Serve while it lasts."""
        certificate = (
            Certificate(self._listen.certificate, self._listen.key)
            if self._listen.certificate is not None and self._listen.key is not None
            else None
        )
        runner = web.AppRunner(
            self._application(), access_log=None, handle_signals=False, shutdown_timeout=1.0
        )
        await runner.setup()
        helpers = [asyncio.create_task(self.health.run())]
        if certificate is not None:
            helpers.append(asyncio.create_task(certificate.run()))
        try:
            await self._bind(runner, certificate)
            yield self
        finally:
            for helper in helpers:
                helper.cancel()
            await runner.cleanup()

    async def _bind(self, runner: web.AppRunner, certificate: Certificate | None) -> None:
        listen = self._listen
        site = web.TCPSite(
            runner,
            listen.host or None,
            listen.port,
            ssl_context=certificate.context if certificate is not None else None,
        )
        try:
            await site.start()
        except OSError as error:
            if not listen.optional:
                raise
            log.warning(
                "not listening on %s: %s; choose another address with --listen",
                listen.address,
                error.strerror,
            )
            return
        host, port = runner.addresses[0][:2]
        shown = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if certificate is not None else 'http'}://{shown}:{port}"
        log.info("listening on %s", self.url)

    def _application(self) -> web.Application:
        @web.middleware
        async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._check(request, handler)

        application = web.Application(middlewares=[checked])
        pages: dict[str, Handler] = {
            "/healthz": self._healthz,
            "/livez": self._healthz,
            "/readyz": self._readyz,
        }
        if self._listen.metrics:
            pages["/metrics"] = self._metrics
        if self._listen.debug:
            pages |= self._debug.pages()
        for path, handler in pages.items():
            application.router.add_get(path, handler)
        return application

    async def _check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method not in READING:
            raise web.HTTPMethodNotAllowed(request.method, READING)
        if request.path not in OPEN:
            status = await self._guard.status(request.headers.get("Authorization", ""), request.path)
            if status != 200:
                return _refusal(status)
        response = await handler(request)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    async def _healthz(self, request: web.Request) -> web.Response:
        return _lines(self.health.not_alive(), [], 500)

    async def _readyz(self, request: web.Request) -> web.Response:
        return _lines(self.health.not_ready(), self.health.remarks(), 503)

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self.metrics.page(), headers={"Content-Type": CONTENT_TYPE})


def _guard_of(listen: Listen, client: "Client | None") -> Guard:
    if listen.token_file is not None:
        return TokenFile(listen.token_file)
    if listen.delegate:
        if client is None:
            raise ValueError("--listen-authorization needs a cluster; give --listen-token-file instead")
        return Delegated(client)
    return Open()


def _refusal(status: int) -> web.Response:
    words = {401: "no valid token", 403: "this user may not get the path", 503: "cannot be authorized now"}
    response = web.Response(status=status, text=words[status] + "\n", headers=HEADERS)
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _lines(wrong: list[str], remarks: list[str], status: int) -> web.Response:
    """`ok` or what is wrong, and remarks: a line each."""
    lines = [*(wrong or ["ok"]), *remarks]
    return web.Response(status=status if wrong else 200, text="\n".join(map(printable, lines)) + "\n")
