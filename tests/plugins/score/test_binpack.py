"""binpack: the worked example, the weights, and the formula written out."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.framework.criteria import Cells
from maniple.objects.meta import Object
from maniple.plugins.score.binpack import Binpack
from tests.plugins.opening import session_on
from tests.plugins.score.cells import class_of, scores
from tests.support import group, node, pod, queue

GPU = "nvidia.com/gpu"


def cluster(request: dict[str, str], *objects: Object) -> list[Object]:
    return [queue("default"), group("g", 1), pod("p", request, group="g"), *objects]


def used(cpu: int, memory: int, on: str = "n1") -> Object:
    return pod(f"used-{on}", {"cpu": str(cpu), "memory": f"{memory}Gi"}, on=on)


def score(request: dict[str, str], *objects: Object, **arguments: Any) -> float:
    session = session_on(cluster(request, *objects))
    plugin = Binpack(session, {f"binpack.{key}": value for key, value in arguments.items()})
    return scores(session, plugin, "p")["n1"]


NODE = node("n1", {"cpu": "10", "memory": "20Gi"})
REQUEST = {"cpu": "2", "memory": "2Gi"}


def test_the_average_of_how_full_the_node_would_be() -> None:
    """10 cpu and 20 Gi, 4 and 4 used, 2 and 2 asked for: (6/10 + 6/20) / 2."""
    assert score(REQUEST, NODE, used(4, 4)) == pytest.approx(45)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"weight": 10}, 450),
        ({"weight": -1}, -45),
        ({"cpu": 3}, 100 * (3 * 0.6 + 0.3) / 4),
        ({"cpu": -3}, 45),
        ({"cpu": "3"}, 45),
        ({"cpu": 0}, 30),
        ({"cpu": 0, "memory": 0}, 0),
    ],
)
def test_weights_of_the_score_and_of_resources(arguments: dict[str, Any], expected: float) -> None:
    assert score(REQUEST, NODE, used(4, 4), **arguments) == pytest.approx(expected)


def test_a_weight_of_zero_is_no_score_at_all() -> None:
    session = session_on(cluster(REQUEST, NODE))
    assert Binpack(session, {"binpack.weight": 0}).scorers() == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, 60),  # not named: as if the task did not ask for it
        ({"resources": f" {GPU} , example.com/unheard-of"}, 100 * (0.6 + 0.5) / 2),
        ({"resources": GPU, f"resources.{GPU}": 3}, 100 * (0.6 + 3 * 0.5) / 4),
        ({"resources": GPU, f"resources.{GPU}": 0}, 60),
    ],
)
def test_other_resources_count_once_they_are_named(more: dict[str, Any], expected: float) -> None:
    with_gpus = node("n1", {"cpu": "10", "memory": "20Gi", GPU: "4"})
    assert score({"cpu": "2", GPU: "2"}, with_gpus, used(4, 4), **more) == pytest.approx(expected)


def test_a_resource_that_the_node_lacks_adds_nothing_but_counts() -> None:
    assert score({"cpu": "2", GPU: "1"}, NODE, used(4, 4), resources=GPU) == pytest.approx(30)


def test_a_node_that_would_be_overfull_scores_nothing() -> None:
    assert score(REQUEST, NODE, used(9, 4)) == 0
    assert score({"memory": "2Gi"}, NODE, used(9, 4)) > 0


def test_unknown_arguments_are_reported() -> None:
    session = session_on(cluster(REQUEST, NODE))
    Binpack(session, {"binpack.cpus": 1, "binpack.resources.nvidia.com/gpu": 2})
    assert len(session.warnings) == 2


@given(
    st.lists(st.tuples(*[st.integers(0, 8)] * 4), min_size=1, max_size=4),
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(0, 3),
)
def test_it_is_the_formula_written_out(
    nodes: list[tuple[int, int, int, int]], cpu: int, memory: int, extra: int
) -> None:
    objects = cluster({"cpu": str(cpu), "memory": f"{memory}Gi"})
    for index, (have_cpu, have_memory, used_cpu, used_memory) in enumerate(nodes):
        objects.append(node(f"n{index}", {"cpu": str(have_cpu), "memory": f"{have_memory}Gi"}))
        objects.append(used(used_cpu, used_memory, f"n{index}"))
    session = session_on(objects)
    found = scores(session, Binpack(session, {"binpack.memory": 2}), "p", extra=extra)
    for index, (have_cpu, have_memory, used_cpu, used_memory) in enumerate(nodes):
        parts, weights, overfull = 0.0, 0, False
        for weight, have, before, ask in (
            (1, have_cpu, used_cpu, cpu),
            (2, have_memory, used_memory, memory),
        ):
            if ask:
                after = before + ask * (extra + 1)
                weights += weight
                overfull |= 0 < have < after
                parts += weight * after / have if have else 0
        expected = 0 if overfull or not weights else 100 * parts / weights
        assert found[f"n{index}"] == pytest.approx(expected)


def test_cells_may_be_a_matrix_of_nodes_and_imagined_tasks() -> None:
    session = session_on(cluster(REQUEST, NODE, node("n2", {"cpu": "10", "memory": "20Gi"}), used(4, 4)))
    plugin, class_ = Binpack(session, {}), class_of(session, "p")
    rows, extra = np.array([[0], [1]]), np.array([[0, 1, 2]])
    (scorer,) = plugin.scorers()
    matrix = scorer.raw(class_, Cells(session.nodes, class_, rows, extra))
    columns = [list(scores(session, plugin, "p", extra=more).values()) for more in range(3)]
    assert matrix.tolist() == np.array(columns).T.tolist()
