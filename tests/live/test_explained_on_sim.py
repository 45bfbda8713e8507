"""Every scenario of messages that explain, in each profile, on the embedded cluster, in virtual time."""

import pytest

from maniple.sim.clock import run
from tests.live.explained_scenarios import EXPLAINED, PROFILES, Explained
from tests.live.worlds import EmbeddedWorld


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("scenario", EXPLAINED, ids=lambda scenario: scenario.__name__)
def test_scenario(scenario: Explained, profile: str) -> None:
    async def main() -> None:
        await scenario(EmbeddedWorld(), profile)

    run(main(), virtual=True)
