"""Scenarios on a real API server, recorded: every cycle of every scheduler is planned again."""

import asyncio
from pathlib import Path

import pytest

from tests.journal.recording import check, recorded
from tests.live import fault_scenarios, maniple_scenarios, scenarios
from tests.live.scenarios import Scenario
from tests.live.worlds import real_world
from tests.live_support import ALL, CleanPlane

# Arrivals while nodes come and go, a half-bound gang whose room is kept, and evictions.
CHOSEN = [
    pytest.param(scenarios.a_thousand_pods_arrive_while_nodes_come_and_go, "volcano", marks=pytest.mark.long),
    (fault_scenarios.half_a_gang_keeps_the_missing_room_and_is_taken_back_after_a_time, "volcano"),
    (maniple_scenarios.room_is_made_for_a_more_important_gang_of_the_other_system, ""),
    (maniple_scenarios.a_pod_that_has_to_move_says_where_to_until_it_is_gone, ""),
]


@pytest.mark.parametrize(("scenario", "dialect"), CHOSEN, ids=lambda one: getattr(one, "__name__", ""))
def test_every_cycle_rewinds_to_its_plan(
    scenario: Scenario, dialect: str, clean_plane: CleanPlane, tmp_path: Path
) -> None:
    plane = clean_plane(dialect or ALL)

    async def main() -> None:
        async with real_world(plane, dialect) as world:
            await scenario(world)

    with recorded(tmp_path) as made:
        asyncio.run(main())
    assert check(made)
