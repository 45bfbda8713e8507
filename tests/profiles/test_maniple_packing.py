"""Nodes where GPUs are in use come first in Maniple's own profile, whichever way they are used."""

from typing import Any

import pytest

from maniple.objects.meta import Object
from tests.plugins.maniple.scenes import bound, cycle, gang, kai_queue, node, volcano_queue

SHARED = {"nvidia.com/gpu.memory": "10000"}
MIG = "nvidia.com/mig-1g.5gb"
AMD = "amd.com/gpu"
HALF = {"gpu-fraction": "0.5"}


def sharing(name: str, part: str = "0.5", *, on: str = "", device: str = "", **more: Any) -> list[Object]:
    labels = {"runai-gpu-group": device} if device else {}
    return gang(name, "q", 1, kai=True, gpus=0, on=on, notes={"gpu-fraction": part}, labels=labels, **more)


def nodes(*names: str, gpus: int = 8) -> list[Object]:
    return [node(name, gpus, labels=SHARED) for name in names]


def busy(on: str) -> list[Object]:
    """What kube-scheduler's scores would rather keep away from."""
    return gang("busy", "q", 1, gpus=0, kai=True, asked={"cpu": "50", "memory": "20Gi"}, on=on)


QUEUE = kai_queue("q", -1)


@pytest.mark.parametrize("kai", [False, True])
def test_a_whole_gpu_is_taken_where_one_is_shared_and_wide_gangs_still_fit(kai: bool) -> None:
    parts = [*nodes("a", "b", "c"), QUEUE, sharing("half", on="c", device="g"), busy("c")]
    one, wide = gang("one", "q", 1, kai=kai), gang("wide", "q", 2, gpus=8, kai=kai)
    plan = cycle(*parts, one, wide)
    assert bound(plan) == {"one-0": "c", "wide-0": "a", "wide-1": "b"}


def test_a_part_that_needs_another_gpu_opens_it_where_gpus_are_in_use() -> None:
    whole = gang("whole", "q", 1, on="b")
    assert bound(cycle(*nodes("a", "b"), QUEUE, whole, busy("b"), sharing("half"))) == {"half-0": "b"}
    full = sharing("most", "0.8", on="b", device="g")
    assert bound(cycle(*nodes("a", "b"), QUEUE, full, busy("b"), sharing("half"))) == {"half-0": "b"}


def test_of_nodes_with_shared_gpus_the_fuller_one_is_filled() -> None:
    runs = [sharing("x", on="b", device="g"), sharing("y", on="c", device="h"), gang("whole", "q", 4, on="c")]
    assert bound(cycle(*nodes("a", "b", "c"), QUEUE, *runs, busy("c"), sharing("half"))) == {"half-0": "c"}


@pytest.mark.parametrize("resource", [AMD, MIG])
def test_other_makers_and_slices_are_packed_too(resource: str) -> None:
    labels = {"nvidia.com/mig.strategy": "mixed"} if resource == MIG else {}
    machines = [node(name, 0, more={resource: "8"}, labels=labels) for name in ("a", "b")]
    runs = gang("runs", "v", 1, gpus=0, asked={resource: "1"}, on="b")
    plan = cycle(
        *machines,
        QUEUE,
        volcano_queue("v"),
        runs,
        busy("b"),
        gang("new", "v", 1, gpus=0, asked={resource: "1"}),
    )
    assert bound(plan) == {"new-0": "b"}
