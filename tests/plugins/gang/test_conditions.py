"""The conditions that gang leaves on jobs when a session ends."""

import numpy as np

from maniple.framework.reasons import Histogram, NotWhole
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.plugins.gang.gang import Gang
from tests.actions.volcano.scenes import cycle
from tests.plugins.opening import job, session_on, task, tasks
from tests.support import group, node, pod, queue

SMALL = {"cpu": "1"}
LEAVING = "2026-08-01T12:00:00Z"


def closed(session: Session) -> dict[str, dict[str, str]]:
    Gang(session, {}).on_close()
    found = {session.job_key(row): session.decisions.conditions.of(row) for row in session.jobs.rows.tolist()}
    return {job: conditions[0] for job, conditions in found.items() if conditions}


def cluster(*objects: Object) -> Session:
    return session_on([node("n1"), queue("q"), *objects])


def test_a_complete_gang_is_scheduled() -> None:
    session = cluster(group("g", 1, queue="q"), pod("p0", SMALL, group="g", on="n1"))
    assert closed(session) == {
        "default/g": {
            "type": "Scheduled",
            "status": "True",
            "reason": "tasks in gang are ready to be scheduled",
            "message": "",
        }
    }


def test_an_incomplete_gang_says_how_it_stands_and_why() -> None:
    session = cluster(
        group("g", 3, queue="q"),
        pod("p0", SMALL, group="g", on="n1"),
        pod("p1", SMALL, group="g"),
        pod("p2", SMALL, group="g"),
    )
    cause = Histogram(2, (("Insufficient cpu", 2),))
    session.refusals.of_tasks(job(session, "g"), -1, tasks(session, "p1", "p2"), cause)
    assert closed(session)["default/g"] == {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughResources",
        "message": "2/3 tasks in gang unschedulable: pod group is not ready, 1 Running, 2 Pending, 3 minAvailable; "
        "Pending: 2 Unschedulable. Origin reason is p1: 0/2 nodes are unavailable: 2 Insufficient cpu",
    }


def test_the_first_refusal_is_the_origin_of_the_job_or_of_a_task() -> None:
    def refused(*first: str) -> str:
        session = cluster(group("g", 1, queue="q"), pod("p0", SMALL, group="g"))
        for who in first:
            if who == "job":
                session.refusals.of_job(job(session, "g"), "the queue is full")
            else:
                session.refusals.of_tasks(job(session, "g"), -1, tasks(session, "p0"), "no node")
        return closed(session)["default/g"]["message"]

    assert refused("job", "task").endswith(". Origin reason is: the queue is full")
    assert refused("task", "job").endswith(". Origin reason is p0: no node")


def test_jobs_without_tasks_get_no_condition() -> None:
    assert closed(cluster(group("g", 0, queue="q"), group("h", 1, queue="q"))) == {}


def test_a_gang_that_only_waits_for_leaving_tasks_gets_no_condition() -> None:
    leaving = [pod(f"p{i}", SMALL, group="g", on="n1", deleted=LEAVING) for i in range(2)]
    assert closed(cluster(group("g", 2, queue="q"), *leaving)) == {}
    assert "default/g" in closed(cluster(group("g", 3, queue="q"), *leaving))
    assert "default/g" in closed(cluster(group("g", 2, queue="q"), *leaving, pod("p2", SMALL, group="g")))


def test_tasks_that_left_before_they_had_a_node_do_not_count_as_leaving() -> None:
    gone = [pod(f"p{i}", SMALL, group="g", deleted=LEAVING) for i in range(2)]
    assert "default/g" in closed(cluster(group("g", 2, queue="q"), *gone))


def test_conditions_follow_what_the_session_did() -> None:
    session = cluster(group("g", 1, queue="q"), pod("p0", SMALL, group="g"))
    Transaction(session).allocate(np.array([task(session, "p0")]), np.zeros(1, dtype=np.intp))
    assert closed(session)["default/g"]["type"] == "Scheduled"


def test_waiting_tasks_that_ask_for_nothing_count_as_there() -> None:
    session = cluster(
        group("g", 2, queue="q"),
        pod("p0", SMALL, group="g", on="n1"),
        pod("p1", group="g"),
        group("h", 2, queue="q"),
    )
    assert closed(session)["default/g"]["type"] == "Scheduled"


def test_tasks_that_would_fit_are_distinguished_from_those_that_lack_a_place() -> None:
    """Two of three find a place and give it back: one is what the gang lacks, and only that one needs a node."""
    session = cluster(group("g", 3, queue="q"), *(pod(f"p{i}", SMALL, group="g") for i in range(3)))
    row = job(session, "g")
    session.refusals.of_tasks(row, -1, tasks(session, "p2"), "no room")
    session.refusals.of_tasks(row, -1, tasks(session, "p0", "p1"), NotWhole("not whole"), failed=False)
    assert closed(session)["default/g"]["message"] == (
        "1/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; "
        "Pending: 2 Schedulable, 1 Unschedulable. Origin reason is p2: no room"
    )


def test_in_a_plan_those_that_had_a_place_count_as_schedulable() -> None:
    plan = cycle(
        node("n1", {"cpu": "2"}),
        queue("default"),
        group("g", 3),
        *(pod(f"p{i}", SMALL, group="g", uid=f"{i}") for i in range(4)),
        plugins=({"name": "gang"},),
    )
    assert plan.binds == {}
    (condition,) = plan.jobs["default/g"].conditions
    assert condition["message"].startswith("1/4 tasks in gang unschedulable")
    assert "Pending: 2 Schedulable, 2 Unschedulable." in condition["message"]
