"""The role in examples/rbac-kai.yaml is sufficient and minimal for KAI's objects."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from maniple.kube.kinds import KINDS
from maniple.live.kai import Kai
from maniple.objects.dra import ResourceClaim
from maniple.objects.kai import BindRequest
from maniple.plugins.kai.predicates import Predicates
from plane.plane import Plane
from tests.live.audit import allowed, features, unused
from tests.live.binder import binding
from tests.live.kai_objects import QUEUE, gang, group, node, pod, queue
from tests.live.kai_scenarios import group_of
from tests.live.objects import NAMESPACE
from tests.live.scenarios import runs
from tests.live.test_kai_binding import request_for
from tests.live.test_permissions import (
    are_refused,
    has_all,
    needs_of_one,
    needy,
    running,
    token_of_the_role,
)
from tests.live.worlds import real_world, until
from tests.plane.api import Api

ROLE = Path(__file__).parent.parent.parent / "examples" / "rbac-kai.yaml"
HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 75,
}


# What is written only with --bind direct; else KAI's binder does it.
DIRECTLY = ("bind-directly", "bind-volumes")
WITH_SHARD = {("kai.scheduler", "schedulingshards", verb) for verb in ("get", "list", "watch")} | {
    ("kai.scheduler", "configs", "get")
}
CONFIG_MAPS = "read-config-maps"


def test_exactly_the_kinds_that_are_watched_may_be_listed_and_watched() -> None:
    watched = {
        (KINDS[kind].group, KINDS[kind].plural)
        for kind in Kai(more_kinds=Predicates.triggers.kinds, shard="a").kinds
    }
    for verb in ("list", "watch"):
        assert {
            (group, resource) for group, resource, one in allowed(ROLE, CONFIG_MAPS) if one == verb
        } == watched


def test_the_role_is_enough_to_schedule_and_allows_no_more(audited_plane: Plane, tmp_path: Path) -> None:
    token, log = token_of_the_role(audited_plane, ROLE, CONFIG_MAPS), tmp_path / "output"
    kubeconfig = audited_plane.write_kubeconfig(tmp_path / "kubeconfig", "maniple", token)
    arguments = ["run", "--profile", "kai", "--kubeconfig", str(kubeconfig)]
    code = f"from maniple.cli.main import main; main({arguments!r})"

    async def main() -> None:
        async with real_world(audited_plane, "kai") as world, binding(world.direct_port()):
            await world.create([queue(), HIGH, node("n1", 4), *gang("train", 4)])
            with log.open("w") as output, running([sys.executable, "-c", code], output):
                await until(lambda: runs(world, "train", 4), "the gang runs")
                await world.create(gang("later", 4))
                await until(lambda: _told(world, "later"), "the gang that waits is told why")
                await _clears_away(world)
                await world.create(gang("urgent", 4, priorityClassName="high"))
                await until(lambda: runs(world, "urgent", 4), "room is made for a higher gang")

    try:
        asyncio.run(main())
    except AssertionError as error:
        raise AssertionError(f"{error}\n{log.read_text()}") from error
    assert "forbidden" not in log.read_text().lower()
    assert unused(audited_plane, ROLE, CONFIG_MAPS) == WITH_SHARD
    api = Api(audited_plane, token=token)
    are_refused(
        api,
        ("GET", "/api/v1/secrets"),
        ("POST", "/api/v1/namespaces/default/pods"),
        ("PATCH", "/api/v1/namespaces/default/pods/p"),
        ("POST", "/api/v1/namespaces/default/pods/p/binding"),
        ("PATCH", "/api/v1/persistentvolumes/v1"),
        ("PATCH", "/api/v1/namespaces/default/persistentvolumeclaims/c"),
        ("DELETE", "/api/v1/nodes/n1"),
        ("POST", "/apis/scheduling.run.ai/v2/queues"),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
    )


def test_the_role_is_enough_to_bind_directly(audited_plane: Plane, tmp_path: Path) -> None:
    token = token_of_the_role(audited_plane, ROLE, *DIRECTLY, CONFIG_MAPS)
    log = tmp_path / "output"
    kubeconfig = audited_plane.write_kubeconfig(tmp_path / "kubeconfig", "maniple", token)
    arguments = ["run", "--profile", "kai", "--bind", "direct", "--kubeconfig", str(kubeconfig)]
    code = f"from maniple.cli.main import main; main({arguments!r})"

    async def main() -> None:
        async with real_world(audited_plane, "kai") as world, world.controllers():
            await world.create([queue(), node("n1", 4), *needs_of_one("n1"), group("one", 1)])
            # A claim for GPUs that several pods may use says whose they are.
            labels = {"metadata": {"labels": {"kai.scheduler/queue": QUEUE}}}
            await world.patch(ResourceClaim, f"{NAMESPACE}/mine", labels)
            await world.create([needy(pod("needy", "one", 0))])
            with log.open("w") as output, running([sys.executable, "-c", code], output):
                await until(lambda: has_all(world, "needy"), "the pod that needs more runs")

    try:
        asyncio.run(main())
    except AssertionError as error:
        raise AssertionError(f"{error}\n{log.read_text()}") from error
    assert "forbidden" not in log.read_text().lower()
    assert not unused(audited_plane, ROLE, *DIRECTLY) & features(*DIRECTLY)


async def _told(world: Any, name: str) -> bool:
    return bool((await group_of(world, name)).status.scheduling_conditions)


async def _clears_away(world: Any) -> None:
    failed = request_for("old", "nowhere", "x")
    await world.create([failed])

    async def gone() -> bool:
        return all(one.metadata.name != "old" for one in await world.objects(BindRequest))

    await until(gone, "a request that leads nowhere is deleted")
