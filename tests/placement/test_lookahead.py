"""Nodes foreseen for a class hold, or are dropped, while tasks of other classes are placed.

The outcome is always that of the plain loop.
"""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.placement.engine import Placement
from tests.placement.test_gang_fill import FILL_WITH, nodes, one_by_one, requests, session_with
from tests.support import cluster_of, group, node, pod, queue


@st.composite
def turns(draw: st.DrawFn) -> tuple[list[Object], list[tuple[str, int]]]:
    """Nodes, pods of up to three kinds, and in which order they are placed: a kind and how many at once."""
    kinds = draw(st.lists(requests, min_size=2, max_size=3))
    names = "abc"[: len(kinds)]
    order = draw(st.lists(st.tuples(st.sampled_from(names), st.integers(1, 4)), min_size=4, max_size=12))
    pods = [
        pod(f"{name}{i:02}", asked, group=name)
        for name, asked in zip(names, kinds, strict=True)
        for i in range(sum(count for one, count in order if one == name))
    ]
    groups = [group(name, 1) for name in names]
    return [*draw(nodes), *pods, *groups, queue("default")], order


@given(turns(), st.sampled_from(sorted(FILL_WITH)))
@settings(max_examples=300, deadline=None)
def test_classes_that_take_turns_go_where_they_would_go_one_by_one(drawn: Any, plugins: str) -> None:
    objects, order = drawn
    cluster = cluster_of(*objects)
    fast, slow = (session_with(cluster, FILL_WITH[plugins]) for _ in range(2))
    placement, transaction = Placement(fast), Transaction(fast)
    waiting: dict[str, list[int]] = {}
    for row, one in sorted(cluster.tasks.pods.items(), key=lambda item: item[1].metadata.name):
        waiting.setdefault(one.metadata.name[0], []).append(row)
    for name, count in order:
        rows, waiting[name] = waiting[name][:count], waiting[name][count:]
        class_ = fast.classes[fast.tasks.class_of[rows[0]]]
        placed: list[int] = []
        while len(placed) < count and (proposal := placement.fill(class_, count - len(placed))) is not None:
            placement.place(
                transaction,
                np.array(rows[len(placed) : len(placed) + len(proposal)]),
                proposal,
                fast.refusals,
            )
            placed += proposal.nodes.tolist()
        assert placed == one_by_one(slow, class_, rows)


def test_what_others_leave_alone_is_not_decided_again() -> None:
    """Two kinds of pods that prefer different nodes: each keeps what was foreseen for it."""
    objects: list[Object] = [node(f"cpu{i}", {"cpu": "8", "memory": "8Gi", "pods": "110"}) for i in range(4)]
    objects += [
        node(f"gpu{i}", {"cpu": "8", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "8"}) for i in range(4)
    ]
    wanted = {"a": {"cpu": "1", "nvidia.com/gpu": "1"}, "b": {"memory": "6Gi"}}
    objects += [pod(f"{name}{i:02}", wanted[name], group=name) for name in wanted for i in range(4)]
    cluster = cluster_of(*objects, group("a", 1), group("b", 1), queue("default"))
    session = session_with(cluster, FILL_WITH["binpack"])
    placement, transaction = Placement(session), Transaction(session)
    rows = sorted(cluster.tasks.pods, key=lambda row: cluster.tasks.pods[row].metadata.name)
    first, second = (session.classes[session.tasks.class_of[rows[place]]] for place in (0, 4))
    ahead = placement.fill(first, 4)
    assert ahead is not None
    other = placement.fill(second, 1)
    assert other is not None
    placement.place(transaction, np.array(rows[4:5]), other, session.refusals)
    again = placement.fill(first, 4)
    assert again is not None
    assert again.source is ahead.source
    assert again.nodes.tolist() == ahead.nodes.tolist()
