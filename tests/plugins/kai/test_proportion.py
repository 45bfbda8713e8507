"""KAI's proportion: what there is to divide, what queues have and ask for, and how that follows the session."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.cluster.statuses import Status
from maniple.framework.transactions.transaction import Transaction
from maniple.plugins.kai.counting import in_units
from maniple.plugins.kai.proportion import Proportion
from tests.plugins.kai.fairness_scenes import GIGABYTE, UNLIMITED, Scene, job, node, queue, task

TOP = queue("top", UNLIMITED)


def under_top(name: str, quota: float = 0.0, **more: Any) -> Any:
    return queue(name, quota, parent="top", **more)


# -- what there is --------------------------------------------------------------------------------------------------


def total_gpus(*parts: Any, **more: Any) -> float:
    """All that there is, as the fair share of a queue that wants everything."""
    wants = job("greedy", "all", pending=1, gpus=1000)
    return Scene(queue("all", UNLIMITED), wants, *parts, **more).fair("all")


def test_ready_nodes_add_up() -> None:
    assert total_gpus(node("n1", 8), node("n2", 4)) == 12


@pytest.mark.parametrize(
    "condition",
    [
        {"type": "Ready", "status": "False"},
        {"type": "Ready", "status": "Unknown"},
        {"type": "MemoryPressure", "status": "True"},
        {"type": "NetworkUnavailable", "status": "Unknown"},
    ],
)
def test_a_node_in_a_bad_condition_counts_for_nothing(condition: Mapping[str, str]) -> None:
    assert total_gpus(node("n1", 8), node("n2", 4, conditions=[condition])) == 8


def test_a_node_in_good_condition_counts() -> None:
    good = [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}]
    assert total_gpus(node("n1", 8, conditions=good)) == 8


def test_slices_count_with_the_number_in_their_names() -> None:
    assert total_gpus(node("n1", 1, extra={"nvidia.com/mig-2g.10gb": "3"})) == 7


def test_what_pods_of_other_schedulers_hold_is_not_to_be_had() -> None:
    foreign = task("other", {"nvidia.com/gpu": "2"}, on="n1", scheduler="default-scheduler")
    assert total_gpus(node("n1", 8), foreign) == 6


def test_finished_pods_of_other_schedulers_hold_nothing() -> None:
    done = task("other", {"nvidia.com/gpu": "2"}, on="n1", scheduler="default-scheduler", phase="Succeeded")
    assert total_gpus(node("n1", 8), done) == 8


@pytest.mark.parametrize("app", ["kai-resource-reservation", "scaling-pod"])
def test_pods_that_stand_for_others_hold_nothing(app: str) -> None:
    stand_in = task("r", {"nvidia.com/gpu": "1"}, on="n1", scheduler="default-scheduler", labels={"app": app})
    assert total_gpus(node("n1", 8), stand_in) == 8


def test_our_own_pods_without_a_group_are_not_taken_off() -> None:
    assert total_gpus(node("n1", 8), task("alone", {"nvidia.com/gpu": "2"}, on="n1")) == 8


def test_with_restricted_nodes_only_gpu_workers_have_gpus() -> None:
    worker = node("n2", 4, labels={"node-role.kubernetes.io/gpu-worker": ""})
    assert total_gpus(node("n1", 8), worker, options={"restrictNodeScheduling": True}) == 4


# -- what queues have and ask for -----------------------------------------------------------------------------------


def test_amounts_count_for_the_queue_and_all_above_it() -> None:
    scene = Scene(node(), TOP, under_top("a"), job("j", "a", running=2, pending=3))
    for name in ("a", "top"):
        assert scene.allocated(name) == 2
        assert scene.account(name).request == [5000, 5 * GIGABYTE, 500]


def test_only_jobs_that_are_not_preemptible_hold_firmly() -> None:
    scene = Scene(node(), TOP, under_top("a"), job("j", "a", running=2), job("f", "a", running=1, firm=True))
    assert scene.account("a").firm == scene.account("top").firm == [1000, GIGABYTE, 100]
    assert scene.allocated("a") == 3


def test_waiting_tasks_of_jobs_that_are_not_ready_count_as_asked_for() -> None:
    scene = Scene(node(), TOP, under_top("a"), job("j", "a", pending=1, minimum=5))
    assert scene.account("a").request[2] == 100


def test_gated_and_leaving_tasks_are_neither_had_nor_asked_for() -> None:
    gated = job("g", "a", pending=1, schedulingGates=[{"name": "wait"}])
    leaving = job("l", "a", running=1, deleted="2026-01-01T00:00:00Z")
    assert Scene(node(), TOP, under_top("a"), gated, leaving).account("a").request == [0, 0, 0]


@pytest.mark.parametrize("strict", [False, True])
def test_tasks_on_nodes_of_another_pool_are_not_had(strict: bool) -> None:
    here, there = job("j", "a", running=2), job("k", "a", running=1, on="elsewhere")
    assert Scene(node(), TOP, under_top("a"), here, there, strict=strict).allocated("a") == 2


def test_parts_of_devices_add_up_exactly() -> None:
    parts = [job(f"p{n}", "a", running=1, gpus=0, annotations={"gpu-fraction": "0.1"}) for n in range(3)]
    scene = Scene(node(), TOP, under_top("a", 0.3), *parts)
    assert scene.account("a").allocated[2] == scene.account("a").quota[2] == 30


def test_the_same_part_of_several_devices_counts_for_each() -> None:
    notes = {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "3"}
    assert Scene(node(), TOP, under_top("a"), job("j", "a", pending=1, gpus=0, annotations=notes)).account(
        "a"
    ).request[2] == pytest.approx(150)


def test_gpu_memory_is_measured_by_the_smallest_device_or_strictly_by_100_mib() -> None:
    nodes = [
        node("n1", labels={"nvidia.com/gpu.memory": "80000"}),
        node("n2", labels={"nvidia.com/gpu.memory": "40000"}),
    ]
    wants = job("j", "a", pending=1, gpus=0, annotations={"gpu-memory": "8000"})
    assert Scene(nodes, TOP, under_top("a"), wants).account("a").request[2] == 20
    assert Scene(nodes, TOP, under_top("a"), wants, strict=True).account("a").request[2] == 8000


def test_gpu_memory_on_a_node_counts_as_the_part_of_its_device() -> None:
    holds = job("j", "a", running=1, gpus=0, annotations={"gpu-memory": "8000"})
    scene = Scene(node("n1", labels={"nvidia.com/gpu.memory": "80000"}), TOP, under_top("a"), holds)
    assert scene.allocated("a") == 0.1


def test_slices_count_in_queues_with_the_number_in_their_names() -> None:
    holds = job("j", "a", running=1, gpus=0, requests={"nvidia.com/mig-3g.20gb": "2"})
    machine = node("n1", 0, extra={"nvidia.com/mig-3g.20gb": "4"})
    assert Scene(machine, TOP, under_top("a"), holds).allocated("a") == 6


def test_memory_is_stated_in_millions_of_bytes() -> None:
    stated = under_top("a", memory={"quota": 2000, "limit": 3000, "overQuotaWeight": 0})
    account = Scene(node(), TOP, stated).account("a")
    assert (account.quota[1], account.limit[1]) == (2 * GIGABYTE, 3 * GIGABYTE)


def test_minus_one_is_unlimited_and_no_resources_are_none() -> None:
    bare = under_top("bare")
    scene = Scene(node(), TOP, under_top("a", UNLIMITED), bare)
    assert np.isinf(scene.account("a").quota).all()
    assert scene.account("bare").quota[2] == 0


# -- fair shares in the tree ----------------------------------------------------------------------------------------


def test_queues_share_by_weight_what_is_left_over_quotas() -> None:
    scene = Scene(
        node("n1", 9),
        TOP,
        [under_top("a", 1, weight=1), under_top("b", 2, weight=2)],
        [job("x", "a", pending=10), job("y", "b", pending=10)],
    )
    assert (scene.fair("a"), scene.fair("b")) == (3, 6)


def test_departments_share_first() -> None:
    scene = Scene(
        node("n1", 8),
        [queue("d1", 6), queue("d2", 2)],
        [queue("a", 0, parent="d1"), queue("b", 0, parent="d2"), queue("c", 0, parent="d2")],
        [job("x", "a", pending=10), job("y", "b", pending=10), job("z", "c", pending=10)],
    )
    assert [scene.fair(name) for name in ("d1", "d2", "a", "b", "c")] == [6, 2, 6, 1, 1]


def test_without_full_hierarchy_departments_are_not_there() -> None:
    scene = Scene(
        node("n1", 8),
        [queue("d1", 6), queue("d2", 2)],
        [queue("a", 0, parent="d1"), queue("b", 0, parent="d2"), queue("c", 0, parent="gone")],
        [job("x", "a", pending=10), job("y", "b", pending=10), job("z", "d1", pending=3)],
        options={"fullHierarchyFairness": False},
    )
    assert (scene.fair("a"), scene.fair("b"), scene.fair("c")) == (4, 4, 0)
    assert scene.queue("d1") not in scene.session.queue_tree
    assert scene.session.queue_tree.serves(scene.queue("c"))


def test_the_older_queue_gets_the_odd_device() -> None:
    old, young = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    scene = Scene(
        node("n1", 3),
        TOP,
        [under_top("a", created=young), under_top("b", created=old)],
        [job("x", "a", pending=10), job("y", "b", pending=10)],
    )
    assert (scene.fair("a"), scene.fair("b")) == (1, 2)


def test_queue_usage_moves_shares_by_k() -> None:
    parts: list[Any] = [
        node("n1", 16),
        TOP,
        [under_top("a"), under_top("b")],
        [job("x", "a", pending=20), job("y", "b", pending=20)],
    ]
    used = {"queueUsage": {"a": {"gpu": 0.4}}}
    assert Scene(*parts, options=used).fair("a") == 6
    assert Scene(*parts, options=used, arguments={"kValue": "0"}).fair("a") == 8
    assert Scene(*parts, options=used, arguments={"kValue": "-3"}).fair("a") == 8
    assert Scene(*parts, options={"queueUsage": {"a": {"cpu": 0.4}}}).fair("a") == 8


def test_a_queue_may_have_its_fair_share_or_its_quota_within_its_limit() -> None:
    scene = Scene(
        node("n1", 8),
        TOP,
        [under_top("a", 5), under_top("b"), under_top("c", UNLIMITED, limit=6), under_top("d", 4, limit=2)],
        [job("y", "b", pending=10)],
    )
    may_have = {name: scene.account(name).allocatable[2] for name in "abcd"}
    assert may_have == {"a": 500, "b": 800, "c": 600, "d": 200}


# -- following the session ------------------------------------------------------------------------------------------


def test_placements_and_evictions_are_followed_all_the_way_up_and_undone_exactly() -> None:
    scene = Scene(node(), TOP, under_top("a"), job("j", "a", running=2, pending=2, firm=True))
    before = {
        name: (list(scene.account(name).allocated), list(scene.account(name).firm)) for name in ("a", "top")
    }
    transaction = Transaction(scene.session)
    transaction.allocate(scene.rows("j-2"), np.array([0], dtype=np.intp))
    transaction.pipeline(scene.rows("j-3"), np.array([0], dtype=np.intp))
    assert scene.allocated("a") == scene.allocated("top") == 4
    transaction.evict(scene.rows("j-0"), "")
    assert scene.allocated("top") == 3
    assert scene.account("a").firm[2] == 300
    transaction.discard()
    assert {name: (scene.account(name).allocated, scene.account(name).firm) for name in before} == before


def test_gpu_memory_is_taken_and_given_back_by_node() -> None:
    wants = job("j", "a", pending=1, gpus=0, annotations={"gpu-memory": "8000"})
    scene = Scene(node("n1", labels={"nvidia.com/gpu.memory": "80000"}), TOP, under_top("a"), wants)
    transaction = Transaction(scene.session)
    transaction.allocate(scene.rows("j-0"), np.array([0], dtype=np.intp), [("g",)])
    assert scene.allocated("a") == 0.1
    transaction.discard()
    assert scene.allocated("a") == 0


def test_tasks_of_no_queue_change_nothing() -> None:
    scene = Scene(node(), TOP, under_top("a"), job("j", "nowhere", running=1), task("alone", {}, on="n1"))
    scene.evict("j-0", "alone")
    assert scene.allocated("top") == 0


def test_the_report_of_a_queue_is_in_the_session_s_dimensions() -> None:
    scene = Scene(node(), TOP, under_top("a", limit=4), job("j", "a", running=1, pending=1))
    told = scene.plugin.queue_report(scene.queue("a"))
    describe = scene.session.resources.describe
    assert describe(told["deserved"]) == {"cpu": 2000, "memory": 2 * GIGABYTE, "nvidia.com/gpu": 2}  # type: ignore[arg-type]
    assert describe(told["capability"]) == {"nvidia.com/gpu": 4}  # type: ignore[arg-type]
    assert told["share"] == 0.5
    assert scene.plugin.queue_report(-1) == {}


# -- arguments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spelling",
    ["relcaimerSaturationMultiplier", "reclaimerSaturationMultiplier", "reclaimerUtilizationMultiplier"],
)
def test_the_multiplier_has_three_spellings(spelling: str) -> None:
    scene = Scene(node(), TOP, arguments={spelling: "1.5"})
    assert scene.plugin._multiplier == 1.5
    assert not scene.session.warnings


def test_a_multiplier_below_one_is_one_and_reported() -> None:
    scene = Scene(node(), TOP, arguments={"reclaimerSaturationMultiplier": "0.5"})
    assert scene.plugin._multiplier == 1
    assert "multiplier" in scene.session.warnings[0]


def test_what_is_not_understood_is_reported() -> None:
    scene = Scene(node(), TOP, arguments={"kvalue": "2", "kValue": "much"})
    assert any("kvalue" in one and "kValue" in one for one in scene.session.warnings)
    assert any("much" in one for one in scene.session.warnings)


def test_a_session_without_queues_nodes_or_tasks_opens() -> None:
    assert Scene().plugin.queue_report(0) == {}
    assert Scene(TOP).fair("top") == 0


# -- many at once, and one after the other --------------------------------------------------------------------------

SHARED: tuple[dict[str, str], ...] = (
    {"gpu-fraction": "0.3"},
    {"gpu-memory": "8000"},
    {"gpu-memory": "500", "gpu-fraction-num-devices": "2"},
    {},
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.integers(0, 3),
            st.integers(0, 2),
            st.sampled_from(SHARED),
            st.booleans(),
        ),
        min_size=1,
        max_size=6,
    ),
    st.data(),
)
def test_books_that_follow_the_session_are_those_of_a_fresh_start(
    jobs: list[tuple[str, int, int, dict[str, str], bool]], data: st.DataObject
) -> None:
    machine = node("n1", 64, labels={"nvidia.com/gpu.memory": "80000"})
    parts = [
        job(
            f"j{n}",
            home,
            running=running,
            pending=pending,
            gpus=0 if notes else 1,
            annotations=notes,
            firm=firm,
        )
        for n, (home, running, pending, notes, firm) in enumerate(jobs)
    ]
    scene = Scene(
        machine,
        TOP,
        [under_top("a"), queue("m", parent="top"), queue("b", parent="m")],
        under_top("c"),
        parts,
    )
    tasks = scene.session.tasks
    transaction = Transaction(scene.session)
    for row in range(len(tasks)):
        if not data.draw(st.booleans()):
            continue
        rows = np.array([row], dtype=np.int64)
        if tasks.status[row] == Status.RUNNING:
            transaction.evict(rows, "")
        elif tasks.status[row] == Status.PENDING:
            class_ = scene.session.classes[tasks.class_of[row]]
            devices = class_.share.devices if class_.share is not None else 0
            groups = [tuple(f"{row}-{number}" for number in range(devices))] if devices else None
            transaction.allocate(rows, np.zeros(1, dtype=np.intp), groups)
    fresh = Proportion(scene.session, {})
    for name in ("top", "a", "m", "b", "c"):
        followed, opened = scene.account(name), fresh._books.accounts[scene.queue(name)]
        assert followed.allocated == pytest.approx(opened.allocated)
        assert followed.firm == pytest.approx(opened.firm)


def test_what_tasks_count_with_is_the_same_together_and_one_by_one() -> None:
    machine = node("n1", 64, labels={"nvidia.com/gpu.memory": "80000"})
    parts = [
        job(f"j{n}", "a", running=2, pending=1, gpus=0 if notes else 2, annotations=notes)
        for n, notes in enumerate(SHARED)
    ]
    session = Scene(machine, TOP, under_top("a"), parts).session
    together = session.gpus.of_tasks(np.arange(len(session.tasks)))
    for row, node_row in enumerate(session.tasks.node.tolist()):
        class_ = session.classes[session.tasks.class_of[row]]
        alone = session.gpus.accepted(class_, node_row) if node_row >= 0 else session.gpus.asked(class_)
        assert together[:, row].tolist() == alone.tolist()


def test_jobs_are_preemptible_together_as_they_are_one_by_one() -> None:
    session = Scene(
        node(), TOP, under_top("a"), job("j", "a", running=1), job("f", "a", running=1, firm=True)
    ).session
    rows = session.jobs.rows
    assert session.are_preemptible(rows).tolist() == [session.preemptible(row) for row in rows.tolist()]
    assert sorted(session.are_preemptible(rows).tolist()) == [False, True]


def test_units_are_whole_numbers_however_large() -> None:
    exact = [[n, 10**12 + n, n] for n in range(1, 1000)]
    told = np.array([[cpu, memory, gpu / 100] for cpu, memory, gpu in exact], dtype=np.float64).T
    assert in_units(told).T.tolist() == exact
