"""Requests to an API server: verified, bounded in number and time.

Everything in this package that contacts a cluster uses one `Client`, made from a `Configuration` and used as
`async with Client(configuration) as client`. A response other than success is raised as `ApiError`. By default a
request is sent once: informers and the scheduler's effects repeat what fails by themselves, and two layers of
retries would multiply. Commands that do one thing after another ask for more `attempts`.
"""

import asyncio
import logging
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from yarl import URL

from maniple import __version__
from maniple.kube.configuration import Configuration
from maniple.kube.credentials import Credential, basic
from maniple.kube.errors import ApiError, KubeconfigError, UnreachableError, api_error
from maniple.kube.kinds import Resource, resource_in
from maniple.kube.retry import Backoff, may_retry, parse_retry_after

log = logging.getLogger(__name__)

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
Query = Mapping[str, str]
Body = dict[str, Any]

# If the server asks for a longer pause than this, its response is raised instead.
LONGEST_PAUSE = 60.0


class Client:
    """One connection pool to one API server.

    `concurrency` bounds the requests in flight (watches do not count: they are few and long-lived); it is above
    what effects have in flight, slow ones included, and below what a server accepts from everyone. `seconds` is
    the timeout of one attempt, `attempts` the maximum number of attempts of a request that may be repeated.
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        concurrency: int = 192,
        attempts: int = 1,
        seconds: float = 30.0,
        backoff: Backoff | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.configuration = configuration
        self.backoff = backoff or Backoff()
        self.sleep = sleep
        self._attempts = attempts
        self._slots = asyncio.Semaphore(concurrency)
        self._timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=10.0)
        self._session: aiohttp.ClientSession | None = None
        # Of every attempt: its method, its resource and the status of the response (0: none)
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.seconds: dict[str, float] = {}  # by method, except watches
        self.heard: dict[str, float] = {}  # by watched resource: when data last came, by the monotonic clock

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            # The slots are the bound; a limit here would let watches starve requests.
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Within a data centre compression costs both sides more than it saves.
            headers={"User-Agent": f"maniple/{__version__}", "Accept": JSON, "Accept-Encoding": "identity"},
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(self, resource: Resource, key: str, *, subresource: str = "") -> Body:
        return _body(await self.request("GET", resource.path(key, subresource)))

    async def list(self, resource: Resource, query: Query | None = None) -> bytes:
        """One page, undecoded: `watch` knows the types.

        An empty namespace means all of them.
        """
        return await self.request("GET", resource.path(), query=query)

    @asynccontextmanager
    async def watch(
        self, resource: Resource, query: Query, silence: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """An open watch as a stream of bytes, cut anywhere; given up after so many seconds of silence."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=silence)
        async with self._send(
            "GET", resource.path(), {"watch": "true", **query}, timeout=timeout
        ) as response:
            yield self._chunks(resource, response)

    async def create(
        self, resource: Resource, key: str, body: Body, *, subresource: str = "", idempotent: bool = False
    ) -> Body:
        """`key` says where: the namespace of a new object, or the whole key for a subresource.

        Set `idempotent` if sending it twice is harmless because the caller can interpret the second response.
        """
        path = resource.path(key, subresource) if subresource else resource.path_in(key)
        return _body(await self.request("POST", path, body=body, idempotent=idempotent))

    async def update(self, resource: Resource, key: str, body: Body, *, subresource: str = "") -> Body:
        """Replace an object; with a resourceVersion in the body, a concurrent change is a conflict."""
        return _body(await self.request("PUT", resource.path(key, subresource), body=body, idempotent=True))

    async def patch(
        self,
        resource: Resource,
        key: str,
        body: Body,
        *,
        subresource: str = "",
        content_type: str = MERGE_PATCH,
        query: Query | None = None,
    ) -> Body:
        path = resource.path(key, subresource)
        answer = await self.request(
            "PATCH", path, query=query, body=body, content_type=content_type, idempotent=True
        )
        return _body(answer)

    async def delete(self, resource: Resource, key: str, options: Body | None = None) -> Body:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **(options or {})}
        return _body(await self.request("DELETE", resource.path(key), body=body, idempotent=True))

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Body | None = None,
        content_type: str = JSON,
        idempotent: bool | None = None,
    ) -> bytes:
        """One request, retried while that is safe and may help.

        A slot is held while sending, not while waiting.
        """
        data = msgspec.json.encode(body) if body is not None else None
        repeatable = method == "GET" if idempotent is None else idempotent
        may_renew = True
        attempt = 0
        while True:
            try:
                async with self._slots, self._send(method, path, query, data, content_type) as response:
                    return await response.read()
            except ApiError as error:
                if error.renewed and may_renew:
                    may_renew = False
                    continue
                attempt += 1
                if attempt >= self._attempts or not may_retry(error, idempotent=repeatable):
                    raise
                if error.retry_after is not None and error.retry_after > LONGEST_PAUSE:
                    raise
                pause = self.backoff.pause(attempt - 1, error.retry_after)
                log.debug("%s %s: %s; retrying in %.1f s", method, path, error, pause)
            await self.sleep(pause)

    @asynccontextmanager
    async def _send(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        data: bytes | None = None,
        content_type: str = JSON,
        *,
        timeout: aiohttp.ClientTimeout | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One attempt; raises `ApiError` unless it succeeds, also if the connection is cut while reading."""
        if self._session is None:
            raise RuntimeError("the client is not open: use it as `async with Client(...)`")
        credential = await self._credential()
        settings = self._settings(credential, data, content_type)
        url = self.configuration.server + path + (f"?{urlencode(query, quote_via=quote)}" if query else "")
        status, begin = 0, time.monotonic()
        try:
            async with self._session.request(
                method,
                URL(url, encoded=True),
                data=data,
                allow_redirects=False,
                timeout=timeout or self._timeout,
                **settings,
            ) as response:
                status = response.status
                if not 200 <= response.status < 300:
                    pause = parse_retry_after(response.headers.get("Retry-After"))
                    failure = api_error(response.status, await response.read(), pause)
                    if response.status == 401:
                        failure.renewed = self.configuration.credentials.rejected(credential)
                    raise failure
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError, ssl.SSLError) as error:
            raise _unreachable(error) from error
        finally:
            self.requests[method, resource_in(path), status] += 1
            if timeout is None:
                self.seconds[method] = self.seconds.get(method, 0.0) + time.monotonic() - begin

    async def _chunks(self, resource: Resource, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        name = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        self.heard[name] = time.monotonic()
        async for chunk in response.content.iter_any():
            self.heard[name] = time.monotonic()
            yield chunk

    async def _credential(self) -> Credential:
        try:
            return await self.configuration.credentials.current()
        except KubeconfigError as error:
            raise UnreachableError(str(error), sent=False, permanent=True) from None

    def _settings(self, credential: Credential, data: bytes | None, content_type: str) -> dict[str, Any]:
        """Credentials, TLS and proxy for one attempt, as they are now."""
        configuration = self.configuration
        try:
            context = configuration.tls.context(credential.pair) if configuration.tls is not None else None
        except KubeconfigError as error:
            raise UnreachableError(str(error), sent=False, permanent=True) from None
        headers = [*configuration.headers]
        if credential.authorization is not None:
            headers.append(("Authorization", credential.authorization))
        if data is not None:
            headers.append(("Content-Type", content_type))
        settings: dict[str, Any] = {"headers": headers}
        if context is not None:
            settings["ssl"] = context
            settings["server_hostname"] = configuration.server_name or None
        if configuration.proxy:
            settings["proxy"] = configuration.proxy
            if configuration.proxy_login is not None:
                login = ("Proxy-Authorization", basic(*configuration.proxy_login))
                # A tunnelling proxy takes its header before the request, a forwarding one with it.
                if context is not None:
                    settings["proxy_headers"] = dict([login])
                else:
                    headers.append(login)
        return settings


def _body(answer: bytes) -> Body:
    try:
        body = msgspec.json.decode(answer)
    except msgspec.MsgspecError as error:
        raise ApiError(200, "BadAnswer", f"not JSON: {error}") from None
    if not isinstance(body, dict):
        raise ApiError(200, "BadAnswer", "not a JSON object")
    return body


def _unreachable(error: Exception) -> UnreachableError:
    """A message of our own, because the library's may contain the address of a proxy with its password."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLCertVerificationError):
        reason = getattr(error, "certificate_error", error)
        message = getattr(reason, "verify_message", "") or "not trusted"
        return UnreachableError(f"the server's certificate is refused: {message}", sent=False, permanent=True)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return UnreachableError(f"the proxy answered {error.status}", sent=False)
    if isinstance(error, aiohttp.ClientConnectorError):
        return UnreachableError(f"cannot connect: {error.strerror or 'no answer'}", sent=False)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return UnreachableError("the server closed the connection", sent=True)
    if isinstance(error, TimeoutError):
        return UnreachableError("no answer in time", sent=True)
    return UnreachableError(f"the connection broke ({type(error).__name__})", sent=True)
