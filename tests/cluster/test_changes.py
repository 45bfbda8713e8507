"""The change log: which nodes changed since a look."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maniple.cluster.changes import ChangeLog

ROWS = st.sets(st.integers(0, 7)).map(lambda rows: np.array(sorted(rows), dtype=np.intp))


@given(st.lists(ROWS, max_size=12))
def test_the_nodes_since_a_look_are_those_of_all_changes_since(changes: list[np.ndarray]) -> None:
    log = ChangeLog(8)
    for number, rows in enumerate(changes):
        log.append(rows)
        assert len(log) == number + 1
        for seen in range(number + 2):
            expected = set[int]().union(*(set(later.tolist()) for later in changes[seen : number + 1]))
            found = log.since(seen).tolist()
            assert sorted(found) == sorted(expected)
            assert np.flatnonzero(~log.spared(np.arange(8), seen)).tolist() == sorted(expected)
