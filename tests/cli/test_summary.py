"""The rows that people see say what the plan says."""

from types import SimpleNamespace
from typing import Any

from maniple.cli.summary import (
    Fill,
    human_amount,
    jobs_of_tasks,
    node_fill,
    placed_jobs,
    queue_fill,
    shown_resources,
    waiting_jobs,
)
from maniple.framework.plans.outcome import TaskOutcome
from tests.cli.plans import Job, Task, gang_plan, make_plan


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


def test_pipelined_tasks_are_counted_apart() -> None:
    plan, jobs_of = gang_plan()
    plan.pipelined = {"ml/train-8": "node-0"}
    (row,) = placed_jobs(plan, jobs_of | {"ml/train-8": "ml/train"})
    assert (row.tasks, row.pipelined) == (9, 1)


def test_a_job_below_its_minimum_waits_with_the_reason_of_its_tasks() -> None:
    plan, jobs_of = gang_plan()
    (row,) = waiting_jobs(plan, jobs_of)
    assert (row.job, row.tasks, row.ready, row.minimum) == ("ml/big", 2, 0, 2)
    assert row.reasons == ["0/2 nodes: 2 Insufficient nvidia.com/gpu"]


def test_the_reasons_of_a_job_come_before_those_of_its_tasks() -> None:
    plan, jobs_of = gang_plan()
    plan.jobs["ml/big"].reasons = ["queue research is closed"]
    assert waiting_jobs(plan, jobs_of)[0].reasons == ["queue research is closed"]


def test_different_reasons_are_counted() -> None:
    tasks = {
        "a/x": Task("Pending", reason="r1"),
        "a/y": Task("Pending", reason="r2"),
        "a/z": Task("Gated", reason="r2"),
    }
    plan = make_plan(tasks=tasks, jobs={"a/j": Job(ready=1, minimum=1)})
    (row,) = waiting_jobs(plan, dict.fromkeys(tasks, "a/j"))
    assert row.reasons == ["2 tasks: r2", "1 task: r1"]


def test_a_job_that_has_all_it_needs_does_not_wait() -> None:
    plan = make_plan(
        tasks={"a/x": Task("Running", "n")}, jobs={"a/j": Job(phase="Running", ready=1, minimum=1)}
    )
    assert waiting_jobs(plan, {"a/x": "a/j"}) == []


def test_a_completed_job_does_not_wait() -> None:
    plan = make_plan(jobs={"a/j": Job(phase="Completed", ready=0, minimum=1)})
    assert waiting_jobs(plan, {}) == []


def test_a_job_without_its_pods_waits() -> None:
    condition = {"type": "Unschedulable", "status": "True", "message": "0/1 tasks exist"}
    plan = make_plan(jobs={"a/j": Job(ready=0, minimum=1, conditions=[condition])})
    (row,) = waiting_jobs(plan, {})
    assert (row.tasks, row.reasons) == (0, ["0/1 tasks exist"])


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
    assert shown_resources(rows) == ["cpu", "memory", "nvidia.com/gpu", "ephemeral-storage"]


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
