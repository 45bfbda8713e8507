"""Client, informers, port and definitions on a real API server."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from maniple.cli.main import main
from maniple.kube import crds
from maniple.kube.client import Client
from maniple.kube.cluster import KubeCluster
from maniple.kube.configuration import load_configuration
from maniple.kube.errors import ApiError, UnreachableError
from maniple.kube.informer import Change
from maniple.kube.kinds import DEFINITIONS, EVENTS, KINDS, PODS, Resource
from maniple.kube.watch import list_all
from maniple.objects.core import Namespace, Node, PersistentVolumeClaim, Pod
from maniple.objects.kai import KaiPodGroup, KaiQueue, Topology
from maniple.objects.load import load
from maniple.objects.meta import Condition, Object
from maniple.objects.volcano import HyperNode, VolcanoPodGroup, VolcanoQueue
from plane.plane import Plane
from tests.kube.fake_server import eventually

pytestmark = pytest.mark.plane

NAMESPACES = KINDS[Namespace].at("v1")
NODES = KINDS[Node].at("v1")
PATIENCE_SECONDS = 60


@asynccontextmanager
async def opened(plane: Plane, **settings: Any) -> AsyncIterator[Client]:
    async with Client(load_configuration(plane.kubeconfig), **settings) as client:
        yield client


def on(plane: Plane, scenario: Callable[[Client, str], Coroutine[Any, Any, None]]) -> None:
    """Runs a scenario in a namespace of its own."""

    async def run() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), opened(plane) as client:
            name = f"kube-{secrets.token_hex(4)}"
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await client.create(NAMESPACES, "", body)
            await scenario(client, name)

    asyncio.run(run())


async def make_pod(client: Client, namespace: str, name: str) -> Pod:
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    pod = load(await client.create(PODS, namespace, body))
    assert isinstance(pod, Pod)
    return pod


async def make_node(client: Client, name: str) -> str:
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"capacity": capacity}}
    await client.create(NODES, "", body)
    return name


async def current(client: Client, pod: Pod) -> dict[str, Any]:
    return await client.get(PODS, pod.key)


async def create(client: Client, struct: type[Object], key: str, **fields: Any) -> dict[str, Any]:
    kind = KINDS[struct]
    resource = kind.at(kind.versions[0])
    namespace, _, name = key.rpartition("/")
    head = {"apiVersion": resource.api_version, "kind": struct.kind, "metadata": {"name": name}}
    return await client.create(resource, namespace, {**head, **fields})


def test_a_pod_is_bound_once_and_only_where_it_should(plane: Plane) -> None:
    async def scenario(client: Client, namespace: str) -> None:
        cluster = KubeCluster(client)
        node = await make_node(client, namespace)
        pod = await make_pod(client, namespace, "a")
        await cluster.bind(pod, node, {"maniple.dev/note": "x"})
        await cluster.bind(pod, node)
        with pytest.raises(ApiError, match=r"^409 "):
            await cluster.bind(pod, "another")
        bound = await current(client, pod)
        assert bound["spec"]["nodeName"] == node
        assert bound["metadata"]["annotations"] == {"maniple.dev/note": "x"}

    on(plane, scenario)


def test_a_pod_that_took_the_name_is_neither_bound_nor_evicted(plane: Plane) -> None:
    async def scenario(client: Client, namespace: str) -> None:
        cluster = KubeCluster(client)
        node = await make_node(client, namespace)
        old = await make_pod(client, namespace, "a")
        await cluster.evict(old, 0)
        await cluster.evict(old, 0)
        new = await make_pod(client, namespace, "a")
        with pytest.raises(ApiError, match=r"^409 "):
            await cluster.bind(old, node)
        await cluster.evict(old)
        with pytest.raises(ApiError, match=r"^409 "):
            await cluster.patch_pod_condition(old, Condition(type="X", status="True"), datetime.now(UTC))
        there = await current(client, new)
        assert there["metadata"]["uid"] == new.metadata.uid
        assert "deletionTimestamp" not in there["metadata"]
        assert "nodeName" not in there["spec"]

    on(plane, scenario)


def test_conditions_are_set_beside_each_other(plane: Plane) -> None:
    async def scenario(client: Client, namespace: str) -> None:
        cluster = KubeCluster(client)
        pod = await make_pod(client, namespace, "a")
        now = datetime.now(UTC)
        waits = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="no room")
        await cluster.patch_pod_condition(pod, waits, now, "n1")
        other = Condition(type="maniple.dev/x", status="True", reason="Because", message="")
        await cluster.patch_pod_condition(pod, other, now)
        status = (await current(client, pod))["status"]
        assert {each["type"]: each["status"] for each in status["conditions"]} == {
            "PodScheduled": "False",
            "maniple.dev/x": "True",
        }
        assert status["nominatedNodeName"] == "n1"
        await cluster.patch_pod_condition(pod, waits, now, "")
        assert "nominatedNodeName" not in (await current(client, pod))["status"]

    on(plane, scenario)


def test_the_same_event_is_counted(plane: Plane) -> None:
    async def scenario(client: Client, namespace: str) -> None:
        cluster = KubeCluster(client)
        pod = await make_pod(client, namespace, "a")
        for _ in range(3):
            assert await cluster.record_event(pod, "Warning", "FailedScheduling", "no room")
        answer = msgspec.json.decode(await client.request("GET", EVENTS.path_in(namespace)))
        (event,) = answer["items"]
        assert (event["series"]["count"], event["note"], event["regarding"]["name"]) == (3, "no room", "a")
        node = load(await client.get(NODES, await make_node(client, namespace)))
        assert await cluster.record_event(node, "Normal", "Seen", "it is there")

    on(plane, scenario)


def test_pages_and_problems_of_a_refusal(plane: Plane) -> None:
    async def scenario(client: Client, namespace: str) -> None:
        await asyncio.gather(*(make_pod(client, namespace, f"p{number}") for number in range(25)))
        page = await list_all(client, KINDS[Pod], PODS, limit=10)
        mine = [pod for pod in page.objects if pod.metadata.namespace == namespace]
        assert len(mine) == 25
        assert page.bad == []
        with pytest.raises(ApiError) as refused:
            await make_pod(client, namespace, "p1")
        assert (refused.value.status, refused.value.reason) == (409, "AlreadyExists")
        with pytest.raises(ApiError, match=r"^422 Invalid: "):
            await make_pod(client, namespace, "Not a name")

    on(plane, scenario)


def test_an_unknown_token_is_refused(plane: Plane, tmp_path_factory: pytest.TempPathFactory) -> None:
    async def scenario() -> None:
        file = plane.write_kubeconfig(tmp_path_factory.mktemp("config") / "config", "nobody", "wrong")
        async with Client(load_configuration(file)) as client:
            with pytest.raises(ApiError, match=r"^401 Unauthorized"):
                await client.list(PODS)

    asyncio.run(scenario())


def test_the_command_installs_the_definitions_and_may_do_so_again(plane: Plane) -> None:
    for _ in range(2):
        result = CliRunner().invoke(main, ["crds", "--install", "--kubeconfig", str(plane.kubeconfig)])
        assert result.exit_code == 0, result.output
        lines = result.stdout.splitlines()
        assert {line.partition(":")[0] for line in lines} == {each.name for each in crds.manifests()}
        assert {line.partition(": ")[2] for line in lines} <= {"created", "updated"}


async def install(client: Client) -> None:
    async for _ in crds.install(client, crds.manifests()):
        pass


def test_the_definitions_keep_what_is_right_and_fill_in_defaults(plane: Plane) -> None:
    async def scenario(client: Client, namespace: str) -> None:
        await install(client)
        queue = await create(
            client, VolcanoQueue, namespace, spec={"capability": {"cpu": 4, "memory": "1.5Gi"}}
        )
        assert queue["spec"]["weight"] == 1
        group = await create(
            client,
            VolcanoPodGroup,
            f"{namespace}/g",
            spec={"minMember": 3, "newField": {"x": 1}, "networkTopology": {}},
            status={"phase": "Pending"},
        )
        assert group["spec"]["queue"] == "default"
        assert group["spec"]["newField"] == {"x": 1}
        assert group["spec"]["networkTopology"]["mode"] == "hard"
        # Without a status subresource the status is written with the rest.
        assert group["status"]["phase"] == "Pending"
        member = {"type": "Node", "selector": {"exactMatch": {"name": "n"}}}
        await create(client, HyperNode, namespace, spec={"tier": 1, "members": [member]})
        await create(client, KaiQueue, namespace, spec={"resources": {"gpu": {"quota": -1, "limit": 0.5}}})
        sub_groups = [{"name": "a", "minMember": 1}, {"name": "b", "parent": "a"}]
        await create(client, KaiPodGroup, f"{namespace}/g", spec={"minMember": 1, "subGroups": sub_groups})
        levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
        await create(client, Topology, namespace, spec={"levels": levels})

    on(plane, scenario)


HOSTNAME = {"nodeLabel": "kubernetes.io/hostname"}
REFUSED: list[tuple[type[Object], dict[str, Any]]] = [
    (VolcanoQueue, {"weight": 0}),
    (VolcanoQueue, {"capability": {"cpu": "1x"}}),
    (VolcanoQueue, {"dequeueStrategy": "lifo"}),
    (VolcanoPodGroup, {"minMember": -1}),
    (VolcanoPodGroup, {"networkTopology": {"mode": "strict"}}),
    (VolcanoPodGroup, {"subGroupPolicy": [{"name": "a", "subGroupSize": 0}]}),
    (HyperNode, {"tier": -1}),
    (HyperNode, {"members": [{"type": "Rack"}]}),
    (HyperNode, {"members": [{"type": "Node", "selector": {}}]}),
    (
        HyperNode,
        {
            "members": [
                {"type": "Node", "selector": {"exactMatch": {"name": "n"}, "regexMatch": {"pattern": "n"}}}
            ]
        },
    ),
    (HyperNode, {"members": [{"type": "HyperNode", "selector": {"labelMatch": {}}}]}),
    (KaiQueue, {}),
    (KaiQueue, {"resources": {"gpu": {"quota": "1"}}}),
    (KaiPodGroup, {"minMember": 0}),
    (KaiPodGroup, {"preemptibility": "perhaps"}),
    (KaiPodGroup, {"subGroups": [{"name": "a"}, {"name": "a"}]}),
    (Topology, {"levels": []}),
    (Topology, {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "rack"}]}),
    (Topology, {"levels": [HOSTNAME, {"nodeLabel": "rack"}]}),
]


def test_the_definitions_refuse_what_is_wrong(plane: Plane) -> None:
    async def scenario(client: Client, namespace: str) -> None:
        await install(client)
        for struct, spec in REFUSED:
            key = f"{namespace}/x" if struct.namespaced else namespace
            with pytest.raises(ApiError) as refused:
                await create(client, struct, key, spec=spec)
            assert refused.value.status == 422, (struct, spec, refused.value)

    on(plane, scenario)


def test_the_levels_of_a_topology_cannot_be_changed(plane: Plane) -> None:
    async def scenario(client: Client, namespace: str) -> None:
        await install(client)
        await create(client, Topology, namespace, spec={"levels": [{"nodeLabel": "rack"}]})
        patch = {"spec": {"levels": [{"nodeLabel": "row"}]}}
        with pytest.raises(ApiError, match="levels cannot be changed"):
            await client.patch(KINDS[Topology].at("v1alpha1"), namespace, patch)

    on(plane, scenario)


def test_a_status_is_written_where_it_lies(plane: Plane) -> None:
    async def scenario(client: Client, namespace: str) -> None:
        await install(client)
        cluster = KubeCluster(client)
        await create(client, VolcanoQueue, namespace)
        await create(client, VolcanoPodGroup, f"{namespace}/g", spec={"minMember": 2})
        await cluster.patch_status(VolcanoQueue, namespace, {"status": {"allocated": {"cpu": "2"}}})
        await cluster.patch_status(VolcanoPodGroup, f"{namespace}/g", {"status": {"phase": "Running"}})
        queue = await client.get(KINDS[VolcanoQueue].at("v1beta1"), namespace)
        group = await client.get(KINDS[VolcanoPodGroup].at("v1beta1"), f"{namespace}/g")
        assert queue["status"]["allocated"] == {"cpu": "2"}
        assert (group["status"]["phase"], group["spec"]["minMember"]) == ("Running", 2)

    on(plane, scenario)


def test_an_object_nested_beyond_measure_is_read(plane: Plane) -> None:
    async def scenario(client: Client, namespace: str) -> None:
        await install(client)
        deep = msgspec.Raw(b'{"x":' * 3000 + b"1" + b"}" * 3000)
        kind = KINDS[VolcanoQueue]
        body = {
            "apiVersion": kind.at("v1beta1").api_version,
            "kind": "Queue",
            "metadata": {"name": namespace},
        }
        data = {**body, "spec": {"weight": 7, "deep": deep}}
        await client.request("POST", kind.at("v1beta1").path(), body=data)
        try:
            page = await list_all(client, kind, kind.at("v1beta1"))
        finally:
            await client.delete(kind.at("v1beta1"), namespace)  # other tests need not be so patient
        (queue,) = [each for each in page.objects if each.metadata.name == namespace]
        assert isinstance(queue, VolcanoQueue)
        assert queue.spec.weight == 7

    on(plane, scenario)


class Mirror:
    """The state of a cluster, from the changes that the port tells."""

    def __init__(self) -> None:
        self.state: dict[tuple[type[Object], str], Object] = {}
        self.types: list[str] = []
        self.absent: set[object] = set()

    def take(self, change: Change) -> None:
        self.types.append(change.type)
        if change.type == "absent":
            self.absent.add(change.kind)
        if change.type == "sync":
            self.absent.discard(change.kind)
        if change.object is not None:
            ref = (type(change.object), change.object.key)
            if change.type == "put":
                self.state[ref] = change.object
            else:
                self.state.pop(ref)

    def versions(self, struct: type[Object]) -> dict[str, str]:
        return {
            key: thing.metadata.resource_version
            for (kind, key), thing in self.state.items()
            if kind is struct
        }


@asynccontextmanager
async def mirrored(client: Client, *structs: type[Object]) -> AsyncIterator[Mirror]:
    mirror = Mirror()

    async def follow() -> None:
        async with aclosing(KubeCluster(client, look_again=0.2).changes(structs)) as changes:
            async for change in changes:
                mirror.take(change)

    task = asyncio.create_task(follow())
    try:
        await eventually(lambda: "synced" in mirror.types or task.done())
        yield mirror
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def same(client: Client, mirror: Mirror, struct: type[Object], resource: Resource) -> None:
    """Waits until the mirror shows exactly what a list does."""
    async with asyncio.timeout(30):
        while True:
            page = await list_all(client, KINDS[struct], resource)
            if mirror.versions(struct) == {
                thing.key: thing.metadata.resource_version for thing in page.objects
            }:
                return
            await asyncio.sleep(0.05)


def test_a_restart_a_pause_and_a_compaction_lose_nothing(own_plane: Plane) -> None:
    async def scenario(client: Client, namespace: str) -> None:
        cluster = KubeCluster(client)
        node = await make_node(client, namespace)
        async with mirrored(client, Pod, Node) as mirror:
            pods = [await make_pod(client, namespace, f"before-{number}") for number in range(5)]
            await same(client, mirror, Pod, PODS)

            await asyncio.to_thread(own_plane.restart_apiserver)
            await cluster.bind(pods[0], node)
            await cluster.evict(pods[1], 0)
            await make_pod(client, namespace, "after-restart")
            await same(client, mirror, Pod, PODS)

            own_plane.pause()
            write = asyncio.create_task(cluster.evict(pods[2], 0))
            await asyncio.sleep(0.2)
            own_plane.resume()
            await write
            await same(client, mirror, Pod, PODS)

            # Changes that no watch can tell any more: made while nobody watches, then forgotten.
            lists = mirror.types.count("sync")
            await asyncio.to_thread(own_plane.stop_kwok)
            await make_pod(client, namespace, "last")
            await asyncio.to_thread(own_plane.compact)
            await asyncio.to_thread(own_plane.restart_apiserver)
            await make_pod(client, namespace, "after-compaction")
            await same(client, mirror, Pod, PODS)
            await same(client, mirror, Node, NODES)
            assert mirror.types.count("sync") > lists

    on(own_plane, scenario)


def test_a_definition_is_picked_up_when_it_comes_and_given_up_when_it_goes(own_plane: Plane) -> None:
    async def scenario(client: Client, namespace: str) -> None:
        async with mirrored(client, VolcanoQueue, KaiQueue) as mirror:
            assert mirror.absent == {VolcanoQueue, KaiQueue}
            await install(client)
            await create(client, VolcanoQueue, "q")
            await create(client, KaiQueue, "q", spec={"resources": {}})
            await eventually(lambda: len(mirror.state) == 2)
            await client.delete(DEFINITIONS, str(KINDS[VolcanoQueue]))
            await eventually(lambda: VolcanoQueue in mirror.absent)
            assert [*mirror.state] == [(KaiQueue, "q")]

    on(own_plane, scenario)


def test_a_stopped_server_is_said_to_be_unreachable(own_plane: Plane) -> None:
    configuration = load_configuration(own_plane.kubeconfig)
    own_plane.stop()

    async def scenario() -> None:
        async with Client(configuration, attempts=2) as client:
            with pytest.raises(UnreachableError, match="cannot connect"):
                await client.list(PODS)

    asyncio.run(scenario())


def test_an_object_is_changed_as_it_was_read_or_not_at_all(plane: Plane) -> None:
    async def scenario(client: Client, namespace: str) -> None:
        cluster = KubeCluster(client)
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "c", "namespace": namespace},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        await cluster.create(claim)
        read = await cluster.read(PersistentVolumeClaim, f"{namespace}/c")
        assert read is not None
        changed = await cluster.change(read, {"metadata": {"annotations": {"a": "1"}}})
        assert changed.metadata.annotations["a"] == "1"
        with pytest.raises(ApiError, match=r"^409 "):
            await cluster.change(read, {"metadata": {"annotations": {"a": "2"}}})
        written = await cluster.change(changed, {"status": {"phase": "Lost"}}, status=True)
        assert isinstance(written, PersistentVolumeClaim)
        assert (written.status.phase, written.metadata.annotations["a"]) == ("Lost", "1")
        assert await cluster.read(PersistentVolumeClaim, f"{namespace}/d") is None

    on(plane, scenario)
