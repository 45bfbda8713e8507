"""What a plan says of its evictions: for which job and pods, by which action and rule; and when the served start."""

import json
from typing import Any

import pytest

from maniple.framework.plans.outcome import Eviction
from maniple.planner import Plan
from maniple.plugins.job_budget import MOST_UNAVAILABLE
from tests.actions.allocate_scenes import gang, node
from tests.actions.test_making_room import NEW, PRIORITIES, QUEUES, act
from tests.actions.test_stalegangeviction import broken
from tests.actions.test_stalegangeviction import run as stale
from tests.actions.volcano import gang_scenes as gangs
from tests.actions.volcano.test_eviction import evict, in_two_queues, running, waiting
from tests.actions.volcano.test_preempt_rules import family
from tests.plugins.feasibility.test_tdm import DAY, NODES, NOON, YES
from tests.plugins.maniple import scenes
from tests.plugins.planning import planned
from tests.support import group, pod, priority_class
from tests.support import node as plain_node
from tests.support import queue as plain_queue

CLASSES = (priority_class("low", 10), priority_class("high", 100))
ONE = {"cpu": "1", "memory": "1Gi"}


def only(plan: Plan) -> Eviction:
    (one,) = plan.evicted
    return one


def preempted() -> Plan:
    """Volcano: a job of two on one node, and one of higher priority for which one of them goes."""
    return evict(
        *CLASSES,
        plain_node("n1", {"cpu": "2"}),
        plain_queue("default"),
        group("old", 1, phase="Running", priorityClassName="low"),
        *running("old", 2, "n1"),
        group("new", 1, priorityClassName="high"),
        *waiting("new", 1, priority=100),
        actions="allocate, preempt",
    )


def test_a_preempted_pod_says_for_which_job_and_pod_and_which_plugins_allowed_it() -> None:
    one = only(preempted())
    assert (one.job, one.action, one.actor, one.node) == ("default/old", "preempt", "default/new", "n1")
    assert one.pods == ("default/new-0",)
    assert one.allowed_by == ("priority", "gang", "conformance", "drf")
    assert one.why == "makes room for job default/new, which comes before it in the same queue"
    assert one.text == "preempt"  # Volcano's own words


def test_its_status_has_the_reason_and_the_served_job_says_when_it_starts() -> None:
    plan = preempted()
    one = only(plan)
    assert plan.tasks[one.pod].reason.startswith("preempt: makes room for job default/new")
    assert plan.starting["default/new-0"].after == (one.pod,)
    assert plan.tasks["default/new-0"].reason == f"starts on n1 when {one.pod} has left"
    new, old = plan.jobs["default/new"], plan.jobs["default/old"]
    assert (new.state, new.reasons) == ("starting", ["starts when 1 pod of default/old has left n1"])
    assert (old.state, old.evicted) == ("evicted", 1)
    assert old.reasons[0].startswith("1 pod evicted by preempt: makes room for job default/new")


def test_the_plan_with_its_evictions_comes_back_from_json() -> None:
    plan = preempted()
    assert Plan.from_dict(json.loads(plan.to_json())).evicted == plan.evicted


@pytest.mark.parametrize("compat", ["better", "strict"])
def test_volcanos_reclaim_names_both_queues(compat: str) -> None:
    plan = evict(*in_two_queues(1), actions="allocate, reclaim", compat=compat)
    assert {one.actor for one in plan.evicted} == {"default/new"}
    (why,) = {one.why for one in plan.evicted}
    assert why == (
        "makes room for job default/new of queue mine, which takes back from queue theirs what it deserves"
    )
    assert {one.allowed_by for one in plan.evicted} == {("gang", "conformance", "proportion")}
    assert plan.jobs["default/new"].state == "starting"


def test_a_pod_that_gives_way_to_its_own_job_says_so() -> None:
    plan = planned(family(1), "priority", actions="preempt")
    assert [one.why for one in plan.evicted] == ["makes room for another pod of its own job"]


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
def test_gang_actions_say_for_which_job(action: str) -> None:
    if action == "gangpreempt":
        plan = gangs.preempt(
            plain_node("n1", {"cpu": "2"}), *gangs.low("old", 2, 2, "n1"), *gangs.high("new", 2)
        )
    else:
        plan = gangs.reclaim(
            plain_node("n1", {"cpu": "2"}),
            group("old", 1, queue="theirs", phase="Running"),
            *gangs.running("old", 2, "n1"),
            group("new", 1, queue="mine"),
            *gangs.waiting("new", 1),
        )
    assert plan.evicted
    for one in plan.evicted:
        assert (one.action, one.actor) == (action, "default/new")
        assert one.why.startswith("makes room for job default/new")
        assert "gang" in one.allowed_by


def test_kais_actions_add_the_plain_sentence_to_their_own() -> None:
    lower, asks = gang("v", 1, priority="low", on=["n1"]), gang("a", 1, priority="high")
    one = only(act("preempt", PRIORITIES, QUEUES, node("n1", 1), lower, asks, strict=False))
    assert one.text == "Pod default/v-0 was preempted by higher priority workload default/a"
    assert one.why == "makes room for job default/a, which has a higher priority in the same queue"
    theirs = gang("v", 1, queue="other", on=["n1"])
    one = only(act("reclaim", QUEUES, node("n1", 1), theirs, gang("a", 1), strict=False))
    assert one.why == (
        "makes room for job default/a of queue q, which stays within its fair share, while queue other has more "
        "than its own"
    )
    assert "proportion" in one.allowed_by


def test_a_pod_that_moves_says_where_from_and_where_to() -> None:
    parts = [gang(name, 1, on=[home]) for name, home in (("x", "n1"), ("y", "n2"))]
    new = gang("a", 1, gpus=2, created=NEW)
    plan = act("consolidation", QUEUES, node("n1", 2), node("n2", 2), parts, new, strict=False)
    one = only(plan)
    assert {one.node, one.moves_to} == {"n1", "n2"}
    assert plan.pipelined[one.pod] == one.moves_to
    assert one.why.startswith(f"moves to {one.moves_to} and makes room for job default/a")
    assert plan.jobs[one.job].state == "evicted"
    assert plan.starting["default/a-0"].after == (one.pod,)


def test_a_stale_gang_says_for_how_long_it_was_short() -> None:
    one = only(stale(broken(since=120)))
    assert (one.action, one.actor) == ("stalegangeviction", "")
    assert one.why == "its gang has had fewer than 2 pods for 120 s; 60 s are allowed"


def test_the_default_profile_says_the_plain_sentence_only() -> None:
    parts: list[Any] = [priority_class("high", 90), scenes.node("n1"), scenes.volcano_queue("q")]
    one = scenes.cycle(
        *parts, scenes.gang("old", "q", 8, on="n1"), scenes.gang("new", "q", 8, priority="high")
    ).evicted[0]
    assert one.text == f"Pod {one.pod} {one.why}"
    assert one.actor == "default/new"


def test_shuffle_says_which_plugin_named_the_pod_and_why() -> None:
    objects = [*NODES, plain_queue("default"), group("g", 1, annotations={MOST_UNAVAILABLE: "100%"})]
    leaves = pod("p", ONE, group="g", on="n2", annotations=YES)
    plan = planned([*objects, leaves], {"name": "tdm", "arguments": DAY}, now=NOON, actions="shuffle")
    one = only(plan)
    assert (one.action, one.text, one.allowed_by) == ("shuffle", "shuffle", ("tdm",))
    assert one.why == "its revocable zone night is closed now"


def test_a_gang_that_lost_pods_says_how_many_it_has() -> None:
    """Nothing was recorded about it: it neither asks for room nor loses any."""
    plan = evict(
        plain_node("n1", {"cpu": "4"}),
        plain_queue("default"),
        group("torn", 3, phase="Running"),
        *running("torn", 2, "n1"),
        actions="allocate",
    )
    assert plan.jobs["default/torn"].state == "waiting"
    assert all(plan.jobs["default/torn"].reasons)
