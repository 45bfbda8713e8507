"""Planning after changes: `Planner.apply` and `delete` end in the plan of the changed objects from scratch."""

import json
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from maniple.planner import Plan, Planner
from tests.soak.clusters import PROFILES, Scenario, generate

Raw = dict[str, Any]
NOW = datetime(2026, 7, 1, tzinfo=UTC)
_NEVER_TOUCHED = ("PriorityClass", "Namespace", "StorageClass", "LimitRange", "RuntimeClass")


def said(plan: Plan) -> Raw:
    """The plan without what is measured; problems in any order."""
    found = plan.to_dict()
    del found["timings"]
    found["problems"] = sorted(map(json.dumps, found["problems"]))
    return found


def identity(raw: Raw) -> tuple[str, ...]:
    meta = raw["metadata"]
    return raw["apiVersion"].partition("/")[0], raw["kind"], meta.get("namespace", ""), meta["name"]


def changes(random: Random, objects: list[Raw]) -> Iterator[tuple[Raw, Raw | None]]:
    """Some of the objects, each with what becomes of it; None: it is gone."""
    touched = [one for one in objects if one["kind"] not in _NEVER_TOUCHED]
    for raw in random.sample(touched, min(len(touched), random.randint(1, 6))):
        if random.random() < 0.4:
            yield raw, None
            continue
        after = deepcopy(raw)
        if raw["kind"] == "Pod" and not raw["spec"].get("nodeName"):
            after["spec"]["containers"][0].setdefault("resources", {})["requests"] = {
                "cpu": str(random.randint(1, 8))
            }
        elif raw["kind"] == "PodGroup":
            after["spec"]["minMember"] = random.randint(1, 3)
        elif raw["kind"] == "Node":
            after["spec"] = {"unschedulable": random.random() < 0.5}
        yield raw, after


def edited(objects: list[Raw], made: list[tuple[Raw, Raw | None]]) -> list[Raw]:
    by_name = {identity(one): one for one in objects}
    for before, after in made:
        if after is None:
            del by_name[identity(before)]
        else:
            by_name[identity(before)] = after
    return list(by_name.values())


def planner_of(scenario: Scenario) -> Planner:
    return Planner(conf=scenario.conf, profile=scenario.profile)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("number", range(12))
def test_a_plan_after_changes_is_that_of_the_changed_objects(profile: str, number: int) -> None:
    scenario = generate(profile, 7000 + number)
    random, planner = Random(number), planner_of(scenario)
    cluster = planner.build(scenario.objects)
    first = said(planner.cycle(cluster, now=NOW))
    made = [*changes(random, scenario.objects)]
    planner.delete(cluster, [before for before, after in made if after is None])
    planner.apply(cluster, [after for _, after in made if after is not None])
    changed = said(planner.cycle(cluster, now=NOW))
    fresh = planner_of(scenario)
    assert changed == said(fresh.cycle(fresh.build(edited(scenario.objects, made)), now=NOW))
    planner.apply(cluster, [before for before, _ in made])
    assert said(planner.cycle(cluster, now=NOW)) == first


def test_the_default_queue_comes_and_goes_with_the_jobs_that_need_it() -> None:
    planner = Planner(profile="volcano")
    cluster = planner.build([])
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"schedulerName": "volcano", "containers": [{"name": "c"}]},
    }
    planner.apply(cluster, pod)
    assert set(planner.cycle(cluster).queues) == {"default"}
    planner.delete(cluster, pod)
    assert not planner.cycle(cluster).queues


def test_a_problem_is_kept_until_its_object_is_replaced() -> None:
    planner = Planner()
    cluster = planner.build([])
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    planner.apply(cluster, {**node, "status": {"allocatable": {"cpu": "x"}}})
    assert [one.object for one in planner.cycle(cluster).problems] == ["Node n"]
    planner.apply(cluster, {**node, "status": {"allocatable": {"cpu": "1"}}})
    assert planner.cycle(cluster).problems == []
