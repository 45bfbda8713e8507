"""Tasks that differ in amounts only: decided together they go where they would one by one.

The reference is the plain loop: for every task, of all nodes that take it, the best, the first by name among
equals; where refusals last, of those that no task before it was refused by.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY
from maniple.framework.criteria import Cells
from maniple.framework.reasons import FITS
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.placement.engine import Placement
from tests.placement.test_gang_fill import session_with
from tests.support import cluster_of, group, node, pod, queue

GPU = "nvidia.com/gpu"
PLUGINS: dict[str, list[dict[str, Any]]] = {
    "spread": [{"name": "nodeorder"}],
    "pack": [{"name": "nodeorder", "arguments": {"mostrequested.weight": 3, "leastrequested.weight": 0}}],
    "nothing scores": [],
}

offers = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from(["3", "4", "8"]),
        "memory": st.sampled_from(["5Gi", "16Gi", "128Ti"]),
        GPU: st.sampled_from(["0", "2", "4"]),
        "pods": st.sampled_from(["2", "5", "110"]),
    }
)
asks = st.fixed_dictionaries(
    {
        "cpu": st.integers(1, 30).map(lambda tenths: f"{tenths}00m"),
        "memory": st.integers(1, 40).map("{}00Mi".format),
    }
)


@st.composite
def gangs(draw: st.DrawFn) -> list[Object]:
    """Some nodes, what already runs there, and a gang of tasks with a request each."""
    nodes = [
        node(f"n{i}", offered, taints=[{"key": "closed", "effect": "NoSchedule"}] if closed else [])
        for i, (offered, closed) in enumerate(
            draw(st.lists(st.tuples(offers, st.booleans()), min_size=1, max_size=7))
        )
    ]
    running = [
        pod(f"r{i}", draw(asks), group="other", on=f"n{draw(st.integers(0, len(nodes) - 1))}")
        for i in range(draw(st.integers(0, 4)))
    ]
    more = {GPU: "1"} if draw(st.booleans()) else {}
    size = draw(st.integers(2, 9))
    tasks = [pod(f"t{i}", {**draw(asks), **more}, group="train") for i in range(size)]
    return [*nodes, *running, *tasks, group("train", size), group("other"), queue("default")]


def tasks_of(session: Session) -> NDArray[Any]:
    rows = [row for row in range(len(session.tasks)) if session.task_key(row).startswith("default/t")]
    return np.array(sorted(rows, key=session.task_key))


def fits(session: Session, class_: TaskClass) -> NDArray[np.bool_]:
    """The nodes that take one task."""
    compared = class_.request > 0
    compared[[CPU, MEMORY]] = True  # a node overcommitted in these fits no task
    enough = session.nodes.idle()[compared] >= class_.request[compared, None]
    found: NDArray[np.bool_] = np.logical_and.reduce(enough, axis=0)
    for one in session.hooks.filters():
        if one.applies(class_):
            found &= one.check(class_, Cells(session.nodes, class_)) == FITS
    return found


def one_by_one(session: Session, *, refusals_last: bool) -> tuple[list[int], list[NDArray[np.bool_]]]:
    """Nodes up to the first task that has none; by task, the nodes left after it was looked at."""
    left, chosen, masks = np.ones(len(session.nodes), dtype=np.bool_), list[int](), list[NDArray[np.bool_]]()
    transaction = Transaction(session)
    for row in tasks_of(session):
        class_ = session.classes[session.tasks.class_of[row]]
        left = left & fits(session, class_) if refusals_last else fits(session, class_)
        if not left.any():
            break
        scores = np.zeros(len(left))
        for scorer in session.hooks.scorers():
            if scorer.applies(class_):
                scores += scorer.weight * scorer.raw(class_, Cells(session.nodes, class_))
        best = int(np.where(left, scores, -np.inf).argmax())
        transaction.allocate(np.array([row]), np.array([best]))
        chosen.append(best)
        masks.append(left)
    return chosen, masks


@pytest.mark.parametrize("plugins", PLUGINS.values(), ids=PLUGINS)
@given(objects=gangs(), refusals_last=st.booleans())
@settings(max_examples=300, deadline=None)
def test_together_as_one_by_one(
    plugins: list[dict[str, Any]], objects: list[Object], *, refusals_last: bool
) -> None:
    cluster = cluster_of(*objects)
    session = session_with(cluster, plugins)
    classes = [session.classes[number] for number in session.tasks.class_of[tasks_of(session)].tolist()]
    found = Placement(session).fill_mixed(classes, refusals_last=refusals_last)
    assert found is not None
    nodes, left = one_by_one(session_with(cluster, plugins), refusals_last=refusals_last)
    assert found.nodes.tolist() == nodes
    assert found.left[: len(nodes)].tolist() == [mask.tolist() for mask in left]


def test_tasks_that_differ_in_more_than_amounts_are_not_mixed() -> None:
    tasks = [
        pod("t0", {"cpu": "1"}, group="train"),
        pod("t1", {"cpu": "2", GPU: "1"}, group="train"),
    ]
    session = session_with(
        cluster_of(
            node("n0", {"cpu": "8", "memory": "1Gi", GPU: "1", "pods": "9"}), *tasks, group("train", 2)
        ),
        [],
    )
    classes = [session.classes[number] for number in session.tasks.class_of[tasks_of(session)].tolist()]
    assert Placement(session).fill_mixed(classes, refusals_last=True) is None
