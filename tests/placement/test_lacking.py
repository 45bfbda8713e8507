"""What nodes lack for a task: every resource that is short, in the words of the profile."""

from typing import Any

import numpy as np

from maniple.framework.transactions.transaction import Transaction
from maniple.placement.engine import Placement
from maniple.placement.lacking import Lacking
from tests.kai_support import gpu_node, group, open_session, pod, queue

SLICE = "nvidia.com/mig-1g.5gb"


def opened(*objects: Any) -> Any:
    return open_session(queue("default"), group("g"), *objects)


def verdicts(session: Any, name: str) -> dict[str, str]:
    row = session.cluster.tasks.index_of(f"default/{name}")
    numbers = Lacking(
        session, session.classes[session.tasks.class_of[row]], session.nodes.future_idle()
    ).verdicts()
    texts = [session.reasons.reasons[number].text for number in numbers.tolist()]
    return {name: text for name, text in zip(session.nodes.facts.names, texts, strict=True) if text != "fits"}


def test_everything_that_a_node_lacks_is_named_gpus_first() -> None:
    asks = {"cpu": "999", "memory": "1Ti", "nvidia.com/gpu": "5", "example.com/link": "1"}
    session = opened(gpu_node("a"), gpu_node("b", 8), pod("p", asks, group="g"))
    rest = "CPU cores, memory, example.com/link"
    assert verdicts(session, "p") == {
        "a": f"node(s) didn't have enough resources: GPUs, {rest}",
        "b": f"node(s) didn't have enough resources: {rest}",
    }


def test_slices_are_named_by_their_profile() -> None:
    session = opened(gpu_node("a", allocatable={SLICE: "1"}), pod("p", {SLICE: "2", "cpu": "1"}, group="g"))
    assert verdicts(session, "p") == {"a": f"node(s) didn't have enough of mig profile: {SLICE}"}


def test_shared_devices_with_enough_left_are_not_lacking() -> None:
    held = pod("held", {"cpu": "1"}, group="g", on="a", fraction="0.6", groups=("x",))
    session = opened(
        gpu_node("a", 1),
        held,
        pod("fits", {"cpu": "1"}, group="g", fraction="0.4"),
        pod("not", {"cpu": "1"}, group="g", fraction="0.5"),
        pod("two", {"cpu": "1"}, group="g", fraction="0.4", devices="2"),
    )
    assert verdicts(session, "fits") == {}
    assert verdicts(session, "not") == {"a": "node(s) didn't have enough resources: GPUs"}
    assert verdicts(session, "two") == {"a": "node(s) didn't have enough resources: GPUs"}


def test_devices_that_are_too_small_are_told_apart_from_those_that_are_full() -> None:
    session = opened(
        gpu_node("full", 1, memory=4000),
        gpu_node("small", 1),
        pod("held", {"cpu": "1", "nvidia.com/gpu": "1"}, group="g", on="full"),
        pod("p", {"cpu": "1"}, group="g", memory="2000"),
    )
    assert verdicts(session, "p") == {
        "full": "node(s) didn't have enough resources: GPUs",
        "small": "node(s) didn't have enough resources: GPU memory",
    }


def test_a_node_without_devices_lacks_devices_and_not_their_memory() -> None:
    nodes = [gpu_node("none", 0, memory=None), gpu_node("some", 1, memory=4000)]
    session = opened(*nodes, pod("p", {"cpu": "1"}, group="g", memory="2000"))
    assert verdicts(session, "p") == {"none": "node(s) didn't have enough resources: GPUs"}


def test_a_node_that_owes_gpus_lacks_them_for_everybody() -> None:
    held = pod("held", {"nvidia.com/gpu": "2"}, group="g", on="a")
    session = opened(gpu_node("a", 1), gpu_node("b", 1), held, pod("p", {"cpu": "1"}, group="g"))
    assert verdicts(session, "p") == {"a": "node(s) didn't have enough resources: GPUs"}


def test_what_is_being_released_counts_and_what_is_promised_does_not() -> None:
    leaving = pod("old", {"nvidia.com/gpu": "4"}, group="g", on="a", deleted="2026-01-01T00:00:00Z")
    waiting = [pod(name, {"nvidia.com/gpu": "4"}, group="g") for name in ("p", "q")]
    session = opened(gpu_node("a"), leaving, *waiting)
    assert verdicts(session, "q") == {}
    first = np.array([session.cluster.tasks.index_of("default/p")])
    Transaction(session).pipeline(first, np.array([0], dtype=np.intp))
    assert verdicts(session, "q") == {"a": "node(s) didn't have enough resources: GPUs"}


def test_node_by_node_only_the_nodes_that_are_asked_about_are_told() -> None:
    session = opened(gpu_node("a", 1), gpu_node("b", 1), pod("p", {"nvidia.com/gpu": "2"}, group="g"))
    class_ = session.classes[session.tasks.class_of[session.cluster.tasks.index_of("default/p")]]
    told = Placement(session).judging.by_node(class_, np.array([False, True]))
    assert told == {
        "b": "Node didn't have enough resources: GPUs, requested: 2, used: 0, capacity: 1",
    }


def test_many_resources_that_are_short_are_all_named() -> None:
    links = [f"example.com/link-{number:02}" for number in range(14)]
    asks = {"cpu": "1", **dict.fromkeys(links, "2")}
    some = dict.fromkeys(links[:12], "4")
    session = opened(gpu_node("a"), gpu_node("b", allocatable=some), pod("p", asks, group="g"))
    assert verdicts(session, "p") == {
        "a": f"node(s) didn't have enough resources: {', '.join(links)}",
        "b": f"node(s) didn't have enough resources: {', '.join(links[12:])}",
    }
