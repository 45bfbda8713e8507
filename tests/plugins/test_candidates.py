"""Sums over candidates in their given order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maniple.plugins.candidates import place_in_group, sums_before

ENTRIES = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 9), st.integers(0, 9)), max_size=12)


@given(ENTRIES)
def test_sums_count_only_what_stands_before_in_the_same_group(entries: list[tuple[int, int, int]]) -> None:
    group = np.array([entry[0] for entry in entries], dtype=np.int32)
    amounts = np.array([entry[1:] for entry in entries], dtype=np.int64).reshape(len(entries), 2).T
    expected = [
        [sum(e[r] for e in entries[:i] if e[0] == entry[0]) for i, entry in enumerate(entries)]
        for r in (1, 2)
    ]
    assert sums_before(amounts, group).tolist() == expected


@given(st.lists(st.integers(0, 3), max_size=12))
def test_places_count_from_zero_in_every_group(group: list[int]) -> None:
    assert place_in_group(np.array(group, dtype=np.int32)).tolist() == [
        group[:i].count(g) for i, g in enumerate(group)
    ]
