"""Every scenario of messages that explain, each in one profile, on a real API server with kwok for the nodes.

On the embedded cluster each runs in all of them.
"""

import asyncio

import pytest

from plane.plane import Plane
from tests.live.explained_scenarios import EXPLAINED, PROFILES, Explained
from tests.live.worlds import real_world


@pytest.mark.parametrize(
    ("scenario", "profile"),
    [*zip(EXPLAINED, PROFILES, strict=True)],
    ids=[scenario.__name__ for scenario in EXPLAINED],
)
def test_scenario(scenario: Explained, profile: str, own_plane: Plane) -> None:
    async def main() -> None:
        async with real_world(own_plane, "") as world:
            await scenario(world, profile)

    asyncio.run(main())
