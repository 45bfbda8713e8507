"""What the configuration asks for and nobody knows is said, whoever was asked."""

import pytest

from maniple.planner import Planner
from tests.support import cluster_of, node, queue

ACTIONS = ("enqueue", "allocate", "backfill", "reclaim", "preempt", "gangpreempt", "gangreclaim", "shuffle")


@pytest.mark.parametrize("action", ACTIONS)
def test_an_unknown_argument_of_an_action_is_reported(action: str) -> None:
    conf = {"actions": action, "tiers": [], "configurations": [{"name": action, "arguments": {"oftn": 1}}]}
    plan = Planner(profile="volcano", conf=conf).cycle(cluster_of(node("n1"), queue("default")))
    assert any(action in warning and "oftn" in warning for warning in plan.warnings)


def test_an_unknown_plugin_is_reported() -> None:
    conf = {"actions": "allocate", "tiers": [{"plugins": [{"name": "gagn"}]}]}
    plan = Planner(profile="volcano", conf=conf).cycle(cluster_of(node("n1"), queue("default")))
    assert any("gagn" in warning for warning in plan.warnings)


def test_of_two_ways_to_share_the_cluster_the_first_is_used() -> None:
    conf = {"actions": "allocate", "tiers": [{"plugins": [{"name": "proportion"}, {"name": "capacity"}]}]}
    plan = Planner(profile="volcano", conf=conf).cycle(cluster_of(node("n1"), queue("default")))
    assert any("capacity" in warning and "proportion" in warning for warning in plan.warnings)
