"""KAI's predicates tell the first thing that is wrong with a node: the order in which they look."""

from typing import Any

import pytest

from maniple.framework.points import Capacity
from maniple.plugins.kai import node_rules
from maniple.plugins.kai.predicates import Predicates
from tests.plugins.kai.asking import Asking
from tests.plugins.kai.fairness_scenes import task
from tests.support import make

PODS_FULL = "node(s) pod number exceeded"
OVER = "node does not have enough capacity. Reason: OverLimit"
WRONGS = ("capacity", "gpus", "memory", "slots", "condition", "taint", "role")


class Poor:
    """No queue can take anything on any node."""

    name = "poor"

    def __init__(self, _session: Any, _arguments: Any) -> None:
        pass

    def is_task_allocation_on_node_over_capacity(self, _row: int, _node: int) -> Capacity:
        return Capacity(False, "OverLimit", "too much")


def told(*wrong: str) -> str:
    """What is told of a node with all this wrong, to a pod that asks for an amount of GPU memory."""
    labels = {"nvidia.com/gpu.memory": "1000"} if "memory" not in wrong else {}
    if "gpus" in wrong:
        labels |= {"node-role.kubernetes.io/mig-enabled": "true", "nvidia.com/mig.strategy": "mixed"}
    if "role" not in wrong:
        labels["node-role.kubernetes.io/gpu-worker"] = ""
    else:
        labels["node-role.kubernetes.io/cpu-worker"] = ""
    amounts = {"cpu": "8", "pods": "0" if "slots" in wrong else "9", "nvidia.com/gpu": "2"}
    taints = [{"key": "k", "effect": "NoSchedule"}] if "taint" in wrong else []
    ready = "False" if "condition" in wrong else "True"
    node = make(
        "v1",
        "Node",
        "n",
        labels=labels,
        spec={"taints": taints},
        status={"allocatable": amounts, "conditions": [{"type": "Ready", "status": ready}]},
    )
    asks = task("p", {"cpu": "1"}, annotations={"pod-group-name": "g", "gpu-memory": "500"})
    group = make(
        "scheduling.run.ai/v2alpha2", "PodGroup", "g", namespace="default", uid="g", spec={"queue": "q"}
    )
    plugins = [Predicates, *([Poor] if "capacity" in wrong else [])]
    asking = Asking(plugins, node, group, asks, options={"restrictNodeScheduling": True})
    return asking.refused("p").get("n", "")


EXPECTED = {
    "capacity": OVER,
    "gpus": node_rules.ONLY_MIG,
    "memory": node_rules.NOT_SYNCED,
    "slots": PODS_FULL,
    "condition": "node has NotReady condition",
}


def test_nothing_is_reported_of_a_node_that_is_fine() -> None:
    assert told() == ""


@pytest.mark.parametrize("first", WRONGS)
def test_each_is_reported_before_all_that_come_after_it(first: str) -> None:
    rest = WRONGS[WRONGS.index(first) :]
    alone = told(first)
    assert alone
    assert alone == EXPECTED.get(first, alone)
    assert told(*rest) == alone
