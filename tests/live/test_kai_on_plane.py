"""Every scenario with KAI's objects on a real API server with kwok for the nodes and a small binder."""

import asyncio

import pytest

from tests.live.binder import binding
from tests.live.kai_scenarios import KAI_SCENARIOS
from tests.live.scenarios import Scenario
from tests.live.worlds import real_world
from tests.live_support import CleanPlane


@pytest.mark.parametrize("scenario", KAI_SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_scenario(scenario: Scenario, clean_plane: CleanPlane) -> None:
    plane = clean_plane("kai")

    async def main() -> None:
        async with real_world(plane, "kai") as world, binding(world.direct_port()):
            await scenario(world)

    asyncio.run(main())
