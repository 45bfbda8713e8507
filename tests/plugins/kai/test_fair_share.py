"""The division of resources over a queue tree: each rule by an example, and all against a slow reference."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.plugins.kai.fair_share import ShareTerms, fair_shares

INF = math.inf


@dataclass(frozen=True)
class Queue:
    """One queue and one resource."""

    request: float
    quota: float = 0.0
    limit: float = INF
    weight: float = 1.0
    usage: float = 0.0
    priority: int = 100
    parent: int = -1


def terms_of(*resources: list[Queue]) -> ShareTerms:
    """One list per resource; the tree and the priorities are those of the first."""
    first = resources[0]

    def matrix(field: str) -> np.ndarray:
        return np.array([[getattr(queue, field) for queue in one] for one in resources], dtype=np.float64)

    return ShareTerms(
        parent=np.array([queue.parent for queue in first], dtype=np.int64),
        priority=np.array([queue.priority for queue in first], dtype=np.int64),
        quota=matrix("quota"),
        limit=matrix("limit"),
        weight=matrix("weight"),
        request=matrix("request"),
        usage=matrix("usage"),
    )


def divide(total: float, *queues: Queue, k: float = 1.0, whole_leftovers: bool = False) -> list[float]:
    shares = fair_shares(np.array([total]), terms_of(list(queues)), k=k, whole_leftovers=whole_leftovers)
    return [float(share) for share in shares[0]]


# -- the rules, one by one ------------------------------------------------------------------------------------------


def test_a_quota_comes_first_and_only_as_far_as_it_is_asked_for() -> None:
    assert divide(10, Queue(8, quota=6), Queue(2, quota=4), Queue(9, weight=0)) == [8, 2, 0]


def test_an_unlimited_quota_is_all_that_there_is() -> None:
    assert divide(10, Queue(30, quota=INF), Queue(5)) == [10, 0]


def test_promised_quotas_are_not_cut_where_they_exceed_what_is_there() -> None:
    assert divide(10, Queue(8, quota=8), Queue(8, quota=8)) == [8, 8]


def test_what_is_left_goes_by_weight() -> None:
    assert divide(12, Queue(100, weight=1), Queue(100, weight=3)) == [3, 9]


def test_a_queue_without_weight_gets_its_quota_only() -> None:
    assert divide(12, Queue(100, quota=2, weight=0), Queue(100)) == [2, 10]


def test_what_one_queue_does_not_want_goes_to_the_others() -> None:
    assert divide(12, Queue(1), Queue(100), Queue(100)) == [1, 6, 5]


def test_a_limit_counts_like_a_smaller_request() -> None:
    assert divide(12, Queue(100, limit=2), Queue(100)) == [2, 10]


def test_a_limit_also_cuts_the_quota() -> None:
    assert divide(12, Queue(100, quota=8, limit=3), Queue(2)) == [3, 2]


def test_a_higher_priority_is_satisfied_first() -> None:
    assert divide(10, Queue(100, priority=1), Queue(7, priority=2)) == [3, 7]


def test_a_quota_counts_more_than_priority() -> None:
    assert divide(10, Queue(100, quota=4, priority=1), Queue(100, priority=2)) == [4, 6]


def test_units_left_by_rounding_go_to_whom_most_was_cut_from() -> None:
    """7 by 2:3:5 is 1.4, 2.1, 3.5: after 1, 2, 3 the last unit goes to the third."""
    assert divide(7, Queue(100, weight=2), Queue(100, weight=3), Queue(100, weight=5)) == [1, 2, 4]


def test_among_equals_the_earlier_gets_the_odd_unit() -> None:
    assert divide(5, Queue(100), Queue(100), Queue(100)) == [2, 2, 1]


def test_odd_units_go_by_priority_too() -> None:
    queues = [Queue(100, priority=1), Queue(100, priority=1), Queue(100, priority=2), Queue(100, priority=2)]
    assert divide(1, *queues) == [0, 0, 1, 0]


def test_what_cannot_be_cut_into_whole_units_is_offered_further_down_first() -> None:
    """One unit that two queues of high priority would halve is whole for the one below them."""
    queues = [Queue(100, priority=2), Queue(100, priority=2), Queue(100, priority=1)]
    assert divide(1, *queues) == [0, 0, 1]


def test_a_leftover_unit_is_whole_as_in_kai_or_no_more_than_is_wanted() -> None:
    queues = [Queue(0.75, weight=1), Queue(100, weight=1)]
    assert divide(1, *queues) == [0.75, 0.25]
    assert divide(1, *queues, whole_leftovers=True) == [1, 0]


def test_a_satisfied_queue_gets_nothing_for_an_earlier_round() -> None:
    """B is cut in the first round and satisfied in the second; the odd unit is not for it."""
    queues = [Queue(1), Queue(3), Queue(100), Queue(100)]
    assert divide(11, *queues) == divide(11, *queues, whole_leftovers=True) == [1, 3, 4, 3]


def test_past_usage_is_held_against_a_queue() -> None:
    """Parts are in proportion to 0.5 + (0.5 - 0.4) and 0.5 + (0.5 - 0): 6 to 10."""
    assert divide(16, Queue(100, usage=0.4), Queue(100)) == [6, 10]


def test_without_k_past_usage_does_not_matter() -> None:
    assert divide(16, Queue(100, usage=0.4), Queue(100), k=0) == [8, 8]


def test_a_queue_that_has_used_far_too_much_gets_only_its_quota() -> None:
    assert divide(16, Queue(100, quota=2, usage=1.5), Queue(100)) == [2, 14]


def test_no_queue_gets_anything_where_all_have_used_too_much() -> None:
    assert divide(16, Queue(100, usage=1.5), Queue(100, usage=1.5)) == [0, 0]


def test_k_without_usage_changes_nothing() -> None:
    queues = [Queue(9, weight=2), Queue(40, weight=3), Queue(40, weight=1)]
    assert divide(31, *queues, k=0.0) == divide(31, *queues, k=5.0)


def test_queues_below_a_queue_divide_what_it_got() -> None:
    queues = [Queue(20, parent=-1), Queue(20, parent=-1), Queue(15, parent=0), Queue(5, parent=0)]
    assert divide(10, *queues) == [5, 5, 3, 2]


def test_a_child_with_an_unlimited_quota_has_what_its_parent_got() -> None:
    queues = [Queue(20), Queue(20), Queue(20, quota=INF, parent=0)]
    assert divide(10, *queues) == [5, 5, 5]


def test_resources_are_divided_independently() -> None:
    gpus = [Queue(8), Queue(2)]
    cpus = [Queue(1000), Queue(5000)]
    shares = fair_shares(np.array([8.0, 4000.0]), terms_of(gpus, cpus))
    assert shares.tolist() == [[6, 2], [1000, 3000]]


def test_no_queues_and_no_resources_are_no_trouble() -> None:
    assert fair_shares(np.array([1.0]), terms_of([])).shape == (1, 0)
    assert divide(0, Queue(5)) == [0]


# -- against the rules written out ----------------------------------------------------------------------------------


def slowly(total: float, queues: list[Queue], k: float, *, whole_leftovers: bool) -> list[float]:
    shares = [0.0] * len(queues)

    def level(amount: float, parent: int) -> None:
        siblings = [place for place, queue in enumerate(queues) if queue.parent == parent]
        _siblings(amount, siblings, queues, shares, k, whole_leftovers=whole_leftovers)
        for place in siblings:
            level(shares[place], place)

    level(total, -1)
    return shares


def _siblings(
    amount: float,
    places: list[int],
    queues: list[Queue],
    shares: list[float],
    k: float,
    *,
    whole_leftovers: bool,
) -> None:
    wanted = {place: min(queues[place].request, queues[place].limit) for place in places}
    left = amount
    for place in places:
        quota = queues[place].quota
        shares[place] = min(amount if quota == INF else quota, wanted[place])
        left -= shares[place]
    if left <= 0:
        return
    cut: dict[int, float] = {}
    priorities = sorted({queues[place].priority for place in places}, reverse=True)
    for priority in priorities:
        members = [place for place in places if queues[place].priority == priority]
        again = True
        while again and left > 0:
            again, start = False, left
            hungry = [place for place in members if wanted[place] > shares[place]]
            weights = sum(queues[place].weight for place in hungry)
            if weights == 0:
                break
            parts = {}
            for place in hungry:
                normal = queues[place].weight / weights
                parts[place] = max(0.0, normal + k * (normal - queues[place].usage))
            if sum(parts.values()) == 0:
                break
            for place in hungry:
                if queues[place].weight == 0:
                    continue
                fair = start * (parts[place] / sum(parts.values()))
                want = wanted[place] - shares[place]
                if want <= fair:
                    shares[place] = wanted[place]
                    left -= want
                    cut.pop(place, None)
                    again = again or want < fair
                else:
                    shares[place] += math.floor(fair)
                    left -= math.floor(fair)
                    if fair > math.floor(fair):
                        cut[place] = fair - math.floor(fair)
    for place in sorted(cut, key=lambda one: (-queues[one].priority, -cut[one], one)):
        unit = 1.0 if whole_leftovers else min(1.0, wanted[place] - shares[place])
        shares[place] += min(unit, max(left, 0.0))
        left -= min(unit, max(left, 0.0))


# Eighths and halves add up exactly, so that the two ways cannot differ by rounding errors of sums.
amounts = st.integers(0, 400).map(lambda n: n / 8)
small = st.sampled_from([0.0, 0.0, 0.125, 0.25, 0.5, 1.0, 2.0])


@st.composite
def trees(draw: st.DrawFn, least: int = 1, most: int = 9) -> list[Queue]:
    size = draw(st.integers(least, most))
    queues: list[Queue] = []
    for place in range(size):
        quota, limit = draw(amounts), draw(amounts)
        queues.append(
            Queue(
                request=draw(amounts),
                quota=draw(st.sampled_from([0.0, quota, quota, INF])),
                limit=draw(st.sampled_from([INF, INF, limit])),
                weight=draw(st.sampled_from([0.0, 1.0, 1.0, 2.0, 4.0])),
                usage=draw(small),
                priority=draw(st.sampled_from([100, 100, 200])),
                parent=draw(st.integers(-1, place - 1)),
            )
        )
    return queues


@settings(max_examples=400)
@given(amounts, trees(), st.sampled_from([0.0, 1.0, 2.0]), st.booleans())
def test_it_is_the_rules_written_out(total: float, queues: list[Queue], k: float, whole: bool) -> None:
    fast = divide(total, *queues, k=k, whole_leftovers=whole)
    assert fast == pytest.approx(slowly(total, queues, k, whole_leftovers=whole), abs=1e-9)


def families(queues: list[Queue]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for place, queue in enumerate(queues):
        found.setdefault(queue.parent, []).append(place)
    return found


@given(amounts, trees())
def test_no_queue_gets_more_than_it_requests_or_than_its_limit(total: float, queues: list[Queue]) -> None:
    for share, queue in zip(divide(total, *queues), queues, strict=True):
        assert 0 <= share <= min(queue.request, queue.limit) + 1e-9


@given(amounts, trees())
def test_quotas_are_honoured_before_anything_else(total: float, queues: list[Queue]) -> None:
    shares = divide(total, *queues)
    for parent, places in families(queues).items():
        amount = total if parent < 0 else shares[parent]
        for place in places:
            queue = queues[place]
            quota = amount if queue.quota == INF else queue.quota
            assert shares[place] >= min(quota, queue.request, queue.limit) - 1e-9


@given(amounts, trees())
def test_shares_beyond_quotas_add_up_to_no_more_than_there_is(total: float, queues: list[Queue]) -> None:
    shares = divide(total, *queues)
    for parent, places in families(queues).items():
        amount = total if parent < 0 else shares[parent]
        promised = [
            min(amount if queues[p].quota == INF else queues[p].quota, queues[p].request, queues[p].limit)
            for p in places
        ]
        assert sum(shares[place] for place in places) <= max(amount, sum(promised)) + 1e-6


@given(amounts, trees())
def test_nothing_is_left_while_a_queue_with_a_weight_requests_more(total: float, queues: list[Queue]) -> None:
    queues = [replace(queue, usage=0.0) for queue in queues]
    shares = divide(total, *queues)
    for parent, places in families(queues).items():
        amount = total if parent < 0 else shares[parent]
        hungry = [
            place
            for place in places
            if queues[place].weight and shares[place] < min(queues[place].request, queues[place].limit) - 1e-9
        ]
        if hungry:
            # A whole unit could still have been given to somebody.
            assert amount - sum(shares[place] for place in places) < 1


@given(amounts, trees(least=2), st.data())
def test_of_two_alike_the_one_with_more_weight_gets_no_less(
    total: float, queues: list[Queue], data: st.DataObject
) -> None:
    twin = data.draw(st.integers(0, len(queues) - 1))
    heavier = replace(queues[twin], weight=queues[twin].weight + data.draw(st.sampled_from([0.5, 1.0, 3.0])))
    shares = divide(total, *queues, heavier)
    assert shares[-1] >= shares[twin] - 1


@given(amounts, trees())
def test_two_resources_at_once_are_two_divisions(total: float, queues: list[Queue]) -> None:
    others = [replace(queue, request=queue.request / 2, usage=0.0) for queue in queues]
    both = fair_shares(np.array([total, 2 * total]), terms_of(queues, others))
    assert both.tolist() == [divide(total, *queues), divide(2 * total, *others)]
