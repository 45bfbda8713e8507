"""Gangs arrive and end for a long time: what the scheduler keeps is flat after the first minutes.

Some gangs run for seconds, some have no room for a while, some are deleted while they wait; nodes leave and come back.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from maniple.kube.errors import ApiError
from maniple.kube.kinds import KINDS, PODS
from maniple.objects.core import Node, Pod
from maniple.objects.volcano import VolcanoPodGroup
from tests.chaos.stage import ROOT, Stage, Violation
from tests.live.objects import NAMESPACE, gang, node

NODES = 20
PAUSE = 0.5  # between two gangs
GANGS_AT_ONCE = 40
# Of all the time, this much is for everything to reach its size.
WARM_UP = 1 / 6
# How much larger than ever during the second sixth something may be at the end, by chance.
MORE = 1.15
# Containers follow the rate of arrivals, which varies with the machine; a leak grows by several times.
MORE_IN_CONTAINERS = 1.5
MORE_ITEMS = 120

State = dict[str, Any]


async def soak(stage: Stage, minutes: float, say: Callable[[str], None]) -> None:
    states: list[State] = []
    log = stage.logs / "soak.log"
    command = [sys.executable, "-m", "tests.chaos.counted", str(stage.plane.kubeconfig)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    await stage.create([node(f"soak{index}") for index in range(NODES)])
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=subprocess.PIPE, stderr=errors, env=environment, limit=1 << 22
        )
    reading = asyncio.create_task(_read(process, states, say))
    try:
        await _arrivals(stage, minutes, process)
    finally:
        process.terminate()
        await process.wait()
        await reading
    if not states:
        raise Violation(f"the scheduler said nothing: {log.read_text()[-2000:]}")
    judge(states, say)


async def _read(process: asyncio.subprocess.Process, states: list[State], say: Callable[[str], None]) -> None:
    assert process.stdout is not None
    told = 0.0
    async for line in process.stdout:
        state: State = json.loads(line)
        states.append(state)
        if time.monotonic() - told > 60.0:
            told = time.monotonic()
            say(_line(state))


def _line(state: State) -> str:
    entries = sum(state["sizes"].values())
    return (
        f"{state['rss_mib']:.0f} MiB, {state['files']} files, {state['tasks']} tasks, "
        f"{entries} entries, {state['cycles']} cycles"
    )


async def _arrivals(stage: Stage, minutes: float, process: asyncio.subprocess.Process) -> None:
    chance, end, number = random.Random(1), time.monotonic() + 60 * minutes, 0
    there: list[str] = []
    while time.monotonic() < end:
        if process.returncode is not None:
            raise Violation(f"the scheduler ended with code {process.returncode}")
        number += 1
        name = f"soak{number}"
        raws = gang(name, 8, cpu=chance.choice(["1", "1", "2"]))
        for raw in raws[1:]:
            raw["metadata"]["annotations"]["maniple.dev/run-for"] = f"{chance.randint(1, 6)}s"
        await stage.create(raws)
        there.append(name)
        if len(there) > GANGS_AT_ONCE:
            await _remove(stage, there.pop(chance.randrange(10)))
        if number % 50 == 0:
            await _replace_node(stage, f"soak{number // 50 % NODES}")
        await asyncio.sleep(PAUSE)


async def _remove(stage: Stage, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    for index in range(8):
        await _delete(stage, PODS.path(f"{NAMESPACE}/{name}-{index}"), body)
    await _delete(stage, KINDS[VolcanoPodGroup].at("v1beta1").path(f"{NAMESPACE}/{name}"), body)


async def _replace_node(stage: Stage, name: str) -> None:
    """A node goes with its pods, and comes back."""
    on_it = [one for one in await stage.pods() if one.spec.node_name == name]
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    await _delete(stage, KINDS[Node].at("v1").path(name), body)
    for one in on_it:
        await _delete(stage, KINDS[Pod].at("v1").path(one.key), body)
    await stage.create([node(name)])


async def _delete(stage: Stage, path: str, body: dict[str, Any]) -> None:
    try:
        await stage.client.request("DELETE", path, body=body)
    except ApiError as error:
        if error.status != 404:
            raise


def judge(states: list[State], say: Callable[[str], None]) -> None:
    """Compare the last sixth with the second one."""
    part = max(1, round(len(states) * WARM_UP))
    early, late = states[part : 2 * part] or states[:part], states[-part:]
    say(f"after the first part: {_line(early[0])}")
    say(f"at the end: {_line(late[-1])}")
    problems = []
    for name in ("rss_mib", "files", "tasks"):
        before, after = (max(state[name] for state in some) for some in (early, late))
        if after > before * MORE + 2:
            problems.append(f"{name} {before} to {after}")
    paths = {path for state in late for path in state["sizes"]}
    for path in sorted(paths):
        before, after = (max(state["sizes"].get(path, 0) for state in some) for some in (early, late))
        if after > before * MORE_IN_CONTAINERS + MORE_ITEMS:
            problems.append(f"{path} {before} to {after}")
    if problems:
        raise Violation(f"it grows: {', '.join(problems)}")
