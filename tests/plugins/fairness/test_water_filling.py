"""Water filling: the worked example, and the rule written out slowly."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from maniple.plugins.fairness.water_filling import water_fill

RESOURCES = 4  # cpu, memory, pods, one scalar


def fill(
    total: list[int], weights: list[int], request: list[list[int]], **more: list[list[float]]
) -> NDArray[np.float64]:
    """`request` and the rest are lists of queues."""
    columns = np.array(request, dtype=np.int64).T
    limit = np.array(more.get("limit", [[math.inf] * len(total)] * len(weights)), dtype=np.float64).T
    guarantee = np.array(more.get("guarantee", [[0] * len(total)] * len(weights)), dtype=np.int64).T
    deserved = water_fill(np.array(total), np.array(weights), columns, limit, guarantee)
    return np.asarray(deserved.T)


def test_what_one_queue_does_not_want_goes_to_the_others_by_weight() -> None:
    """12 cpu, weights 1/2/3, requests 1/10/10: first 1/4/6, then the one left over as 0.4/0.6."""
    deserved = fill([12, 0, 0], [1, 2, 3], [[1, 0, 0], [10, 0, 0], [10, 0, 0]])
    assert deserved[:, 0].tolist() == pytest.approx([1, 4.4, 6.6])


def test_a_limit_passes_the_rest_on() -> None:
    deserved = fill(
        [12, 0, 0], [1, 1], [[10, 0, 0], [10, 0, 0]], limit=[[2, math.inf, math.inf], [math.inf] * 3]
    )
    assert deserved[:, 0].tolist() == [2, 10]


def test_a_guarantee_holds_even_for_a_queue_that_asks_for_less() -> None:
    deserved = fill([12, 0, 0], [1, 1], [[1, 0, 0], [20, 0, 0]], guarantee=[[4, 0, 0], [0, 0, 0]])
    assert deserved[:, 0].tolist() == [4, 8]


def test_no_queue_deserves_anything_without_weights_or_without_nodes() -> None:
    assert not fill([12, 0, 0], [0, 0], [[1, 1, 1], [1, 1, 1]]).any()
    assert not fill([0, 0, 0], [1, 1], [[1, 1, 1], [1, 1, 1]]).any()


def slowly(
    total: list[float],
    weights: list[int],
    request: list[list[int]],
    limit: list[list[float]],
    guarantee: list[list[int]],
) -> list[list[float]]:
    """The rule, one queue and one resource after the other."""
    deserved = [[0.0] * len(total) for _ in weights]
    remaining, met = list(total), set[int]()
    while True:
        together = sum(weight for queue, weight in enumerate(weights) if queue not in met)
        if together == 0:
            return deserved
        grown, shrunk = [0.0] * len(total), [0.0] * len(total)
        for queue, weight in enumerate(weights):
            if queue in met:
                continue
            old = list(deserved[queue])
            for r in range(len(total)):
                value = old[r] + remaining[r] * (weight / together)
                value = max(min(value, limit[queue][r], request[queue][r]), guarantee[queue][r])
                deserved[queue][r] = value
                grown[r] += max(value - old[r], 0)
                shrunk[r] += max(old[r] - value, 0)
            enough = all(
                want < have or abs(want - have) < 0.1
                for want, have in zip(request[queue], deserved[queue], strict=True)
            )
            if enough or deserved[queue] == old:
                met.add(queue)
        left = [max(a + b - c, 0) for a, b, c in zip(remaining, shrunk, grown, strict=True)]
        if all(amount < 0.1 for r, amount in enumerate(left) if r != 2) or left == remaining:
            return deserved
        remaining = left


amounts = st.lists(st.integers(0, 1000), min_size=RESOURCES, max_size=RESOURCES)
limits = st.lists(st.one_of(st.integers(0, 1000), st.just(math.inf)), min_size=RESOURCES, max_size=RESOURCES)
queues = st.lists(
    st.tuples(st.integers(0, 9), amounts, limits, st.booleans(), amounts), min_size=1, max_size=5
)


@given(amounts, queues)
def test_it_is_the_rule_written_out(
    total: list[int], given_queues: list[tuple[int, list[int], list[float], bool, list[int]]]
) -> None:
    weights = [queue[0] for queue in given_queues]
    request = [queue[1] for queue in given_queues]
    limit = [queue[2] for queue in given_queues]
    guarantee = [[amount // 10 if queue[3] else 0 for amount in queue[4]] for queue in given_queues]
    expected = slowly([float(t) for t in total], weights, request, limit, guarantee)
    found = fill(total, weights, request, limit=limit, guarantee=[[float(a) for a in g] for g in guarantee])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-6)


@given(amounts, queues)
def test_without_guarantees_no_queue_gets_more_than_the_total_or_its_request(
    total: list[int], given_queues: list[tuple[int, list[int], list[float], bool, list[int]]]
) -> None:
    request = [queue[1] for queue in given_queues]
    deserved = fill(
        total, [queue[0] for queue in given_queues], request, limit=[queue[2] for queue in given_queues]
    )
    assert (deserved <= np.array(request)).all()
    assert (deserved.sum(axis=0) <= np.array(total) + 1e-6).all()
