"""The rows that people see say what the plan says."""

from types import SimpleNamespace
from typing import Any

from maniple.cli.summary import (
    Fill,
    human_amount,
    jobs_of_tasks,
    measured,
    node_fill,
    placed_jobs,
    queue_fill,
    queue_lines,
    shown_resources,
    starting_jobs,
    waiting_jobs,
)
from maniple.framework.plans.outcome import Starting, TaskOutcome
from tests.cli.plans import Job, Queue, Task, gang_plan, make_plan


def test_a_gang_is_one_row_with_its_nodes() -> None:
    plan, jobs_of = gang_plan()
    (row,) = placed_jobs(plan, jobs_of)
    assert (row.job, row.queue, row.tasks, dict(row.nodes)) == (
        "ml/train",
        "research",
        8,
        {"node-0": 4, "node-1": 4},
    )


def test_a_pod_without_a_job_is_its_own_row() -> None:
    plan, _ = gang_plan()
    assert len(placed_jobs(plan, {})) == 8


def test_pods_that_wait_for_volumes_are_placed() -> None:
    plan, jobs_of = gang_plan()
    plan.held = {"ml/train-8": "node-0"}
    (row,) = placed_jobs(plan, jobs_of | {"ml/train-8": "ml/train"})
    assert (row.tasks, row.held) == (9, 1)


def test_pods_that_start_later_are_rows_of_their_own() -> None:
    plan, jobs_of = gang_plan()
    plan.starting = {"ml/train-8": Starting("ml/train", "node-0", ("ml/old",), "starts when ml/old has left")}
    (row,) = starting_jobs(plan, jobs_of | {"ml/train-8": "ml/train"})
    assert (row.job, row.tasks, row.reasons) == ("ml/train", 1, ["starts when ml/old has left"])


def test_a_job_below_its_minimum_waits_with_the_reason_of_its_tasks() -> None:
    plan, jobs_of = gang_plan()
    (row,) = waiting_jobs(plan, jobs_of)
    assert (row.job, row.tasks, row.ready, row.minimum) == ("ml/big", 2, 0, 2)
    assert row.reasons == ["0/2 nodes: 2 Insufficient nvidia.com/gpu"]


def test_the_reasons_of_a_job_come_before_those_of_its_tasks() -> None:
    plan, jobs_of = gang_plan()
    plan.jobs["ml/big"].reasons = ["queue research is closed"]
    assert waiting_jobs(plan, jobs_of)[0].reasons == ["queue research is closed"]


def test_different_reasons_of_pods_without_their_group_are_counted() -> None:
    tasks = {
        "a/x": Task("Pending", reason="r1"),
        "a/y": Task("Pending", reason="r2"),
        "a/z": Task("Gated", reason="r2"),
    }
    (row,) = waiting_jobs(make_plan(tasks=tasks), dict.fromkeys(tasks, "a/j"))
    assert (row.job, row.tasks, row.reasons) == ("a/j", 3, ["2 pods: r2", "1 pod: r1"])


def test_only_jobs_of_that_state_wait() -> None:
    states = ("starting", "evicted", "placed", "running", "completed", "idle")
    assert waiting_jobs(make_plan(jobs={f"a/{one}": Job(state=one) for one in states}), {}) == []


def test_a_single_pod_that_found_no_node_waits() -> None:
    plan = make_plan(tasks={"a/x": Task("Pending", reason="no job")})
    (row,) = waiting_jobs(plan, {})
    assert (row.job, row.reasons) == ("a/x", ["no job"])


def test_nodes_come_fullest_first() -> None:
    plan, _ = gang_plan()
    assert [(row.name, row.share) for row in node_fill(plan)] == [("node-1", 1.0), ("node-0", 0.5)]


def test_queues_are_measured_against_what_they_deserve() -> None:
    plan, _ = gang_plan()
    assert queue_fill(plan) == [Fill("research", 0.5, {"cpu": 32_000.0}, {"cpu": 64_000.0})]


def test_columns_are_cpu_memory_and_what_is_used() -> None:
    room = {"cpu": 1, "memory": 1, "ephemeral-storage": 1, "nvidia.com/gpu": 1, "pods": 1, "hugepages-2Mi": 0}
    rows = [Fill("n", 1.0, {"nvidia.com/gpu": 1}, room)]
    assert shown_resources(rows) == ["cpu", "memory", "nvidia.com/gpu"]
    assert shown_resources(rows, ["example.com/nic"]) == [
        "cpu",
        "memory",
        "example.com/nic",
        "nvidia.com/gpu",
    ]


def test_the_number_of_pods_is_a_column_where_a_node_runs_short_of_it() -> None:
    rows = [Fill("n", 0.0, {"cpu": 1, "pods": 110}, {"cpu": 4, "pods": 110})]
    assert shown_resources(rows) == ["cpu", "memory", "pods"]
    (row,) = measured(rows)
    assert row.share == 1.0


def test_shares_follow_from_the_amounts_that_are_shown() -> None:
    full = Fill("n", 0.0, {"cpu": 1, "pods": 55}, {"cpu": 4, "pods": 110, "ephemeral-storage": 8})
    none = Fill("m", 0.0, {"cpu": 1}, {"cpu": 0})
    assert [row.share for row in measured([full, none])] == [0.25, float("inf")]


def test_the_root_of_the_queues_is_no_row() -> None:
    queues = {
        "root": Queue({"cpu": 8.0}, {"cpu": 4.0}),
        "a": Queue({"cpu": 8.0}, {"cpu": 4.0}, parent="root"),
    }
    assert [row.name for row in queue_fill(make_plan(queues=queues))] == ["a"]
    department = {name: Queue({}, {}, quota={}, parent=one.parent) for name, one in queues.items()}
    assert [line.fill.name for line in queue_lines(make_plan(queues=department))] == ["root", "a"]


def test_a_queue_without_quota_shows_none() -> None:
    queues = {"a": Queue({"cpu": 8.0}, {}, quota={"cpu": 0, "memory": float("inf")})}
    (line,) = queue_lines(make_plan(queues=queues))
    assert (line.quota, line.limit) == ("-", "-")


def test_jobs_are_called_what_the_plan_calls_them() -> None:
    tasks = {
        "ml/a": TaskOutcome("Pending", job="ml/g@kai"),
        "ml/b": TaskOutcome("Pending", job="ml/g@volcano"),
        "ml/c": TaskOutcome("Running"),
    }
    plan: Any = SimpleNamespace(tasks=tasks)
    assert jobs_of_tasks(plan) == {"ml/a": "ml/g@kai", "ml/b": "ml/g@volcano"}


def test_unlimited_amounts_are_readable() -> None:
    assert human_amount("nvidia.com/gpu", float("inf")) == "∞"
    assert human_amount("nvidia.com/gpu", 8) == "8"


def test_amounts_have_as_many_decimals_as_people_read() -> None:
    assert [human_amount("nvidia.com/gpu", one) for one in (20.2442, 0.25, 8.3333, 100.0, 12000)] == [
        "20.2",
        "0.25",
        "8.33",
        "100",
        "12,000",
    ]
