"""What users report of evictions: too many of them, and jobs that evict each other for ever."""

from typing import Any

import pytest

from tests.actions.volcano.scenes import cycle
from tests.regressions.world import World
from tests.support import group, node, pod, priority_class, queue

FIRST = ("priority", "gang", "conformance")
BY_WEIGHT = ("drf", "predicates", "proportion", "nodeorder")
BY_CAPACITY = ("drf", "predicates", "capacity", "nodeorder", "binpack")
CPU = {"cpu": "1"}


# -- ten evicted where one suffices (volcano-sh/volcano 5984, 5994) ----------------------------------------------------


def eleven_and_one(preemptor: dict[str, Any], victim_queue: str) -> list[Any]:
    """A node full with eleven pods of an elastic job, of which ten could go; somebody needs one place."""
    return [
        node("n", {"cpu": "11"}),
        priority_class("low", 10),
        priority_class("high", 100),
        queue("qa", weight=1),
        queue("qb", weight=10),
        group("victim", 1, queue=victim_queue, phase="Running", priorityClassName="low"),
        *(pod(f"victim-{i}", CPU, group="victim", on="n", uid=f"v{i}", priority=10) for i in range(11)),
        group("new", 1, priorityClassName="high", **preemptor),
        pod("new-0", CPU, group="new", priority=100),
    ]


@pytest.mark.parametrize("compat", ["better", "strict"])
@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_one_is_evicted_where_one_suffices(action: str, compat: str) -> None:
    objects = eleven_and_one({"queue": "qb"}, "qb" if action == "preempt" else "qa")
    tiers = [{"plugins": [{"name": name} for name in names]} for names in (FIRST, BY_WEIGHT)]
    plan = cycle(*objects, actions=f"enqueue, allocate, {action}", tiers=tiers, compat=compat)
    assert len(plan.evictions) == 1
    assert plan.pipelined == {"default/new-0": "n"}


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
def test_one_of_a_bundle_is_evicted_where_one_suffices(action: str) -> None:
    objects = eleven_and_one({"queue": "qb"}, "qb" if action == "gangpreempt" else "qa")
    tiers = [{"plugins": [{"name": name} for name in names]} for names in (FIRST, BY_WEIGHT)]
    plan = cycle(*objects, actions=f"enqueue, allocate, {action}", tiers=tiers)
    assert len(plan.evictions) == 1
    assert plan.pipelined == {"default/new-0": "n"}


# -- a search that takes again what it has just spared ---------------------------------------------------------------


@pytest.mark.parametrize("compat", ["better", "strict"])
@pytest.mark.parametrize("action", ["preempt", "reclaim", "gangpreempt", "gangreclaim"])
def test_a_gang_that_wants_one_port_twice_ends_the_search(action: str, compat: str) -> None:
    """Sums say that it would fit on the one node with such cards; the port says no, whoever goes."""
    port = [{"containerPort": 80, "hostPort": 8080}]

    def container(**requests: str) -> list[Any]:
        return [{"name": "main", "image": "work:1", "resources": {"requests": requests}, "ports": port}]

    wanted = container(cpu="1", **{"nvidia.com/gpu": "1"})
    theirs = "q" if "preempt" in action else "other"
    objects = [
        queue("q", weight=9),
        queue("other"),
        priority_class("high", 100),
        node("a", {"cpu": "64", "nvidia.com/gpu": "8"}),
        node("b", {"cpu": "64"}),
        group("low", 1, queue=theirs, phase="Running"),
        pod("low-0", group="low", on="a", uid="low", containers=container(cpu="1")),
        group("low2", 1, queue=theirs, phase="Running"),
        pod("low2-0", CPU, group="low2", on="b", uid="low2"),
        group("new", 2, queue="q", priorityClassName="high"),
        *(pod(f"new-{i}", group="new", uid=f"new-{i}", containers=wanted) for i in range(2)),
    ]
    tiers = [{"plugins": [{"name": name} for name in names]} for names in (FIRST, BY_WEIGHT)]
    plan = cycle(*objects, actions=f"allocate, {action}", tiers=tiers, compat=compat)
    assert not plan.binds
    assert not plan.evictions or compat == "strict"  # the original does not look at ports again


# -- two jobs that evict each other in turn (3729, 3869, 4947) ---------------------------------------------------------


def test_two_queues_that_each_deserve_half_come_to_rest() -> None:
    """3729: eleven cpus; each queue deserves five and may have ten; both run five tasks of two cpus, and need two."""
    amounts: dict[str, Any] = {"deserved": {"cpu": "5"}, "capability": {"cpu": "10"}}
    world = World(
        *(node(f"n{i}", {"cpu": "6" if i else "5"}) for i in range(2)),
        queue("qa", **amounts),
        queue("qb", **amounts),
        actions="enqueue, allocate, reclaim, backfill",
        tiers=(FIRST, BY_CAPACITY),
    )
    world.submit("a", 5, 2, "2", queue="qa", on=("n0", "n0", "n1", "n1", "n1"))
    world.submit("b", 5, 2, "2", queue="qb")
    world.settle()
    assert world.running()["b"] >= 2
    assert world.running()["a"] >= 2
    assert world.evictions["b"] == 0
    assert world.evictions["a"] <= 3


def test_elastic_jobs_beyond_their_minimum_do_not_reclaim_from_each_other() -> None:
    """3869: two elastic jobs in two queues, neither of which fits whole."""
    world = World(
        node("n", {"cpu": "6"}),
        queue("qa"),
        queue("qb"),
        actions="enqueue, allocate, backfill, reclaim",
        tiers=(FIRST, BY_WEIGHT),
    )
    world.submit("a", 5, 1, "1", queue="qa", on=("n",) * 5)
    world.submit("b", 5, 1, "1", queue="qb")
    world.settle()
    assert world.evictions["b"] == 0
    assert world.evictions["a"] == 0  # there was a place for the one that b needs
    assert world.running() == {"a": 5, "b": 1}


def test_an_evicted_job_does_not_take_its_place_back() -> None:
    """4947: the victim's queue stands best as soon as it has nothing; the place was cleared for somebody else."""
    world = World(
        node("n", {"cpu": "8"}),
        queue("q1", deserved={"cpu": "3"}),
        queue("q2", deserved={"cpu": "5"}),
        actions="enqueue, allocate, backfill, reclaim",
        tiers=(FIRST, BY_CAPACITY),
    )
    world.submit("one", 1, 1, "4", queue="q1", on=("n",))
    world.submit("two", 1, 1, "1", queue="q2", on=("n",))
    world.submit("three", 1, 1, "4", queue="q2")
    world.settle()
    assert world.running() == {"two": 1, "three": 1}
    assert dict(world.evictions) == {"one": 1}


def test_preemption_inside_a_queue_comes_to_rest() -> None:
    """The job that matters more takes the place once, and the loser waits instead of coming back for it."""
    world = World(
        *(node(f"n{i}", {"cpu": "4"}) for i in range(2)),
        priority_class("low", 1),
        priority_class("high", 9),
        queue("q"),
        actions="enqueue, allocate, backfill, preempt",
        tiers=(FIRST, BY_WEIGHT),
    )
    world.submit("old", 8, 8, "1", queue="q", priorityClassName="low", on=("n0",) * 4 + ("n1",) * 4)
    world.submit("new", 4, 4, "1", queue="q", priorityClassName="high")
    world.settle()
    assert world.running()["new"] == 4
    assert world.evictions["new"] == 0
    assert world.evictions["old"] <= 8


# -- protected by one tier, given up by the next -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("namespace", "theirs", "ours"), [("kube-system", "low", "high"), ("default", "high", "low")]
)
def test_a_later_tier_does_not_give_up_whom_an_earlier_one_protects(
    namespace: str, theirs: str, ours: str
) -> None:
    """drf would let a job without anything preempt; conformance and priority, in the tier before, say no."""
    objects = [
        node("n", {"cpu": "4"}),
        priority_class("low", 1),
        priority_class("high", 9),
        queue("q"),
        group("old", 1, queue="q", phase="Running", namespace=namespace, priorityClassName=theirs),
        *(pod(f"old-{i}", CPU, group="old", on="n", uid=f"o{i}", namespace=namespace) for i in range(4)),
        group("new", 1, queue="q", priorityClassName=ours),
        pod("new-0", CPU, group="new"),
    ]
    tiers = [{"plugins": [{"name": name} for name in names]} for names in (FIRST, BY_WEIGHT)]
    assert cycle(*objects, actions="allocate, preempt", tiers=tiers).evictions == []
    original = cycle(*objects, actions="allocate, preempt", tiers=tiers, compat="strict")
    assert len(original.evictions) == 1
