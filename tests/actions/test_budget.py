"""The budget of a search: how it is shared, and what becomes of a job for which it is not enough."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from maniple.actions.searching.budget import OPTION, Allowance, Budget, OutOfBudgetError
from maniple.framework.session import Session
from maniple.planner import Plan, Planner
from tests.actions.allocate_scenes import NOW, Bench, gang, node, queue

ANY: frozenset[int] = frozenset({1})  # classes of a job


def opened(*, strict: bool = False, jobs: int = 1) -> Session:
    return Bench(queue("q"), node("n1", 8), [gang(f"a{n}", 1) for n in range(jobs)], strict=strict).session


def budget(session: Session, total: int, now: datetime = NOW) -> Budget:
    session.options, session.now = {**session.options, OPTION: total}, now
    return Budget(session, line(session))


def line(session: Session) -> list[int]:
    rows: list[int] = session.jobs.rows.tolist()
    return rows


def of_two_namespaces(jobs: int) -> Session:
    """The last job is the only one of its namespace."""
    last = [replace(one, metadata=replace(one.metadata, namespace="good")) for one in gang("last", 1)]
    others = [gang(f"a{number}", 1) for number in range(jobs - 1)]
    return Bench(queue("q"), node("n1", 8), others, last).session


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
    session = opened()  # of one job, the first is the one that what is kept is kept for
    shared, (job,) = budget(session, 800), line(session)
    first = shared.next(job)
    assert first.most == 300  # a quarter of the common half and half of the other
    first.spent = 300
    shared.settle(job, first, ANY, served=False)
    assert shared.next(job).most == 175


def test_what_a_job_does_not_spend_is_there_for_the_next() -> None:
    session = opened()
    shared, (job,) = budget(session, 800), line(session)
    for _ in range(100):
        shared.settle(job, shared.next(job), ANY, served=False)
    assert shared.next(job).most == 300


def test_in_the_course_of_time_every_job_has_its_turn() -> None:
    session, jobs = opened(jobs=20), 20

    def favoured(now: datetime) -> int:
        """The first place in line that may use what is kept."""
        shared = budget(session, 800, now)
        allowed = [shared.next(job).most for job in line(session)]
        return allowed.index(max(allowed))

    times = [NOW + timedelta(seconds=10 * cycle) for cycle in range(400)]
    assert {favoured(now) for now in times} == set(range(jobs))
    assert favoured(NOW) == favoured(NOW)


def test_zero_is_no_limit_and_the_original_has_none() -> None:
    for strict, total in ((False, 0), (True, 10)):
        session = opened(strict=strict)
        shared, (job,) = budget(session, total), line(session)
        assert shared.next(job).most == float("inf")
        shared.settle(job, Allowance(spent=10**6, first=10**6), ANY, served=False)
        assert shared.may_try(job)


def tried(
    shared: Budget, jobs: list[int], units: float, *, served: bool = False, alike: bool = False
) -> list[int]:
    """The jobs, of those in line, whose search begins if each costs so many units."""
    begun = []
    for job in jobs:
        shared.next(job)
        if shared.may_try(job):
            begun.append(job)
            asked = ANY if alike else frozenset({job})
            shared.settle(job, Allowance(spent=units, first=units), asked, served=served)
    return begun


def test_many_jobs_of_one_namespace_do_not_all_try_in_one_cycle() -> None:
    session = opened(jobs=40)
    assert 4 <= len(tried(budget(session, 400), line(session), 20)) <= 7  # 100 units for all of them


def test_in_the_course_of_time_every_job_may_try() -> None:
    session = opened(jobs=40)
    times = [NOW + timedelta(seconds=10 * cycle) for cycle in range(200)]
    begun = {job for now in times for job in tried(budget(session, 400, now), line(session), 20)}
    assert begun == set(line(session))


def test_jobs_that_are_served_like_others_hardly_count() -> None:
    session = opened(jobs=40)
    assert len(tried(budget(session, 400), line(session), 20, served=True, alike=True)) == 40
    assert len(tried(budget(session, 400), line(session), 20, alike=True)) < 10


def test_a_job_of_another_namespace_behind_them_has_its_share() -> None:
    session = of_two_namespaces(40)
    *evil, good = line(session)
    shared = budget(session, 800)
    for job in evil:
        allowance = shared.next(job)
        allowance.first = allowance.spent = max(allowance.most, 20)
        if shared.may_try(job):
            shared.settle(job, allowance, frozenset({job}), served=False)
    assert not shared.may_try(evil[-1])
    assert (
        shared.next(good).most >= 800 / 4 / 2 / 2
    )  # half of what its namespace has of the quarter for namespaces
    assert shared.may_try(good)


def test_adding_up_victims_and_beginning_a_search_count() -> None:
    allowance = Allowance(nodes=2000)
    allowance.prepare(8)
    allowance.add_up(80)
    assert (allowance.prepared, allowance.spent) == (2 * 3 + 10, 0)


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
