"""Idle resources preferred only as far as scores say: a gang placed at once goes where its tasks would one by one.

The reference is the plain loop: for every task, of all nodes where it fits on what is idle or being released,
the best by points, the first by name among equals; it waits if it does not fit on what is idle.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import Status
from maniple.framework.configuration.loading import PluginOption
from maniple.framework.criteria import Cells, Dependence, Scorer, Scores
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.placement.engine import Placement
from tests.kai_support import gpu_node, group, open_session, pod, queue

GPU, GONE = "nvidia.com/gpu", "2026-01-01T00:00:00Z"
Places = list[tuple[int, bool]]


class Points:
    """So many points for a node where the task fits now, and a few for every GPU that is used or left there."""

    name = "points"

    def __init__(self, session: Session, idle: float, density: float) -> None:
        self._session, self._idle, self._density = session, idle, density

    def scorers(self) -> list[Scorer]:
        return [Scorer("points", 1.0, Dependence.NODE, self._raw)]

    def _raw(self, class_: TaskClass, cells: Cells) -> Scores:
        rows = cells.node_rows()
        taken = (np.asarray(cells.extra) + 1) * class_.request.reshape(
            (-1,) + (1,) * np.ndim(rows + cells.extra)
        )
        nodes = self._session.nodes
        idle = (nodes.allocatable[:, rows] - nodes.used[:, rows] >= taken).all(axis=0)
        left = nodes.future_idle()[self._session.gpus.dimension, rows] - taken[self._session.gpus.dimension]
        return self._idle * idle + self._density * left / 1000

    def gpu_order(self, class_: TaskClass, node: int, device: str) -> float:
        return self._session.gpus.portion_used(node, device) if device else 0.0


scenes = st.tuples(
    # Of each node: GPUs, how many of them are used for good, and how many are being released.
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=6),
    st.integers(1, 2),  # GPUs that a task asks for
    st.integers(1, 14),  # tasks
    st.sampled_from([100.0, 2.0, 0.0]),
    st.sampled_from([-1.0, 1.0, 0.0]),
)


def open_scene(scene: Any) -> tuple[Session, Placement]:
    shapes, size, count, idle, density = scene
    objects: list[Object] = [queue("default"), group("g", 1), group("others", 1)]
    for number, (gpus, used, leaving) in enumerate(shapes):
        objects.append(gpu_node(f"n{number}", gpus))
        for kind, many, gone in (("used", used, ""), ("leaving", leaving, GONE)):
            objects += [
                pod(f"{kind}-{number}-{one}", {GPU: "1"}, group="others", on=f"n{number}", deleted=gone)
                for one in range(min(many, gpus))
            ]
    objects += [pod(f"p{one:02}", {GPU: str(size)}, group="g") for one in range(count)]
    session = open_session(*objects)
    session.use([[(PluginOption("points", {}, {}), Points(session, idle, density))]])
    return session, Placement(session)


def pending(session: Session) -> Any:
    return np.flatnonzero(session.tasks.status == Status.PENDING)


def in_pieces(scene: Any, size: int) -> Places:
    """Asking for so many places at a time."""
    session, placement = open_scene(scene)
    transaction, places = Transaction(session), Places()
    while len(rows := pending(session)[:size]):
        proposal = placement.fill(session.classes[session.tasks.class_of[rows[0]]], len(rows))
        if proposal is None:
            break
        placement.place(transaction, rows[: len(proposal)], proposal, session.refusals)
        places += zip(proposal.nodes.tolist(), proposal.waits.tolist(), strict=True)
    for row, (node, waits) in zip(np.flatnonzero(session.tasks.job == _job(session)), places, strict=False):
        assert session.tasks.node[row] == node
        assert session.tasks.status[row] == (Status.PIPELINED if waits else Status.ALLOCATED)
    return places


def _job(session: Session) -> int:
    found = session.cluster.jobs.index_of("default/g")
    assert found is not None
    return found


def by_hand(scene: Any) -> Places:
    shapes, size, count, idle_points, density = scene
    idle = [gpus - min(used, gpus) - min(leaving, gpus) for gpus, used, leaving in shapes]
    releasing = [min(leaving, gpus) for gpus, _, leaving in shapes]
    places = Places()
    for _ in range(count):
        best: tuple[float, int] | None = None
        for node in range(len(shapes)):
            left = idle[node] + releasing[node] - size
            if left >= 0:
                points = idle_points * (idle[node] >= size) + density * left
                if best is None or points > best[0]:
                    best = points, node
        if best is None:
            break
        node = best[1]
        waits = idle[node] < size
        (releasing if waits else idle)[node] -= size
        places.append((node, waits))
    return places


@given(scenes, st.integers(1, 20))
def test_a_gang_goes_where_its_tasks_would_go_one_by_one(scene: Any, size: int) -> None:
    expected = by_hand(scene)
    assert in_pieces(scene, 1) == expected
    assert in_pieces(scene, size) == expected


def test_by_points_a_task_may_wait_although_another_node_is_idle() -> None:
    shapes = [(2, 0, 0), (4, 0, 4)]
    assert in_pieces((shapes, 1, 2, 0.0, 1.0), 2) == [(1, True), (1, True)]
    assert in_pieces((shapes, 1, 3, 100.0, 1.0), 3) == [(0, False), (0, False), (1, True)]


@pytest.mark.parametrize("strict", [False, True])
def test_a_task_that_hardly_asks_for_anything_waits_for_a_place_only(strict: bool) -> None:
    """In the original it does not even wait for that, if the place is about to be free."""
    session = open_session(
        queue("default"),
        group("g", 1),
        gpu_node("full", 0, allocatable={"pods": "1"}),
        gpu_node("leaving", 0, allocatable={"pods": "1"}),
        pod("there", {"cpu": "1"}, on="full"),
        pod("goes", {"cpu": "1"}, on="leaving", deleted=GONE),
        pod("p", {"cpu": "1m"}, group="g"),
        strict=strict,
    )
    placement, row = Placement(session), session.cluster.tasks.index_of("default/p")
    proposal = placement.fill(session.classes[session.tasks.class_of[row]], 1)
    assert proposal is not None
    assert (proposal.nodes.tolist(), proposal.waits.tolist()) == ([1], [not strict])
    column = placement.column(session.classes[session.tasks.class_of[row]])
    assert (column.slots.tolist(), column.later.tolist()) == ([0, int(strict)], [0, 1])


def test_a_node_that_owes_gpus_takes_nobody() -> None:
    held = [pod(f"h{one}", {GPU: "1"}, group="g", on="owes") for one in range(2)]
    part = pod("part", group="g", fraction="0.5", on="owes", groups=("x",))
    session = open_session(
        queue("default"),
        group("g", 1),
        gpu_node("owes", 1, labels={"nvidia.com/gpu.count": "2"}),
        *held,
        part,
        pod("cpu", {"cpu": "1"}, group="g"),
        pod("shares", group="g", fraction="0.5"),
    )
    placement = Placement(session)
    fits = {}
    for name in ("cpu", "shares"):
        row = session.cluster.tasks.index_of(f"default/{name}")
        fits[name] = placement.fill(session.classes[session.tasks.class_of[row]], 1) is not None
    assert fits == {"cpu": False, "shares": False}


# -- parts of devices --------------------------------------------------------------------------------------------------


def sharing(*objects: Object, **ask: Any) -> tuple[tuple[str, ...], bool] | None:
    session = open_session(
        queue("default"), group("g", 1), gpu_node("n", 2), *objects, pod("p", group="g", uid="u", **ask)
    )
    session.use([[(PluginOption("points", {}, {}), Points(session, 0.0, 0.0))]])
    row = session.cluster.tasks.index_of("default/p")
    assert row is not None
    class_ = session.classes[session.tasks.class_of[row]]
    return Placement(session).shares(row, class_, 0, pipeline_only="pipeline" in ask)


def held(name: str, part: str, device: str, **more: Any) -> Object:
    return pod(name, group="g", fraction=part, on="n", groups=(device,), **more)


def whole(name: str, **more: Any) -> Object:
    return pod(name, {GPU: "1"}, group="g", on="n", **more)


@pytest.mark.parametrize(
    ("objects", "ask", "expected"),
    [
        ([], {"fraction": "0.5"}, (("u-0",), False)),
        ([], {"fraction": "0.5", "devices": "2"}, (("u-0", "u-1"), False)),
        ([], {"fraction": "0.5", "devices": "3"}, None),
        ([held("a", "0.3", "x"), held("b", "0.5", "y")], {"fraction": "0.5"}, (("y",), False)),
        ([held("a", "0.3", "x"), held("b", "0.3", "y")], {"fraction": "0.5"}, (("x",), False)),
        ([held("a", "0.6", "x")], {"fraction": "0.5"}, (("u-0",), False)),
        ([held("a", "0.5", "x")], {"fraction": "0.5", "devices": "2"}, (("x", "u-0"), False)),
        ([whole("a"), whole("b", deleted=GONE)], {"fraction": "0.5"}, (("u-0",), True)),
        ([whole("a"), whole("b")], {"fraction": "0.5"}, None),
        (
            [whole("a"), held("b", "0.4", "x"), held("c", "0.4", "x", deleted=GONE)],
            {"fraction": "0.5"},
            (("x",), True),
        ),
    ],
)
def test_which_devices_a_task_gets_a_part_of(
    objects: list[Object], ask: dict[str, str], expected: Any
) -> None:
    assert sharing(*objects, **ask) == expected
