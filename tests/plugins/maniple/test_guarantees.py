"""fairness: what is guaranteed to a queue stays its own, and closed queues take no new jobs."""

import pytest

from tests.plugins.maniple.scenes import (
    GPU,
    bound,
    cycle,
    evicted,
    fair,
    gang,
    kai_queue,
    names,
    node,
    volcano_queue,
    why,
)

# -- guarantees -----------------------------------------------------------------------------------------------------

KEPT = volcano_queue("kept", guarantee={"resource": {GPU: "4"}})


def test_no_queue_uses_what_is_guaranteed_to_others() -> None:
    plan = cycle(node("n1"), KEPT, kai_queue("k"), gang("a", "k", 6, 1, kai=True))
    assert len(bound(plan)) == 4
    assert "queue k has a limit of 4 of nvidia.com/gpu" in why(plan, "a")


def test_nor_do_several_queues_together() -> None:
    plan = cycle(
        node("n1"),
        KEPT,
        kai_queue("k"),
        volcano_queue("v"),
        gang("a", "k", 3, kai=True),
        gang("b", "v", 3),
    )
    assert len(bound(plan)) == 3
    told = why(plan, "a") + why(plan, "b")
    assert "of 8, 3 is allocated and 4 is guaranteed to others" in told


def test_a_guarantee_is_there_for_whom_it_is_given_to() -> None:
    plan = cycle(node("n1"), KEPT, kai_queue("k"), gang("a", "k", 4, kai=True, on="n1"), gang("b", "kept", 4))
    assert names("b", 4) <= bound(plan).keys()


def test_where_guarantees_are_used_it_is_the_nodes_that_have_nothing_left() -> None:
    plan = cycle(
        node("n1"),
        KEPT,
        kai_queue("k"),
        volcano_queue("v"),
        gang("old", "kept", 4, on="n1"),
        gang("more", "v", 4, on="n1", firm=True),
        gang("a", "k", 1, kai=True),
    )
    assert "Insufficient nvidia.com/gpu" in why(plan, "a")
    assert "guaranteed" not in why(plan, "a")


def test_a_guarantee_does_not_limit_other_resources() -> None:
    plan = cycle(node("n1"), KEPT, kai_queue("k"), gang("a", "k", 6, kai=True, gpus=0))
    assert len(bound(plan)) == 6


def test_what_is_guaranteed_below_a_queue_is_guaranteed_to_it() -> None:
    plan = cycle(
        node("n1"),
        volcano_queue("top"),
        volcano_queue("kept", parent="top", guarantee={"resource": {GPU: "5"}}),
        volcano_queue("other"),
        gang("a", "other", 6, 1),
    )
    assert len(bound(plan)) == 3


def test_who_uses_its_own_guarantee_is_not_held_to_that_of_others() -> None:
    """An outsider got at the guarantees before they were given; that is not the fault of those who have them."""
    plan = cycle(
        node("n1"),
        volcano_queue("x", guarantee={"resource": {GPU: "4"}}),
        volcano_queue("y", guarantee={"resource": {GPU: "4"}}),
        volcano_queue("z"),
        gang("old", "z", 6, on="n1"),
        gang("a", "x", 2),
    )
    assert names("a", 2) <= bound(plan).keys()


def test_what_is_guaranteed_is_not_divided_among_others() -> None:
    parts = [
        node("n1"),
        KEPT,
        kai_queue("k"),
        volcano_queue("v"),
        gang("a", "k", 8, kai=True),
        gang("b", "v", 8),
    ]
    assert fair("k", *parts)[GPU] == fair("v", *parts)[GPU] == 2


def test_reclaim_never_takes_a_queue_below_its_guarantee() -> None:
    """It has all eight, and its share is four; but with a gang of four it would lose some of its guaranteed
    five."""
    parts = [
        node("n1"),
        kai_queue("k", 3.0),
        gang("big", "kept", 4, on="n1"),
        gang("more", "kept", 4, on="n1", created="2025-01-01T00:00:00Z"),
        gang("a", "k", 3, kai=True),
    ]
    assert evicted(cycle(*parts, volcano_queue("kept"))) == names("big", 4)
    assert evicted(cycle(*parts, volcano_queue("kept", guarantee={"resource": {GPU: "4"}}))) == names(
        "big", 4
    )
    assert not evicted(cycle(*parts, volcano_queue("kept", guarantee={"resource": {GPU: "5"}})))


# -- closed queues --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["Closed", "Closing"])
def test_a_closed_queue_takes_no_new_jobs(state: str) -> None:
    plan = cycle(node("n1"), volcano_queue("q", state=state), gang("a", "q", 2))
    assert not bound(plan)
    assert "queue q is closed and accepts no new jobs" in why(plan, "a")


def test_neither_do_queues_below_it() -> None:
    plan = cycle(
        node("n1"),
        volcano_queue("top", state="Closed"),
        kai_queue("q", parent="top"),
        gang("a", "q", 2, kai=True),
    )
    assert "queue top is closed" in why(plan, "a")


def test_jobs_that_run_in_a_closed_queue_go_on() -> None:
    plan = cycle(node("n1"), volcano_queue("q", state="Closed"), gang("a", "q", 3, 1, on=["n1"]))
    assert bound(plan).keys() == {"a-1", "a-2"}


def test_nothing_is_evicted_for_a_new_job_of_a_closed_queue() -> None:
    plan = cycle(
        node("n1"),
        volcano_queue("q", state="Closed", deserved={GPU: "8"}),
        volcano_queue("v"),
        gang("b", "v", 8, 1, on="n1"),
        gang("a", "q", 2),
    )
    assert not evicted(plan)
