"""rescheduling: when it runs, from which nodes it takes pods, which and how many."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.plugins.victims.rescheduling import Rescheduling
from tests.plugins.opening import names, session_again, session_on
from tests.support import group, node, pod, queue

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = START + timedelta(minutes=5, seconds=1)
SIZE = {"cpu": "10", "memory": "100Gi"}
Usage = dict[str, tuple[float, float]]


def strategy(low: int = 30, target: int = 60, **more: Any) -> dict[str, Any]:
    thresholds = {"cpu": low, "memory": low}
    params = {"thresholds": thresholds, "targetThresholds": {"cpu": target, "memory": target}, **more}
    return {"strategies": [{"name": "lowNodeUtilization", "params": params}]}


def running(name: str, on: str, cpu: str = "1", memory: str = "1Gi", **more: Any) -> Object:
    return pod(name, {"cpu": cpu, "memory": memory}, on=on, group="g", uid=name, **more)


def options(usage: Usage, now: datetime, ago: timedelta = timedelta(0)) -> dict[str, Any]:
    at = (now - ago).isoformat()
    return {
        "nodeUsage": {name: {"cpu": cpu, "memory": memory, "at": at} for name, (cpu, memory) in usage.items()}
    }


def victims(
    usage: Usage,
    *objects: Object,
    arguments: dict[str, Any] | None = None,
    strict: bool = False,
    ago: timedelta = timedelta(0),
    nodes: tuple[Object, ...] = (),
) -> list[str]:
    """What is taken in the first session in which it may be."""
    named = [node(name, SIZE) for name in sorted(usage)]
    first = session_on(
        [*(nodes or named), queue("default"), group("g", 1), *objects], strict=strict, now=START
    )
    plugin_arguments = strategy() if arguments is None else arguments
    assert not len(Rescheduling(first, plugin_arguments).victim_tasks(everyone(first)))
    conf = {"actions": "allocate", "tiers": [], "compat": "strict" if strict else "better"}
    second = session_again(first.cluster, conf, now=LATER, options=options(usage, LATER, ago))
    return names(second, Rescheduling(second, plugin_arguments).victim_tasks(everyone(second)))


def test_a_victim_says_why_it_was_selected() -> None:
    usage = {"low": (10.0, 10.0), "high": (90.0, 10.0)}
    objects = [node(name, SIZE) for name in usage] + [
        queue("default"),
        group("g", 1),
        running("p", "high", "2"),
    ]
    first = session_on(objects, now=START)
    Rescheduling(first, strategy()).victim_tasks(everyone(first))
    conf = {"actions": "allocate", "tiers": []}
    second = session_again(first.cluster, conf, now=LATER, options=options(usage, LATER))
    plugin = Rescheduling(second, strategy())
    (row,) = plugin.victim_tasks(everyone(second)).tolist()
    assert "above the target thresholds" in str(plugin.victim_reason(row))
    assert plugin.victim_reason(row + 1) is None


def everyone(session: Session) -> Any:
    """All running tasks, as shuffle gives them."""
    return np.flatnonzero(session.tasks.node >= 0)


LOADED: Usage = {"high": (90, 50), "low": (10, 10)}


# -- when ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "minutes", "expected"),
    [
        ({}, [0, 4, 5, 6, 10, 11, 12], [0, 0, 0, 1, 0, 0, 1]),
        ({"interval": "1m"}, [0, 1, 2, 3, 4], [0, 0, 1, 0, 1]),
        ({"interval": "now and then"}, [0, 5, 6], [0, 0, 1]),
    ],
)
def test_it_runs_once_per_interval_the_first_time_one_interval_after_the_start(
    arguments: dict[str, Any], minutes: list[int], expected: list[int]
) -> None:
    objects = [*(node(name, SIZE) for name in LOADED), queue("default"), group("g", 1), running("p", "high")]
    cluster = session_on(objects).cluster
    taken = []
    for minute in minutes:
        now = START + timedelta(minutes=minute)
        session = session_again(cluster, now=now, options=options(LOADED, now))
        taken.append(len(Rescheduling(session, strategy() | arguments).victim_tasks(everyone(session))))
    assert taken == expected


def test_without_a_clock_it_never_runs() -> None:
    session = session_on(
        [node("high", SIZE), node("low", SIZE), queue("default"), group("g", 1), running("p", "high")]
    )
    plugin = Rescheduling(session, strategy())
    assert not len(plugin.victim_tasks(everyone(session)))
    assert not any("rescheduling" in str(key) for key in session.cluster.memory)


# -- which nodes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"high": (61, 0), "low": (29, 29)}, ["p"]),
        ({"high": (0, 61), "low": (29, 29)}, ["p"]),
        ({"high": (60, 60), "low": (29, 29)}, []),  # not above the target
        ({"high": (90, 90), "low": (30, 0)}, []),  # nobody is low
        ({"high": (90, 90), "low": (29, 29), "middle": (45, 45)}, ["p"]),
    ],
)
def test_there_must_be_low_nodes_and_high_ones(usage: Usage, expected: list[str]) -> None:
    assert victims(usage, running("p", "high", "4", "40Gi")) == expected


def test_a_node_that_takes_no_pods_is_not_low() -> None:
    nodes = (node("high", SIZE), node("low", SIZE, unschedulable=True))
    assert victims(LOADED, running("p", "high"), nodes=nodes) == []


@pytest.mark.parametrize("arguments", [{}, {"strategies": []}])
def test_by_default_no_node_is_ever_above_a_target(arguments: dict[str, Any]) -> None:
    assert victims({"high": (100, 100), "low": (1, 1)}, running("p", "high"), arguments=arguments) == []


def test_the_most_loaded_node_comes_first() -> None:
    usage: Usage = {"a": (70, 0), "b": (65, 65), "low": (0, 0)}
    # 6 cpu can be taken in; a1 would be the third pod.
    objects = [running("a1", "a", "3", "0"), running("b1", "b", "3", "50Gi"), running("b2", "b", "3", "10Gi")]
    assert victims(usage, *objects) == ["b1", "a1"]
    assert victims(usage | {"b": (65, 4)}, *objects) == ["a1", "b1"]


# -- which pods ------------------------------------------------------------------------------------------------------


def test_low_priority_and_low_quality_go_first() -> None:
    def guaranteed(name: str, **more: Any) -> Object:
        resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
        return running(name, "high", containers=[{"name": "main", "resources": resources}], **more)

    def idle(name: str, **more: Any) -> Object:
        return running(name, "high", containers=[{"name": "main"}], **more)

    found = victims(
        {"high": (99, 0), "low": (0, 0)},
        guaranteed("e", priority=0),
        running("d", "high", priority=0),
        idle("c", priority=0),
        guaranteed("b", priority=-5),
        guaranteed("a"),
        running("f", "high", priority=9),
    )
    assert found == ["a", "b", "c", "d", "e"]  # then the node is at 59 %


def test_pods_are_taken_until_the_node_is_under_its_targets() -> None:
    pods = [running(f"p{n}", "high", "1", "1Gi") for n in range(9)]
    assert victims({"high": (75, 0), "low": (0, 0)}, *pods) == ["p0", "p1"]
    assert victims({"high": (80, 0), "low": (0, 0)}, *pods) == ["p0", "p1", "p2"]  # 60 % is not under 60 %


def test_only_running_pods_of_the_node_are_taken() -> None:
    objects = [
        running("bound", "high", phase="Pending"),
        running("leaving", "high", deleted="2026-01-01T11:00:00Z"),
        running("elsewhere", "low"),
        running("p", "high"),
    ]
    assert victims(LOADED, *objects) == ["p"]


def test_nothing_is_evicted_when_the_room_is_used_up_but_volcano_checks_only_for_zero() -> None:
    """The low node takes 0.5 cpu up to the target; a second pod would find no room."""
    usage: Usage = {"high": (100, 0), "low": (25, 0)}
    pods = [running(f"p{n}", "high", "1", "1Gi") for n in range(9)]
    arguments = strategy(30, 30) | {"metricsPeriod": "10m"}
    assert victims(usage, *pods, arguments=arguments) == ["p0"]
    assert len(victims(usage, *pods, arguments=arguments, strict=True)) == 8
    even: Usage = {"high": (100, 0), "low": (20, 0)}
    assert victims(even, *pods, arguments=arguments, strict=True) == ["p0"]


# -- measurements ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("period", "strict", "acts"),
    [("5m", False, True), ("10m", False, True), ("5m", True, False), ("10m", True, True)],
)
def test_volcano_finds_measurements_only_under_ten_minutes(period: str, strict: bool, acts: bool) -> None:
    arguments = strategy() | {"metricsPeriod": period}
    assert bool(victims(LOADED, running("p", "high"), arguments=arguments, strict=strict)) is acts


def test_nodes_that_were_not_measured_lately_take_no_part_but_count_as_idle_in_volcano() -> None:
    old, ten = timedelta(minutes=6), strategy() | {"metricsPeriod": "10m"}
    assert victims(LOADED, running("p", "high"), ago=old) == []
    assert victims(LOADED, running("p", "high"), arguments=ten, ago=old, strict=True) == ["p"]
    nodes = (node("high", SIZE), node("unknown", SIZE))
    assert victims({"high": (90, 0)}, running("p", "high"), nodes=nodes) == []
    assert victims({"high": (90, 0)}, running("p", "high"), nodes=nodes, arguments=ten, strict=True) == ["p"]


# -- arguments -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"intervall": "5m"}, ["intervall", "interval"]),
        ({"interval": "often"}, ["interval", "5m"]),
        ({"strategies": ["low"]}, ["strategies[0]"]),
        ({"strategies": [{"name": "lowNodeUtilisation"}]}, ["lowNodeUtilisation", "lowNodeUtilization"]),
        (strategy(treshold=1), ["treshold", "thresholds"]),
        ({"strategies": [{"name": "lowNodeUtilization", "params": {"thresholds": {"mem": 1}}}]}, ["mem"]),
        ({"strategies": [{"name": "lowNodeUtilization", "parameters": {}}]}, ["parameters", "params"]),
    ],
)
def test_what_is_not_understood_is_reported(arguments: dict[str, Any], words: list[str]) -> None:
    session = session_on([])
    Rescheduling(session, arguments)
    assert len(session.warnings) == 1
    assert all(word in session.warnings[0] for word in words)


def test_what_volcano_knows_but_never_reads_is_accepted() -> None:
    session = session_on([])
    Rescheduling(session, strategy(nodeFit=True, thresholdPriorityClassName="system-cluster-critical"))
    assert session.warnings == []
