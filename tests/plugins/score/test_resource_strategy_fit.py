"""resource-strategy-fit: strategies by resource, by pod, and the two policies for scarce resources."""

import json
from typing import Any

import pytest

from maniple.framework.criteria import Dependence
from maniple.framework.reasons import Code
from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.plugins.score.resource_strategy_fit import (
    STRATEGY_ANNOTATION,
    WEIGHTS_ANNOTATION,
    ResourceStrategyFit,
)
from tests.plugins.opening import session_on
from tests.plugins.score.cells import scores, verdicts
from tests.support import group, node, pod, queue

GPU = "nvidia.com/gpu"
NODE = node("n1", {"cpu": "10", "memory": "20Gi", GPU: "4"})
REQUEST = {"cpu": "2", "memory": "2Gi", GPU: "1"}
MOST, LEAST = "MostAllocated", "LeastAllocated"


def opened(request: dict[str, str], *objects: Object, annotations: dict[str, str] | None = None) -> Session:
    """4 cpu and 4 Gi of node n1 are used."""
    used = pod("used", {"cpu": "4", "memory": "4Gi"}, on="n1")
    return session_on(
        [
            queue("default"),
            group("g", 1),
            pod("p", request, group="g", annotations=annotations),
            used,
            *objects,
        ]
    )


def score(
    arguments: dict[str, Any],
    request: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> float:
    session = opened(request or REQUEST, NODE, annotations=annotations)
    return scores(session, ResourceStrategyFit(session, arguments), "p")["n1"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, 10 * (0.4 + 0.7) / 2),
        ({"resources": {}}, 10 * (0.4 + 0.7) / 2),
        ({"resourceStrategyFitWeight": 3}, 3 * (0.4 + 0.7) / 2),
        ({"resourceStrategyFitWeight": -3}, 10 * (0.4 + 0.7) / 2),
        ({"resourceStrategyFitWeight": 0}, 0),
        ({"resources": {"cpu": {"type": MOST, "weight": 1}}}, 10 * 0.6),
        (
            {"resources": {"cpu": {"type": MOST, "weight": 3}, "memory": {"type": LEAST, "weight": 1}}},
            10 * (3 * 0.6 + 0.7) / 4,
        ),
        ({"resources": {"cpu": {"type": "Sideways", "weight": -2}}}, 10 * 0.4),
        ({"resources": {"cpu": None}}, 10 * 0.4),
        ({"resources": {"nvidia.com/*": {"type": MOST}}}, 10 * 0.25),
        ({"resources": {"nvidia.com/*": {"type": MOST}, GPU: {"type": LEAST}}}, 10 * 0.75),
        ({"resources": {"nvidia*": {"type": LEAST}, "nvidia.com/*": {"type": MOST}}}, 10 * 0.25),
        ({"resources": {"*": {"type": MOST}}}, 0),
        ({"resources": {"nvidia*gpu": {"type": MOST}, "cpu": {"type": MOST}}}, 10 * 0.6),
    ],
)
def test_each_resource_has_its_strategy_and_weight(arguments: dict[str, Any], expected: float) -> None:
    assert score(arguments) == pytest.approx(100 * expected)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"resources": {"*": {}}}, "*"),
        ({"resources": {"cpu": {"type": "Sideways"}}}, MOST),
        ({"resources": {"cpu": {"kind": MOST}}}, "kind"),
        ({"resource": {}}, "resources"),
        ({"resourceStrategyFitWeight": "5"}, "integer"),
        ({"sra": {"enabled": True}}, "enable"),
        ({"proportional": {"resourceProportion": {"x.cpu": 1}}}, "x.cpu"),
    ],
)
def test_what_is_not_understood_is_reported(arguments: dict[str, Any], word: str) -> None:
    session = opened(REQUEST, NODE)
    ResourceStrategyFit(session, arguments)
    assert len(session.warnings) == 1
    assert word in session.warnings[0]


def test_a_node_that_would_be_overfull_scores_nothing() -> None:
    assert score({}, {"cpu": "7", "memory": "1Gi"}) == 0
    assert score({"resources": {"memory": {"type": LEAST}}}, {"cpu": "7", "memory": "2Gi"}) == pytest.approx(
        700
    )


def own(strategy: str, weights: object) -> dict[str, str]:
    written = weights if isinstance(weights, str) else json.dumps(weights)
    return {STRATEGY_ANNOTATION: strategy, WEIGHTS_ANNOTATION: written}


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        (own(MOST, {"cpu": 1}), 10 * 0.6),
        (own(MOST, {"cpu": 1, "memory": 3, "example.com/x": 9}), 10 * (0.6 + 3 * 0.3) / 4),
        (own(LEAST, {GPU: 2}), 10 * 0.75),
        (own("Sideways", {"cpu": 1}), 0),
        (own("", {"cpu": 1}), 10 * (0.4 + 0.7) / 2),
        (own(MOST, {"cpu": 0}), 0),
        (own(MOST, None), 0),
    ],
)
def test_a_pod_may_state_its_own(annotations: dict[str, str], expected: float) -> None:
    assert score({}, annotations=annotations) == pytest.approx(100 * expected)


@pytest.mark.parametrize(
    "weights", ["", "cpu", "[1]", '{"cpu": 1.5}', '{"cpu": "1"}', '{"cpu": true}', "[" * 100_000]
)
def test_weights_that_cannot_be_read_mean_no_score_and_a_report(weights: str) -> None:
    session = opened(REQUEST, NODE, annotations=own(MOST, weights))
    assert scores(session, ResourceStrategyFit(session, {}), "p")["n1"] == 0
    assert len(session.warnings) == 1


# -- scarce resources ---------------------------------------------------------------------------------------------

PLAIN = node("n2", {"cpu": "10", "memory": "20Gi"})
BOTH = node("n3", {"cpu": "10", "memory": "20Gi", GPU: "4", "example.com/fpga": "1"})


def avoiding(request: dict[str, str], **sra: Any) -> dict[str, float]:
    session = opened(request, NODE, PLAIN, BOTH)
    arguments = {"resourceStrategyFitWeight": 0, "sra": {"enable": True, "weight": 2, **sra}}
    return scores(session, ResourceStrategyFit(session, arguments), "p")


def test_nodes_with_scarce_resources_score_lower() -> None:
    found = avoiding({"cpu": "1"}, resources=f"{GPU}, example.com/fpga", resourceWeight={GPU: 3})
    assert found == pytest.approx({"n1": 200 * (1 - 3 / 4), "n2": 200, "n3": 0})


def test_a_node_that_lacks_what_the_task_asks_for_scores_nothing() -> None:
    assert avoiding({GPU: "1"}, resources="example.com/fpga") == {"n1": 200, "n2": 0, "n3": 0}


@pytest.mark.parametrize("sra", [{"enable": False}, {"weight": 0}, {"resources": ""}])
def test_avoidance_is_off_without_switch_weight_or_resources(sra: dict[str, Any]) -> None:
    assert set(avoiding({"cpu": "1"}, **{"resources": GPU, **sra}).values()) == {0.0}


def proportional(request: dict[str, str], **more: Any) -> tuple[Session, ResourceStrategyFit]:
    session = opened(request, NODE, PLAIN)
    ratios = {f"{GPU}.cpu": 1, f"{GPU}.memory": 2}
    settings = {"enable": True, "resources": GPU, "resourceProportion": ratios, **more}
    return session, ResourceStrategyFit(session, {"proportional": settings})


def test_other_tasks_must_leave_cpu_and_memory_for_idle_devices() -> None:
    """4 idle devices keep 4 cpu and 8 GB; 6 cpu and 16 Gi are idle."""
    reason = "proportional of resource nvidia.com/gpu check failed"
    session, plugin = proportional({"cpu": "2"})
    assert verdicts(session, plugin, "p") == {}
    assert verdicts(session, plugin, "p", extra=1) == {"n1": reason}
    session, plugin = proportional({"cpu": "2001m"})
    assert verdicts(session, plugin, "p") == {"n1": reason}
    session, plugin = proportional({"memory": str(16 * 2**30 - 8 * 10**9)})
    assert verdicts(session, plugin, "p") == {}
    session, plugin = proportional({"memory": str(16 * 2**30 - 8 * 10**9 + 1)})
    assert verdicts(session, plugin, "p") == {"n1": reason}
    assert {r.code for r in session.reasons.reasons if r.text == reason} == {Code.UNRESOLVABLE}


def test_tasks_that_ask_for_the_device_are_let_through() -> None:
    session, plugin = proportional({"cpu": "9", GPU: "1"})
    assert verdicts(session, plugin, "p") == {}


def test_without_a_ratio_a_device_keeps_one_cpu_and_one_gigabyte() -> None:
    session, plugin = proportional({"cpu": "2001m"}, resourceProportion={f"{GPU}.cpu": -5})
    assert set(verdicts(session, plugin, "p")) == {"n1"}


def test_criteria_say_what_they_depend_on() -> None:
    session = opened(REQUEST, NODE)
    plugin = ResourceStrategyFit(
        session, {"sra": {"enable": True, "weight": 1}, "proportional": {"enable": True}}
    )
    assert [scorer.depends for scorer in plugin.scorers()] == [Dependence.NODE, Dependence.STATIC]
    assert [each.depends for each in plugin.filters()] == [Dependence.NODE]
    assert ResourceStrategyFit(session, {}).filters() == []
