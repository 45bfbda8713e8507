"""The policies in examples/tenants.yaml refuse at creation what the scheduler would hold back, on a real API server."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from plane.plane import Plane
from tests.hostile.objects import Writer
from tests.hostile.test_rights import annotated
from tests.live.test_permissions import PATHS, role_objects
from tests.live.worlds import real_world
from tests.plane.api import Api, eventually

MANIFEST = Path(__file__).parent.parent.parent / "examples" / "tenants.yaml"
GROUPS = {
    "volcano": "/apis/scheduling.volcano.sh/v1beta1/namespaces/team/podgroups",
    "kai": "/apis/scheduling.run.ai/v2alpha2/namespaces/team/podgroups",
}
QUEUES = {"volcano": "/apis/scheduling.volcano.sh/v1beta1/queues", "kai": "/apis/scheduling.run.ai/v2/queues"}
PODS = "/api/v1/namespaces/team/pods"
CRITICAL = "system-node-critical"


class Tenant:
    """Creates pod groups and pods in a namespace; each answer is why it was refused, or nothing."""

    def __init__(self, api: Api, profile: str) -> None:
        self._api, self._profile, self._made = api, profile, 0
        self.writer = Writer(profile)

    def group(self, queue: str, **spec: Any) -> str:
        self._made += 1
        raw = self.writer.group(f"g{self._made}", 1, "team", queue, **spec)
        return self._create(GROUPS[self._profile], raw)

    def pod(self, **spec: Any) -> str:
        self._made += 1
        return self._create(PODS, self.writer.pod(f"p{self._made}", "", "team", **spec))

    def patched(self, name: str, spec: dict[str, Any]) -> int:
        path = f"{GROUPS[self._profile]}/{name}"
        return self._api.call("PATCH", path, {"spec": spec}, content="merge-patch+json").status

    def _create(self, path: str, raw: dict[str, Any]) -> str:
        del raw["metadata"]["uid"], raw["metadata"]["creationTimestamp"]
        answer = self._api.call("POST", path, raw)
        return "" if answer.status == 201 else str(answer.content["message"])


def prepared(plane: Plane, profile: str) -> Tenant:
    """A cluster with the policies and two queues, one of which is another team's."""

    async def main() -> None:
        async with real_world(plane, profile):
            pass  # it installs the definitions

    asyncio.run(main())
    api, tenant = Api(plane), Tenant(Api(plane), profile)
    queues = [annotated(tenant.writer.queue("gold"), namespaces="owners"), tenant.writer.queue("free")]
    for raw in queues:
        raw["metadata"].pop("creationTimestamp")
        api.create(QUEUES[profile], raw)
    for item in role_objects(MANIFEST):
        api.create(PATHS[item["kind"]], item)
    return tenant


@pytest.mark.parametrize("profile", ["volcano", "kai"])
def test_what_a_namespace_may_not_name_is_refused(own_plane: Plane, profile: str) -> None:
    tenant, api = prepared(own_plane, profile), Api(own_plane)
    # A policy takes a moment to be in force.
    eventually(
        lambda: "annotation maniple.dev/namespaces of Queue gold allows owners" in tenant.group("gold")
    )
    eventually(
        lambda: "are for the namespace kube-system" in tenant.group("free", priorityClassName=CRITICAL)
    )
    eventually(lambda: "are for the namespace kube-system" in tenant.pod(priorityClassName=CRITICAL))
    assert tenant.group("free") == ""
    assert tenant.pod() == ""
    eventually(lambda: "get their node from the scheduler" in tenant.pod(nodeName="n1"))

    notes = {"maniple.dev/queues": "own, other", "maniple.dev/priority-classes": "low"}
    body = {"metadata": {"annotations": notes}}
    assert api.call("PATCH", "/api/v1/namespaces/team", body, content="merge-patch+json").status == 200
    eventually(lambda: "maniple.dev/queues of the namespace allows own, other" in tenant.group("free"))
    refused = "maniple.dev/priority-classes of the namespace allows low"
    assert refused in tenant.group("own", priorityClassName="high")
    api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 9})
    eventually(lambda: refused in tenant.pod(priorityClassName="high"))
    assert tenant.group("own", priorityClassName="low") == ""


def test_a_group_that_is_there_may_change_in_other_ways(own_plane: Plane) -> None:
    """Otherwise the scheduler could not write its status, and people could not mend it."""
    tenant, api = prepared(own_plane, "volcano"), Api(own_plane)
    assert tenant.group("free") == ""
    body = {"metadata": {"annotations": {"maniple.dev/queues": "own"}}}
    assert api.call("PATCH", "/api/v1/namespaces/team", body, content="merge-patch+json").status == 200
    eventually(lambda: "of the namespace allows own" in tenant.group("free"))
    assert tenant.patched("g1", {"minMember": 2}) == 200
    assert tenant.patched("g1", {"queue": "gold"}) == 422
    assert tenant.patched("g1", {"queue": "own"}) == 200
