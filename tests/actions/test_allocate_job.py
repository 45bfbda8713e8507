"""Placing one job: node sets and groups, dry runs, and tasks that were evicted in the same transaction."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.actions.allocate_scenes import LEAVING, Bench, flat, gang, node, queue, topology

ROOT = [queue("q")]
GPU = "nvidia.com/gpu"
RACKS = topology("net", "rack")
RACK = {"topology": "net", "requiredTopologyLevel": "rack"}


def test_a_job_that_cannot_be_placed_leaves_the_transaction_as_it_was() -> None:
    bench = Bench(ROOT, node("n1", 3), gang("old", 1, on=["n1"]), gang("a", 4))
    bench.evict("old-0")
    assert not bench.place("a")
    assert len(bench.transaction) == 1
    assert bench.where("a-0", "old-0") == [("Pending", ""), ("Releasing", "n1")]


def test_a_job_that_was_refused_is_placed_when_a_node_has_changed() -> None:
    bench = Bench(ROOT, node("n1", 2), gang("old", 1, on=["n1"]), gang("a", 2))
    assert not bench.place("a")
    bench.evict("old-0")
    assert bench.place("a")


def test_pipeline_only_claims_even_what_is_idle() -> None:
    bench = Bench(ROOT, node("n1", 2), gang("a", 2))
    assert bench.place("a", real=False)
    assert bench.where("a-0", "a-1") == [("Pipelined", "n1")] * 2


@pytest.mark.parametrize("strict", [False, True])
def test_pipeline_only_claims_a_part_of_a_shared_device_too(strict: bool) -> None:
    half: dict[str, Any] = {"annotations": {"gpu-fraction": "0.5"}, "gpus": 0}
    mate = gang("mate", 1, on=["n1"], **half)
    mate[1].metadata.labels["runai-gpu-group"] = "g"
    bench = Bench(ROOT, node("n1", 1), mate, gang("a", 1, **half), strict=strict)
    assert bench.place("a", real=False)
    assert bench.where("a-0") == [("Pipelined", "n1")]
    assert bench.session.gpus.groups_of[int(bench.rows("a-0")[0])] == ("g",)


def test_a_dry_run_leaves_no_reasons() -> None:
    bench = Bench(ROOT, node("n1", 1), gang("a", 2))
    assert not bench.place("a", real=False)
    assert bench.session.refusals.jobs == {}
    assert bench.session.refusals.of_each_task() == ()


def test_only_the_given_nodes_are_used() -> None:
    bench = Bench(ROOT, node("n1", 2), node("n2", 2), gang("a", 2))
    assert bench.place("a", nodes=["n2"])
    assert bench.where("a-0", "a-1") == [("Allocated", "n2")] * 2
    assert not Bench(ROOT, node("n1", 2), node("n2", 1), gang("a", 2)).place("a", nodes=["n2"])


def test_only_the_given_tasks_are_placed() -> None:
    bench = Bench(ROOT, node("n1", 2), gang("a", 3))
    assert bench.place("a", rows=["a-0", "a-1"])
    assert bench.where("a-2") == [("Pending", "")]


def test_a_limit_holds_in_dry_runs_too() -> None:
    bench = Bench(queue("q", limit=1), node("n1", 4), gang("a", 2))
    assert not bench.place("a", real=False)
    assert bench.session.refusals.jobs == {}


# -- evicted in the same transaction ----------------------------------------------------------------------------------


def test_an_evicted_task_that_gets_its_own_node_stays() -> None:
    bench = Bench(ROOT, node("n1", 1), gang("old", 1, on=["n1"]))
    bench.evict("old-0")
    assert bench.place("old", real=False)
    assert bench.where("old-0") == [("Running", "n1")]


def test_an_evicted_task_may_move() -> None:
    bench = Bench(ROOT, node("n1", 1), node("n2", 1), gang("old", 1, on=["n1"]))
    bench.evict("old-0")
    assert bench.place("old", real=False, nodes=["n2"])
    assert bench.where("old-0") == [("Pipelined", "n2")]
    bench.transaction.commit()
    assert bench.session.decisions.evicted == [(int(bench.rows("old-0")[0]), "make room")]


def test_tasks_that_are_alike_do_not_change_places() -> None:
    """The first task would get the first node; the original has the two trade places, and evicts both."""
    scene = (ROOT, node("n1", 1), node("n2", 1), gang("old", 2, on=["n2", "n1"]))
    expected = {
        False: [("Running", "n2"), ("Running", "n1")],
        True: [("Pipelined", "n1"), ("Pipelined", "n2")],
    }
    for strict, where in expected.items():
        bench = Bench(*scene, strict=strict)
        bench.evict("old-0", "old-1")
        assert bench.place("old", real=False)
        assert bench.where("old-0", "old-1") == where


def test_a_shared_device_is_kept_if_it_is_the_one_that_is_chosen() -> None:
    """Two halves on one device, one of which is evicted and comes back to the other."""
    half: dict[str, Any] = {"annotations": {"gpu-fraction": "0.5"}, "gpus": 0}
    pods = [gang(name, 1, on=["n1"], **half) for name in ("old", "mate")]
    for one in flat(pods):
        one.metadata.labels["runai-gpu-group"] = "g"
    bench = Bench(ROOT, node("n1", 2), pods)
    bench.evict("old-0")
    assert bench.place("old", real=False)
    assert bench.where("old-0") == [("Running", "n1")]
    assert bench.session.gpus.groups_of[int(bench.rows("old-0")[0])] == ("g",)


# -- groups -----------------------------------------------------------------------------------------------------------


def test_groups_are_placed_all_or_nothing() -> None:
    groups = [{"name": "head", "minMember": 1}, {"name": "work", "minMember": 2}]
    job = gang("a", 3, groups=groups, roles=["head", "work", "work"])
    assert Bench(ROOT, node("n1", 3), job).place("a")
    bench = Bench(ROOT, node("n1", 2), job)
    assert not bench.place("a")
    assert len(bench.transaction) == 0


def test_sets_of_groups_come_before_a_set_s_own_pods() -> None:
    """The inner set needs the only rack that holds it; were the pod of the outer set first, it would be in the way."""
    groups = [
        {"name": "inner", "minMember": 0, "topologyConstraint": RACK},
        {"name": "pair", "minMember": 2, "parent": "inner"},
        {"name": "alone", "minMember": 1},
    ]
    nodes = [node("n1", 1, labels={"rack": "r1"}), node("n2", 2, labels={"rack": "r2"})]
    bench = Bench(ROOT, RACKS, nodes, gang("a", 3, groups=groups, roles=["alone", "pair", "pair"]))
    assert bench.place("a")
    assert bench.where("a-0", "a-1", "a-2") == [("Allocated", "n1"), ("Allocated", "n2"), ("Allocated", "n2")]


def test_sets_of_groups_come_by_name_whatever_the_order_in_which_they_are_written() -> None:
    """Each takes the rack that it fills best of those that are left."""
    sets = [{"name": name, "minMember": 1, "topologyConstraint": RACK} for name in ("y", "x")]
    leaves = [{"name": f"in-{name}", "minMember": 1, "parent": name} for name in ("y", "x")]
    nodes = [node("n1", 1, labels={"rack": "r1"}), node("n2", 2, labels={"rack": "r2"})]
    bench = Bench(ROOT, RACKS, nodes, gang("a", 2, groups=[*sets, *leaves], roles=["in-y", "in-x"]))
    assert bench.place("a")
    assert bench.where("a-0", "a-1") == [("Allocated", "n2"), ("Allocated", "n1")]


def test_a_set_s_groups_stay_inside_the_nodes_that_were_chosen_for_it() -> None:
    """The outer set must be in one zone. Its pod set would have a fuller rack in the other zone."""
    zones = topology("net", "zone", "rack")
    zone = {"topology": "net", "requiredTopologyLevel": "zone"}
    groups = [
        {"name": "outer", "minMember": 1, "topologyConstraint": zone},
        {"name": "many", "minMember": 3, "parent": "outer"},
        {"name": "pair", "minMember": 2, "parent": "outer", "topologyConstraint": RACK},
    ]
    nodes = [
        node("n1", 2, labels={"zone": "z1", "rack": "r1"}),
        node("n2", 3, labels={"zone": "z2", "rack": "r1"}),
        node("n3", 3, labels={"zone": "z2", "rack": "r2"}),
    ]
    bench = Bench(ROOT, zones, nodes, gang("a", 5, groups=groups, roles=["many"] * 3 + ["pair"] * 2))
    assert bench.place("a")
    assert {name for _, name in bench.where(*(f"a-{n}" for n in range(5)))} == {"n2", "n3"}


def test_a_node_set_in_which_a_group_finds_no_place_is_undone_for_the_next() -> None:
    """Rack 1 would be filled best and is tried first, but one of its nodes is not for this job."""
    nodes = [
        node("n1", 1, labels={"rack": "r1", "fast": "yes"}),
        node("n2", 4, labels={"rack": "r2", "fast": "yes"}),
        node("n3", 1, labels={"rack": "r1"}),
    ]
    bench = Bench(ROOT, RACKS, nodes, gang("a", 2, wish=RACK, nodeSelector={"fast": "yes"}))
    assert bench.place("a")
    assert bench.where("a-0", "a-1") == [("Allocated", "n2")] * 2


@pytest.mark.parametrize("real", [True, False])
def test_tasks_of_several_classes_are_placed_in_their_order(real: bool) -> None:
    large, small = (
        {"cpu": "1", "memory": "1G", "nvidia.com/gpu": "2"},
        {"cpu": "1", "memory": "1G", "nvidia.com/gpu": "1"},
    )
    bench = Bench(ROOT, node("n1", 3), node("n2", 2), gang("a", 4, requests=[small, large, large, small]))
    assert not bench.place("a", real=real)
    bench = Bench(ROOT, node("n1", 3), node("n2", 3), gang("a", 4, requests=[small, large, large, small]))
    assert bench.place("a", real=real)


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=5),
    st.lists(st.integers(1, 3), min_size=1, max_size=6),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_tasks_placed_together_go_where_they_would_go_one_by_one(
    nodes: list[int], asked: list[int], leaving: bool
) -> None:
    requests = [{"cpu": "1", "nvidia.com/gpu": str(one)} for one in sorted(asked)]
    scene: list[Any] = [
        ROOT,
        [node(f"n{number}", gpus) for number, gpus in enumerate(nodes)],
        gang("a", len(asked), requests=requests),
    ]
    if leaving:
        scene += [node("old", 2), gang("b", 1, on=["old"], deleted="2026-01-01T00:00:00Z")]
    names = [f"a-{number}" for number in range(len(asked))]
    together, apart = Bench(*scene), Bench(*scene)
    if together.place("a"):
        assert all(apart.place("a", rows=[name]) for name in names)
        assert together.where(*names) == apart.where(*names)
    else:
        assert not all(apart.place("a", rows=[name]) for name in names)


def test_a_group_that_holds_the_only_pod_set_is_placed() -> None:
    groups = [{"name": "all", "minMember": 1}, {"name": "workers", "minMember": 2, "parent": "all"}]
    bench = Bench(ROOT, node("n1", 2), gang("a", 2, groups=groups, roles=["workers"] * 2))
    assert bench.place("a")
    assert bench.where("a-0", "a-1") == [("Allocated", "n1")] * 2


def test_claims_of_a_dry_run_leave_idle_what_is_idle_to_the_letter() -> None:
    """One device of the small node is idle, one is being released.

    The second task still sees the idle one, and packs.
    """
    leaving = gang("old", 1, on=["n1"], deleted=LEAVING)
    bench = Bench(ROOT, node("n1", 2), node("n2", 8), leaving, gang("a", 2), strict=True)
    assert bench.place("a", real=False)
    assert bench.where("a-0", "a-1") == [("Pipelined", "n1")] * 2


@pytest.mark.parametrize(("strict", "where"), [(False, "n1"), (True, "n2")])
def test_to_the_letter_a_task_that_would_get_the_node_it_left_first_is_put_back_instead(
    strict: bool, where: str
) -> None:
    bench = Bench(ROOT, node("n1", 1), node("n2", 1), gang("v", 1, on=["n1"]), strict=strict)
    bench.evict("v-0")
    assert bench.place("v", real=False, nodes=["n2"])
    bench.transaction.commit()
    bench.evict("v-0")
    assert bench.place("v", real=False, nodes=["n1"])
    assert bench.where("v-0") == [("Pipelined", where)]


# -- what is known of classes that fit nowhere ------------------------------------------------------------------------


def test_a_larger_request_that_fits_nowhere_either_is_refused_in_its_own_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second job is judged by the failure of the first, and its reason is the one that it has by itself."""
    small, large = ({"cpu": "1", GPU: str(gpus)} for gpus in (2, 3))
    large["cpu"] = "500"
    scene = (ROOT, node("n1", 1), node("n2", 1))
    alone = Bench(*scene, gang("b", 1, requests=[large]))
    assert not alone.place("b")
    both = Bench(*scene, gang("a", 1, requests=[small]), gang("b", 1, requests=[large]))
    assert not both.place("a")
    monkeypatch.setattr(both.placement, "fill", None)
    assert not both.place("b")
    assert both.session.refusals.jobs[both.job("b")] == alone.session.refusals.jobs[alone.job("b")]
    assert both.session.refusals.jobs[both.job("a")] != both.session.refusals.jobs[both.job("b")]


def test_a_smaller_request_is_looked_at_after_a_larger_one_failed() -> None:
    jobs = [gang(name, 1, requests=[{GPU: str(gpus)}]) for name, gpus in (("large", 2), ("small", 1))]
    bench = Bench(ROOT, node("n1", 1), *jobs)
    assert not bench.place("large")
    assert bench.place("small")


def test_what_fits_nowhere_is_looked_at_again_once_a_node_has_changed() -> None:
    jobs = [gang(name, 1, requests=[{GPU: str(gpus)}]) for name, gpus in (("a", 1), ("b", 2))]
    bench = Bench(ROOT, node("n1", 2), gang("old", 2, on=["n1", "n1"]), *jobs)
    assert not bench.place("a")
    bench.evict("old-0", "old-1")
    assert bench.place("b")
