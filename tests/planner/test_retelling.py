"""A plan that is reported again after pods have started says what another cycle would say."""

from datetime import UTC, datetime
from typing import Any

import pytest

from maniple.planner import Plan, Planner
from tests.live import kai_objects, objects

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOLD = ("groups", "jobs", "tasks", "waiting", "queues", "nodes", "holdings", "binds", "leaves_work")
Raw = dict[str, Any]


def waiting(profile: str) -> list[Raw]:
    """A gang that fits, and one of a queue that does not exist: it waits, and no cycle could change that."""
    if profile == "kai":
        around = [kai_objects.queue("all"), kai_objects.queue(parent="all"), kai_objects.node("n1")]
        return [*around, *kai_objects.gang("train", 4), *kai_objects.gang("lost", 2, queue="gone")]
    lost = objects.gang("lost", 2)
    lost[0]["spec"]["queue"] = "gone"
    made = [objects.queue("default"), objects.node("n1"), *objects.gang("train", 4), *lost]
    for raw in made:
        if raw["kind"] == "Pod":
            raw["spec"]["schedulerName"] = profile
    return made


def carried_out(given: list[Raw], plan: Plan, running: int) -> list[Raw]:
    """Its pods on their nodes, so many of them running, and the pod group admitted."""
    pods = {
        f"{raw['metadata']['namespace']}/{raw['metadata']['name']}": raw
        for raw in given
        if raw["kind"] == "Pod"
    }
    found = []
    for number, (key, node) in enumerate(plan.binds.items()):
        raw = pods[key]
        phase = "Running" if number < running else "Pending"
        found.append({**raw, "spec": {**raw["spec"], "nodeName": node}, "status": {"phase": phase}})
    return found


@pytest.mark.parametrize("running", [1, 4])
@pytest.mark.parametrize("profile", ["volcano", "kai", "maniple"])
def test_a_plan_told_again_says_what_another_cycle_would(profile: str, running: int) -> None:
    given = waiting(profile)
    planner = Planner(profile=profile)
    cluster = planner.build(given)
    plan = planner.cycle(cluster, NOW)
    assert len(plan.binds) == 4
    planner.apply(cluster, carried_out(given, plan, 0))
    planner.apply(cluster, carried_out(given, plan, running))
    again = plan.retold(cluster)
    assert again is not None
    anew = planner.cycle(cluster, NOW)
    assert {name: getattr(again, name) for name in TOLD} == {name: getattr(anew, name) for name in TOLD}
    assert again.groups["team/train"].counts.get("Running") == running
    assert "team/train" in again.groups_since(plan)


def test_with_other_pods_it_is_not_told_again() -> None:
    given = waiting("volcano")
    planner = Planner(profile="volcano")
    cluster = planner.build(given)
    plan = planner.cycle(cluster, NOW)
    planner.apply(cluster, [objects.pod("another")])
    assert plan.retold(cluster) is None
