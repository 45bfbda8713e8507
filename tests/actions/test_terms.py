"""The terms on which KAI's actions make room.

Which jobs are tried at all, which may lose tasks, what failures imply for other jobs, and the eviction
messages.
"""

from typing import Any

import pytest

from maniple.actions.searching.feasible import enough_gpus
from maniple.actions.searching.stepwise import StepwiseSolver
from maniple.planner import Plan
from maniple.plugins.kai.queue_books import QueueBooks
from maniple.plugins.kai.topology import Topology
from tests.actions.allocate_scenes import Bench, cycle, gang, node, queue, waiting
from tests.actions.test_making_room import NEW, OLD, PRIORITIES, act, both, firm, gone, halves
from tests.support import make

QUEUES = [queue("top"), queue("q", 4, parent="top"), queue("other", 0, parent="top", weight=0)]


def words(plan: Plan) -> set[str]:
    """The first lines of the eviction messages, whichever pods they are for."""
    return {one.text.replace(one.pod, "<pod>").splitlines()[0] for one in plan.evicted}


# -- eviction messages ------------------------------------------------------------------------------------------------


@both
def test_each_action_says_why_it_evicts(strict: bool) -> None:
    theirs = gang("v", 1, queue="other", on=["n1"])
    plan = act("reclaim", QUEUES, node("n1", 1), theirs, gang("a", 1), strict=strict)
    assert words(plan) == {"Pod <pod> was preempted by workload default/a."}
    lower, asks = gang("v", 1, priority="low", on=["n1"]), gang("a", 1, priority="high")
    plan = act("preempt", PRIORITIES, QUEUES, node("n1", 1), lower, asks, strict=strict)
    assert words(plan) == {"Pod <pod> was preempted by higher priority workload default/a"}
    plan = act("consolidation", QUEUES, halves(), gang("a", 1, gpus=2, created=NEW), strict=strict)
    assert words(plan) == {
        "Pod <pod> was preempted and rescheduled due to bin packing (resource consolidation) procedure"
    }


# -- which jobs are tried ---------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("action", ["reclaim", "preempt", "consolidation"])
def test_a_gang_with_too_few_pods_makes_nobody_give_way(action: str, strict: bool) -> None:
    theirs = gang("v", 1, queue="other", priority="low", on=["n1"])
    own = gang("w", 1, priority="low", on=["n2"])
    asks = gang("a", 1, 2, gpus=2, priority="high", created=NEW)
    plan = act(action, PRIORITIES, QUEUES, node("n1", 2), node("n2", 2), theirs, own, asks, strict=strict)
    assert not gone(plan)


@both
def test_reclaim_asks_whether_the_queue_may_before_anything_else(strict: bool) -> None:
    """Its queue is due nothing more, although the other has far too much."""
    queues = [queue("top"), queue("q", 0, parent="top", weight=0), queue("other", 0, parent="top", weight=1)]
    theirs = [gang(f"v{n}", 1, queue="other", on=["n1"]) for n in range(2)]
    assert not gone(act("reclaim", queues, node("n1", 2), theirs, gang("a", 1), strict=strict))


@both
def test_reclaim_takes_from_queues_at_any_level(strict: bool) -> None:
    tree = [
        queue("mine", 2),
        queue("theirs", 0, weight=0),
        queue("q", 2, parent="mine"),
        queue("below", 0, parent="theirs"),
        queue("other", 0, parent="below"),
    ]
    victim = gang("v", 2, queue="other", on=["n1", "n1"])
    plan = act("reclaim", tree, node("n1", 2), victim, gang("a", 2), strict=strict)
    assert gone(plan) == {"v-0", "v-1"}


@both
def test_reclaim_takes_as_many_as_it_needs(strict: bool) -> None:
    theirs = [gang(f"v{n}", 1, queue="other", on=["n1"]) for n in range(20)]
    queues = [queue("top"), queue("q", 20, parent="top"), queue("other", 0, parent="top", weight=0)]
    asks = gang("a", 1, gpus=18)
    assert len(gone(act("reclaim", queues, node("n1", 20), theirs, asks, strict=strict))) == 18


@both
def test_victims_have_something_to_lose_and_a_queue_that_is_served(strict: bool) -> None:
    """For a job of a deleted queue it is unknown what it may have: it keeps what it has."""
    lost = gang("v", 1, queue="gone", on=["n1"])
    assert not gone(act("reclaim", QUEUES, node("n1", 1), lost, gang("a", 1), strict=strict))
    leaving = gang("w", 1, queue="other", on=["n1"], deleted=OLD)
    plan = act("reclaim", QUEUES, node("n1", 1), leaving, gang("a", 1), strict=strict)
    assert not gone(plan)
    assert waiting(plan) == {"a-0": "n1"}


@both
@pytest.mark.parametrize("nodes", [0, 1])
def test_a_job_that_runs_on_nodes_of_another_pool_is_no_victim(nodes: int, strict: bool) -> None:
    """What it would leave is not here; and here there may be no node at all."""
    there = [node("n0", 1, labels={"kai.scheduler/node-pool": "red"})]
    here = [node(f"n{n}", 1) for n in range(1, 1 + nodes)]
    lower = gang("v", 1, priority="low", on=["n0"])
    taken = [firm(gang(f"w{n}", 1, on=[f"n{n}"])) for n in range(1, 1 + nodes)]
    plan = act(
        "preempt", PRIORITIES, QUEUES, there, here, lower, taken, gang("a", 1, priority="high"), strict=strict
    )
    assert not gone(plan)
    assert not waiting(plan)


@both
def test_preempt_is_for_strictly_higher_priorities(strict: bool) -> None:
    """A younger job of the same priority stays, even one that has tasks to spare."""
    same = gang("v", 2, 1, priority="high", on=["n1", "n1"], created=NEW)
    asks = gang("a", 1, priority="high", created=OLD)
    assert not gone(act("preempt", PRIORITIES, QUEUES, node("n1", 2), same, asks, strict=strict))


@both
def test_consolidation_moves_jobs_of_any_queue_and_priority(strict: bool) -> None:
    nodes = [node(f"n{n}", 2) for n in range(2)]
    movers = [
        gang("v0", 1, queue="other", priority="high", on=["n0"]),
        gang("v1", 1, queue="other", priority="high", on=["n1"]),
    ]
    asks = gang("a", 1, gpus=2, priority="low", created=NEW)
    plan = act("consolidation", PRIORITIES, QUEUES, nodes, movers, asks, strict=strict)
    assert len(gone(plan)) == 1
    assert set(waiting(plan)) == {"a-0", *gone(plan)}


@both
@pytest.mark.parametrize(("size", "moves"), [(2, True), (3, False)])
def test_one_job_more_is_moved_than_is_said(size: int, moves: bool, strict: bool) -> None:
    """The job needs a node of which every device is taken; elsewhere there is a place for each of those jobs."""
    nodes = [node("n0", size), *(node(f"n{n}", 1) for n in range(1, size + 1))]
    movers = [gang(f"v{n}", 1, on=["n0"], created=OLD) for n in range(size)]
    asks = gang("a", 1, gpus=size, created=NEW)
    limit = {"maxConsolidationPreemptees": 1}
    plan = act("consolidation", QUEUES, nodes, movers, asks, strict=strict, options=limit)
    assert len(gone(plan)) == (size if moves else 0)


@pytest.mark.parametrize(("memory", "enough"), [("1667", True), ("1668", False)])
def test_consolidation_is_for_jobs_for_which_enough_gpu_memory_is_left(memory: str, enough: bool) -> None:
    """Of two devices of 1000 MiB 333 are taken; what is left is not rounded to hundredths of a device."""
    held = gang("held", 1, gpus=0, on=["n0"], annotations={"gpu-memory": "333"})
    held[1].metadata.labels["runai-gpu-group"] = "g"
    asks = gang("a", 1, gpus=0, annotations={"gpu-memory": memory})
    bench = Bench(queue("q"), node("n0", 2, labels={"nvidia.com/gpu.memory": "1000"}), held, asks)
    rows = bench.session.groups.to_allocate(bench.job("a"))
    assert enough_gpus(bench.session, rows) is enough


# -- protected --------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("action", ["reclaim", "preempt"])
@pytest.mark.parametrize(("minimum", "lost"), [(2, set[str]()), (1, {"v-1"})])
def test_a_job_that_has_just_started_keeps_its_core(
    action: str, minimum: int, lost: set[str], strict: bool
) -> None:
    _, *pods = gang("v", 2, queue="other" if action == "reclaim" else "q", priority="low", on=["n1", "n1"])
    spec = {"queue": "other" if action == "reclaim" else "q", "minMember": minimum}
    spec |= {"preemptibility": "preemptible", "priorityClassName": "low"}
    started = {"kai.scheduler/last-start-timestamp": "2026-01-01T11:59:30Z"}
    api = "scheduling.run.ai/v2alpha2"
    head = make(api, "PodGroup", "v", namespace="default", uid="v", annotations=started, spec=spec)
    times = {"reclaimMinRuntime": "1m", "preemptMinRuntime": "1m"}
    queues = [queue("top"), *(_timed(name, quota, times) for name, quota in (("q", 4), ("other", 0)))]
    for gpus, expected in ((1, lost), (2, set[str]())):
        asks = gang("a", 1, gpus=gpus, priority="high", created=NEW)
        plan = act(action, PRIORITIES, queues, node("n1", 2), head, pods, asks, strict=strict)
        assert gone(plan) == expected


def _timed(name: str, quota: int, times: dict[str, str]) -> Any:
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    gpu = {"quota": quota, "limit": -1, "overQuotaWeight": 0}
    resources = {"gpu": gpu, "cpu": unlimited, "memory": unlimited}
    spec = {"parentQueue": "top", "resources": resources, **times}
    return make("scheduling.run.ai/v2", "Queue", name, uid=name, created=OLD, spec=spec)


# -- what a failure says of others ------------------------------------------------------------------------------------


def searches(monkeypatch: pytest.MonkeyPatch, action: str, *parts: Any, **options: Any) -> list[str]:
    """The jobs for which a search was made, in strict mode."""
    tried: list[str] = []
    solve = StepwiseSolver.solve

    def counted(self: StepwiseSolver, job: int, *rest: Any) -> Any:
        tried.append(self._session.job_key(job).removeprefix("default/"))
        return solve(self, job, *rest)

    monkeypatch.setattr(StepwiseSolver, "solve", counted)
    act(action, *parts, strict=True, options=options)
    monkeypatch.undo()
    return tried


OF = {"a0": "q", "a1": "q", "a2": "r"}
ASKING = [gang(name, 1, gpus=2, queue=queue, created=NEW) for name, queue in OF.items()]
TREE = [queue("top"), *(queue(name, 4, parent="top") for name in ("q", "r")), queue("other", 0, parent="top")]


@pytest.mark.parametrize(("action", "tried"), [("reclaim", ["q", "r"]), ("preempt", ["q", "r"])])
def test_a_failure_counts_for_its_own_queue(
    action: str, tried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = firm(gang("v", 1, queue="other", on=["n1"]))
    found = searches(monkeypatch, action, TREE, node("n1", 2), stuck, ASKING)
    assert sorted(OF[job] for job in found) == tried


def test_in_consolidation_a_failure_counts_for_all_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node(f"n{n}", 2) for n in range(2)]
    stuck = [firm(gang(f"v{n}", 1, queue="other", on=[f"n{n}"])) for n in range(2)]
    assert len(searches(monkeypatch, "consolidation", TREE, nodes, stuck, ASKING)) == 1


def test_every_job_is_tried_where_failures_are_not_to_be_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [TREE, node("n1", 2), firm(gang("v", 1, queue="other", on=["n1"])), ASKING]
    assert len(searches(monkeypatch, "preempt", *parts, useSchedulingSignatures=False)) == 3


@pytest.mark.parametrize(("depth", "served"), [(1, {"a0-0"}), (2, {"a0-0", "a1-0"})])
def test_each_action_looks_at_so_many_jobs_of_a_queue(depth: int, served: set[str]) -> None:
    theirs = [gang(f"v{n}", 1, queue="other", on=["n1"]) for n in range(2)]
    asks = [gang(f"a{n}", 1, created=when) for n, when in enumerate((OLD, NEW))]
    plan = cycle(
        QUEUES, node("n1", 2), theirs, asks, actions="reclaim", queueDepthPerAction={"reclaim": depth}
    )
    assert set(waiting(plan)) == served


# -- before a trial ---------------------------------------------------------------------------------------------------


def test_reclaim_alone_says_that_a_trial_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    monkeypatch.setattr(QueueBooks, "begin_trial", lambda _: begun.append("trial"))
    theirs = gang("v", 1, queue="other", priority="low", on=["n1"])
    own = gang("w", 1, priority="low", on=["n1"])
    parts = [PRIORITIES, QUEUES, node("n1", 2), theirs, own, gang("a", 1, priority="high", created=NEW)]
    for action, times in (("preempt", 0), ("consolidation", 0), ("reclaim", 1)):
        begun.clear()
        act(action, *parts, strict=True)
        assert len(begun) == times


def attempts(monkeypatch: pytest.MonkeyPatch, *parts: Any, actions: str = "allocate") -> list[str]:
    """The jobs that the action tried to place, as plugins see it."""
    told: list[str] = []

    def noted(self: Topology, job: int) -> None:
        told.append(self._session.job_key(job).removeprefix("default/"))

    monkeypatch.setattr(Topology, "pre_job_allocation", noted)
    cycle(*parts, actions=actions, strict=True)
    monkeypatch.undo()
    return told


def test_plugins_are_told_of_every_attempt_and_allocate_tries_a_job_that_failed_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grows, hopeless = gang("a", 3, 1, created=OLD), gang("b", 9, created=NEW)
    told = attempts(monkeypatch, queue("q"), node("n1", 3), grows, hopeless)
    assert sorted(told) == ["a", "a", "a", "b"]


def test_plugins_are_told_of_attempts_in_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = gang("v", 1, queue="other", on=["n1"])
    told = attempts(monkeypatch, QUEUES, node("n1", 1), theirs, gang("a", 1), actions="reclaim")
    assert told == ["a", "v"]
