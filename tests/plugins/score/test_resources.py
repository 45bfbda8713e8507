"""Least, most and balanced allocation, against kube-scheduler's arithmetic written out for one node."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.framework.criteria import Cells, Dependence
from tests.plugins.asking import Raw, World, node, pod

MIB = 1024 * 1024
Amounts = dict[str, int]


def sized(name: str, amounts: Amounts) -> Raw:
    """A node; cpu in milli, memory in MiB, gpu in devices."""
    made = node(name)
    made["status"]["allocatable"] = {"pods": "110", **written(amounts)}
    return made


def written(amounts: Amounts) -> dict[str, str]:
    units = {"cpu": "{}m", "memory": "{}Mi", "nvidia.com/gpu": "{}"}
    return {key: units[key].format(value) for key, value in amounts.items()}


def asking(name: str, containers: list[Amounts], on: str = "") -> Raw:
    made = [{"name": f"c{i}", "resources": {"requests": written(c)}} for i, c in enumerate(containers)]
    return pod(name, on, containers=made)


def total(containers: list[Amounts], key: str, default: int = 0) -> int:
    return sum(c.get(key, default) for c in containers)


def nonzero(containers: list[Amounts]) -> tuple[int, int]:
    return total(containers, "cpu", 100), total(containers, "memory", 200) * MIB


def mean_of(shares: list[int | None]) -> int:
    there = [share for share in shares if share is not None]
    return sum(there) // len(there) if there else 0


def least(requested: int, capacity: int) -> int | None:
    if capacity == 0:
        return None
    return 0 if requested > capacity else (capacity - requested) * 100 // capacity


def most(requested: int, capacity: int) -> int | None:
    return None if capacity == 0 else min(requested, capacity) * 100 // capacity


def balance(requested: dict[str, int], capacity: dict[str, int]) -> int:
    fractions = [min(requested[key] / capacity[key], 1.0) for key in requested if capacity[key]]
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = sum(fractions) / len(fractions)
        deviation = math.sqrt(sum((f - mean) * (f - mean) for f in fractions) / len(fractions))
    return int((1 - deviation) * 100)


amounts = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.integers(0, 5000),
        "memory": st.integers(0, 9000),
        "nvidia.com/gpu": st.integers(0, 8),
    },
)
capacities = st.fixed_dictionaries(
    {"cpu": st.sampled_from((0, 3000, 7777, 64000)), "memory": st.sampled_from((0, 4096, 10007, 256000))},
    optional={"nvidia.com/gpu": st.integers(0, 8)},
)
containers = st.lists(amounts, min_size=1, max_size=2)


@given(st.lists(capacities, min_size=1, max_size=3), st.lists(containers, max_size=3), containers)
def test_scores_are_kube_scheduler_s_to_the_point(
    nodes: list[Amounts], placed: list[list[Amounts]], wanted: list[Amounts]
) -> None:
    objects = [sized(f"n{i}", capacity) for i, capacity in enumerate(nodes)]
    running = [asking(f"e{i}", c, on="n0") for i, c in enumerate(placed)]
    world = World([*objects, *running, asking("p", wanted)])
    found = {
        name: world.scores(name, "p") for name in ("LeastAllocated", "MostAllocated", "BalancedAllocation")
    }
    keys = ["cpu", "memory", *(["nvidia.com/gpu"] if total(wanted, "nvidia.com/gpu") else [])]
    for i, capacity in enumerate(nodes):
        there = placed if i == 0 else []
        cpu = sum(nonzero(c)[0] for c in [*there, wanted])
        memory = sum(nonzero(c)[1] for c in [*there, wanted])
        shares = (cpu, capacity["cpu"]), (memory, capacity["memory"] * MIB)
        assert found["LeastAllocated"][f"n{i}"] == mean_of([least(*share) for share in shares])
        assert found["MostAllocated"][f"n{i}"] == mean_of([most(*share) for share in shares])
        before = {key: sum(total(c, key) for c in there) for key in keys}
        after = {key: before[key] + total(wanted, key) for key in keys}
        having = {key: capacity.get(key, 0) for key in keys}
        expected = 50 + (50 + balance(after, having) - balance(before, having)) // 2
        asks = any(total(wanted, key) for key in keys)
        assert found["BalancedAllocation"][f"n{i}"] == (expected if asks else 0)


@pytest.mark.parametrize("name", ["LeastAllocated", "MostAllocated", "BalancedAllocation"])
@given(st.lists(capacities, min_size=1, max_size=3), containers)
def test_the_nth_task_scores_as_if_the_others_were_there(
    name: str, nodes: list[Amounts], wanted: list[Amounts]
) -> None:
    objects = [sized(f"n{i}", capacity) for i, capacity in enumerate(nodes)]
    world = World([*objects, asking("p", wanted), *(asking(f"q{i}", wanted) for i in range(2))])
    scorer, class_ = world.scorers[name], world.class_of("p")
    if not scorer.applies(class_):
        return
    assert scorer.depends is Dependence.NODE
    rows = np.arange(len(nodes))[:, None]
    imagined = scorer.raw(class_, Cells(world.session.nodes, class_, rows, np.arange(3)))
    imagined = np.broadcast_to(imagined, (len(nodes), 3))
    for depth in range(3):
        now = scorer.raw(class_, Cells(world.session.nodes, class_))
        assert imagined[0, depth] == now[0]
        assert imagined[1:, 0].tolist() == now[1:].tolist()
        if depth < 2:
            world.place(f"q{depth}", "n0")


def test_a_worked_example() -> None:
    """4 of 10 cores and 5 of 20 GiB used; a task of 2 cores and 4 GiB."""
    used: list[dict[str, Any]] = [{"cpu": 4000, "memory": 5 * 1024}]
    objects = [sized("a", {"cpu": 10000, "memory": 20 * 1024}), asking("e", used, on="a")]
    world = World([*objects, asking("p", [{"cpu": 2000, "memory": 4 * 1024}])])
    assert world.scores("LeastAllocated", "p") == {"a": (40 + 55) // 2}
    assert world.scores("MostAllocated", "p") == {"a": (60 + 45) // 2}
    # the fractions are 0.4 and 0.25 before, 0.6 and 0.45 after: as far apart as they were
    assert world.scores("BalancedAllocation", "p") == {"a": 75}
