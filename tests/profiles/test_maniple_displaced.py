"""Maniple's and KAI's profiles: placements undone in the same cycle, parts a job can spare, and freed room."""

from typing import Any

import numpy as np
import pytest

from maniple.actions.allocate import Allocate
from maniple.actions.placing.displacing import settled
from maniple.actions.placing.job_placer import JobPlacer
from maniple.cluster.check import validate
from maniple.cluster.statuses import Status
from maniple.framework.plans.freezing import freeze
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.placement.engine import Placement
from maniple.planner import Plan
from tests.plugins.maniple.scenes import (
    bound,
    claims,
    cycle,
    evicted,
    gang,
    kai_queue,
    names,
    node,
    opened,
    volcano_queue,
)
from tests.support import priority_class

Q = volcano_queue("q")
SMALL = node("a", 2, labels={"rack": "r0"})
LARGE = node("b", 8, labels={"rack": "r1"})
IN_RACK: dict[str, Any] = {"nodeSelector": {"rack": "r0"}}
LATER = "2026-01-01T00:00:05Z"


# -- displaced before it was bound ------------------------------------------------------------------------------------


def test_a_job_that_is_displaced_before_it_was_bound_gets_its_new_place_at_once() -> None:
    """Packing puts `one` on the small node, the only one for `two`; consolidation moves `one`, which releases
    nothing."""
    plan = cycle(SMALL, LARGE, Q, gang("one", "q", 1, gpus=2), gang("two", "q", 1, created=LATER, **IN_RACK))
    assert bound(plan) == {"one-0": "b", "two-0": "a"}
    assert not claims(plan)
    assert not evicted(plan)


def test_so_does_one_that_has_to_give_way_to_another_queue() -> None:
    queues = [kai_queue("q", 4), kai_queue("q2", 4)]
    jobs = [gang("one", "q", 1, gpus=2), gang("two", "q2", 1, gpus=2, created=LATER, **IN_RACK)]
    plan = cycle(SMALL, LARGE, *queues, *jobs, actions=("allocate", "reclaim", "preempt"))
    assert bound(plan) == {"one-0": "b", "two-0": "a"}
    assert not claims(plan)


def test_a_gang_of_which_one_task_is_displaced_is_bound_as_a_whole() -> None:
    mixed = [{"cpu": "1", "nvidia.com/gpu": str(gpus)} for gpus in (2, 1, 1)]
    plan = cycle(
        SMALL, LARGE, Q, gang("one", "q", 3, each=mixed), gang("two", "q", 1, created=LATER, **IN_RACK)
    )
    assert bound(plan).keys() == names("one", 3) | {"two-0"}
    assert not claims(plan)


def test_a_gang_that_has_to_wait_for_its_new_place_binds_none_of_it() -> None:
    """The result of a search, by hand: the large task of `one` yields to `two` and claims the large node."""
    mixed = [{"cpu": "1", "nvidia.com/gpu": str(gpus)} for gpus in (2, 1)]
    leaving = gang("old", "q", 1, gpus=7, on="b", deleted=LATER)
    two = gang("two", "q", 1, gpus=2, created=LATER, **IN_RACK)
    session, _ = opened(SMALL, LARGE, Q, leaving, gang("one", "q", 2, each=mixed), two)
    placement = Placement(session)
    Allocate({}).run(session, placement)
    row = {session.task_key(row): np.array([row]) for row in range(len(session.tasks))}
    assert session.tasks.status[row["default/one-0"]] == Status.BINDING
    found = Transaction(session)
    found.evict(row["default/one-0"], "to move")
    found.pipeline(row["default/two-0"], np.array([0]))
    found.move(row["default/one-0"], np.array([1]))
    agreed = settled(session, JobPlacer(session, placement), found)
    assert agreed is not None
    agreed.commit()
    plan = Plan(freeze(session))
    assert bound(plan) == {"two-0": "a"}
    assert claims(plan) == {"one-0": "b", "one-1": "b"}
    assert not evicted(plan)
    assert not validate(session)


KAI_JOBS = [
    kai_queue("d", 8),
    kai_queue("q", 8, parent="d"),
    gang("one", "q", 1, gpus=2, kai=True, scheduler="kai-scheduler"),
    gang("two", "q", 1, kai=True, created=LATER, scheduler="kai-scheduler", **IN_RACK),
]


def test_profile_kai_does_not_bind_and_evict_a_pod_in_one_plan() -> None:
    plan = cycle(SMALL, LARGE, *KAI_JOBS, profile="kai")
    assert bound(plan) == {"one-0": "b", "two-0": "a"}
    assert not evicted(plan)
    assert set(plan.started) == {"default/one", "default/two"}


def test_with_strict_compatibility_it_does() -> None:
    strict = {"actions": "allocate, consolidation", "compat": "strict"}
    plan = cycle(SMALL, LARGE, *KAI_JOBS, profile="kai", conf=strict)
    assert bound(plan) == {"one-0": "a"}
    assert evicted(plan) == {"one-0"}


# -- parts that a job can do without ----------------------------------------------------------------------------------


@pytest.mark.parametrize("minimums", [{"a": 1}, {"a": 1, "b": 0}])
def test_roles_without_a_minimum_grow_like_any_others(minimums: dict[str, int]) -> None:
    job = gang("one", "q", 4, 1, roles=["a", "b", "b", "a"], group={"minTaskMember": minimums})
    assert bound(cycle(LARGE, Q, job)).keys() == names("one", 4)


def sub_groups(count: int, size: int, least: int, minimum: int = 0, **more: Any) -> list[Object]:
    """A Volcano job of equal sub-groups of which only some are needed."""
    labels = [f"g{number}" for number in range(count) for _ in range(size)]
    policy = {
        "name": "part",
        "subGroupSize": size,
        "minSubGroups": least,
        "labelSelector": {},
        "matchLabelKeys": ["part"],
    }
    made = gang("one", "q", count * size, minimum or least * size, group={"subGroupPolicy": [policy]}, **more)
    for one, label in zip(made[1:], labels, strict=True):
        one.metadata.labels["part"] = label
    return made


def test_a_job_with_roles_waits_for_pods_that_are_not_there_yet() -> None:
    roles = {"minTaskMember": {"a": 1, "b": 1}}
    job = gang("one", "q", 4, 5, roles=["a", "a", "b", "b"], group=roles)
    assert not bound(cycle(LARGE, Q, job))


@pytest.mark.parametrize("labelled", [0, 2])
def test_a_job_with_sub_groups_has_its_own_minimum_as_well(labelled: int) -> None:
    """Two pods that no policy takes, and a sub-group of two: of which the queue lets in three."""
    made = sub_groups(2, 2, 1, minimum=4)
    for one in made[1 + labelled :]:
        one.metadata.labels.pop("part")
    assert not bound(cycle(node("n", 3), Q, made))


@pytest.mark.parametrize(("gpus", "placed"), [(2, 2), (3, 2), (4, 4), (5, 4), (6, 6)])
def test_a_sub_group_beyond_those_needed_comes_as_a_whole(gpus: int, placed: int) -> None:
    assert len(bound(cycle(node("n", gpus), Q, sub_groups(3, 2, 1)))) == placed


def test_a_sub_group_beyond_those_needed_goes_as_a_whole() -> None:
    high = priority_class("high", 90)
    plan = cycle(node("n", 4), Q, high, sub_groups(2, 2, 1, on="n"), gang("new", "q", 1, priority="high"))
    assert claims(plan) == {"new-0": "n"}
    assert evicted(plan) in ({"one-0", "one-1"}, {"one-2", "one-3"})


# -- room that was made -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["maniple", "kai"])
def test_room_that_was_made_for_a_job_is_not_taken_by_the_growth_of_another(profile: str) -> None:
    """`grows` is older and its queue has less; the room on `n` was made for `new`."""
    names_of = {"kai": "kai-scheduler", "maniple": "maniple"}
    queues = [kai_queue("d", 8), kai_queue("q", 4, parent="d"), kai_queue("r", 4, parent="d")]
    settings: dict[str, Any] = {"kai": True, "scheduler": names_of[profile]}
    grows = gang("grows", "q", 4, 1, on=["n"], **settings)
    new = gang("new", "r", 1, created=LATER, nominated="n", **settings)
    held = gang("held", "r", 2, on="n", **settings)
    parts = [node("n", 4), *queues, grows, held]
    assert "new-0" in bound(cycle(*parts, new, profile=profile))
    without = gang("new", "r", 1, created=LATER, **settings)
    assert "new-0" not in bound(cycle(*parts, without, profile=profile, actions=["allocate"]))


def test_room_is_held_while_a_leaving_pod_is_in_the_way_of_a_filter() -> None:
    """The node takes two pods, and both slots are taken until `old` is gone; until then no other job gets its
    GPUs."""
    full = node("n", 4, more={"pods": "2"})
    old = gang("old", "q", 1, gpus=2, on="n", deleted=LATER)
    stays = gang("stays", "q", 1, gpus=2, on="n", firm=True)
    new = gang("new", "q", 1, gpus=2, created=LATER, nominated="n")
    other = gang("other", "q", 1, gpus=2)
    assert claims(cycle(full, Q, old, stays, other, new)) == {"new-0": "n"}
    # Once it is gone, `new` gets the place, although `other` is older.
    assert bound(cycle(full, Q, stays, other, new)) == {"new-0": "n"}


def test_what_was_promised_is_not_taken_in_the_cycle_in_which_it_is_given() -> None:
    """Pods were evicted for `new`; `rival` has the better right, and asserts it once `new` runs."""
    queues = [kai_queue("poor"), kai_queue("rich", 2)]
    new, rival = gang("new", "poor", 1, gpus=2, nominated="n"), gang("rival", "rich", 1, gpus=2)
    assert bound(cycle(node("n", 2), *queues, new, rival)) == {"new-0": "n"}
    running = gang("new", "poor", 1, gpus=2, on="n")
    assert evicted(cycle(node("n", 2), *queues, running, rival)) == {"new-0"}


def test_a_nomination_says_nothing_of_other_nodes() -> None:
    """The room on `n` is gone; elsewhere the older job comes first."""
    first = gang("first", "q", 1)
    late = gang("late", "q", 1, created=LATER, nominated="n")
    plan = cycle(node("m", 1), node("n", 1), Q, gang("old", "q", 1, on="n", firm=True), first, late)
    assert bound(plan) == {"first-0": "m"}


def test_a_plan_names_the_nodes_where_room_is_made() -> None:
    high = priority_class("high", 90)
    plan = cycle(node("n", 1), Q, high, gang("old", "q", 1, on="n"), gang("new", "q", 1, priority="high"))
    assert plan.nominations == {"default/new-0": "n"}
