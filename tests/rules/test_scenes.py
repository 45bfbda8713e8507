"""Small clusters in which one rule decides, for rules that no other test shows."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from maniple.actions.volcano.gang_placing import GangPlacer
from maniple.cluster.resources import CPU
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.placement.engine import Placement
from maniple.planner import Planner
from maniple.plugins.kai.cluster_total import cluster_total
from tests import kai_support as kai
from tests.corpus import replay, store
from tests.pages import ROOT
from tests.plugins.kai import fairness_scenes as fairness
from tests.plugins.opening import session_on, tasks
from tests.plugins.planning import planned
from tests.soak.clusters import Scenario
from tests.soak.course import follow
from tests.soak.follower import Follower
from tests.soak.recorded import scenario_of
from tests.support import group, node, pod, queue

BOTH = pytest.mark.parametrize("strict", [False, True])
GPU = "nvidia.com/gpu"


@BOTH
def test_a_gang_that_lost_pods_comes_first_except_in_volcano(strict: bool) -> None:
    whole = [group("a", 1), pod("a-0", {"cpu": "2"}, group="a")]
    broken = [
        group("b", 2),
        pod("b-0", {"cpu": "2"}, group="b", on="n"),
        pod("b-1", {"cpu": "2"}, group="b"),
    ]
    objects: list[Object] = [node("n", {"cpu": "4"}), queue("default"), *whole, *broken]
    plan = planned(objects, "predicates", strict=strict)
    assert list(plan.binds) == ["default/a-0" if strict else "default/b-1"]


@BOTH
def test_half_a_gang_is_taken_back_after_a_time_except_in_volcano(strict: bool) -> None:
    bound = datetime(2026, 1, 1, tzinfo=UTC)

    def after(seconds: float, phase: str = "Pending", period: str = "") -> list[str]:
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": bound.isoformat()}
        held = pod("g-0", {"cpu": "2"}, group="g", on="n", status={"phase": phase, "conditions": [scheduled]})
        missing = pod("g-1", {"cpu": "4"}, group="g")
        objects = [node("n", {"cpu": "4"}), queue("default"), group("g", 2), held, missing]
        options = {"stalenessGracePeriod": period} if period else None
        now = bound + timedelta(seconds=seconds)
        return planned(objects, "predicates", strict=strict, now=now, options=options).evictions

    assert after(59) == []
    assert after(60) == ([] if strict else ["default/g-0"])
    assert after(60, phase="Running") == []
    assert after(60, period="2m") == []
    assert after(3600, period="-1s") == []


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
@BOTH
def test_pods_on_nodes_that_are_not_ours_fill_a_queue_only_in_volcano(strict: bool, plugin: str) -> None:
    held = [group("a"), pod("a-0", {"cpu": "4"}, group="a", on="elsewhere", status={"phase": "Running"})]
    waits = [group("b"), pod("b-0", {"cpu": "2"}, group="b")]
    objects = [node("n", {"cpu": "4"}), queue("default", capability={"cpu": "4"}), *held, *waits]
    plan = planned(objects, "predicates", plugin, strict=strict)
    assert list(plan.binds) == ([] if strict else ["default/b-0"])


@BOTH
def test_a_gated_pod_without_requests_counts_only_in_volcano(strict: bool) -> None:
    gated = pod("g-1", group="g", schedulingGates=[{"name": "example.com/wait"}])
    objects = [node("n"), queue("default"), group("g", 2), pod("g-0", {"cpu": "2"}, group="g"), gated]
    assert len(planned(objects, "predicates", strict=strict).binds) == strict


@BOTH
def test_room_that_others_wait_for_is_free_for_a_gang_only_in_volcano(strict: bool) -> None:
    objects = [node("n", {"cpu": "4"}), queue("default"), group("g"), pod("g-0", {"cpu": "1"}, group="g")]
    session = session_on(objects, strict=strict)
    Transaction(session).pipeline(tasks(session, "g-0"), np.zeros(1, dtype=np.intp))
    free = GangPlacer(session, Placement(session)).free(np.ones(1, dtype=np.bool_))
    assert free[CPU] == (4000 if strict else 3000)


def test_only_leaves_of_the_queue_tree_take_jobs() -> None:
    objects = [
        kai.gpu_node("n", 1),
        kai.queue("top"),
        kai.queue("leaf", "top"),
        kai.group("g", 1, queue="top"),
        kai.pod("g-0", {GPU: "1"}, group="g"),
    ]
    planner = Planner(profile="kai")
    (job,) = planner.cycle(planner.build(objects)).jobs.values()
    assert any("has queues below it" in reason for reason in job.reasons)


@BOTH
def test_pods_of_others_leave_nothing_to_divide_and_less_than_nothing_in_kai(strict: bool) -> None:
    foreign = fairness.task("foreign", {GPU: "2"}, on="n1", scheduler="other")
    scene = fairness.Scene(fairness.node(gpus=1), fairness.queue("q"), foreign, strict=strict)
    gpus = cluster_total(scene.session, scene.plugin._books.counting)[2]
    assert gpus == (-1 if strict else 0)


@BOTH
def test_a_leftover_gpu_is_given_whole_only_in_kai(strict: bool) -> None:
    part: dict[str, Any] = {"gpus": 0, "annotations": {"gpu-fraction": "0.75"}}
    scene = fairness.Scene(
        fairness.node(gpus=1),
        fairness.queue("a"),
        fairness.queue("b"),
        fairness.job("few", "a", pending=1, **part),
        fairness.job("many", "b", pending=9),
        strict=strict,
    )
    assert scene.fair("a") == (1 if strict else 0.75)


@BOTH
def test_claims_on_a_gpu_that_two_share_are_miscounted_only_in_kai(strict: bool) -> None:
    parts = [kai.pod(name, group="g", fraction="0.5") for name in ("p", "q")]
    session = kai.open_session(
        kai.queue("default"), kai.group("g", 2), kai.gpu_node("n", 1), *parts, strict=strict
    )
    transaction = Transaction(session)
    for row in (0, 1):
        transaction.allocate(np.array([row]), np.zeros(1, dtype=np.intp), groups=[("x",)])
    transaction.to_pipelined(int(session.tasks.job[0]))
    assert int(session.nodes.releasing[session.gpus.dimension, 0]) == (0 if strict else -1000)


@pytest.mark.parametrize("case", ["volcano-00068", "volcano-00642", "volcano-01567", "kai-01571"])
def test_a_recorded_cluster_is_decided_as_the_original_did(case: str) -> None:
    cases = {one["id"]: one for one in store.recorded(case.partition("-")[0])[1]}
    assert replay.differences(cases[case]) == []


def reproduction(name: str) -> Scenario:
    """A cluster on which plans once went wrong."""
    path = ROOT / "tests" / "regressions" / "reproductions" / f"{name}.json"
    return scenario_of(json.loads(path.read_text()))


def goes_well(name: str) -> bool:
    """Whether it comes to rest without a violation."""
    return not follow(reproduction(name), seconds=5).violations


def test_a_queue_loses_nothing_for_an_unrequested_resource() -> None:
    follower = Follower(reproduction("kai-reclaim-of-what-is-not-asked-for"))
    for _ in range(3):
        plan = follower.plan()
        assert not [one.pod for one in plan.evicted if one.action == "reclaim"]
        follower.carry_out(plan)
        follower.wait(long=False)


def test_the_pod_that_reserves_a_gpu_has_a_place() -> None:
    assert goes_well("kai-no-place-for-a-reservation")


def test_a_pod_placed_in_the_same_cycle_is_placed_anew() -> None:
    assert goes_well("kai-bound-and-evicted-forever")
