"""Sub-jobs: which tasks belong to which, what holds them together, and where they are."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.cluster.cluster import Cluster
from maniple.cluster.domains import NONE, ROOT
from maniple.cluster.statuses import READY, Status
from maniple.framework.groups.tree import DEFAULT, Group, Limit, PodSet
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.plugins.gang.gang import Gang
from maniple.plugins.order.priority import Priority
from tests.networks import ONE, SOFT, four_racks, hard, nodes, policy, rack, two_racks
from tests.plugins.opening import job, names, session_again, session_on, tasks, use
from tests.support import group, hyper_node, make, pod, queue


def part(name: str, value: str, **fields: Any) -> Object:
    return pod(name, ONE, group="g", labels={"part": value}, **fields)


def opened(*objects: Object, strict: bool = False) -> tuple[Session, Group]:
    session = session_on([queue("default"), *objects], strict=strict)
    return session, session.groups.root(job(session, "g"))


def split(session: Session, shape: Group) -> dict[str, list[str]]:
    return {one.name: sorted(names(session, one.rows)) for one in shape.members}


def where(session: Session, domain: int) -> str:
    return session.domains.names[domain] if domain != NONE else ""


# -- which tasks belong to which -------------------------------------------------------------------------------------


def test_without_policies_a_job_is_one_sub_job_with_the_jobs_minimum_and_topology() -> None:
    session, shape = opened(group("g", 3, networkTopology=hard(1)), part("p0", "0"), part("p1", "1"))
    (only,) = shape.members
    assert (only.whole, only.size, only.limit) == (True, 3, Limit(1))
    assert names(session, only.rows) == ["p0", "p1"]
    assert not shape.split


def test_values_of_the_keys_make_sub_jobs() -> None:
    session, shape = opened(
        group("g", 1, subGroupPolicy=[policy(size=2)]), part("p0", "x"), part("p1", "y"), part("p2", "x")
    )
    assert split(session, shape) == {"p-x": ["p0", "p2"], "p-y": ["p1"]}
    assert {one.size for one in shape.members} == {2}


def test_every_key_has_to_have_a_value() -> None:
    two_keys = {"name": "p", "matchLabelKeys": ["part", "row"]}
    session, shape = opened(
        group("g", 1, subGroupPolicy=[two_keys]),
        pod("p0", ONE, group="g", labels={"part": "x", "row": "1"}),
        pod("p1", ONE, group="g", labels={"part": "x", "row": ""}),
        pod("p2", ONE, group="g", labels={"part": "x"}),
    )
    assert split(session, shape) == {DEFAULT: ["p1", "p2"], "p-x-1": ["p0"]}


def test_the_first_policy_that_matches_takes_a_task() -> None:
    chosen = policy("first", labelSelector={"matchLabels": {"kind": "big"}})
    session, shape = opened(
        group("g", 1, subGroupPolicy=[chosen, policy("second")]),
        pod("p0", ONE, group="g", labels={"part": "x", "kind": "big"}),
        part("p1", "x"),
    )
    assert split(session, shape) == {"first-x": ["p0"], "second-x": ["p1"]}


def test_tasks_that_no_policy_takes_are_one_sub_job_of_minimum_one_with_the_jobs_topology() -> None:
    _, shape = opened(
        group("g", 3, networkTopology=hard(2), subGroupPolicy=[policy()]),
        pod("p0", ONE, group="g"),
        part("p1", "x"),
    )
    first, second = shape.members
    assert (first.name, first.policy, first.size, first.limit) == (DEFAULT, "", 1, Limit(2))
    assert second.limit is None


@pytest.mark.parametrize(("value", "index"), [("7", 7), ("-2", -2), ("x7", 0), ("", 0)])
def test_the_number_of_a_sub_job_is_its_first_value(value: str, index: int) -> None:
    _, shape = opened(group("g", 1, subGroupPolicy=[policy()]), part("p0", value))
    assert shape.members[0].index == index


def test_a_policy_without_keys_takes_all_that_its_selector_means_as_one_and_nobody_in_the_original() -> None:
    """Quirk 23."""
    chosen = policy("all", key="", size=2, labelSelector={"matchLabels": {"part": "x"}})
    objects = (group("g", 1, subGroupPolicy=[chosen]), part("p0", "x"), part("p1", "x"), part("p2", "y"))
    session, shape = opened(*objects)
    assert split(session, shape) == {DEFAULT: ["p2"], "all-": ["p0", "p1"]}
    session, shape = opened(*objects, strict=True)
    assert split(session, shape) == {DEFAULT: ["p0", "p1", "p2"]}


def test_values_that_look_alike_when_joined_stay_apart() -> None:
    two_keys = {"name": "p", "matchLabelKeys": ["part", "row"]}
    _, shape = opened(
        group("g", 1, subGroupPolicy=[two_keys]),
        pod("p0", ONE, group="g", labels={"part": "a-b", "row": "c"}),
        pod("p1", ONE, group="g", labels={"part": "a", "row": "b-c"}),
    )
    assert len(shape.members) == 2


def test_a_sub_job_is_as_important_as_its_most_important_task_and_never_below_zero() -> None:
    session, shape = opened(
        group("g", 1, subGroupPolicy=[policy()]),
        part("p0", "x", priority=3),
        part("p1", "x", priority=9),
        part("p2", "y", priority=-4),
    )
    assert [session.groups.priority(one) for one in shape.members] == [9, 0]
    use(session, Priority(session, {}))
    assert [session.hooks.pod_set_order(one) for one in shape.members] == [(-9,), (0,)]


def test_sub_jobs_are_ordered_by_plugins_then_by_number_then_by_name() -> None:
    session, shape = opened(
        group("g", 1, subGroupPolicy=[policy()]),
        part("p0", "10"),
        part("p1", "9"),
        part("p2", "b"),
        part("p3", "a", priority=50),
    )
    use(session, Priority(session, {}))
    ordered = sorted(shape.members, key=session.groups.order)
    assert [one.name for one in ordered] == ["p-a", "p-b", "p-9", "p-10"]


def test_plain_jobs_have_no_shape_until_somebody_asks() -> None:
    session = session_on([queue("default"), group("plain", 2), pod("p0", ONE, group="plain")])
    assert session.groups.shaped == {}
    shape = session.groups.root(job(session, "plain"))
    assert ([one.minimum for one in shape.members], shape.bounded, shape.split) == ([2], False, False)


# -- what holds them together ------------------------------------------------------------------------------------------


def test_soft_means_up_to_the_root_and_inside_a_bounded_job_as_far_as_the_job_may() -> None:
    _, shape = opened(
        *two_racks(),
        group("g", 1, networkTopology=SOFT, subGroupPolicy=[policy(networkTopology=SOFT)]),
        part("p", "x"),
    )
    assert (shape.limit, shape.members[0].limit) == (Limit(3, wished=True), Limit(3, wished=True))
    _, shape = opened(
        *two_racks(),
        group("g", 1, networkTopology=hard(1), subGroupPolicy=[policy(networkTopology=SOFT)]),
        part("p", "x"),
    )
    assert (shape.limit, shape.members[0].limit) == (Limit(1), Limit(1, wished=True))


def test_a_tier_goes_by_its_name() -> None:
    named = {"mode": "hard", "highestTierName": "spine"}
    _, shape = opened(*two_racks(), group("g", 1, networkTopology=named), part("p", "x"))
    assert shape.limit == Limit(2)


def test_a_number_wins_over_a_name() -> None:
    both = {"mode": "hard", "highestTierName": "spine", "highestTierAllowed": 1}
    _, shape = opened(*two_racks(), group("g", 1, networkTopology=both), part("p", "x"))
    assert shape.limit == Limit(1)


def test_a_name_that_nobody_has_is_no_limit_but_is_remembered() -> None:
    named = {"mode": "hard", "highestTierName": "nobody"}
    _, shape = opened(*two_racks(), group("g", 1, networkTopology=named), part("p", "x"))
    assert shape.limit == Limit(None, unknown="nobody")
    assert not shape.bounded


def test_hard_without_a_tier_limits_nothing() -> None:
    _, shape = opened(*two_racks(), group("g", 1, networkTopology={"mode": "hard"}), part("p", "x"))
    assert shape.limit == Limit(None)
    assert not shape.bounded


# -- counts ------------------------------------------------------------------------------------------------------------


def test_counts_follow_transactions_and_come_back() -> None:
    session, shape = opened(
        *nodes("n1", cpu=9),
        group("g", 1, subGroupPolicy=[policy(size=2)]),
        part("p0", "x"),
        part("p1", "x"),
        part("p2", "y", on="n1"),
        pod("p3", group="g", labels={"part": "y"}),
    )
    x, y = shape.members
    counts = session.groups.counts
    assert (counts(x), counts(y)) == ((0, 0, 0), (1, 0, 1))
    transaction = Transaction(session)
    transaction.allocate(tasks(session, "p0"), np.zeros(1, dtype=np.intp))
    transaction.pipeline(tasks(session, "p1"), np.zeros(1, dtype=np.intp))
    transaction.evict(tasks(session, "p2"), "test")
    assert (counts(x), counts(y)) == ((1, 1, 0), (0, 0, 1))
    transaction.allocate(tasks(session, "p3"), np.zeros(1, dtype=np.intp))
    assert counts(y) == (1, 0, 0)
    transaction.discard()
    assert (counts(x), counts(y)) == ((0, 0, 0), (1, 0, 1))


def test_committed_tasks_stay_ready() -> None:
    session, shape = opened(*nodes("n1"), group("g", 1, subGroupPolicy=[policy()]), part("p0", "x"))
    transaction = Transaction(session)
    transaction.allocate(tasks(session, "p0"), np.zeros(1, dtype=np.intp))
    transaction.commit()
    assert session.groups.counts(shape.members[0]).ready == 1


MOVES = st.lists(
    st.tuples(st.sampled_from(["allocate", "pipeline", "evict", "undo"]), st.integers(0, 7)), max_size=25
)


@given(MOVES)
def test_counts_are_what_the_tasks_say_whatever_happens(moves: list[tuple[str, int]]) -> None:
    session, _ = opened(
        *nodes("n1", cpu=99),
        group("g", 1, subGroupPolicy=[policy(size=2)]),
        *(part(f"p{i}", "xyz"[i % 3], on="n1" if i == 7 else "") for i in range(8)),
    )
    transaction = Transaction(session)
    parts = session.groups.root(job(session, "g")).members

    def kept() -> list[tuple[int, int, int]]:
        return [session.groups.counts(one) for one in parts]

    def true() -> list[tuple[int, int, int]]:
        statuses = [session.tasks.status[one.rows] for one in parts]
        return [(int(READY[own].sum()), int((own == Status.PIPELINED).sum()), 0) for own in statuses]

    before = kept()
    for kind, number in moves:
        rows = tasks(session, f"p{number}")
        placed = session.tasks.node[rows[0]] >= 0
        if kind == "undo":
            transaction.rollback(max(transaction.checkpoint() - 1, 0))
        elif kind == "evict":
            if placed and session.tasks.status[rows[0]] == 6:
                transaction.evict(rows, "test")
        elif not placed:
            getattr(transaction, kind)(rows, np.zeros(1, dtype=np.intp))
        assert kept() == true()
    transaction.discard()
    assert kept() == before


def test_ready_and_pipelined_fall_back_to_the_job_where_there_is_no_policy() -> None:
    session, shape = opened(
        *nodes("n1"),
        group("g", 2, networkTopology=hard(1), minTaskMember={"chief": 1, "": 1}),
        part("p0", "x"),
        part("p1", "y"),
    )
    use(session, Gang(session, {}))
    (only,) = shape.members
    Transaction(session).allocate(tasks(session, "p0", "p1"), np.zeros(2, dtype=np.intp))
    assert not session.groups.is_ready(only)  # a role is missing, which is the job's business
    assert not session.groups.is_pipelined(only)


# -- where they are ----------------------------------------------------------------------------------------------------


def placed(name: str, value: str, on: str) -> Object:
    return part(name, value, on=on)


def test_a_sub_job_is_in_the_narrowest_domain_around_its_tasks_and_the_job_around_all_of_them() -> None:
    session, shape = opened(
        *four_racks(),
        group("g", 1, networkTopology=hard(3), subGroupPolicy=[policy(networkTopology=hard(2))]),
        placed("p0", "x", "a1"),
        placed("p1", "x", "a2"),
        placed("p2", "y", "c1"),
        placed("p3", "y", "d1"),
        part("p4", "z"),
    )
    assert [where(session, one.domain) for one in shape.members] == ["a", "t", ""]
    assert where(session, shape.domain) == "core"


def test_tasks_in_racks_that_nothing_holds_together_are_in_the_root() -> None:
    _, shape = opened(
        *nodes("a1", "b1"),
        rack("a", "a1"),
        rack("b", "b1"),
        group("g", 1, networkTopology=hard(1)),
        placed("p0", "x", "a1"),
        placed("p1", "x", "b1"),
    )
    assert shape.domain == ROOT


def test_tasks_outside_every_hyper_node_are_in_the_root_but_say_nothing_in_strict_mode() -> None:
    objects = (
        *nodes("a1", "far"),
        rack("a", "a1"),
        group("g", 1, networkTopology=hard(1)),
        placed("p0", "x", "far"),
    )
    assert opened(*objects)[1].domain == ROOT
    assert opened(*objects, strict=True)[1].domain == NONE


def test_a_job_with_a_topology_is_found_by_all_its_tasks_and_in_the_original_only_by_sub_jobs_that_have_one() -> (
    None
):
    objects = (
        *two_racks(),
        group("g", 1, networkTopology=hard(1), subGroupPolicy=[policy()]),
        placed("p0", "x", "a1"),
    )
    session, shape = opened(*objects)
    assert where(session, shape.domain) == "a"
    session, shape = opened(*objects, strict=True)
    assert where(session, shape.domain) == ""


def test_finished_and_leaving_tasks_hold_no_place() -> None:
    _, shape = opened(
        *two_racks(),
        group("g", 1, networkTopology=hard(1)),
        placed("p0", "x", "a1"),
        part("p1", "x", on="b1", phase="Succeeded"),
        part("p2", "x", on="b2", deleted="2026-01-01T00:00:00Z"),
    )
    assert shape.domain != ROOT


def settled(session: Session, name: str) -> PodSet:
    return session.groups.root(job(session, name)).members[0]


def settle(session: Session, domain: str) -> None:
    shape = session.groups.root(job(session, "g"))
    row = session.domains.index[domain]
    session.groups.settle(shape, row, {shape.members[0]: row})


def cluster(*objects: Object) -> Cluster:
    return session_on([queue("default"), *objects]).cluster


def test_a_decision_is_remembered_as_long_as_something_is_placed() -> None:
    """The domain that was chosen may be wider than what the tasks need."""
    kept = cluster(*two_racks(), group("g", 1, networkTopology=hard(2)), placed("p0", "x", "a1"))
    session = session_again(kept)
    assert where(session, settled(session, "g").domain) == "a"
    settle(session, "s")
    session = session_again(kept)
    assert where(session, settled(session, "g").domain) == "s"
    assert where(session, session.groups.root(job(session, "g")).domain) == "s"
    kept.apply(part("p0", "x"))
    session = session_again(kept)
    assert settled(session, "g").domain == NONE
    assert session.groups.root(job(session, "g")).domain == NONE


def test_a_decision_never_hides_where_tasks_really_are() -> None:
    """Another scheduler bound a task to the other rack."""
    kept = cluster(*two_racks(), group("g", 1, networkTopology=hard(2)), placed("p0", "x", "a1"))
    settle(session_again(kept), "a")
    kept.apply(placed("p1", "x", "b1"))
    session = session_again(kept)
    assert where(session, settled(session, "g").domain) == "s"


def test_a_decision_is_forgotten_with_its_hyper_node_or_its_pod_group() -> None:
    kept = cluster(*two_racks(), group("g", 1, networkTopology=hard(2)), placed("p0", "x", "a1"))
    settle(session_again(kept), "s")
    kept.delete(hyper_node("s", 2))
    session = session_again(kept)
    assert where(session, settled(session, "g").domain) == "a"
    settle(session, "b")
    spec = {"minMember": 1, "queue": "default", "networkTopology": hard(2)}
    kept.apply(
        make("scheduling.volcano.sh/v1beta1", "PodGroup", "g", namespace="default", uid="another", spec=spec)
    )
    session = session_again(kept)
    assert where(session, settled(session, "g").domain) == "a"


def test_nominations_outlive_the_cycle_but_not_in_strict_mode() -> None:
    """Quirk 14."""
    objects = (*two_racks(), group("g", 1), part("p0", "x"))
    for strict, expected in ((False, "b"), (True, "")):
        session = session_on([queue("default"), *objects], strict=strict)
        one = session.groups.root(job(session, "g")).members[0]
        session.groups.nominate(one, session.domains.index["b"])
        conf: dict[str, Any] = {
            "actions": "allocate",
            "compat": "strict" if strict else "better",
            "tiers": [],
        }
        later = session_again(session.cluster, conf)
        assert where(later, later.groups.root(job(later, "g")).members[0].nominated) == expected


def test_a_nomination_that_was_dropped_does_not_come_back() -> None:
    session = session_on([queue("default"), *two_racks(), group("g", 1), part("p0", "x")])
    one = session.groups.root(job(session, "g")).members[0]
    session.groups.nominate(one, session.domains.index["b"])
    session.groups.denominate(one)
    later = session_again(session.cluster)
    assert later.groups.root(job(later, "g")).members[0].nominated == NONE
    assert later.groups.nominated == set()
