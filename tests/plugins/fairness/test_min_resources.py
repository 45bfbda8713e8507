"""What jobs say they need: kept between sessions, and without what foreign gates hold back."""

from typing import Any

from maniple.cluster.cluster import Cluster
from maniple.framework.session import Session
from maniple.plugins.fairness.min_resources import MinResources
from maniple.profiles.volcano import ADMISSION_GATE, VolcanoDialect
from tests.plugins.opening import job, session_again, session_on
from tests.support import group, node, pod, queue


def entry(session: Session, name: str) -> dict[str, int]:
    amounts = MinResources.of(session).on_entry(job(session, name))
    return {session.resources.names[d]: amount for d, amount in enumerate(amounts) if amount}


def test_one_session_has_one_set_of_claims() -> None:
    session = session_on([node("n1"), queue("default"), group("g", 1, minResources={"cpu": "2"})])
    assert MinResources.of(session) is MinResources.of(session)
    assert entry(session, "g") == {"cpu": 2000}


def test_later_sessions_see_what_changed_and_nothing_else() -> None:
    cluster = Cluster.from_objects(
        VolcanoDialect(),
        [node("n1"), queue("default"), group("g", 1, minResources={"cpu": "2"}), group("h", 1)],
    )
    first = session_again(cluster)
    assert entry(first, "g") == {"cpu": 2000}
    cluster.apply(group("g", 1, minResources={"cpu": "3"}))
    cluster.apply(group("h", 1, minResources={"memory": "1"}, phase="Running"))
    cluster.apply(group("new", 0, minResources={"pods": "4"}))
    second = session_again(cluster)
    assert [entry(second, name) for name in ("g", "h", "new")] == [{"cpu": 3000}, {"memory": 1}, {"pods": 4}]
    assert MinResources.of(second).of_admitted(less_allocated=False)[0].tolist() == sorted(
        job(second, name) for name in ("g", "new")
    )


def test_a_resource_gets_its_dimension_once_a_node_offers_it() -> None:
    cluster = Cluster.from_objects(
        VolcanoDialect(), [node("n1"), queue("default"), group("g", 1, minResources={"example.com/x": "2"})]
    )
    first = session_again(cluster)
    assert MinResources.of(first).unoffered(job(first, "g")) == ("example.com/x",)
    cluster.apply(node("n2", {"example.com/x": "8"}))
    second = session_again(cluster)
    assert MinResources.of(second).unoffered(job(second, "g")) == ()
    assert entry(second, "g") == {"example.com/x": 2000}


def test_names_that_are_no_resources_of_pods_are_left_out() -> None:
    session = session_on(
        [
            node("n1"),
            queue("default"),
            group("g", 1, minResources={"count/pods": "2", "limits.cpu": "1", "cpu": "1"}),
        ]
    )
    assert entry(session, "g") == {"cpu": 1000}
    assert MinResources.of(session).unoffered(job(session, "g")) == ()


def test_a_foreign_gate_gives_back_what_its_task_asks_for_and_our_own_does_not() -> None:
    ours: dict[str, Any] = {
        "schedulingGates": [{"name": ADMISSION_GATE}],
        "annotations": {ADMISSION_GATE: "true"},
    }
    session = session_on(
        [
            node("n1"),
            queue("default"),
            group("g", 1, minResources={"cpu": "5", "memory": "1"}),
            pod(
                "p0",
                {"cpu": "1", "memory": "1Gi"},
                group="g",
                schedulingGates=[{"name": "example.com/later"}],
            ),
            pod("p1", {"cpu": "1"}, group="g", **ours),
        ]
    )
    assert entry(session, "g") == {"cpu": 4000}


def test_gated_tasks_that_ask_for_nothing_give_nothing_back() -> None:
    session = session_on(
        [
            node("n1"),
            queue("default"),
            group("g", 1, minResources={"pods": "2"}),
            pod("p0", group="g", schedulingGates=[{"name": "example.com/later"}]),
        ]
    )
    assert entry(session, "g") == {"pods": 2}
