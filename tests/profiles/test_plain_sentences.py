"""Plans of the profiles volcano and kai add plain sentences, with amounts, to the words of the original."""

from maniple.planner import Plan
from tests.actions.volcano.scenes import cycle
from tests.actions.volcano.test_eviction import FIRST, ONE, waiting
from tests.support import group, node, pod, queue

PLUGINS = (*FIRST, {"name": "predicates"}, {"name": "proportion"})


def volcano(*objects: object, actions: str = "enqueue, allocate") -> Plan:
    return cycle(*objects, actions=actions, plugins=PLUGINS)  # type: ignore[arg-type]


def test_a_gang_that_finds_no_node_says_how_many_fit_and_what_is_left() -> None:
    plan = volcano(
        node("n1", {"cpu": "3", "memory": "9Gi"}), queue("default"), group("big", 2), *waiting("big", 2)
    )
    assert plan.jobs["default/big"].state == "placed"
    four = [pod(f"big-{n}", {"cpu": "4"}, group="big", uid=f"big-{n}") for n in range(2)]
    plan = volcano(
        node("n1", {"cpu": "3"}), node("n2", {"cpu": "2"}), queue("default"), group("big", 2), *four
    )
    assert plan.jobs["default/big"].reasons[-1] == (
        "gang needs 2 pods placed together; 0 can be placed now: no node fits a pod requesting cpu 4: "
        "Insufficient cpu (5 left together, at most 3 on one)"
    )
    assert "0/2 nodes are unavailable" in plan.jobs["default/big"].reasons[0]


def test_a_gang_of_which_some_fit_says_how_many() -> None:
    objects = [node("n1", {"cpu": "3"}), queue("default"), group("big", 4), *waiting("big", 4)]
    plan = cycle(*objects, actions="allocate", plugins=(*FIRST, {"name": "predicates"}))
    assert (
        plan.jobs["default/big"]
        .reasons[-1]
        .startswith("gang needs 4 pods placed together; 3 can be placed now")
    )


def test_a_queue_without_room_says_what_it_may_have_and_has() -> None:
    runs = [pod(f"old-{n}", ONE, group="old", uid=f"old-{n}", on="n1") for n in range(2)]
    plan = volcano(
        node("n1", {"cpu": "8", "memory": "9Gi"}),
        queue("default", capability={"cpu": "2", "memory": "9Gi"}),
        group("old", 2, phase="Running"),
        *runs,
        group("new", 1, phase="Inqueue"),
        *waiting("new", 1),
        actions="allocate",
    )
    assert plan.jobs["default/new"].reasons[-1] == (
        "queue default can have 2 of cpu at most: 2 is allocated and 1 more is requested"
    )


def test_a_missing_queue_needs_no_more_words() -> None:
    plan = volcano(node("n1"), group("lost", 1, queue="nowhere"), *waiting("lost", 1))
    assert plan.jobs["default/lost"].reasons == [
        "queue 'nowhere' does not exist; create it, or name another queue"
    ]
