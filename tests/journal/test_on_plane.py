"""Scenarios on a real API server, recorded: every cycle of every scheduler is planned again."""

import asyncio
from pathlib import Path

import pytest

from plane.plane import Plane
from tests.journal.recording import check, recorded
from tests.live import fault_scenarios, scenarios
from tests.live.scenarios import Scenario
from tests.live.worlds import real_world

CHOSEN = [
    scenarios.a_gang_that_does_not_fit_binds_nothing_says_why_and_runs_when_a_node_comes,
    *fault_scenarios.FAULT_SCENARIOS[:2],
]


@pytest.mark.parametrize("scenario", CHOSEN, ids=lambda scenario: scenario.__name__)
def test_every_cycle_rewinds_to_its_plan(scenario: Scenario, own_plane: Plane, tmp_path: Path) -> None:
    async def main() -> None:
        async with real_world(own_plane) as world:
            await scenario(world)

    with recorded(tmp_path) as made:
        asyncio.run(main())
    assert check(made)
