"""The solver of `compat: strict`, step by step: what it tries, in what order, and when it stops."""

from collections.abc import Callable
from typing import Any

import numpy as np

from maniple.actions.searching.budget import Allowance
from maniple.actions.searching.stepwise import StepwiseSolver
from maniple.actions.searching.terms import Losers, Terms
from maniple.eviction.chunks import ScenarioOutcome
from maniple.framework.transactions.transaction import Transaction
from tests.actions.allocate_scenes import Bench, gang, node, queue

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-01T05:00:00Z"
HOST = "kubernetes.io/hostname"
QUEUES = [queue("q", 8, priority=200), queue("other", 0)]


class Search:
    """A solver for job `a`, at the expense of jobs of the queue `other`."""

    def __init__(
        self,
        *parts: Any,
        accept: Callable[[ScenarioOutcome], bool] = lambda _: True,
        before: Callable[[Bench], None] = lambda _: None,
    ) -> None:
        self.bench = Bench(QUEUES, *parts, strict=True)
        before(self.bench)
        self.judged: list[
            tuple[int, list[str]]
        ] = []  # scenarios: tasks of the job, and the jobs that might lose
        self._accept = accept
        self.found = self._solve()

    def _solve(self) -> Transaction | None:
        session = self.bench.session
        own = session.jobs.queue[self.bench.job("a")]
        terms = Terms(
            reason="to make room",
            losers=Losers(session),
            allowed=lambda jobs: np.asarray(session.jobs.queue[jobs] != own),
            lets_go=None,
            accept=self._judge,
        )
        return StepwiseSolver(session, self.bench.placement).solve(self.bench.job("a"), terms, Allowance())

    def _judge(self, outcome: ScenarioOutcome) -> bool:
        names = sorted(self.bench.session.job_key(job).removeprefix("default/") for job in outcome.victims)
        self.judged.append((len(outcome.tasks), names))
        return self._accept(outcome)

    def states(self, *pods: str) -> list[str]:
        return [status for status, _ in self.bench.where(*pods)]


def victim(name: str, *on: str, minimum: int | None = None, created: str = OLD, **more: Any) -> list[Any]:
    return gang(name, len(on), minimum, queue="other", on=on, created=created, **more)


def test_without_a_victim_nothing_is_tried_even_where_there_is_room() -> None:
    search = Search(node("n0", 2), gang("a", 1))
    assert search.found is None
    assert search.judged == []


def test_a_job_is_served_task_by_task_from_the_victims_of_the_step_before() -> None:
    """The first task takes the younger victim. The second finds room beside it, and evicts nothing."""
    young = victim("young", "n0", gpus=2, created=NEW)
    search = Search(node("n0", 2), node("n1", 2), young, victim("old", "n1", gpus=2), gang("a", 2))
    assert search.found is not None
    assert search.judged == [(1, ["young"]), (2, ["young"])]
    assert search.states("young-0", "old-0", "a-0", "a-1") == [
        "Releasing",
        "Running",
        "Pipelined",
        "Pipelined",
    ]


def test_a_step_adds_victims_to_those_of_the_step_before() -> None:
    """On different nodes: without those of the step before, only the latest one's node would be cleared."""
    victims = [victim("young", "n0", created=NEW), victim("old", "n1")]
    search = Search(node("n0", 1), node("n1", 1), victims, gang("a", 2))
    assert search.judged == [(1, ["young"]), (2, ["old", "young"])]
    assert search.states("young-0", "old-0") == ["Releasing"] * 2


def test_a_step_that_fails_ends_the_search_and_leaves_nothing() -> None:
    search = Search(node("n0", 1), victim("v", "n0"), gang("a", 2))
    assert search.found is None
    assert search.judged == [(1, ["v"])]
    assert search.states("v-0", "a-0", "a-1") == ["Running", "Pending", "Pending"]


def test_only_victims_on_a_node_of_the_latest_are_evicted() -> None:
    """The youngest is no help: its node is too small. With the next on another node, it stays where it is."""
    young, old = victim("young", "n0", created=NEW), victim("old", "n1", gpus=2)
    search = Search(node("n0", 1), node("n1", 2), young, old, gang("a", 1, gpus=2))
    assert search.found is not None
    assert search.states("young-0", "old-0") == ["Running", "Releasing"]
    assert search.judged == [(1, ["old", "young"])]  # both are in the scenario all the same


def test_victims_on_one_node_are_evicted_together() -> None:
    victims = [victim("young", "n0", created=NEW), victim("old", "n0")]
    search = Search(node("n0", 2), victims, gang("a", 1, gpus=2))
    assert search.states("young-0", "old-0", "a-0") == ["Releasing", "Releasing", "Pipelined"]


def test_a_scenario_that_is_refused_is_not_tried_on_the_victim_s_other_nodes() -> None:
    search = Search(
        node("n0", 1), node("n1", 1), victim("v", "n0", "n1"), gang("a", 1), accept=lambda _: False
    )
    assert search.found is None
    assert search.judged == [(1, ["v"])]
    assert search.states("v-0", "v-1") == ["Running"] * 2


def test_after_a_refusal_the_scenario_grows() -> None:
    victims = [victim("young", "n0", created=NEW), victim("old", "n1")]
    search = Search(
        node("n0", 1),
        node("n1", 1),
        victims,
        gang("a", 1),
        accept=lambda outcome: len(outcome.victims) > 1,
    )
    assert search.judged == [(1, ["young"]), (1, ["old", "young"])]
    assert search.states("young-0", "old-0") == ["Running", "Releasing"]


def test_a_victim_with_tasks_to_spare_loses_one_at_a_time() -> None:
    search = Search(node("n0", 3), victim("v", "n0", "n0", "n0", minimum=1), gang("a", 1, gpus=2))
    assert search.states("v-0", "v-1", "v-2") == ["Running", "Releasing", "Releasing"]


def test_a_gang_loses_everything() -> None:
    search = Search(node("n0", 3), victim("v", "n0", "n0", "n0", gpus=1), gang("a", 1, gpus=3))
    assert search.states("v-0", "v-1", "v-2") == ["Releasing"] * 3


def test_a_victim_has_one_turn_to_find_another_place() -> None:
    """All of it must go, and there is room for all of it elsewhere: its minimum moves, the rest is lost."""
    hosts = [node(name, 3, labels={HOST: name}) for name in ("n0", "n1")]
    asks = gang("a", 1, gpus=3, nodeSelector={HOST: "n0"})
    search = Search(hosts, victim("v", "n0", "n0", "n0", minimum=1), asks)
    assert search.found is not None
    assert search.bench.where("v-0") == [("Pipelined", "n1")]
    assert search.states("v-1", "v-2", "a-0") == ["Releasing", "Releasing", "Pipelined"]


def test_a_victim_that_finds_its_own_place_again_is_not_evicted() -> None:
    """The gang is evicted as a whole. One task moves beside the other, and the other's eviction is cancelled."""
    hosts = [node("n0", 1, labels={HOST: "n0"}), node("n1", 2, labels={HOST: "n1"})]
    search = Search(hosts, victim("v", "n0", "n1"), gang("a", 1, nodeSelector={HOST: "n0"}))
    assert search.found is not None
    assert search.bench.where("v-0", "v-1") == [("Pipelined", "n1"), ("Running", "n1")]
    search.found.commit()
    session = search.bench.session
    assert [session.task_key(row) for row, _ in session.decisions.evicted] == ["default/v-0"]


def test_a_victim_that_was_moved_stays_in_the_scenario_of_the_next_step() -> None:
    """In the first step it moves next door. In the second another has to go, on another node."""
    pool = {"pool": "x"}
    hosts = [node("n0", 1, labels=pool), node("n1", 1), node("n2", 1, labels=pool)]
    victims = [victim("young", "n0", created=NEW), victim("old", "n2")]
    search = Search(hosts, victims, gang("a", 2, nodeSelector=pool))
    assert search.judged == [(1, ["young"]), (2, ["old", "young"])]
    assert search.states("a-0", "a-1") == ["Pipelined"] * 2
    assert sorted(search.states("young-0", "old-0")) == ["Pipelined", "Releasing"]


def test_of_several_sub_groups_each_step_needs_what_it_holds() -> None:
    """Half of a gang is no gang; for the time being it consists of the tasks that are looked at."""
    groups = [{"name": "head", "minMember": 1}, {"name": "work", "minMember": 2}]
    asks = gang("a", 3, groups=groups, roles=["head", "work", "work"])
    victims = [victim(f"v{number}", "n0") for number in range(3)]
    search = Search(node("n0", 3), victims, asks)
    assert [count for count, _ in search.judged] == [1, 2, 3]
    assert search.states("a-0", "a-1", "a-2") == ["Pipelined"] * 3


def test_a_step_uses_the_nodes_of_those_who_had_to_go_not_of_those_who_could_stay() -> None:
    """In the first step the wide job's pods go to the node without GPUs, where one of them runs.

    That pod stays, so the node is not one of the second step's.
    """
    wide = victim("wide", "n0", "n1", "n1", gpus=0, created=NEW)
    search = Search(node("n0", 0), node("n1", 2), wide, victim("large", "n1", gpus=2), gang("a", 2))
    assert search.found is not None
    assert search.bench.where("wide-0", "wide-1", "wide-2") == [
        ("Pipelined", "n1"),
        ("Running", "n1"),
        ("Running", "n1"),
    ]


def test_a_job_that_asks_for_a_task_that_has_left_is_served_with_those_that_wait() -> None:
    def lose(bench: Bench) -> None:
        bench.evict("a-0")
        assert len(bench.session.groups.to_allocate(bench.job("a"), simulated=True)) == 2
        bench.transaction.commit()

    parts = [node("n0", 1), node("n1", 1), victim("v", "n1"), gang("a", 2, on=["n0"])]
    search = Search(*parts, before=lose)
    assert search.found is not None
    assert search.states("a-0", "a-1", "v-0") == ["Releasing", "Pipelined", "Running"]
