"""The state of a kind, kept by changes: equal to the server's, whatever was missed in between."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.kube.client import Client
from maniple.kube.informer import Change, Informer
from maniple.kube.kinds import KINDS
from maniple.objects.core import Node, Pod
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue
from tests.kube.fake_server import Answer, FakeServer, eventually, status


class Follower:
    """Runs an informer beside the test and keeps the state that its changes give."""

    def __init__(self, client: Client, struct: type[Object] = Pod, **settings: Any) -> None:
        self._informer = Informer(client, KINDS[struct], **settings)
        self.changes: list[Change] = []
        self.state: dict[str, Object] = {}
        self.lists = 0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        async with aclosing(aiter(self._informer)) as changes:
            async for change in changes:
                self._take(change)

    def _take(self, change: Change) -> None:
        self.changes.append(change)
        self.lists += change.type == "sync"
        if change.object is None:
            return
        if change.type == "put":
            self.state[change.object.key] = change.object
        elif change.type == "gone":
            assert self.state.pop(change.object.key).metadata.uid == change.object.metadata.uid

    async def until(self, seen: Callable[[], object]) -> None:
        def look() -> object:
            if self._task.done():
                self._task.result()
            return seen()

        await eventually(look)

    def types(self) -> list[str]:
        return [change.type for change in self.changes]

    def told(self) -> list[tuple[str, str]]:
        return [(change.type, change.object.key if change.object else "") for change in self.changes]


def test_first_the_list_then_the_marker_then_what_happens() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            server.put(Pod, "default/a")
            async with Follower(client) as follower:
                await follower.until(lambda: server.watching)
                server.put(Pod, "default/b")
                server.put(Pod, "default/a", spec={"nodeName": "n"})
                server.remove(Pod, "default/a")
                await follower.until(lambda: len(follower.changes) == 5)
            assert follower.told() == [
                ("put", "default/a"),
                ("sync", ""),
                ("put", "default/b"),
                ("put", "default/a"),
                ("gone", "default/a"),
            ]
            last = follower.changes[-1].object
            assert isinstance(last, Pod)
            assert last.spec.node_name == "n"
            assert {change.kind for change in follower.changes} == {Pod}

    asyncio.run(scenario())


def test_after_a_gap_only_the_differences_are_reported() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            for name in ("same", "changed", "removed", "replaced"):
                server.put(Pod, f"default/{name}")
            async with Follower(client) as follower:
                await follower.until(lambda: server.watching)
                before = len(follower.changes)
                server.gate.clear()
                server.cut_watches()
                server.put(Pod, "default/changed", spec={"nodeName": "n"})
                server.remove(Pod, "default/removed")
                server.remove(Pod, "default/replaced")
                server.put(Pod, "default/replaced")
                server.put(Pod, "default/new")
                # What the cut connection still carried is forgotten too: only a list can tell.
                await follower.until(lambda: not server.watching)
                server.compact()
                server.gate.set()
                await follower.until(lambda: follower.lists == 2 and server.watching)
            told = follower.told()[before:]
            assert len(follower.state) == 4
            assert told[-1] == ("sync", "")
            assert ("put", "default/same") not in told
            assert told.count(("gone", "default/removed")) == 1
            assert told.index(("gone", "default/replaced")) < told.index(("put", "default/replaced"))

    asyncio.run(scenario())


def test_an_object_that_becomes_unreadable_is_gone_until_it_is_mended() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            server.put(Pod, "default/a")
            server.put(Pod, "default/b", spec={"priority": "high"})
            async with Follower(client) as follower:
                await follower.until(lambda: server.watching)
                assert follower.types() == ["put", "bad", "sync"]
                server.put(Pod, "default/a", spec={"priority": "high"})
                server.put(Pod, "default/a", spec={"priority": "high"})
                server.put(Pod, "default/a", spec={"priority": 1})
                server.remove(Pod, "default/b")
                server.put(Pod, "default/c")
                await follower.until(lambda: "default/c" in follower.state)
            assert follower.types()[3:] == ["gone", "bad", "put", "put"]
            assert [*follower.state] == ["default/a", "default/c"]

    asyncio.run(scenario())


def test_a_problem_that_stands_is_not_reported_again_by_the_next_list() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            server.put(Pod, "default/b", spec={"priority": "high"})
            async with Follower(client) as follower:
                await follower.until(lambda: server.watching)
                server.compact()
                server.cut_watches()
                await follower.until(lambda: follower.lists == 2)
            assert follower.types() == ["bad", "sync", "sync"]

    asyncio.run(scenario())


def test_a_kind_that_is_not_installed_is_said_once_and_picked_up_when_it_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        # The group is there, and even another kind of it.
        async with FakeServer(VolcanoQueue) as server, server.client() as client:
            async with Follower(client, VolcanoPodGroup, look_again=30.0) as follower:
                await follower.until(lambda: server.slept.count(30.0) > 3)
                assert follower.types() == ["absent"]
                server.kinds.add(KINDS[VolcanoPodGroup])
                server.put(VolcanoPodGroup, "default/g")
                await follower.until(lambda: "default/g" in follower.state)
            assert follower.types() == ["absent", "put", "sync"]
        lines = [each.message for each in caplog.records if each.levelname == "WARNING"]
        assert lines == [
            "podgroups.scheduling.volcano.sh: not installed on this cluster; looking again every 30 s"
        ]

    asyncio.run(scenario())


def test_when_a_kind_is_removed_its_objects_are_gone_and_it_may_come_back() -> None:
    async def scenario() -> None:
        kind = KINDS[VolcanoQueue]
        async with FakeServer(VolcanoQueue) as server, server.client() as client:
            server.put(VolcanoQueue, "q")
            async with Follower(client, VolcanoQueue) as follower:
                await follower.until(lambda: server.watching)
                server.kinds.remove(kind)
                server.cut_watches()
                await follower.until(lambda: "absent" in follower.types())
                assert follower.state == {}
                server.kinds.add(kind)
                await follower.until(lambda: "q" in follower.state)
            assert follower.types() == ["put", "sync", "gone", "absent", "put", "sync"]

    asyncio.run(scenario())


def test_a_definition_that_is_announced_but_not_served_yet_is_looked_for_again() -> None:
    async def scenario() -> None:
        async with FakeServer(VolcanoQueue) as server, server.client() as client:
            server.answers.append(Answer(404, status(404, "NotFound"), ending="/queues"))
            async with Follower(client, VolcanoQueue) as follower:
                await follower.until(lambda: follower.lists)
            assert follower.types() == ["absent", "sync"]

    asyncio.run(scenario())


def test_a_list_that_is_refused_is_tried_until_it_is_not(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with FakeServer(Node) as server, server.client() as client:
            server.answers += [Answer(403, status(403, "Forbidden", "may not list"), ending="/nodes")] * 3
            async with Follower(client, Node) as follower:
                await follower.until(lambda: follower.lists)
            assert server.slept == pytest.approx([0.1, 0.2, 0.4])
            assert follower.types() == ["forbidden", "sync"]
        lines = [each.message for each in caplog.records if each.levelname == "WARNING"]
        assert lines == ["listing nodes: 403 Forbidden: may not list"]

    asyncio.run(scenario())


STEPS = st.sampled_from(
    ["put 0", "put 1", "put 2", "bad 0", "bad 1", "remove 0", "remove 1", "cut", "compact", "wait"]
)


@settings(max_examples=40)
@given(st.lists(STEPS, max_size=25))
def test_whatever_happens_the_state_becomes_the_servers(steps: list[str]) -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client, Follower(client, page=2) as follower:
            there: dict[str, bool] = {}
            for step in steps:
                verb, _, number = step.partition(" ")
                key = f"default/p{number}"
                if verb in ("put", "bad"):
                    server.put(Pod, key, spec={"priority": "high" if verb == "bad" else 1})
                    there[key] = verb == "put"
                elif verb == "remove" and there.pop(key, None) is not None:
                    server.remove(Pod, key)
                elif verb == "cut":
                    server.cut_watches()
                elif verb == "compact":
                    server.compact()
                    server.cut_watches()
                else:
                    await asyncio.sleep(0.001)
            server.put(Pod, "default/last")
            await follower.until(lambda: "default/last" in follower.state)
            assert {*follower.state} == {"default/last", *(key for key, good in there.items() if good)}

    asyncio.run(scenario())
