"""Bundles: what a job can spare, what breaks it, what that is worth, and in what order bundles go."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from maniple.cluster.statuses import PREEMPTABLE
from maniple.eviction.volcano.bundles import (
    Bundle,
    BundlePool,
    approved,
    candidates,
    in_order,
    safe_and_rest,
    ties,
)
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from tests.actions.volcano.gang_scenes import (
    CLASSES,
    FORBIDDEN,
    ONE,
    low,
    member,
    part,
    policy,
    running,
)
from tests.plugins.opening import job as job_row
from tests.plugins.opening import names, session_on, tasks
from tests.support import group, hyper_node, node, pod, queue

RACK = hyper_node("rack", 1, member("n1"))


def opened(*objects: Object, strict: bool = False) -> Session:
    return session_on([*CLASSES, queue("default"), RACK, *objects], strict=strict)


def safe(*objects: Object, strict: bool = False) -> list[str]:
    """Of the job `old` on any node."""
    session = opened(*objects, strict=strict)
    rows = candidates(session, PREEMPTABLE)
    return names(session, safe_and_rest(session, job_row(session, "old"), rows)[0])


def roles(*listed: tuple[str, str], **fields: Any) -> list[Object]:
    return [pod(name, ONE, group="old", uid=name, role=role, on="n1", **fields) for name, role in listed]


def test_what_a_job_has_beyond_its_minimum_is_safe() -> None:
    assert safe(node("n1"), *low("old", 2, 5, "n1")) == ["old-0", "old-1", "old-2"]
    assert safe(node("n1"), *low("old", 5, 5, "n1")) == []


def test_the_least_important_task_is_the_first_to_go_then_the_smaller_unique_id() -> None:
    tasks_ = [
        pod(name, ONE, group="old", uid=uid, on="n1", priority=value)
        for name, uid, value in (("a", "3", 5), ("b", "2", 5), ("c", "1", 9), ("d", "4", 1))
    ]
    assert safe(node("n1"), group("old", 1, phase="Running"), *tasks_) == ["d", "b", "a"]


def test_all_of_a_job_below_its_minimum_is_safe() -> None:
    assert safe(node("n1"), *low("old", 3, 2, "n1")) == ["old-0", "old-1"]


def test_a_role_keeps_its_minimum() -> None:
    listed = roles(("m", "master"), ("w0", "worker"), ("w1", "worker"))
    minimums = {"master": 1, "worker": 1}
    assert safe(node("n1"), group("old", 2, phase="Running", minTaskMember=minimums), *listed) == ["w0"]


def test_role_minimums_that_exceed_the_jobs_do_not_count() -> None:
    listed = roles(("m", "master"), ("w0", "worker"), ("w1", "worker"))
    minimums = {"master": 1, "worker": 2}
    assert safe(node("n1"), group("old", 2, phase="Running", minTaskMember=minimums), *listed) == ["m"]


def test_a_policy_keeps_its_sub_jobs_and_one_that_lost_a_task_may_lose_more() -> None:
    old = group("old", 0, phase="Running", subGroupPolicy=[policy("w", 2, 1)])
    listed = [*part("old", "w", 0, 2, on="n1"), *part("old", "w", 1, 2, on="n1")]
    assert safe(node("n1"), old, *listed) == ["old-w0-0", "old-w0-1"]


def test_a_sub_job_can_lose_what_it_has_beyond_its_minimum_but_not_in_the_original() -> None:
    old = group("old", 0, phase="Running", subGroupPolicy=[policy("w", 2, 1)])
    listed = part("old", "w", 0, 3, on="n1")
    assert safe(node("n1"), old, *listed) == ["old-w0-0"]
    assert safe(node("n1"), old, *listed, strict=True) == []


def bundled(session: Session, need: dict[str, int] | None = None) -> list[Bundle]:
    """The bundles on the rack, which is n1, for a job with this need."""
    amounts = np.zeros(len(session.resources), dtype=np.int64)
    for name, amount in (need or {"cpu": 1000}).items():
        amounts[session.resources.known(name)] = amount
    pool = BundlePool(session, PREEMPTABLE)
    domain = session.domains.index["rack"]
    return pool.bundles(domain, lambda jobs: jobs >= 0, amounts, lambda jobs: dict.fromkeys(jobs, 0))


def spread(minimum: int, **fields: Any) -> list[Object]:
    return [
        node("n1"),
        node("n2"),
        *low("old", minimum, 2, "n1"),
        *running("old", 2, "n2", first=2, **fields),
    ]


def told(session: Session, bundles: Iterable[Bundle]) -> list[tuple[list[str], bool]]:
    return [(names(session, bundle.rows), bundle.whole) for bundle in bundles]


def test_the_rest_of_a_job_is_one_bundle_and_goes_everywhere() -> None:
    session = opened(*spread(3))
    assert told(session, bundled(session)) == [(["old-0"], False), (["old-1", "old-2", "old-3"], True)]


def test_in_the_original_a_whole_bundle_ends_with_its_domain() -> None:
    session = opened(*spread(3), strict=True)
    assert told(session, bundled(session)) == [(["old-0"], False), (["old-1"], True)]


def test_a_gang_of_which_some_may_not_go_is_not_broken_but_is_in_the_original() -> None:
    session = opened(*spread(4, **FORBIDDEN))
    assert bundled(session) == []
    session = opened(*spread(4, **FORBIDDEN), strict=True)
    assert told(session, bundled(session)) == [(["old-0", "old-1"], True)]


def test_the_worth_of_a_whole_bundle_is_what_it_frees_here_for_what_the_job_loses() -> None:
    session = opened(*spread(4))
    (bundle,) = bundled(session, need={"cpu": 1000, "memory": 4 * 2**30})
    # Two tasks here: cpu counts only up to the need; four tasks are lost.
    assert bundle.worth == pytest.approx((1 + 2 / 4) / (4 + 4 / 4))


def test_in_the_original_what_waits_counts_as_lost_with_a_whole_bundle() -> None:
    waits = pod("old-9", {"cpu": "2", "memory": "1Gi"}, group="old", uid="old-9")
    for strict, lost in ((False, 4), (True, 6)):
        session = opened(*spread(4), waits, strict=strict)
        (bundle,) = bundled(session, need={"cpu": 2000})
        assert bundle.worth == pytest.approx(1 / (lost / 2))


def test_what_is_safe_costs_nobody_anything() -> None:
    session = opened(node("n1"), *low("old", 1, 2, "n1"))
    worth = {bundle.whole: bundle.worth for bundle in bundled(session)}
    assert worth[False] == float("inf")
    assert worth[True] < 1


# -- order -----------------------------------------------------------------------------------------------------------


def ordered(session: Session, bundles: list[Bundle], places: dict[str, int] | None = None) -> list[str]:
    """First tasks of bundles in order, with the places that jobs have."""

    jobs = {bundle.job for bundle in bundles}
    standing = {row: (places or {}).get(session.job_key(row).partition("/")[2], 0) for row in jobs}
    found = in_order(bundles, standing, ties(session, jobs))
    return [names(session, bundle.rows)[0] for bundle in found]


def test_bundles_come_safe_first_then_by_standing_then_by_worth_then_by_unique_id() -> None:
    jobs = [one for name in "abc" for one in low(name, 1, 2, "n1")]
    session = opened(node("n1"), *jobs)
    safe_a, safe_b, safe_c, whole_a, whole_b, whole_c = bundled(session)
    six = [whole_c, safe_c, whole_b, safe_b, whole_a, safe_a]
    assert ordered(session, six) == ["a-0", "b-0", "c-0", "a-1", "b-1", "c-1"]
    assert ordered(session, six, {"a": 2, "b": 0, "c": 1}) == ["b-0", "c-0", "a-0", "b-1", "c-1", "a-1"]
    dear = Bundle(whole_a.job, whole_a.rows, whole=True, worth=0.1)
    assert ordered(session, [dear, whole_b]) == ["b-1", "a-1"]


# -- what plugins leave of them --------------------------------------------------------------------------------------


def test_a_safe_bundle_shrinks_and_a_whole_one_goes_with_its_first_protected_task() -> None:
    session = opened(node("n1"), *low("a", 2, 4, "n1"), *low("b", 2, 3, "n1"))
    bundles = bundled(session)

    def without(*kept: str) -> list[tuple[list[str], bool]]:
        spared = tasks(session, *kept)
        return told(session, approved(session, bundles, lambda rows: rows[~np.isin(rows, spared)], 100))

    spare_a, spare_b, rest_b, _ = everything = told(session, bundles)
    assert everything == [
        (["a-0", "a-1"], False),
        (["b-0"], False),
        (["b-1", "b-2"], True),  # frees as much and costs its job less
        (["a-2", "a-3"], True),
    ]
    assert without() == everything
    assert without("a-3") == [spare_a, spare_b, rest_b]
    assert without("a-0") == [
        (["a-1"], False),
        spare_b,
        rest_b,
    ]  # what it can spare is protected, so is the rest


def test_plugins_are_asked_about_more_and_more_but_about_all_at_once_in_the_original() -> None:
    for strict, expected in ((False, [2, 4, 2]), (True, [8])):
        session = opened(
            node("n1"), *(one for name in "abcdefgh" for one in low(name, 0, 1, "n1")), strict=strict
        )
        sizes: list[int] = []

        def note(rows: TaskRows, sizes: list[int] = sizes) -> TaskRows:
            sizes.append(len(rows))
            return rows

        assert len(list(approved(session, bundled(session), note, 2))) == 8
        assert sizes == expected


def test_what_is_gone_is_in_no_bundle_and_what_is_left_is_split_anew() -> None:
    session = opened(node("n1"), *low("a", 2, 4, "n1"))
    pool, domain = BundlePool(session, PREEMPTABLE), session.domains.index["rack"]

    def bundles() -> list[tuple[list[str], bool]]:
        need = session.requests(tasks(session, "a-0"))[:, 0]
        return told(
            session, pool.bundles(domain, lambda jobs: jobs >= 0, need, lambda jobs: dict.fromkeys(jobs, 0))
        )

    assert bundles() == [(["a-0", "a-1"], False), (["a-2", "a-3"], True)]
    Transaction(session).evict(tasks(session, "a-0"), "test")
    pool.lose([job_row(session, "a")])
    assert bundles() == [(["a-1"], False), (["a-2", "a-3"], True)]


def test_in_the_original_a_gang_breaks_although_what_it_can_spare_is_protected() -> None:
    session = opened(node("n1"), *low("a", 2, 4, "n1"), strict=True)
    spared = tasks(session, "a-0")
    left = approved(session, bundled(session), lambda rows: rows[~np.isin(rows, spared)], 100)
    assert told(session, left) == [(["a-1"], False), (["a-2", "a-3"], True)]
