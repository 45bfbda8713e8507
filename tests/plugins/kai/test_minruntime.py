"""KAI's minruntime: for how long jobs are left alone, and what of them."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from maniple.eviction.chunks import ScenarioOutcome
from maniple.objects.meta import Object
from maniple.plugins.kai.minruntime import MinRuntime
from tests.actions.allocate_scenes import NOW, Bench, gang, node
from tests.support import make

OPEN = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def queue(name: str, parent: str = "", **times: str) -> Object:
    spec: dict[str, Any] = {"parentQueue": parent, "resources": {"gpu": OPEN, "cpu": OPEN, "memory": OPEN}}
    return make("scheduling.run.ai/v2", "Queue", name, uid=name, spec=spec | times)


def running(name: str, queue: str, ago: int | None = 30, count: int = 1, minimum: int = 1) -> list[Object]:
    """A job that started so many seconds ago, or nobody knows when."""
    _, *pods = gang(name, count, minimum, queue=queue, on=["n1"] * count)
    when = {} if ago is None else {"kai.scheduler/last-start-timestamp": _text(ago)}
    spec = {"queue": queue, "minMember": minimum, "preemptibility": "preemptible"}
    api = "scheduling.run.ai/v2alpha2"
    return [make(api, "PodGroup", name, namespace="default", uid=name, annotations=when, spec=spec), *pods]


def _text(ago: int) -> str:
    return (NOW - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Asked:
    def __init__(self, *parts: Any, **arguments: str) -> None:
        self.bench = Bench(node("n1", 8), *parts)
        self._plugin = MinRuntime(self.bench.session, arguments)

    def reclaimable(self, actor: str, victim: str) -> bool:
        return self._plugin.reclaim_victim_filter(self.bench.job(actor), self.bench.job(victim))

    def preemptible(self, actor: str, victim: str) -> bool:
        return self._plugin.preempt_victim_filter(self.bench.job(actor), self.bench.job(victim))

    def accepts(self, actor: str, **victims: list[str]) -> tuple[bool, bool]:
        """Of a scenario: reclaim's answer, and preempt's."""
        self.bench.evict(*(pod for pods in victims.values() for pod in pods))
        lost = {self.bench.job(job): self.bench.rows(*pods) for job, pods in victims.items()}
        outcome = ScenarioOutcome(self.bench.job(actor), np.zeros(0, dtype=np.int64), lost)
        return (
            self._plugin.reclaim_scenario_validator(outcome),
            self._plugin.preempt_scenario_validator(outcome),
        )


ASKS = gang("asks", 1, queue="mine")
QUEUES = [queue("mine"), queue("theirs")]


def test_no_job_is_protected_unless_a_time_is_set() -> None:
    asked = Asked(QUEUES, ASKS, running("young", "theirs", ago=1))
    assert asked.reclaimable("asks", "young")
    assert asked.preemptible("asks", "young")


@pytest.mark.parametrize(("ago", "free"), [(59, False), (60, True), (None, True)])
def test_a_job_is_protected_from_its_start_until_the_time_is_over(ago: int | None, free: bool) -> None:
    asked = Asked(
        QUEUES,
        ASKS,
        running("job", "theirs", ago),
        defaultReclaimMinRuntime="1m",
        defaultPreemptMinRuntime="1m",
    )
    assert asked.reclaimable("asks", "job") is free
    assert asked.preemptible("asks", "job") is free


def test_each_of_the_two_has_its_own_time() -> None:
    asked = Asked(QUEUES, ASKS, running("job", "theirs"), defaultReclaimMinRuntime="1m")
    assert not asked.reclaimable("asks", "job")
    assert asked.preemptible("asks", "job")


def test_what_cannot_be_read_or_is_negative_is_no_time() -> None:
    asked = Asked(
        QUEUES,
        ASKS,
        running("job", "theirs"),
        defaultReclaimMinRuntime="-1m",
        defaultPreemptMinRuntime="soon",
    )
    assert asked.reclaimable("asks", "job")
    assert asked.preemptible("asks", "job")
    assert any("defaultPreemptMinRuntime" in text for text in asked.bench.session.warnings)


def test_an_unknown_method_is_reported() -> None:
    asked = Asked(QUEUES, ASKS, reclaimResolveMethod="guess")
    assert any("reclaimResolveMethod" in text for text in asked.bench.session.warnings)


def test_for_preemption_the_nearest_queue_that_says_something_counts() -> None:
    tree = [
        queue("mine"),
        queue("top", preemptMinRuntime="1h"),
        queue("silent", "top"),
        queue("short", "top", preemptMinRuntime="1s"),
    ]
    asked = Asked(tree, ASKS, running("a", "silent"), running("b", "short"))
    assert not asked.preemptible("asks", "a")
    assert asked.preemptible("asks", "b")


def test_between_trees_the_victim_s_top_queue_is_asked_alone() -> None:
    tree = [queue("mine"), queue("top"), queue("leaf", "top", reclaimMinRuntime="1h")]
    assert Asked(tree, ASKS, running("job", "leaf")).reclaimable("asks", "job")
    tree = [queue("mine"), queue("top", reclaimMinRuntime="1h"), queue("leaf", "top", reclaimMinRuntime="1s")]
    assert not Asked(tree, ASKS, running("job", "leaf")).reclaimable("asks", "job")


def test_inside_a_tree_it_is_the_branch_towards_the_victim_and_then_upwards() -> None:
    tree = [
        queue("top", reclaimMinRuntime="1h"),
        queue("mine", "top"),
        queue("branch", "top", reclaimMinRuntime="1s"),
        queue("leaf", "branch", reclaimMinRuntime="1h"),
        queue("silent", "top"),
    ]
    asked = Asked(tree, ASKS, running("a", "leaf"), running("b", "silent"))
    assert asked.reclaimable("asks", "a")
    assert not asked.reclaimable("asks", "b")


def test_with_the_method_queue_it_is_looked_for_from_the_leaf_up() -> None:
    tree = [queue("mine"), queue("top"), queue("leaf", "top", reclaimMinRuntime="1h")]
    asked = Asked(tree, ASKS, running("job", "leaf"), reclaimResolveMethod="queue")
    assert not asked.reclaimable("asks", "job")


def test_a_queue_s_time_that_cannot_be_read_is_reported_and_counts_as_none() -> None:
    asked = Asked([queue("mine"), queue("theirs", preemptMinRuntime="soon")], ASKS, running("job", "theirs"))
    assert asked.preemptible("asks", "job")
    assert any("Queue theirs: spec.preemptMinRuntime" in text for text in asked.bench.session.warnings)


def test_a_protected_job_with_tasks_to_spare_may_lose_these() -> None:
    job = running("job", "theirs", count=3, minimum=2)
    times = {"defaultReclaimMinRuntime": "1m", "defaultPreemptMinRuntime": "1m"}
    asked = Asked(QUEUES, ASKS, job, **times)
    assert asked.reclaimable("asks", "job")
    assert asked.accepts("asks", job=["job-2"]) == (True, True)
    assert Asked(QUEUES, ASKS, job, **times).accepts("asks", job=["job-2", "job-1"]) == (False, False)


def test_a_job_that_is_not_protected_may_lose_everything() -> None:
    job = running("job", "theirs", ago=300, count=3, minimum=2)
    asked = Asked(QUEUES, ASKS, job, defaultReclaimMinRuntime="1m", defaultPreemptMinRuntime="1m")
    assert asked.accepts("asks", job=["job-2", "job-1", "job-0"]) == (True, True)
