"""The HTTPS server of the webhook: POST /validate and /mutate, and GET /healthz, /readyz and /metrics.

A fault of ours never blocks a cluster: if a rule fails, or the API server cannot be asked for a name that the caches
do not have, the object is allowed with a warning, and that is logged and counted.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Protocol

import msgspec
from aiohttp import web

from maniple.admission.metrics import ALLOWED, FAILED, PATCHED, REFUSED, Counts, Metrics
from maniple.admission.registration import MUTATE, VALIDATE
from maniple.admission.review import review
from maniple.admission.verdict import BadRequestError, Lookup, Request, Verdict, answer, read_request
from maniple.admission.world import Settings, World
from maniple.kube.errors import ApiError
from maniple.objects.load import title_of
from maniple.objects.meta import Object
from maniple.objects.printable import printable
from maniple.web.certificates import Certificate
from maniple.web.exposition import CONTENT_TYPE

log = logging.getLogger(__name__)

# The API server takes objects of 1.5 MB; an update has two of them, and text may grow in JSON.
MOST_BYTES = 8 * 1024 * 1024
READ_SECONDS = 5.0
NOT_CHECKED = "maniple could not check this object ({why}); it is allowed as it is"
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Source(Protocol):
    """Where names are read that the caches do not have."""

    async def look_up(self, names: tuple[Lookup, ...]) -> bool: ...


class Server:
    def __init__(
        self,
        world: World,
        settings: Settings,
        source: Source,
        *,
        expiries: Callable[[], Mapping[str, datetime]] = dict,
    ) -> None:
        """`expiries` returns when the certificates end, by name."""
        self._world, self._settings, self._source = world, settings, source
        self.counts = Counts()
        self.ready = False
        self._metrics = Metrics(self.counts, lambda: self.ready, expiries)
        self.url = ""

    @asynccontextmanager
    async def serving(self, host: str, port: int, certificate: Certificate) -> AsyncIterator["Server"]:
        """Serve while it lasts; raises OSError if the address is taken."""
        runner = web.AppRunner(
            self.application(), access_log=None, handle_signals=False, shutdown_timeout=5.0
        )
        await runner.setup()
        try:
            site = web.TCPSite(runner, host or None, port, ssl_context=certificate.context)
            await site.start()
            bound, taken = runner.addresses[0][:2]
            self.url = f"https://{f'[{bound}]' if ':' in bound else bound}:{taken}"
            log.info("listening on %s", self.url)
            yield self
        finally:
            await runner.cleanup()

    def application(self) -> web.Application:
        application = web.Application(client_max_size=MOST_BYTES)
        application.router.add_post(VALIDATE, self._review)
        application.router.add_post(MUTATE, self._review)
        for path, handler in (
            ("/healthz", self._healthz),
            ("/livez", self._healthz),
            ("/readyz", self._readyz),
            ("/metrics", self._page),
        ):
            application.router.add_get(path, handler)
        return application

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n", headers=HEADERS)

    async def _readyz(self, request: web.Request) -> web.Response:
        text = "ok\n" if self.ready else "queues, namespaces and pod groups are not listed yet\n"
        return web.Response(status=200 if self.ready else 503, text=text, headers=HEADERS)

    async def _page(self, request: web.Request) -> web.Response:
        return web.Response(body=self._metrics.page(), headers={**HEADERS, "Content-Type": CONTENT_TYPE})

    # -- reviews ------------------------------------------------------------------------------------------------------

    async def _review(self, request: web.Request) -> web.Response:
        begin = time.perf_counter()
        try:
            async with asyncio.timeout(READ_SECONDS):
                body = await request.read()
            asked = read_request(msgspec.json.decode(body))
        except (BadRequestError, msgspec.MsgspecError, RecursionError, TimeoutError) as error:
            self.counts.bad_requests += 1
            return web.Response(status=400, text=f"{printable(str(error))}\n", headers=HEADERS)
        verdict, failed = await self._verdict(asked, mutating=request.path == MUTATE)
        result = (
            FAILED if failed else REFUSED if not verdict.allowed else PATCHED if verdict.patch else ALLOWED
        )
        self.counts.note(request.path, asked.operation, verdict.kind, result, time.perf_counter() - begin)
        if result == REFUSED:
            log.info("refused: %s", verdict.message)
        return web.Response(
            body=msgspec.json.encode(answer(asked.uid, verdict)),
            headers={**HEADERS, "Content-Type": "application/json"},
        )

    async def _verdict(self, asked: Request, *, mutating: bool) -> tuple[Verdict, bool]:
        """The verdict, and whether something failed on the way to it."""
        try:
            verdict = review(asked, self._world, self._settings, mutating=mutating)
            if not verdict.missing:
                return verdict, False
            self.counts.lookups += 1
            if await self._source.look_up(verdict.missing):
                verdict = review(asked, self._world, self._settings, mutating=mutating)
            return verdict, False
        except (ApiError, TimeoutError) as error:
            log.warning("%s: not checked: %s", _title(asked), str(error) or "no answer in time")
            if verdict.allowed:
                return verdict, True
            return _unchecked("the API server could not be asked", verdict.kind), True
        except Exception:
            log.exception("%s: not checked, a rule failed", _title(asked))
            return _unchecked("internal error", None), True


def _unchecked(why: str, kind: type[Object] | None) -> Verdict:
    return Verdict(warnings=(NOT_CHECKED.format(why=why),), kind=kind)


def _title(asked: Request) -> str:
    return printable(title_of(asked.subject)) if asked.subject is not None else "object"
