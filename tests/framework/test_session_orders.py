"""The order without plugins: the age of objects, then their unique ids; for tasks also the number in the name."""

from typing import Any

import numpy as np

from maniple.framework.session import Session
from maniple.objects.meta import Object
from tests.plugins.opening import job, names, queue_row, session_on, tasks, use
from tests.support import group, make, node, pod, queue

OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


class Backwards:
    """A plugin that has the later of two names first."""

    name = "priority"

    def __init__(self, session: Session) -> None:
        self._session = session

    def job_order(self, row: int) -> int:
        return -ord(self._session.job_key(row)[-1])

    def queue_order(self, row: int) -> int:
        return -ord(self._session.queue_name(row)[-1])

    def task_order(self, rows: Any) -> Any:
        return np.array([-ord(self._session.task_key(row)[-1]) for row in rows.tolist()])


def job_with(name: str, uid: str, created: str) -> Object:
    spec = {"minMember": 1, "queue": "default"}
    return make(
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        name,
        namespace="default",
        spec=spec,
        status={"phase": "Inqueue"},
        uid=uid,
        created=created,
    )


def queue_with(name: str, uid: str, created: str) -> Object:
    return make(
        "scheduling.volcano.sh/v1beta1",
        "Queue",
        name,
        spec={"weight": 1},
        status={"state": "Open"},
        uid=uid,
        created=created,
    )


def jobs_in_order(session: Session, *job_names: str) -> list[str]:
    return sorted(job_names, key=lambda name: session.job_key_order(job(session, name)))


def queues_in_order(session: Session, *queue_names: str) -> list[str]:
    return sorted(queue_names, key=lambda name: session.queue_key_order(queue_row(session, name)))


def tasks_in_order(session: Session, *task_names: str) -> list[str]:
    return names(session, session.in_task_order(tasks(session, *task_names)))


def test_the_older_job_comes_first_and_of_equally_old_ones_the_smaller_unique_id() -> None:
    session = session_on(
        [
            queue("default"),
            job_with("a", "1", NEW),
            job_with("b", "3", OLD),
            job_with("c", "2", OLD),
        ]
    )
    assert jobs_in_order(session, "a", "b", "c") == ["c", "b", "a"]


def test_the_older_queue_comes_first_and_of_equally_old_ones_the_smaller_unique_id() -> None:
    session = session_on([queue_with("a", "1", NEW), queue_with("b", "3", OLD), queue_with("c", "2", OLD)])
    assert queues_in_order(session, "a", "b", "c") == ["c", "b", "a"]


def test_plugins_come_before_age() -> None:
    session = session_on(
        [
            node("n1"),
            queue_with("x", "1", OLD),
            queue_with("y", "2", NEW),
            queue("default"),
            job_with("x", "1", OLD),
            job_with("y", "2", NEW),
            pod("x", group="x", created=OLD),
            pod("y", group="x", created=NEW),
        ]
    )
    use(session, Backwards(session))
    assert jobs_in_order(session, "x", "y") == ["y", "x"]
    assert queues_in_order(session, "x", "y") == ["y", "x"]
    assert tasks_in_order(session, "x", "y") == ["y", "x"]


def test_tasks_go_by_the_number_in_their_name_as_a_number() -> None:
    named = ["job-w-10", "job-w-9", "job-w-2"]
    ages = [OLD, NEW, NEW]
    session = session_on(
        [
            queue("default"),
            group("a"),
            *(pod(name, group="a", created=age) for name, age in zip(named, ages, strict=True)),
        ]
    )
    assert tasks_in_order(session, *named) == ["job-w-2", "job-w-9", "job-w-10"]


def test_tasks_with_equal_numbers_or_none_go_by_age_and_then_by_unique_id() -> None:
    session = session_on(
        [
            queue("default"),
            group("a"),
            group("b"),
            pod("a-x-1", group="a", created=NEW, uid="1"),
            pod("a-y-1", group="a", created=OLD, uid="2"),
            pod("b", group="b", created=OLD, uid="9"),
            pod("c-1", group="b", created=OLD, uid="8"),  # two parts: no number
            pod("d", group="b", created=NEW, uid="1"),
        ]
    )
    assert tasks_in_order(session, "a-x-1", "a-y-1") == ["a-y-1", "a-x-1"]
    assert tasks_in_order(session, "b", "c-1", "d") == ["c-1", "b", "d"]


def test_numbers_count_only_in_jobs_where_every_task_has_one() -> None:
    session = session_on(
        [
            queue("default"),
            group("a"),
            pod("a-w-9", group="a", created=OLD),
            pod("a-w-1", group="a", created=NEW),
            pod("other", group="a", created=NEW),
        ]
    )
    assert tasks_in_order(session, "a-w-9", "a-w-1") == ["a-w-1", "a-w-9"]
    assert tasks_in_order(session, "a-w-9", "a-w-1", "other")[0] == "a-w-9"


def test_the_total_is_what_the_sessions_nodes_offer_with_what_is_oversubscribed() -> None:
    more = {"volcano.sh/oversubscription-cpu": "500"}
    session = session_on(
        [
            queue("default"),
            node("n1", {"cpu": "2"}),
            node("n2", {"cpu": "3"}, annotations=more),
            pod("p", {"cpu": "1"}, on="gone"),  # an unknown node offers nothing
        ]
    )
    assert session.resources.describe(session.total)["cpu"] == 5500
