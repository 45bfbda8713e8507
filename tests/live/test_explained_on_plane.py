"""Every scenario of messages that explain, in each profile, on a real API server with kwok for the nodes."""

import asyncio

import pytest

from plane.plane import Plane
from tests.live.explained_scenarios import EXPLAINED, PROFILES, Explained
from tests.live.worlds import real_world


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("scenario", EXPLAINED, ids=lambda scenario: scenario.__name__)
def test_scenario(scenario: Explained, profile: str, own_plane: Plane) -> None:
    async def main() -> None:
        async with real_world(own_plane, "") as world:
            await scenario(world, profile)

    asyncio.run(main())
