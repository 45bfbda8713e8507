"""Hostile objects on a real API server: whatever it accepts, a healthy gang of another namespace is bound at once.

The objects are those of `tests/hostile/cases.py`. Some of them the API server refuses; the rest stay there together.
"""

import asyncio
import json
import time
from typing import Any

from maniple.kube.errors import ApiError
from maniple.kube.kinds import PODS, resource_of
from tests.chaos.faults import MORE_SECONDS, Scenario, usual, waits_no_longer
from tests.chaos.stage import Stage, Violation
from tests.hostile.cases import CASES
from tests.hostile.objects import HOSTILE, Raw, Writer
from tests.live.objects import GROUP_NAME, NAMESPACE, gang

LEAST_ACCEPTED = 0.6  # of the cases; fewer would show little
QUICK = 6  # cases of a quick round; the next round has others
AT_ONCE = 16


async def hostile_objects(stage: Stage, quick: bool) -> None:
    """One case after the other, none of them taken away, and a healthy gang after each."""
    writer = Writer("volcano")
    cases = CASES[stage.number % len(CASES) :][:QUICK] if quick else CASES
    async with stage.scheduler():
        await stage.nodes(10 if quick else 100, cpu=64)
        before = await usual(stage)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOSTILE}}
        await _create(stage, [namespace, {**writer.queue("mean"), "status": {}}])
        accepted = 0
        for number, case in enumerate(cases):
            objects = [_renamed(raw, f"r{stage.number}-{number}-") for raw in case(writer)]
            accepted += await _create(stage, objects)
            name = stage.name(f"healthy{number}")
            seconds = await _latency(stage, name)
            stage.check_time(seconds, before + MORE_SECONDS, f"binding a healthy gang beside {case.__name__}")
        if accepted < LEAST_ACCEPTED * len(cases):
            raise Violation(f"the API server accepted only {accepted} of {len(cases)} cases")
        await waits_no_longer(stage, stage.name("last"), before)
    await _clear(stage)


async def _create(stage: Stage, raws: list[Raw]) -> bool:
    """Whether the API server accepts the first pod, or whatever is last of objects without one."""
    gate = asyncio.Semaphore(AT_ONCE)
    refused: list[str] = []

    async def one(raw: Raw) -> None:
        async with gate:
            try:
                await stage.client.create(resource_of(raw), raw["metadata"].get("namespace", ""), raw)
            except ApiError as error:
                if error.status != 409:
                    refused.append(raw["kind"])

    for some in (
        [raw for raw in raws if raw["kind"] != "Pod"],
        [raw for raw in raws if raw["kind"] == "Pod"],
    ):
        await asyncio.gather(*map(one, some))
    return "Pod" not in refused and len(refused) < len(raws)


def _renamed(raw: Raw, prefix: str) -> Raw:
    """With a name of its own, and that of its group."""
    metadata: dict[str, Any] = {**raw["metadata"], "name": prefix + raw["metadata"]["name"]}
    metadata.pop("uid", None)
    notes = metadata.get("annotations", {})
    if GROUP_NAME in notes:
        metadata["annotations"] = {**notes, GROUP_NAME: prefix + notes[GROUP_NAME]}
    return {**raw, "metadata": metadata}


async def _latency(stage: Stage, name: str) -> float:
    began = await stage.create(gang(name, 8))
    await stage.until(lambda: _is_bound(stage, name), f"gang {name} is bound")
    return time.monotonic() - began


async def _is_bound(stage: Stage, name: str) -> bool:
    """Asked of the healthy namespace alone: a list of the others would be megabytes."""
    pods = json.loads(await stage.client.request("GET", PODS.path_in(NAMESPACE)))["items"]
    mine = [one for one in pods if one["metadata"].get("annotations", {}).get(GROUP_NAME) == name]
    return len(mine) == 8 and all(one["spec"].get("nodeName") for one in mine)


async def _clear(stage: Stage) -> None:
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    await stage.client.request("DELETE", PODS.path_in(HOSTILE), body=body)


HOSTILES: tuple[Scenario, ...] = (hostile_objects,)
