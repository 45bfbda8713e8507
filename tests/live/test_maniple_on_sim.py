"""Every scenario with objects of both systems or pods without a group, on the embedded cluster in virtual time."""

import pytest

from maniple.sim.clock import run
from tests.live.group_scenarios import GROUP_SCENARIOS
from tests.live.maniple_scenarios import MANIPLE_SCENARIOS
from tests.live.native_scenarios import NATIVE_SCENARIOS
from tests.live.queue_scenarios import QUEUE_SCENARIOS
from tests.live.scenarios import Scenario
from tests.live.worlds import EmbeddedWorld
from tests.live.written_group_scenarios import WRITTEN_GROUP_SCENARIOS


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
def test_scenario(scenario: Scenario) -> None:
    async def main() -> None:
        await scenario(EmbeddedWorld())

    run(main(), virtual=True)
