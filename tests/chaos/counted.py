"""A scheduler that says what it keeps, for the soak: `python -m tests.chaos.counted KUBECONFIG`.

Every few seconds a line of JSON on standard output: memory, open files, tasks, and the length of every container.
"""

import asyncio
import gc
import json
import os
import sys
from pathlib import Path

from maniple.cli.run import COLLECT
from maniple.kube.client import Client
from maniple.kube.cluster import KubeCluster
from maniple.kube.configuration import load_configuration
from maniple.live.scheduler import Scheduler
from maniple.planner import Planner
from tests.chaos.sizes import sizes

EVERY_SECONDS = 5.0


async def main(kubeconfig: Path) -> None:
    gc.set_threshold(*COLLECT)
    async with Client(load_configuration(kubeconfig)) as client:
        scheduler = Scheduler(Planner(profile="volcano"), KubeCluster(client))
        running = asyncio.create_task(scheduler.run())
        while not running.done():
            await asyncio.wait([running], timeout=EVERY_SECONDS)
            sys.stdout.write(json.dumps(_state(scheduler)) + "\n")
            sys.stdout.flush()
        await running


def _state(scheduler: Scheduler) -> dict[str, object]:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return {
        "rss_mib": round(pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20), 1),
        "files": len(os.listdir("/proc/self/fd")),
        "tasks": len(asyncio.all_tasks()),
        "cycles": scheduler.cycles,
        "sizes": sizes(scheduler),
    }


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
