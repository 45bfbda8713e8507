"""Two replicas of the command on a real API server: a stopped leader writes nothing when it is continued."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

from maniple.objects.core import Pod
from maniple.objects.lease import Lease
from tests.live.objects import gang, node
from tests.live.scenarios import runs
from tests.live.test_permissions import ROLE, running, token_of_the_role
from tests.live.worlds import RealWorld, real_world, until
from tests.live_support import CleanPlane

ELECTION = [
    "--leader-elect",
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
]


def replica(kubeconfig: Path) -> list[str]:
    arguments = ["run", "--profile", "volcano", "--kubeconfig", str(kubeconfig), *ELECTION]
    return [sys.executable, "-c", f"from maniple.cli.main import main; main({arguments!r})"]


async def holder(world: RealWorld) -> str:
    leases = await world.objects(Lease)
    return next((one.spec.holder_identity for one in leases if one.metadata.name == "maniple"), "")


def test_a_leader_that_is_stopped_and_continued_writes_nothing_and_ends(
    clean_plane: CleanPlane, tmp_path: Path
) -> None:
    plane = clean_plane("volcano")
    kubeconfig = plane.write_kubeconfig(
        tmp_path / "kubeconfig", "maniple", token_of_the_role(plane, ROLE, "create-queues")
    )
    command, logs = replica(kubeconfig), [tmp_path / "first", tmp_path / "second"]

    async def main() -> None:
        async with real_world(plane) as world:
            with logs[0].open("w") as output, running(command, output) as leader:
                await until(lambda: holder(world), "the first one leads")
                first = await holder(world)
                await world.create([node("n1"), *gang("train", 8)])
                await until(lambda: runs(world, "train", 8), "its gang runs")
                with logs[1].open("w") as more, running(command, more):
                    leader.send_signal(signal.SIGSTOP)
                    await world.create([node("n2"), *gang("next", 8)])
                    await until(lambda: runs(world, "next", 8), "the other one takes over")
                    assert await holder(world) not in ("", first)
                    before = await written(world)
                    leader.send_signal(signal.SIGCONT)
                    assert await ended(leader) == 1
                    assert await written(world) == before

    try:
        asyncio.run(main())
    except AssertionError as error:
        raise AssertionError("\n".join([str(error), *(log.read_text() for log in logs)])) from error
    assert "another replica takes over" in logs[0].read_text()


async def written(world: RealWorld) -> dict[str, str]:
    return {one.key: one.metadata.resource_version for one in await world.objects(Pod)}


async def ended(process: "subprocess.Popen[str]") -> int | None:
    async def over() -> bool:
        return process.poll() is not None

    await until(over, "it ends")
    return process.returncode
