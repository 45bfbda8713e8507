"""The role in examples/rbac-maniple.yaml is sufficient and minimal for objects of both systems."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from maniple.kube.kinds import KINDS
from maniple.live.dialects import dialect_of
from maniple.objects.kai import BindRequest
from maniple.objects.owners import OWNER_KINDS
from maniple.planner import Planner
from plane.plane import Plane
from tests.live import kai_objects
from tests.live.audit import OF_OWNERS, WITH_SHARDS, allowed, unused
from tests.live.binder import binding
from tests.live.maniple_scenarios import (
    HIGH,
    OPTIONS,
    QUEUES,
    both_run,
    gang,
    kai_group,
    of_both,
    volcano_group,
)
from tests.live.native_scenarios import is_scheduled, members, pod_group
from tests.live.need_objects import csi_node
from tests.live.objects import node, pod
from tests.live.scenarios import conditions, runs
from tests.live.test_permissions import are_refused, has_all, needs_of_one, needy, running, token_of_the_role
from tests.live.worlds import real_world, until
from tests.plane.api import Api

ROLE = Path(__file__).parent.parent.parent / "examples" / "rbac-maniple.yaml"
FEATURES = ("bind-volumes", "create-queues")


def test_exactly_the_kinds_that_are_watched_may_be_listed_and_watched() -> None:
    planner = Planner(profile="maniple", options={"shard": {"mode": "hard", "name": "a"}})
    triggers = planner.registry.triggers(planner.configuration)
    kinds = (*dialect_of("maniple", planner.options, triggers.kinds).kinds, *OWNER_KINDS)
    watched = {(KINDS[kind].group, KINDS[kind].plural) for kind in kinds}
    for verb in ("list", "watch"):
        assert {(group, resource) for group, resource, one in allowed(ROLE) if one == verb} == watched


def test_the_role_is_enough_to_schedule_and_allows_no_more(audited_plane: Plane, tmp_path: Path) -> None:
    token, log = token_of_the_role(audited_plane, ROLE, *FEATURES), tmp_path / "output"
    kubeconfig = audited_plane.write_kubeconfig(tmp_path / "kubeconfig", "maniple", token)
    names = [f"--scheduler-name={name}" for name in OPTIONS["schedulerName"]]
    code = f"from maniple.cli.main import main; main({['run', '--kubeconfig', str(kubeconfig), *names]!r})"

    async def main() -> None:
        async with real_world(audited_plane, "") as world, binding(world.direct_port()):
            await world.create([*QUEUES, HIGH, node("n1"), *of_both("train", 4)])
            await world.create([node("n2"), csi_node("n2"), *needs_of_one("n2")])
            with log.open("w") as output, running([sys.executable, "-c", code], output):
                async with world.controllers():
                    await world.create([needy(pod("needy"))])
                    await until(lambda: has_all(world, "needy"), "the pod that needs more runs")
                await until(lambda: both_run(world, "train", 4), "both gangs run")
                await world.create([pod_group("native", 1)])
                await world.create(members("native", 1))
                await until(lambda: is_scheduled(world, "native"), "the native group has its condition")
                await world.create(of_both("later", 8))
                await until(lambda: _told(world, "later"), "the gangs that wait are told why")
                await world.create(gang("urgent", 14, kai=True, priorityClassName="high"))
                await until(lambda: runs(world, "urgent", 14), "room is made for a higher gang")
                await _shares_by_request(world)

    try:
        asyncio.run(main())
    except AssertionError as error:
        raise AssertionError(f"{error}\n{log.read_text()}") from error
    assert "forbidden" not in log.read_text().lower()
    assert unused(audited_plane, ROLE, *FEATURES) - WITH_SHARDS - OF_OWNERS == {
        ("scheduling.run.ai", "bindrequests", "delete"),  # one that failed
    }
    api = Api(audited_plane, token=token)
    are_refused(
        api,
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/configmaps"),
        ("POST", "/api/v1/namespaces/default/pods"),
        ("PATCH", "/api/v1/namespaces/default/pods/p"),
        ("DELETE", "/api/v1/nodes/n1"),
        ("POST", "/apis/scheduling.run.ai/v2/queues"),
        ("GET", "/apis/kai.scheduler/v1alpha1/schedulingshards"),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
    )


async def _told(world: Any, prefix: str) -> bool:
    ours = conditions(await volcano_group(world, f"{prefix}-v"))["Unschedulable"]
    theirs = (await kai_group(world, f"{prefix}-k")).status.scheduling_conditions
    return ours[0] == "True" and bool(theirs)


async def _shares_by_request(world: Any) -> None:
    half = kai_objects.pod("half-0", "half", 0, **{"gpu-fraction": "0.5"})
    await world.create([kai_objects.node("gpus", 1, **{"nvidia.com/gpu.memory": "1000"})])
    await world.create([kai_objects.group("half", 1), half])

    async def asked_for() -> bool:
        return "half-0" in {one.metadata.name for one in await world.objects(BindRequest)}

    await until(asked_for, "a pod that shares a device is bound by request")
