"""fairness: shares of every resource, limits, quotas and turns, over queues of both systems in one tree."""

import pytest

from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.plugins.maniple.fairness import Fairness
from tests.plugins.maniple.scenes import (
    GPU,
    bound,
    cycle,
    fair,
    gang,
    kai_queue,
    node,
    opened,
    pod,
    volcano_queue,
    why,
)
from tests.support import make

NPU = "huawei.com/npu"


# -- shares ---------------------------------------------------------------------------------------------------------


def test_a_resource_that_kai_knows_nothing_of_is_divided_by_the_weight_for_gpus() -> None:
    parts = [
        node("n1", 0, more={NPU: "8"}),
        kai_queue("k", weight=3.0),
        volcano_queue("v"),
        gang("a", "k", 8, kai=True, gpus=0, asked={NPU: "1"}),
        gang("b", "v", 8, gpus=0, asked={NPU: "1"}),
    ]
    assert fair("k", *parts)[NPU] == 6
    assert fair("v", *parts)[NPU] == 2


def test_a_volcano_queue_has_its_weight_for_every_resource() -> None:
    parts = [
        node("n1", 8, more={NPU: "8"}),
        volcano_queue("v", weight=3),
        volcano_queue("w"),
        gang("a", "v", 8, asked={NPU: "1"}),
        gang("b", "w", 8, asked={NPU: "1"}),
    ]
    share = fair("v", *parts)
    assert (share[GPU], share[NPU]) == (6, 6)


def test_deserved_is_a_quota_and_comes_before_weights() -> None:
    parts = [
        node("n1"),
        volcano_queue("v", deserved={GPU: "6"}),
        kai_queue("k", weight=100.0),
        gang("a", "v", 8),
        gang("b", "k", 8, kai=True),
    ]
    assert fair("v", *parts)[GPU] == 6
    assert fair("k", *parts)[GPU] == 2


def test_queues_of_both_systems_that_state_no_priority_share_what_is_left() -> None:
    parts = [
        node("n1"),
        volcano_queue("v"),
        kai_queue("k"),
        gang("a", "v", 8),
        gang("b", "k", 8, kai=True),
    ]
    assert fair("v", *parts)[GPU] == fair("k", *parts)[GPU] == 4


def test_a_volcano_queue_of_higher_priority_is_served_first_with_what_quotas_leave() -> None:
    parts = [
        node("n1"),
        volcano_queue("v", priority=1),
        kai_queue("k"),
        gang("a", "v", 6),
        gang("b", "k", 8, kai=True),
    ]
    assert fair("v", *parts)[GPU] == 6
    assert fair("k", *parts)[GPU] == 2


def test_queues_of_one_system_can_be_below_queues_of_the_other() -> None:
    parts = [
        node("n1"),
        volcano_queue("top", weight=3),
        kai_queue("other"),
        kai_queue("leaf", parent="top"),
        gang("a", "leaf", 8, kai=True),
        gang("b", "other", 8, kai=True),
    ]
    assert fair("leaf", *parts)[GPU] == 6


def test_parts_of_gpus_count_as_parts() -> None:
    parts = [
        node("n1", labels={"nvidia.com/gpu.memory": "16000", "nvidia.com/gpu.count": "8"}),
        volcano_queue("v"),
        kai_queue("k"),
        gang("a", "v", 3, gpus=0, notes={"gpu-fraction": "0.5"}),
        gang("b", "k", 8, kai=True),
    ]
    assert fair("v", *parts)[GPU] == 1.5


def test_what_pods_of_other_schedulers_hold_is_not_divided() -> None:
    parts = [
        node("n1"),
        volcano_queue("v"),
        gang("a", "v", 8),
        pod("alien", {GPU: "3"}, on="n1", scheduler="default-scheduler"),
    ]
    assert fair("v", *parts)[GPU] == 5


def test_places_for_pods_are_not_divided() -> None:
    _, plugin = opened(node("n1"), volcano_queue("v"), gang("a", "v", 2))
    assert "pods" not in plugin._books.counting.names


def _allocated(session: Session, plugin: Fairness, row: int) -> dict[str, float]:
    return dict(session.resources.describe(plugin._books.vector(plugin._books.accounts[row].allocated)))


def test_books_follow_every_placement_and_come_back() -> None:
    session, plugin = opened(
        node("n1", more={NPU: "8"}), volcano_queue("v"), gang("a", "v", 2, on="n1", asked={NPU: "2"})
    )
    row = session.queues.index_of("v")
    assert row is not None
    before = _allocated(session, plugin, row)
    transaction = Transaction(session)
    transaction.evict(session.tasks_of(int(session.tasks.job[0])), "")
    assert NPU not in _allocated(session, plugin, row)
    transaction.discard()
    assert _allocated(session, plugin, row) == before
    assert before[NPU] == 4


# -- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kai", [False, True])
def test_a_queue_never_has_more_than_its_limit(kai: bool) -> None:
    queue = kai_queue("q", limit=3.0) if kai else volcano_queue("q", capability={GPU: "3"})
    plan = cycle(node("n1"), queue, gang("a", "q", 5, 1, kai=kai))
    assert len(bound(plan)) == 3
    assert "a limit of 3 of nvidia.com/gpu: 3 is allocated" in why(plan, "a")


def test_a_limit_holds_for_all_queues_below() -> None:
    plan = cycle(
        node("n1"),
        volcano_queue("top", capability={GPU: "3"}),
        kai_queue("x", parent="top"),
        volcano_queue("y", parent="top"),
        gang("a", "x", 4, 1, kai=True),
        gang("b", "y", 4, 1),
    )
    assert len(bound(plan)) == 3
    assert "queue top has a limit of 3" in why(plan, "a")


def test_a_capability_limits_resources_that_kai_knows_nothing_of() -> None:
    plan = cycle(
        node("n1", 0, more={NPU: "8"}),
        volcano_queue("v", capability={NPU: "2"}),
        gang("a", "v", 4, 1, gpus=0, asked={NPU: "1"}),
    )
    assert len(bound(plan)) == 2
    assert f"a limit of 2 of {NPU}" in why(plan, "a")


def test_amounts_in_messages_are_written_as_in_the_queue() -> None:
    plan = cycle(
        node("n1"),
        volcano_queue("v", capability={"cpu": "1500m", "memory": "1Ti"}),
        volcano_queue("w", capability={"memory": "512Mi"}),
        gang("a", "v", 2, gpus=0),
        gang("b", "w", 1, gpus=0),
    )
    assert "queue v has a limit of 1.5 of cpu: 0 is allocated and 2 more is requested" in why(plan, "a")
    assert "queue w has a limit of 512Mi of memory: 0 is allocated and 1Gi more is requested" in why(
        plan, "b"
    )


def test_a_limit_holds_for_amounts_of_gpu_memory_as_the_part_that_they_are_on_the_node() -> None:
    """8000 MiB are half of the one device, and a quarter of the other."""
    small = node("n1", 4, labels={"nvidia.com/gpu.memory": "16000", "nvidia.com/gpu.count": "4"})
    large = node("n2", 4, labels={"nvidia.com/gpu.memory": "32000", "nvidia.com/gpu.count": "4"})
    job = gang("a", "k", 1, kai=True, gpus=0, notes={"gpu-memory": "8000"})
    for limit, allowed in ((0.5, {"n1", "n2"}), (0.3, {"n2"}), (0.2, set())):
        for nodes in ([small], [large]):
            placed = set(bound(cycle(*nodes, kai_queue("k", limit=limit), job)).values())
            assert placed == allowed & {nodes[0].metadata.name}


def test_such_a_limit_decides_about_nodes() -> None:
    """Sharing the device that is in use already would be preferred, were it not for the limit."""
    small = node("n1", 4, labels={"nvidia.com/gpu.memory": "16000", "nvidia.com/gpu.count": "4"})
    large = node("n2", 4, labels={"nvidia.com/gpu.memory": "32000", "nvidia.com/gpu.count": "4"})
    held = {"runai-gpu-group": "device"}
    old = gang("old", "v", 1, gpus=0, on="n1", notes={"gpu-fraction": "0.5"}, labels=held)
    job = gang("a", "k", 1, kai=True, gpus=0, notes={"gpu-memory": "8000"})
    for limit, chosen in ((1.0, "n1"), (0.3, "n2")):
        plan = cycle(small, large, volcano_queue("v"), kai_queue("k", limit=limit), old, job)
        assert bound(plan) == {"a-0": chosen}


# -- jobs that may not be preempted ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kai", [False, True])
def test_jobs_that_may_not_be_preempted_stay_within_the_quota(kai: bool) -> None:
    queue = kai_queue("q", 2.0) if kai else volcano_queue("q", deserved={GPU: "2"})
    plan = cycle(node("n1"), queue, gang("a", "q", 4, 1, kai=kai, firm=True))
    assert len(bound(plan)) == 2
    assert "queue q has a quota of 2 of nvidia.com/gpu" in why(plan, "a")


def test_a_quota_binds_in_the_resources_that_it_names_only() -> None:
    plan = cycle(node("n1"), volcano_queue("q", deserved={"cpu": "2"}), gang("a", "q", 4, 1, firm=True))
    assert len(bound(plan)) == 2
    plan = cycle(node("n1"), volcano_queue("q"), gang("a", "q", 4, 1, firm=True))
    assert len(bound(plan)) == 4


# -- turns ----------------------------------------------------------------------------------------------------------


def test_queues_take_turns_by_what_they_have_of_their_share() -> None:
    plan = cycle(
        node("n1"),
        volcano_queue("v", weight=3),
        kai_queue("k"),
        *[gang(f"a{number}", "v", 1) for number in range(8)],
        *[gang(f"b{number}", "k", 1, kai=True) for number in range(8)],
    )
    assert sum(name.startswith("a") for name in bound(plan)) == 6


def test_a_queue_within_its_quota_comes_before_one_that_is_above_it() -> None:
    plan = cycle(
        node("n1", 2),
        volcano_queue("a-first", deserved={GPU: "1"}),
        kai_queue("k", 1.0),
        gang("more", "a-first", 2, 1, on=["n1"]),
        gang("b", "k", 1, kai=True),
    )
    assert bound(plan).keys() == {"b-0"}


def test_a_resource_without_quotas_does_not_take_a_queue_above_its_own() -> None:
    """Both ask for cpu, too, of which there are no quotas.

    The one without a quota of GPUs has the smaller part of its share.
    """
    tainted = make(
        "v1", "Node", "n2", spec={"taints": [{"key": "away", "effect": "NoSchedule"}]},
        status={"allocatable": {"cpu": "100", "memory": "100Gi", "pods": "110", GPU: "8"}},
    )  # fmt: skip
    plan = cycle(
        node("n1", 4),
        tainted,
        volcano_queue("v", deserved={GPU: "3"}),
        volcano_queue("w"),
        gang("old", "v", 2, on="n1"),
        gang("has", "w", 1, on="n1"),
        gang("a", "v", 1),
        gang("b", "w", 1),
        gang("more", "w", 8, created="2026-03-01T00:00:00Z"),
        actions=["allocate"],
    )
    assert bound(plan).keys() == {"a-0"}


def test_of_queues_above_their_quota_the_one_of_higher_priority_comes_first() -> None:
    parts = [node("n1", 1), kai_queue("a-first"), gang("a", "a-first", 1, kai=True), gang("b", "v", 1)]
    assert bound(cycle(*parts, volcano_queue("v"))).keys() == {"a-0"}
    assert bound(cycle(*parts, volcano_queue("v", priority=1))).keys() == {"b-0"}


def test_a_queue_with_more_than_its_share_of_all_that_it_has_comes_last() -> None:
    """Whatever its priority. The other is above its quota of memory, so that this does not decide."""

    def first(cpu: str) -> str:
        plan = cycle(
            node("n1", 0, more={"cpu": "200", "memory": "200Gi"}),
            volcano_queue("v", priority=1),
            volcano_queue("w", deserved={"cpu": cpu, "memory": "10Gi"}),
            gang("old", "v", 1, gpus=0, on="n1", each=[{"cpu": "120"}]),
            gang("has", "w", 1, gpus=0, on="n1", each=[{"cpu": "50"}]),
            gang("a", "v", 1, gpus=0, each=[{"cpu": "30"}]),
            gang("b", "w", 1, gpus=0, each=[{"cpu": "30", "memory": "20Gi"}]),
            gang("c", "w", 1, gpus=0, each=[{"cpu": "40"}], created="2026-03-01T00:00:00Z"),
            actions=["allocate"],
        )
        (name,) = bound(plan)
        return name

    assert first("100") == "b-0"  # leaves the other a share of 100
    assert first("50") == "a-0"  # of 150


def test_no_queue_gets_a_larger_share_than_it_requests() -> None:
    parts = [node("n1"), volcano_queue("v", deserved={GPU: "6"}), kai_queue("k")]
    parts += [*gang("a", "v", 2), *gang("b", "k", 8, kai=True)]
    assert fair("v", *parts)[GPU] == 2
    assert fair("k", *parts)[GPU] == 6


def test_jobs_are_in_queues_that_have_none_below_them() -> None:
    plan = cycle(node("n1"), volcano_queue("top"), kai_queue("q", parent="top"), gang("a", "top", 1))
    assert not bound(plan)
