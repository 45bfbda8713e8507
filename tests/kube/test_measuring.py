"""Requests to monitoring servers: what is sent goes to the configured address alone, and what comes is bounded."""

import asyncio
import gzip
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from maniple.kube import measuring
from maniple.kube.measuring import MeasuringError, connect, post, without_login
from tests.kube.certificates import Authority

Handler = Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]


def asked(handler: Handler, **request: Any) -> tuple[int, Any]:
    async def go() -> tuple[int, Any]:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", handler)
        async with TestServer(application) as server, connect(30.0) as http:
            return await post(http, str(server.make_url("/query")), **request)

    return asyncio.run(go())


async def echo(request: web.Request) -> web.StreamResponse:
    return web.json_response({"headers": dict(request.headers), "body": await request.text()})


def test_a_response_of_many_pieces_is_read_whole() -> None:
    async def pieces(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in (b'{"a"', b": [1", b", 2]}"):
            await response.write(piece)
            await asyncio.sleep(0.01)
        return response

    assert asked(pieces) == (200, {"a": [1, 2]})


def test_a_redirect_is_refused_and_says_where_to() -> None:
    seen = []

    async def moved(request: web.Request) -> web.StreamResponse:
        seen.append(request.path)
        return web.Response(status=307, headers={"Location": "http://name:secret@elsewhere.example/x?y=z"})

    with pytest.raises(MeasuringError, match=r"redirects to elsewhere\.example are not followed") as refused:
        asked(moved, headers={"Authorization": "Basic secret"})
    assert seen == ["/query"]
    assert "secret" not in str(refused.value)


def test_a_redirect_to_the_same_server_is_refused_too() -> None:
    async def moved(request: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "/login"})

    with pytest.raises(MeasuringError, match="redirects are not followed"):
        asked(moved)


def test_a_netrc_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    assert "Authorization" not in asked(echo)[1]["headers"]


def test_the_proxy_of_the_environment_is_used_except_where_it_says_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(MeasuringError):
        asked(echo)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert asked(echo, data={"query": "up"})[1]["body"] == "query=up"


def test_a_response_beyond_the_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "LONGEST", 2**20)

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(1000):
            await response.write(b" " * 2**16)
        return response

    with pytest.raises(MeasuringError, match="longer than 1 MiB"):
        asked(endless)


def test_a_compressed_response_is_not_unpacked() -> None:
    async def packed(request: web.Request) -> web.StreamResponse:
        return web.Response(body=gzip.compress(b"[1]"), headers={"Content-Encoding": "gzip"})

    with pytest.raises(MeasuringError, match="status 200, no JSON"):
        asked(packed)


@pytest.mark.parametrize("body", [b"<html>", b"", b"[" * 100_000, b"\xff", b"9" * 5000])
def test_a_body_that_is_not_json_is_reported(body: bytes) -> None:
    async def odd(request: web.Request) -> web.StreamResponse:
        return web.Response(status=503, body=body)

    with pytest.raises(MeasuringError, match="status 503, no JSON"):
        asked(odd)


def test_a_certificate_is_verified_unless_that_is_switched_off(tmp_path: Path) -> None:
    context = Authority(tmp_path).server()

    async def go(*, verify: bool) -> tuple[int, Any]:
        application = web.Application()
        application.router.add_post("/", echo)
        server = TestServer(application, scheme="https")
        await server.start_server(ssl=context)
        async with server, connect(30.0) as http:
            return await post(http, str(server.make_url("/")), verify=verify)

    with pytest.raises(MeasuringError, match="certificate"):
        asyncio.run(go(verify=True))
    assert asyncio.run(go(verify=False))[0] == 200


def test_a_login_in_an_address_is_not_shown() -> None:
    assert without_login("https://name:secret@host:9090/prefix") == "https://host:9090/prefix"
