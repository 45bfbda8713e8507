"""The extender's transport, on real HTTP."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from maniple.kube.extender import LONGEST, HttpTransport


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server: Any = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.seen.append((self.client_address, self.path, self.headers["Content-Type"], body))
        if self.path == "/slow":
            server.release.wait(5)
        if self.path == "/garbled":
            self.wfile.write(b"not http at all\r\n\r\n")
            self.close_connection = True
            return
        answer = b"x" * (LONGEST + 10) if self.path == "/long" else body[::-1]
        self.send_response(503 if self.path == "/busy" else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
        self.close_connection = self.path == "/rude"  # without a word about it

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Any]:
    running: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    running.seen, running.release = [], threading.Event()
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    yield running
    running.release.set()
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture
def transport() -> Iterator[HttpTransport]:
    made = HttpTransport()
    yield made
    made.close()


def address(server: Any, path: str) -> str:
    return f"http://127.0.0.1:{server.server_port}{path}"


def test_a_body_goes_out_and_one_comes_back(server: Any, transport: HttpTransport) -> None:
    assert transport(address(server, "/v1/predicate?x=1"), b"abc", 5) == (200, b"cba")
    _, path, kind, body = server.seen[0]
    assert (path, kind, body) == ("/v1/predicate?x=1", "application/json", b"abc")


def test_the_connection_is_kept(server: Any, transport: HttpTransport) -> None:
    for _ in range(3):
        transport(address(server, "/a"), b"abc", 5)
    assert len({peer for peer, *_ in server.seen}) == 1


def test_one_that_was_closed_while_idle_is_opened_again(server: Any, transport: HttpTransport) -> None:
    for _ in range(3):
        assert transport(address(server, "/rude"), b"abc", 5) == (200, b"cba")
    assert len(server.seen) == 3


def test_a_status_is_handed_on(server: Any, transport: HttpTransport) -> None:
    assert transport(address(server, "/busy"), b"abc", 5)[0] == 503


def test_no_more_is_read_than_an_answer_may_have(server: Any, transport: HttpTransport) -> None:
    assert len(transport(address(server, "/long"), b"", 5)[1]) == LONGEST
    assert transport(address(server, "/a"), b"abc", 5) == (200, b"cba")


def test_too_slow_is_an_error(server: Any, transport: HttpTransport) -> None:
    with pytest.raises(OSError, match="timed out"):
        transport(address(server, "/slow"), b"", 0.05)


def test_what_is_not_http_is_an_error(server: Any, transport: HttpTransport) -> None:
    with pytest.raises(OSError, match="not HTTP"):
        transport(address(server, "/garbled"), b"", 5)


def test_no_server_is_an_error(server: Any, transport: HttpTransport) -> None:
    server.shutdown()
    server.server_close()
    with pytest.raises(OSError, match=r"."):
        transport(address(server, "/a"), b"", 5)


@pytest.mark.parametrize(
    "url", ["", "extender:8080/predicate", "ftp://x/y", "http:///predicate", "file:///etc/hosts"]
)
def test_what_is_no_address_is_an_error(transport: HttpTransport, url: str) -> None:
    with pytest.raises(OSError, match="http://"):
        transport(url, b"", 1)
