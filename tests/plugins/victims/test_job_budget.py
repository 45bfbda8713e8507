"""A job's own budget: how many running tasks it may lose."""

import pytest

from maniple.framework.transactions.transaction import Transaction
from maniple.plugins.job_budget import LEAST_AVAILABLE, MOST_UNAVAILABLE, may_lose
from tests.plugins.opening import job, session_on, tasks
from tests.support import group, node, pod, queue


def lost(
    annotations: dict[str, str], *, running: int = 4, waiting: int = 0, done: int = 0, strict: bool = False
) -> int:
    pods = [
        *(pod(f"r{n}", on="n1", group="g") for n in range(running)),
        *(pod(f"w{n}", group="g") for n in range(waiting)),
        *(pod(f"d{n}", on="n1", group="g", phase="Succeeded") for n in range(done)),
    ]
    session = session_on(
        [node("n1"), queue("default"), group("g", 1, annotations=annotations), *pods], strict=strict
    )
    return may_lose(session, job(session, "g"))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("annotations", "running", "waiting", "done", "expected"),
    [
        ({}, 4, 0, 0, 1),
        ({}, 0, 4, 0, 1),
        ({LEAST_AVAILABLE: "1"}, 4, 0, 0, 3),
        ({LEAST_AVAILABLE: "4"}, 4, 0, 0, 0),
        ({LEAST_AVAILABLE: "30%"}, 4, 0, 0, 2),  # 1.2 of 4, rounded up
        ({LEAST_AVAILABLE: "30%"}, 4, 6, 0, 1),
        ({MOST_UNAVAILABLE: "3"}, 4, 0, 0, 3),
        ({MOST_UNAVAILABLE: "3"}, 4, 2, 0, 1),
        ({MOST_UNAVAILABLE: "3"}, 4, 5, 0, 0),
        ({MOST_UNAVAILABLE: "3"}, 4, 2, 7, 1),  # finished ones are not missing
        ({MOST_UNAVAILABLE: "30%"}, 4, 0, 0, 2),
        ({LEAST_AVAILABLE: "4", MOST_UNAVAILABLE: "4"}, 4, 0, 0, 0),
    ],
)
def test_the_rule(
    annotations: dict[str, str], running: int, waiting: int, done: int, expected: int, strict: bool
) -> None:
    assert lost(annotations, running=running, waiting=waiting, done=done, strict=strict) == expected


def test_a_job_below_its_least_loses_nothing_but_one_in_volcano() -> None:
    assert lost({LEAST_AVAILABLE: "5"}) == 0
    assert lost({LEAST_AVAILABLE: "5"}, strict=True) == 1


@pytest.mark.parametrize("text", ["some", "3.5", "%", "10 %"])
def test_a_budget_that_cannot_be_read_protects_and_counts_as_zero_in_volcano(text: str) -> None:
    assert lost({LEAST_AVAILABLE: text}) == 0
    assert lost({LEAST_AVAILABLE: text}, strict=True) == 4
    assert lost({MOST_UNAVAILABLE: text}, strict=True) == 0


@pytest.mark.parametrize(("strict", "expected"), [(False, [1, 0, 1]), (True, [1, 1, 1])])
def test_a_job_without_a_budget_loses_one_in_a_session_or_one_a_question(
    strict: bool, expected: list[int]
) -> None:
    pods = [pod(name, {"cpu": "1"}, on="n1", group="g") for name in "ab"]
    leaving = pod("c", on="n1", group="g", deleted="2026-01-01T00:00:00Z")
    session = session_on([node("n1"), queue("default"), group("g", 1), *pods, leaving], strict=strict)
    row, transaction = job(session, "g"), Transaction(session)
    found = [may_lose(session, row)]
    transaction.evict(tasks(session, "a"), "test")
    found.append(may_lose(session, row))
    transaction.discard()
    assert [*found, may_lose(session, row)] == expected
