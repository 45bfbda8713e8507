"""Every scenario of messages that explain, each in one profile, on a real API server with kwok for the nodes.

On the embedded cluster each runs in all of them.
"""

import asyncio

import pytest

from tests.live.explained_scenarios import EXPLAINED, PROFILES, Explained
from tests.live.worlds import real_world
from tests.live_support import ALL, CleanPlane


@pytest.mark.parametrize(
    ("scenario", "profile"),
    [*zip(EXPLAINED, PROFILES, strict=True)],
    ids=[scenario.__name__ for scenario in EXPLAINED],
)
def test_scenario(scenario: Explained, profile: str, clean_plane: CleanPlane) -> None:
    plane = clean_plane(ALL)

    async def main() -> None:
        async with real_world(plane, "") as world:
            await scenario(world, profile)

    asyncio.run(main())
