"""Every kind that can be loaded has its place on the API server, and discovery finds the version that is served."""

import asyncio

import pytest

from maniple.kube.discovery import Discovery
from maniple.kube.errors import ApiError
from maniple.kube.kinds import KINDS, Kind, resource_of
from maniple.objects import load
from maniple.objects.core import Node, Pod
from maniple.objects.dra import ResourceClaim
from maniple.objects.kai import KaiPodGroup, KaiQueue
from maniple.objects.volcano import VolcanoQueue
from tests.kube.fake_server import Answer, FakeServer, status


def test_the_table_is_complete() -> None:
    assert set(KINDS) == set(load.KINDS)
    assert len({(kind.group, kind.plural) for kind in KINDS.values()}) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_every_version_can_be_loaded(kind: Kind) -> None:
    for version in kind.versions:
        metadata = {"name": "a", "namespace": "ns"} if kind.namespaced else {"name": "a"}
        raw = {
            "apiVersion": kind.at(version).api_version,
            "kind": kind.struct.kind,
            "metadata": metadata,
        }
        resource = resource_of(raw)
        assert resource == kind.at(version)
        assert resource.path("ns/a" if kind.namespaced else "a").endswith(f"/{kind.plural}/a")
        loaded = load.load_batch([raw])
        # Some want more fields than this one has; that the kind is known is the point.
        assert len(loaded.objects) + len(loaded.problems) == 1
        assert loaded.ignored == {}


def test_an_object_that_is_not_ours_has_no_place() -> None:
    for raw in ({"apiVersion": "v1", "kind": "Secret"}, {"kind": "Pod"}, {}):
        with pytest.raises(ValueError, match="unknown kind"):
            resource_of(raw)


def test_paths() -> None:
    pods, nodes = KINDS[Pod].at("v1"), KINDS[Node].at("v1")
    groups = KINDS[KaiPodGroup].at("v2alpha2")
    assert pods.path() == "/api/v1/pods"
    assert pods.path("ns/a", "binding") == "/api/v1/namespaces/ns/pods/a/binding"
    assert pods.path_in("ns") == "/api/v1/namespaces/ns/pods"
    assert nodes.path("n") == "/api/v1/nodes/n"
    assert nodes.path_in("") == "/api/v1/nodes"
    assert groups.path("ns/g") == "/apis/scheduling.run.ai/v2alpha2/namespaces/ns/podgroups/g"


def test_discovery_finds_what_is_served_and_remembers_only_that() -> None:
    async def scenario() -> None:
        async with FakeServer(ResourceClaim, KaiQueue, Pod) as server, server.client() as client:
            discovery = Discovery(client)
            # This server knows the oldest version only.
            assert await discovery.find(KINDS[ResourceClaim]) == KINDS[ResourceClaim].at("v1beta1")
            assert await discovery.find(KINDS[Pod]) == KINDS[Pod].at("v1")
            assert await discovery.find(KINDS[VolcanoQueue]) is None
            assert await discovery.find(KINDS[KaiPodGroup]) is None

            asked = len(server.requests)
            assert await discovery.find(KINDS[Pod]) is not None
            assert len(server.requests) == asked
            discovery.forget(KINDS[Pod])
            server.kinds.remove(KINDS[Pod])
            assert await discovery.find(KINDS[Pod]) is None

            server.kinds.add(KINDS[KaiPodGroup])
            assert await discovery.find(KINDS[KaiPodGroup]) == KINDS[KaiPodGroup].at("v2alpha2")

    asyncio.run(scenario())


def test_a_server_that_cannot_answer_is_not_a_server_without_the_kind() -> None:
    async def scenario() -> None:
        async with FakeServer(Pod) as server, server.client() as client:
            server.answers.append(Answer(403, status(403, "Forbidden")))
            with pytest.raises(ApiError, match=r"^403 "):
                await Discovery(client).find(KINDS[Pod])
            server.answers.append(Answer(200, b"<html>"))
            with pytest.raises(ApiError, match="not JSON"):
                await Discovery(client).find(KINDS[Pod])

    asyncio.run(scenario())
