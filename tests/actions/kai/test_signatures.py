"""Jobs that failed: which others are passed over because of them."""

from typing import Any

import pytest

from maniple.actions.kai.signatures import failures
from tests.actions.kai.allocate_scenes import Bench, gang, node, queue
from tests.support import priority_class

PARTS = [queue("q"), node("n1", 8), priority_class("high", 60)]


class Known:
    def __init__(self, *jobs: list[Any], strict: bool) -> None:
        self._bench = Bench(PARTS, *jobs, strict=strict)
        self._failures = failures(self._bench.session)

    def failed(self, *jobs: str) -> "Known":
        for job in jobs:
            self._failures.remember(self._bench.job(job))
        return self

    def changed(self) -> "Known":
        self._failures.changed()
        return self

    def skips(self, job: str) -> bool:
        return self._failures.rules_out(self._bench.job(job))


both = pytest.mark.parametrize("strict", [False, True])


@both
def test_the_same_is_passed_over_and_less_is_not(strict: bool) -> None:
    known = Known(gang("two", 2), gang("same", 2), gang("one", 1), strict=strict).failed("two")
    assert known.skips("same")
    assert not known.skips("one")


def test_more_is_passed_over_but_in_kai_another_number_of_pods_is_another_job() -> None:
    jobs = [gang("two", 2), gang("three", 3)]
    assert Known(*jobs, strict=False).failed("two").skips("three")
    assert not Known(*jobs, strict=True).failed("two").skips("three")


@both
def test_nothing_is_passed_over_before_something_failed(strict: bool) -> None:
    assert not Known(gang("a", 1), strict=strict).skips("a")


@both
def test_the_smallest_failure_counts(strict: bool) -> None:
    known = Known(gang("two", 2), gang("three", 3), strict=strict)
    assert known.failed("three", "two", "three").skips("two")


@both
def test_other_constraints_or_another_priority_make_another_job(strict: bool) -> None:
    picky = gang("picky", 1, nodeSelector={"zone": "a"})
    known = Known(gang("plain", 1), picky, strict=strict).failed("plain")
    assert not known.skips("picky")


def test_a_higher_priority_has_more_victims_and_is_tried() -> None:
    known = Known(gang("a", 1), gang("b", 1, priority="high"), strict=False).failed("a")
    assert not known.skips("b")


def test_once_somebody_was_served_everybody_is_tried_again_but_not_in_kai() -> None:
    jobs = [gang("a", 1), gang("b", 1)]
    assert not Known(*jobs, strict=False).failed("a").changed().skips("b")
    assert Known(*jobs, strict=True).failed("a").changed().skips("b")


def test_in_kai_larger_requests_are_passed_over_too_and_smaller_ones_are_not() -> None:
    known = Known(gang("mid", 1, gpus=2), gang("big", 1, gpus=4), gang("small", 1, gpus=1), strict=True)
    known.failed("mid")
    assert known.skips("big")
    assert not known.skips("small")
