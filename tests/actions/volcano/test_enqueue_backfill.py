"""enqueue: which jobs are admitted. backfill: where tasks without requests go."""

from typing import Any

from maniple.objects.meta import Object
from tests.actions.volcano.scenes import GANG, bound, cycle
from tests.support import group, node, pod, queue

DOOR = ({"name": "overcommit", "arguments": {"overcommit-factor": 1.0}}, {"name": "proportion"})


def phases(*objects: Object, **settings: Any) -> dict[str, str]:
    plan = cycle(*objects, actions="enqueue", plugins=DOOR, **settings)
    return {key.removeprefix("default/"): job.phase for key, job in plan.jobs.items()}


def asking(name: str, cpu: str | None, created: str = "", **fields: Any) -> Object:
    minimum: dict[str, Any] = {} if cpu is None else {"minResources": {"cpu": cpu}}
    return group(name, 1, phase="Pending", created=created, **minimum, **fields)


def test_jobs_are_admitted_while_their_minimum_fits() -> None:
    found = phases(
        node("n1", {"cpu": "4"}),
        queue("default"),
        asking("a", "3", "2026-01-01T00:00:00Z"),
        asking("b", "2", "2026-01-02T00:00:00Z"),
        asking("c", "1", "2026-01-03T00:00:00Z"),
    )
    assert found == {"a": "Inqueue", "b": "Pending", "c": "Inqueue"}


def test_a_job_that_states_no_minimum_is_admitted_unasked() -> None:
    assert phases(node("n1", {"cpu": "1"}), queue("default"), asking("a", None)) == {"a": "Inqueue"}


def test_being_let_in_changes_no_queue_s_turn() -> None:
    found = phases(
        node("n1", {"cpu": "2"}),
        queue("q1"),
        queue("q2"),
        *(asking(f"a{i}", "1", f"2026-01-0{i + 1}T00:00:00Z", queue="q1") for i in range(2)),
        asking("b", "1", "2026-02-01T00:00:00Z", queue="q2"),
    )
    # What is let in changes no share, so that equal queues go by their names to the end.
    assert found == {"a0": "Inqueue", "a1": "Inqueue", "b": "Pending"}


def test_a_closed_queue_admits_nobody() -> None:
    objects = (node("n1"), queue("default", state="Closed"), asking("a", "1"))
    plan = cycle(*objects, actions="enqueue", plugins=DOOR)
    assert plan.jobs["default/a"].phase == "Pending"
    assert "not open" in plan.jobs["default/a"].reasons[0]


def test_a_queue_without_a_state_lets_jobs_in() -> None:
    objects = (node("n1"), queue("default", state=""), asking("a", "1"))
    assert phases(*objects) == {"a": "Inqueue"}


def test_backfill_places_what_asks_for_nothing_on_a_full_node() -> None:
    plan = cycle(
        node("n1", {"cpu": "1"}),
        queue("default"),
        group("full", 1),
        pod("full-0", {"cpu": "1"}, group="full", on="n1"),
        group("a", 2),
        pod("a-0", group="a"),
        pod("a-1", group="a"),
        actions="backfill",
        plugins=(GANG, {"name": "predicates"}),
    )
    assert bound(plan) == {"a-0", "a-1"}


def test_backfill_binds_once_the_whole_job_is_ready() -> None:
    """One task has no request, its gang mates found no room: it must not start alone."""
    plan = cycle(
        node("n1", {"cpu": "1"}),
        queue("default"),
        group("a", 3),
        pod("a-0", group="a"),
        pod("a-1", {"cpu": "9"}, group="a"),
        pod("a-2", {"cpu": "9"}, group="a"),
        actions="allocate, backfill",
    )
    assert plan.binds == {}


def test_backfill_minds_the_number_of_pods_and_says_so() -> None:
    plan = cycle(
        node("n1", {"pods": "1"}),
        queue("default"),
        group("a", 1),
        *(pod(f"a-{i}", group="a") for i in range(2)),
        actions="backfill",
        plugins=(GANG, {"name": "predicates"}),
    )
    assert len(plan.binds) == 1
    (waiting,) = [task for task in plan.tasks.values() if task.status == "Pending"]
    assert "pod number exceeded" in waiting.reason


def test_a_gang_of_both_kinds_is_bound_together() -> None:
    plan = cycle(
        node("n1", {"cpu": "1"}),
        queue("default"),
        group("a", 2),
        pod("a-0", {"cpu": "1"}, group="a"),
        pod("a-1", group="a"),
        actions="allocate, backfill",
    )
    assert bound(plan) == {"a-0", "a-1"}
