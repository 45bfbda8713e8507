"""Hostile objects beside healthy gangs: no exception, no work that others would wait for, and no other decision.

Work is counted in calls, since seconds depend on the machine.
"""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import pytest

from maniple.planner import Plan, Planner
from tests.hostile.cases import CASES, Case
from tests.hostile.objects import HEALTHY, HOSTILE, Raw, Writer, node

NOW = datetime(2026, 11, 17, tzinfo=UTC)
PROFILES = ("volcano", "kai", "maniple")
NODES, GANGS = 100, 10
# More calls than planning without the object takes. It is about a tenth of a second, wherever that is short; taking an
# object in may cost more, as it is read once, and in proportion to its size.
MOST_CALLS = 300_000
# The search for devices has a budget of its own, once: about half a second.
MOST_CALLS_FOR_DEVICES = 5_000_000


def calls_of(action: Callable[[], Any]) -> tuple[int, Any]:
    """How many calls an action makes, and its result."""
    count = 0

    def count_call(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(count_call)
    try:
        result = action()
    finally:
        sys.setprofile(None)
    return count, result


def healthy_binds(plan: Plan) -> dict[str, str]:
    return {pod: node for pod, node in plan.binds.items() if pod.startswith(f"{HEALTHY}/")}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_others_are_placed_as_without_it(case: Case, profile: str) -> None:
    writer, planner = Writer(profile), Planner(profile=profile)
    healthy = writer.healthy(NODES, GANGS)
    plain, expected = calls_of(lambda: planner.cycle(planner.build(healthy), now=NOW))
    objects = case(writer)
    searches = any(raw["kind"] == "ResourceSlice" for raw in objects)
    cluster = planner.build([*healthy, *objects])
    calls, plan = calls_of(lambda: planner.cycle(cluster, now=NOW))
    assert len(healthy_binds(plan)) == 4 * GANGS
    if len(plan.binds) == 4 * GANGS:  # if it takes no room itself
        assert plan.binds == expected.binds
    assert calls <= plain + (MOST_CALLS_FOR_DEVICES if searches else MOST_CALLS)
    again, _ = calls_of(lambda: planner.cycle(cluster, now=NOW))
    assert again <= plain + MOST_CALLS, "the next cycle is as fast"
    gone, _ = calls_of(lambda: planner.delete(cluster, objects))
    assert gone <= 2 * MOST_CALLS, "taking it out costs in proportion to its size, at most"


# -- what the owner is told --------------------------------------------------------------------------------------------


def reason(profile: str, objects: list[Raw]) -> str:
    writer, planner = Writer(profile), Planner(profile=profile)
    plan = planner.cycle(planner.build([*writer.healthy(2, 1), *objects]), now=NOW)
    assert not [pod for pod in plan.binds if pod.startswith(f"{HOSTILE}/")]
    return plan.waiting[f"{HOSTILE}/bad-0"].reason


@pytest.mark.parametrize("profile", PROFILES)
def test_a_pod_that_is_too_large_waits_and_says_so(profile: str) -> None:
    selector = {f"k{number}": "v" for number in range(513)}
    told = reason(profile, Writer(profile).lone(nodeSelector=selector))
    assert "spec.nodeSelector has 513 labels; at most 512 are supported" in told


def test_a_group_that_is_too_large_keeps_its_pods_waiting_and_they_say_so() -> None:
    writer = Writer("kai")
    groups = [{"name": f"s{n}", "minMember": 1, **({"parent": f"s{n - 1}"} if n else {})} for n in range(33)]
    pod = writer.pod("bad-0", "bad", labels={"kai.scheduler/subgroup-name": "s32"})
    told = reason("kai", [writer.group("bad", subGroups=groups), pod])
    assert "spec.subGroups has 33 levels; at most 32 are supported" in told
    writer = Writer("volcano")
    roles = {f"r{number}": 1 for number in range(1025)}
    told = reason("volcano", [writer.group("bad", minTaskMember=roles), writer.pod("bad-0", "bad")])
    assert "spec.minTaskMember has 1,025 roles; at most 1,024 are supported" in told


def test_a_bound_pod_that_is_too_large_still_takes_its_room() -> None:
    writer, planner = Writer("volcano"), Planner(profile="volcano")
    terms = {"nodeSelector": {f"k{number}": "v" for number in range(600)}}
    _, bound = writer.lone(requests={"cpu": "60"}, nodeName="node-0000", **terms)
    bound["status"] = {"phase": "Running"}
    more = [writer.group("next"), writer.pod("next-0", "next", requests={"cpu": "5"})]
    healthy = writer.healthy(1, 0)
    plan = planner.cycle(planner.build([*healthy, writer.group("bad"), bound, *more]), now=NOW)
    assert plan.binds == {}
    assert planner.cycle(planner.build([*healthy, *more]), now=NOW).binds == {
        f"{HOSTILE}/next-0": "node-0000"
    }


# -- what others would lose --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compat", ["default", "strict"])
def test_a_tiny_part_of_eight_gpus_does_not_give_a_node_away_twice(compat: str) -> None:
    """It took 0 MiB of each device, so that all of them seemed free."""
    writer = Writer("kai")
    conf = {"compat": compat} if compat == "strict" else None
    tiny = writer.lone(annotations={"gpu-fraction": "1e-9", "gpu-fraction-num-devices": "8"})
    whole = [writer.group("whole"), writer.pod("whole-0", "whole", requests={"nvidia.com/gpu": "8"})]
    planner = Planner(profile="kai", conf=conf)
    plan = planner.cycle(planner.build([*writer.healthy(1, 0), *tiny, *whole]), now=NOW)
    assert len(plan.binds) == 1


@pytest.mark.parametrize("where", ["no-such-node", ""])
def test_requests_without_measure_do_not_wrap_around(where: str) -> None:
    """Sums of 8,192 of them were negative, and a queue with a limit had room again."""
    writer = Writer("volcano")
    conf = (
        'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n  - name: capacity\n'
    )
    placed: Raw = {"nodeName": where} if where else {}
    huge = [
        writer.pod(f"huge-{n}", "huge", requests={"cpu": "9E", "memory": "9E"}, **placed) for n in range(8192)
    ]
    more = [writer.pod(f"more-{n}", "more", requests={"cpu": "1"}) for n in range(40)]
    capped = writer.queue("mean", capability={"cpu": "10"}, deserved={"cpu": "10"})
    others = [one for one in writer.healthy(2, 0) if one["metadata"]["name"] != "mean"]
    planner = Planner(profile="volcano", conf=conf)
    objects = [*others, capped, writer.group("huge"), *huge, writer.group("more"), *more]
    plan = planner.cycle(planner.build(objects), now=NOW)
    assert len(plan.binds) <= 10
    assert all(amount >= 0 for amount in plan.queues["mean"].allocated.values())


def test_pods_on_nodes_that_do_not_exist_are_told_and_those_on_nodes_of_others_are_not() -> None:
    writer, options = Writer("kai"), {"nodePoolLabelKey": "pool", "nodePoolLabelValue": "ours"}
    planner = Planner(profile="kai", options=options)
    theirs = node(7)
    theirs["metadata"]["labels"]["pool"] = "theirs"
    pods = [
        writer.pod("lost-0", "lost", nodeName="no-such-node"),
        writer.pod("away-0", "away", nodeName=theirs["metadata"]["name"]),
    ]
    plan = planner.cycle(planner.build([*writer.healthy(1, 0), theirs, *pods]), now=NOW)
    told = [str(one) for one in plan.warnings if "does not exist" in str(one)]
    assert told == ["node 'no-such-node' does not exist; the pods on it count nowhere"]
