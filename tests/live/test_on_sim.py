"""Every scenario on the embedded cluster, in virtual time."""

import pytest

from maniple.sim.clock import run
from tests.live.need_scenarios import NEED_SCENARIOS
from tests.live.scenarios import SCENARIOS, Scenario
from tests.live.worlds import EmbeddedWorld


@pytest.mark.parametrize("scenario", [*SCENARIOS, *NEED_SCENARIOS], ids=lambda scenario: scenario.__name__)
def test_scenario(scenario: Scenario) -> None:
    async def main() -> None:
        await scenario(EmbeddedWorld())

    run(main(), virtual=True)
