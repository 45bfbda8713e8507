"""Every scenario with objects of both systems or pods without a group, on a real API server with kwok nodes."""

import asyncio

import pytest

from tests.live.group_scenarios import GROUP_SCENARIOS
from tests.live.maniple_scenarios import MANIPLE_SCENARIOS
from tests.live.native_scenarios import NATIVE_SCENARIOS
from tests.live.queue_scenarios import QUEUE_SCENARIOS
from tests.live.scenarios import Scenario
from tests.live.worlds import real_world
from tests.live.written_group_scenarios import WRITTEN_GROUP_SCENARIOS
from tests.live_support import ALL, CleanPlane


@pytest.mark.parametrize(
    "scenario",
    [
        *MANIPLE_SCENARIOS,
        *QUEUE_SCENARIOS,
        *GROUP_SCENARIOS,
        *WRITTEN_GROUP_SCENARIOS,
        *NATIVE_SCENARIOS,
    ],
    ids=lambda scenario: scenario.__name__,
)
def test_scenario(scenario: Scenario, clean_plane: CleanPlane) -> None:
    plane = clean_plane(ALL)

    async def main() -> None:
        async with real_world(plane, "") as world:
            await scenario(world)

    asyncio.run(main())
