"""Every scenario on the embedded cluster, in virtual time."""

import pytest

from maniple.sim.clock import run
from tests.live.fault_scenarios import FAULT_SCENARIOS
from tests.live.guard_scenarios import GUARD_SCENARIOS
from tests.live.leader_scenarios import LEADER_SCENARIOS
from tests.live.need_scenarios import NEED_SCENARIOS
from tests.live.operation_scenarios import OPERATION_SCENARIOS
from tests.live.policy_scenarios import POLICY_SCENARIOS
from tests.live.scenarios import SCENARIOS, Scenario
from tests.live.worlds import EmbeddedWorld

ALL = [
    *SCENARIOS,
    *NEED_SCENARIOS,
    *LEADER_SCENARIOS,
    *FAULT_SCENARIOS,
    *GUARD_SCENARIOS,
    *OPERATION_SCENARIOS,
    *POLICY_SCENARIOS,
]


@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.__name__)
def test_scenario(scenario: Scenario) -> None:
    async def main() -> None:
        await scenario(EmbeddedWorld())

    run(main(), virtual=True)
