"""nodegroup: which groups of nodes a queue may use, how much of them, and how gladly."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.framework.reasons import Code
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.plugins.feasibility import nodegroup
from maniple.plugins.feasibility.nodegroup import GROUP, LIMITS, NodeGroup
from tests.plugins.opening import session_on, tasks, use
from tests.plugins.planning import planned
from tests.plugins.score.cells import class_of, scores, verdicts
from tests.support import group, node, pod, queue

NODES = [node("n0"), *(node(f"n-{name}", labels={GROUP: name}) for name in "abcd")]
Names = list[str] | None


def affinity(
    required: Names = None, preferred: Names = None, never: Names = None, rather_not: Names = None
) -> dict[str, Any]:
    must, may = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    return {
        "nodeGroupAffinity": {must: required or [], may: preferred or []},
        "nodeGroupAntiAffinity": {must: never or [], may: rather_not or []},
    }


def opened(
    *queues: Object,
    arguments: dict[str, Any] | None = None,
    hierarchy: bool = False,
    objects: tuple[Object, ...] = (),
) -> tuple[Session, NodeGroup]:
    """A job `j-<queue>` with a waiting pod `p-<queue>` in every queue."""
    work = [
        item
        for one in queues
        for item in (
            group(f"j-{one.metadata.name}", 1, queue=one.metadata.name),
            pod(f"p-{one.metadata.name}", {"cpu": "1"}, group=f"j-{one.metadata.name}"),
        )
    ]
    session = session_on(
        [*NODES, *queues, *work, *objects], plugins=[{"name": "nodegroup", "enableHierarchy": hierarchy}]
    )
    plugin = NodeGroup(session, arguments or {})
    use(session, plugin)
    return session, plugin


def refused(spec: dict[str, Any] | None, **arguments: Any) -> dict[str, str]:
    stated: dict[str, Any] = {} if spec is None else {"affinity": spec}
    session, plugin = opened(queue("q", **stated), arguments=arguments)
    return verdicts(session, plugin, "p-q")


# -- where ---------------------------------------------------------------------------------------------------------


def test_required_and_preferred_groups_are_open() -> None:
    found = refused(affinity(required=["a"], preferred=["b"]))
    assert found == {
        "n0": nodegroup.NO_GROUP,
        "n-c": nodegroup.OTHER_GROUP,
        "n-d": nodegroup.OTHER_GROUP,
    }


def test_required_against_closes_and_preferred_against_opens_again() -> None:
    found = refused(affinity(required=["a", "b"], never=["b", "c"], rather_not=["c", "d"]))
    assert set(found) == {"n0", "n-b"}


@pytest.mark.parametrize("spec", [None, {}, affinity()])
@pytest.mark.parametrize("strict", [True, False])
def test_a_queue_that_names_no_group_is_kept_out_of_groups(spec: dict[str, Any] | None, strict: bool) -> None:
    found = refused(spec, strict=strict)
    expected = dict.fromkeys(["n-a", "n-b", "n-c", "n-d"], nodegroup.NO_AFFINITY)
    assert found == (expected | {"n0": nodegroup.NO_GROUP} if strict else expected)


def test_a_queue_that_names_groups_is_kept_to_them_also_when_not_strict() -> None:
    assert set(refused(affinity(required=["a"]), strict=False)) == {"n0", "n-b", "n-c", "n-d"}


def test_no_eviction_helps() -> None:
    session, plugin = opened(queue("q", affinity=affinity(required=["a"])), queue("r"))
    verdicts(session, plugin, "p-q")
    ours = [r for r in session.reasons.reasons[1:] if "group" in r.text]
    assert {r.code for r in ours} == {Code.UNRESOLVABLE}


@given(*[st.lists(st.sampled_from("abcd"), unique=True)] * 4)
def test_it_is_the_rule_written_out(
    required: Names, preferred: Names, never: Names, rather_not: Names
) -> None:
    lists = [required or [], preferred or [], never or [], rather_not or []]
    session, plugin = opened(queue("q", affinity=affinity(*lists)))
    refusals, points = verdicts(session, plugin, "p-q"), scores(session, plugin, "p-q")
    for name in "abcd":
        open_ = (name in lists[0] or name in lists[1]) and name not in lists[2]
        open_ = open_ or name in lists[3]
        assert (f"n-{name}" not in refusals) is open_
        score = 100 * (name in lists[0]) + 50 * (name in lists[1])
        assert points[f"n-{name}"] == (-1 if name in lists[3] else score)
    assert points["n0"] == 0


# -- how gladly ----------------------------------------------------------------------------------------------------


def test_preferred_groups_count_by_their_place_when_asked_to() -> None:
    spec = affinity(required=["c"], preferred=["a", "b", "c"])
    session, plugin = opened(queue("q", affinity=spec), arguments={"enablePreferredOrder": True})
    found = scores(session, plugin, "p-q")
    assert found == pytest.approx({"n0": 0, "n-a": 50, "n-b": 100 / 3, "n-c": 100 + 50 / 3, "n-d": 0})


# -- the tree ------------------------------------------------------------------------------------------------------


def tree(hierarchy: bool) -> dict[str, set[str]]:
    """Open groups by queue."""
    queues = [
        queue("root", affinity=affinity(required=["d"])),
        queue("team", affinity=affinity(required=["a"])),
        queue("child", parent="team"),
        queue("grandchild", parent="child"),
        queue("own", parent="team", affinity=affinity(required=["b"])),
        queue("emptied", parent="team", affinity={}),
        queue("lost", parent="nowhere"),
        queue("top"),
        queue("ring1", parent="ring2"),
        queue("ring2", parent="ring1"),
    ]
    session, plugin = opened(*queues, hierarchy=hierarchy)
    every = {item.metadata.name for item in NODES}
    open_ = {
        one.metadata.name: every - set(verdicts(session, plugin, f"p-{one.metadata.name}")) for one in queues
    }
    return {name: {node.removeprefix("n-") for node in nodes} for name, nodes in open_.items() if nodes}


def test_queues_inherit_from_the_nearest_ancestor_in_a_hierarchy() -> None:
    assert tree(True) == {
        "root": {"d"},
        "team": {"a"},
        "child": {"a"},
        "grandchild": {"a"},
        "own": {"b"},
        "top": {"d"},
    }


def test_queues_stand_alone_without_one() -> None:
    assert tree(False) == {"root": {"d"}, "team": {"a"}, "own": {"b"}}


# -- limits --------------------------------------------------------------------------------------------------------


def limited(limits: object, *objects: Object) -> tuple[Session, NodeGroup]:
    text = limits if isinstance(limits, str) else json.dumps(limits)
    one = queue("q", affinity=affinity(required=["a", "b"]), annotations={LIMITS: text})
    return opened(one, queue("r", affinity=affinity(required=["a"])), objects=objects)


def full(session: Session, plugin: NodeGroup, name: str = "p-q") -> set[str]:
    return {node for node, text in verdicts(session, plugin, name).items() if text == nodegroup.FULL}


def used(name: str, cpu: str, *, on: str = "n-a", in_group: str = "j-q", **more: Any) -> Object:
    return pod(name, {"cpu": cpu, "memory": "1Gi"}, on=on, group=in_group, **more)


def test_a_queue_holds_no_more_in_a_group_than_its_limit() -> None:
    for cpu, expected in (("3", set()), ("3001m", {"n-a"})):
        session, plugin = limited({"a": {"cpu": "4"}}, used("u", cpu))
        assert full(session, plugin) == expected


def test_only_what_the_queue_s_jobs_hold_in_that_group_counts() -> None:
    session, plugin = limited(
        {"a": {"cpu": 4}},
        used("b-side", "4", on="n-b"),
        used("other", "4", in_group="j-r"),
        used("done", "4", phase="Succeeded"),
        used("orphan", "4", in_group=""),
    )
    assert full(session, plugin) == set()
    assert full(session, plugin, "p-r") == set()


def test_only_the_named_resources_are_limited() -> None:
    session, plugin = limited({"a": {"memory": "1Gi", "example.com/x": "0"}, "b": None}, used("u", "7"))
    assert full(session, plugin) == set()
    session, plugin = limited({"a": {"memory": "1Gi", "cpu": "100"}}, used("u", "7"), used("v", "1"))
    assert full(session, plugin) == {"n-a"}


def test_it_follows_placements_and_their_undoing() -> None:
    session, plugin = limited({"a": {"cpu": "2"}, "b": {"cpu": "1"}}, used("u", "1"))
    assert full(session, plugin) == set()
    transaction = Transaction(session)
    transaction.allocate(tasks(session, "p-q"), np.array([session.nodes.facts.index["n-a"]]))
    assert full(session, plugin) == {"n-a"}
    transaction.evict(tasks(session, "u"), "test")
    assert full(session, plugin) == set()
    transaction.discard()
    assert full(session, plugin) == set()
    transaction.pipeline(tasks(session, "p-q"), np.array([session.nodes.facts.index["n-b"]]))
    assert full(session, plugin) == {"n-b"}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"a": {"cpu": "four"}}',
        '{"a": 4}',
        '{"a": {"cpu": true}}',
        '{"a": {"cpu": []}}',
        "[" * 100_000,
    ],
)
def test_limits_that_cannot_be_read_close_every_node_and_are_reported(text: str) -> None:
    session, plugin = limited(text)
    assert set(verdicts(session, plugin, "p-q").values()) == {nodegroup.UNREADABLE}
    assert set(verdicts(session, plugin, "p-r").values()) == {nodegroup.NO_GROUP, nodegroup.OTHER_GROUP}
    assert len(session.warnings) == 1
    assert "queue q" in session.warnings[0]


@pytest.mark.parametrize("text", ["", "null", "{}"])
def test_no_limits_are_no_limits(text: str) -> None:
    session, plugin = limited(text)
    assert full(session, plugin) == set()


# -- in a plan -----------------------------------------------------------------------------------------------------


def test_queues_that_say_the_same_share_their_classes() -> None:
    same = affinity(required=["a"])
    session, _ = opened(queue("q", affinity=same), queue("r", affinity=same), queue("s"))
    assert class_of(session, "p-q") is class_of(session, "p-r")
    assert class_of(session, "p-q") is not class_of(session, "p-s")


def test_a_gang_stops_at_the_limit_of_a_group_and_goes_on_in_the_next() -> None:
    limits = {LIMITS: json.dumps({"a": {"cpu": "2"}, "b": {"cpu": "1"}})}
    plan = planned(
        [
            *NODES,
            queue("q", affinity=affinity(required=["a"], preferred=["b"]), annotations=limits),
            group("g", 3, queue="q"),
            *(pod(f"p{n}", {"cpu": "1"}, group="g", uid=f"p{n}") for n in range(4)),
        ],
        "nodegroup",
    )
    assert plan.binds == {"default/p0": "n-a", "default/p1": "n-a", "default/p2": "n-b"}
    assert nodegroup.FULL in plan.tasks["default/p3"].reason


def test_a_misspelt_argument_is_reported_with_the_right_one() -> None:
    session, _ = opened(queue("q"), arguments={"enablePreferedOrder": True, "strict": "perhaps"})
    assert len(session.warnings) == 2
    assert "enablePreferredOrder" in session.warnings[1]
