"""Stepwise fill, where a task may change other nodes' scores: a gang goes where it would go task by task."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.cluster.domains import ROOT
from maniple.framework.criteria import Scorer
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.placement.engine import Placement
from maniple.plugins.feasibility.predicates import Predicates
from maniple.plugins.score.binpack import Binpack
from maniple.plugins.score.nodeorder import NodeOrder
from maniple.plugins.topology.network_topology_aware import NetworkTopologyAware
from tests.networks import SOFT, nodes, rack, spine
from tests.plugins.opening import job, names, session_on, use
from tests.support import group, pod, queue

LEAVING = "2026-01-01T00:00:00Z"


@st.composite
def networks(draw: st.DrawFn) -> list[Object]:
    objects: list[Object] = []
    for s in range(draw(st.integers(1, 2))):
        for r in range(draw(st.integers(1, 3))):
            own = [f"s{s}r{r}n{n}" for n in range(draw(st.integers(1, 3)))]
            for name in own:
                objects += nodes(name, cpu=draw(st.integers(1, 4)))
                if draw(st.integers(0, 3)) == 0:
                    deleted = draw(st.sampled_from(["", LEAVING]))
                    objects.append(pod(f"old-{name}", {"cpu": "1"}, group="old", on=name, deleted=deleted))
            objects.append(rack(f"s{s}r{r}", *own))
        objects.append(spine(f"s{s}", *(f"s{s}r{r}" for r in range(3))))
    return [queue("default"), group("old", 0), *objects, *nodes("z1", cpu=draw(st.integers(1, 3)))]


SCORES = st.sampled_from([(), ("binpack",), ("nodeorder",), ("binpack", "nodeorder")])


def opened(
    objects: list[Object], scores: tuple[str, ...], tied: bool, count: int, **arguments: Any
) -> Session:
    spec: dict[str, Any] = {"networkTopology": SOFT} if tied else {}
    pods = [pod(f"p{i}", {"cpu": "1", "memory": "500Mi"}, group="g", uid=f"{i}") for i in range(count)]
    session = session_on([*objects, group("g", count, **spec), *pods])
    plugins: list[Any] = [Predicates(session, {})]
    plugins += [Binpack(session, {})] if "binpack" in scores else []
    plugins += [NodeOrder(session, {})] if "nodeorder" in scores else []
    plugins.append(NetworkTopologyAware(session, arguments))
    use(session, *plugins)
    return session


def placed(session: Session, at_once: int) -> list[tuple[str, bool]]:
    """Where the tasks go when so many are asked for at a time, and whether they have to wait there."""
    placement, found = Placement(session), []
    one = session.groups.root(job(session, "g")).members[0]
    rows = session.in_task_order(one.rows)
    beside = session.groups.progress(one, ROOT)
    while len(rows):
        class_ = session.classes[session.tasks.class_of[rows[0]]]
        proposal = placement.fill(class_, min(at_once, len(rows)), beside=beside)
        if proposal is None:
            break
        placement.place(Transaction(session), rows[: len(proposal)], proposal, session.refusals)
        if beside is not None:
            session.groups.advance(beside, proposal.nodes)
        waits = bool(proposal.waits.any())
        found += [(session.node_name(node), waits) for node in proposal.nodes.tolist()]
        rows = rows[len(proposal) :]
    return found


@settings(max_examples=120, deadline=None)
@given(networks(), SCORES, st.booleans(), st.integers(1, 9), st.integers(2, 9), st.sampled_from([0.0, 0.8]))
def test_a_gang_goes_where_its_tasks_would_go_one_by_one(
    objects: list[Object], scores: tuple[str, ...], tied: bool, count: int, at_once: int, fading: float
) -> None:
    arguments = {"hypernode.binpack.normal-pod.fading": fading}
    one_by_one = placed(opened(objects, scores, tied, count, **arguments), 1)
    assert placed(opened(objects, scores, tied, count, **arguments), at_once) == one_by_one


@settings(max_examples=60, deadline=None)
@given(networks(), SCORES, st.booleans(), st.integers(1, 9))
def test_steps_say_what_the_scorer_says_when_asked_anew(
    objects: list[Object], scores: tuple[str, ...], tied: bool, count: int
) -> None:
    """The same again, against a scorer that is asked afresh for every task."""
    with pytest.MonkeyPatch.context() as patch:
        real = Scorer.__init__

        def without_steps(self: Scorer, *args: Any, **fields: Any) -> None:
            real(self, *args, **{**fields, "steps": None})

        patch.setattr(Scorer, "__init__", without_steps)
        asked_anew = placed(opened(objects, scores, tied, count), count)
    assert placed(opened(objects, scores, tied, count), count) == asked_anew


def test_many_are_decided_at_once() -> None:
    objects = [queue("default"), *nodes("a1", "a2", cpu=9), rack("a", "a1"), rack("b", "a2")]
    session = opened(objects, (), tied=False, count=6)
    one = session.groups.root(job(session, "g")).members[0]
    proposal = Placement(session).fill(session.classes[session.tasks.class_of[one.rows[0]]], 6)
    assert proposal is not None
    assert len(proposal) == 6
    assert names(session, one.rows)  # nothing was placed by asking
    assert (session.tasks.node[one.rows] == -1).all()


def test_a_gang_with_a_topology_does_not_look_ahead_for_the_next_one() -> None:
    """What is near for one job is not near for another."""
    objects = [
        queue("default"), *nodes("n1", "n2", "n3", "n4", cpu=2),
        rack("odd", "n1", "n3"), rack("even", "n2", "n4"),
    ]  # fmt: skip
    session = opened(objects, (), tied=True, count=2)
    one = session.groups.root(job(session, "g")).members[0]
    placement, class_ = Placement(session), session.classes[session.tasks.class_of[one.rows[0]]]
    for place, start in enumerate(("odd", "even")):
        one.domain = session.domains.index[start]
        proposal = placement.fill(class_, 1, beside=session.groups.progress(one, ROOT))
        assert proposal is not None
        assert session.node_name(int(proposal.nodes[0])) == ("n1" if start == "odd" else "n2")
        placement.place(Transaction(session), one.rows[place : place + 1], proposal, session.refusals)


def test_nobody_left_is_an_empty_sequence() -> None:
    objects = [queue("default"), *nodes("a1", "a2", cpu=1), rack("a", "a1"), rack("b", "a2")]
    session = opened(objects, (), tied=False, count=3)
    assert [name for name, _ in placed(session, 3)] == ["a1", "a2"]
    assert np.count_nonzero(session.tasks.node >= 0) == 2
