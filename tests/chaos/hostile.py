"""Hostile objects on a real API server: whatever it accepts, a healthy gang of another namespace is bound at once.

The objects are those of `tests/hostile/cases.py`, in the dialects that a profile reads: each case alone, then all that
the API server accepts at the same time.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

from maniple.kube.errors import ApiError
from maniple.kube.kinds import KINDS, PODS, resource_of
from maniple.objects.core import Pod, PodDisruptionBudget
from maniple.objects.dra import ResourceClaim
from maniple.objects.kai import KaiPodGroup
from maniple.objects.volcano import VolcanoPodGroup
from tests.chaos.faults import MORE_SECONDS, Scenario
from tests.chaos.stage import Stage, Violation
from tests.hostile.cases import CASES, Case
from tests.hostile.objects import HOSTILE, Raw, Writer
from tests.live.objects import NAMESPACE

LEAST_ACCEPTED = 0.6  # of the cases; fewer would show little
TOGETHER_SECONDS = 3.0  # that a gang may wait longer beside all cases: a thousand jobs and 20 MB of objects
QUICK = 5  # cases of a quick round; the next round has others
AT_ONCE = 16
SIZE = 8


async def hostile_objects(stage: Stage, quick: bool) -> None:
    """Volcano's groups, with Volcano's rules."""
    await _each_and_all(stage, quick, "volcano", [Writer("volcano")])


async def hostile_objects_with_kai(stage: Stage, quick: bool) -> None:
    """KAI's groups, with KAI's rules; the scheduler binds by itself, since KAI's binder is not here."""
    await _each_and_all(stage, quick, "kai", [Writer("kai")], "--bind=direct")


async def hostile_objects_with_both(stage: Stage, quick: bool) -> None:
    """Groups of both systems in turn, in Maniple's own profile."""
    await _each_and_all(stage, quick, "maniple", [Writer("maniple"), Writer("maniple", kai=True)])


async def _each_and_all(
    stage: Stage, quick: bool, profile: str, writers: Sequence[Writer], *options: str
) -> None:
    """A healthy gang beside each case, and one beside all of them."""
    first = QUICK * stage.number % len(CASES)
    cases = [*CASES[first:], *CASES[:first]][:QUICK] if quick else CASES
    async with stage.scheduler(*options, profile=profile):
        await stage.nodes(10 if quick else 100, cpu=64)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOSTILE}}
        await _create(stage, [namespace, *(queue for one in writers for queue in one.queues())])
        before = await _usual(stage, writers[0])
        accepted, slow = 0, []
        for number, case in enumerate(cases):
            writer = writers[(number + stage.number) % len(writers)]
            accepted += await _create(stage, _objects(case, writer, f"r{stage.number}-{number}-"))
            for healthy in writers:
                seconds = await _latency(stage, stage.name(f"healthy{number}"), healthy)
                if stage.is_late(seconds, before + MORE_SECONDS):
                    slow.append(f"{case.__name__} {seconds:.1f} s")
            await _clear(stage)
        if slow:
            raise Violation(
                f"a healthy gang, usually bound in {before:.1f} s, waits beside {', '.join(slow)}"
            )
        # A short round may have met mostly cases that the API server refuses.
        least = 1 if quick else LEAST_ACCEPTED * len(cases)
        if accepted < least:
            raise Violation(f"the API server accepted only {accepted} of {len(cases)} cases")
        await _all_together(stage, cases, writers, before + TOGETHER_SECONDS)
    await _clear(stage)


async def _all_together(stage: Stage, cases: Sequence[Case], writers: Sequence[Writer], most: float) -> None:
    for number, case in enumerate(cases):
        writer = writers[number % len(writers)]
        await _create(stage, _objects(case, writer, f"r{stage.number}-all{number}-"))
    for writer in writers:
        seconds = await _latency(stage, stage.name("last"), writer)
        stage.check_time(seconds, most, "binding a healthy gang beside all of them")


def _objects(case: Case, writer: Writer, prefix: str) -> list[Raw]:
    return [_renamed(raw, prefix) for raw in case(writer)]


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
    """With a name of its own, that of its group and of its claims; what has no namespace is there for all cases."""
    if "namespace" not in raw["metadata"]:
        return raw
    metadata: dict[str, Any] = {**raw["metadata"], "name": prefix + raw["metadata"]["name"]}
    metadata.pop("uid", None)
    notes = metadata.get("annotations", {})
    names = {name: prefix + notes[name] for name in Writer.GROUP_NAMES if name in notes}
    if names:
        metadata["annotations"] = {**notes, **names}
    spec = raw.get("spec", {})
    if "resourceClaims" in spec:
        claims = [
            {**one, "resourceClaimName": prefix + one["resourceClaimName"]} for one in spec["resourceClaims"]
        ]
        spec = {**spec, "resourceClaims": claims}
    return {**raw, "metadata": metadata, "spec": spec}


async def _usual(stage: Stage, writer: Writer) -> float:
    """How long gangs wait without hostile objects: the longest of three, after one that waited for the start."""
    waits = [await _latency(stage, stage.name(f"usual{number}"), writer) for number in range(4)]
    return max(waits[1:])


async def _latency(stage: Stage, name: str, writer: Writer) -> float:
    """Seconds until a new healthy gang is bound."""
    name = f"{name}-{'k' if writer.kai else 'v'}"
    members = [writer.pod(f"{name}-{number}", name, NAMESPACE) for number in range(SIZE)]
    group = {**writer.group(name, SIZE, NAMESPACE, "kind"), "status": {}}  # it has to be admitted first
    began = await stage.create([group, *members])
    await stage.until(lambda: _is_bound(stage, name), f"gang {name} is bound")
    return time.monotonic() - began


async def _is_bound(stage: Stage, name: str) -> bool:
    """Asked of the healthy namespace alone: a list of the others would be megabytes."""
    pods = json.loads(await stage.client.request("GET", PODS.path_in(NAMESPACE)))["items"]
    mine = [one for one in pods if one["metadata"]["name"].startswith(f"{name}-")]
    return len(mine) == SIZE and all(one["spec"].get("nodeName") for one in mine)


async def _clear(stage: Stage) -> None:
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    for kind in (Pod, VolcanoPodGroup, KaiPodGroup, ResourceClaim, PodDisruptionBudget):
        path = KINDS[kind].at(KINDS[kind].versions[0]).path_in(HOSTILE)
        await stage.client.request("DELETE", path, body=body)


HOSTILES: tuple[Scenario, ...] = (hostile_objects, hostile_objects_with_kai, hostile_objects_with_both)
