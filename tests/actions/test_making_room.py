"""KAI's reclaim, preempt and consolidation: which jobs lose tasks to which, rule by rule, with both solvers."""

from typing import Any

import pytest

from maniple.planner import Plan, Planner
from tests.actions.allocate_scenes import NOW, cycle, flat, gang, node, queue, waiting
from tests.support import make, priority_class

both = pytest.mark.parametrize("strict", [False, True])
PRIORITIES = [priority_class("low", 40), priority_class("middle", 50), priority_class("high", 60)]
QUEUES = [queue("top"), queue("q", 4, parent="top"), queue("other", 0, parent="top", weight=0)]
OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-01T05:00:00Z"


def firm(job: list[Any]) -> list[Any]:
    """The same job, which may not be preempted."""
    head, *pods = job
    spec = {"queue": head.spec.queue, "minMember": head.spec.min_member, "preemptibility": "non-preemptible"}
    spec["priorityClassName"] = head.spec.priority_class_name
    api, name = "scheduling.run.ai/v2alpha2", head.metadata.name
    return [make(api, "PodGroup", name, namespace="default", uid=name, created=NEW, spec=spec), *pods]


def gone(plan: Plan) -> set[str]:
    return {key.removeprefix("default/") for key in plan.evictions}


def act(action: str, *parts: Any, strict: bool, options: dict[str, Any] | None = None) -> Plan:
    conf = {"actions": f"allocate, {action}", "compat": "strict" if strict else "better"}
    one = Planner(conf=conf, profile="kai", options={"debug": True, **(options or {})})
    return one.cycle(one.build(flat(parts)), now=NOW)


# -- reclaim ----------------------------------------------------------------------------------------------------------


@both
def test_reclaim_takes_from_a_queue_that_has_more_than_its_share(strict: bool) -> None:
    fat = [gang(f"v{n}", 1, queue="other", on=["n1"], created=OLD) for n in range(4)]
    plan = act("reclaim", QUEUES, node("n1", 4), fat, gang("a", 2, gpus=1), strict=strict)
    assert len(gone(plan)) == 2
    assert set(waiting(plan)) == {"a-0", "a-1"}


@both
def test_reclaim_does_not_touch_its_own_queue_nor_jobs_that_may_not_be_preempted(strict: bool) -> None:
    own = gang("own", 2, on=["n1", "n1"])
    hard = firm(gang("hard", 2, queue="other", on=["n1", "n1"]))
    plan = act("reclaim", QUEUES, node("n1", 4), own, hard, gang("a", 1), strict=strict)
    assert not gone(plan)


@both
def test_a_queue_within_its_share_is_not_reclaimed_from(strict: bool) -> None:
    queues = [queue("top"), queue("q", 2, parent="top"), queue("other", 2, parent="top")]
    theirs = gang("v", 2, 1, queue="other", on=["n1", "n1"])
    plan = act("reclaim", queues, node("n1", 3), theirs, gang("a", 2), strict=strict)
    assert not gone(plan)


def test_of_two_queues_the_one_with_nothing_to_give_is_left_alone() -> None:
    """The first in victim order is within its quota: the scenario is refused, and the next queue is tried."""
    queues = [
        queue("top"),
        queue("q", 2, parent="top"),
        queue("poor", 2, parent="top", weight=0, priority=50),
        queue("rich", 0, parent="top", weight=0),
    ]
    poor = gang("poor-job", 2, 1, queue="poor", on=["n1", "n1"])
    rich = gang("rich-job", 2, 1, queue="rich", on=["n2", "n2"])
    plan = act("reclaim", queues, node("n1", 2), node("n2", 2), poor, rich, gang("a", 1), strict=False)
    assert {pod.rpartition("-")[0] for pod in gone(plan)} == {"rich-job"}


@both
def test_one_victim_job_is_taken_where_one_suffices(strict: bool) -> None:
    theirs = [gang(f"v{n}", 2, queue="other", on=[f"n{n}"] * 2) for n in range(3)]
    nodes = [node(f"n{n}", 2) for n in range(3)]
    plan = act("reclaim", QUEUES, nodes, theirs, gang("a", 1, gpus=2), strict=strict)
    assert len({pod.rpartition("-")[0] for pod in gone(plan)}) == 1
    assert len(gone(plan)) == 2


# -- preempt ----------------------------------------------------------------------------------------------------------


@both
def test_preempt_takes_from_lower_priorities_of_its_own_queue(strict: bool) -> None:
    lower = gang("low", 1, priority="low", on=["n1"])
    equal = gang("equal", 1, priority="high", on=["n1"])
    foreign = gang("foreign", 1, queue="other", priority="low", on=["n1"])
    asks = gang("a", 1, priority="high", created=NEW)
    plan = act("preempt", PRIORITIES, QUEUES, node("n1", 3), lower, equal, foreign, asks, strict=strict)
    assert gone(plan) == {"low-0"}


@both
def test_preempt_takes_the_lowest_priority_first_and_then_the_youngest(strict: bool) -> None:
    jobs = [
        gang("middle", 1, priority="middle", on=["n1"], created=NEW),
        gang("old", 1, priority="low", on=["n1"], created=OLD),
        gang("new", 1, priority="low", on=["n1"], created=NEW),
    ]
    asks = gang("a", 1, priority="high", created=NEW)
    plan = act("preempt", PRIORITIES, QUEUES, node("n1", 3), jobs, asks, strict=strict)
    assert gone(plan) == {"new-0"}


@both
def test_what_a_job_can_spare_goes_before_another_job_s_core(strict: bool) -> None:
    jobs = [
        gang("whole", 1, priority="low", on=["n1"], created=NEW),
        gang("rich", 3, 1, priority="low", on=["n1"] * 3, created=OLD),
    ]
    asks = gang("a", 2, priority="high", created=NEW)
    plan = act("preempt", PRIORITIES, QUEUES, node("n1", 4), jobs, asks, strict=strict)
    assert gone(plan) == {"rich-1", "rich-2"}


@both
def test_a_job_that_may_not_be_preempted_does_not_preempt_beyond_its_quota(strict: bool) -> None:
    asks = firm(gang("a", 5, priority="high"))
    plan = act(
        "preempt",
        PRIORITIES,
        QUEUES,
        node("n1", 5),
        gang("low", 5, priority="low", on=["n1"] * 5),
        asks,
        strict=strict,
    )
    assert not gone(plan)


@both
def test_a_limit_is_a_reason_to_preempt_even_where_there_is_room(strict: bool) -> None:
    limited = [queue("top"), queue("q", 2, limit=2, parent="top")]
    lower = gang("low", 2, 1, priority="low", on=["n1", "n1"])
    plan = act(
        "preempt", PRIORITIES, limited, node("n1", 4), lower, gang("a", 1, priority="high"), strict=strict
    )
    assert gone(plan) == {"low-1"}


def test_a_gang_that_does_not_fit_evicts_nobody() -> None:
    lower = gang("low", 2, 1, priority="low", on=["n1", "n1"])
    asks = gang("a", 2, gpus=2, priority="high")
    plan = act("preempt", PRIORITIES, QUEUES, node("n1", 2), lower, asks, strict=False)
    assert not gone(plan)
    assert not waiting(plan)


# -- consolidation ----------------------------------------------------------------------------------------------------


def halves(count: int = 3) -> list[Any]:
    """Nodes of two devices, each with a job of one."""
    nodes = [node(f"n{n}", 2) for n in range(count)]
    return [nodes, [gang(f"v{n}", 1, on=[f"n{n}"], created=OLD) for n in range(count)]]


@both
def test_consolidation_moves_a_job_to_where_there_is_room(strict: bool) -> None:
    plan = act("consolidation", QUEUES, halves(), gang("a", 1, gpus=2, created=NEW), strict=strict)
    (moved,) = gone(plan)
    claims = waiting(plan)
    assert claims["a-0"] == f"n{moved[1]}"
    assert claims[moved] != claims["a-0"]


@both
def test_nobody_is_moved_who_does_not_find_another_place(strict: bool) -> None:
    plan = act("consolidation", QUEUES, halves(2), gang("a", 1, gpus=3, created=NEW), strict=strict)
    assert not gone(plan)
    tied = gang("tied", 1, on=["n0"], nodeSelector={"kubernetes.io/hostname": "n0"})
    nodes = [node(name, 2, labels={"kubernetes.io/hostname": name}) for name in ("n0", "n1")]
    other = firm(gang("other", 1, on=["n1"]))
    plan = act("consolidation", QUEUES, nodes, tied, other, gang("a", 1, gpus=2, created=NEW), strict=strict)
    assert not gone(plan)


@both
def test_jobs_that_may_not_be_preempted_neither_move_nor_make_others_move(strict: bool) -> None:
    plan = act("consolidation", QUEUES, halves(), firm(gang("a", 1, gpus=2)), strict=strict)
    assert not gone(plan)


@both
@pytest.mark.parametrize(("limit", "moves"), [(0, False), (1, True), (-1, True)])
def test_only_so_many_jobs_are_moved_for_one(limit: int, moves: bool, strict: bool) -> None:
    limited = {"maxConsolidationPreemptees": limit}
    parts = [QUEUES, halves(), gang("a", 1, gpus=2, created=NEW)]
    assert bool(gone(act("consolidation", *parts, strict=strict, options=limited))) is moves


def test_the_limit_counts_jobs_that_are_moved_and_not_those_that_are_looked_at() -> None:
    """The youngest jobs could not move; KAI would look at no others."""
    tied = [
        gang(f"tied{n}", 1, on=["n3"], created=NEW, nodeSelector={"kubernetes.io/hostname": "n3"})
        for n in range(3)
    ]
    nodes = node("n3", 3, labels={"kubernetes.io/hostname": "n3"})
    parts = [QUEUES, halves(), nodes, tied, gang("a", 1, gpus=2, created=NEW)]
    few = {"maxConsolidationPreemptees": 1}
    assert gone(act("consolidation", *parts, strict=False, options=few))
    assert not gone(act("consolidation", *parts, strict=True, options=few))


# -- in an action -----------------------------------------------------------------------------------------------------


def test_what_one_job_left_over_serves_the_next_without_another_victim() -> None:
    theirs = [gang(f"v{n}", 2, queue="other", on=[f"n{n}"] * 2, created=OLD) for n in range(2)]
    nodes = [node(f"n{n}", 2) for n in range(2)]
    asks = [gang(f"a{n}", 1, created=NEW) for n in range(2)]
    plan = act("reclaim", QUEUES, nodes, theirs, asks, strict=False)
    assert set(waiting(plan)) == {"a0-0", "a1-0"}
    assert len(gone(plan)) == 2


def test_a_job_that_was_served_is_no_victim_of_the_next() -> None:
    lower = gang("low", 1, priority="low", on=["n1"])
    asks = [gang("a", 1, priority="middle", created=OLD), gang("b", 1, priority="high", created=NEW)]
    plan = act("preempt", PRIORITIES, QUEUES, node("n1", 1), lower, asks, strict=False)
    assert gone(plan) == {"low-0"}
    assert set(waiting(plan)) == {"b-0"}


def test_the_default_configuration_runs_all_five_actions() -> None:
    theirs = [gang(f"v{n}", 1, queue="other", on=["n1"]) for n in range(4)]
    actions = "allocate, consolidation, reclaim, preempt, stalegangeviction"
    plan = cycle(QUEUES, node("n1", 4), theirs, gang("a", 2), actions=actions)
    assert len(gone(plan)) == 2


@both
def test_nobody_is_evicted_whose_turn_would_be_before_the_job_s_again(strict: bool) -> None:
    """It would take its place back in the next cycle, and so on for ever."""
    queues = [queue("top"), queue("q", parent="top", priority=100)]
    ahead = queue("other", 0, parent="top", weight=0, priority=200)
    behind = queue("other", 0, parent="top", weight=0, priority=50)
    theirs = [gang(f"v{n}", 1, queue="other", on=["n1"]) for n in range(2)]
    asks = gang("a", 1, created=NEW)
    assert not gone(act("reclaim", queues, ahead, node("n1", 2), theirs, asks, strict=strict))
    assert gone(act("reclaim", queues, behind, node("n1", 2), theirs, asks, strict=strict))


@both
def test_a_hopeless_job_ahead_may_hold_its_queue_back(strict: bool) -> None:
    """With it in front, the queue's turn comes after that of the victim's queue, which would be served first again."""
    queues = [
        queue("top"),
        queue("q", 2, parent="top", priority=200),
        queue("other", 0, parent="top", weight=3, priority=200),
    ]
    nodes = [node("n0", 2), node("n1", 2)]
    theirs = gang("v", 4, 3, queue="other", on=["n0", "n0", "n1", "n1"], priority="low")
    huge = gang("huge", 3, 2, gpus=2, priority="high", created=OLD)
    asks = gang("a", 1, gpus=2, priority="low", created=NEW)
    assert not gone(act("reclaim", PRIORITIES, queues, nodes, theirs, huge, asks, strict=strict))
    assert gone(act("reclaim", PRIORITIES, queues, nodes, theirs, asks, strict=strict))
