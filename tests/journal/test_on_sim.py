"""Every scenario on the embedded cluster, recorded: every cycle of every scheduler is planned again."""

from pathlib import Path

import pytest

from maniple.sim.clock import run
from tests.journal.recording import check, recorded
from tests.live.kai_scenarios import KAI_SCENARIOS
from tests.live.maniple_scenarios import MANIPLE_SCENARIOS
from tests.live.scenarios import Scenario
from tests.live.test_on_sim import ALL as VOLCANO
from tests.live.worlds import EmbeddedWorld


@pytest.mark.parametrize(
    "scenario", [*VOLCANO, *KAI_SCENARIOS, *MANIPLE_SCENARIOS], ids=lambda one: one.__name__
)
def test_every_cycle_of_a_scenario_rewinds_to_its_plan(scenario: Scenario, tmp_path: Path) -> None:
    async def main() -> None:
        await scenario(EmbeddedWorld())

    with recorded(tmp_path) as made:
        run(main(), virtual=True)
    check(made)
