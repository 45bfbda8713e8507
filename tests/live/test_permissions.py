"""The role in examples/rbac.yaml is sufficient and minimal, on a real API server."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import yaml

from maniple.objects.core import PersistentVolumeClaim
from maniple.objects.dra import ResourceClaim
from maniple.objects.volcano import NodeShard
from plane.plane import Plane
from tests.live.audit import OF_OWNERS, WITH_SHARDS, optional_roles, refused, unused, used
from tests.live.native_scenarios import is_scheduled, members, pod_group
from tests.live.need_objects import (
    LOCAL,
    MADE,
    claim,
    claiming,
    csi_node,
    device_class,
    devices,
    gated,
    resource_claim,
    storage_class,
    volume,
)
from tests.live.need_scenarios import runs_alone
from tests.live.objects import gang, node, pod, queue
from tests.live.operation_scenarios import shard
from tests.live.scenarios import runs
from tests.live.worlds import real_world, until
from tests.plane.api import Api

ROLE = Path(__file__).parent.parent.parent / "examples" / "rbac.yaml"
FEATURES = ("remove-gates", "bind-volumes", "create-queues")
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/maniple-system/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/maniple-system/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/maniple-system/rolebindings",
    "ValidatingAdmissionPolicy": f"{_ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{_ADMISSION}/validatingadmissionpolicybindings",
}


def role_objects(role: Path = ROLE) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(role.read_text(encoding="utf-8")))


def token_of_the_role(plane: Plane, role: Path = ROLE, *optional: str) -> str:
    """The token of the service account, which has this role and those of some features."""
    api = Api(plane)
    for item in [*role_objects(role), *optional_roles(*optional)]:
        api.create(PATHS[item["kind"]], item)
    answer = api.create(f"{PATHS['ServiceAccount']}/maniple/token", {"spec": {}})
    token: str = answer["status"]["token"]
    return token


def test_the_roles_are_enough_to_schedule(audited_plane: Plane, tmp_path: Path) -> None:
    kubeconfig = audited_plane.write_kubeconfig(
        tmp_path / "kubeconfig", "maniple", token_of_the_role(audited_plane, ROLE, *FEATURES)
    )
    code = f"from maniple.cli.main import main; main(['run', '--profile', 'volcano', '--kubeconfig', {str(kubeconfig)!r}])"

    log = tmp_path / "output"

    async def main() -> None:
        async with real_world(audited_plane) as world:
            # Into a file, not a pipe that nobody reads: what it says must not hold it up, and a failure shows it.
            with log.open("w") as output, running([sys.executable, "-c", code], output):
                await world.create([node("n1"), *gang("train", 8)])
                await until(lambda: runs(world, "train", 8), "the gang runs")
                await world.create([node("n2"), csi_node("n2"), *needs_of_one("n2")])
                async with world.controllers():
                    await world.create([needy(pod("needy"))])
                    await until(lambda: has_all(world, "needy"), "the pod that needs more runs")
                await world.create([gated(pod("admitted"))])
                await until(lambda: runs_alone(world, "admitted"), "the pod that its queue admits runs")
                await world.create([pod_group("native", 1)])
                await world.create(members("native", 1, "volcano"))
                await until(lambda: is_scheduled(world, "native"), "the native group has its condition")
                await world.create(gang("later", 8))
                await until(lambda: _told(world, "later"), "the gang that waits is told why")

    try:
        asyncio.run(main())
    except AssertionError as error:
        raise AssertionError(f"{error}\n{log.read_text()}") from error
    output = log.read_text()
    assert "forbidden" not in output.lower()
    # No action of the default configuration evicts.
    assert unused(audited_plane, ROLE, *FEATURES) - OF_OWNERS == {("", "pods", "delete")} | WITH_SHARDS
    assert "8 of 8 bound: n1 ×8" in output


def test_the_role_is_enough_for_a_shard(audited_plane: Plane, tmp_path: Path) -> None:
    kubeconfig = audited_plane.write_kubeconfig(
        tmp_path / "kubeconfig", "maniple", token_of_the_role(audited_plane)
    )
    words = ["run", "--profile=volcano", f"--kubeconfig={kubeconfig}"]
    words += ["--scheduler-sharding-mode=hard", "--scheduler-sharding-name=red"]
    log = tmp_path / "output"

    async def main() -> None:
        async with real_world(audited_plane) as world:
            code = f"from maniple.cli.main import main; main({words!r})"
            await world.create([queue("root"), queue("default")])
            with log.open("w") as output, running([sys.executable, "-c", code], output):
                await world.create([node("n1"), shard("red", "n1"), *gang("train", 8)])
                await until(lambda: runs(world, "train", 8), "the gang runs")

                async def says_so() -> bool:
                    return [list(one.status.nodes_in_use) for one in await world.objects(NodeShard)] == [
                        ["n1"]
                    ]

                await until(says_so, "the shard has its status")

    asyncio.run(main())
    assert used(audited_plane) >= WITH_SHARDS
    assert not refused(audited_plane)


def test_without_one_permission_that_is_not_essential_the_rest_is_scheduled(
    audited_plane: Plane, tmp_path: Path
) -> None:
    role = tmp_path / "role.yaml"
    role.write_text(ROLE.read_text(encoding="utf-8").replace("csidrivers, ", ""), encoding="utf-8")
    kubeconfig = audited_plane.write_kubeconfig(
        tmp_path / "kubeconfig", "maniple", token_of_the_role(audited_plane, role)
    )
    code = f"from maniple.cli.main import main; main(['run', '--profile', 'volcano', '--kubeconfig', {str(kubeconfig)!r}])"
    log = tmp_path / "output"

    async def main() -> None:
        async with real_world(audited_plane) as world:
            await world.create([queue("root"), queue("default")])
            with log.open("w") as output, running([sys.executable, "-c", code], output):
                await world.create([node("n1"), *gang("train", 8)])
                await until(lambda: runs(world, "train", 8), "the gang runs")

    asyncio.run(main())
    assert "storage.k8s.io/CSIDriver: this user may not list it" in log.read_text()


@contextmanager
def running(command: list[str], output: IO[str]) -> Iterator["subprocess.Popen[str]"]:
    """A command that ends with the block, however the block ends; in order if it can."""
    with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
            process.terminate()
            process.wait(timeout=60)
        finally:
            process.kill()


def needs_of_one(node: str) -> list[dict[str, Any]]:
    """What a pod needs besides a node, of every kind."""
    volumes = [storage_class(LOCAL), volume("v", node), claim("there", LOCAL)]
    return [
        *volumes,
        storage_class(MADE),
        claim("made", MADE),
        device_class(),
        devices(node, 1),
        resource_claim("mine"),
    ]


def needy(raw: dict[str, Any]) -> dict[str, Any]:
    """A pod that needs all of it."""
    both = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("there", "made")]
    asks = claiming(raw, "mine")
    return {**asks, "spec": {**asks["spec"], "volumes": both}}


async def has_all(world: Any, name: str) -> bool:
    claims = await world.objects(PersistentVolumeClaim)
    (mine,) = await world.objects(ResourceClaim)
    return (
        await runs_alone(world, name)
        and all(one.spec.volume_name for one in claims)
        and [user.name for user in mine.status.reserved_for] == [name]
    )


async def _told(world: Any, name: str) -> bool:
    return any(name in note.regarding and note.reason == "Unschedulable" for note in await world.notes())


def are_refused(api: Api, *calls: tuple[str, str]) -> None:
    """Each a method and a path."""
    for method, path in calls:
        assert api.call(method, path, {} if method == "POST" else None).status == 403, (method, path)


def test_the_role_allows_no_more_than_that(audited_plane: Plane) -> None:
    api = Api(audited_plane, token=token_of_the_role(audited_plane))
    assert api.call("GET", "/api/v1/pods").status == 200
    are_refused(
        api,
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/configmaps"),
        ("POST", "/api/v1/namespaces/default/pods"),
        ("PATCH", "/api/v1/namespaces/default/pods/p"),
        ("DELETE", "/api/v1/nodes/n1"),
        ("PATCH", "/api/v1/nodes/n1"),
        ("DELETE", "/api/v1/persistentvolumes/v1"),
        ("PATCH", "/api/v1/persistentvolumes/v1"),
        ("POST", "/apis/scheduling.volcano.sh/v1beta1/queues"),
        ("POST", "/api/v1/namespaces/default/persistentvolumeclaims"),
        ("DELETE", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c"),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
        ("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/maniple-system/leases/other"),
    )
