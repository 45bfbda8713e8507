"""Requests: what is sent again and what is not, what errors say, and how many are under way at once."""

import asyncio
from datetime import UTC, datetime

import pytest

from maniple.kube.client import LONGEST_PAUSE, Client
from maniple.kube.configuration import Configuration
from maniple.kube.credentials import Credential, Fixed
from maniple.kube.errors import ApiError, UnreachableError
from maniple.kube.kinds import DEFINITIONS, PODS
from maniple.kube.retry import Backoff, parse_retry_after
from maniple.objects.core import Pod
from tests.kube.fake_server import Answer, FakeServer, eventually, status

BUSY = status(429, "TooManyRequests")


def test_a_busy_server_is_asked_again_after_the_pause_that_it_wants() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            server.answers += [
                Answer(429, BUSY, {"Retry-After": "7"}),
                Answer(503, b"", {}),
                Answer(500, status(500, "InternalError", retryAfterSeconds=3)),
            ]
            await client.list(PODS)
            assert len(server.requests) == 4
            assert server.slept == [pytest.approx(7.1), pytest.approx(0.2), pytest.approx(3.4)]

    asyncio.run(scenario())


@pytest.mark.parametrize("code", [400, 403, 404, 409, 410, 422, 501])
def test_a_refusal_is_final(code: int) -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            server.answers.append(Answer(code, status(code, "Because", "of this")))
            with pytest.raises(ApiError, match=f"^{code} Because: of this$") as refused:
                await client.get(PODS, "default/a")
            assert (refused.value.status, refused.value.reason) == (code, "Because")
            assert len(server.requests) == 1

    asyncio.run(scenario())


def test_what_may_not_be_done_twice_is_sent_again_only_when_it_was_not_done() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            server.answers += [Answer(429, BUSY), Answer(500, b"")]
            with pytest.raises(ApiError, match=r"^500 "):
                await client.create(PODS, "default", {})
            assert len(server.asked("POST")) == 2

            server.answers.append(Answer(cut=True))
            with pytest.raises(UnreachableError):
                await client.create(PODS, "default", {})
            assert len(server.asked("POST")) == 3

            server.answers += [Answer(500, b""), Answer(cut=True), Answer(201, b"{}")]
            await client.create(PODS, "default", {}, idempotent=True)
            assert len(server.asked("POST")) == 6

    asyncio.run(scenario())


def test_a_disruption_budget_is_not_argued_with() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            causes = [{"reason": "DisruptionBudget", "message": "needs 2 healthy pods"}]
            server.answers.append(Answer(429, status(429, "TooManyRequests", causes=causes)))
            with pytest.raises(ApiError) as refused:
                await client.create(PODS, "default/a", {}, subresource="eviction", idempotent=True)
            assert refused.value.causes == ("DisruptionBudget",)
            assert server.requests[0].path == "/api/v1/namespaces/default/pods/a/eviction"
            assert len(server.requests) == 1

    asyncio.run(scenario())


def test_a_pause_that_is_too_long_is_reported_instead() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            server.answers.append(Answer(429, BUSY, {"Retry-After": str(int(LONGEST_PAUSE) + 1)}))
            with pytest.raises(ApiError) as refused:
                await client.list(PODS)
            assert refused.value.retry_after == LONGEST_PAUSE + 1
            assert server.slept == []

    asyncio.run(scenario())


def test_it_gives_up_after_so_many_attempts() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client(attempts=3) as client:
            server.answers += [Answer(503)] * 5
            with pytest.raises(ApiError, match=r"^503 "):
                await client.list(PODS)
            assert len(server.requests) == 3

    asyncio.run(scenario())


def test_a_refused_connection() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server:
            client = server.client(attempts=2)
        async with client:
            with pytest.raises(UnreachableError, match=r"^Unreachable: cannot connect: ") as refused:
                await client.list(PODS)
            assert (refused.value.status, refused.value.sent) == (0, False)
            assert len(server.slept) == 1

    asyncio.run(scenario())


def test_a_server_that_does_not_answer_in_time() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client(attempts=1, seconds=0.05) as client:
            server.gate.clear()
            with pytest.raises(UnreachableError, match="no answer in time"):
                await client.list(PODS)
            server.gate.set()

    asyncio.run(scenario())


def test_an_answer_that_no_api_server_gives_is_quoted_briefly() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            server.answers.append(Answer(418, b"<html>\n  a balancer\x00 " + b"x" * 1000))
            with pytest.raises(ApiError) as refused:
                await client.list(PODS)
            assert refused.value.reason == "Unknown"
            assert len(refused.value.message) <= 300

            server.answers.append(Answer(200, b"[]"))
            with pytest.raises(ApiError, match="not a JSON object"):
                await client.get(PODS, "default/a")

    asyncio.run(scenario())


def test_a_redirection_is_not_followed_with_our_credentials() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client(Fixed("Bearer secret")) as client:
            server.answers.append(Answer(302, b"", {"Location": server.url + "/elsewhere"}))
            with pytest.raises(ApiError, match=r"^302 "):
                await client.list(PODS)
            assert server.asked(ending="/elsewhere") == []

    asyncio.run(scenario())


class Renewing:
    """Credentials that are numbered, and renewed when they are refused."""

    def __init__(self) -> None:
        self.credential = Credential("Bearer 1")
        self.renewals = 0

    async def current(self) -> Credential:
        return self.credential

    def rejected(self, credential: Credential) -> bool:
        if credential is self.credential:
            self.renewals += 1
            self.credential = Credential(f"Bearer {self.renewals + 1}")
        return True


def test_refused_credentials_are_renewed_once() -> None:
    async def scenario() -> None:
        credentials = Renewing()
        async with FakeServer(Pod) as server, server.client(credentials) as client:
            server.answers.append(Answer(401, status(401, "Unauthorized")))
            await client.list(PODS)
            assert [asked.headers["Authorization"] for asked in server.requests] == ["Bearer 1", "Bearer 2"]

            server.answers += [Answer(401, status(401, "Unauthorized"))] * 2
            with pytest.raises(ApiError, match=r"^401 "):
                await client.list(PODS)

    asyncio.run(scenario())


def test_a_proxy_is_used_with_its_login_and_the_headers_of_the_user_are_sent() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server:
            configuration = Configuration(
                "http://api.example/prefix",
                "a test",
                proxy=server.url,
                proxy_login=("me", "secret"),
                headers=(("Impersonate-User", "jane"), ("Impersonate-Group", "a")),
            )
            server.answers.append(Answer(200, b"{}"))
            async with Client(configuration, attempts=1) as client:
                await client.get(PODS, "ns/a")
            (asked,) = server.requests
            assert asked.path == "/prefix/api/v1/namespaces/ns/pods/a"
            assert asked.headers["Host"] == "api.example"
            assert asked.headers["Impersonate-User"] == "jane"
            assert asked.headers["Impersonate-Group"] == "a"
            assert asked.headers["Proxy-Authorization"].startswith("Basic ")

    asyncio.run(scenario())


def test_no_more_requests_under_way_than_allowed() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client(concurrency=3) as client:
            server.gate.clear()
            requests = [asyncio.create_task(client.list(PODS)) for _ in range(12)]
            await eventually(lambda: server.under_way == 3)
            server.gate.set()
            await asyncio.gather(*requests)
            assert server.most_under_way == 3
            assert len(server.requests) == 12

    asyncio.run(scenario())


def test_paths_and_bodies() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            server.answers += [Answer(200, b"{}")] * 5
            await client.get(DEFINITIONS, "a:b")
            await client.update(PODS, "ns/a", {"x": [1, None]})
            await client.patch(PODS, "ns/a", {"x": 1}, subresource="status")
            await client.delete(PODS, "a", {"gracePeriodSeconds": 0})
            await client.create(PODS, "ns", {"é": "ü"})
            assert [(asked.method, asked.path) for asked in server.requests] == [
                ("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a:b"),
                ("PUT", "/api/v1/namespaces/ns/pods/a"),
                ("PATCH", "/api/v1/namespaces/ns/pods/a/status"),
                ("DELETE", "/api/v1/namespaces/default/pods/a"),
                ("POST", "/api/v1/namespaces/ns/pods"),
            ]
            assert server.requests[2].headers["Content-Type"] == "application/merge-patch+json"
            assert server.requests[1].json == {"x": [1, None]}
            assert server.requests[3].json["gracePeriodSeconds"] == 0
            assert server.requests[4].json == {"é": "ü"}

    asyncio.run(scenario())


def test_a_path_cannot_be_broken_out_of() -> None:
    assert PODS.path("ns/a?b#c%d") == "/api/v1/namespaces/ns/pods/a%3Fb%23c%25d"


def test_the_client_must_be_open() -> None:
    with pytest.raises(RuntimeError, match="not open"):
        asyncio.run(Client(Configuration("http://127.0.0.1:1", "a test")).list(PODS))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("Wed, 01 Jan 2025 00:00:30 GMT", 30.0),
        ("Tue, 31 Dec 2024 00:00:00 GMT", 0.0),
        ("soon", None),
        ("-1", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str | None, seconds: float | None) -> None:
    assert parse_retry_after(text, datetime(2025, 1, 1, tzinfo=UTC)) == seconds


def test_pauses_grow_to_the_longest_and_are_spread() -> None:
    slow, fast = Backoff(chance=lambda: 1.0), Backoff(chance=lambda: 0.0)
    assert [slow.pause(attempt) for attempt in (0, 1, 2, 50, 5000)] == [0.1, 0.2, 0.4, 10.0, 10.0]
    assert fast.pause(2) == pytest.approx(0.2)
    assert slow.pause(0, 5.0) == pytest.approx(5.1)


@pytest.mark.parametrize(
    ("status", "message", "denied"),
    [
        (403, 'pods "a" is forbidden: User "u" cannot patch resource "pods" in API group "" in the namespace "n"', "patch pods"),
        (403, 'queues.x is forbidden: User "u" cannot create resource "queues" in API group "x" at the cluster scope', "create queues"),
        (403, 'pods "a" is forbidden: exceeded quota: q', ""),
        (403, 'admission webhook "w" denied the request: pods "a" is forbidden: User "u" cannot patch resource "pods" in API group ""', ""),
        (409, 'pods "a" is forbidden: User "u" cannot patch resource "pods" in API group "" in the namespace "n"', ""),
    ],
)  # fmt: skip
def test_a_missing_permission_is_told_from_other_refusals(status: int, message: str, denied: str) -> None:
    """What admission refuses in one namespace says nothing about what this user may do."""
    assert ApiError(status, "Forbidden", message).denied == denied
