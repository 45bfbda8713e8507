"""What pods request that are being bound, queue by queue."""

from collections.abc import Sequence
from typing import Any

from maniple.cluster.cluster import Cluster
from maniple.live.binding import Binding
from maniple.planner import Planner
from tests.live.objects import NAMESPACE, gang, node, queue

URGENT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 100,
}


def placed(
    name: str, size: int, *, cpu: str, queue: str = "default", urgent: bool = False
) -> list[dict[str, Any]]:
    """A gang whose pods have their node."""
    group, *pods = gang(name, size, cpu)
    group["spec"] |= {"queue": queue, **({"priorityClassName": "urgent"} if urgent else {})}
    for one in pods:
        one["spec"]["nodeName"] = "n1"
    return [group, *pods]


def binding(cluster: Cluster, names: Sequence[str]) -> Binding:
    begun = Binding()
    for name in names:
        begun.begin(f"{NAMESPACE}/{name}", cluster)
    return begun


def test_amounts_are_by_queue_and_those_of_non_preemptible_jobs_are_told_apart() -> None:
    objects = [queue("default"), queue("other"), node("n1", 64), URGENT]
    objects += placed("train", 3, cpu="2") + placed("tune", 2, cpu="1")
    objects += placed("serve", 2, cpu="4", urgent=True) + placed("fit", 1, cpu="8", queue="other")
    cluster = Planner(profile="volcano").build(objects)
    begun = binding(cluster, ["train-0", "train-1", "tune-0", "serve-0", "serve-1", "fit-0", "gone"])
    every, fixed = begun.amounts(cluster)
    assert {name: (one["cpu"], one["pods"]) for name, one in every.items()} == {
        "default": (13_000, 5),
        "other": (8_000, 1),
    }
    assert {name: (one["cpu"], one["pods"]) for name, one in fixed.items()} == {"default": (8_000, 2)}


def test_pods_that_have_no_place_or_no_group_do_not_count() -> None:
    group, waiting = gang("train", 1)
    objects = [queue("default"), node("n1"), waiting, *placed("tune", 1, cpu="1")[1:]]
    cluster = Planner(profile="volcano").build([group, *objects])
    begun = binding(cluster, ["train-0", "tune-0"])
    assert begun.amounts(cluster) == ({}, {})
    assert Binding().amounts(cluster) == ({}, {})
