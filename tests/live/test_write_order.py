"""What a scheduler writes first when it has much to write."""

import asyncio
from collections.abc import Mapping
from typing import Any

from maniple.live.scheduler import Scheduler
from maniple.objects.core import Pod
from maniple.objects.volcano import VolcanoPodGroup
from maniple.planner import Planner
from maniple.sim.clock import run
from maniple.sim.world import World
from tests.live.beside import beside
from tests.live.objects import gang, group, node
from tests.live.ports import Between


class InOrder(Between):
    """Remembers binds and statuses of groups in the order in which they were sent; each takes a moment."""

    def __init__(self, port: Any) -> None:
        super().__init__(port)
        self.sent: list[str] = []

    async def bind(self, pod: Pod, node: str, annotations: Mapping[str, str] | None = None) -> None:
        self.sent.append(f"bind {pod.metadata.name}")
        await asyncio.sleep(0.1)
        await self._port.bind(pod, node, annotations)

    async def patch_status(
        self, kind: Any, key: str, patch: Mapping[str, Any], subresource: bool | None = None
    ) -> object:
        if kind is VolcanoPodGroup:
            self.sent.append(f"{key.partition('/')[2]} {patch['status']['phase']}")
        await asyncio.sleep(0.1)
        return await self._port.patch_status(kind, key, patch, subresource)


def test_a_gang_that_is_being_bound_is_not_admitted_before_its_binds() -> None:
    """A controller waits for the group without pods; the other group's pods are there, and bound instead."""

    async def main() -> list[str]:
        world = World(start_seconds=0.1)
        port = InOrder(world.port())
        planner = Planner(profile="volcano")
        scheduler = Scheduler(planner, port, clock=world.clock, concurrency=1, inline=True)
        for raw in [node("n1", 8), *gang("train", 4), group("empty", 2)]:
            world.store.create(raw)
        async with beside(scheduler.run(), scheduler.stop):
            await asyncio.sleep(10.0)
        return port.sent

    sent = run(main(), virtual=True)
    last_bind = max(index for index, one in enumerate(sent) if one.startswith("bind"))
    assert sent[:2] == ["bind train-0", "empty Inqueue"], (
        "the first bind begins while the rest is being submitted"
    )
    assert "train Inqueue" not in sent[:last_bind]
    assert sent[-1] == "train Running"
