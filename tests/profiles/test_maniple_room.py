"""Who makes room for whom in Maniple's own profile: reclaim, preempt, consolidation, and who is left alone."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.plugins.maniple.scenes import (
    GPU,
    bound,
    claims,
    cycle,
    evicted,
    gang,
    kai_queue,
    names,
    node,
    volcano_queue,
)
from tests.support import hyper_node, make, priority_class

HIGH = priority_class("high", 90)


def budget(allowed: int, **labels: str) -> Any:
    return make(
        "policy/v1",
        "PodDisruptionBudget",
        "budget",
        namespace="default",
        spec={"selector": {"matchLabels": labels}},
        status={"disruptionsAllowed": allowed},
    )


# -- reclaim --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kai", [False, True])
def test_a_queue_takes_back_its_share_from_queues_of_the_other_system(kai: bool) -> None:
    queues = [kai_queue("k"), volcano_queue("v")]
    mine, theirs = ("k", "v") if kai else ("v", "k")
    plan = cycle(
        node("n1"), queues, gang("old", theirs, 8, 1, kai=not kai, on="n1"), gang("new", mine, 4, kai=kai)
    )
    assert len(evicted(plan)) == 4
    assert claims(plan).keys() == names("new", 4)


def test_a_queue_takes_back_no_more_than_its_share() -> None:
    plan = cycle(
        node("n1"),
        volcano_queue("v"),
        volcano_queue("w"),
        gang("old", "w", 8, 1, on="n1"),
        gang("new", "v", 5),
    )
    assert not evicted(plan)


def test_a_surplus_of_an_unrequested_resource_makes_no_victim() -> None:
    """The other queue has more than its share of cpu, and of GPUs no more than its quota."""

    def victims(quota: str) -> set[str]:
        return evicted(
            cycle(
                node("n1", 6),
                volcano_queue("v", deserved={GPU: "6"}),
                volcano_queue("w", deserved={GPU: quota}),
                gang("cpus", "w", 80, 1, gpus=0, on="n1", each=[{"cpu": "1"}] * 80),
                gang("gpus", "w", 6, 1, on="n1", each=[{GPU: "1"}] * 6),
                gang("wants", "v", 1, gpus=0, each=[{"cpu": "90"}], created="2026-02-01T00:00:00Z"),
                gang("new", "v", 2, each=[{GPU: "1"}] * 2),
                actions=["reclaim"],
            )
        )

    assert {"gpus-4", "gpus-5"} <= victims("4")
    assert not any(name.startswith("gpus") for name in victims("6"))


def test_a_queue_with_more_than_its_share_of_anything_takes_nothing_back() -> None:
    def victims(cpus: int) -> set[str]:
        return evicted(
            cycle(
                node("n1", 8),
                volcano_queue("v"),
                volcano_queue("w"),
                gang("cpus", "v", cpus, 1, gpus=0, on="n1", each=[{"cpu": "1"}] * cpus),
                gang("gpus", "w", 8, 1, on="n1", each=[{GPU: "1"}] * 8),
                gang("waits", "w", 1, gpus=0, each=[{"cpu": "90"}], firm=True),
                gang("new", "v", 2, each=[{GPU: "1"}] * 2),
                actions=["reclaim"],
            )
        )

    assert victims(40) == {"gpus-6", "gpus-7"}
    assert not victims(60)


def test_within_its_quota_a_queue_takes_from_those_above_theirs_though_not_above_their_share() -> None:
    """Quotas are promises: those that add up to more than there is are all kept, and shares with them."""
    parts = [node("n1"), kai_queue("k", 8.0), gang("new", "k", 2, kai=True), gang("old", "w", 8, 1, on="n1")]
    assert len(evicted(cycle(*parts, volcano_queue("w", deserved={GPU: "6"})))) == 2
    assert not evicted(cycle(*parts, volcano_queue("w", deserved={GPU: "8"})))


def test_nothing_is_reclaimed_from_a_queue_that_is_not_reclaimable() -> None:
    parts = [node("n1"), volcano_queue("v"), gang("old", "w", 8, 1, on="n1"), gang("new", "v", 4)]
    assert evicted(cycle(*parts, volcano_queue("w")))
    assert not evicted(cycle(*parts, volcano_queue("w", reclaimable=False)))


def test_queues_below_one_that_gives_nothing_back_take_from_each_other() -> None:
    top = volcano_queue("top", reclaimable=False)
    below = [volcano_queue("v", parent="top"), volcano_queue("w", parent="top")]
    old, new = gang("old", "w", 8, 1, on="n1"), gang("new", "v", 4)
    assert len(evicted(cycle(node("n1"), top, below, old, new))) == 4
    outside = gang("new", "other", 4)
    assert not evicted(cycle(node("n1"), top, below, volcano_queue("other"), old, outside))


def test_a_job_that_finds_no_hypernode_says_nothing_about_one_that_needs_none() -> None:
    racks = [hyper_node(f"r{number}", 1, {"type": "Node", "selector": {"exactMatch": {"name": f"n{number}"}}}) for number in (1, 2)]  # fmt: skip
    near = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    old = gang("old", "w", 4, 1, on=["n1", "n1", "n2", "n2"])
    plan = cycle(
        node("n1", 2), node("n2", 2), *racks, volcano_queue("v", deserved={GPU: "4"}), volcano_queue("w"), old,
        gang("near", "v", 3, group=near), gang("plain", "v", 3, created="2026-02-01T00:00:00Z"),
    )  # fmt: skip
    assert claims(plan).keys() == names("plain", 3)


# -- preempt --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kai", [False, True])
def test_inside_a_queue_the_more_important_job_gets_room(kai: bool) -> None:
    plan = cycle(
        node("n1"),
        HIGH,
        volcano_queue("q"),
        gang("old", "q", 8, 1, on="n1", kai=not kai),
        gang("new", "q", 3, priority="high", kai=kai),
    )
    assert evicted(plan) == {"old-5", "old-6", "old-7"}
    assert claims(plan).keys() == names("new", 3)


def never(name: str, value: int) -> Any:
    return make("scheduling.k8s.io/v1", "PriorityClass", name, value=value, preemptionPolicy="Never")


@pytest.mark.parametrize("kai", [False, True])
@pytest.mark.parametrize("by_class", [False, True])
def test_a_job_that_must_not_preempt_evicts_no_pod(kai: bool, by_class: bool) -> None:
    """The policy of the job's priority class counts, and that of its pods."""
    queues = [volcano_queue("rich"), volcano_queue("q", deserved={GPU: "1"})]
    classes = [never("high", 90)] if by_class else [HIGH]
    policy: dict[str, Any] = {} if by_class else {"preemptionPolicy": "Never"}
    waits = gang("waits", "q", 1, kai=kai, priority="high", **policy)
    low = gang("low", "q", 1, on="n")
    assert not cycle(node("n", 1), volcano_queue("q"), classes, low, waits, actions=["preempt"]).evictions
    other = gang("low", "rich", 1, on="n")
    assert not cycle(node("n", 1), queues, classes, other, waits, actions=["reclaim"]).evictions
    assert cycle(
        node("n", 1), queues, HIGH, other, gang("waits", "q", 1, kai=kai), actions=["reclaim"]
    ).evictions
    wide = gang("wide", "q", 1, gpus=4, kai=kai, priority="high", **policy)
    assert not cycle(*spread_out(), classes, wide).evictions


def test_an_equal_job_gets_none() -> None:
    plan = cycle(node("n1"), volcano_queue("q"), gang("old", "q", 8, 1, on="n1"), gang("new", "q", 3))
    assert not evicted(plan)


# -- consolidation --------------------------------------------------------------------------------------------------


def spread_out(**more: Any) -> list[Any]:
    return [
        node("n1", 4),
        node("n2", 4),
        gang("x", "q", 1, gpus=2, on="n1", **more),
        gang("y", "q", 1, gpus=2, on="n2", **more),
        volcano_queue("q"),
    ]


def test_jobs_are_moved_together_when_that_makes_room_and_all_keep_running() -> None:
    plan = cycle(*spread_out(), gang("new", "q", 1, gpus=4))
    assert len(evicted(plan)) == 1
    assert claims(plan).keys() == {"new-0", *evicted(plan)}


def test_a_moved_pod_does_not_stay_on_the_node_that_it_leaves() -> None:
    """All nodes are half full; the one that is being left counts as empty when it is seen where GPUs are in use."""
    nodes = [node(f"n{number}") for number in range(5)]
    old = [gang(f"old{number}", "q", 4, on=f"n{number}") for number in range(5)]
    plan = cycle(*nodes, *old, volcano_queue("q"), gang("wide", "q", 2, gpus=8))
    assert len(evicted(plan)) == 8
    assert claims(plan).keys() == {"wide-0", "wide-1", *evicted(plan)}


def test_jobs_that_may_not_be_preempted_are_not_moved() -> None:
    assert not evicted(cycle(*spread_out(firm=True), gang("new", "q", 1, gpus=4)))


def test_a_job_is_not_moved_if_a_budget_protects_it() -> None:
    parts = [*spread_out(labels={"app": "db"}), gang("new", "q", 1, gpus=4)]
    assert evicted(cycle(*parts, budget(1, app="db")))
    assert not evicted(cycle(*parts, budget(0, app="db")))


# -- victims --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kai", [False, True])
def test_victims_are_what_a_job_can_spare_or_all_of_it(kai: bool) -> None:
    parts = [node("n1"), volcano_queue("v"), volcano_queue("w"), gang("new", "v", 3)]
    assert evicted(cycle(*parts, gang("old", "w", 8, 5, kai=kai, on="n1"))) == {"old-5", "old-6", "old-7"}
    assert evicted(cycle(*parts, gang("old", "w", 8, 8, kai=kai, on="n1"))) == names("old", 8)


def test_of_a_job_with_roles_each_role_keeps_its_minimum() -> None:
    roles = ["ps"] * 2 + ["worker"] * 6
    old = gang("old", "w", 8, 3, on="n1", roles=roles, group={"minTaskMember": {"ps": 2, "worker": 1}})
    plan = cycle(node("n1"), volcano_queue("v"), volcano_queue("w"), old, gang("new", "v", 4))
    assert evicted(plan) == {"old-4", "old-5", "old-6", "old-7"}


def test_of_a_job_with_sub_groups_each_keeps_its_minimum_or_all_goes() -> None:
    groups = {"subGroups": [{"name": "x", "minMember": 2}, {"name": "y", "minMember": 2}]}
    old = gang("old", "w", 8, kai=True, on="n1", roles=["x"] * 3 + ["y"] * 5, group=groups)
    parts = [node("n1"), volcano_queue("v"), volcano_queue("w"), old]
    assert evicted(cycle(*parts, gang("new", "v", 4))) == {"old-2", "old-5", "old-6", "old-7"}
    whole = {"subGroups": [{"name": "x", "minMember": 3}, {"name": "y", "minMember": 5}]}
    parts[-1] = gang("old", "w", 8, kai=True, on="n1", roles=["x"] * 3 + ["y"] * 5, group=whole)
    assert evicted(cycle(*parts, gang("new", "v", 4))) == names("old", 8)


def test_no_victim_could_have_stayed() -> None:
    """Whoever is spared of the victims, the job does not fit any more."""
    old = [gang(f"old{number}", "w", 1, gpus=1 + number % 3, on=f"n{number % 2}") for number in range(6)]
    parts = [node("n0", 6), node("n1", 6), volcano_queue("v"), volcano_queue("w"), *old]
    new = gang("new", "v", 2, gpus=3)
    plan = cycle(*parts, new)
    victims = evicted(plan)
    assert claims(plan).keys() == names("new", 2)
    for spared in victims:
        gone = victims - {spared}
        left = [one for one in old if one[1].metadata.name not in gone]
        again = cycle(*parts[:-6], *left, new, actions=["allocate"])
        assert not bound(again)


def test_what_is_placed_and_taken_away_in_one_cycle_was_never_placed() -> None:
    """It is neither bound nor evicted: nobody has started it yet."""
    parts: list[Any] = [HIGH, node("n0", 2), node("n1", 2), volcano_queue("q")]
    parts.append(gang("other", "q", 1, on="n0", firm=True))
    grows = gang("grows", "q", 2, 1, on=["n1"])
    plan = cycle(*parts, grows, gang("new", "q", 1, gpus=2, priority="high"), actions=["allocate", "preempt"])
    assert bound(plan) == {}
    assert evicted(plan) == {"grows-0"}
    assert claims(plan) == {"new-0": "n1", "grows-0": "n0"}
    assert plan.tasks["default/grows-1"].status == "Pending"


def test_a_gang_that_has_just_lost_its_place_does_not_come_back_in_part() -> None:
    """`lost` has one pod that waits; two are needed, and the two that ran have to go."""
    plan = cycle(
        node("n0", 4),
        node("n1", 4),
        kai_queue("rich", 8.0),
        kai_queue("poor"),
        gang("big", "rich", 2, 1, gpus=2, on="n0"),
        gang("lost", "poor", 3, 2, on=["n1", "n1"]),
        gang("wants", "rich", 3, 1, on=["n1", "n1"]),
    )
    assert evicted(plan) == {"lost-0", "lost-1"}
    assert not any(name.startswith("lost") for name in claims(plan))


def test_no_eviction_is_useless() -> None:
    plan = cycle(
        node("n1", 4), node("n2", 4), volcano_queue("v"), volcano_queue("w"),
        gang("old", "w", 8, 1, on=["n1"] * 4 + ["n2"] * 4), gang("new", "v", 1, gpus=5),
    )  # fmt: skip
    assert not evicted(plan)


@pytest.mark.parametrize("kai", [False, True])
def test_jobs_that_may_not_be_preempted_are_no_victims(kai: bool) -> None:
    parts = [node("n1"), volcano_queue("v"), volcano_queue("w"), gang("new", "v", 3)]
    assert not evicted(cycle(*parts, gang("old", "w", 8, 1, kai=kai, firm=True, on="n1")))


def test_a_volcano_job_may_be_preempted_unless_it_says_otherwise() -> None:
    """Whatever its priority."""
    top = priority_class("top", 1000)
    parts = [node("n1"), top, volcano_queue("v"), volcano_queue("w"), gang("new", "v", 3)]
    assert evicted(cycle(*parts, gang("old", "w", 8, 1, priority="top", on="n1")))


def test_a_kai_job_that_does_not_say_may_be_preempted_below_priority_100() -> None:
    classes = [priority_class("below", 99), priority_class("from", 100)]
    parts = [node("n1"), *classes, kai_queue("w"), volcano_queue("v"), gang("new", "v", 3)]
    for name, goes in (("below", True), ("from", False)):
        old = gang("old", "w", 8, 1, kai=True, preemptibility="", priority=name, on="n1")
        assert bool(evicted(cycle(*parts, old))) is goes


CRITICAL: list[Mapping[str, Any]] = [
    {"priorityClassName": "system-cluster-critical"},
    {"priorityClassName": "system-node-critical"},
    {"namespace": "kube-system"},
    {"notes": {"volcano.sh/preemptable": "false"}},
]


@pytest.mark.parametrize("marked", CRITICAL)
@pytest.mark.parametrize("action", ["reclaim", "preempt", "consolidation"])
def test_critical_pods_and_those_that_say_so_are_left_alone(marked: Mapping[str, Any], action: str) -> None:
    def victims(**more: Any) -> set[str]:
        if action == "consolidation":
            return evicted(cycle(*spread_out(**more), gang("new", "q", 1, gpus=4)))
        where = "w" if action == "reclaim" else "v"
        parts = [HIGH, node("n1"), volcano_queue("v"), volcano_queue("w")]
        return evicted(
            cycle(*parts, gang("old", where, 8, 1, on="n1", **more), gang("new", "v", 3, priority="high"))
        )

    assert victims()
    assert not victims(**marked)


@pytest.mark.parametrize("action", ["reclaim", "preempt"])
def test_budgets_are_respected(action: str) -> None:
    where = "w" if action == "reclaim" else "v"
    parts: list[Any] = [HIGH, node("n1"), volcano_queue("v"), volcano_queue("w")]
    parts += [gang("old", where, 8, 1, on="n1", labels={"app": "db"}), gang("new", "v", 3, priority="high")]
    assert len(evicted(cycle(*parts, budget(3, app="db")))) == 3
    assert not evicted(cycle(*parts, budget(2, app="db")))


def test_where_a_budget_forbids_one_victim_another_is_found() -> None:
    plan = cycle(
        node("n1"),
        volcano_queue("v"),
        volcano_queue("w"),
        gang("safe", "w", 4, 1, on="n1", labels={"app": "db"}),
        gang("other", "w", 4, 1, on="n1", created="2025-01-01T00:00:00Z"),
        gang("new", "v", 2),
        budget(0, app="db"),
    )
    assert len(evicted(plan)) == 2
    assert all(name.startswith("other") for name in evicted(plan))


def test_a_job_that_has_just_begun_is_left_alone_for_as_long_as_its_queue_says() -> None:
    started = {"kai.scheduler/last-start-timestamp": "2026-01-01T11:59:00Z"}
    old = gang("old", "w", 8, kai=True, on="n1", group_notes=started)
    parts = [node("n1"), volcano_queue("v"), old, gang("new", "v", 3)]
    assert evicted(cycle(*parts, kai_queue("w")))
    assert not evicted(cycle(*parts, kai_queue("w", reclaimMinRuntime="10m")))
    inside = [HIGH, node("n1"), old, gang("new", "w", 3, priority="high")]
    assert evicted(cycle(*inside, kai_queue("w")))
    assert not evicted(cycle(*inside, kai_queue("w", preemptMinRuntime="10m")))


def test_a_volcano_job_has_begun_when_its_group_says_that_it_was_scheduled() -> None:
    parts = [node("n1"), kai_queue("w", reclaimMinRuntime="10m"), volcano_queue("v"), gang("new", "v", 3)]
    for since, goes in (("2026-01-01T11:59:00Z", False), ("2026-01-01T11:00:00Z", True)):
        said = [{"type": "Scheduled", "status": "True", "lastTransitionTime": since}]
        old = gang("old", "w", 8, on="n1", status={"conditions": said})
        assert bool(evicted(cycle(*parts, old))) == goes


def test_a_gang_that_has_been_broken_for_too_long_loses_the_rest() -> None:
    broken = {"kai.scheduler/stale-podgroup-timestamp": "2026-01-01T11:00:00Z"}
    rest = gang("old", "q", 2, 4, kai=True, on="n1", group_notes=broken)
    plan = cycle(node("n1"), volcano_queue("q"), rest)
    assert evicted(plan) == names("old", 2)


def test_victims_do_not_evict_the_jobs_that_displaced_them() -> None:
    """The cycle after: the victims wait, the winners are there, and nobody is evicted again."""
    parts = [node("n1"), volcano_queue("v"), volcano_queue("w")]
    plan = cycle(*parts, gang("old", "w", 8, 1, on="n1"), gang("new", "v", 4))
    assert len(evicted(plan)) == 4
    after = cycle(*parts, gang("old", "w", 8, 1, on=["n1"] * 4), gang("new", "v", 4, on="n1"))
    assert not evicted(after)
