"""capacity, queues in a tree: what a bad queue costs whom."""

from typing import Any

import pytest

from maniple.framework.combine import Vote
from maniple.framework.session import Session
from maniple.planner import plan
from maniple.plugins.fairness.capacity import Capacity
from tests.plugins.fairness.capacity_scenes import (
    amounts,
    child,
    may_reclaim,
    opened,
    room,
    running,
    tree,
    victims,
    work,
)
from tests.plugins.opening import job, names, task, tasks

CPU = {"cpu": "1"}
GOOD = [child("good", deserved={"cpu": "5"}), *work("fine", 1, CPU, of="good", minResources=CPU)]
ORPHAN = [
    child("lost", "nowhere", deserved={"cpu": "5"}),
    child("below", "lost", deserved={"cpu": "5"}),
    *work("j", 1, CPU, of="below", minResources=CPU),
    *running("k", 2, CPU, of="lost"),
]
CIRCLE = [
    child("x", "y", deserved={"cpu": "5"}),
    child("y", "z"),
    child("z", "y"),
    *work("j", 1, CPU, of="x", minResources=CPU),
]
NOT_A_LEAF = [
    child("mid", deserved={"cpu": "5"}),
    child("leaf", "mid"),
    *work("j", 1, CPU, of="mid", minResources=CPU),
    *work("m", 1, CPU, of="leaf"),
]


def is_served(session: Session, plugin: Capacity, name: str) -> tuple[bool, bool, bool]:
    vote = plugin.job_enqueueable(job(session, name))
    return (
        room(session, plugin, f"{name}-0") == 1,
        may_reclaim(session, plugin, f"{name}-0"),
        vote is Vote.PERMIT,
    )


BAD = [
    (
        ORPHAN,
        "queue 'below' cannot be used: it is below 'lost', whose parent 'nowhere' does not exist",
    ),
    (CIRCLE, "queue 'x' cannot be used: it is below 'y', which is its own ancestor (y < z < y)"),
    (NOT_A_LEAF, "queue 'mid' cannot be used: it has child queues, and only leaf queues may have jobs"),
]


@pytest.mark.parametrize(("objects", "reason"), BAD)
def test_a_bad_queue_is_refused_with_its_reason_and_the_rest_is_served(objects: Any, reason: str) -> None:
    session, plugin = tree(*GOOD, *objects)
    assert is_served(session, plugin, "fine") == (True, True, True)
    assert session.refusals.jobs == {job(session, "j"): [reason]}
    assert is_served(session, plugin, "j") == (False, False, False)


@pytest.mark.parametrize(("objects", "reason"), BAD)
def test_strictly_a_bad_queue_stops_all_queues(objects: Any, reason: str) -> None:
    session, plugin = tree(*GOOD, *objects, *running("rich", 3, CPU, of="good"), strict=True)
    assert is_served(session, plugin, "fine") == (False, False, False)
    assert session.refusals.jobs[job(session, "fine")][0].startswith("no queue can be used, because queue ")
    assert victims(session, plugin, "j-0", "rich-0") == []
    rows = tasks(session, "rich-0")
    assert names(session, plugin.unified_evictable(task(session, "j-0"), rows)) == []


def test_a_task_in_a_bad_queue_reclaims_nothing() -> None:
    session, plugin = tree(
        child("rich"), *running("has", 1, CPU, of="rich"), *ORPHAN, *work("fine", 1, CPU, of="rich")
    )
    assert victims(session, plugin, "j-0", "has-0") == []
    rows = tasks(session, "has-0")
    assert len(plugin.unified_evictable(task(session, "j-0"), rows)) == 0


def test_the_children_of_a_queue_with_jobs_of_its_own_are_served() -> None:
    session, plugin = tree(*NOT_A_LEAF)
    assert room(session, plugin, "m-0") == 1


def test_a_queue_with_queues_below_it_may_have_running_tasks_which_count_and_can_be_reclaimed() -> None:
    session, plugin = tree(
        *GOOD,
        child("mid", capability={"cpu": "3"}),
        child("leaf", "mid"),
        *running("old", 2, CPU, of="mid"),
        *work("new", 2, CPU, of="leaf"),
    )
    assert room(session, plugin, "new-0", count=2) == 1
    assert victims(session, plugin, "fine-0", "old-0", "old-1") == ["old-1", "old-0"]


def test_tasks_of_a_queue_that_hangs_nowhere_can_be_reclaimed_beyond_what_it_deserves() -> None:
    session, plugin = tree(
        *GOOD, child("lost", "nowhere", deserved={"cpu": "1"}), *running("k", 2, CPU, of="lost")
    )
    assert victims(session, plugin, "fine-0", "k-0", "k-1") == ["k-1"]
    assert amounts(session, plugin, "root", "allocated") == {}


def test_a_bad_queue_is_reported_once_for_each_queue_that_hangs_nowhere() -> None:
    session, _ = tree(*GOOD, *ORPHAN)
    assert sorted(session.warnings) == [
        "capacity: queue 'below' cannot be used: it is below 'lost', whose parent 'nowhere' does not exist",
        "capacity: queue 'lost' cannot be used: its parent 'nowhere' does not exist",
    ]


def test_a_root_that_is_not_there_is_assumed_unless_strict() -> None:
    session, plugin = opened(*GOOD, child("other", "root"), tree=True)
    assert is_served(session, plugin, "fine") == (True, True, True)
    assert session.warnings == ["capacity: there is no queue 'root'; one without limits is assumed"]
    session, plugin = opened(*GOOD, tree=True, strict=True)
    assert is_served(session, plugin, "fine") == (False, False, False)
    assert session.refusals.jobs[job(session, "fine")] == ["no queue can be used: there is no queue 'root'"]


def test_a_bad_queue_without_jobs_stops_no_queue_unless_strict() -> None:
    objects = [*GOOD, child("lost", "nowhere")]
    session, plugin = tree(*objects)
    assert room(session, plugin, "fine-0") == 1
    session, plugin = tree(*objects, strict=True)
    assert room(session, plugin, "fine-0") == 0


@pytest.mark.long
def test_a_very_deep_tree_opens() -> None:
    queues = [child("q0"), *(child(f"q{i}", f"q{i - 1}") for i in range(1, 1500))]
    session, plugin = tree(*reversed(queues), *work("j", 1, CPU, of="q1499"))
    assert room(session, plugin, "j-0") == 1


def test_a_bad_child_queue_does_not_stop_the_cluster() -> None:
    conf = {
        "actions": "enqueue, allocate",
        "tiers": [{"plugins": [{"name": "gang"}, {"name": "capacity", "enableHierarchy": True}]}],
    }
    objects = [
        raw("v1", "Node", "n1", status={"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"}}),
        *(raw(VOLCANO, "Queue", name, spec={"parent": parent}) for name, parent in QUEUES),
        *(raw(VOLCANO, "PodGroup", name, spec={"queue": name, "minMember": 1}) for name, _ in QUEUES[1:]),
        *(raw("v1", "Pod", f"{name}-pod", group=name, spec=POD) for name, _ in QUEUES[1:]),
    ]
    made = plan(objects, profile="volcano", conf=conf)
    assert made.binds == {"default/good-pod": "n1"}
    assert (
        made.tasks["default/bad-pod"].reason
        == "queue 'bad' cannot be used: its parent 'nowhere' does not exist"
    )
    assert plan(objects, profile="volcano", conf={**conf, "compat": "strict"}).binds == {}


VOLCANO = "scheduling.volcano.sh/v1beta1"
QUEUES = [("root", ""), ("good", "root"), ("bad", "nowhere")]
POD = {
    "schedulerName": "volcano",
    "containers": [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
}


def raw(api: str, kind: str, name: str, group: str = "", **fields: Any) -> dict[str, Any]:
    notes = {"annotations": {"scheduling.k8s.io/group-name": group}} if group else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **notes}, **fields}
