"""The port on a real HTTP server: one stream of changes, and writes that may be repeated."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from maniple.kube.cluster import KubeCluster
from maniple.kube.errors import ApiError
from maniple.kube.informer import Change
from maniple.kube.kinds import KINDS
from maniple.live.port import Port
from maniple.objects.core import Node, Pod
from maniple.objects.kai import BindRequest, KaiQueue
from maniple.objects.load import load
from maniple.objects.meta import Condition, Object
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue
from tests.kube.fake_server import Answer, FakeServer, status

NOW = datetime(2025, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=1)))
OK = Answer(200, b"{}")


def a_pod(**fields: Any) -> Pod:
    metadata = {"name": "a", "namespace": "ns", "uid": "u1", "resourceVersion": "5"}
    pod = load({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **fields})
    assert isinstance(pod, Pod)
    return pod


def answer(body: Mapping[str, Any], code: int = 200) -> Answer:
    return Answer(code, json.dumps(body).encode())


def conflict(message: str = "already assigned") -> Answer:
    return Answer(409, status(409, "Conflict", message))


def test_it_is_the_port_that_the_scheduler_speaks_to() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            port: Port = KubeCluster(client)
            assert port is not None

    asyncio.run(scenario())


def test_all_kinds_come_in_one_stream_with_a_marker_when_all_are_listed() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod, Node, VolcanoQueue) as server, server.client() as client:
            server.put(Pod, "default/a")
            server.put(Node, "n")
            cluster = KubeCluster(client)
            told: list[Change] = []
            async with aclosing(cluster.changes([Pod, Node, VolcanoQueue, KaiQueue, Pod])) as changes:
                async for change in changes:
                    told.append(change)
                    if change.type == "synced":
                        break
                assert {(each.type, each.kind) for each in told} == {
                    ("put", Pod),
                    ("sync", Pod),
                    ("put", Node),
                    ("sync", Node),
                    ("sync", VolcanoQueue),
                    ("absent", KaiQueue),
                    ("synced", None),
                }
                assert len(told) == 7
                server.put(VolcanoQueue, "q")
                after = await anext(changes)
                assert (after.type, after.kind, after.object and after.object.key) == (
                    "put",
                    VolcanoQueue,
                    "q",
                )
            assert [task for task in asyncio.all_tasks() if task.get_name().startswith("informer")] == []

    asyncio.run(scenario())


@pytest.mark.parametrize(("kind", "goes_on"), [(VolcanoQueue, True), (Node, False)])
def test_a_kind_that_may_not_be_listed_holds_up_the_rest_only_if_it_is_essential(
    kind: type[Object], goes_on: bool
) -> None:
    async def scenario() -> None:
        async with FakeServer(Pod, Node, VolcanoQueue) as server, server.client() as client:
            ending = f"/{KINDS[kind].plural}"
            server.answers += [Answer(403, status(403, "Forbidden"), ending=ending)] * 200
            told: list[tuple[str, object]] = []
            async with aclosing(KubeCluster(client).changes([Pod, Node, VolcanoQueue])) as changes:
                while ("sync", kind) not in told:  # it may be listed in the end
                    change = await anext(changes)
                    told.append((change.type, change.kind))
            assert ("forbidden", kind) in told
            assert (("synced", None) in told) == goes_on

    asyncio.run(scenario())


def test_nothing_to_watch_is_synced_at_once() -> None:
    async def scenario() -> None:
        async with (
            FakeServer() as server,
            server.client() as client,
            aclosing(KubeCluster(client).changes([])) as changes,
        ):
            assert (await anext(changes)).type == "synced"

    asyncio.run(scenario())


def test_a_broken_informer_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*arguments: object) -> None:
        raise ZeroDivisionError

    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            monkeypatch.setattr("maniple.kube.informer.Informer._list", broken)
            with pytest.raises(ZeroDivisionError):
                async with aclosing(KubeCluster(client).changes([Pod])) as changes:
                    await anext(changes)

    asyncio.run(scenario())


def test_a_bind_names_the_pod_the_node_and_the_annotations() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            server.answers.append(Answer(201, status(0, "")))
            await KubeCluster(client).bind(a_pod(), "n1", {"key": "value"})
            assert server.requests[0].path == "/api/v1/namespaces/ns/pods/a/binding"
            assert server.requests[0].json == {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "a", "namespace": "ns", "uid": "u1", "annotations": {"key": "value"}},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
            }

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("current", "done"),
    [
        ({"metadata": {"uid": "u1"}, "spec": {"nodeName": "n1"}}, True),
        ({"metadata": {"uid": "u1"}, "spec": {"nodeName": "n2"}}, False),
        ({"metadata": {"uid": "u2"}, "spec": {"nodeName": "n1"}}, False),
        ({"metadata": {"uid": "u1"}, "spec": {}}, False),
        (None, False),
    ],
)
def test_a_pod_that_is_on_the_node_already_is_bound(current: dict[str, Any] | None, done: bool) -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            server.answers.append(conflict())
            server.answers.append(Answer(404) if current is None else answer(current))
            bind = KubeCluster(client).bind(a_pod(), "n1")
            if done:
                await bind
            else:
                with pytest.raises(ApiError, match=r"^409 Conflict: already assigned"):
                    await bind

    asyncio.run(scenario())


def test_a_bind_whose_answer_was_lost_is_found_to_be_done() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            server.answers += [
                Answer(cut=True),
                Answer(503),
                conflict(),
                answer({"metadata": {"uid": "u1"}, "spec": {"nodeName": "n1"}}),
            ]
            await KubeCluster(client).bind(a_pod(), "n1")
            assert [asked.method for asked in server.requests] == ["POST", "POST", "POST", "GET"]

    asyncio.run(scenario())


def test_a_bind_of_a_pod_that_is_gone_fails() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            with pytest.raises(ApiError, match=r"^404 "):
                await KubeCluster(client).bind(a_pod(), "n1")

    asyncio.run(scenario())


def test_an_eviction_deletes_this_very_pod() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            cluster = KubeCluster(client)
            server.answers += [OK, OK]
            await cluster.evict(a_pod(), 0)
            await cluster.evict(a_pod())
            assert [(asked.method, asked.path) for asked in server.requests] == [
                ("DELETE", "/api/v1/namespaces/ns/pods/a")
            ] * 2
            assert server.requests[0].json["preconditions"] == {"uid": "u1"}
            assert server.requests[0].json["gracePeriodSeconds"] == 0
            assert "gracePeriodSeconds" not in server.requests[1].json

    asyncio.run(scenario())


def test_a_pod_that_is_gone_or_replaced_is_evicted() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            cluster = KubeCluster(client)
            await cluster.evict(a_pod())  # 404
            server.answers += [conflict("precondition failed"), answer({"metadata": {"uid": "u2"}})]
            await cluster.evict(a_pod())
            server.answers += [conflict("precondition failed"), answer({"metadata": {"uid": "u1"}})]
            with pytest.raises(ApiError, match=r"^409 "):
                await cluster.evict(a_pod())

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("struct", "key", "subresource", "path"),
    [
        (VolcanoPodGroup, "ns/g", None, "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/g"),
        (VolcanoQueue, "q", None, "/apis/scheduling.volcano.sh/v1beta1/queues/q/status"),
        (VolcanoQueue, "q", False, "/apis/scheduling.volcano.sh/v1beta1/queues/q"),
        (Pod, "ns/a", True, "/api/v1/namespaces/ns/pods/a/status"),
    ],
)
def test_a_status_is_patched_where_it_lies(
    struct: type[VolcanoPodGroup], key: str, subresource: bool | None, path: str
) -> None:
    async def scenario() -> None:
        async with FakeServer(struct) as server, server.client() as client:
            server.answers.append(Answer(200, b"{}", method="PATCH"))
            patch = {"status": {"phase": "Running"}}
            await KubeCluster(client).patch_status(struct, key, patch, subresource)
            asked = server.asked("PATCH")[0]
            assert (asked.path, asked.json) == (path, patch)
            assert asked.headers["Content-Type"] == "application/merge-patch+json"

    asyncio.run(scenario())


def test_the_status_of_a_kind_that_is_not_installed_cannot_be_patched() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            with pytest.raises(ApiError, match=r"queues\.scheduling\.volcano\.sh is not installed"):
                await KubeCluster(client).patch_status(VolcanoQueue, "q", {})

    asyncio.run(scenario())


WAITS = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="no room")
SINCE = "2024-12-31T00:00:00Z"


@pytest.mark.parametrize(
    ("before", "stamp"),
    [
        ([], "2025-01-02T02:04:05Z"),
        ([{"type": "PodScheduled", "status": "True", "lastTransitionTime": SINCE}], "2025-01-02T02:04:05Z"),
        ([{"type": "PodScheduled", "status": "False", "lastTransitionTime": SINCE}], SINCE),
        ([{"type": "Ready", "status": "False", "lastTransitionTime": SINCE}], "2025-01-02T02:04:05Z"),
    ],
)
def test_a_condition_keeps_the_time_of_its_transition(before: list[dict[str, str]], stamp: str) -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            server.answers.append(OK)
            await KubeCluster(client).patch_pod_condition(a_pod(status={"conditions": before}), WAITS, NOW)
            asked = server.requests[0]
            assert asked.path == "/api/v1/namespaces/ns/pods/a/status"
            assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "no room",
                "lastTransitionTime": stamp,
            }
            assert asked.json == {"metadata": {"uid": "u1"}, "status": {"conditions": [condition]}}

    asyncio.run(scenario())


@pytest.mark.parametrize(("node", "written"), [("n1", "n1"), ("", None)])
def test_a_nomination_is_made_and_taken_back(node: str, written: str | None) -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            server.answers.append(OK)
            await KubeCluster(client).patch_pod_condition(a_pod(), WAITS, NOW.astimezone(UTC), node)
            assert server.requests[0].json["status"]["nominatedNodeName"] == written

    asyncio.run(scenario())


def test_an_object_that_is_there_already_is_created() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            cluster = KubeCluster(client)
            queue = {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": "q"},
            }
            server.answers += [Answer(503), Answer(409, status(409, "AlreadyExists"))]
            await cluster.create(queue)
            assert server.requests[0].path == "/apis/scheduling.volcano.sh/v1beta1/queues"
            assert server.requests[0].json == queue
            server.answers.append(Answer(422, status(422, "Invalid")))
            with pytest.raises(ApiError, match=r"^422 "):
                await cluster.create(queue)

    asyncio.run(scenario())


REQUEST: dict[str, Any] = {
    "apiVersion": "scheduling.run.ai/v1alpha2",
    "kind": "BindRequest",
    "metadata": {"name": "a", "namespace": "ns", "ownerReferences": [{"kind": "Pod", "uid": "u1"}]},
    "spec": {"podName": "a", "selectedNode": "n1"},
}


@pytest.mark.parametrize(
    ("there", "done"),
    [
        ({**REQUEST, "metadata": {**REQUEST["metadata"], "uid": "x"}, "status": {"phase": "Pending"}}, True),
        ({**REQUEST, "spec": {"podName": "a", "selectedNode": "n2"}}, False),
        ({**REQUEST, "metadata": {"name": "a", "ownerReferences": [{"kind": "Pod", "uid": "u0"}]}}, False),
    ],
)
def test_an_object_that_is_there_already_must_be_the_same_if_that_matters(
    there: dict[str, Any], done: bool
) -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            server.answers += [Answer(409, status(409, "AlreadyExists")), answer(there)]
            if done:
                await KubeCluster(client).create(REQUEST, same=True)
            else:
                with pytest.raises(ApiError, match=r"^409 "):
                    await KubeCluster(client).create(REQUEST, same=True)
            asked = [(each.method, each.path.rpartition("ns/")[2]) for each in server.requests]
            assert asked == [("POST", "bindrequests"), ("GET", "bindrequests/a")]

    asyncio.run(scenario())


def test_this_very_object_is_deleted_and_one_that_is_gone_or_replaced_is_as_good() -> None:
    async def scenario() -> None:
        async with FakeServer(BindRequest) as server, server.client() as client:
            cluster = KubeCluster(client)
            item = load({**REQUEST, "metadata": {**REQUEST["metadata"], "uid": "x"}})
            for each in (OK, Answer(404, status(404, "NotFound")), conflict()):
                server.answers.append(replace(each, method="DELETE"))
                await cluster.delete(item)
            asked = server.asked("DELETE")
            assert [each.json["preconditions"] for each in asked] == [{"uid": "x"}] * 3
            server.answers.append(Answer(403, status(403, "Forbidden"), method="DELETE"))
            with pytest.raises(ApiError, match=r"^403 "):
                await cluster.delete(item)

    asyncio.run(scenario())
