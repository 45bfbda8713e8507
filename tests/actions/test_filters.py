"""What KAI's search sees of a scenario without trying it."""

from typing import Any

import numpy as np
import pytest

from maniple.actions.searching.feasible import enough_gpus, feasible_nodes
from maniple.actions.searching.filters import ScenarioFilters
from maniple.framework.transactions.transaction import Transaction
from tests.actions.allocate_scenes import Bench, gang, node, queue, task, topology


def filters(bench: Bench, job: str, *, everywhere: bool = True) -> ScenarioFilters:
    session, row = bench.session, bench.job(job)
    mask = np.full(len(session.nodes), everywhere)
    rows = session.groups.to_allocate(row)
    return ScenarioFilters(session, bench.placement, row, rows, mask)


def test_gpus_are_matched_with_single_nodes() -> None:
    victims = [gang(f"v{n}", 1, gpus=2, on=[f"n{n}"]) for n in range(2)]
    bench = Bench(
        queue("q"), node("n0", 2), node("n1", 2), victims, gang("a", 1, gpus=4), gang("b", 2, gpus=2)
    )
    one, two = filters(bench, "a"), filters(bench, "b")
    for name in ("v0-0", "v1-0"):
        assert not one.passes()
        assert not two.passes()
        one.add(bench.rows(name))
        two.add(bench.rows(name))
    assert not one.passes()  # four together, but on no node
    assert two.passes()


def test_the_largest_goes_to_the_largest_even_if_another_way_would_work() -> None:
    bench = Bench(
        queue("q"),
        node("n0", 6),
        node("n1", 4),
        gang(
            "a",
            3,
            requests=[{"cpu": "1", "nvidia.com/gpu": str(gpus)} for gpus in (4, 3, 3)],
        ),
    )
    assert not filters(bench, "a").passes()


def test_a_pod_that_must_be_elsewhere_makes_a_scenario_useless() -> None:
    labelled = node("n1", 2, labels={"zone": "a"})
    victim = gang("v", 1, gpus=2, on=["n1"])
    bench = Bench(queue("q"), node("n0", 2), labelled, victim, gang("a", 1, nodeSelector={"zone": "a"}))
    found = filters(bench, "a", everywhere=False)
    assert not found.passes()
    found.add(bench.rows("v-0"))
    assert found.passes()


def test_groups_that_must_stay_together_need_a_domain_with_room() -> None:
    nodes = [node(f"n{n}", 2, labels={"rack": f"r{n // 2}"}) for n in range(4)]
    wish = {"topology": "t", "requiredTopologyLevel": "rack"}
    victims = [gang(f"v{n}", 1, gpus=2, on=[f"n{n}"]) for n in range(4)]
    bench = Bench(queue("q"), nodes, victims, gang("a", 2, gpus=2, wish=wish))
    found = filters(bench, "a")
    found.add(bench.rows("v0-0", "v2-0"))
    assert not found.passes()
    found.add(bench.rows("v1-0"))
    assert found.passes()


def test_only_sets_of_groups_are_matched_with_domains() -> None:
    """A pod set that must stay in one rack is not looked at, whether there is such a rack or not."""
    nodes = [node(f"n{n}", 2, labels={"rack": f"r{n}"}) for n in range(2)]
    wish = {"topology": "t", "requiredTopologyLevel": "rack"}
    pair: list[dict[str, Any]] = [{"name": "pair", "minMember": 2, "topologyConstraint": wish}]
    around: list[dict[str, Any]] = [
        {"name": "set", "minMember": 1, "topologyConstraint": wish},
        {"name": "pair", "minMember": 2, "parent": "set"},
    ]
    jobs = [
        gang(name, 2, gpus=2, groups=groups, roles=["pair"] * 2)
        for name, groups in (("a", pair), ("b", around))
    ]
    bench = Bench(queue("q"), nodes, jobs)
    assert filters(bench, "a").passes()
    assert not filters(bench, "b").passes()


def test_domains_go_by_the_value_of_their_label_alone() -> None:
    """Rack 1 of one zone and rack 1 of another are two racks, and are taken for one."""
    nodes = [node(f"n{n}", 2, labels={"zone": f"z{n}", "rack": "r1"}) for n in range(2)]
    wish = {"topology": "t", "requiredTopologyLevel": "rack"}
    bench = Bench(queue("q"), topology("t", "zone", "rack"), nodes, gang("a", 2, gpus=2, wish=wish))
    assert filters(bench, "a").passes()


def test_the_largest_group_is_matched_with_the_largest_domain() -> None:
    nodes = [node(f"n{n}", gpus, labels={"rack": f"r{n}"}) for n, gpus in enumerate((4, 2))]
    wish = {"topology": "t", "requiredTopologyLevel": "rack"}

    def job(name: str, *sizes: int) -> list[Any]:
        sets = [{"name": f"s{n}", "minMember": 1, "topologyConstraint": wish} for n in range(len(sizes))]
        leaves = [{"name": f"p{n}", "minMember": 1, "parent": f"s{n}"} for n in range(len(sizes))]
        requests = [{"cpu": "1", "nvidia.com/gpu": str(one)} for one in sizes]
        roles = [f"p{n}" for n in range(len(sizes))]
        return gang(name, len(sizes), groups=[*sets, *leaves], roles=roles, requests=requests)

    bench = Bench(queue("q"), nodes, job("a", 2, 4), job("b", 3, 3))
    assert filters(bench, "a").passes()
    assert not filters(bench, "b").passes()


def test_a_job_that_asks_for_no_gpu_may_go_anywhere_and_others_where_some_are_left() -> None:
    full = gang("v", 1, gpus=2, on=["n0"])
    bench = Bench(queue("q"), node("n0", 2), node("n1", 2), full, gang("a", 1), gang("b", 1, gpus=0))
    assert feasible_nodes(bench.session, bench.job("a")).tolist() == [False, True]
    assert feasible_nodes(bench.session, bench.job("b")).all()
    bench.evict("v-0")
    assert feasible_nodes(bench.session, bench.job("a")).all()


@pytest.mark.parametrize(("gpus", "enough"), [(3, True), (4, False)])
def test_only_gpus_of_nodes_that_are_ready_are_enough(gpus: int, enough: bool) -> None:
    down: Any = {"conditions": [{"type": "Ready", "status": "False"}]}
    full = gang("v", 1, gpus=1, on=["n0"])
    bench = Bench(queue("q"), node("n0", 4), node("n1", 4, **down), full, gang("a", gpus))
    rows = bench.session.groups.to_allocate(bench.job("a"))
    assert enough_gpus(bench.session, rows) is enough


def test_parts_of_devices_are_matched_by_portion() -> None:
    half = task("h", {"cpu": "1"}, annotations={"gpu-fraction": "0.5", "pod-group-name": "a"})
    bench = Bench(queue("q"), node("n0", 1), gang("a", 1, 1)[:1], half)
    assert filters(bench, "a").passes()
    Transaction(bench.session).discard()
