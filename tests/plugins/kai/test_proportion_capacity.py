"""Limits and quotas that a job must keep to, for KAI's proportion: who is in the way, and in which words."""

from typing import Any

import numpy as np
import pytest

from maniple.framework.points import Capacity
from maniple.framework.transactions.transaction import Transaction
from tests.plugins.kai.fairness_scenes import UNLIMITED, Scene, job, node, queue

TOP = queue("top", UNLIMITED)
LARGE = node("n1", 8, labels={"nvidia.com/gpu.memory": "80000"})
SMALL = node("n2", 8, labels={"nvidia.com/gpu.memory": "40000"})


def leaf(quota: float = 0.0, **more: Any) -> Any:
    return queue("a", quota, parent="top", **more)


def over(scene: Scene, name: str) -> Capacity:
    job = scene.job(name)
    return scene.session.hooks.is_job_over_capacity(job, scene.session.groups.to_allocate(job))


def test_a_job_within_the_limit_is_let_through() -> None:
    scene = Scene(node(), TOP, leaf(limit=3), job("r", "a", running=2), job("j", "a", pending=1))
    assert over(scene, "j").schedulable


def test_a_job_beyond_the_limit_is_refused_with_the_queue_s_books() -> None:
    scene = Scene(
        node(),
        TOP,
        leaf(1, limit=3, display="Team A"),
        job("r", "a", running=2),
        job("j", "a", pending=1, gpus=2),
    )
    answer = over(scene, "j")
    assert (answer.schedulable, answer.reason) == (False, "OverLimit")
    assert answer.message == (
        "Team A has reached its limit of GPUs. "
        "Limit is 3 GPUs, currently 2 GPUs allocated and workload requested 2 GPUs"
    )
    assert answer.details is not None
    told = answer.details["queueDetails"]
    assert told["name"] == "a"
    assert told["queueRequestedResources"] == {"cpu": "3", "memory": "3G", "nvidia.com/gpu": "4"}
    assert told["queueDeservedResources"] == {"cpu": "-1", "memory": "-1", "nvidia.com/gpu": "1"}
    assert told["queueAllocatedResources"] == {"cpu": "2", "memory": "2G", "nvidia.com/gpu": "2"}
    assert told["queueAllocatedNonPreemptibleResources"] == {"cpu": "0", "memory": "0", "nvidia.com/gpu": "0"}
    assert told["queueResourceLimits"]["nvidia.com/gpu"] == "3"
    assert told["podGroupRequestedResources"] == {"cpu": "1", "memory": "1G", "nvidia.com/gpu": "2"}
    assert told["podGroupRequestedNonPreemptibleResources"]["cpu"] == "0"


def test_parts_of_devices_are_reported_in_thousandths() -> None:
    wants = job("j", "a", pending=1, gpus=0, annotations={"gpu-fraction": "0.25"}, requests={"cpu": "1500m"})
    answer = over(Scene(node(), TOP, leaf(limit=0), wants), "j")
    assert answer.details is not None
    assert answer.details["queueDetails"]["podGroupRequestedResources"] == {
        "cpu": "1500m",
        "memory": "1G",
        "nvidia.com/gpu": "250m",
    }
    assert answer.message.endswith("workload requested 0.25 GPUs")


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        (
            {"cpu": {"limit": 1500}},
            "a has reached its limit of CPU cores. "
            "Limit is 1.5 cores, currently 1 cores allocated and workload requested 1 cores",
        ),
        (
            {"memory": {"limit": 1500}},
            "a has reached its limit of memory. "
            "Limit is 1.5 GB, currently 1 GB allocated and workload requested 1 GB",
        ),
    ],
)
def test_cpu_and_memory_are_limited_too(stated: dict[str, Any], words: str) -> None:
    scene = Scene(node(), TOP, leaf(**stated), job("r", "a", running=1), job("j", "a", pending=1))
    assert over(scene, "j").message == words


def test_an_unset_limit_lets_nothing_through() -> None:
    assert over(Scene(node(), TOP, leaf(limit=0), job("j", "a", pending=1)), "j").reason == "OverLimit"


def test_what_a_job_does_not_ask_for_is_not_looked_at() -> None:
    """The queue is beyond its limit of GPUs already; a job without any is let through."""
    scene = Scene(node(), TOP, leaf(limit=1), job("r", "a", running=2), job("j", "a", pending=1, gpus=0))
    assert over(scene, "j").schedulable


def test_limits_hold_all_the_way_up() -> None:
    top = queue("top", UNLIMITED, limit=1)
    answer = over(Scene(node(), top, leaf(), job("j", "a", pending=1, gpus=2)), "j")
    assert answer.message.startswith("top has reached")


def test_a_gang_is_looked_at_as_a_whole() -> None:
    scene = Scene(
        node(), TOP, leaf(limit=2), job("j", "a", pending=3, minimum=3), job("k", "a", pending=3, minimum=2)
    )
    assert not over(scene, "j").schedulable
    assert over(scene, "k").schedulable  # the third is not needed


def test_only_the_tasks_in_question_count() -> None:
    scene = Scene(node(), TOP, leaf(limit=2), job("j", "a", pending=3, minimum=3))
    assert scene.plugin.is_job_over_capacity(scene.job("j"), scene.rows("j-0", "j-1")).schedulable


def test_a_job_that_is_not_preemptible_stays_within_the_quota() -> None:
    scene = Scene(
        node(),
        TOP,
        leaf(2),
        job("r", "a", running=1, firm=True),
        job("s", "a", running=3),
        job("j", "a", pending=1, gpus=2, firm=True),
        job("k", "a", pending=1, gpus=1, firm=True),
        job("l", "a", pending=1, gpus=2),
    )
    answer = over(scene, "j")
    assert answer.reason == "NonPreemptibleOverQuota"
    assert answer.message == (
        "Non-preemptible workload is over quota. Workload requested 2 GPUs, but a quota is 2 GPUs, "
        "while 1 GPUs are already allocated for non-preemptible pods. Use a preemptible workload to go over quota."
    )
    assert answer.details is not None
    told = answer.details["queueDetails"]
    assert told["podGroupRequestedNonPreemptibleResources"]["nvidia.com/gpu"] == "2"
    assert over(scene, "k").schedulable
    assert over(scene, "l").schedulable


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        (
            {"cpu": {"quota": 500}},
            "Workload requested 1 CPU cores, but a quota is 0.5 cores, while 0 cores are",
        ),
        ({"memory": {"quota": 500}}, "Workload requested 1 GB memory, but a quota is 0.5 GB, while 0 GB are"),
    ],
)
def test_quotas_of_cpu_and_memory_have_their_own_words(stated: dict[str, Any], words: str) -> None:
    scene = Scene(node(), TOP, leaf(UNLIMITED, **stated), job("j", "a", pending=1, firm=True))
    assert words in over(scene, "j").message


def test_quotas_hold_all_the_way_up() -> None:
    scene = Scene(node(), queue("top", 1), leaf(UNLIMITED), job("j", "a", pending=1, gpus=2, firm=True))
    assert "but top quota is 1 GPUs" in over(scene, "j").message


def test_the_limit_is_looked_at_before_the_quota() -> None:
    scene = Scene(node(), TOP, leaf(1, limit=1), job("j", "a", pending=1, gpus=2, firm=True))
    assert over(scene, "j").reason == "OverLimit"


def test_before_preempting_only_the_quota_of_those_that_are_not_preemptible_counts() -> None:
    scene = Scene(
        node(),
        TOP,
        leaf(1, limit=1),
        job("j", "a", pending=1, gpus=2, firm=True),
        job("k", "a", pending=1, gpus=2),
    )
    ask = scene.session.hooks.is_non_preemptible_job_over_queue_quota
    assert ask(scene.job("j"), scene.rows("j-0")).reason == "NonPreemptibleOverQuota"
    assert ask(scene.job("k"), scene.rows("k-0")).schedulable


def test_what_was_placed_in_the_session_counts() -> None:
    scene = Scene(node(), TOP, leaf(limit=2), job("j", "a", pending=2), job("k", "a", pending=1))
    Transaction(scene.session).allocate(scene.rows("j-0", "j-1"), np.zeros(2, dtype=np.intp))
    assert not over(scene, "k").schedulable


def test_a_job_outside_the_queue_tree_is_not_checked() -> None:
    assert over(Scene(node(), TOP, job("j", "gone", pending=1)), "j").schedulable


# -- amounts of GPU memory ------------------------------------------------------------------------------------------


def memory_job(amount: int, pods: int = 1, devices: int = 1) -> Any:
    notes = {"gpu-memory": str(amount), "gpu-fraction-num-devices": str(devices)}
    return job("j", "a", pending=pods, minimum=pods, gpus=0, annotations=notes)


def test_gpu_memory_counts_as_the_least_part_that_it_can_be_unless_strictly() -> None:
    """Four times 40,000 MiB are at least two devices, on the large node."""
    parts = (LARGE, SMALL, TOP, leaf(limit=1.5), memory_job(40_000, pods=4))
    assert over(Scene(*parts), "j").reason == "OverLimit"
    assert over(Scene(*parts, strict=True), "j").schedulable
    assert over(Scene(LARGE, SMALL, TOP, leaf(limit=2), memory_job(40_000, pods=4)), "j").schedulable


def test_on_a_node_gpu_memory_counts_as_the_part_of_its_device() -> None:
    scene = Scene(LARGE, SMALL, TOP, leaf(limit=0.5), memory_job(40_000))
    ask = scene.session.hooks.is_task_allocation_on_node_over_capacity
    task, index = scene.task("j-0"), scene.session.nodes.facts.index
    assert ask(task, index["n1"]).schedulable
    assert ask(task, index["n2"]).reason == "OverLimit"


def test_strictly_a_task_counts_with_one_device_on_a_node() -> None:
    wants = memory_job(40_000, devices=2)
    for strict in (True, False):
        scene = Scene(LARGE, SMALL, TOP, leaf(limit=0.5), wants, strict=strict)
        ask = scene.session.hooks.is_task_allocation_on_node_over_capacity
        assert ask(scene.task("j-0"), scene.session.nodes.facts.index["n1"]).schedulable is strict
        whole = Scene(LARGE, TOP, leaf(limit=1), job("j", "a", pending=1, gpus=2), strict=strict)
        ask = whole.session.hooks.is_task_allocation_on_node_over_capacity
        assert ask(whole.task("j-0"), 0).schedulable is strict
