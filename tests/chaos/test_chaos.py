"""A short round of `make chaos`, and that its judge sees what it has to see."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from plane.plane import Plane
from tests.chaos.faults import Scenario, a_missing_permission, failing_webhook, killed_in_the_middle
from tests.chaos.hostile import HOSTILES
from tests.chaos.leaders import a_leader_that_is_killed_while_it_binds
from tests.chaos.stage import Stage, Violation, stage
from tests.live.objects import gang

SHORT: tuple[Scenario, ...] = (
    failing_webhook,
    killed_in_the_middle,
    a_missing_permission,
    a_leader_that_is_killed_while_it_binds,
    *HOSTILES,
)


def play(plane: Plane, logs: Path, scene: Callable[[Stage], Awaitable[None]]) -> None:
    async def main() -> None:
        async with stage(plane, logs, timed=False) as place:
            await scene(place)

    asyncio.run(main())


def test_a_short_round_of_chaos(own_plane: Plane, tmp_path: Path) -> None:
    async def scene(place: Stage) -> None:
        for one in SHORT:
            place.number += 1
            await one(place, True)
            await place.clear()
        assert place.judge_logs() >= len(SHORT)

    play(own_plane, tmp_path, scene)


def test_the_judge_sees_half_a_gang_a_full_node_a_token_and_an_exception(
    own_plane: Plane, tmp_path: Path
) -> None:
    async def scene(place: Stage) -> None:
        (node,) = await place.nodes(1, cpu=2)
        _, first, *others = gang("half", 3)
        first["spec"]["nodeName"] = node
        await place.create([first, *others])
        with pytest.raises(Violation, match="gang half has 1 of 3 pods"):
            await place.judge([("half", 3)])
        await place.take(node, 2)
        with pytest.raises(Violation, match="3 of 2 CPUs"):
            await place.judge_capacity()
        (tmp_path / "scheduler.log").write_text(f"sent {own_plane.token} to the server")
        with pytest.raises(Violation, match="token"):
            place.judge_logs()
        (tmp_path / "scheduler.log").write_text(
            "planning failed: KeyError\nTraceback (most recent call last):"
        )
        with pytest.raises(Violation, match="exception"):
            place.judge_logs()

    play(own_plane, tmp_path, scene)
