"""enqueue, rule by rule: which jobs are voted on, when, and what follows."""

from collections import Counter
from typing import Any

import pytest

from maniple.framework.combine import Vote
from maniple.framework.session import Session
from maniple.objects.meta import Object
from tests.actions.volcano.answers import job_name, planned
from tests.support import group, node, queue


def asking(name: str, number: int = 1, **fields: Any) -> Object:
    wanted = {"minResources": {"cpu": "1"}, "phase": "Pending", **fields}
    return group(name, 1, created=f"2026-01-{number:02}T00:00:00Z", **wanted)


@pytest.mark.parametrize("phase", ["", "Pending"])
def test_jobs_that_have_no_phase_yet_wait_like_those_that_say_so(phase: str) -> None:
    plan = planned([node("n1"), queue("default"), asking("a", phase=phase)], actions="enqueue")
    assert plan.jobs["default/a"].phase == "Inqueue"


def test_jobs_that_were_admitted_are_not_asked_about_again() -> None:
    asked: list[str] = []

    def vote(session: Session, job: int) -> Vote:
        asked.append(job_name(session, job))
        return Vote.PERMIT

    objects = [node("n1"), queue("default"), asking("a"), asking("b", phase="Inqueue")]
    planned(objects, actions="enqueue", job_enqueueable=vote)
    assert asked == ["a"]


def test_a_refused_job_is_asked_about_once_and_holds_nobody_back() -> None:
    asked: Counter[str] = Counter()

    def vote(session: Session, job: int) -> Vote:
        asked[job_name(session, job)] += 1
        return Vote.REJECT if job_name(session, job) == "a" else Vote.PERMIT

    objects = [node("n1"), queue("default"), asking("a", 1), asking("b", 2), asking("c", 3)]
    plan = planned(objects, actions="enqueue", job_enqueueable=vote)
    assert asked == {"a": 1, "b": 1, "c": 1}
    assert [plan.jobs[f"default/{name}"].phase for name in "abc"] == ["Pending", "Inqueue", "Inqueue"]
    assert plan.jobs["default/a"].reasons == ["not admitted yet: a plugin voted against it"]


def test_plugins_hear_of_a_job_only_after_all_votes_let_it_in() -> None:
    told: list[str] = []

    def vote(session: Session, job: int) -> Vote:
        return Vote.REJECT if job_name(session, job) == "a" else Vote.ABSTAIN

    def hear(session: Session, job: int) -> None:
        told.append(job_name(session, job))

    objects = [node("n1"), queue("default"), asking("a", 1), asking("b", 2)]
    planned(objects, actions="enqueue", job_enqueueable=vote, job_enqueued=hear)
    assert told == ["b"]


@pytest.mark.parametrize("compat", ["better", "strict"])
def test_nobody_enters_a_queue_that_is_not_open_but_in_the_original_a_job_without_a_minimum(
    compat: str,
) -> None:
    objects = [node("n1"), queue("default", state="Closed"), asking("a", minResources=None)]
    plan = planned(objects, "proportion", actions="enqueue", compat=compat)
    assert plan.jobs["default/a"].phase == ("Inqueue" if compat == "strict" else "Pending")


def test_a_job_without_a_minimum_passes_every_vote_by_and_is_told_of_all_the_same() -> None:
    told: list[str] = []
    objects = [node("n1"), queue("default"), asking("a", minResources=None)]
    plan = planned(
        objects,
        "proportion",
        actions="enqueue",
        job_enqueueable=lambda *_: Vote.REJECT,
        job_enqueued=lambda session, job: told.append(job_name(session, job)),
    )
    assert plan.jobs["default/a"].phase == "Inqueue"
    assert told == ["a"]


def test_jobs_come_in_job_order_and_queues_are_compared_again_after_each() -> None:
    let_in: list[str] = []
    counts: Counter[int] = Counter()

    def hear(session: Session, job: int) -> None:
        let_in.append(job_name(session, job))
        counts[int(session.jobs.queue[job])] += 1

    objects = [
        node("n1"),
        queue("q1"),
        queue("q2"),
        *(asking(f"a{i}", i + 1, queue="q1") for i in range(3)),
        *(asking(f"b{i}", i + 1, queue="q2") for i in range(2)),
    ]
    planned(objects, actions="enqueue", job_enqueued=hear, queue_order=lambda _, one: counts[one])
    assert let_in == ["a0", "b0", "a1", "b1", "a2"]
    let_in.clear()
    planned(objects, actions="enqueue", job_enqueued=hear, queue_order=lambda *_: 0)
    assert let_in == ["a0", "a1", "a2", "b0", "b1"]
