"""The plugin: weights, their defaults, and what a weight of zero does."""

import pytest

from maniple.plugins.score.nodeorder import NodeOrder
from tests.plugins.opening import session_on

DEFAULTS = {
    "LeastAllocated": 1,
    "BalancedAllocation": 1,
    "NodeAffinity": 2,
    "ImageLocality": 1,
    "InterPodAffinity": 2,
    "TaintToleration": 3,
    "PodTopologySpread": 2,
}


def weights(**arguments: object) -> dict[str, float]:
    session = session_on([])
    plugin = NodeOrder(session, {key.replace("_", "."): value for key, value in arguments.items()})
    assert session.warnings == []
    return {scorer.name: scorer.weight for scorer in plugin.scorers()}


def test_default_weights() -> None:
    assert weights() == DEFAULTS


@pytest.mark.parametrize(
    ("argument", "scorer"),
    [
        ("leastrequested_weight", "LeastAllocated"),
        ("balancedresource_weight", "BalancedAllocation"),
        ("nodeaffinity_weight", "NodeAffinity"),
        ("imagelocality_weight", "ImageLocality"),
        ("podaffinity_weight", "InterPodAffinity"),
        ("tainttoleration_weight", "TaintToleration"),
        ("podtopologyspread_weight", "PodTopologySpread"),
        ("mostrequested_weight", "MostAllocated"),
    ],
)
def test_each_weight_is_read_and_zero_turns_the_score_off(argument: str, scorer: str) -> None:
    assert weights(**{argument: 7})[scorer] == 7
    assert scorer not in weights(**{argument: 0})


def test_a_misspelt_argument_is_reported_with_the_nearest_name() -> None:
    session = session_on([])
    NodeOrder(session, {"leastrequest.weight": 3})
    (warning,) = session.warnings
    assert "leastrequested.weight" in warning


def test_a_weight_that_is_no_integer_keeps_the_default() -> None:
    session = session_on([])
    plugin = NodeOrder(session, {"nodeaffinity.weight": "7"})
    assert {s.name: s.weight for s in plugin.scorers()} == DEFAULTS
    assert len(session.warnings) == 1
