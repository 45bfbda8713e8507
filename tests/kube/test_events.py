"""Events: the same note is counted on the one that exists, and nobody can flood the server."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from maniple.kube.client import Client
from maniple.kube.events import FORGOTTEN_SECONDS, EventRecorder
from maniple.objects.load import load
from maniple.objects.meta import Object
from tests.chaos.sizes import sizes
from tests.kube.fake_server import Answer, FakeServer, status

NOW = datetime(2025, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
OK = Answer(200, b"{}")


def pod(name: str = "a") -> Object:
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": "5"}
    return load({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})


def recorder(client: Client, **settings: Any) -> EventRecorder:
    return EventRecorder(client, "maniple", "host-1", now=lambda: NOW, **settings)


def counts(server: FakeServer) -> list[tuple[str, int]]:
    """What was written: an event, or the count on one."""
    return [(asked.method, asked.json.get("series", {}).get("count", 1)) for asked in server.asked()]


def test_an_event_says_all_that_the_server_wants_to_know() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            server.answers.append(OK)
            assert await recorder(client).record(pod(), "Warning", "FailedScheduling", "no room")
            asked = server.requests[0]
            assert asked.path == "/apis/events.k8s.io/v1/namespaces/ns/events"
            body = asked.json
            name = body["metadata"].pop("name")
            assert name.startswith("a.")
            assert body == {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"namespace": "ns"},
                "eventTime": "2025-01-02T03:04:05.000006Z",
                "reportingController": "maniple",
                "reportingInstance": "host-1",
                "action": "Scheduling",
                "reason": "FailedScheduling",
                "regarding": {
                    "kind": "Pod",
                    "apiVersion": "v1",
                    "namespace": "ns",
                    "name": "a",
                    "uid": "uid-a",
                    "resourceVersion": "5",
                },
                "note": "no room",
                "type": "Warning",
            }

    asyncio.run(scenario())


def test_the_same_note_is_counted_and_another_one_is_written() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            events = recorder(client)
            server.answers += [OK] * 9
            for note in ("x", "x", "y", "x"):
                await events.record(pod(), "Warning", "Waiting", note)
            await events.record(pod("b"), "Warning", "Waiting", "x")
            await events.record(pod(), "Normal", "Waiting", "x")
            assert counts(server) == [
                ("POST", 1),
                ("PATCH", 2),
                ("POST", 1),
                ("PATCH", 3),
                ("POST", 1),
                ("POST", 1),
            ]
            created, patched = server.requests[0], server.requests[1]
            assert patched.path == f"{created.path}/{created.json['metadata']['name']}"
            assert patched.json["series"]["lastObservedTime"] == "2025-01-02T03:04:05.000006Z"

    asyncio.run(scenario())


def test_notes_at_the_same_moment_make_one_event() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            events = recorder(client)
            server.answers += [OK] * 9
            await asyncio.gather(*(events.record(pod(), "Normal", "Waiting", "x") for _ in range(5)))
            assert counts(server)[0] == ("POST", 1)
            assert counts(server)[-1] == ("PATCH", 5)
            assert len(server.asked("POST")) == 1

    asyncio.run(scenario())


def test_an_event_that_the_server_forgot_is_written_anew() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            events = recorder(client)
            server.answers += [OK, OK, Answer(404, status(404, "NotFound")), OK, OK]
            for _ in range(4):
                assert await events.record(pod(), "Normal", "Waiting", "x")
            assert counts(server) == [("POST", 1), ("PATCH", 2), ("PATCH", 3), ("POST", 1), ("PATCH", 2)]
            first, second = server.asked("POST")
            assert first.json["metadata"]["name"] != second.json["metadata"]["name"]

    asyncio.run(scenario())


def test_an_event_whose_answer_was_lost_is_not_written_twice() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            server.answers += [Answer(503), Answer(409, status(409, "AlreadyExists"))]
            assert await recorder(client).record(pod(), "Normal", "Waiting", "x")
            first, second = server.requests
            assert first.json == second.json

    asyncio.run(scenario())


def test_a_refused_event_is_lost_and_the_next_one_is_tried() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            events = recorder(client)
            server.answers += [Answer(403, status(403, "Forbidden")), OK]
            assert not await events.record(pod(), "Normal", "Waiting", "x")
            assert await events.record(pod(), "Normal", "Waiting", "x")
            assert [asked.method for asked in server.requests] == ["POST", "POST"]

    asyncio.run(scenario())


def test_an_object_that_causes_too_many_events_is_cut_off_for_a_while() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            seconds = 0.0
            events = recorder(client, burst=3, seconds=10.0, clock=lambda: seconds)
            server.answers += [OK] * 99
            written = [await events.record(pod(), "Normal", "Waiting", "x") for _ in range(5)]
            assert written == [True, True, True, False, False]
            assert await events.record(pod("b"), "Normal", "Waiting", "x")

            seconds = 10.0
            assert await events.record(pod(), "Normal", "Waiting", "x")
            # What was held back is counted by the next one that passes.
            assert counts(server)[-1] == ("PATCH", 6)
            assert not await events.record(pod(), "Normal", "Waiting", "x")

    asyncio.run(scenario())


def test_a_note_that_is_not_repeated_is_forgotten_after_some_minutes() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            seconds = 0.0
            events = recorder(client, clock=lambda: seconds)
            server.answers += [OK] * 103
            for number in range(100):
                await events.record(pod(f"p{number}"), "Normal", "Scheduled", "assigned")
            seconds = FORGOTTEN_SECONDS - 1
            await events.record(pod("p0"), "Normal", "Scheduled", "assigned")
            assert counts(server)[-1] == ("PATCH", 2)
            seconds = FORGOTTEN_SECONDS + 1
            await events.record(pod("p1"), "Normal", "Scheduled", "assigned")
            assert counts(server)[-1] == ("POST", 1)
            assert sizes(events)["._series"] == sizes(events)["._buckets"] == 2

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["x" * 253, "a.b-", "n"])
def test_names_and_notes_stay_within_what_is_allowed(name: str) -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            server.answers.append(OK)
            node = load({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
            await recorder(client).record(node, "Normal", "Waiting", "é" * 2000)
            body = server.requests[0].json
            assert server.requests[0].path.endswith("/namespaces/default/events")
            assert len(body["metadata"]["name"]) <= 253
            assert ".." not in body["metadata"]["name"]
            assert "-." not in body["metadata"]["name"]
            assert len(body["note"].encode()) <= 1024
            assert "namespace" not in body["regarding"]

    asyncio.run(scenario())


def test_an_event_carries_its_annotations() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            server.answers.append(OK)
            assert await recorder(client).record(pod(), "Normal", "Evict", "x", annotations={"by": "preempt"})
            assert server.requests[0].json["metadata"]["annotations"] == {"by": "preempt"}

    asyncio.run(scenario())
