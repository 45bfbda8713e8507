"""Lists in pages and watches that go on: nothing is lost and nothing is told twice, whatever the connection does."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from maniple.kube.client import Client
from maniple.kube.decode import Bad
from maniple.kube.errors import ApiError
from maniple.kube.kinds import KINDS, PODS
from maniple.kube.watch import RESTARTS, Event, ExpiredError, list_all, list_pages, watch
from maniple.objects.core import Pod
from tests.kube.fake_server import Answer, FakeServer, eventually, names, status

POD = KINDS[Pod]


def fill(server: FakeServer, count: int) -> list[str]:
    for number in range(count):
        server.put(Pod, f"default/p{number}")
    return [f"p{number}" for number in range(count)]


def test_a_list_comes_in_pages() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            wanted = fill(server, 7)
            sizes = [len(page.objects) async for page in list_pages(client, POD, PODS, limit=3)]
            assert sizes == [3, 3, 1]
            whole = await list_all(client, POD, PODS, limit=3)
            assert names(whole.objects) == wanted
            assert whole.resource_version == str(server.version)
            server.kinds.clear()
            with pytest.raises(ApiError, match=r"^404 "):
                await list_all(client, POD, PODS)

    asyncio.run(scenario())


def test_a_list_that_expires_halfway_begins_again() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            fill(server, 5)
            pages = list_pages(client, POD, PODS, limit=2)
            first = await anext(pages)
            assert first.first
            server.compact()
            server.remove(Pod, "default/p0")
            rest = [page async for page in pages]
            assert [page.first for page in rest] == [True, False]
            assert names(thing for page in rest for thing in page.objects) == ["p1", "p2", "p3", "p4"]

    asyncio.run(scenario())


def test_a_list_that_never_comes_to_its_end_in_pages_is_asked_for_whole() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            wanted = fill(server, 5)
            async with aclosing(list_pages(client, POD, PODS, limit=2)) as pages:
                things: list[str] = []
                async for page in pages:
                    things = [*([] if page.first else things), *names(page.objects)]
                    server.compact()
            assert things == wanted
            assert len(server.asked(limit="2")) == 2 * (RESTARTS + 1)

    asyncio.run(scenario())


def test_a_bad_object_is_set_aside() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            server.put(Pod, "default/a")
            server.put(Pod, "default/b", spec={"priority": "high"})
            page = await list_all(client, POD, PODS)
            assert names(page.objects) == ["a"]
            assert [str(bad.problem).startswith("Pod default/b: spec.priority") for bad in page.bad] == [True]

    asyncio.run(scenario())


class Watched:
    """A watch that runs beside the test; `told` is what it has said."""

    def __init__(self, client: Client, since: int, **settings: Any) -> None:
        self.told: list[tuple[str, str]] = []
        self.events: list[Event] = []
        self.task = asyncio.create_task(self._run(client, since, settings))

    async def _run(self, client: Client, since: int, settings: dict[str, Any]) -> None:
        async with aclosing(watch(client, POD, PODS, str(since), **settings)) as events:
            async for event in events:
                self.events.append(event)
                thing = event.object
                self.told.append((event.type, thing.key))

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def test_a_watch_tells_what_happens_and_goes_on_after_cuts() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            watched = Watched(client, server.version)
            await eventually(lambda: server.watching)
            for number in range(5):
                server.put(Pod, f"default/p{number}")
                if number % 2:
                    await eventually(lambda: len(watched.told) == number + 1)  # noqa: B023
                    server.cut_watches()
            server.remove(Pod, "default/p0")
            await eventually(lambda: len(watched.told) == 6)
            await watched.stop()
            puts = [("put", f"default/p{number}") for number in range(5)]
            assert watched.told == [*puts, ("gone", "default/p0")]

    asyncio.run(scenario())


def test_a_watch_goes_on_from_the_last_bookmark() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            watched = Watched(client, server.version)
            await eventually(lambda: server.watching)
            server.send({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "4711"}}})
            server.cut_watches()
            await eventually(lambda: server.asked(resourceVersion="4711", allowWatchBookmarks="true"))
            await watched.stop()
            assert watched.told == []

    asyncio.run(scenario())


def test_half_a_line_at_the_end_is_not_an_event() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            watched = Watched(client, server.version)
            await eventually(lambda: server.watching)
            server.send(b'{"type":"ADDED","object":{"metadata":{"name":"half"')
            server.cut_watches()
            await eventually(lambda: len(server.asked(watch="true")) == 2)
            server.put(Pod, "default/whole")
            await eventually(lambda: watched.told)
            await watched.stop()
            assert watched.told == [("put", "default/whole")]

    asyncio.run(scenario())


def test_a_very_long_line_arrives_whole() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            watched = Watched(client, server.version)
            await eventually(lambda: server.watching)
            server.put(Pod, "default/long", data="x" * 3_000_000)
            await eventually(lambda: watched.told)
            await watched.stop()
            assert watched.told == [("put", "default/long")]

    asyncio.run(scenario())


def test_a_bad_object_does_not_end_the_watch_and_counts_for_where_to_go_on() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            watched = Watched(client, server.version)
            await eventually(lambda: server.watching)
            server.put(Pod, "default/a", spec={"priority": "high"})
            await eventually(lambda: watched.told)
            server.cut_watches()
            await eventually(lambda: server.asked(watch="true", resourceVersion=str(server.version)))
            server.put(Pod, "default/b")
            await eventually(lambda: len(watched.told) == 2)
            await watched.stop()
            assert isinstance(watched.events[0].object, Bad)
            assert watched.told == [("put", "default/a"), ("put", "default/b")]

    asyncio.run(scenario())


@pytest.mark.parametrize("how", ["event", "answer", "garbage", "too large"])
def test_a_forgotten_version_asks_for_a_new_list(how: str) -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            if how == "answer":
                server.answers.append(Answer(410, status(410, "Expired")))
            if how == "too large":
                causes = [{"reason": "ResourceVersionTooLarge"}]
                server.answers.append(Answer(504, status(504, "Timeout", causes=causes)))
            if how == "garbage":
                server.answers.append(Answer(200, b"<html>\n"))
            if how == "event":
                server.compact()
            with pytest.raises(ExpiredError):
                await anext(watch(client, POD, PODS, "1"))

    asyncio.run(scenario())


def test_a_watch_waits_longer_and_longer_for_a_server_that_refuses(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            server.answers += [Answer(503)] * 3
            server.answers.append(Answer(429, b"", {"Retry-After": "9"}))
            server.answers.append(Answer(403, status(403, "Forbidden", "may not watch")))
            watched = Watched(client, server.version)
            await eventually(lambda: server.watching)
            server.put(Pod, "default/a")
            await eventually(lambda: watched.told)
            await watched.stop()
            assert server.slept == pytest.approx([0.1, 0.2, 0.4, 9.8, 1.6])
            warnings = [each.message for each in caplog.records if each.levelname == "WARNING"]
            assert len(warnings) == 3
            assert warnings[2] == "watching pods: 403 Forbidden: may not watch"

    asyncio.run(scenario())


def test_a_server_that_hangs_up_at_once_is_not_asked_without_pause() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            server.answers += [Answer(200)] * 3
            watched = Watched(client, server.version)
            await eventually(lambda: server.watching)
            await watched.stop()
            assert server.slept == pytest.approx([0.1, 0.2, 0.4])

    asyncio.run(scenario())


def test_a_silent_connection_is_given_up_and_opened_again() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            watched = Watched(client, server.version, seconds=0, overdue=0.05)
            await eventually(lambda: len(server.asked(watch="true")) >= 3)
            server.put(Pod, "default/a")
            await eventually(lambda: watched.told)
            await watched.stop()
            assert watched.told == [("put", "default/a")]

    asyncio.run(scenario())


def test_a_kind_that_is_no_longer_served_ends_the_watch() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            with pytest.raises(ApiError, match=r"^404 "):
                await anext(watch(client, POD, PODS, "1"))

    asyncio.run(scenario())
