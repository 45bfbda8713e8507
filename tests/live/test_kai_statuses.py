"""Conditions, annotations and events of KAI's groups and pods, written when something changed and not
otherwise."""

import asyncio
from typing import Any

import pytest

from maniple.objects.core import ConfigMap, Node, Pod
from maniple.objects.kai import KaiPodGroup
from tests.live.kai_objects import FREE, gang, group, node, pod, queue
from tests.live.kai_stage import KaiStage, played
from tests.live.objects import NAMESPACE

STALE_SINCE = "kai.scheduler/stale-podgroup-timestamp"
LAST_START = "kai.scheduler/last-start-timestamp"
TRAIN = f"PodGroup {NAMESPACE}/train"


def limited(**amounts: float) -> dict[str, Any]:
    """A queue's resources with a limit of GPUs."""
    return {"resources": {"gpu": {**FREE, **amounts}, "cpu": FREE, "memory": FREE}}


# -- groups ------------------------------------------------------------------------------------------------------------


def test_each_new_cause_gets_the_next_number_and_the_same_one_is_not_written_again() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1", 2), *gang("train", 4))
        await asyncio.sleep(5)
        (first,) = stage.told("train")
        assert first["transitionID"] == "1"
        stage.create(*gang("small", 1))  # takes one of the two, so that the words change
        await asyncio.sleep(60)
        (second,) = stage.told("train")
        assert second["transitionID"] == "2"
        assert "were found for 1 pods" in second["message"]
        cycles, written = stage.scheduler.cycles, stage.group("train")["metadata"]["resourceVersion"]
        stage.create(queue("other"))
        await asyncio.sleep(60)
        assert stage.scheduler.cycles > cycles
        assert stage.group("train")["metadata"]["resourceVersion"] == written

    played(scene)


def test_while_nothing_changes_nothing_is_written_and_no_cycle_runs() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1", 2), *gang("train", 4), *gang("runs", 2))
        await asyncio.sleep(20)
        cycles, versions = stage.scheduler.cycles, _versions(stage)
        await asyncio.sleep(3600)
        assert (stage.scheduler.cycles, _versions(stage)) == (cycles, versions)

    played(scene)


def _versions(stage: KaiStage) -> list[str]:
    return [
        raw["metadata"]["resourceVersion"] for kind in (Pod, KaiPodGroup) for raw in stage.store.list(kind)[0]
    ]


def test_conditions_of_other_node_pools_stay_with_all_that_they_say() -> None:
    theirs = {
        "type": "UnschedulableOnNodePool",
        "nodePool": "b",
        "status": "True",
        "reason": "Unschedulable",
        "message": "theirs",
        "transitionID": "7",
        "reasons": [{"reason": "OverLimit", "message": "m", "details": {"queueDetails": {"name": "q"}}}],
    }

    async def scene(stage: KaiStage) -> None:
        waits = group("train", 4)
        waits["status"] = {"schedulingConditions": [theirs], "resourcesStatus": {"requested": {"cpu": "4"}}}
        stage.create(queue(), node("n1", 2), waits, *gang("train", 4)[1:])
        await asyncio.sleep(5)
        before, ours = stage.told("train")
        assert before == theirs
        assert (ours["nodePool"], ours["transitionID"]) == ("default", "8")
        assert stage.group("train")["status"]["resourcesStatus"] == {"requested": {"cpu": "4"}}
        stage.create(node("n2", 2))
        await asyncio.sleep(5)
        assert stage.told("train") == [theirs]

    played(scene)


def test_a_limit_is_reported_with_the_amounts_of_the_queue() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(**limited(limit=2)), node("n1"), *gang("train", 4))
        await asyncio.sleep(5)
        (why,) = stage.told("train")[0]["reasons"]
        assert why["reason"] == "OverLimit"
        assert "its limit of GPUs" in why["message"]
        details = why["details"]["queueDetails"]
        assert (details["name"], details["queueResourceLimits"]["nvidia.com/gpu"]) == ("team", "2")
        assert stage.condition("train-0")["message"] == why["message"]

    played(scene)


@pytest.mark.parametrize(
    ("queues", "words"),
    [
        ([], "queue 'team' does not exist"),
        ([queue(parent="nobody")], "a queue above 'team' does not exist"),
        ([queue(), queue("child", "team")], "queue 'team' has queues below it"),
    ],
)
def test_a_queue_that_takes_no_jobs_is_named(queues: list[dict[str, Any]], words: str) -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(*queues, node("n1"), *gang("train", 2))
        await asyncio.sleep(5)
        (told,) = stage.told("train")
        assert words in told["message"]
        assert told["reasons"][0]["reason"] == "QueueDoesNotExist"
        assert words in stage.condition("train-0")["message"]

    played(scene)


def test_a_job_that_runs_and_could_grow_has_no_condition_but_an_event() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1", 2), *gang("train", 4, minimum=2))
        await asyncio.sleep(5)
        assert sorted(stage.phases().values()) == ["Pending", "Pending", "Running", "Running"]
        assert stage.told("train") == []
        assert [where for where, _ in stage.events("Unschedulable") if where == TRAIN] == [TRAIN]

    played(scene)


def test_a_group_that_is_tried_once_is_tried_once_and_says_where() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1", 2), *gang("train", 4, schedulingBackoff=1))
        await asyncio.sleep(5)
        assert stage.told("train")[0]["message"].startswith("Node-Pool 'default': ")
        stage.create(node("n2", 2))
        await asyncio.sleep(5)
        assert set(stage.phases().values()) == {"Pending"}

    played(scene)


# -- incomplete and broken gangs ---------------------------------------------------------------------------------------


def test_a_gang_that_lacks_pods_says_so_on_group_and_pods() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1"), *gang("train", 2, minimum=3))
        await asyncio.sleep(5)
        words = "needs 3 pods, 2 exist, of which 0 are gated"
        ((where, note),) = stage.events("NotReady")
        assert where == TRAIN
        assert words in note
        assert words in stage.condition("train-0")["message"]
        assert stage.told("train") == []
        stage.create(pod("train-2", "train"))
        await asyncio.sleep(5)
        assert set(stage.phases().values()) == {"Running"}

    played(scene)


def test_a_broken_gang_is_noted_and_evicted_after_its_time_even_though_a_pod_of_it_waits() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1", 3), *gang("train", 3))
        await asyncio.sleep(5)
        stage.store.remove(Pod, f"{NAMESPACE}/train-0")
        await asyncio.sleep(2)
        assert STALE_SINCE in stage.annotations("train")
        ((where, note),) = stage.events("StaleJob")
        assert where == TRAIN
        assert "2 of the 3 required pods" in note
        since = stage.annotations("train")[STALE_SINCE]
        await asyncio.sleep(50)
        assert len(stage.phases()) == 2
        assert stage.annotations("train")[STALE_SINCE] == since
        await asyncio.sleep(20)
        assert stage.phases() == {}
        assert {where for where, _ in stage.events("Evict")} == {TRAIN}
        assert all(
            "is evicted: its gang has had fewer than 3 pods for 60 s" in note
            for _, note in stage.events("Evict")
        )

    played(scene)


def test_a_gang_that_is_whole_again_is_no_longer_noted_as_broken() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1", 3), *gang("train", 3))
        await asyncio.sleep(5)
        started = stage.annotations("train")[LAST_START]
        stage.store.remove(Pod, f"{NAMESPACE}/train-0")
        await asyncio.sleep(2)
        stage.create(pod("train-0", "train"))
        await asyncio.sleep(5)
        assert stage.annotations("train") == {LAST_START: started}

    played(scene)


def test_a_foreign_gate_on_an_extra_pod_is_not_reported() -> None:
    async def scene(stage: KaiStage) -> None:
        extra = pod("train-1", "train")
        extra["spec"]["schedulingGates"] = [{"name": "theirs"}]
        stage.create(queue(), node("n1"), *gang("train", 1), extra)
        await asyncio.sleep(5)
        assert stage.phases() == {"train-0": "Running", "train-1": "Pending"}
        assert stage.events("Unschedulable") == stage.events("NotReady") == []
        assert not stage.condition("train-1")

    played(scene)


# -- pods --------------------------------------------------------------------------------------------------------------


def test_each_waiting_pod_has_the_condition_and_one_event() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1", 2), *gang("train", 3))
        await asyncio.sleep(5)
        for number in range(3):
            said = stage.condition(f"train-{number}")
            assert (said["status"], said["reason"]) == ("False", "Unschedulable")
        told = [where for where, _ in stage.events("Unschedulable")]
        assert sorted(told) == sorted([TRAIN, *(f"Pod {NAMESPACE}/train-{number}" for number in range(3))])

    played(scene)


def test_other_numbers_are_no_news_to_pods() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1", 2), *gang("train", 3))
        for number in range(3):
            await asyncio.sleep(100)
            stage.create(node(f"useless-{number}", 0))
        await asyncio.sleep(100)
        told = [where for where, _ in stage.events("Unschedulable")]
        assert told.count(f"Pod {NAMESPACE}/train-0") == 1
        assert told.count(TRAIN) > 1
        assert "4 node(s)" in stage.condition("train-0")["message"]

    played(scene)


def test_why_a_pod_waited_is_not_written_once_it_has_its_place() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.world.binder.stop()
        stage.create(queue(), node("n1", 1), *gang("train", 1, minimum=2))
        await asyncio.sleep(0.3)
        words = stage.condition("train-0")["message"]
        stage.create(pod("train-1", "train"))  # now it is the room that lacks, which is to be said in a while
        await asyncio.sleep(0.2)
        stage.create(node("n2", 1))
        await asyncio.sleep(5)
        assert stage.requests().keys() == {"train-0", "train-1"}
        assert stage.condition("train-0")["message"] == words

    played(scene)


def test_a_group_says_why_it_waits_until_the_binder_has_bound_its_pods() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.world.binder.stop()
        stage.create(queue(), node("n1", 1), *gang("train", 2))
        await asyncio.sleep(2)
        (told,) = stage.told("train")
        stage.create(node("n2", 1))
        await asyncio.sleep(5)
        assert len(stage.requests()) == 2
        assert stage.told("train") == [told]
        assert len(stage.scheduler.binding.pods) == 2
        for name, request in stage.requests().items():
            chosen = {"nodeName": request["spec"]["selectedNode"]}
            stage.store.patch(Pod, f"{NAMESPACE}/{name}", {"spec": chosen})
        await asyncio.sleep(2)
        assert stage.told("train") == []
        assert not stage.scheduler.binding.pods

    played(scene)


def test_a_group_may_ask_that_its_pods_are_not_marked() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1", 2), *gang("train", 3, markUnschedulable=False), *gang("other", 3))
        await asyncio.sleep(5)
        assert [bool(stage.condition(f"train-{number}")) for number in range(3)] == [False] * 3
        assert [bool(stage.condition(f"other-{number}")) for number in range(3)] == [True] * 3
        told = [where for where, _ in stage.events("Unschedulable")]
        assert f"Pod {NAMESPACE}/train-0" in told
        assert stage.told("train"), "the group still says why"

    played(scene)


# -- evictions ---------------------------------------------------------------------------------------------------------


async def preempted(stage: KaiStage) -> None:
    stage.create(queue(), node("n1", 1), *gang("low", 1))
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    stage.create({**high, "value": 75})
    await asyncio.sleep(5)
    assert stage.phases() == {"low-0": "Running"}
    stage.create(*gang("train", 1, priorityClassName="high"))


def test_a_preemption_is_reported_on_the_group_and_the_claim_on_the_preemptor() -> None:
    async def scene(stage: KaiStage) -> None:
        await preempted(stage)
        await asyncio.sleep(0.1)
        pod = f"Pod {NAMESPACE}/low-0"
        words = f"{pod} was preempted by higher priority workload {NAMESPACE}/train"
        rule = f"{pod} makes room for job {NAMESPACE}/train, which has a higher priority in the same queue."
        assert stage.events("Evict") == [(f"PodGroup {NAMESPACE}/low", f"{words}\n{rule}")]
        (event,) = [one for one in stage.port.events if one.reason == "Evict"]
        assert event.annotations == {
            "num-evicted-pods": "1",
            "evictor-action-type": "preempt",
            "evictor-pod-group-name": "train",
            "evictor-pod-group-namespace": NAMESPACE,
        }
        ((where, note),) = stage.events("Pipelined")
        assert where == f"Pod {NAMESPACE}/train-0"
        assert "being released on n1" in note
        assert not stage.condition("low-0", "DisruptionTarget")
        assert stage.of_kind(Pod)["train-0"]["status"]["nominatedNodeName"] == "n1"
        await asyncio.sleep(5)
        assert stage.phases() == {"train-0": "Running"}

    played(scene)


def test_if_it_is_wanted_a_pod_is_marked_before_it_is_evicted() -> None:
    async def scene(stage: KaiStage) -> None:
        await preempted(stage)
        await asyncio.sleep(0.1)
        mark = stage.condition("low-0", "DisruptionTarget")
        assert (mark["status"], mark["reason"]) == ("True", "PreemptionByScheduler")
        assert f"was preempted by higher priority workload {NAMESPACE}/train\n" in mark["message"]

    played(scene, options={"updatePodEvictionCondition": True})


def test_a_reclaimed_pod_is_reported_with_the_amounts_of_both_queues_before() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue("rich", **limited(quota=1)), queue("poor", **limited(quota=1)), node("n1", 2))
        stage.create(*gang("a", 1, queue="rich"), *gang("b", 1, queue="rich"))
        await asyncio.sleep(5)
        assert set(stage.phases().values()) == {"Running"}
        stage.create(*gang("train", 1, queue="poor"))
        await asyncio.sleep(0.1)
        ((_, note),) = stage.events("Evict")
        first, taker, loser, rule = note.split("\n")
        assert rule.endswith(
            f"makes room for job {NAMESPACE}/train of queue poor, which stays within its fair share, while queue rich "
            "has more than its own."
        )
        assert first.endswith(f"was preempted by workload {NAMESPACE}/train.")
        assert taker.startswith("poor uses GPU: 0, CPU: 0 (cores), memory: 0 (GB) with a quota of GPU: 1, ")
        assert loser.startswith("rich uses GPU: 2, CPU: 2 (cores), memory: 0 (GB) with a quota of GPU: 1, ")
        assert loser.endswith("and queue priority of 100.")

    played(scene)


def test_a_pod_that_is_moved_for_another_is_reported_so() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1", 2), node("n2", 2))
        for name, where in (("one", "n1"), ("two", "n2")):
            runs = pod(f"{name}-0", name)
            runs["spec"]["nodeName"], runs["status"] = where, {"phase": "Running"}
            stage.create(group(name, 1), runs)
        stage.create(*gang("train", 1, gpus=2))
        await asyncio.sleep(1)
        ((_, note),) = stage.events("Evict")
        assert note.startswith(f"Pod {NAMESPACE}/")
        first, rule = note.split("\n")
        assert first.endswith(
            "-0 was preempted and rescheduled due to bin packing (resource consolidation) procedure"
        )
        assert rule.endswith(f"and makes room for job {NAMESPACE}/train.")
        assert [where for where, _ in stage.events("Pipelined")] == [f"Pod {NAMESPACE}/train-0"]
        await asyncio.sleep(5)
        assert stage.phases()["train-0"] == "Running"

    played(scene)


# -- what it minds -----------------------------------------------------------------------------------------------------


def test_a_node_that_is_not_ready_takes_nothing_until_it_is() -> None:
    async def scene(stage: KaiStage) -> None:
        ill = node("n1")
        ill["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
        stage.create(queue(), ill, *gang("train", 1))
        await asyncio.sleep(5)
        assert stage.phases() == {"train-0": "Pending"}
        assert "NotReady" in stage.condition("train-0")["message"]
        stage.store.patch(Node, "n1", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
        await asyncio.sleep(5)
        assert stage.phases() == {"train-0": "Running"}

    played(scene)


def test_config_map_contents_heartbeats_and_foreign_statuses_start_no_cycle() -> None:
    async def scene(stage: KaiStage) -> None:
        lock = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "lock", "namespace": NAMESPACE}}
        well = node("n1", 2)
        well["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        stage.create(queue(), well, lock, *gang("train", 4), *gang("runs", 1))
        await asyncio.sleep(20)
        before = stage.scheduler.cycles
        for number in range(30):
            beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"2026-01-01T00:00:{number:02d}Z"}
            stage.store.patch(Node, "n1", {"status": {"conditions": [beat]}})
            stage.store.patch(ConfigMap, f"{NAMESPACE}/lock", {"data": {"held": str(number)}})
            theirs = {"type": "UnschedulableOnNodePool", "nodePool": "b", "message": str(number)}
            status = {
                "resourcesStatus": {"requested": {"cpu": str(number)}},
                "schedulingConditions": [theirs],
            }
            stage.store.patch(KaiPodGroup, f"{NAMESPACE}/runs", {"status": status})
            await asyncio.sleep(1)
        assert stage.scheduler.cycles == before

    played(scene)


def test_a_queue_s_least_time_to_run_is_waited_for() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(
            queue("rich", reclaimMinRuntime="1m", **limited(quota=1)), queue("poor", **limited(quota=1))
        )
        stage.create(node("n1", 2), *gang("a", 2, queue="rich"))
        await asyncio.sleep(5)
        stage.create(*gang("train", 1, queue="poor"))
        await asyncio.sleep(40)
        assert stage.phases()["train-0"] == "Pending"
        await asyncio.sleep(30)
        assert stage.phases()["train-0"] == "Running"

    played(scene)
