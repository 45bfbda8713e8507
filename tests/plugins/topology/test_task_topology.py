"""task-topology: buckets, the order of tasks, the score, and what becomes of them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.plugins.topology.buckets import JobBuckets
from maniple.plugins.topology.roles import AFFINITY, ANTI_AFFINITY, ORDER, RoleRules
from maniple.plugins.topology.task_topology import TaskTopology
from tests.plugins.opening import job, names, session_on, task, tasks, use
from tests.plugins.planning import planned
from tests.plugins.score.cells import class_of, scores
from tests.support import group, node, pod, queue

NODES = [node(f"n{n}") for n in range(3)]


def member(name: str, role: str = "", cpu: str = "1", **more: Any) -> Object:
    """A pod whose role is the name without its number, unless one is given."""
    return pod(name, {"cpu": cpu}, group="g", role=role or name.rstrip("0123456789"), uid=name, **more)


def notes(affinity: str = "", anti: str = "", order: str = "") -> dict[str, str]:
    written = {AFFINITY: affinity, ANTI_AFFINITY: anti, ORDER: order}
    return {key: text for key, text in written.items() if text}


def opened(
    rules: dict[str, str], *pods: Object, strict: bool = False, arguments: dict[str, Any] | None = None
) -> tuple[Session, TaskTopology]:
    session = session_on([*NODES, queue("default"), group("g", 1, annotations=rules), *pods], strict=strict)
    plugin = TaskTopology(session, arguments or {})
    use(session, plugin)
    return session, plugin


def buckets(rules: dict[str, str], *pods: Object) -> list[list[str]]:
    session = session_on([*NODES, queue("default"), group("g", 1, annotations=rules), *pods])
    roles = {one.metadata.annotations["volcano.sh/task-spec"] for one in pods}
    gathered = JobBuckets(session, job(session, "g"), RoleRules.read(rules, roles))
    return [
        sorted(
            session.task_key(row).partition("/")[2]
            for row, own in gathered.bucket_of.items()
            if own is bucket
        )
        for bucket in gathered.buckets
    ]


# -- buckets -------------------------------------------------------------------------------------------------------


def test_roles_that_belong_together_share_a_bucket() -> None:
    found = buckets(notes("ps,worker"), member("ps0"), member("worker0"), member("worker1"), member("other0"))
    assert found == [["ps0", "worker0", "worker1"]]


def test_roles_that_keep_apart_among_themselves_get_a_bucket_each() -> None:
    assert buckets(notes("", "ps"), member("ps0"), member("ps1"), member("ps2")) == [
        ["ps0"],
        ["ps1"],
        ["ps2"],
    ]


def test_the_others_then_spread_over_these_by_what_each_asks_for() -> None:
    found = buckets(
        notes("ps,worker", "ps"),
        member("ps0", cpu="2"),
        member("ps1"),
        *(member(f"worker{n}") for n in range(3)),
    )
    # Servers draw a worker alike, so it goes where less is asked for: 1, then 2 against 2 and a bit.
    assert found == [["ps0", "worker1"], ["ps1", "worker0", "worker2"]]


def test_without_anything_that_draws_or_pushes_the_lightest_bucket_takes_a_task() -> None:
    found = buckets(
        notes("", "ps,chief"), member("ps0", cpu="3"), member("chief0"), member("ps1"), member("ps2")
    )
    assert found == [["chief0"], ["ps0", "ps1", "ps2"]]


@pytest.mark.parametrize(
    ("first", "second", "lighter"),
    [
        ({"memory": "900Mi"}, {"cpu": "1"}, "ps0"),
        ({"memory": "1100Mi"}, {"cpu": "1"}, "ps1"),
        ({"nvidia.com/gpu": "1"}, {"cpu": "1100m"}, "ps0"),
        ({"nvidia.com/gpu": "1"}, {"cpu": "900m"}, "ps1"),
        ({"cpu": "500m", "memory": "600Mi"}, {"cpu": "1"}, "ps1"),
    ],
)
def test_a_milli_cpu_weighs_as_much_as_a_mebibyte_and_as_a_thousandth_of_anything_else(
    first: dict[str, str], second: dict[str, str], lighter: str
) -> None:
    """A worker goes to the server that asks for less; servers keep apart."""
    servers = [
        pod(f"ps{i}", asked, group="g", role="ps", uid=f"ps{i}") for i, asked in enumerate((first, second))
    ]
    (joined,) = [
        one for one in buckets(notes("ps,worker", "ps"), *servers, member("worker0")) if len(one) > 1
    ]
    assert joined == [lighter, "worker0"]


def test_tasks_that_have_a_node_make_a_bucket_per_node() -> None:
    found = buckets(
        notes("ps,worker"),
        member("ps0", on="n1"),
        member("ps1", on="n0"),
        member("worker0", on="n1"),
        member("worker1"),
    )
    assert found == [["ps1", "worker1"], ["ps0", "worker0"]]


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.sampled_from(["", "n0", "n1"])), max_size=9
    ),
    st.sampled_from(["", "a,b", "a", "a;b,c", "a,b,c"]),
    st.sampled_from(["", "a", "b;c", "a,c", "c,b;a"]),
    st.sampled_from(["", "c,a", "b"]),
)
def test_every_task_goes_where_the_rule_written_out_says(
    drawn: list[tuple[str, int, str]], affinity: str, anti: str, order: str
) -> None:
    pods = [
        member(f"{role}{place}", role, str(cpu), **({"on": on} if on else {}))
        for place, (role, cpu, on) in enumerate(drawn)
    ]
    pods += [member(f"{role}99", role) for role in "abc"]
    rules = notes(affinity, anti, order)
    known = RoleRules.read(rules, "abc")
    expected: list[dict[str, Any]] = []
    cpus = {f"{role}{place}": cpu for place, (role, cpu, _) in enumerate(drawn)} | {
        f"{role}99": 1 for role in "abc"
    }
    ons = {f"{role}{place}": on for place, (role, _, on) in enumerate(drawn)}
    waiting = [name for name in cpus if name[0] in known.ranks]
    for on in ("n0", "n1"):
        here = sorted(name for name in waiting if ons.get(name) == on)
        if here:
            expected.append({"names": here, "weight": 0})
    turn = sorted(
        (name for name in waiting if not ons.get(name)),
        key=lambda name: (*(-part for part in known.ranks[name[0]]), name),
    )
    for name in turn:
        best: dict[str, Any] | None = None
        highest = -(10**9)
        for one in expected:
            counts: dict[str, int] = {}
            for other in one["names"]:
                counts[other[0]] = counts.get(other[0], 0) + 1
            draw = known.draw(name[0], counts)
            if draw > highest or (draw == highest and best is not None and one["weight"] < best["weight"]):
                highest, best = draw, one
        if best is None or highest < 0:
            best = {"names": [], "weight": 0}
            expected.append(best)
        best["names"].append(name)
        best["weight"] += cpus[name] * 1000 + 1
    assert buckets(rules, *pods) == [sorted(one["names"]) for one in expected]


# -- the order of tasks --------------------------------------------------------------------------------------------


def in_order(rules: dict[str, str], *pods: Object) -> list[str]:
    session, _ = opened(rules, *pods)
    return names(session, session.in_task_order(np.arange(len(session.tasks))))


def test_inside_a_bucket_the_job_s_order_counts_and_tasks_in_none_come_last() -> None:
    pods = [member("alone0"), member("ps0"), member("ps1"), member("worker0"), member("worker1")]
    rules = notes("ps,worker", "", "worker,ps")
    assert in_order(rules, *pods) == ["worker0", "worker1", "ps0", "ps1", "alone0"]


def test_the_bigger_bucket_comes_first() -> None:
    assert in_order(notes("", "a,b"), member("a0"), member("b0"), member("b1")) == ["b0", "b1", "a0"]


def test_equal_buckets_go_by_age() -> None:
    session, _ = opened(notes("", "ps"), *(member(f"ps{n}") for n in range(3)))
    shuffled = tasks(session, "ps2", "ps0", "ps1")
    assert names(session, session.in_task_order(shuffled)) == ["ps0", "ps1", "ps2"]


def test_jobs_that_say_nothing_keep_the_usual_order() -> None:
    session, plugin = opened({}, member("b0"), member("a0"))
    assert plugin.task_order(tasks(session, "a0", "b0")).tolist() == [0, 0]
    assert plugin.scorers() == []
    assert session.classes is session.cluster.classes.classes


# -- the score -----------------------------------------------------------------------------------------------------


def test_points_for_company_and_for_those_that_would_fit() -> None:
    session, plugin = opened(
        notes("ps,worker"), member("ps0", on="n1"), member("worker0"), member("worker1", cpu="7")
    )
    # The bucket has one task on n1 and two that wait; on n1 7 cpu are idle, so that only one of them fits there.
    assert scores(session, plugin, "worker0") == pytest.approx({"n0": 200 / 3, "n1": 200 / 3, "n2": 200 / 3})
    assert scores(session, plugin, "worker1") == pytest.approx({"n0": 200 / 3, "n1": 200 / 3, "n2": 200 / 3})
    Transaction(session).allocate(tasks(session, "worker0"), np.array([1]))
    assert scores(session, plugin, "worker1") == pytest.approx({"n0": 100 / 3, "n1": 0, "n2": 100 / 3})


def test_a_node_where_the_task_itself_does_not_fit_gets_no_points() -> None:
    session, plugin = opened(notes("ps,worker"), member("ps0", on="n1", cpu="8"), member("worker0"))
    assert scores(session, plugin, "worker0")["n1"] == 0


def test_what_is_being_released_counts_as_free() -> None:
    leaving = pod("leaving", {"cpu": "8"}, on="n1", deleted="2026-01-01T00:00:00Z")
    session, plugin = opened(notes("ps,worker"), leaving, member("ps0"), member("worker0"))
    assert len(set(scores(session, plugin, "worker0").values())) == 1


def test_the_heaviest_are_left_out_first() -> None:
    session, plugin = opened(
        notes("ps,worker"), *(member(f"worker{n}", cpu=str(n)) for n in (1, 2, 3, 4)), member("ps0", cpu="1")
    )
    # 11 cpu are asked for and 8 are there: without worker4 the other four fit.
    assert scores(session, plugin, "ps0")["n0"] == pytest.approx(100 * 4 / 5)
    # worker4 itself stays; without worker3 there are 8 left.
    assert scores(session, plugin, "worker4")["n0"] == pytest.approx(100 * 4 / 5)


def test_tasks_of_the_job_that_disturb_cost_points() -> None:
    session, plugin = opened(notes("", "ps"), member("ps0"), member("ps1"))
    Transaction(session).allocate(tasks(session, "ps0"), np.array([1]))
    assert scores(session, plugin, "ps1") == {"n0": 100, "n1": 0, "n2": 100}


def test_those_placed_in_earlier_sessions_disturb_too_but_not_in_volcano() -> None:
    pods = [member("ps0", on="n1"), member("ps1")]
    session, plugin = opened(notes("", "ps"), *pods)
    assert scores(session, plugin, "ps1") == {"n0": 100, "n1": 0, "n2": 100}
    session, plugin = opened(notes("", "ps"), *pods, strict=True)
    assert scores(session, plugin, "ps1") == {"n0": 100, "n1": 100, "n2": 100}


def test_pods_that_are_done_hold_no_bucket_but_do_in_volcano() -> None:
    pods = [member("ps0", on="n1", phase="Succeeded"), member("worker0")]
    session, plugin = opened(notes("ps,worker"), *pods)
    assert len(set(scores(session, plugin, "worker0").values())) == 1
    session, plugin = opened(notes("ps,worker"), *pods, strict=True)
    found = scores(session, plugin, "worker0")
    assert found["n1"] > found["n0"]


@pytest.mark.parametrize(("weight", "factor"), [(1, 1), (10, 10), (-1, -1)])
def test_the_weight(weight: int, factor: int) -> None:
    session, plugin = opened(
        notes("ps,worker"), member("ps0"), member("worker0"), arguments={"task-topology.weight": weight}
    )
    assert scores(session, plugin, "ps0")["n0"] == 100 * factor


def test_a_weight_of_zero_is_no_score_but_still_an_order() -> None:
    rules = notes("a,b", "", "b,a")
    session, plugin = opened(rules, member("a0"), member("b0"), arguments={"task-topology.weight": 0})
    assert plugin.scorers() == []
    assert names(session, session.in_task_order(tasks(session, "a0", "b0"))) == ["b0", "a0"]


# -- following placements ------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), min_size=1, max_size=8))
def test_undoing_restores_every_score(placed: list[tuple[str, int]]) -> None:
    pods = [member(f"{role}{place}", role) for place, (role, _) in enumerate(placed)]
    session, plugin = opened(
        notes("a,b;c", "a;b,c"),
        *pods,
        *(member(f"{role}99", role) for role in "abc"),
        member("a50", "a", on="n2"),
    )
    before = [scores(session, plugin, f"{role}99") for role in "abc"]
    transaction = Transaction(session)
    transaction.evict(tasks(session, "a50"), "test")
    for place, (role, where) in enumerate(placed):
        transaction.allocate(tasks(session, f"{role}{place}"), np.array([where]))
    transaction.discard()
    assert [scores(session, plugin, f"{role}99") for role in "abc"] == before


def test_an_evicted_task_is_no_company_any_more() -> None:
    session, plugin = opened(notes("ps,worker"), member("ps0", on="n1"), member("worker0"))
    assert scores(session, plugin, "worker0")["n1"] > scores(session, plugin, "worker0")["n0"]
    Transaction(session).evict(tasks(session, "ps0"), "test")
    assert len(set(scores(session, plugin, "worker0").values())) == 1


def test_equal_tasks_of_one_bucket_share_a_class_and_others_do_not() -> None:
    session, _ = opened(
        notes("ps,worker", "ps"),
        member("ps0"),
        member("ps1"),
        member("worker0"),
        member("worker1"),
        member("other0"),
    )
    assert class_of(session, "ps0") is not class_of(session, "ps1")
    assert class_of(session, "worker0") is not class_of(session, "other0")
    assert "task-topology" not in class_of(session, "other0").marks


def test_in_a_plan_each_server_gets_a_node_and_workers_join_the_servers() -> None:
    rules = notes("ps,worker", "ps")
    plan = planned(
        [
            *NODES,
            queue("default"),
            group("g", 6, annotations=rules),
            *(member(f"ps{n}") for n in range(2)),
            *(member(f"worker{n}") for n in range(4)),
        ],
        "task-topology",
    )
    where = {key.partition("/")[2]: on for key, on in plan.binds.items()}
    assert len(where) == 6
    assert where["ps0"] != where["ps1"]
    assert {where[f"worker{n}"] for n in range(4)} <= {where["ps0"], where["ps1"]}


# -- what cannot be used -------------------------------------------------------------------------------------------


def test_a_job_with_an_unknown_role_goes_without_and_is_reported() -> None:
    session, plugin = opened(notes("ps,nobody"), member("ps0"), member("ps1"))
    assert plugin.scorers() == []
    assert len(session.warnings) == 1
    assert "default/g" in session.warnings[0]
    assert "nobody" in session.warnings[0]


def test_a_job_without_waiting_tasks_is_not_looked_at() -> None:
    session, plugin = opened(notes("nobody"), member("ps0", on="n0"))
    assert session.warnings == []
    assert plugin.task_order(np.array([task(session, "ps0")])).tolist() == [0]


def test_a_misspelt_argument_is_reported_with_the_right_one() -> None:
    session, _ = opened({}, arguments={"task-topology.wight": 1})
    assert "task-topology.weight" in session.warnings[0]
