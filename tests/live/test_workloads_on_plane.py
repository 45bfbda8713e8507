"""Workloads of every kind on a real API server: bound as a gang, whole or not at all.

Pods of Jobs are created by Kubernetes' own controller. Those of the other kinds are created here as their controllers
do it (`workloads/expanding.py`); their definitions take any fields.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from maniple.kube.kinds import resource_of
from maniple.objects.owners import owner_kinds
from maniple.workloads.expanding import expanded
from maniple.workloads.kinds import KINDS, TABLE, kind_of
from maniple.workloads.manifests import finder
from plane.plane import Plane
from tests.live.objects import node
from tests.live.scenarios import scheduling
from tests.live.worlds import RealWorld, real_world, until
from tests.live_support import ALL, CleanPlane
from tests.plane.api import Api
from tests.workloads.support import EXAMPLES, example, members

Raw = dict[str, Any]
NAMESPACE = "ml"
BUILT_IN = ("", "apps", "batch", "scheduling.k8s.io")
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
NATIVE_1_35 = "workload.yaml"  # of an API that a server of 1.36 no longer has
FILES = [path for path in sorted(EXAMPLES.glob("*.yaml")) if path.name != NATIVE_1_35]


@asynccontextmanager
async def cluster(plane: Plane) -> AsyncIterator[tuple[Api, RealWorld]]:
    async with real_world(plane, "") as world:
        api = Api(plane)
        api.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        yield api, world


def define_kinds(api: Api) -> None:
    """Definitions of all kinds that are not part of Kubernetes."""
    owner_kinds(TABLE)
    for kind in KINDS:
        if kind.api_group in BUILT_IN:
            continue
        names = {"plural": kind.plural, "singular": kind.name.lower(), "kind": kind.name}
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        versions = [
            {"name": version, "served": True, "storage": not number, "schema": schema}
            for number, version in enumerate(kind.versions)
        ]
        body = {
            "metadata": {
                "name": f"{kind.plural}.{kind.api_group}",
                # A group that ends in k8s.io needs the word of its reviewers.
                "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
            },
            "spec": {"group": kind.api_group, "scope": "Namespaced", "names": names, "versions": versions},
        }
        api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)


class Creating:
    """Objects and what their controllers create, each with the uid of its owner."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        self._uids: dict[tuple[str, str], str] = {}

    def tree(self, objects: list[Raw]) -> int:
        """Create manifests and all below them; returns the number of pods."""
        pods = 0
        for one in objects:
            if kind_of(one) is None:
                continue  # such as the runtime of a TrainJob, of which its pods know nothing
            below = expanded(one, TABLE, finder(objects, NAMESPACE))
            for each in (one, *below):
                self._create(each)
                pods += each["kind"] == "Pod"
        return pods

    def _create(self, raw: Raw) -> None:
        metadata = {**raw["metadata"], "namespace": self._namespace}
        references = metadata.get("ownerReferences", [])
        metadata["ownerReferences"] = [
            {**one, "uid": self._uids[one["kind"], one["name"]]} for one in references
        ]
        body = {**raw, "metadata": metadata, **({"spec": _complete(raw)} if "spec" in raw else {})}
        made = self._api.create(resource_of(raw).path_in(self._namespace), body)
        self._uids[raw["kind"], metadata["name"]] = made["metadata"]["uid"]


def _complete(raw: Raw) -> Raw:
    """What the API server requires and grouping never reads: selectors, and images that a controller knows."""
    spec: Raw = raw["spec"]
    if raw["kind"] == "Pod":
        return {**spec, "containers": [{"image": "none", **one} for one in spec["containers"]]}
    if raw["apiVersion"] != "apps/v1":
        return spec
    metadata = spec["template"].get("metadata", {})
    labels = {**metadata.get("labels", {}), "test": "any"}
    template = {
        "metadata": {**metadata, "labels": labels},
        "spec": {"containers": [{"name": "any", "image": "none"}]},
    }
    return {**spec, "selector": {"matchLabels": {"test": "any"}}, "template": template}


def placed(api: Api) -> dict[str, str]:
    """The node of each pod, by key; empty for those that wait."""
    found = api.call("GET", "/api/v1/pods").content["items"]
    metadata = ((one["metadata"], one["spec"]) for one in found)
    return {f"{own['namespace']}/{own['name']}": spec.get("nodeName", "") for own, spec in metadata}


def halves(groups: dict[str, tuple[int, list[str]]], nodes: dict[str, str]) -> list[str]:
    """Groups of which some pods are placed, and fewer than their minimum."""
    counts = {name: sum(bool(nodes[pod]) for pod in pods) for name, (_, pods) in groups.items()}
    return [name for name, (minimum, _) in groups.items() if 0 < counts[name] < minimum]


def groups_of(path: Path) -> dict[str, tuple[int, list[str]]]:
    """By name: the minimum without sets that wait for others, and the pods."""
    groups: dict[str, tuple[int, list[str]]] = {}
    for pod, one in members(*example(path.name)).items():
        later = sum(part.minimum for part in one.group.sets if part.after)
        name = f"{path.name}/{one.group.name}"
        groups.setdefault(name, (max(one.group.minimum - later, 1), []))[1].append(f"{path.stem}/{pod}")
    return groups


@pytest.mark.parametrize("where", ["memory", "write"])
def test_gangs_of_every_kind_are_bound_whole_or_not_at_all(where: str, clean_plane: CleanPlane) -> None:
    plane = clean_plane(ALL)

    async def main() -> None:
        async with cluster(plane) as (api, world):
            define_kinds(api)
            async with scheduling(
                world,
                profile="maniple",
                options={"schedulerName": ["maniple", "kai-scheduler"]},
                groups=where,
            ) as scheduler:
                total = sum(Creating(api, path.stem).tree(example(path.name)) for path in FILES)
                groups = {name: one for path in FILES for name, one in groups_of(path).items()}
                await world.create([node("small", 3)])

                async def settled() -> bool:
                    plan = scheduler.plan  # one with the node: before, all is settled as well
                    decided = plan is not None and "small" in plan.nodes
                    return decided and len(scheduler.cache.cluster.tasks.pods) >= total and scheduler.settled

                await until(settled, "all pods have been looked at")
                assert len(placed(api)) == total
                assert not halves(groups, placed(api))
                large = node("large", 200)
                large["metadata"]["labels"]["topology.kubernetes.io/rack"] = "r1"  # as podgroup.yaml asks for
                large["status"]["capacity"]["pods"] = large["status"]["allocatable"]["pods"] = "500"
                await world.create([large])

                async def all_placed() -> bool:
                    return all(placed(api).values())

                await until(all_placed, "all pods of all kinds are placed")
                if where == "write":
                    await until(lambda: are_written(api), "their groups are written, and the pods name them")
                    assert_written_as_a_gang(api, "pytorchjob")

    asyncio.run(main())


GROUP_APIS = {
    "scheduling.k8s.io/group-name": "/apis/scheduling.volcano.sh/v1beta1",
    "pod-group-name": "/apis/scheduling.run.ai/v2alpha2",
}


def pods_by_group(api: Api) -> dict[tuple[str, str, str], list[Raw]]:
    """By annotation, namespace and name of the group; those without one by their own name."""
    found: dict[tuple[str, str, str], list[Raw]] = {}
    for pod in api.call("GET", "/api/v1/pods").content["items"]:
        known = pod["metadata"].get("annotations", {})
        annotation = next((one for one in GROUP_APIS if one in known), "")
        place = annotation, pod["metadata"]["namespace"], known.get(annotation, pod["metadata"]["name"])
        found.setdefault(place, []).append(pod)
    return found


async def are_written(api: Api) -> bool:
    """Except where a group asks for a node label, which no PodGroup can say."""
    there = {
        (annotation, one["metadata"]["namespace"], one["metadata"]["name"])
        for annotation, path in GROUP_APIS.items()
        for one in api.call("GET", f"{path}/podgroups").content["items"]
    }
    named = {place for place in pods_by_group(api) if place[1] != "podgroup"}
    return bool(named) and named <= there


def assert_written_as_a_gang(api: Api, namespace: str) -> None:
    ((place, pods),) = [one for one in pods_by_group(api).items() if one[0][1] == namespace]
    path = f"{GROUP_APIS[place[0]]}/namespaces/{namespace}/podgroups/{place[2]}"
    group = api.call("GET", path).content
    (owner,) = group["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["controller"], place[2]) == ("PyTorchJob", True, f"podgroup-{owner['uid']}")
    assert group["spec"]["minMember"] == 3
    assert {pod["metadata"]["annotations"]["volcano.sh/task-spec"] for pod in pods} == {"master", "worker"}


def job(name: str, size: int, minimum: int | None = None, **spec: Any) -> Raw:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"schedulerName": "maniple", "restartPolicy": "Never", "containers": [container]}}
    labels = {"maniple.dev/min-member": str(minimum)} if minimum is not None else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"parallelism": size, "completions": size, "template": template, **spec},
    }


@pytest.mark.parametrize("native", [False, True], ids=["by its label", "by its native group"])
def test_the_pods_of_a_real_job_start_together(native: bool, clean_plane: CleanPlane) -> None:
    """Created by Kubernetes' own controller, which creates the PodGroup, too, if it may."""

    plane = clean_plane(ALL)

    async def main() -> None:
        plane.start_controllers(native_groups=native)
        async with cluster(plane) as (api, world), scheduling(world, profile="maniple"):
            await world.create([node("small", 3)])
            made = job("train", 4, completionMode="Indexed") if native else job("train", 4, 4)
            api.create(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", made)

            async def waits_with_reason() -> bool:
                items = api.call("GET", f"/api/v1/namespaces/{NAMESPACE}/pods").content["items"]
                said = [one for pod in items for one in pod["status"].get("conditions", [])]
                return len(said) == 4 and all("cpu" in one["message"] for one in said)

            await until(waits_with_reason, "all four pods wait, and say why")
            assert not any(placed(api).values())
            await world.create([node("another", 1)])

            async def starts() -> bool:
                return len(placed(api)) == 4 and all(placed(api).values())

            await until(starts, "all four start")

    asyncio.run(main())


async def reach(api: Api, count: int) -> set[str]:
    """Wait until so many pods are placed; their names."""

    async def placed_so_many() -> bool:
        return sum(map(bool, placed(api).values())) == count

    await until(placed_so_many, f"{count} pods are placed")
    return {key.partition("/")[2] for key, node in placed(api).items() if node}


def test_an_elastic_job_starts_at_its_minimum_and_grows(clean_plane: CleanPlane) -> None:
    plane = clean_plane(ALL)

    async def main() -> None:
        async with cluster(plane) as (api, world):
            define_kinds(api)
            await world.create([node("two", 2)])
            async with scheduling(world, profile="maniple") as scheduler:
                assert Creating(api, "elastic").tree(example("pytorchjob.yaml")) == 5

                async def looked_at() -> bool:
                    return len(scheduler.cache.cluster.tasks.pods) == 5 and scheduler.settled

                await until(looked_at, "two CPUs are not enough for three pods")
                assert not any(placed(api).values())
                await world.create([node("one", 1)])
                assert "train-master-0" in await reach(api, 3)
                await world.create([node("more", 8)])
                await reach(api, 5)

    asyncio.run(main())


def test_the_workers_of_a_ray_cluster_join_its_head(clean_plane: CleanPlane) -> None:
    plane = clean_plane(ALL)

    async def main() -> None:
        async with cluster(plane) as (api, world):
            define_kinds(api)
            await world.create([node("five", 5)])
            async with scheduling(world, profile="maniple"):
                assert Creating(api, "ray").tree(example("raycluster.yaml")) == 6
                started = await reach(api, 5)
                assert any("head" in name for name in started)
                await world.create([node("more", 2)])
                await reach(api, 6)

    asyncio.run(main())


def test_the_second_replicated_job_of_a_job_set_waits_for_the_first(clean_plane: CleanPlane) -> None:
    """The API server shows the second waiting, with that reason, for as long as the first does not run."""

    plane = clean_plane(ALL)

    async def main() -> None:
        plane.stop_kwok()
        async with cluster(plane) as (api, world):
            define_kinds(api)
            await world.create([node("large", 8)])
            api.call("PATCH", "/api/v1/nodes/large/status", READY, content="merge-patch+json")
            async with scheduling(world, profile="maniple") as scheduler:
                assert Creating(api, "ordered").tree(example("jobset.yaml")) == 5
                (first,) = await reach(api, 1)
                assert first.startswith("train-server")

                async def settled() -> bool:
                    return scheduler.settled

                await until(settled, "nothing else is placed")
                assert sum(map(bool, placed(api).values())) == 1
                waiting = api.call("GET", "/api/v1/namespaces/ordered/pods").content["items"]
                said = {
                    one["message"]
                    for pod in waiting
                    for one in pod["status"].get("conditions", [])
                    if "message" in one
                }
                assert any("waits until server of JobSet ordered/train runs" in text for text in said), said
                plane.start_kwok()
                await reach(api, 5)

    asyncio.run(main())
