"""What users report of jobs that wait: for ever, behind somebody hopeless, without a true reason, without a share."""

from typing import Any

from maniple.objects.meta import Object
from tests.actions.volcano.scenes import bound, cycle
from tests.regressions.world import World
from tests.support import group, node, pod, priority_class, queue

FIRST = ("priority", "gang", "conformance")
SECOND = ("overcommit", "drf", "predicates", "proportion", "nodeorder")
DEFAULT = [{"plugins": [{"name": name} for name in names]} for names in (FIRST, SECOND)]
ACTIONS = "enqueue, allocate, backfill"
CPU = {"cpu": "1"}


def job(name: str, tasks: int, minimum: int, *, queue: str) -> list[Object]:
    pods = [pod(f"{name}-{i}", CPU, group=name, uid=f"{name}-{i}") for i in range(tasks)]
    return [group(name, minimum, queue=queue, phase="Pending", minResources=CPU), *pods]


# -- a gang that never heals after its node was repaired (5805) --------------------------------------------------------


def test_a_gang_heals_when_its_node_is_repaired() -> None:
    """Half of a gang was lost with a node. When the node is back, the gang comes before a newcomer of the same rank."""
    world = World(node("n0", CPU), node("n1", CPU), queue("q"), actions=ACTIONS, tiers=(FIRST, SECOND))
    world.submit("gang", 2, 2, "1", queue="q", on=("n0", "n1"), created="2026-01-02T00:00:00Z")
    world.put(node("n1", CPU, unschedulable=True))
    world.lose("n1")
    world.submit("filler", 3, 1, "1", queue="q", created="2026-01-01T00:00:00Z")
    broken = world.settle()
    assert world.running() == {"gang": 1}
    assert broken.jobs["default/gang"].reasons
    world.put(node("n1", CPU))
    world.settle()
    assert world.running() == {"gang": 2}


# -- a bad child queue that stops the whole cluster (4673) -------------------------------------------------------------


def test_a_bad_child_queue_costs_only_itself() -> None:
    tiers = [
        {"plugins": [{"name": "priority"}, {"name": "gang"}]},
        {"plugins": [{"name": "predicates"}, {"name": "capacity", "enableHierarchy": True}]},
    ]
    ends: dict[str, Any] = {"deserved": CPU, "capability": {"cpu": "8"}}
    plan = cycle(
        node("n"),
        queue("root"),
        queue("team", parent="root", **ends),
        queue("good", parent="team", **ends),
        queue("orphan", parent="nowhere"),
        queue("round", parent="about"),
        queue("about", parent="round"),
        queue("greedy", parent="team", deserved={"cpu": "900"}, capability={"cpu": "900"}),
        *job("fine", 2, 2, queue="good"),
        *job("lost", 2, 2, queue="orphan"),
        *job("cyclic", 2, 2, queue="round"),
        actions=ACTIONS,
        tiers=tiers,
    )
    assert {"fine-0", "fine-1"} <= bound(plan)
    for name in ("lost", "cyclic"):
        assert not {f"{name}-0", f"{name}-1"} & bound(plan)
        assert plan.jobs[f"default/{name}"].reasons


# -- a job pending behind a hopeless one -------------------------------------------------------------------------------


def test_a_job_does_not_wait_behind_a_hopeless_one() -> None:
    """The first in the order can never be placed: too large, nowhere allowed, or waiting for pods that do not exist."""
    pods = [pod(f"huge-{i}", {"cpu": "900"}, group="huge", uid=f"huge-{i}") for i in range(2)]
    lost = [pod(f"lost-{i}", CPU, group="lost", nodeSelector={"zone": "none"}) for i in range(2)]

    def first(name: str, minimum: int) -> Object:
        return group(name, minimum, queue="q", priorityClassName="high")

    plan = cycle(
        node("n", {"cpu": "4"}),
        priority_class("high", 100),
        queue("q"),
        first("huge", 2),
        *pods,
        first("lost", 2),
        *lost,
        first("short", 5),
        pod("short-0", CPU, group="short"),
        *job("behind", 2, 2, queue="q"),
        actions=ACTIONS,
        tiers=DEFAULT,
    )
    assert bound(plan) == {"behind-0", "behind-1"}
    assert all(plan.jobs[f"default/{name}"].reasons for name in ("huge", "lost", "short"))


def test_a_hopeless_job_does_not_stop_preemption_for_the_next() -> None:
    running = [pod(f"old-{i}", CPU, group="old", on="n", uid=f"o{i}") for i in range(4)]
    plan = cycle(
        node("n", {"cpu": "4"}),
        priority_class("high", 9),
        priority_class("higher", 99),
        queue("q"),
        group("old", 1, queue="q", phase="Running"),
        *running,
        group("huge", 1, queue="q", priorityClassName="higher"),
        pod("huge-0", {"cpu": "900"}, group="huge"),
        group("next", 2, queue="q", priorityClassName="high"),
        *(pod(f"next-{i}", CPU, group="next") for i in range(2)),
        actions=f"{ACTIONS}, preempt",
        tiers=DEFAULT,
    )
    assert set(plan.pipelined) == {"default/next-0", "default/next-1"}
    assert len(plan.evictions) == 2


# -- a gang reason overwritten by a later one (2357) -------------------------------------------------------------------


def test_the_true_reason_is_not_overwritten_by_the_gang_s_own() -> None:
    """One task finds no node; that is why the gang waits, and what the job, the condition and the task say."""
    plan = cycle(
        node("n", {"cpu": "4"}),
        queue("q"),
        group("gang", 3, queue="q"),
        *(pod(f"gang-{i}", CPU, group="gang", role="worker", uid=f"g{i}") for i in range(2)),
        pod("gang-2", CPU, group="gang", role="master", uid="g2", nodeSelector={"zone": "none"}),
        actions=f"{ACTIONS}, reclaim, preempt",
        tiers=DEFAULT,
    )
    true = "node(s) didn't match Pod's node affinity/selector"
    assert plan.binds == {}
    assert true in plan.tasks["default/gang-2"].reason
    assert any(true in reason for reason in plan.jobs["default/gang"].reasons)
    (condition,) = plan.jobs["default/gang"].conditions
    assert true in condition["message"]


# -- a queue that gets no share among 100 queues (3841) ----------------------------------------------------------------


def test_none_of_a_hundred_queues_is_left_without_a_share() -> None:
    """A thousandth of rounding, times a hundred queues, must not cost anybody the one task that it deserves."""
    names = [f"q{i:03}" for i in range(100)]
    plan = cycle(
        *(node(f"n{i}", {"cpu": "10", "memory": "100Gi", "pods": "200"}) for i in range(10)),
        *(queue(name) for name in names),
        *(one for name in names for one in job(f"j-{name}", 5, 1, queue=name)),
        actions=ACTIONS,
        tiers=DEFAULT,
    )
    assert {name: plan.queues[name].allocated["cpu"] for name in names} == dict.fromkeys(names, 1000)


def test_weights_hold_among_a_hundred_queues() -> None:
    names = [f"q{i:03}" for i in range(100)]
    weights = {name: 3 if i % 2 else 1 for i, name in enumerate(names)}
    plan = cycle(
        *(node(f"n{i}", {"cpu": "20", "memory": "100Gi", "pods": "200"}) for i in range(10)),
        *(queue(name, weight=weights[name]) for name in names),
        *(one for name in names for one in job(f"j-{name}", 5, 1, queue=name)),
        actions=ACTIONS,
        tiers=DEFAULT,
    )
    assert {name: plan.queues[name].allocated["cpu"] for name in names} == {
        name: 1000 * weight for name, weight in weights.items()
    }
