"""GPUs of different makers: a pod fits where the resource that it names is, and queues count all of them as GPUs."""

from typing import Any

import pytest

from maniple.objects.meta import Object
from maniple.planner import Plan, Planner
from tests.plugins.maniple.scenes import NOW, bound, cycle, flat, gang, kai_queue, node, volcano_queue, why

AMD = "amd.com/gpu"
SHARED = {"nvidia.com/gpu.memory": "1000"}
Raw = dict[str, Any]


def amd_node(name: str, gpus: int = 4) -> Object:
    return node(name, 0, more={AMD: str(gpus)})


def job(name: str, asked: Raw, count: int = 1, **more: Any) -> list[Object]:
    return gang(name, more.pop("queue", "q"), count, kai=True, gpus=0, asked=asked, **more)


def kai(*parts: Any, strict: bool = False) -> Plan:
    options = {"debug": True, "schedulerName": "maniple"}
    planner = Planner(conf={"compat": "strict"} if strict else None, profile="kai", options=options)
    return planner.cycle(planner.build(flat([kai_queue("q", -1), *parts])), now=NOW)


def own(*parts: Any) -> Plan:
    return cycle(kai_queue("q", -1), *parts)


BOTH = pytest.mark.parametrize("plan", [kai, own])


@BOTH
def test_a_pod_goes_where_the_gpus_that_it_names_are(plan: Any) -> None:
    nodes = [node("a-nvidia", 4), amd_node("b-amd")]
    amd, nvidia = job("amd", {AMD: "1"}, 2), job("nvidia", {"nvidia.com/gpu": "1"}, 2)
    placed = bound(plan(*nodes, amd, nvidia))
    assert placed == {
        f"{name}-{n}": where for name, where in (("amd", "b-amd"), ("nvidia", "a-nvidia")) for n in (0, 1)
    }


@BOTH
@pytest.mark.parametrize(("there", "asked"), [("nvidia.com/gpu", AMD), (AMD, "nvidia.com/gpu")])
def test_another_maker_s_gpus_are_no_substitute(plan: Any, there: str, asked: str) -> None:
    outcome = plan(node("n", 0, more={there: "4"}), job("j", {asked: "1"}))
    assert bound(outcome) == {}
    assert asked in why(outcome, "j") or "GPU" in why(outcome, "j")


@BOTH
def test_on_a_node_with_both_each_is_counted_by_itself(plan: Any) -> None:
    machine = node("n", 2, more={AMD: "2"})
    outcome = plan(
        machine, job("amd", {AMD: "1"}, 2), job("late", {AMD: "1"}), job("nvidia", {"nvidia.com/gpu": "2"})
    )
    assert set(bound(outcome)) == {"amd-0", "amd-1", "nvidia-0"}


@BOTH
def test_parts_are_of_devices_that_can_be_shared(plan: Any) -> None:
    half = job("half", {}, notes={"gpu-fraction": "0.5"})
    assert bound(plan(amd_node("n"), half)) == {}
    assert bound(plan(amd_node("a"), node("b", 1, labels=SHARED), half)) == {"half-0": "b"}


@BOTH
def test_a_limit_of_gpus_counts_those_of_every_maker(plan: Any) -> None:
    nodes = [node("a", 4), amd_node("b")]
    waits = job("waits", {"nvidia.com/gpu": "1"}, queue="limited", created="2026-01-01T01:00:00Z")
    first = job("first", {AMD: "2"}, queue="limited")
    outcome = plan(*nodes, kai_queue("limited", -1, limit=2), first, waits)
    assert set(bound(outcome)) == {"first-0"}
    assert "limit" in why(outcome, "waits") or "may have" in why(outcome, "waits")


@BOTH
def test_room_is_made_on_a_node_of_the_right_maker(plan: Any) -> None:
    nodes = [node("a", 1), amd_node("b", 1)]
    runs = [
        job("n-runs", {"nvidia.com/gpu": "1"}, on="a", queue="rich"),
        job("a-runs", {AMD: "1"}, on="b", queue="rich"),
    ]
    queues = [kai_queue("rich", 0), kai_queue("poor", 2)]
    outcome = plan(*nodes, *queues, runs, job("waits", {AMD: "1"}, queue="poor"))
    assert list(outcome.evictions) == ["default/a-runs-0"]


@BOTH
def test_gpus_of_every_maker_are_packed(plan: Any) -> None:
    nodes = [amd_node("a"), amd_node("b"), amd_node("c")]
    runs = job("runs", {AMD: "1"}, on="b")
    assert bound(plan(*nodes, runs, job("next", {AMD: "1"}))) == {"next-0": "b"}


def test_a_pod_without_gpus_keeps_off_nodes_of_any_maker() -> None:
    nodes = [amd_node("a"), node("b", 0)]
    assert bound(kai(*nodes, job("plain", {}))) == {"plain-0": "b"}


def test_strictly_every_maker_s_gpus_are_one_resource() -> None:
    assert bound(kai(node("n", 1), job("j", {AMD: "1"}), strict=True)) == {"j-0": "n"}


@pytest.mark.parametrize(
    ("capability", "amd", "nvidia"),
    [({AMD: "1"}, 1, 4), ({"nvidia.com/gpu": "2", AMD: "1"}, 1, 2), ({}, 4, 4)],
)
def test_a_volcano_queue_limits_other_makers_by_name(capability: Raw, amd: int, nvidia: int) -> None:
    jobs = [
        gang(f"{kind}{number}", "v", 1, gpus=0, asked={name: "1"})
        for kind, name in (("a", AMD), ("n", "nvidia.com/gpu"))
        for number in range(4)
    ]
    placed = bound(cycle(node("n", 4), amd_node("m"), volcano_queue("v", capability=capability), jobs))
    found = {kind: sum(name.startswith(kind) for name in placed) for kind in ("a", "n")}
    assert found == {"a": amd, "n": nvidia}
