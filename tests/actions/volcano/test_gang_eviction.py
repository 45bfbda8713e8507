"""gangpreempt and gangreclaim: requests for room, victims and their order, plugins, and how many are evicted."""

from typing import Any

import pytest

from maniple.objects.meta import Object
from maniple.planner import Plan
from tests.actions.volcano.gang_scenes import (
    CLASSES,
    CONFORMANCE,
    FORBIDDEN,
    GANG,
    ONE,
    PREDICATES,
    PREEMPTING,
    PRIORITY,
    RECLAIMING,
    TOPOLOGY,
    evicted,
    high,
    low,
    member,
    mine,
    part,
    policy,
    preempt,
    reclaim,
    run,
    running,
    theirs,
    victims,
    waiting,
)
from tests.support import group, hyper_node, make, node, pod, queue


def test_gangpreempt_takes_only_from_jobs_of_strictly_lower_priority() -> None:
    """Also where no plugin has a word on priority."""

    def plan(priority: str, *more: dict[str, str]) -> Plan:
        return preempt(
            node("n1", {"cpu": "2"}),
            *low("old", 1, 2, "n1", priority),
            *high("new", 1),
            plugins=(GANG, PREDICATES, *more),
        )

    for more in ((), (PRIORITY,)):
        assert victims(plan("middle", *more)) == {"old": 1}
        assert victims(plan("high", *more)) == {}


def test_gangpreempt_stays_in_its_queue() -> None:
    other = [
        group("old", 1, queue="other", phase="Running", priorityClassName="low"),
        *running("old", 2, "n1"),
    ]
    assert preempt(node("n1", {"cpu": "2"}), queue("other"), *other, *high("new", 1)).evictions == []


def test_gangreclaim_takes_only_from_other_queues() -> None:
    own = [group("old", 1, queue="mine", phase="Running"), *running("old", 2, "n1")]
    assert reclaim(node("n1", {"cpu": "2"}), *own, *mine("new", 1)).evictions == []
    assert victims(reclaim(node("n1", {"cpu": "2"}), *theirs("old", 1, 2, "n1"), *mine("new", 1))) == {
        "old": 1
    }


def test_gangreclaim_leaves_queues_alone_that_do_not_let_go() -> None:
    objects = [node("n1", {"cpu": "2"}), *theirs("old", 1, 2, "n1"), *mine("new", 1)]
    assert reclaim(*objects, theirs={"reclaimable": False}).evictions == []
    assert len(reclaim(*objects, theirs={"reclaimable": True}).evictions) == 1


def test_bound_tasks_are_victims_of_gangpreempt_and_not_of_gangreclaim() -> None:
    bound: dict[str, Any] = {"phase": "Pending"}
    lower = [group("old", 1, phase="Running", priorityClassName="low"), *running("old", 2, "n1", **bound)]
    assert victims(preempt(node("n1", {"cpu": "2"}), *lower, *high("new", 1))) == {"old": 1}
    foreign = [group("old", 1, queue="theirs", phase="Running"), *running("old", 2, "n1", **bound)]
    assert reclaim(node("n1", {"cpu": "2"}), *foreign, *mine("new", 1)).evictions == []


def test_tasks_that_are_not_preemptable_are_no_victims() -> None:
    lower = [group("old", 0, phase="Running", priorityClassName="low"), *running("old", 2, "n1", **FORBIDDEN)]
    assert preempt(node("n1", {"cpu": "2"}), *lower, *high("new", 1)).evictions == []


@pytest.mark.parametrize(
    ("said", "count"),
    [(None, 1), ("true", 1), ("false", 0), ("perhaps", 0)],
    ids=["unset", "true", "false", "unreadable"],
)
def test_a_pod_group_can_forbid_it_and_lets_go_when_it_says_nothing(said: str | None, count: int) -> None:
    notes = {"volcano.sh/preemptable": said} if said else {}
    for plan in (
        preempt(node("n1", {"cpu": "2"}), *low("old", 1, 2, "n1", annotations=notes), *high("new", 1)),
        reclaim(node("n1", {"cpu": "2"}), *theirs("old", 1, 2, "n1", annotations=notes), *mine("new", 1)),
    ):
        assert len(plan.evictions) == count


# -- which jobs request room, and for which tasks --------------------------------------------------------------------


def test_an_overused_queue_does_not_reclaim() -> None:
    held = [group("have", 4, queue="mine", phase="Running"), *running("have", 4, "n1")]
    objects = [node("n1", {"cpu": "8"}), *held, *theirs("old", 1, 4, "n1"), *mine("new", 1)]
    overused = reclaim(*objects)
    assert overused.evictions == []
    fewer = [one for one in objects if one.metadata.name not in ("have-0", "have-1")]
    assert len(reclaim(node("n1", {"cpu": "6"}), *fewer[1:]).evictions) == 1


def test_gangreclaim_asks_whether_the_queue_may_take_all_that_waits() -> None:
    """Six nodes' worth, half of it each: room for three is due, room for four is not."""
    nodes = [node("n1", {"cpu": "6"})]
    assert len(reclaim(*nodes, *theirs("old", 0, 6, "n1"), *mine("new", 3)).evictions) == 3
    plan = reclaim(*nodes, *theirs("old", 0, 6, "n1"), *mine("new", 4))
    assert plan.evictions == []
    assert any("may not take" in reason for reason in plan.jobs["default/new"].reasons)


def test_a_job_that_is_not_ready_asks_for_all_that_waits() -> None:
    plan = preempt(node("n1", {"cpu": "4"}), *low("old", 0, 4, "n1"), *high("new", 3, minimum=2))
    assert len(plan.pipelined) == 3
    assert len(plan.evictions) == 3


def test_a_job_whose_extras_do_not_fit_gets_its_minimum_but_nothing_in_the_original() -> None:
    objects = [node("n1", {"cpu": "2"}), *low("old", 0, 2, "n1"), *high("new", 3, minimum=2)]
    assert len(preempt(*objects).pipelined) == 2
    assert preempt(*objects, compat="strict").pipelined == {}


def test_a_job_that_is_ready_asks_for_its_first_sub_job_only() -> None:
    """Only without gang's word does a ready job starve at all."""
    gang = {**GANG, "enableJobStarving": False}
    new = [
        group("new", 1, phase="Running", priorityClassName="high", subGroupPolicy=[policy("w", 1, 1)]),
        *part("new", "w", 0, 1, on="n2"),
        *part("new", "w", 1, 1),
        *part("new", "w", 2, 1),
    ]
    nodes = [node("n1", {"cpu": "2"}), node("n2", {"cpu": "1"})]
    plan = preempt(*nodes, *low("old", 0, 2, "n1"), *new, plugins=(PRIORITY, gang, PREDICATES))
    assert set(plan.pipelined) == {"default/new-w1-0"}
    assert len(plan.evictions) == 1


# -- order -----------------------------------------------------------------------------------------------------------


def test_what_can_be_spared_goes_before_gangs() -> None:
    objects = [*low("gang", 2, 2, "n1"), *low("loose", 1, 3, "n2", "middle"), *high("new", 2)]
    plan = preempt(node("n1", {"cpu": "2"}), node("n2", {"cpu": "3"}), *objects)
    assert victims(plan) == {"loose": 2}


def test_gangpreempt_takes_the_job_first_that_would_be_served_last() -> None:
    objects = [*low("a", 2, 2, "n1", "middle"), *low("b", 2, 2, "n2", "low"), *high("new", 2)]
    assert victims(preempt(node("n1", {"cpu": "2"}), node("n2", {"cpu": "2"}), *objects)) == {"b": 2}


def test_gangreclaim_takes_from_the_queue_first_that_would_be_served_last() -> None:
    """The other way round than queues are served: the one with the larger share first."""
    nodes = [node("n1", {"cpu": "2"}), node("n2", {"cpu": "6"})]
    much = [group("much", 1, queue="z", phase="Running"), *running("much", 2, "n1")]
    more = [group("more", 1, queue="a", phase="Running"), *running("more", 6, "n2")]
    plugins = (GANG, CONFORMANCE, {"name": "capacity"}, PREDICATES)
    deserved: dict[str, Any] = {"deserved": {"cpu": "1", "memory": "1Gi"}}
    objects = [*nodes, *much, *more, queue("a", **deserved), *mine("new", 1)]
    mine_ = queue("mine", deserved={"cpu": "4", "memory": "8Gi"})

    def plan(z: Object) -> Plan:
        return run(*objects, mine_, z, action="gangreclaim", plugins=plugins)

    assert set(victims(plan(queue("z", **deserved)))) == {"more"}
    assert set(victims(plan(queue("z", deserved={"cpu": "100m", "memory": "100Mi"})))) == {"much"}


def test_gangreclaim_breaks_the_gang_first_that_loses_least_for_what_it_frees() -> None:
    """Both free two of what is requested on the rack; one of them loses six tasks for it."""
    wide = [
        group("b", 6, queue="theirs", phase="Running"),
        *running("b", 2, "n1"),
        *running("b", 4, "n9", first=2),
    ]
    narrow = [group("a", 2, queue="theirs", phase="Running"), *running("a", 2, "n2")]
    racks = [hyper_node("rack", 1, member("n1"), member("n2")), hyper_node("remote", 1, member("n9"))]
    nodes = [node("n1", {"cpu": "2"}), node("n2", {"cpu": "2"}), node("n9", {"cpu": "4"})]
    new = mine("new", 2, networkTopology={"mode": "hard", "highestTierAllowed": 1})
    plan = reclaim(*nodes, *racks, *wide, *narrow, *new, plugins=(*RECLAIMING, TOPOLOGY))
    assert victims(plan) == {"a": 2}


@pytest.mark.parametrize("compat", ["better", "strict"])
def test_of_equal_jobs_gangpreempt_takes_the_younger_first_whatever_they_are_worth(compat: str) -> None:
    """The older could be had for less: it has two tasks, and the younger six."""
    old = low("old", 2, 2, "n1", created="2026-01-01T00:00:00Z")
    young = low("young", 6, 6, "n2", created="2026-01-02T00:00:00Z")
    plan = preempt(
        node("n1", {"cpu": "2"}), node("n2", {"cpu": "6"}), *old, *young, *high("new", 2), compat=compat
    )
    assert victims(plan) == {"young": 6}


@pytest.mark.parametrize("compat", ["better", "strict"])
def test_of_jobs_of_one_age_gangpreempt_takes_the_higher_unique_id_first(compat: str) -> None:
    few, many = low("a", 2, 2, "n1"), low("b", 6, 6, "n2")
    nodes = [node("n1", {"cpu": "2"}), node("n2", {"cpu": "6"})]
    assert victims(preempt(*nodes, *few, *many, *high("new", 2), compat=compat)) == {"b": 6}


# -- what plugins say ------------------------------------------------------------------------------------------------


def test_critical_pods_are_spared() -> None:
    critical = running("old", 2, "n1", priorityClassName="system-node-critical")
    old = [group("old", 0, phase="Running", priorityClassName="low"), *critical]
    assert preempt(node("n1", {"cpu": "2"}), *old, *high("new", 1)).evictions == []


def test_nobody_goes_when_no_plugin_has_a_word_on_gang_aware_eviction() -> None:
    objects = [node("n1", {"cpu": "2"}), *low("old", 0, 2, "n1"), *high("new", 1)]
    starving = {"name": "tdm"}
    assert preempt(*objects, plugins=(starving, PREDICATES)).evictions == []


def budget(name: str, allowed: int, **labels: str) -> Object:
    return make(
        "policy/v1",
        "PodDisruptionBudget",
        name,
        namespace="default",
        spec={"selector": {"matchLabels": labels}},
        status={"disruptionsAllowed": allowed},
    )


def test_plugins_that_protect_tasks_from_preemption_are_asked_but_not_in_the_original() -> None:
    old = [
        group("old", 0, phase="Running", priorityClassName="low"),
        *running("old", 2, "n1", labels={"app": "db"}),
    ]
    objects = [node("n1", {"cpu": "2"}), *old, budget("keep", 1, app="db")]
    plugins = (*PREEMPTING, {"name": "pdb"})
    assert len(preempt(*objects, *high("new", 1), plugins=plugins).evictions) == 1
    assert preempt(*objects, *high("new", 2), plugins=plugins).evictions == []
    assert len(preempt(*objects, *high("new", 2), plugins=plugins, compat="strict").evictions) == 2


def test_plugins_that_protect_tasks_from_reclaim_are_asked_but_not_in_the_original() -> None:
    """A third queue deserves a third of the cluster and has no more than that."""
    nodes = [node("n1", {"cpu": "3"}), node("n2", {"cpu": "6"})]
    fair = [group("fair", 1, queue="fair", phase="Running"), *running("fair", 3, "n1")]
    objects = [*nodes, queue("fair"), *fair, *theirs("old", 6, 6, "n2"), *mine("new", 1)]
    forbidden = {"reclaimable": False}
    assert reclaim(*objects, theirs=forbidden).evictions == []
    assert victims(reclaim(*objects, theirs=forbidden, compat="strict")) == {"fair": 2}


@pytest.mark.parametrize("compat", ["better", "strict"])
def test_a_queue_does_not_pass_its_ceiling(compat: str) -> None:
    """Victims that request half of what comes: the queue would have more than it may."""
    capped = queue("default", capability={"cpu": "4", "memory": "100Gi"})
    small = [
        pod(f"old-{i}", {"cpu": "1", "memory": "1Gi"}, group="old", uid=f"old-{i}", on="n1") for i in range(2)
    ]
    old = [group("old", 0, phase="Running", priorityClassName="low"), *small]
    keeps = [
        group("keep", 1, phase="Running", priorityClassName="high"),
        pod("keep-0", {"cpu": "2", "memory": "1Gi"}, group="keep", on="n2"),
    ]
    new = [group("new", 1, priorityClassName="high"), *waiting("new", 1, {"cpu": "3", "memory": "1Gi"})]
    objects = [*CLASSES, capped, node("n1", {"cpu": "4"}), node("n2", {"cpu": "2"}), *old, *keeps, *new]
    plugins = (*PREEMPTING, {"name": "capacity"})
    assert run(*objects, action="gangpreempt", plugins=plugins, compat=compat).evictions == []


def test_a_task_that_must_not_preempt_does_not_ask_except_in_the_original() -> None:
    meek = [group("new", 1, priorityClassName="high"), *waiting("new", 1, preemptionPolicy="Never")]
    objects = [node("n1", {"cpu": "2"}), *low("old", 1, 2, "n1"), *meek]
    assert preempt(*objects).evictions == []
    assert victims(preempt(*objects, compat="strict")) == {"old": 1}


def test_all_sub_jobs_are_placed_and_in_the_original_as_many_as_the_job_needs() -> None:
    new = [
        group("new", 1, priorityClassName="high", subGroupPolicy=[policy("w", 1, 1)]),
        *part("new", "w", 0, 1),
        *part("new", "w", 1, 1),
    ]
    objects = [node("n1", {"cpu": "3"}), *low("old", 1, 2, "n1"), *new]
    assert set(preempt(*objects).pipelined) == {"default/new-w0-0", "default/new-w1-0"}
    assert set(preempt(*objects, compat="strict").pipelined) == {"default/new-w0-0"}


def test_in_the_original_a_sub_job_that_does_not_become_whole_stops_its_job() -> None:
    """The second sub-job lacks a task for good; the job could do without it."""
    new = [
        group("new", 3, priorityClassName="high", subGroupPolicy=[policy("w", 2, 0)]),
        *part("new", "w", 0, 2),
        *part("new", "w", 1, 1),
    ]
    objects = [node("n1", {"cpu": "4"}), *low("old", 1, 2, "n1"), *new]
    assert len(preempt(*objects).pipelined) == 3
    assert preempt(*objects, compat="strict").pipelined == {}


# -- how many --------------------------------------------------------------------------------------------------------


def test_one_goes_where_one_suffices_and_the_whole_bundle_in_the_original() -> None:
    objects = [node("n1", {"cpu": "10"}), *low("old", 0, 10, "n1"), *high("new", 1)]
    assert len(preempt(*objects).evictions) == 1
    assert len(preempt(*objects, compat="strict").evictions) == 10


def test_victims_whose_room_turns_out_not_to_help_stay() -> None:
    """The new task needs a whole node; what goes first is on the other one."""
    new = [group("new", 1, priorityClassName="high"), *waiting("new", 1, {"cpu": "4", "memory": "1Gi"})]
    nodes = [node("n1", {"cpu": "4"}), node("n2", {"cpu": "3"})]
    plan = preempt(*nodes, *low("a", 0, 3, "n2"), *low("b", 0, 4, "n1", "middle"), *new)
    assert victims(plan) == {"b": 4}


def test_bundles_on_nodes_that_the_tasks_cannot_go_to_stay() -> None:
    taint = {"key": "no", "value": "", "effect": "NoSchedule"}
    nodes = [node("n1", {"cpu": "2"}, taints=[taint]), node("n2", {"cpu": "2"})]
    plan = preempt(*nodes, *low("a", 0, 2, "n1"), *low("b", 0, 2, "n2", "middle"), *high("new", 2))
    assert victims(plan) == {"b": 2}


def test_room_that_comes_free_anyway_is_used_before_anybody_goes() -> None:
    leaving = [
        group("gone", 0, priorityClassName="low"),
        *running("gone", 2, "n2", deleted="2026-01-01T00:00:00Z"),
    ]
    plan = preempt(
        node("n1", {"cpu": "2"}), node("n2", {"cpu": "2"}), *low("old", 0, 2, "n1"), *leaving, *high("new", 2)
    )
    assert plan.evictions == []
    assert set(plan.pipelined.values()) == {"n2"}


def test_nobody_goes_for_a_gang_that_would_not_fit_anyway() -> None:
    plan = preempt(node("n1", {"cpu": "2"}), *low("old", 0, 2, "n1"), *high("new", 3))
    assert plan.evictions == []
    assert plan.pipelined == {}
    assert plan.jobs["default/new"].reasons == [
        "gangpreempt: evicting every pod that may be evicted would not make room"
    ]


def test_a_gang_that_breaks_is_lost_with_what_it_could_have_spared() -> None:
    plan = preempt(node("n1", {"cpu": "4"}), *low("old", 3, 4, "n1"), *high("new", 2))
    assert victims(plan) == {"old": 4}


def test_gangs_are_not_broken_where_that_is_not_allowed() -> None:
    objects = [node("n1", {"cpu": "4"}), *low("old", 3, 4, "n1")]
    kept = {"allowWholeBundle": False}
    assert preempt(*objects, *high("new", 2), arguments=kept).evictions == []
    assert evicted(preempt(*objects, *high("new", 1), arguments=kept)) == {"old-0"}


def test_a_hopeless_job_does_not_keep_the_next_one_from_being_served() -> None:
    big = [group("big", 9, priorityClassName="high", created="2026-01-01T00:00:00Z"), *waiting("big", 9)]
    later = [group("same", 9, priorityClassName="high", created="2026-01-02T00:00:00Z"), *waiting("same", 9)]
    last = [group("tiny", 1, priorityClassName="high", created="2026-01-03T00:00:00Z"), *waiting("tiny", 1)]
    plan = preempt(node("n1", {"cpu": "2"}), *low("old", 0, 2, "n1"), *big, *later, *last)
    assert set(plan.pipelined) == {"default/tiny-0"}
    for name in ("big", "same"):
        assert plan.jobs[f"default/{name}"].reasons


def test_a_job_that_could_not_become_whole_does_not_speak_for_one_that_can() -> None:
    """Both request two tasks; the first needs a third, which must not preempt and finds no room by itself."""
    first = [
        group("first", 3, priorityClassName="high", created="2026-01-01T00:00:00Z"),
        *waiting("first", 2),
    ]
    meek = pod("first-2", ONE, group="first", uid="first-2", preemptionPolicy="Never")
    later = [
        group("later", 2, priorityClassName="high", created="2026-01-02T00:00:00Z"),
        *waiting("later", 2),
    ]
    plan = preempt(node("n1", {"cpu": "2"}), *low("old", 0, 2, "n1"), *first, meek, *later)
    assert set(plan.pipelined) == {"default/later-0", "default/later-1"}


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
def test_victims_are_told_which_action_it_was(action: str) -> None:
    if action == "gangpreempt":
        plan = preempt(node("n1", {"cpu": "2"}), *low("old", 0, 2, "n1"), *high("new", 1))
    else:
        plan = reclaim(node("n1", {"cpu": "2"}), *theirs("old", 0, 2, "n1"), *mine("new", 1))
    assert {one.action for one in plan.evicted} == {action}


def test_a_wrong_argument_is_reported_with_the_nearest_name() -> None:
    plan = preempt(node("n1"), arguments={"maxDomain": 3})
    assert any("maxDomain" in warning and "maxDomains" in warning for warning in plan.warnings)
