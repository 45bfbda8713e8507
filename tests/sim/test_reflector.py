"""What a client is told adds up to what is in the store, through cuts, forgetting and objects that cannot be read."""

import asyncio
from contextlib import aclosing
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from maniple.objects.core import Node
from maniple.sim.clock import run
from maniple.sim.cluster import SimCluster
from maniple.sim.reflector import SimChange
from maniple.sim.store import Store
from maniple.sim.world import World
from tests.live.objects import node

STEPS = st.sampled_from(("create", "change", "remove", "cut", "hang up", "mend", "compact", "wait", "spoil"))


class Reader:
    """A client that keeps what it is told."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {}
        self.bad: list[str] = []
        self.told: list[SimChange] = []

    async def read(self, port: SimCluster) -> None:
        async with aclosing(port.changes([Node])) as changes:
            async for change in changes:
                self.told.append(change)
                item = change.object
                if change.type == "put" and item is not None:
                    self.known[item.key] = item.metadata.resource_version
                elif change.type == "gone" and item is not None:
                    del self.known[item.key]
                elif change.type == "bad":
                    self.bad.append(str(change.problem))


def step(store: Store, name: str, number: int) -> None:
    key = f"n{number % 3}"
    there = store.find(Node, key) is not None
    if name == "create" and not there:
        store.create(node(key))
    elif name == "change" and there:
        store.patch(Node, key, {"metadata": {"labels": {"n": str(number)}}})
    elif name == "spoil" and there:
        store.patch(Node, key, {"status": {"allocatable": {"cpu": "many"}}})
    elif name == "remove" and there:
        store.remove(Node, key)
    elif name in ("cut", "hang up"):
        store.cut(until_mended=name == "hang up")
    elif name == "mend":
        store.mend()
    elif name == "compact":
        store.compact()


@given(st.lists(STEPS, max_size=40))
def test_a_reader_knows_what_is_there_whatever_happened_on_the_way(steps: list[str]) -> None:
    async def main() -> None:
        world, reader = World(), Reader()
        reading = asyncio.create_task(reader.read(world.port()))
        for number, name in enumerate(steps):
            step(world.store, name, number)
            if name == "wait":
                await asyncio.sleep(1)
        world.store.mend()
        await asyncio.sleep(1)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        there = {
            raw["metadata"]["name"]: raw["metadata"]["resourceVersion"]
            for raw in world.store.list(Node)[0]
            if raw["status"]["allocatable"]["cpu"] != "many"
        }
        assert reader.known == there
        assert [change.type for change in reader.told].count("synced") == 1

    run(main(), virtual=True)


def test_an_object_that_cannot_be_read_is_reported_once_and_counts_as_gone() -> None:
    async def main() -> None:
        world, reader = World(), Reader()
        world.store.create(node("n0"))
        port = world.port()
        reading = asyncio.create_task(reader.read(port))
        await asyncio.sleep(1)
        step(world.store, "spoil", 0)
        await asyncio.sleep(1)
        world.store.cut()
        world.store.create(node("n1"))
        world.store.compact()
        await asyncio.sleep(1)
        assert (list(reader.known), len(reader.bad)) == (["n1"], 1)
        assert "status.allocatable.cpu" in reader.bad[0]
        assert port.relists == 1
        world.store.patch(Node, "n0", {"status": {"allocatable": {"cpu": "4"}}})
        await asyncio.sleep(1)
        assert sorted(reader.known) == ["n0", "n1"]
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)

    run(main(), virtual=True)
