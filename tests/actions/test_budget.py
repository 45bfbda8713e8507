"""The budget of a search: how it is shared, and what becomes of a job for which it is not enough."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from maniple.actions.searching.budget import OPTION, Allowance, Budget, OutOfBudgetError
from maniple.framework.session import Session
from maniple.planner import Plan, Planner
from tests.actions.allocate_scenes import NOW, Bench, gang, node, queue


def opened(*, strict: bool = False) -> Session:
    return Bench(queue("q"), node("n1", 8), gang("a", 1), strict=strict).session


def budget(session: Session, total: int, jobs: int, now: datetime = NOW) -> Budget:
    session.options, session.now = {**session.options, OPTION: total}, now
    return Budget(session, jobs)


def test_the_first_trial_is_always_made_and_what_passes_the_limit_is_not() -> None:
    allowance = Allowance(most=10)
    allowance.spend(50)
    with pytest.raises(OutOfBudgetError):
        allowance.spend(1)
    assert allowance.ran_out


def test_in_a_large_cluster_every_task_counts_for_more() -> None:
    small, large = Allowance(nodes=10), Allowance(nodes=5000)
    small.spend(4)
    large.spend(4)
    assert (small.spent, large.spent) == (4, 20)


def test_jobs_take_from_what_is_left() -> None:
    shared = budget(opened(), 800, jobs=1)  # of one job, the first is the one that what is kept is kept for
    first = shared.next()
    assert first.most == 300  # a quarter of the common half and half of the other
    first.spent = 300
    shared.settle(first)
    assert shared.next().most == 175


def test_what_a_job_does_not_spend_is_there_for_the_next() -> None:
    shared = budget(opened(), 800, jobs=1)
    for _ in range(100):
        shared.settle(shared.next())
    assert shared.next().most == 300


def test_in_the_course_of_time_every_job_has_its_turn() -> None:
    session, jobs = opened(), 20

    def favoured(now: datetime) -> int:
        """The first place in line that may use what is kept."""
        shared = budget(session, 800, jobs, now)
        allowed = [shared.next().most for _ in range(jobs)]
        return allowed.index(max(allowed))

    times = [NOW + timedelta(seconds=10 * cycle) for cycle in range(400)]
    assert {favoured(now) for now in times} == set(range(jobs))
    assert favoured(NOW) == favoured(NOW)


def test_zero_is_no_limit_and_the_original_has_none() -> None:
    assert budget(opened(), 0, 1).next().most == float("inf")
    assert budget(opened(strict=True), 10, 1).next().most == float("inf")


def planned(now: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC), **options: Any) -> Plan:
    """A job that could only have room if many others moved, which takes many trials to find out."""
    parts: list[Any] = [queue("q"), *(node(f"n{number}", 4) for number in range(6))]
    for number in range(6):
        parts += gang(f"v{number}", 1, gpus=3, on=[f"n{number}"])
        parts += gang(f"w{number}", 1, gpus=0, on=[f"n{number}"])
    parts += gang("a", 1, gpus=4, created="2026-01-01T01:00:00Z")
    planner = Planner(profile="kai", actions=["consolidation"], options=options)
    return planner.cycle(planner.build(parts), now=now)


def test_a_job_whose_search_was_cut_short_says_so() -> None:
    plan = planned(searchBudget=1)
    assert any("used up its budget" in cause for cause in plan.jobs["default/a"].reasons)
    assert not plan.evictions


def test_a_search_that_came_to_its_end_says_nothing_of_a_budget() -> None:
    assert not any("budget" in cause for cause in planned().jobs["default/a"].reasons)
