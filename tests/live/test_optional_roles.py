"""With the base role alone everything else is scheduled, and what waits for a permission says for which one."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from maniple.kube.client import Client
from maniple.kube.cluster import KubeCluster
from maniple.kube.configuration import load_configuration
from maniple.kube.errors import ApiError
from maniple.objects.core import Pod
from plane.plane import Plane
from tests.live import kai_objects
from tests.live.audit import optional_roles, refused
from tests.live.binder import binding
from tests.live.need_objects import LOCAL, claim, csi_node, gated, mounting, storage_class, volume
from tests.live.need_scenarios import runs_alone
from tests.live.objects import NAMESPACE, gang, group, node, pod, queue
from tests.live.scenarios import runs
from tests.live.test_kai_permissions import ROLE as KAI_ROLE
from tests.live.test_permissions import PATHS, ROLE, running, token_of_the_role
from tests.live.worlds import real_world, until
from tests.plane.api import Api, eventually

# A permission that was granted is noticed after seconds here, not after a minute.
SOON = "import maniple.live.permissions as one; one.AGAIN_SECONDS = 2.0; "


@contextmanager
def scheduler(plane: Plane, folder: Path, role: Path, *words: str) -> Iterator[Path]:
    """The command with nothing but the base role; its log."""
    kubeconfig = plane.write_kubeconfig(folder / "kubeconfig", "maniple", token_of_the_role(plane, role))
    code = (
        f"{SOON}from maniple.cli.main import main; main({['run', '--kubeconfig', str(kubeconfig), *words]!r})"
    )
    log = folder / "output"
    with log.open("w") as output, running([sys.executable, "-c", code], output):
        yield log


async def message_of(world: Any, name: str) -> str:
    (found,) = [one for one in await world.objects(Pod) if one.metadata.name == name]
    return next((one.message for one in found.status.conditions if one.type == "PodScheduled"), "")


async def says(world: Any, name: str, words: str) -> bool:
    return words in await message_of(world, name)


async def logged(log: Path, words: str) -> bool:
    return words in log.read_text()


def mixed_gang() -> list[dict[str, Any]]:
    """One of its pods needs a volume that exists."""
    return [group("mixed", 2), pod("mixed-0", "mixed"), mounting(pod("mixed-1", "mixed"), "there")]


def test_what_may_not_be_done_is_said_once_and_the_rest_is_scheduled(
    audited_plane: Plane, tmp_path: Path
) -> None:
    async def main(log: Path) -> None:
        async with real_world(audited_plane) as world, world.controllers():
            await until(lambda: logged(log, "rbac.createQueues=true"), "the missing queue is reported")
            await world.create([queue("root"), queue("default"), node("n1"), *gang("train", 4)])
            await until(lambda: runs(world, "train", 4), "a gang runs")
            await world.create(
                [storage_class(LOCAL), volume("v", "n1"), claim("there", LOCAL), csi_node("n1")]
            )
            await world.create([gated(pod("gated")), *mixed_gang()])
            await until(lambda: says(world, "gated", "rbac.removeGates=true"), "the gated pod says why")
            await until(lambda: says(world, "mixed-1", "rbac.bindVolumes=true"), "the other says why")
            await world.create(gang("next", 3))
            await until(lambda: runs(world, "next", 3), "the room is free for others")
            assert not await runs_alone(world, "mixed-0"), "a gang was bound in part"
            # In one namespace only, and for all.
            gates, in_all, *others = optional_roles("remove-gates", "bind-volumes")
            api = Api(audited_plane)
            for item in (gates, *others):
                api.create(PATHS[item["kind"]], item)
            here = {"metadata": {"name": "remove-gates"}, "roleRef": in_all["roleRef"]}
            path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings"
            api.create(path, {**here, "subjects": in_all["subjects"]})
            await world.create([node("n2"), csi_node("n2")])
            await until(lambda: runs_alone(world, "gated"), "the gate is removed")
            await until(lambda: runs(world, "mixed", 2), "the gang with the volume runs")

    with scheduler(audited_plane, tmp_path, ROLE, "--profile=volcano") as log:
        try:
            asyncio.run(main(log))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{log.read_text()}") from error
    lines = log.read_text().splitlines()
    for value in ("createQueues", "removeGates", "bindVolumes"):
        assert sum(f"rbac.{value}=true" in line for line in lines) == 1, value
    # The others are asked for, not tried.
    assert refused(audited_plane) == {("scheduling.volcano.sh", "queues", "create")}


def test_pods_with_config_maps_run_where_config_maps_may_not_be_read(
    audited_plane: Plane, tmp_path: Path
) -> None:
    async def main() -> None:
        async with real_world(audited_plane, "kai") as world, binding(world.direct_port()):
            await world.create([kai_objects.queue(), kai_objects.node("n1", 4)])
            await world.create(with_config_map(kai_objects.gang("train", 2)))
            await until(lambda: runs(world, "train", 2), "pods with a config map run")

    with scheduler(audited_plane, tmp_path, KAI_ROLE, "--profile=kai") as log:
        try:
            asyncio.run(main())
        except AssertionError as error:
            raise AssertionError(f"{error}\n{log.read_text()}") from error
    assert sum("rbac.readConfigMaps=true" in line for line in log.read_text().splitlines()) == 1
    assert refused(audited_plane) == {("", "configmaps", "list")}


def with_config_map(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    api_version, name = {"apiVersion": "v1", "kind": "ConfigMap"}, "settings"
    for item in items:
        if item["kind"] == "Pod":
            item["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": name}}]
    return [{**api_version, "metadata": {"name": name, "namespace": NAMESPACE}}, *items]


def test_labels_and_annotations_of_pods_are_written_through_their_status(
    audited_plane: Plane, tmp_path: Path
) -> None:
    """That takes no permission to patch pods, which would also allow to change their images."""
    kubeconfig = audited_plane.write_kubeconfig(
        tmp_path / "kubeconfig", "maniple", token_of_the_role(audited_plane)
    )

    async def main() -> None:
        async with real_world(audited_plane) as world, Client(load_configuration(kubeconfig)) as client:
            await world.create([pod("one")])
            port, key = KubeCluster(client), f"{NAMESPACE}/one"
            (before,) = await world.objects(Pod)
            metadata = {
                "uid": before.metadata.uid,
                "labels": {"pool": "red"},
                "annotations": {"example.com/note": "n2"},
            }
            image = {"containers": [{"name": "main", "image": "evil:1"}]}
            await port.patch_status(Pod, key, {"metadata": metadata, "spec": image})
            (after,) = await world.objects(Pod)
            assert after.metadata.labels == {"pool": "red"}
            assert after.metadata.annotations["example.com/note"] == "n2"
            assert after.spec.containers[0].image == before.spec.containers[0].image
            with pytest.raises(ApiError) as refusal:
                await port.patch_status(Pod, key, {"spec": image}, False)
            assert refusal.value.denied == "patch pods"
            assert not await port.may("patch", Pod, NAMESPACE)
            assert await port.may("list", Pod)

    asyncio.run(main())


def test_a_permission_to_patch_pods_is_one_to_remove_gates_and_no_more(own_plane: Plane) -> None:
    admin, api = Api(own_plane), Api(own_plane, token=token_of_the_role(own_plane, ROLE, "remove-gates"))
    pods = "/api/v1/namespaces/default/pods"
    versions = count()
    tolerations = {"spec": {"tolerations": [{"operator": "Exists"}]}}
    admin.create(pods, {**gated(pod("one")), "metadata": {"name": "one"}})

    def patch(client: Api, body: object) -> int:
        return client.call("PATCH", f"{pods}/one", body, content="strategic-merge-patch+json").status

    def with_another_image(client: Api) -> int:
        return patch(client, {"spec": {"containers": [{"name": "main", "image": f"evil:{next(versions)}"}]}})

    # A policy takes a moment to be in force.
    eventually(lambda: with_another_image(api) == 422)
    assert patch(api, tolerations) == 422
    assert patch(api, {"spec": {"schedulingGates": None}, "metadata": {"finalizers": ["a.b/c"]}}) == 422
    assert (
        api.call(
            "PATCH", f"{pods}/one", {"spec": {"schedulingGates": None}}, content="merge-patch+json"
        ).status
        == 200
    )
    assert not admin.call("GET", f"{pods}/one").content["spec"].get("schedulingGates")
    # Others are not concerned.
    assert with_another_image(admin) == 200
