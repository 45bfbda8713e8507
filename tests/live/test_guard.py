"""Faults elsewhere than in planning, what stands in for an object, and whom an exception is about.

`guard_scenarios.py` has what happens on a cluster when planning fails.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from maniple.cluster.cluster import Cluster
from maniple.live.set_aside import SetAside, stand_in
from maniple.live.suspects import suspects, trace
from maniple.live.volcano import Volcano
from maniple.objects.core import Pod
from maniple.objects.load import load
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoPodGroup
from maniple.planner import Planner
from tests.live.objects import NAMESPACE, gang, group, node, pod
from tests.live.test_scheduler import Stage, played

BAD = "example.com/bad"


# -- taking in and carrying out ----------------------------------------------------------------------------------------


def has_image(item: Object) -> bool:
    """Whether it is a pod, and no stand-in."""
    return isinstance(item, Pod) and any(container.image for container in item.spec.containers)


def refusing(monkeypatch: pytest.MonkeyPatch, refused: Callable[[Object], bool]) -> None:
    """Some objects cannot be taken in."""
    apply = Cluster.apply

    def failing(self: Cluster, item: Object) -> None:
        if refused(item):
            raise OverflowError("too large for a column")
        apply(self, item)

    monkeypatch.setattr(Cluster, "apply", failing)


def test_an_object_that_cannot_be_taken_in_costs_nobody_else_anything(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refusing(monkeypatch, lambda item: BAD in item.metadata.annotations)

    async def scene(stage: Stage) -> None:
        stage.create(node("n1", 8), group("bad", 1), pod("bad-0", "bad", **{BAD: "yes"}), *gang("good", 4))
        await asyncio.sleep(5)
        assert [name for name, bound in stage.nodes().items() if bound] == [f"good-{i}" for i in range(4)]
        said = stage.store.get(Pod, f"{NAMESPACE}/bad-0")["status"]["conditions"]
        assert [(one["reason"], "OverflowError" in one["message"]) for one in said] == [
            ("SchedulerError", True)
        ]
        assert stage.scheduler.guard.faults == {"taking in a change": 1}

        stage.store.patch(Pod, f"{NAMESPACE}/bad-0", {"metadata": {"annotations": {BAD: None}}})
        await asyncio.sleep(5)
        assert stage.nodes()["bad-0"] == "n1"

    played(scene, debug=False)
    assert "too large for a column" in caplog.text  # for operators, with the trace
    assert "Traceback" in caplog.text


def test_an_object_that_could_not_be_taken_in_is_gone_when_it_is_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusing(monkeypatch, lambda item: BAD in item.metadata.annotations)

    async def scene(stage: Stage) -> None:
        stage.create(node("n1", 8), group("bad", 1), pod("bad-0", "bad", **{BAD: "yes"}))
        await asyncio.sleep(5)
        assert len(stage.scheduler.cache.aside) == 1
        stage.store.remove(Pod, f"{NAMESPACE}/bad-0")
        await asyncio.sleep(5)
        assert len(stage.scheduler.cache.aside) == 0
        assert [*stage.scheduler.cache.of_kind(Pod)] == []
        assert stage.scheduler.guard.faults == {"taking in a change": 1}

    played(scene, debug=False)


def test_a_bound_pod_that_can_only_be_taken_in_without_its_annotations_keeps_its_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusing(monkeypatch, lambda item: BAD in item.metadata.annotations)

    async def scene(stage: Stage) -> None:
        stage.create(node("n1", 8), *gang("first", 1, cpu="6"))
        await asyncio.sleep(5)
        stage.store.patch(Pod, f"{NAMESPACE}/first-0", {"metadata": {"annotations": {BAD: "yes"}}})
        await asyncio.sleep(1)
        stage.create(*gang("small", 1, cpu="2"), *gang("large", 1, cpu="3"))
        await asyncio.sleep(5)
        assert stage.nodes() == {"first-0": "n1", "small-0": "n1", "large-0": ""}

    played(scene, debug=False)


def test_a_pod_that_cannot_be_taken_in_at_all_does_not_end_the_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refusing(monkeypatch, lambda item: item.metadata.name == "bad-0")

    async def scene(stage: Stage) -> None:
        bad = pod("bad-0", "bad")
        bad["spec"]["nodeName"] = "n1"
        stage.create(node("n1", 8), group("bad", 1), bad, *gang("good", 4))
        await asyncio.sleep(5)
        assert all(stage.nodes().values())

    played(scene, debug=False)
    assert "Pod team/bad-0: what it takes is not counted" in caplog.text


def test_what_was_set_aside_is_tried_again_with_another_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And an object that the new columns refuse costs only itself."""
    refused = {"bad-0"}
    refusing(
        monkeypatch, lambda item: item.metadata.name in refused and not item.metadata.annotations.get(BAD)
    )

    async def scene(stage: Stage) -> None:
        stage.create(node("n1", 8), *gang("bad", 1), *gang("good", 4))
        await asyncio.sleep(5)
        assert [name for name, bound in stage.nodes().items() if not bound] == ["bad-0"]
        refused.clear()
        refused.add("good-0")
        stage.scheduler.adopt(Planner(profile="volcano"))
        await asyncio.sleep(10)
        assert stage.nodes()["bad-0"] == "n1"
        assert [key for _, key in stage.scheduler.cache.aside] == [f"{NAMESPACE}/good-0"]
        stage.create(*gang("more", 3))
        await asyncio.sleep(5)
        assert all(stage.nodes().values())

    played(scene, debug=False)


def test_a_group_whose_status_cannot_be_worked_out_costs_nobody_else_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    messages = Volcano.differ_in_messages_only

    def failing(self: Volcano, before: Object, after: Object) -> bool:
        if BAD in before.metadata.annotations:
            raise LookupError("no such condition")
        return messages(self, before, after)

    monkeypatch.setattr(Volcano, "differ_in_messages_only", failing)

    async def scene(stage: Stage) -> None:
        bad, *members = gang("bad", 1)
        bad["metadata"]["annotations"] = {BAD: "yes"}
        stage.create(node("n1", 8), bad, *members, *gang("good", 4))
        await asyncio.sleep(10)
        assert stage.group_status("good")["phase"] == "Running"
        assert stage.scheduler.guard.faults["carrying out a plan"] == 1

    played(scene, debug=False)


def test_an_action_between_cycles_that_fails_is_told_and_nothing_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> bool:
        raise ZeroDivisionError

    async def scene(stage: Stage) -> None:
        stage.create(node("n1", 8))
        await asyncio.sleep(1)
        stage.scheduler.later(broken)
        await asyncio.sleep(1)
        stage.create(*gang("good", 4))
        await asyncio.sleep(5)
        assert all(stage.nodes().values())

    played(scene, debug=False)
    assert "ZeroDivisionError" in caplog.text


# -- stand-ins ---------------------------------------------------------------------------------------------------------


def whole(raw: dict[str, Any]) -> Any:
    return load({**raw, "metadata": {**raw["metadata"], "uid": "u1"}})


def test_a_bound_pod_still_takes_its_room_and_nothing_else() -> None:
    raw = pod("p", "g", cpu="3", **{"gpu-fraction": "0.5"})
    raw["spec"] |= {"nodeName": "n1", "nodeSelector": {"a": "b"}, "overhead": {"cpu": "1"}}
    kept, barely = stand_in(whole(raw), barely=False), stand_in(whole(raw), barely=True)
    assert isinstance(kept, Pod)
    assert isinstance(barely, Pod)
    for one in (kept, barely):
        assert one.spec.node_name == "n1"
        assert one.spec.containers[0].resources.requests == {"cpu": "3"}
        assert one.spec.overhead == {"cpu": "1"}
        assert one.spec.node_selector == {}
        assert one.metadata.uid == "u1"
    assert "gpu-fraction" in kept.metadata.annotations
    assert barely.metadata.annotations == {}


def test_a_pending_pod_keeps_its_place_in_its_gang_behind_a_gate() -> None:
    kept = stand_in(whole(pod("p", "g", cpu="9E", **{BAD: "x"})), barely=False)
    assert isinstance(kept, Pod)
    assert [*kept.metadata.annotations.values()] == ["g"]
    assert kept.spec.containers == ()
    assert kept.spec.scheduling_gates
    assert stand_in(whole(pod("p", "g")), barely=True) is None


def test_a_group_is_still_charged_to_its_queue() -> None:
    raw = group("g", 4, queue="research")
    raw["spec"] |= {"minTaskMember": {"worker": 4}, "networkTopology": {"mode": "hard"}}
    kept = stand_in(whole(raw), barely=False)
    assert isinstance(kept, VolcanoPodGroup)
    assert (kept.spec.queue, kept.spec.min_member) == ("research", 4)
    assert (kept.spec.min_task_member, kept.spec.network_topology) == ({}, None)
    assert stand_in(whole(raw), barely=True) is None


def test_a_trial_leaves_out_those_and_no_others() -> None:
    aside = SetAside()
    first, second = (Pod, "a/1"), (Pod, "a/2")
    assert aside.leave_out(frozenset({first})) == {first}
    assert aside.leave_out(frozenset({second})) == {first, second}
    assert aside.applied(first, whole(pod("p"))) is not None
    assert aside.applied(second, whole(pod("p"))) is None
    assert aside.leave_out(frozenset()) == {second}


# -- suspects ----------------------------------------------------------------------------------------------------------


def raised(action: Any) -> Exception:
    try:
        action()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_suspects_are_what_was_worked_on_innermost_first() -> None:
    cluster = Planner(profile="volcano").build([group("g", 1), pod("p", "g"), node("n1")])

    def about_a_job(job: int) -> None:
        about_an_object(whole(pod("inner")))

    def about_an_object(item: Object) -> None:
        raise KeyError(item)

    found = suspects(raised(lambda: about_a_job(0)), cluster)
    assert [one.metadata.name for one in found] == ["inner", "g"]


def test_objects_of_the_whole_cluster_are_no_suspects() -> None:
    cluster = Planner(profile="volcano").build([])

    def about_a_node(item: Object) -> None:
        raise KeyError(item)

    assert suspects(raised(lambda: about_a_node(whole(node("n1")))), cluster) == []


def test_the_trace_of_a_deep_recursion_is_short() -> None:
    def down(depth: int) -> int:
        return down(depth + 1) + 1

    text = trace(raised(lambda: down(0)))
    assert "RecursionError" in text
    assert len(text) < 10_000
