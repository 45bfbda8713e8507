"""Every scenario on a real API server with kwok for the nodes."""

import asyncio
import signal
import subprocess
import sys

import pytest

from plane.plane import Plane
from tests.live.objects import gang, node
from tests.live.scenarios import SCENARIOS, Scenario, runs
from tests.live.worlds import real_world, until


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_scenario(scenario: Scenario, own_plane: Plane) -> None:
    async def main() -> None:
        async with real_world(own_plane) as world:
            await scenario(world)

    asyncio.run(main())


def test_the_command_schedules_on_the_cluster_of_a_kubeconfig_and_ends_on_a_signal(own_plane: Plane) -> None:
    code = f"from maniple.cli.main import main; main(['run', '--profile', 'volcano', '--kubeconfig', {str(own_plane.kubeconfig)!r}])"

    async def main() -> str:
        async with real_world(own_plane) as world:
            with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as command:
                await world.create([node("n1"), *gang("train", 8)])
                await until(lambda: runs(world, "train", 8), "the gang runs")
                command.send_signal(signal.SIGTERM)
                output, _ = await asyncio.to_thread(command.communicate, timeout=60)
                assert command.returncode == 0
                return output

    assert "8 of 8 bound: n1 ×8" in asyncio.run(main())
