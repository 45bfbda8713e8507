"""Cycle after cycle with KAI's default configuration: evictions end. Whoever was evicted must not take its place back only to be evicted again."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import maniple
from maniple.sim.rounds import carried_out
from tests.actions.kai.allocate_scenes import NOW

OPEN = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
SCHEDULING = "scheduling.run.ai"
Raw = dict[str, Any]


def node(name: str, gpus: int) -> Raw:
    amounts = {"cpu": "100", "memory": "100G", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": amounts},
    }


def queue(name: str, parent: str, quota: int, weight: int, priority: int) -> Raw:
    gpu = {"quota": quota, "limit": -1, "overQuotaWeight": weight}
    resources = {"gpu": gpu, "cpu": OPEN, "memory": OPEN}
    spec = {"parentQueue": parent, "priority": priority, "resources": resources}
    meta = {"name": name, "uid": name}
    return {"apiVersion": f"{SCHEDULING}/v2", "kind": "Queue", "metadata": meta, "spec": spec}


def gang(name: str, minimum: int, gpus: int, queue: str, places: list[str]) -> list[Raw]:
    """A pod for each place; an empty one is none yet."""
    meta = {"namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
    spec = {"queue": queue, "minMember": minimum, "preemptibility": "preemptible"}
    made: list[Raw] = [
        {
            "apiVersion": f"{SCHEDULING}/v2alpha2",
            "kind": "PodGroup",
            "metadata": {**meta, "name": name, "uid": name},
            "spec": spec,
        }
    ]
    requests = {"cpu": "1", "memory": "1G", "nvidia.com/gpu": str(gpus)}
    for number, place in enumerate(places):
        pod = f"{name}-{number}"
        body = {
            "schedulerName": "kai-scheduler",
            "containers": [{"name": "main", "resources": {"requests": requests}}],
        }
        made.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {**meta, "name": pod, "uid": pod, "annotations": {"pod-group-name": name}},
                "spec": body | ({"nodeName": place} if place else {}),
                "status": {"phase": "Running" if place else "Pending"},
            }
        )
    return made


@st.composite
def clusters(draw: st.DrawFn) -> list[Raw]:
    size = draw(st.sampled_from([2, 4]))
    free = {f"n{number}": size for number in range(draw(st.integers(2, 3)))}
    objects = [node(name, size) for name in free] + [queue("top", "", -1, 1, 100)]
    queues = ["q0", "q1", "q2"][: draw(st.integers(1, 3))]
    for name in queues:
        quota, weight = draw(st.sampled_from([0, 0, size])), draw(st.sampled_from([0, 1, 3]))
        objects.append(queue(name, "top", quota, weight, draw(st.sampled_from([100, 200]))))
    for number in range(draw(st.integers(2, 8))):
        gpus, count = draw(st.sampled_from([1, 1, 2])), draw(st.integers(1, 3))
        places = []
        for _ in range(count):
            open_ = [name for name, left in free.items() if left >= gpus]
            places.append(draw(st.sampled_from(open_)) if open_ and number < 5 else "")
            if places[-1]:
                free[places[-1]] -= gpus
        objects += gang(
            f"j{number}", draw(st.integers(1, count)), gpus, draw(st.sampled_from(queues)), places
        )
    return objects


@settings(max_examples=60)
@given(clusters())
def test_evictions_come_to_an_end(objects: list[Raw]) -> None:
    for _ in range(15):
        plan = maniple.plan(objects, profile="kai", now=NOW)
        if not plan.evictions and not plan.binds:
            return
        objects = carried_out(objects, plan)
    raise AssertionError(plan.evictions)
