"""KAI's orders of jobs, of tasks inside a job, and of a job's pod sets."""

from typing import Any

import numpy as np
import pytest

from maniple.plugins.kai.elastic import Elastic
from maniple.plugins.kai.kubeflow import Kubeflow
from maniple.plugins.kai.priority import Priority
from maniple.plugins.kai.ray import Ray
from maniple.plugins.kai.subgrouporder import SubGroupOrder
from maniple.plugins.kai.taskorder import TaskOrder
from tests.actions.allocate_scenes import Bench, gang
from tests.plugins.kai.asking import Asking
from tests.plugins.kai.fairness_scenes import job, node, queue, task
from tests.support import make, priority_class

_ORDER = (Kubeflow, Ray, TaskOrder)


def _group(name: str, *, priority: str = "", minimum: int = 1) -> Any:
    spec = {"queue": "q", "minMember": minimum, "priorityClassName": priority}
    return make("scheduling.run.ai/v2alpha2", "PodGroup", name, namespace="default", uid=name, spec=spec)


def _pod(name: str, **labels: str) -> Any:
    written = {key.replace("__", "/").replace("_", "-"): value for key, value in labels.items()}
    return task(name, {"cpu": "1"}, annotations={"pod-group-name": "job"}, labels=written)


def _labelled(name: str, label: str, value: str) -> Any:
    return task(name, {"cpu": "1"}, annotations={"pod-group-name": "job"}, labels={label: value})


def test_the_job_with_the_higher_priority_is_first() -> None:
    asking = Asking(
        [Priority],
        node(),
        priority_class("low", 10),
        priority_class("high", 90),
        _group("a", priority="low"),
        _group("b", priority="high"),
    )
    assert asking.jobs_in_order("a", "b") == ["b", "a"]


def test_jobs_below_their_minimum_then_at_it_then_above() -> None:
    asking = Asking(
        [Elastic],
        node(),
        job("above", "q", running=3, minimum=2),
        job("exact", "q", running=2, minimum=2, pending=1),
        job("below", "q", running=1, minimum=2, pending=1),
    )
    assert asking.jobs_in_order("above", "exact", "below") == ["below", "exact", "above"]


def test_one_sub_group_below_its_minimum_counts_for_the_whole_job() -> None:
    groups = (("poor", 2, 1), ("rich", 1, 3))
    asking = Asking(
        [Elastic],
        node(),
        job("lacking", "q", running=4, sub_groups=groups),
        job("exact", "q", running=2, minimum=2),
    )
    assert asking.jobs_in_order("exact", "lacking") == ["lacking", "exact"]


def test_jobs_are_ordered_at_once_as_one_by_one() -> None:
    asking = Asking(
        [Priority, Elastic],
        node(),
        priority_class("high", 90),
        _group("empty", priority="high"),
        job("above", "q", running=3, minimum=2),
        job("below", "q", running=1, minimum=2, pending=1),
        job("parted", "q", running=4, sub_groups=(("a", 2, 1), ("b", 1, 3))),
    )
    rows = asking.session.jobs.rows
    together = np.array(asking.session.hooks.job_orders(rows)).T.tolist()
    assert together == [list(asking.session.hooks.job_order(row)) for row in rows.tolist()]


@pytest.mark.parametrize("role", ["master", "launcher"])
def test_the_leader_of_a_training_job_is_first(role: str) -> None:
    label = "training.kubeflow.org/job-role"
    asking = Asking(
        _ORDER,
        _group("job"),
        _labelled("a", label, "worker"),
        _pod("b"),
        _labelled("c", label, role),
    )
    assert asking.in_order("a", "b", "c") == ["c", "a", "b"]


def test_the_head_of_a_ray_cluster_is_first() -> None:
    label = "ray.io/node-type"
    asking = Asking(_ORDER, _group("job"), _labelled("a", label, "worker"), _labelled("b", label, "head"))
    assert asking.in_order("a", "b") == ["b", "a"]


def test_the_higher_task_priority_is_first_and_any_label_before_none() -> None:
    label = "kai.scheduler/task-priority"
    asking = Asking(
        _ORDER,
        _group("job"),
        _pod("a"),
        _labelled("b", label, "urgent"),
        _labelled("c", label, "-3"),
        _labelled("d", label, "+7"),
        _labelled("e", label, "12"),
    )
    assert asking.in_order("a", "b", "c", "d", "e") == ["e", "d", "c", "b", "a"]


def test_the_leader_goes_before_a_higher_task_priority() -> None:
    asking = Asking(
        _ORDER,
        _group("job"),
        _labelled("a", "kai.scheduler/task-priority", "100"),
        _labelled("b", "ray.io/node-type", "head"),
    )
    assert asking.in_order("a", "b") == ["b", "a"]


def test_without_any_label_older_tasks_go_first() -> None:
    def aged(name: str, created: str) -> Any:
        return make(
            "v1",
            "Pod",
            name,
            namespace="default",
            uid=name,
            created=created,
            annotations={"pod-group-name": "job"},
            spec={"schedulerName": "kai-scheduler", "containers": [{"name": "main"}]},
            status={"phase": "Pending"},
        )

    asking = Asking(
        _ORDER, _group("job"), aged("a", "2026-01-02T00:00:00Z"), aged("b", "2026-01-01T00:00:00Z")
    )
    assert asking.in_order("a", "b") == ["b", "a"]


def test_by_default_jobs_go_by_priority_then_elasticity_then_age_then_unique_id() -> None:
    ranked = priority_class("high", 60)
    old, new = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
    bench = Bench(
        ranked,
        queue("q"),
        node("n1", 20),
        gang("above", 3, 1, on=["n1", "n1"], created=old),
        gang("exact", 2, 1, on=["n1"], created=old),
        gang("young", 1, created=new),
        gang("b-same", 1, created=old),
        gang("a-same", 1, created=old),
        gang("high", 3, 1, on=["n1", "n1"], created=new, priority="high"),
    )
    names = ["above", "exact", "young", "b-same", "a-same", "high"]
    ordered = sorted(names, key=lambda name: bench.session.job_key_order(bench.job(name)))
    assert ordered == ["high", "a-same", "b-same", "young", "exact", "above"]


def test_by_default_tasks_go_by_role_then_task_priority_then_age_then_unique_id() -> None:
    def member(name: str, hour: int, **labels: str) -> Any:
        return make(
            "v1",
            "Pod",
            name,
            namespace="default",
            uid=name,
            created=f"2026-01-01T{hour:02}:00:00Z",
            annotations={"pod-group-name": "job"},
            labels=labels,
            spec={"schedulerName": "kai-scheduler", "containers": [{"name": "main"}]},
            status={"phase": "Pending"},
        )

    pods = [
        member("z-plain", 1),
        member("a-plain", 1),
        member("late", 2),
        member("ranked", 3, **{"kai.scheduler/task-priority": "1"}),
        member("head", 4, **{"ray.io/node-type": "head"}),
        member("master", 5, **{"training.kubeflow.org/job-role": "master"}),
    ]
    bench = Bench(queue("q"), node(), _group("job"), pods)
    rows = bench.session.in_task_order(bench.rows(*(one.metadata.name for one in pods)))
    names = [bench.session.task_key(row).removeprefix("default/") for row in rows.tolist()]
    assert names == ["master", "head", "ranked", "a-plain", "z-plain", "late"]


def test_pod_sets_that_lack_something_then_the_least_filled_then_by_name() -> None:
    groups = (("d", 2, 4), ("c", 1, 3), ("b", 3, 0), ("a", 4, 0))
    asking = Asking([SubGroupOrder], node(), job("job", "q", running=7, sub_groups=groups))
    pod_sets = asking.session.groups
    row = asking.session.cluster.jobs.index_of("default/job")
    assert row is not None
    assert [one.name for one in pod_sets.in_order(pod_sets.of(row))] == ["a", "b", "d", "c"]


@pytest.mark.parametrize("plugin", [Priority, Elastic, Kubeflow, Ray, TaskOrder, SubGroupOrder])
def test_arguments_are_reported_because_there_are_none(plugin: Any) -> None:
    asking = Asking([plugin], arguments={"weight": "2"})
    assert [warning for warning in asking.session.warnings if "weight" in warning]
