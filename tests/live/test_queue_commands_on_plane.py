"""`maniple queue` and `maniple job` on a real API server: what they change there, and what they refuse."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from maniple.cli.main import main
from maniple.objects.core import Pod
from maniple.objects.kai import KaiQueue
from maniple.objects.switches import STATE, SUSPEND
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue
from plane.plane import Plane
from tests.live import kai_objects, objects
from tests.live.objects import NAMESPACE, Raw, node
from tests.live.worlds import RealWorld, pods_of, real_world, until
from tests.live_support import ALL, CleanPlane
from tests.plane.api import Api

BATCH = {"apiVersion": "batch/v1", "kind": "Job"}


class Cluster:
    """A control plane with the commands and what is stored behind them."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self.api = Api(plane)

    def run(self, *words: str, code: int = 0, **given: Any) -> Result:
        result = CliRunner().invoke(main, [*words, "--kubeconfig", str(self._plane.kubeconfig)], **given)
        assert result.exit_code == code, result.output
        return result

    def within(self, work: Callable[[RealWorld], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with real_world(self._plane, "") as world:
                return await work(world)

        return asyncio.run(main())

    def create(self, *raws: Raw) -> None:
        self.within(lambda world: world.create(raws))

    def get(self, kind: type[Any], name: str) -> Any:
        found = self.within(lambda world: world.objects(kind))
        return next((one for one in found if one.metadata.name == name), None)


@pytest.fixture
def cluster(clean_plane: CleanPlane) -> Cluster:
    found = Cluster(clean_plane(ALL))
    found.create(node("n1", 16))
    return found


def gang(name: str, size: int, queue: str) -> list[Raw]:
    """A pod group with pods that run already."""
    group, *pods = objects.gang(name, size)
    group["spec"]["queue"] = queue
    for pod in pods:
        pod["spec"]["nodeName"] = "n1"
        pod["metadata"]["labels"] = {"job": name}
    return [group, *pods]


def test_queues_are_created_closed_drained_opened_and_deleted(cluster: Cluster) -> None:
    cluster.run("queue", "create", "research", "--weight", "2", "--dry-run")
    assert cluster.get(VolcanoQueue, "research") is None, "a dry run keeps nothing"
    cluster.run("queue", "create", "research", "--weight", "2", "--limit", "cpu=8")
    cluster.run("queue", "create", "research", "--system", "kai", "--quota", "gpu=1")
    made = cluster.get(VolcanoQueue, "research")
    assert (made.spec.weight, made.spec.capability) == (2, {"cpu": "8"})
    assert "already exists" in cluster.run("queue", "create", "research", code=2).output
    cluster.create(*gang("train", 2, "research"))
    listed = json.loads(cluster.run("queue", "list", "--profile", "volcano", "-o", "json").stdout)["items"]
    assert [(one["queue"], one["running"]) for one in listed] == [("research", 1)]

    refused = cluster.run("queue", "delete", "research", "--profile", "volcano", "--yes", code=2)
    assert f"queue 'research' has 1 job: {NAMESPACE}/train; close and drain it first" in refused.output
    cluster.run("queue", "close", "research")
    for kind in (VolcanoQueue, KaiQueue):
        assert cluster.get(kind, "research").metadata.annotations == {STATE: "Closed"}
    shown = cluster.run("queue", "list", "--profile", "volcano").stdout
    assert "Closing" in shown
    drained = cluster.run(
        "queue", "close", "research", "--drain", "--yes", "--profile", "volcano", "-o", "json"
    )
    done = {one["object"]: one["done"] for one in json.loads(drained.stdout)["items"]}
    assert done[f"pod/{NAMESPACE}/train-0"] == done[f"pod/{NAMESPACE}/train-1"] == "evicted"

    async def are_gone(world: RealWorld) -> None:
        async def gone() -> bool:
            return not await pods_of(world, "train")

        await until(gone, "the pods are gone")
        await world.delete(VolcanoPodGroup, f"{NAMESPACE}/train")

    cluster.within(are_gone)
    cluster.run("queue", "open", "research")
    assert cluster.get(VolcanoQueue, "research").metadata.annotations == {STATE: "Open"}
    cluster.run("queue", "delete", "research", "--yes", "--profile", "volcano")
    assert cluster.get(VolcanoQueue, "research") is None
    assert cluster.get(KaiQueue, "research") is None
    assert "no queue 'research' on the cluster" in cluster.run("queue", "open", "research", code=2).output


def test_a_job_without_an_owner_is_suspended_by_its_group_and_cancelled_with_its_pods(
    cluster: Cluster,
) -> None:
    cluster.create(objects.queue("research"), *gang("train", 2, "research"))
    key = f"{NAMESPACE}/train"
    cluster.run("job", "suspend", key, "--dry-run")
    assert SUSPEND not in cluster.get(VolcanoPodGroup, "train").metadata.annotations
    said = cluster.run("job", "suspend", "train", "-n", NAMESPACE).stdout
    assert said == f"podgroup.scheduling.volcano.sh/{key}: suspended by annotation {SUSPEND}\n"
    assert cluster.get(VolcanoPodGroup, "train").metadata.annotations[SUSPEND] == "true"
    assert cluster.get(Pod, "train-0") is not None, "what runs stays"
    cluster.run("job", "resume", f"{NAMESPACE}/train-1")  # a pod of it
    assert SUSPEND not in cluster.get(VolcanoPodGroup, "train").metadata.annotations
    assert "not suspended" in cluster.run("job", "resume", key).stdout

    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "all", "namespace": NAMESPACE},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"job": "train"}}},
    }
    cluster.create(budget)
    kept = cluster.run("job", "suspend", key, "--evict", code=1).stdout
    assert kept.count("kept: a disruption budget allows no eviction now") == 2

    assert "not confirmed" in cluster.run("job", "cancel", key, code=2).output
    assert "nothing was changed" in cluster.run("job", "cancel", key, code=1, input="n\n").output
    cancelled = cluster.run("job", "cancel", key, "--yes", "-o", "name").stdout.splitlines()
    assert cancelled == [
        f"podgroup.scheduling.volcano.sh/{key}",
        *(f"pod/{NAMESPACE}/train-{one}" for one in range(2)),
    ]
    assert cluster.get(VolcanoPodGroup, "train") is None
    assert "no pod group and no pod" in cluster.run("job", "cancel", f"{NAMESPACE}/nothing", code=2).output


def test_a_job_with_an_owner_is_suspended_and_cancelled_there(cluster: Cluster) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "work:1"}]}}
    job = {**BATCH, "metadata": {"name": "train", "namespace": NAMESPACE}, "spec": {"template": template}}
    cluster.create(objects.queue("research"))
    path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/train"
    cluster.api.create(path.rpartition("/")[0], job)
    uid = cluster.api.call("GET", path).content["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": uid, "controller": True}
    group = objects.group("podgroup-1", 1, "research")
    group["metadata"]["ownerReferences"] = [owner]
    cluster.create(group, kai_objects.queue("research"))
    key = f"{NAMESPACE}/podgroup-1"

    said = cluster.run("job", "suspend", key).stdout
    assert said == f"job.batch/{NAMESPACE}/train: suspended by spec.suspend\n"
    assert cluster.api.call("GET", path).content["spec"]["suspend"] is True
    cluster.run("job", "suspend", key, "--group")
    resumed = cluster.run("job", "resume", key).stdout
    assert "resumed by spec.suspend" in resumed
    assert "resumed by annotation" in resumed
    assert cluster.api.call("GET", path).content["spec"]["suspend"] is False
    assert cluster.run("job", "cancel", key, "--yes").stdout == f"job.batch/{NAMESPACE}/train: deleted\n"
    assert cluster.get(VolcanoPodGroup, "podgroup-1") is not None, "what it owns is the garbage collector's"
