"""nodeorder in a whole cycle: scores follow what the cycle itself places, whoever else is configured."""

import pytest

from tests.plugins.planning import planned
from tests.support import group, node, pod, queue

ONE = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize("plugins", [("nodeorder",), ("predicates", "nodeorder")])
def test_tasks_spread_over_equal_nodes_with_and_without_predicates(plugins: tuple[str, ...]) -> None:
    plan = planned(
        [
            node("n1"),
            node("n2"),
            queue("default"),
            group("a", 4),
            *(pod(f"a-{i}", ONE, group="a") for i in range(4)),
        ],
        *plugins,
    )
    assert sorted(plan.binds.values()) == ["n1", "n1", "n2", "n2"]


def test_unset_requests_are_assumed() -> None:
    """kube-scheduler counts a pod that states nothing as something, so that such pods spread too."""
    plan = planned(
        [
            node("n1"),
            node("n2"),
            queue("default"),
            pod("silent", on="n1"),
            group("a"),
            pod("a-0", ONE, group="a"),
        ],
        "nodeorder",
    )
    assert plan.binds == {"default/a-0": "n2"}


@pytest.mark.parametrize(("strict", "chosen"), [(True, "n1"), (False, "n2")])
def test_what_a_node_lends_beyond_what_it_has_is_not_on_kube_schedulers_books(
    strict: bool, chosen: str
) -> None:
    lent = {"volcano.sh/oversubscription-cpu": "8000", "volcano.sh/oversubscription-memory": f"{16 << 30}"}
    plan = planned(
        [
            node("n1", {"cpu": "4", "memory": "8Gi"}),
            node("n2", {"cpu": "2", "memory": "4Gi"}, annotations=lent),
            queue("default"),
            group("a"),
            pod("a-0", ONE, group="a"),
        ],
        {"name": "nodeorder", "arguments": {"balancedresource.weight": 0}},
        strict=strict,
    )
    assert plan.binds == {"default/a-0": chosen}
