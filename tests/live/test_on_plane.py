"""Every scenario on a real API server with kwok for the nodes."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.live.fault_scenarios import FAULT_SCENARIOS
from tests.live.guard_scenarios import GUARD_SCENARIOS
from tests.live.leader_scenarios import LEADER_SCENARIOS
from tests.live.need_scenarios import NEED_SCENARIOS
from tests.live.objects import gang, node
from tests.live.operation_scenarios import OPERATION_SCENARIOS
from tests.live.policy_scenarios import POLICY_SCENARIOS
from tests.live.scenarios import SCENARIOS, Scenario, runs
from tests.live.test_permissions import running
from tests.live.worlds import real_world, until
from tests.live_support import CleanPlane

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
def test_scenario(scenario: Scenario, clean_plane: CleanPlane) -> None:
    plane = clean_plane("volcano")

    async def main() -> None:
        async with real_world(plane) as world:
            await scenario(world)

    asyncio.run(main())


def test_the_command_schedules_on_the_cluster_of_a_kubeconfig_and_ends_on_a_signal(
    clean_plane: CleanPlane, tmp_path: Path
) -> None:
    plane = clean_plane("volcano")
    code = f"from maniple.cli.main import main; main(['run', '--profile', 'volcano', '--kubeconfig', {str(plane.kubeconfig)!r}])"
    log = tmp_path / "output"

    async def main() -> None:
        async with real_world(plane) as world:
            with log.open("w") as output, running([sys.executable, "-c", code], output) as command:
                await world.create([node("n1"), *gang("train", 8)])
                await until(lambda: runs(world, "train", 8), "the gang runs")
            assert command.returncode == 0

    asyncio.run(main())
    assert "8 of 8 bound: n1 ×8" in log.read_text()
