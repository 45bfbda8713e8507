"""The store keeps an API server's rules: versions, watches in order, resuming, 410, conflicts."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest

from maniple.objects.core import Node, Pod
from maniple.sim.clock import run
from maniple.sim.errors import ApiError
from maniple.sim.store import Store, StoreEvent
from tests.live.objects import NAMESPACE, node, pod

Scene = Callable[[Store], Coroutine[Any, Any, Any]]


def played(scene: Scene) -> Any:
    async def main() -> Any:
        return await scene(Store(lambda: datetime(2026, 1, 1, tzinfo=UTC)))

    return run(main(), virtual=True)


async def heard(store: Store, kind: type[Any], since: int, count: int) -> list[StoreEvent]:
    events: list[StoreEvent] = []
    async for event in store.watch(kind, since):
        events.append(event)
        if len(events) == count:
            break
    return events


def test_created_objects_get_what_the_server_adds() -> None:
    async def scene(store: Store) -> Any:
        return store.create(pod("a"))

    made = played(scene)
    assert made["metadata"]["uid"]
    assert made["metadata"]["resourceVersion"] == "1"
    assert made["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert made["status"]["phase"] == "Pending"


def test_what_was_handed_in_or_out_is_never_changed_afterwards() -> None:
    async def scene(store: Store) -> None:
        raw = pod("a")
        first = store.create(raw)
        store.patch(Pod, f"{NAMESPACE}/a", {"status": {"phase": "Running"}})
        assert first["status"]["phase"] == "Pending"
        assert "uid" not in raw["metadata"]

    played(scene)


def test_names_are_unique_and_missing_ones_are_missing() -> None:
    async def scene(store: Store) -> None:
        store.create(node("n1"))
        for refused, status in (
            (lambda: store.create(node("n1")), 409),
            (lambda: store.get(Node, "n2"), 404),
            (lambda: store.remove(Node, "n2"), 404),
            (lambda: store.remove(Node, "n1", uid="another"), 409),
            (lambda: store.patch(Node, "n1", {"metadata": {"uid": "another"}}), 409),
            (lambda: store.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}), 422),
            (lambda: store.create({"apiVersion": "v1", "kind": "Node", "metadata": {}}), 422),
        ):
            with pytest.raises(ApiError) as error:
                refused()
            assert error.value.status == status

    played(scene)


def test_a_patch_merges_removes_and_replaces_lists() -> None:
    async def scene(store: Store) -> Any:
        raw = node("n1")
        raw["metadata"]["labels"] = {"a": "1", "b": "2"}
        raw["spec"] = {"taints": [{"key": "x", "effect": "NoSchedule"}]}
        store.create(raw)
        return store.patch(
            Node, "n1", {"metadata": {"labels": {"a": None, "c": "3"}}, "spec": {"taints": []}}
        )

    patched = played(scene)
    assert patched["metadata"]["labels"] == {"b": "2", "c": "3"}
    assert patched["spec"]["taints"] == []


def test_a_patch_without_a_difference_is_no_change() -> None:
    async def scene(store: Store) -> None:
        made = store.create(node("n1"))
        assert store.patch(Node, "n1", {"metadata": {"name": "n1"}}) is made

    played(scene)


def test_a_watch_hears_every_change_behind_its_version_in_order() -> None:
    async def scene(store: Store) -> Any:
        store.create(node("n1"))
        _, version = store.list(Node)
        store.create(node("n2"))
        store.create(pod("a"))
        listening = asyncio.create_task(heard(store, Node, version, 3))
        await asyncio.sleep(0)
        store.patch(Node, "n2", {"spec": {"unschedulable": True}})
        store.remove(Node, "n1")
        return [(event.key, event.after is None) for event in await listening]

    assert played(scene) == [("n2", False), ("n2", False), ("n1", True)]


def test_a_cut_watch_is_resumed_and_what_was_on_its_way_comes_again() -> None:
    async def scene(store: Store) -> Any:
        async def listen(since: int) -> list[StoreEvent]:
            return [event async for event in store.watch(Node, since)]

        listening = asyncio.create_task(listen(0))
        await asyncio.sleep(0)
        store.create(node("n1"))
        store.cut()
        first = await listening
        since = first[-1].version if first else 0
        return [event.key for event in [*first, *await heard(store, Node, since, 1 - len(first))]]

    assert played(scene) == ["n1"]


def test_a_forgotten_version_is_gone() -> None:
    async def scene(store: Store) -> None:
        store.create(node("n1"))
        _, version = store.list(Node)
        store.create(node("n2"))
        store.compact()
        with pytest.raises(ApiError) as error:
            await heard(store, Node, version, 1)
        assert error.value.status == 410
        store.create(node("n3"))
        assert [event.key for event in await heard(store, Node, version + 1, 1)] == ["n3"]

    played(scene)
