"""Which node a task goes to: added scores of plugins, a plugin that picks the node, shards, lasting rejections."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from maniple.cluster.classes import TaskClass
from maniple.cluster.snapshot import NodeState
from maniple.framework.configuration.registry import Extensions
from maniple.framework.criteria import Dependence, Filter, Scorer, per_node, per_node_verdict
from maniple.framework.reasons import Code
from maniple.framework.session import Session
from maniple.planner import Plan, Planner
from tests.actions.volcano.scenes import cycle
from tests.support import cluster_of, group, node, pod, priority_class, queue

ONE = {"cpu": "1", "memory": "1Gi"}


class Points:
    """Points by node, from the arguments."""

    name = "points"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._points = arguments

    def scorers(self) -> list[Scorer]:
        return [Scorer("Points", 1, Dependence.CLUSTER, per_node(self._worth))]

    def _worth(self, _class: TaskClass, nodes: NodeState, row: int, _more: int) -> float:
        return float(self._points.get(nodes.facts.names[row], 0))


class MorePoints(Points):
    name = "more-points"


class Chooser:
    """Takes the node that the arguments name, if it is among the candidates."""

    name = "chooser"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._row = session.nodes.facts.index[arguments["node"]]

    def best_node(self, _class: TaskClass, rows: Any, _scores: Any) -> int | None:
        return self._row if self._row in rows.tolist() else None


class Refuser:
    """Refuses nodes for causes from the arguments: node -> [text, code]."""

    name = "refuser"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        self._causes = arguments

    def filters(self) -> list[Filter]:
        return [Filter("Refuser", Dependence.NODE, per_node_verdict(self._judge))]

    def _judge(self, _class: TaskClass, nodes: NodeState, row: int, _more: int) -> int:
        cause = self._causes.get(nodes.facts.names[row])
        return self._session.reasons.number(cause[0], Code(cause[1])) if cause else 0


MADE = Extensions(plugins={one.name: one for one in (Points, MorePoints, Chooser, Refuser)})


def planned(objects: list[Any], *plugins: Mapping[str, Any], actions: str = "allocate") -> Plan:
    entries = [{"name": "gang"}, {"name": "priority"}, *plugins]
    conf = {"actions": actions, "tiers": [{"plugins": entries}]}
    planner = Planner(profile="volcano", conf=conf, options={"debug": True, "extensions": MADE})
    return planner.cycle(cluster_of(*objects))


def one_task(*nodes: str) -> list[Any]:
    return [*(node(name) for name in nodes), queue("default"), group("a"), pod("a-0", ONE, group="a")]


def test_points_of_all_plugins_add_up() -> None:
    first = {"name": "points", "arguments": {"n1": 10, "n2": 6}}
    second = {"name": "more-points", "arguments": {"n2": 5}}
    assert planned(one_task("n1", "n2"), first).binds == {"default/a-0": "n1"}
    assert planned(one_task("n1", "n2"), first, second).binds == {"default/a-0": "n2"}


def test_of_equal_nodes_the_first_by_name_is_taken() -> None:
    equal = {"name": "points", "arguments": {"n2": 7, "n3": 7}}
    assert planned(one_task("n3", "n1", "n2"), equal).binds == {"default/a-0": "n2"}


def test_a_plugin_that_chooses_comes_before_the_points() -> None:
    points = {"name": "points", "arguments": {"n1": 10}}
    chooser = {"name": "chooser", "arguments": {"node": "n2"}}
    assert planned(one_task("n1", "n2"), points, chooser).binds == {"default/a-0": "n2"}
    off = {**chooser, "enableBestNode": False}
    assert planned(one_task("n1", "n2"), points, off).binds == {"default/a-0": "n1"}


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
@pytest.mark.parametrize(
    ("code", "helps"), [("Unschedulable", True), ("UnschedulableAndUnresolvable", False), ("Error", False)]
)
def test_every_refusal_keeps_a_task_out_and_only_passing_ones_leave_hope_in_evictions(
    action: str, code: str, helps: bool
) -> None:
    """A plugin rejects n1 until its pod has left.

    To the letter the code says whether that may happen; otherwise it is tried.
    """
    objects = [
        node("n1", {"cpu": "1"}),
        queue("default"),
        queue("theirs"),
        priority_class("high", 10),
        group("old", 0, queue="default" if action == "preempt" else "theirs", phase="Running"),
        pod("old-0", ONE, group="old", on="n1"),
        group("new", priorityClassName="high"),
        pod("new-0", ONE, group="new"),
    ]
    entries = [{"name": "gang"}, {"name": "conformance"}, {"name": "crowd", "arguments": {"code": code}}]
    conf = {"actions": f"allocate, {action}", "tiers": [{"plugins": entries}]}
    made = Extensions(plugins={"crowd": Crowd})
    for compat, expected in (("strict", helps), ("better", True)):
        planner = Planner(
            profile="volcano", conf={**conf, "compat": compat}, options={"debug": True, "extensions": made}
        )
        plan = planner.cycle(cluster_of(*objects))
        assert plan.binds == {}
        assert plan.evictions == (["default/old-0"] if expected else [])


class Crowd:
    """Refuses a node on which there is a pod, with the code from the arguments."""

    name = "crowd"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._number = session.reasons.number("somebody is there", Code(arguments["code"]))

    def filters(self) -> list[Filter]:
        return [Filter("Crowd", Dependence.NODE, self._check)]

    def _check(self, _class: TaskClass, cells: Any) -> Any:
        return np.where(cells.pods() > 0, self._number, 0).astype(np.int16)


def test_each_refusal_is_counted_once_and_told_in_order() -> None:
    causes = {"n1": ["b is not right", "Unschedulable"], "n2": ["a is wrong", "UnschedulableAndUnresolvable"]}
    plan = planned(one_task("n1", "n2"), {"name": "refuser", "arguments": causes})
    told = plan.tasks["default/a-0"].reason
    assert told == "0/2 nodes are unavailable: 1 a is wrong, 1 b is not right"


# -- shards ----------------------------------------------------------------------------------------------------------


BARE = ({"name": "gang"}, {"name": "conformance"}, {"name": "predicates"})


def crowded(home: str) -> list[Any]:
    """Two full nodes; evictions could make room on either."""
    return [
        *(node(f"n{i}", {"cpu": "1"}) for i in (1, 2)),
        queue("default"),
        queue("theirs"),
        priority_class("high", 10),
        *(group(f"old{i}", 0, queue=home, phase="Running") for i in (1, 2)),
        *(pod(f"old{i}", ONE, group=f"old{i}", on=f"n{i}") for i in (1, 2)),
        group("new", priorityClassName="high"),
        pod("new", ONE, group="new"),
    ]


@pytest.mark.parametrize("compat", ["better", "strict"])
@pytest.mark.parametrize(("action", "home"), [("reclaim", "theirs"), ("preempt", "default")])
@pytest.mark.parametrize("own", ["n1", "n2"])
def test_a_hard_shard_takes_victims_on_its_own_nodes_only(
    own: str, action: str, home: str, compat: str
) -> None:
    shard = {"shard": {"mode": "hard", "name": "s", "nodes": [own]}}
    plan = cycle(*crowded(home), actions=action, plugins=BARE, options=shard, compat=compat)
    assert plan.evictions == [f"default/old{own[-1]}"]
    assert plan.pipelined == {"default/new": own}


@pytest.mark.parametrize("own", ["n1", "n2"])
@pytest.mark.parametrize(("action", "home"), [("reclaim", "theirs"), ("preempt", "default")])
def test_to_the_letter_a_soft_shard_looks_at_its_own_nodes_first(own: str, action: str, home: str) -> None:
    shard = {"shard": {"mode": "soft", "name": "s", "nodes": [own]}}
    plan = cycle(*crowded(home), actions=action, plugins=BARE, options=shard, compat="strict")
    assert plan.evictions == [f"default/old{own[-1]}"]


def test_backfill_prefers_the_own_shard_and_keeps_to_it_when_that_is_hard() -> None:
    objects = (node("n1"), node("n2"), queue("default"), group("a"), pod("a-0", group="a"))
    for mode in ("soft", "hard"):
        options = {"shard": {"mode": mode, "name": "s", "nodes": ["n2"]}}
        assert cycle(*objects, actions="backfill", options=options).binds == {"default/a-0": "n2"}
