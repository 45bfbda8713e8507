"""allocate, rule by rule: the order of turns, which tasks are skipped, and when a job gives up."""

from collections import Counter
from typing import Any

import pytest

from maniple.cluster.classes import TaskClass
from maniple.framework.reasons import Reason
from maniple.framework.session import Session
from maniple.objects.meta import Object
from tests.actions.volcano.answers import planned
from tests.actions.volcano.scenes import bound, cycle
from tests.support import group, node, pod, queue

ONE = {"cpu": "1", "memory": "1Gi"}
LEAVING = "2026-01-01T00:00:00Z"
NODES_ONLY = ({"name": "gang"}, {"name": "predicates"}, {"name": "nodeorder"})  # no queue refuses a job


def tasks(job: str, count: int, requests: dict[str, str] | None = None, **fields: Any) -> list[Object]:
    return [pod(f"{job}-{i}", requests or ONE, group=job, uid=f"{job}-{i}", **fields) for i in range(count)]


def cpu_of(session: Session, class_: TaskClass) -> float:
    return session.resources.describe(class_.request)["cpu"]


# -- the order of turns ----------------------------------------------------------------------------------------------


def test_an_overused_queue_is_out_for_the_rest_of_the_cycle_and_its_jobs_are_told() -> None:
    asked: Counter[str] = Counter()

    def overused(session: Session, one: int) -> bool:
        asked[session.queue_name(one)] += 1
        return session.queue_name(one) == "full"

    objects = [
        node("n1"),
        queue("full"),
        queue("free"),
        *(group(f"a{i}", queue="full") for i in range(2)),
        *(group(f"b{i}", queue="free") for i in range(3)),
        *(pod(f"a{i}", ONE, group=f"a{i}") for i in range(2)),
        *(pod(f"b{i}", ONE, group=f"b{i}") for i in range(3)),
    ]
    plan = planned(objects, "gang", actions="allocate", overused=overused)
    assert bound(plan) == {"b0", "b1", "b2"}
    assert asked["full"] == 1
    assert "queue 'full' has used up what it deserves" in plan.jobs["default/a0"].reasons


@pytest.mark.parametrize(("actions", "phase"), [("allocate", "Inqueue"), ("enqueue,allocate", "Pending")])
def test_without_enqueue_jobs_are_let_in_even_if_they_have_no_tasks_yet(actions: str, phase: str) -> None:
    objects = [
        queue("default", state="Closed"),
        group("a", 2, phase="Pending", minResources={"cpu": "1"}),
        node("n1"),
    ]
    plan = planned(objects, "proportion", actions=actions, compat="strict")
    assert plan.jobs["default/a"].phase == phase


def test_a_task_of_a_queue_that_is_not_open_is_told_so() -> None:
    objects = [node("n1"), queue("default", state="Closed"), group("a"), pod("a-0", ONE, group="a")]
    plan = planned(objects, "proportion", actions="allocate")
    assert plan.tasks["default/a-0"].reason == "queue 'default' is not open"


def test_queues_are_compared_again_after_each_turn() -> None:
    """Both start equal; the queue that got something comes after the other."""
    objects = [
        node("n1", {"cpu": "4"}),
        queue("q1", created="2026-01-01T00:00:00Z"),
        queue("q2", created="2026-01-02T00:00:00Z"),
        *(group(f"{name}{i}", queue=of) for name, of in (("a", "q1"), ("b", "q2")) for i in range(3)),
        *(pod(f"{name}{i}", ONE, group=f"{name}{i}", uid=f"{name}{i}") for name in "ab" for i in range(3)),
    ]

    def share(session: Session, one: int) -> int:
        own = session.jobs.rows[session.jobs.queue[session.jobs.rows] == one]
        return int(session.jobs.allocated[0, own].sum())

    plan = planned(objects, "gang", actions="allocate", queue_order=share)
    assert [name.removeprefix("default/")[0] for name in plan.binds] == ["a", "b", "a", "b"]


def test_tasks_that_ask_for_nothing_are_left_to_backfill_but_count_for_the_gang() -> None:
    objects = [node("n1"), queue("default"), group("a", 2), pod("a-0", ONE, group="a"), pod("a-1", group="a")]
    plan = cycle(*objects, actions="allocate")
    assert bound(plan) == {"a-0"}


# -- tasks that are passed over --------------------------------------------------------------------------------------


def test_a_task_that_its_queue_may_not_take_is_passed_over_and_the_next_is_tried() -> None:
    objects = [
        node("n1"),
        queue("default"),
        group("a", 1),
        pod("a-0", {"cpu": "4"}, group="a", uid="0"),
        pod("a-1", ONE, group="a", uid="1"),
    ]
    plan = planned(
        objects,
        "gang",
        actions="allocate",
        allocatable=lambda session, _queue, class_, most: most if cpu_of(session, class_) < 2000 else 0,
    )
    assert bound(plan) == {"a-1"}
    assert plan.tasks["default/a-0"].reason == "queue 'default' has no room for a pod of this size"


def test_what_its_queue_refused_does_not_count_against_the_role() -> None:
    """The queue is checked before anything else: that the task would be ruled out anyway does not come up."""
    objects = [
        node("n1"),
        queue("default"),
        group("a", 1),
        pod("a-0", {"cpu": "4"}, group="a", role="w", uid="0"),
        pod("a-1", ONE, group="a", role="w", uid="1"),
    ]

    def ruled_out(session: Session, class_: TaskClass) -> Reason | None:
        return Reason("no such volume") if cpu_of(session, class_) > 2000 else None

    plan = planned(
        objects,
        "gang",
        actions="allocate",
        allocatable=lambda session, _queue, class_, most: most if cpu_of(session, class_) < 2000 else 0,
        pre_predicate=ruled_out,
    )
    assert bound(plan) == {"a-1"}


@pytest.mark.parametrize("remember", [True, False])
def test_a_role_that_failed_is_passed_over_whatever_is_remembered_of_nodes(remember: bool) -> None:
    """The second task of the role would fit, but another task of the role found no node (quirk 8)."""
    off = [{"name": "allocate", "arguments": {"predicateErrorCacheEnable": remember}}]
    plan = cycle(
        node("n1"),
        queue("default"),
        group("a", 1),
        pod("a-0", {"cpu": "99"}, group="a", role="w", uid="0"),
        pod("a-1", ONE, group="a", role="w", uid="1"),
        pod("a-2", ONE, group="a", uid="2"),
        configurations=off,
        plugins=NODES_ONLY,
    )
    assert bound(plan) == {"a-2"}
    assert "role 'w'" in plan.tasks["default/a-1"].reason


@pytest.mark.parametrize(("compat", "bound_"), [("better", 3), ("strict", 0)])
def test_to_the_letter_a_node_that_refused_a_role_is_not_asked_again_though_it_would_open(
    compat: str, bound_: int
) -> None:
    """One in a, the next has to go to b, the third may go to a again, and only there is room."""
    even = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    spread: dict[str, Any] = {"role": "w", "labels": {"app": "x"}, "topologySpreadConstraints": [even]}
    objects = [
        node("n1", {"cpu": "8"}, labels={"zone": "a"}),
        node("n2", {"cpu": "1"}, labels={"zone": "b"}),
        queue("default"),
        group("a", 3),
        *tasks("a", 3, **spread),
    ]
    plan = cycle(*objects, plugins=NODES_ONLY, compat=compat)
    assert len(plan.binds) == bound_


def test_tasks_without_a_role_do_not_count_as_one_role() -> None:
    plan = cycle(
        node("n1"),
        queue("default"),
        group("a", 1),
        pod("a-0", {"cpu": "99"}, group="a", uid="0"),
        pod("a-1", ONE, group="a", uid="1"),
        plugins=NODES_ONLY,
    )
    assert bound(plan) == {"a-1"}


@pytest.mark.parametrize(("minimum", "expected"), [(1, {"a-1"}), (2, set[str]())])
def test_what_rules_a_task_out_beforehand_ends_the_job_only_if_it_needs_that_task(
    minimum: int, expected: set[str]
) -> None:
    objects = [
        node("n1"),
        queue("default"),
        group("a", minimum),
        pod("a-0", {"cpu": "4"}, group="a", uid="0"),
        pod("a-1", ONE, group="a", uid="1"),
    ]

    def ruled_out(session: Session, class_: TaskClass) -> Reason | None:
        return Reason("no such volume") if cpu_of(session, class_) > 2000 else None

    plan = planned(objects, "gang", actions="allocate", pre_predicate=ruled_out)
    assert bound(plan) == expected
    assert plan.tasks["default/a-0"].reason == "no such volume"


def test_only_the_first_resource_that_is_short_is_named() -> None:
    plan = cycle(
        node("n1", {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}),
        node("n2", {"cpu": "8", "memory": "1Gi"}),
        queue("default"),
        group("a"),
        pod("a-0", {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "2"}, group="a"),
        plugins=NODES_ONLY,
    )
    told = plan.tasks["default/a-0"].reason
    assert told == "0/2 nodes are unavailable: 1 Insufficient cpu, 1 Insufficient memory"


# -- where it goes on after a task found no node ---------------------------------------------------------------------


def role_scene(minimum: int, minimums: dict[str, int], **counts: int) -> list[Object]:
    """A node with room for eight small tasks; tasks of the role `big` never fit. They come first."""
    pods = [
        pod(f"a-{role}{i}", ONE if role != "big" else {"cpu": "99"}, group="a", role=role, uid=f"{place}{i}")
        for place, (role, count) in enumerate(counts.items())
        for i in range(count)
    ]
    return [node("n1"), queue("default"), group("a", minimum, minTaskMember=minimums), *pods]


@pytest.mark.parametrize(
    ("minimum", "minimums", "counts", "expected"),
    [
        # fewer than all are needed, and no role insists
        (2, {}, {"big": 1, "small": 2}, 2),
        # the job's minimum is below that of its roles: the others must be able to reach it
        (2, {"big": 2, "small": 1}, {"big": 2, "small": 2}, 2),
        (2, {"big": 2, "small": 1}, {"big": 2, "small": 1}, 0),
        # a role that insists on a task that found no node
        (2, {"big": 1, "small": 1}, {"big": 1, "small": 3}, 0),
        # one that does not
        (2, {"small": 2}, {"big": 1, "small": 3}, 3),
        # none is needed: whatever fits
        (0, {}, {"big": 1, "small": 3}, 3),
        # all are needed
        (3, {}, {"big": 1, "small": 2}, 0),
    ],
)
def test_a_job_goes_on_while_the_others_can_make_it_whole(
    minimum: int, minimums: dict[str, int], counts: dict[str, int], expected: int
) -> None:
    plan = cycle(*role_scene(minimum, minimums, **counts), plugins=NODES_ONLY)
    assert len(plan.binds) == expected


def test_a_job_that_cannot_become_whole_any_more_tries_no_further() -> None:
    asked: list[float] = []

    def note(session: Session, class_: TaskClass) -> None:
        asked.append(cpu_of(session, class_))

    objects = role_scene(3, {}, big=1, small=2)
    planned(objects, "gang", actions="allocate", pre_predicate=note)
    assert asked == [99000]
    asked.clear()
    planned(role_scene(2, {}, big=1, small=2), "gang", actions="allocate", pre_predicate=note)
    assert asked == [99000, 1000]


@pytest.mark.parametrize(("small", "tried"), [(1, []), (2, [99000, 1000])])
def test_a_sub_group_goes_on_while_the_others_can_make_it_whole(small: int, tried: list[float]) -> None:
    """Sub-groups of two, and the first task finds no node: with one more task there is no point in even trying."""
    asked: list[float] = []

    def note(session: Session, class_: TaskClass) -> None:
        asked.append(cpu_of(session, class_))

    policy = {"name": "part", "subGroupSize": 2, "matchLabelKeys": ["part"]}
    part = {"part": "0"}
    objects = [
        node("n1"),
        queue("default"),
        group("a", 1, subGroupPolicy=[policy]),
        pod("a-0", {"cpu": "99"}, group="a", uid="0", labels=part),
        *(pod(f"a-{i}", ONE, group="a", uid=f"{i}", labels=part) for i in range(1, 1 + small)),
    ]
    planned(objects, "gang", actions="allocate", pre_predicate=note)
    assert asked == tried


# -- where to --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "expected"), [({"cpu": "8"}, "own-idle"), ({"cpu": "0"}, "other-idle"), (None, "own-soon")]
)
def test_idle_before_soon_idle_and_in_each_the_own_shard_first(own: Any, expected: str) -> None:
    """Four kinds of nodes. Where none is idle, of those that will be the own shard's comes first."""
    leaving = [
        pod(f"old-{name}", {"cpu": "8"}, on=name, deleted=LEAVING) for name in ("own-soon", "other-soon")
    ]
    idle = [] if own is None else [node("own-idle", own), node("other-idle")]
    plan = cycle(
        *idle,
        node("other-soon"),
        node("own-soon"),
        *leaving,
        queue("default"),
        group("a"),
        pod("a-0", ONE, group="a"),
        options={"shard": {"mode": "soft", "name": "s", "nodes": ["own-idle", "own-soon"]}},
    )
    chosen = plan.pipelined if expected == "own-soon" else plan.binds
    assert chosen == {"default/a-0": expected}


def test_a_nominated_node_that_is_gone_or_refuses_leads_nowhere_else_than_the_others() -> None:
    for name in ("gone", "small"):
        plan = cycle(
            node("n1"),
            node("small", {"cpu": "0"}),
            queue("default"),
            group("a"),
            pod("a-0", ONE, group="a", status={"nominatedNodeName": name}),
        )
        assert plan.binds == {"default/a-0": "n1"}


def test_a_nominated_node_whose_room_is_still_being_released_is_waited_for() -> None:
    plan = cycle(
        node("n1"),
        node("n2"),
        pod("old", {"cpu": "8"}, on="n2", deleted=LEAVING),
        queue("default"),
        group("a"),
        pod("a-0", ONE, group="a", status={"nominatedNodeName": "n2"}),
    )
    assert plan.pipelined == {"default/a-0": "n2"}


def test_a_job_beyond_its_minimum_gets_one_task_a_turn() -> None:
    """The younger job reaches its minimum only after the older one has its own, and extras alternate from there."""
    plan = cycle(
        node("n1", {"cpu": "7"}),
        queue("default"),
        group("a", 2, created="2026-01-01T00:00:00Z"),
        group("b", 2, created="2026-01-02T00:00:00Z"),
        *tasks("a", 5),
        *tasks("b", 5),
        plugins=({"name": "gang"}, {"name": "drf"}),
    )
    order = [name.removeprefix("default/")[0] for name in plan.binds]
    assert order[:4] == ["a", "a", "b", "b"]
    assert Counter(order) == {"a": 4, "b": 3}


# -- promises --------------------------------------------------------------------------------------------------------


def promised() -> list[Object]:
    """One place; a job that was there first, and a younger one for which it was cleared."""
    return [
        node("n1", {"cpu": "1"}),
        queue("default"),
        group("old", created="2026-01-01T00:00:00Z"),
        group("new", created="2026-01-02T00:00:00Z"),
        pod("old-0", ONE, group="old"),
        pod("new-0", ONE, group="new", status={"nominatedNodeName": "n1"}),
    ]


@pytest.mark.parametrize(("compat", "expected"), [("better", "new-0"), ("strict", "old-0")])
def test_whoever_room_was_made_for_has_the_first_turn_except_to_the_letter(
    compat: str, expected: str
) -> None:
    assert bound(cycle(*promised(), plugins=NODES_ONLY, compat=compat)) == {expected}


def test_a_promise_does_not_help_a_queue_that_has_used_up_what_it_deserves() -> None:
    plan = planned(promised(), "gang", actions="allocate", overused=lambda *_: True)
    assert plan.binds == {}


# -- which tasks of a job come first -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("compat", "expected"), [("better", {"g-1", "g-2"}), ("strict", set())])
def test_tasks_that_roles_lack_come_before_those_that_the_gang_can_do_without(
    compat: str, expected: set[str]
) -> None:
    """In task order the first would take the room of one that is needed."""
    pods = [
        pod(f"g-{i}", ONE, group="g", uid=f"g-{i}", role=role) for i, role in enumerate(("extra", "w", "w"))
    ]
    objects = [node("n1", {"cpu": "2"}), queue("default"), group("g", 2, minTaskMember={"w": 2}), *pods]
    assert bound(cycle(*objects, plugins=NODES_ONLY, compat=compat)) == expected


@pytest.mark.parametrize(("compat", "expected"), [("better", {"g-1"}), ("strict", {"g-0"})])
def test_the_task_that_a_place_was_cleared_for_comes_first(compat: str, expected: set[str]) -> None:
    cleared = {"nominatedNodeName": "n1"}
    pods = [pod("g-0", ONE, group="g", uid="g-0"), pod("g-1", ONE, group="g", uid="g-1", status=cleared)]
    objects = [node("n1", {"cpu": "1"}), queue("default"), group("g", 1), *pods]
    assert bound(cycle(*objects, plugins=NODES_ONLY, compat=compat)) == expected


def test_which_lack_is_told_does_not_depend_on_the_order_of_objects() -> None:
    objects = [
        node("n1", {"cpu": "4", "x.io/a": "0"}),
        node("n2", {"cpu": "4", "x.io/b": "0"}),
        queue("default"),
        group("g"),
        pod("g-0", {"x.io/b": "1", "x.io/a": "1"}, group="g"),
    ]
    told = {cycle(*some, plugins=NODES_ONLY).tasks["default/g-0"].reason for some in (objects, objects[::-1])}
    assert told == {"0/2 nodes are unavailable: 2 Insufficient x.io/a"}
