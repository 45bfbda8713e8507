"""priority: who goes first, who may be preempted, who starves."""

import numpy as np

from maniple.plugins.order.priority import Priority
from tests.plugins.opening import job, names, session_on, task, tasks
from tests.support import group, node, pod, priority_class, queue

OBJECTS = [
    node("n1"),
    queue("q"),
    queue("other"),
    priority_class("high", 100),
    priority_class("low", 1),
    group("rich", 1, queue="q", priorityClassName="high"),
    group("poor", 1, queue="q", priorityClassName="low"),
    group("far", 1, queue="other", priorityClassName="high"),
    pod("rich-0", {"cpu": "1"}, group="rich", priority=5),
    pod("rich-1", {"cpu": "1"}, group="rich", priority=9, on="n1"),
    pod("rich-2", {"cpu": "1"}, group="rich", priority=4, on="n1"),
    pod("poor-0", {"cpu": "1"}, group="poor", priority=50, on="n1"),
    pod("far-0", {"cpu": "1"}, group="far", priority=5, on="n1"),
    pod("orphan", {"cpu": "1"}, group="nobody", on="n1"),
]


def test_higher_numbers_come_first() -> None:
    session = session_on(OBJECTS)
    plugin = Priority(session, {})
    assert plugin.job_order(job(session, "rich")) < plugin.job_order(job(session, "poor"))
    order = plugin.task_order(tasks(session, "rich-0", "rich-1", "rich-2"))
    assert np.argsort(order).tolist() == [1, 0, 2]


def test_the_sub_job_with_the_more_important_task_comes_first() -> None:
    policy = {"name": "part", "subGroupSize": 1, "matchLabelKeys": ["part"]}
    members = {"x": 3, "y": 8, "z": 5}
    session = session_on(
        [
            queue("q"),
            group("g", 1, queue="q", subGroupPolicy=[policy]),
            *(
                pod(name, {"cpu": "1"}, group="g", priority=number, labels={"part": name})
                for name, number in members.items()
            ),
        ]
    )
    plugin = Priority(session, {})
    shape = session.groups.root(job(session, "g"))
    ordered = sorted(shape.members, key=plugin.pod_set_order)
    assert [names(session, one.rows) for one in ordered] == [["y"], ["z"], ["x"]]


def test_victims_are_lower_jobs_and_lower_tasks_of_the_same_job() -> None:
    session = session_on(OBJECTS)
    candidates = tasks(session, "orphan", "far-0", "rich-1", "poor-0", "rich-2")
    victims = Priority(session, {}).preemptable(task(session, "rich-0"), candidates)
    assert names(session, victims) == ["poor-0", "rich-2"]


def test_a_task_without_a_job_preempts_no_task() -> None:
    session = session_on(OBJECTS)
    assert not len(Priority(session, {}).preemptable(task(session, "orphan"), tasks(session, "poor-0")))


def test_in_gang_eviction_priority_counts_only_inside_the_queue() -> None:
    session = session_on(OBJECTS)
    plugin = Priority(session, {})
    across = plugin.unified_evictable(task(session, "poor-0"), tasks(session, "far-0", "rich-1"))
    assert names(session, across) == ["far-0"]


def test_a_job_starves_while_a_task_of_it_waits() -> None:
    session = session_on(OBJECTS)
    plugin = Priority(session, {})
    assert plugin.job_starving(job(session, "rich"))
    assert not plugin.job_starving(job(session, "poor"))


def test_arguments_are_reported_because_there_are_none() -> None:
    session = session_on(OBJECTS)
    Priority(session, {"weight": 3})
    assert len(session.warnings) == 1
    assert "weight" in session.warnings[0]
