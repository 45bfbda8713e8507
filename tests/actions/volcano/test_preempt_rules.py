"""preempt, rule by rule: which jobs may preempt, which tasks may be evicted, and what a nomination means.

Between jobs and within one.
"""

from typing import Any

import pytest

from maniple.cluster.classes import TaskClass
from maniple.framework.combine import Vote
from maniple.framework.reasons import Reason
from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.planner import Plan
from tests.actions.volcano.answers import planned
from tests.actions.volcano.scenes import cycle
from tests.support import group, make, node, pod, priority_class, queue

ONE = {"cpu": "1", "memory": "1Gi"}
BOTH = pytest.mark.parametrize("compat", ["better", "strict"])
DISRUPTED = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
LEAVING = "2026-01-01T00:00:00Z"


def preempted(
    objects: list[Object], *plugins: str, actions: str = "preempt", compat: str = "better", **answers: Any
) -> Plan:
    return planned(objects, "priority", "gang", *plugins, actions=actions, compat=compat, **answers)


def scene(*more: Object, of: str = "default", minimum: int = 1, **asker: Any) -> list[Object]:
    """A node full with tasks of a job that matters less than the one that waits."""
    fields = {"phase": asker.pop("phase", "Inqueue"), **asker.pop("group", {})}
    requests = asker.pop("requests", ONE)
    return [
        node("n1", {"cpu": "2"}),
        queue("default"),
        queue("other"),
        priority_class("high", 10),
        group("old", 0, queue=of, phase="Running"),
        *(pod(f"old-{i}", ONE, group="old", on="n1", uid=f"old-{i}") for i in range(2)),
        group("new", minimum, priorityClassName="high", **fields),
        *(
            pod(f"new-{i}", requests, group="new", uid=f"new-{i}", priority=10, **asker)
            for i in range(minimum)
        ),
        *more,
    ]


# -- which of its tasks an elastic job loses ---------------------------------------------------------------------------


def elastic(**asker: Any) -> list[Object]:
    """A job that can lose one of its two tasks, on two nodes; the last in task order is on n2."""
    return [
        *(node(f"n{i}", {"cpu": "1"}, labels={"kubernetes.io/hostname": f"n{i}"}) for i in (1, 2)),
        queue("default"),
        priority_class("high", 10),
        group("old", 1, phase="Running"),
        *(pod(f"old-{i}", ONE, group="old", on=f"n{i}", uid=f"old-{i}") for i in (1, 2)),
        group("new", 1, priorityClassName="high"),
        pod("new-0", ONE, group="new", uid="new-0", priority=10, **asker),
    ]


@BOTH
def test_an_elastic_job_loses_the_task_whose_room_helps(compat: str) -> None:
    plan = preempted(elastic(nodeSelector={"kubernetes.io/hostname": "n1"}), "predicates", compat=compat)
    assert plan.evictions == ["default/old-1"]
    assert plan.pipelined == {"default/new-0": "n1"}


@BOTH
def test_a_task_that_asks_for_nothing_still_needs_a_place(compat: str) -> None:
    objects = [
        node("n1", {"cpu": "9", "pods": "1"}),
        queue("default"),
        priority_class("high", 10),
        group("old", 0, phase="Running"),
        pod("old-0", group="old", on="n1", uid="old-0"),
        group("new", 1, priorityClassName="high"),
        pod("new-0", group="new", uid="new-0", priority=10),
    ]
    assert preempted(objects, compat=compat, job_starving=lambda *_: True).evictions == ["default/old-0"]


@BOTH
@pytest.mark.parametrize("mode", ["hard", "soft"])
def test_an_elastic_job_loses_the_task_on_a_node_of_our_shard(mode: str, compat: str) -> None:
    plugins = ({"name": "priority"}, {"name": "gang"}, {"name": "predicates"})
    shard = {"shard": {"mode": mode, "nodes": ["n1"]}}
    plan = cycle(*elastic(), actions="preempt", plugins=plugins, options=shard, compat=compat)
    assert plan.evictions == ["default/old-1"]
    assert plan.pipelined == {"default/new-0": "n1"}


def test_nodes_of_another_shard_are_cleared_where_ours_do_not_help() -> None:
    objects = elastic(nodeSelector={"kubernetes.io/hostname": "n2"})
    plugins = ({"name": "priority"}, {"name": "gang"}, {"name": "predicates"})
    shard = {"shard": {"mode": "soft", "nodes": ["n1"]}}
    assert cycle(*objects, actions="preempt", plugins=plugins, options=shard).evictions == ["default/old-2"]


# -- which jobs may preempt ------------------------------------------------------------------------------------------


@BOTH
def test_a_job_that_matters_more_gets_room_in_its_queue(compat: str) -> None:
    plan = preempted(scene(), compat=compat)
    assert plan.evictions == ["default/old-1"]
    assert plan.pipelined == {"default/new-0": "n1"}
    assert [one.action for one in plan.evicted] == ["preempt"]


@BOTH
@pytest.mark.parametrize(
    "asker",
    [
        {"phase": "Pending"},
        {"schedulingGates": [{"name": "x"}]},
        {"preemptionPolicy": "Never"},
        {"group": {"networkTopology": {"mode": "soft"}}},  # left to gangpreempt
        {
            "group": {"subGroupPolicy": [{"name": "g", "matchLabelKeys": ["k"], "networkTopology": {}}]},
            "labels": {"k": "1"},
        },
    ],
)
def test_who_does_not_ask(compat: str, asker: dict[str, Any]) -> None:
    assert preempted(scene(**asker), compat=compat).evictions == []


@BOTH
def test_jobs_that_are_not_valid_or_do_not_starve_do_not_ask(compat: str) -> None:
    assert preempted(scene(), compat=compat, job_valid=lambda *_: "not like this").evictions == []
    assert preempted(scene(), compat=compat, job_starving=lambda *_: False).evictions == []


@BOTH
def test_a_task_that_is_ruled_out_beforehand_does_not_ask(compat: str) -> None:
    plan = preempted(scene(), compat=compat, pre_predicate=lambda *_: Reason("no such volume"))
    assert plan.evictions == []


@BOTH
def test_a_job_that_has_its_minimum_does_not_preempt_for_extras_unless_gang_is_silent_on_it(
    compat: str,
) -> None:
    """priority alone calls every job with a waiting task starving; in one tier both have to."""
    ready = [
        *scene(node("n2", {"cpu": "1"})),
        pod("new-9", ONE, group="new", on="n2", uid="new-9", priority=10),
    ]
    assert preempted(ready, compat=compat).evictions == []
    conf_silent = planned(ready, "priority", actions="preempt", compat=compat)
    assert conf_silent.evictions == ["default/old-1"]


# -- which tasks may be evicted --------------------------------------------------------------------------------------


@BOTH
def test_jobs_of_other_queues_lose_nothing(compat: str) -> None:
    assert preempted(scene(of="other"), compat=compat).evictions == []


@BOTH
def test_tasks_that_are_bound_may_go_as_well_as_running_ones(compat: str) -> None:
    objects = [one for one in scene() if one.key != "default/old-1"]
    bound = pod("old-1", ONE, group="old", on="n1", uid="old-1", phase="Pending")
    assert preempted([*objects, bound], compat=compat).evictions == ["default/old-1"]


@BOTH
def test_tasks_that_are_not_preemptable_or_are_leaving_stay(compat: str) -> None:
    objects = [one for one in scene(minimum=2) if not one.key.startswith("default/old-")]
    held = pod("old-0", ONE, group="old", on="n1", annotations={"volcano.sh/preemptable": "false"})
    leaving = pod("old-1", ONE, group="old", on="n1", deleted=LEAVING)
    assert preempted([*objects, held, leaving], compat=compat).evictions == []


@BOTH
def test_a_task_that_asks_for_nothing_takes_only_the_place_of_such_tasks(compat: str) -> None:
    places = node("n1", {"cpu": "2", "pods": "2"})
    objects = [one for one in scene(requests={}) if one.key not in ("n1", "default/old-1")]
    idle = pod("idle-0", group="old", on="n1", uid="idle-0")
    plan = preempted([places, *objects, idle], "predicates", compat=compat)
    assert plan.evictions == ["default/idle-0"]
    busy = pod("old-1", ONE, group="old", on="n1", uid="old-1")
    assert preempted([places, *objects, busy], "predicates", compat=compat).evictions == []


@BOTH
def test_evicting_only_tasks_that_ask_for_nothing_nominates_the_node_all_the_same(compat: str) -> None:
    """Quirk 11, done better in both modes."""
    places = node("n1", {"cpu": "2", "pods": "1"})
    objects = [
        one for one in scene(requests={}) if one.key != "n1" and not one.key.startswith("default/old-")
    ]
    idle = pod("idle-0", group="old", on="n1", uid="idle-0")
    plan = preempted([places, *objects, idle], "predicates", compat=compat)
    assert list(plan.nominations) == ["default/new-0"]


@BOTH
def test_with_gang_alone_jobs_lose_what_they_have_beyond_their_minimum_and_no_more(compat: str) -> None:
    assert planned(scene(), "gang", actions="preempt", compat=compat).evictions == ["default/old-1"]
    whole = [one for one in scene() if one.key != "default/old"]
    home = "default"
    gang = group("old", 2, queue=home, phase="Running")
    assert planned([*whole, gang], "gang", actions="preempt", compat=compat).evictions == []


# -- all or nothing --------------------------------------------------------------------------------------------------


@BOTH
def test_a_gang_that_does_not_become_whole_evicts_nobody(compat: str) -> None:
    assert preempted(scene(minimum=3), compat=compat).evictions == []


@BOTH
def test_what_counts_is_that_the_job_is_pipelined_not_that_it_is_ready(compat: str) -> None:
    assert preempted(scene(), compat=compat, job_ready=lambda *_: False).evictions == ["default/old-1"]
    refused = preempted(scene(), compat=compat, job_pipelined=lambda *_: Vote.REJECT)
    assert refused.evictions == []


@BOTH
def test_victims_go_until_the_queue_may_take_the_task(compat: str) -> None:
    """There is room on the node, but the queue is full: one has to go, and no more."""
    roomy = node("n1", {"cpu": "8"})
    objects = [roomy, *(one for one in scene() if one.key != "n1")]

    def room(session: Session, _queue: int, _class: TaskClass, most: int) -> int:
        held = int(session.jobs.allocated[0].sum()) // 1000
        return min(most, max(2 - held, 0))

    plan = preempted(objects, compat=compat, allocatable=room)
    assert plan.evictions == ["default/old-1"]
    assert plan.pipelined == {"default/new-0": "n1"}


@BOTH
def test_nobody_goes_for_a_queue_that_may_take_nothing_whoever_leaves(compat: str) -> None:
    assert preempted(scene(), compat=compat, allocatable=lambda *_: 0).evictions == []


def test_tasks_of_different_makes_stay_within_the_limit_of_their_queue_together() -> None:
    objects = [
        node("n1", {"cpu": "8", "memory": "8Gi"}),
        queue("default", capability={"cpu": "3"}),
        group("new", 2, phase="Inqueue"),
        pod("new-0", {"cpu": "2"}, group="new"),
        pod("new-1", {"cpu": "2", "memory": "1Gi"}, group="new"),
    ]
    assert preempted(objects, "capacity").pipelined == {}


def test_victims_go_until_every_filter_lets_the_task_in_and_to_the_letter_pods_are_counted_before() -> None:
    """Resources would do, but a pod that the task must not meet is there."""
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"loud": "yes"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    roomy = node("n1", {"cpu": "8"}, labels={"kubernetes.io/hostname": "n1"})
    objects = [
        one for one in scene(affinity=apart) if one.key != "n1" and not one.key.startswith("default/old-")
    ]
    loud = pod("old-0", ONE, group="old", on="n1", uid="old-0", labels={"loud": "yes"})
    quiet = pod("old-1", ONE, group="old", on="n1", uid="old-1")
    plan = preempted([roomy, *objects, loud, quiet], "predicates")
    assert "default/old-0" in plan.evictions
    assert plan.pipelined == {"default/new-0": "n1"}
    assert preempted([roomy, *objects, loud, quiet], "predicates", compat="strict").evictions == []


def test_to_the_letter_nodes_come_by_what_they_are_worth() -> None:
    preferred = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "preference": {"matchExpressions": [{"key": "fast", "operator": "Exists"}]},
                }
            ]
        }
    }
    more = [
        node("n2", {"cpu": "2"}, labels={"fast": "yes"}),
        *(pod(f"old-{i}", ONE, group="old", on="n2", uid=f"old-{i}") for i in (2, 3)),
    ]
    plan = preempted(scene(*more, affinity=preferred), "predicates", "nodeorder", compat="strict")
    assert plan.pipelined == {"default/new-0": "n2"}


def test_to_the_letter_a_node_is_taken_where_the_task_fits_as_it_is() -> None:
    """Free room is left to allocate; the original takes it all the same, and evicts nothing."""
    empty = node("n2", {"cpu": "2"})
    plan = preempted(scene(empty), "predicates", "nodeorder", compat="strict")
    assert plan.evictions == []
    assert plan.pipelined == {"default/new-0": "n2"}


def test_to_the_letter_a_node_that_was_shut_when_allocate_looked_stays_shut() -> None:
    """The pod that the task wants to be near comes to the node only after allocate has looked for its place."""
    near = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    objects = [
        node("n1", {"cpu": "8"}, labels={"kubernetes.io/hostname": "n1"}),
        queue("default"),
        priority_class("high", 10),
        group("new", priorityClassName="high"),
        pod("new-0", ONE, group="new", uid="new-0", affinity=near),
        group("friend"),
        pod("friend-0", ONE, group="friend", labels={"app": "x"}),
    ]
    plan = preempted(objects, "predicates", actions="allocate,preempt", compat="strict")
    assert plan.binds == {"default/friend-0": "n1"}
    assert plan.pipelined == {}


# -- within a job ----------------------------------------------------------------------------------------------------


def family(important: int) -> list[Object]:
    """A job with four unimportant tasks that run and some that matter more and wait."""
    return [
        node("n1", {"cpu": "4"}),
        queue("default"),
        group("a", 5),
        *(pod(f"small-{i}", ONE, group="a", on="n1", uid=f"small-{i}", priority=1) for i in range(4)),
        *(pod(f"big-{i}", ONE, group="a", uid=f"big-{i}", priority=9) for i in range(important)),
    ]


@BOTH
def test_a_task_may_take_the_place_of_a_less_important_one_of_its_own_job(compat: str) -> None:
    plan = planned(family(1), "priority", actions="preempt", compat=compat)
    assert len(plan.evictions) == 1
    assert plan.evictions[0].startswith("default/small-")
    assert plan.pipelined == {"default/big-0": "n1"}


@BOTH
def test_equally_important_tasks_of_a_job_do_not(compat: str) -> None:
    objects = [*family(0), pod("peer", ONE, group="a", uid="peer", priority=1)]
    assert planned(objects, "priority", actions="preempt", compat=compat).evictions == []


@BOTH
def test_each_task_counts_for_itself_and_the_first_that_gets_nothing_ends_it(compat: str) -> None:
    plan = planned(family(6), "priority", actions="preempt", compat=compat)
    assert len(plan.evictions) == 4
    assert len(plan.pipelined) == 4


@pytest.mark.parametrize(("compat", "got"), [("better", {"default/big-1"}), ("strict", set())])
def test_a_task_that_must_not_preempt_is_passed_over_and_to_the_letter_ends_it(
    compat: str, got: set[str]
) -> None:
    big = [
        pod("big-0", ONE, group="a", uid="big-0", priority=10, preemptionPolicy="Never"),
        pod("big-1", ONE, group="a", uid="big-1", priority=9),
    ]
    plan = planned(
        [*family(0), *big],
        "priority",
        actions="preempt",
        compat=compat,
        job_pipelined=lambda *_: Vote.REJECT,
    )
    assert set(plan.pipelined) == got


@pytest.mark.parametrize(("compat", "own"), [("better", 0), ("strict", 1)])
def test_a_job_that_got_what_it_lacked_spares_its_own_tasks_except_to_the_letter(
    compat: str, own: int
) -> None:
    """It needs two and has one; another job gives the second.

    In the original its third task then takes the place of its first.
    """
    objects = [
        node("n1", {"cpu": "2"}),
        queue("default"),
        priority_class("high", 10),
        group("old", 0, phase="Running"),
        pod("old-0", ONE, group="old", on="n1"),
        group("a", 2, priorityClassName="high"),
        pod("small-0", ONE, group="a", on="n1", uid="small-0", priority=1),
        *(pod(f"big-{i}", ONE, group="a", uid=f"big-{i}", priority=9) for i in range(2)),
    ]

    def lacks_something(session: Session, job: int) -> bool:
        return session.ready(job) + session.pipelined(job) < int(session.jobs.minimum[job])

    plan = planned(objects, "priority", actions="preempt", compat=compat, job_starving=lacks_something)
    assert plan.evictions == ["default/old-0", "default/small-0"][: 1 + own]


# -- nominations -----------------------------------------------------------------------------------------------------


def promised(to: str, *, leaving: dict[str, Any] | None = None, **asker: Any) -> list[Object]:
    """The waiting task was promised a node."""
    objects = scene(status={"nominatedNodeName": to}, **asker)
    if leaving is None:
        return objects
    kept = [one for one in objects if one.key != "default/old-1"]
    gone = pod("old-1", {"cpu": "500m"}, group="old", on="n1", uid="old-1", deleted=LEAVING, **leaving)
    small = pod("old-2", {"cpu": "500m"}, group="old", on="n1", uid="old-2")
    return [*kept, gone, small]


def test_a_task_that_was_promised_a_node_that_is_gone_does_not_preempt() -> None:
    assert preempted(promised("gone"), compat="strict").evictions == []


def test_nor_one_whose_promised_node_would_take_it() -> None:
    objects = [*promised("n2"), node("n2", {"cpu": "2"})]
    assert preempted(objects, compat="strict").evictions == []


def test_one_whose_promised_node_can_never_take_it_preempts() -> None:
    shut = make(
        "v1",
        "Node",
        "n2",
        spec={"taints": [{"key": "k", "effect": "NoSchedule"}]},
        status={"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "9"}},
    )
    plan = preempted([*promised("n2"), shut], "predicates", compat="strict")
    assert plan.evictions == ["default/old-1"]


def test_one_waits_while_somebody_less_important_is_leaving_its_promised_node_for_its_sake() -> None:
    told = {"status": {"conditions": DISRUPTED}}
    assert preempted(promised("n1", leaving=told), compat="strict").evictions == []
    elsewhere = preempted(promised("n1", leaving={}), compat="strict")
    assert elsewhere.evictions  # pods that leave for other reasons are not waited for


def test_unless_strict_a_promise_keeps_nobody_waiting_where_it_leads_nowhere() -> None:
    """Free and releasing room is counted before any eviction, so that a promise need not be waited for."""
    assert preempted(promised("gone")).evictions == ["default/old-1"]
    assert preempted([*promised("n2"), node("n2", {"cpu": "2"})]).evictions == []
    told = {"status": {"conditions": DISRUPTED}}
    plan = preempted(promised("n1", leaving=told))
    assert plan.evictions == ["default/old-2"]  # half a cpu is on its way, and another half is needed
    assert plan.pipelined == {"default/new-0": "n1"}
