"""Bad input never ends in a traceback: a plan for the rest and a report that names object and field, or one
error."""

import copy
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

import maniple
from maniple.framework.configuration.loading import ConfigurationError
from maniple.planner import Plan

ROOT = Path(__file__).parent.parent.parent
OBJECTS = [
    item
    for file in sorted((ROOT / "examples" / "quickstart").glob("*.yaml"))
    for item in yaml.safe_load_all(file.read_text(encoding="utf-8"))
]
CONFIGURATION = (ROOT / "examples" / "volcano-scheduler.conf").read_text(encoding="utf-8")
CORRUPTIONS = 1000
JUNK: tuple[Any, ...] = (
    None,
    "",
    "junk",
    "-1",
    "1e400",
    "１",
    -1,
    2**70,
    1.5,
    float("nan"),
    True,
    [],
    {},
    [None],
    {"": None},
    "a/b/c",
    ["x", {"y": 1}],
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into a nested structure."""
    found = [path] if path else []
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        found += places(inner, (*path, step))
    return found


def corrupt(value: Any, chance: random.Random) -> None:
    """Replace, remove, rename or double one thing somewhere inside."""
    path = chance.choice(places(value))
    holder = value
    for step in path[:-1]:
        holder = holder[step]
    match chance.randrange(4):
        case 0:
            holder[path[-1]] = chance.choice(JUNK)
        case 1:
            del holder[path[-1]]
        case 2 if isinstance(holder, dict):
            holder[chance.choice(["", "x", "spec", "Name"])] = holder.pop(path[-1])
        case _:
            holder[path[-1]] = [holder[path[-1]], copy.deepcopy(holder[path[-1]])]


def look_at_everything(plan: Plan) -> None:
    assert len(plan.binds) + len(plan.pipelined) <= len(plan.tasks)
    for problem in plan.problems:
        assert str(problem)
        assert "\n" not in str(problem)
    assert all(plan.warnings)
    for outcome in (plan.jobs, plan.queues, plan.nodes):
        assert repr(outcome)


@pytest.mark.long
@pytest.mark.parametrize("batch", range(10))
def test_corrupted_objects_cost_only_themselves(batch: int) -> None:
    chance = random.Random(batch)
    for _ in range(CORRUPTIONS // 10):
        objects = copy.deepcopy(OBJECTS)
        for _ in range(chance.choice([1, 1, 2, 5])):
            corrupt(chance.choice(objects) if chance.random() < 0.9 else objects, chance)
        look_at_everything(maniple.plan(objects, profile="volcano"))


@pytest.mark.long
@pytest.mark.parametrize("batch", range(10))
def test_corrupted_configuration_gives_a_plan_or_one_error(batch: int) -> None:
    chance = random.Random(1000 + batch)
    for _ in range(CORRUPTIONS // 10):
        text = CONFIGURATION
        for _ in range(chance.choice([1, 1, 2, 5])):
            at = chance.randrange(len(text))
            text = chance.choice(
                [
                    text[:at] + text[at + chance.randrange(1, 9) :],
                    text[:at]
                    + chance.choice(["\t", ":", "- ", '"', "{", "&a ", "*a", "0x1", "é", "\n"])
                    + text[at:],
                    text[:at] + text[at:].replace("true", str(chance.choice(JUNK)), 1),
                ]
            )
        plan, error = plan_or_error(text)
        if plan is not None:
            look_at_everything(plan)
        assert "\n" not in error


def plan_or_error(text: str) -> tuple[Plan | None, str]:
    try:
        return maniple.plan(OBJECTS, conf=text, profile="volcano"), ""
    except ConfigurationError as error:
        return None, str(error)


def test_a_bad_quantity_is_named_with_its_object_and_field() -> None:
    objects = copy.deepcopy(OBJECTS)
    spoiled = next(item for item in objects if item["kind"] == "Pod")
    spoiled["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "lots"}}
    whole = maniple.plan(OBJECTS, profile="volcano")
    plan = maniple.plan(objects, profile="volcano")
    (problem,) = plan.problems
    name = spoiled["metadata"]["name"]
    assert name in str(problem)
    assert "spec.containers[0].resources.requests" in str(problem)
    assert f"{spoiled['metadata']['namespace']}/{name}" not in plan.tasks
    assert plan.nodes.keys() == whole.nodes.keys()
