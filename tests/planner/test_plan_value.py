"""A plan is a value: frozen at the end of its cycle, comparable, picklable, and the same after a way through JSON."""

import gc
import json
import pickle
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.cluster.cluster import Cluster
from maniple.framework.session import Session
from maniple.objects.load import load_all
from maniple.planner import Plan, Planner
from tests.soak.clusters import PROFILES, Scenario, generate
from tests.soak.shapes import START

SEEDS = st.integers(0, 10**6)
ATOMS = (type, ModuleType, FunctionType, BuiltinFunctionType)


def planner(scenario: Scenario) -> Planner:
    return Planner(conf=scenario.conf, profile=scenario.profile)


def planned(scenario: Scenario) -> tuple[Plan, Cluster]:
    own = planner(scenario)
    cluster = own.build(scenario.objects)
    return own.cycle(cluster, START), cluster


def evicting(profile: str) -> Scenario:
    """The first random cluster of a profile in which something is evicted."""
    return next(one for one in (generate(profile, seed) for seed in range(99)) if planned(one)[0].evictions)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PROFILES), SEEDS)
def test_a_plan_comes_back_from_json_and_from_pickle(profile: str, seed: int) -> None:
    scenario = generate(profile, seed)
    plan, _ = planned(scenario)
    assert Plan.from_json(plan.to_json()) == plan
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert pickle.loads(pickle.dumps(planned(scenario)[0])).to_json() == plan.to_json()


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PROFILES), SEEDS)
def test_what_becomes_of_the_cluster_changes_nothing(profile: str, seed: int) -> None:
    scenario = generate(profile, seed)
    expected = planned(scenario)[0].to_json()
    plan, cluster = planned(scenario)  # nobody has looked at it yet
    objects, _ = load_all(scenario.objects)
    for one in objects[::2]:
        cluster.delete(one)
    planner(scenario).cycle(cluster, START)
    for one in reversed(objects):
        cluster.apply(one)
    more = json.dumps(scenario.objects).replace('"namespace": "', '"namespace": "another-')
    for one in load_all(json.loads(more))[0]:
        cluster.apply(one)
    planner(scenario).cycle(cluster, START)
    assert plan.to_json() == expected


@pytest.mark.parametrize("profile", PROFILES)
def test_a_plan_holds_nothing_of_the_session_or_the_cluster(profile: str) -> None:
    plan, _ = planned(evicting(profile))
    plan.content()
    seen: dict[int, Any] = {}
    left: list[Any] = [plan]
    while left:
        one = left.pop()
        if id(one) not in seen and not isinstance(one, ATOMS):
            seen[id(one)] = one
            left += gc.get_referents(one)
    held = [one for one in seen.values() if isinstance(one, Session | Cluster | Planner)]
    plugins = [one for one in seen.values() if type(one).__module__.startswith("maniple.plugins")]
    assert (held, plugins) == ([], [])


@pytest.mark.parametrize("profile", PROFILES)
def test_an_eviction_says_by_which_action_and_for_which_job(profile: str) -> None:
    plan, _ = planned(evicting(profile))
    assert [one.pod for one in plan.evicted] == plan.evictions
    for one in plan.evicted:
        assert one.text
        assert one.job == (plan.tasks[one.pod].job or "")
        assert one.together == sum(other.job == one.job for other in plan.evicted)
        assert one.actor in ("", *plan.jobs)
        assert one.action or not one.actor


def test_a_plan_cannot_be_changed() -> None:
    plan, _ = planned(generate("maniple", 1))
    with pytest.raises(AttributeError, match="a plan is a value: binds cannot be changed"):
        plan.binds = {}
    with pytest.raises(AttributeError, match="a plan is a value: tasks cannot be removed"):
        del plan.tasks


def test_plans_that_say_something_else_differ_and_time_does_not_count() -> None:
    plan, _ = planned(generate("maniple", 1))
    other = Plan.of_content({**plan.content(), "evictions": ["default/a"]})
    assert plan != other
    assert plan == Plan.of_content({**plan.content(), "timings": {"open": 1.0}})
    assert plan != "a plan"
