"""Every scenario with KAI's objects on the embedded cluster, in virtual time."""

import pytest

from maniple.sim.clock import run
from tests.live.kai_scenarios import KAI_SCENARIOS
from tests.live.scenarios import Scenario
from tests.live.worlds import EmbeddedWorld


@pytest.mark.parametrize("scenario", KAI_SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_scenario(scenario: Scenario) -> None:
    async def main() -> None:
        await scenario(EmbeddedWorld())

    run(main(), virtual=True)
