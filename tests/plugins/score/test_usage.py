"""usage: thresholds, the score, and the load that the monitoring cannot see yet."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.framework.criteria import Cells
from maniple.framework.reasons import Code
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.plugins.score.shadow_load import Estimator
from maniple.plugins.score.usage import TOO_MUCH_CPU, TOO_MUCH_MEMORY, Usage, UsageSettings
from tests.plugins.opening import session_again, session_on, tasks, use
from tests.plugins.planning import planned
from tests.plugins.score.cells import class_of, scores, verdicts
from tests.support import group, node, pod, queue

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GIBI = 2**30
NODE = node("n1", {"cpu": "10", "memory": "100Gi"})


def measured(cpu: float = 0, memory: float = 0, *, ago: timedelta = timedelta(0)) -> dict[str, Any]:
    return {"cpu": cpu, "memory": memory, "at": (NOON - ago).isoformat()}


def opened(
    usage: dict[str, Any], *objects: Object, now: datetime | None = NOON, **arguments: Any
) -> tuple[Session, Usage]:
    everything = [NODE, queue("default"), group("g", 1), *objects]
    session = session_on(everything, now=now, options={"nodeUsage": usage})
    plugin = Usage(session, arguments)
    use(session, plugin)
    return session, plugin


def waiting(cpu: str = "1", memory: str = "10Gi", name: str = "p", **more: Any) -> Object:
    return pod(name, {"cpu": cpu, "memory": memory}, group="g", **more)


def test_defaults() -> None:
    estimator = Estimator(0.7, 0.0, 0.6, 1.2, idle_cpu=250, idle_memory=200 * 2**20)
    expected = UsageSettings(5, 1, 1, 80, 80, estimator)
    assert UsageSettings.read(session_on([]), {}) == UsageSettings() == expected


# -- thresholds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "arguments", "expected"),
    [
        (measured(80, 80), {}, ""),
        (measured(80.1, 0), {}, TOO_MUCH_CPU),
        (measured(0, 80.1), {}, TOO_MUCH_MEMORY),
        (measured(99, 99), {}, TOO_MUCH_CPU),
        (measured(81, 0), {"thresholds": {"cpu": 81}}, ""),
        (measured(31, 0), {"thresholds": {"cpu": 30, "mem": 0}}, TOO_MUCH_CPU),
        (measured(0, 1), {"thresholds": {"mem": 0}}, TOO_MUCH_MEMORY),
        (measured(99, 0, ago=timedelta(minutes=5)), {}, TOO_MUCH_CPU),
        (measured(99, 0, ago=timedelta(minutes=5, seconds=1)), {}, ""),
        ({"cpu": 99}, {}, ""),  # nobody knows when
        ({"at": NOON.isoformat()}, {}, ""),
    ],
)
def test_a_node_above_a_threshold_is_refused_while_the_measurement_is_fresh(
    usage: dict[str, Any], arguments: dict[str, Any], expected: str
) -> None:
    session, plugin = opened({"n1": usage}, waiting(), **arguments)
    assert verdicts(session, plugin, "p") == ({"n1": expected} if expected else {})
    assert {r.code for r in session.reasons.reasons if r.text == expected} <= {Code.UNRESOLVABLE}


def test_a_node_that_was_not_measured_is_neither_refused_nor_scored() -> None:
    _, plugin = opened({"elsewhere": measured(99, 99)}, waiting())
    assert (plugin.filters(), plugin.scorers()) == ([], [])


def test_without_a_clock_a_measurement_counts_as_fresh() -> None:
    session, plugin = opened({"n1": measured(99, ago=timedelta(days=9))}, waiting(), now=None)
    assert verdicts(session, plugin, "p") == {"n1": TOO_MUCH_CPU}


# -- the score -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, 5 * 100 * (0.8 + 0.4) / 2),
        ({"usage.weight": 2}, 2 * 100 * (0.8 + 0.4) / 2),
        ({"usage.weight": -2}, 5 * 100 * (0.8 + 0.4) / 2),
        ({"cpu.weight": 3}, 5 * 100 * (3 * 0.8 + 0.4) / 4),
        ({"cpu.weight": 0}, 5 * 100 * 0.4),
        ({"cpu.weight": 0, "memory.weight": 0}, 0),
        ({"usage.weight": 0}, 0),
        ({"memory.weight": -1}, 5 * 100 * (0.8 + 0.4) / 2),
    ],
)
def test_the_freer_the_better(arguments: dict[str, Any], expected: float) -> None:
    session, plugin = opened({"n1": measured(20, 60)}, waiting(), **arguments)
    assert scores(session, plugin, "p")["n1"] == pytest.approx(expected)


def test_an_old_measurement_gives_no_points() -> None:
    session, plugin = opened(
        {"n1": measured(20, 60, ago=timedelta(minutes=6)), "n2": measured(0, 0)}, waiting(), node("n2")
    )
    assert scores(session, plugin, "p") == {"n1": 0, "n2": 500}


def limits(cpu: str, memory: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1", "memory": "10Gi"}, "limits": {"cpu": cpu, "memory": memory}}
    return {"containers": [{"name": "main", "resources": resources}]}


@pytest.mark.parametrize(
    ("shadow", "estimator", "cpu", "memory"),
    [
        (waiting(), {}, 0.7, 7.0),
        (waiting(), {"request_ratio": 0.5}, 0.5, 5.0),
        (waiting(**limits("3", "20Gi")), {}, 0.7, 7.0),
        (waiting(**limits("3", "20Gi")), {"burst_ratio": 0.5}, 0.7 + 1.0, 7.0 + 5.0),
        (waiting(**limits("3", "20Gi")), {"request_ratio": 1, "burst_ratio": 1}, 3.0, 20.0),
        (waiting(), {"risk_threshold": 0}, 0.84, 8.4),
        (waiting(), {"risk_threshold": 0, "risk_factor": 2}, 1.0, 10.0),  # never above the limit
        (pod("p", group="g"), {}, 0.25, 200 / 1024),
        (pod("p", group="g"), {"risk_threshold": 0}, 0.3, 240 / 1024),
        (pod("p", group="g"), {"be_cpu": "1", "be_mem": "1Gi"}, 1.0, 1.0),
        (pod("p", group="g"), {"be_cpu": 500, "be_mem": 512}, 0.5, 0.5),
    ],
)
def test_a_placed_pod_counts_with_an_estimate_until_it_is_seen(
    shadow: Object, estimator: dict[str, Any], cpu: float, memory: float
) -> None:
    session, plugin = opened({"n1": measured(10, 10)}, shadow, waiting(name="next"), estimator=estimator)
    Transaction(session).allocate(tasks(session, "p"), np.array([0]))
    expected = 500 * ((0.9 - cpu / 10) + (0.9 - memory / 100)) / 2
    assert scores(session, plugin, "next")["n1"] == pytest.approx(expected, abs=1e-4)


def test_risk_begins_when_the_load_reaches_the_threshold() -> None:
    """55 % are measured; the first pod of 1 cpu adds 7 %, so that the second one counts with 1.2 times as much."""
    arguments: dict[str, Any] = {"memory.weight": 0, "usage.weight": 1}
    session, plugin = opened(
        {"n1": measured(55)}, waiting(name="a"), waiting(name="b"), waiting(), **arguments
    )
    transaction = Transaction(session)
    for name, expected in (("a", 55 + 7), ("b", 55 + 7 + 8.4)):
        transaction.allocate(tasks(session, name), np.array([0]))
        assert scores(session, plugin, "p")["n1"] == pytest.approx(100 - expected)


def test_nothing_is_fuller_than_full() -> None:
    session, plugin = opened({"n1": measured(99, 99)}, waiting("9", "90Gi"), waiting(name="next"))
    Transaction(session).allocate(tasks(session, "p"), np.array([0]))
    assert scores(session, plugin, "next")["n1"] == 0


# -- who is unseen when a session opens -----------------------------------------------------------------------------


def started(seconds_ago: int) -> dict[str, Any]:
    return {"startTime": (NOON - timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")}


@pytest.mark.parametrize(
    ("more", "unseen"),
    [
        ({"phase": "Pending"}, True),  # bound
        ({"status": started(29)}, True),
        ({"status": started(30)}, False),
        ({}, True),  # has not started, for all we know
        ({"status": started(1), "deleted": "2026-01-01T12:00:00Z"}, False),
        ({"status": started(1), "phase": "Succeeded"}, False),
    ],
)
def test_pods_are_unseen_until_they_have_run_for_one_interval(more: dict[str, Any], unseen: bool) -> None:
    session, plugin = opened({"n1": measured()}, waiting(name="there", on="n1", **more), waiting())
    expected = 500 * ((1 - 0.07) + (1 - 0.07)) / 2 if unseen else 500
    assert scores(session, plugin, "p")["n1"] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(("interval", "unseen"), [("1m", True), ("10s", False), ("0s", True), ("soon", True)])
def test_the_interval_is_that_of_the_monitoring(interval: str, unseen: bool) -> None:
    session, _ = opened({}, waiting(name="there", on="n1", status=started(25)), waiting())
    conf = {"actions": "allocate", "tiers": [], "metrics": {"interval": interval}}
    session = session_again(session.cluster, conf, now=NOON, options={"nodeUsage": {"n1": measured()}})
    assert (scores(session, Usage(session, {}), "p")["n1"] < 500) is unseen


def test_without_a_clock_only_pods_that_have_not_started_are_unseen() -> None:
    session, plugin = opened(
        {"n1": measured()}, waiting(name="there", on="n1", status=started(1)), waiting(), now=None
    )
    assert scores(session, plugin, "p")["n1"] == 500


# -- following placements --------------------------------------------------------------------------------------------

Amount = st.tuples(st.integers(0, 4000), st.integers(0, 20))
Steps = st.lists(st.integers(0, 1), min_size=1, max_size=12)


def crowd(amounts: list[tuple[int, int]], usage: tuple[int, int]) -> tuple[Session, Usage]:
    pods = [
        pod(f"p{n}", {"cpu": f"{cpu}m", "memory": f"{memory}Gi"} if cpu or memory else {}, group="g")
        for n, (cpu, memory) in enumerate(amounts)
    ]
    there = [
        waiting(name="bound", on="n1", phase="Pending"),
        waiting(name="old", on="n2", status=started(99)),
    ]
    return opened(
        {"n1": measured(*usage), "n2": measured(usage[1], usage[0])},
        node("n2", {"cpu": "20", "memory": "50Gi"}),
        *pods,
        *there,
        waiting(name="next"),
    )


@given(st.lists(Amount, min_size=1, max_size=6), st.tuples(*[st.integers(0, 100)] * 2), Steps)
def test_undoing_leaves_nothing_behind(
    amounts: list[tuple[int, int]], usage: tuple[int, int], where: list[int]
) -> None:
    session, plugin = crowd(amounts, usage)
    before = scores(session, plugin, "next")
    transaction = Transaction(session)
    transaction.evict(tasks(session, "bound", "old"), "test")
    for place, spot in zip(range(len(amounts)), where, strict=False):
        transaction.allocate(tasks(session, f"p{place}"), np.array([spot]))
    transaction.discard()
    assert scores(session, plugin, "next") == before


def test_evicted_shadows_no_longer_count_and_old_pods_never_did() -> None:
    session, plugin = crowd([(1000, 1)], (10, 10))
    before = scores(session, plugin, "next")
    transaction = Transaction(session)
    transaction.evict(tasks(session, "old"), "test")
    assert scores(session, plugin, "next") == before
    transaction.evict(tasks(session, "bound"), "test")
    assert scores(session, plugin, "next")["n1"] == pytest.approx(450)


@given(Amount, st.tuples(*[st.integers(0, 100)] * 2), st.integers(1, 6))
def test_imagined_tasks_count_like_placed_ones(
    amount: tuple[int, int], usage: tuple[int, int], count: int
) -> None:
    session, plugin = crowd([amount] * count, usage)
    class_ = class_of(session, "p0")
    (scorer,) = plugin.scorers()
    matrix = scorer.raw(class_, Cells(session.nodes, class_, np.array([[0], [1]]), np.arange(count + 1)))
    for place in range(count):
        Transaction(session).allocate(tasks(session, f"p{place}"), np.array([0]))
        column = scorer.raw(class_, Cells(session.nodes, class_))
        assert column[0] == matrix[0, place + 1]
        assert column[1] == matrix[1, 0]


def test_equal_pods_spread_as_their_own_load_grows() -> None:
    plan = planned(
        [
            *(node(name, {"cpu": "10", "memory": "100Gi"}) for name in ("n1", "n2")),
            queue("default"),
            group("g", 4),
            *(waiting(name=f"p{n}", uid=f"p{n}") for n in range(4)),
        ],
        "usage",
        now=NOON,
        options={"nodeUsage": {"n1": measured(10, 10), "n2": measured(24, 24)}},
    )
    assert list(plan.binds.values()) == ["n1", "n1", "n1", "n2"]


# -- arguments -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"usage.wait": 1}, ["usage.wait", "usage.weight"]),
        ({"cpu.weight": -1}, ["cpu.weight", "keeping 1"]),
        ({"cpu.weight": 1.5}, ["cpu.weight", "integer"]),
        ({"thresholds": {"memory": 80}}, ["memory"]),
        ({"thresholds": {"cpu": 101}}, ["cpu", "keeping 80"]),
        ({"thresholds": 80}, ["thresholds", "mapping"]),
        ({"estimator": {"risk_factor": 0.5}}, ["risk_factor", "keeping 1.2"]),
        ({"estimator": {"request_ratio": 2}}, ["request_ratio", "keeping 0.7"]),
        ({"estimator": {"be_cpu": "much"}}, ["be_cpu", "keeping 250m"]),
        ({"estimator": {"be_mem": -1}}, ["be_mem", "keeping 200Mi"]),
        ({"estimator": {"be_memory": 1}}, ["be_memory", "be_mem"]),
    ],
)
def test_what_is_not_understood_is_reported(arguments: dict[str, Any], words: list[str]) -> None:
    session, _ = opened({}, **arguments)
    assert len(session.warnings) == 1
    assert all(word in session.warnings[0] for word in words)
