"""What a user may not do is asked for, told and not tried; pods that wait for it cost the others nothing."""

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import pytest

from maniple.live import permissions
from maniple.objects.core import ConfigMap, Pod
from maniple.objects.meta import Object
from maniple.planner import Planner
from maniple.sim.clock import run
from tests.live import kai_objects
from tests.live.maniple_scenarios import MANIPLE_SCENARIOS
from tests.live.need_objects import LOCAL, claim, gated, mounting, storage_class, volume
from tests.live.need_scenarios import runs_alone
from tests.live.objects import NAMESPACE, gang, group, node, pod, queue
from tests.live.ports import Between
from tests.live.scenarios import SCENARIOS, Scenario, runs, scheduling
from tests.live.worlds import EmbeddedWorld, until


class DeniedError(Exception):
    """A refusal for want of a permission, as a cluster gives it."""

    def __init__(self, denied: str) -> None:
        super().__init__(f"403 Forbidden: {denied}")
        self.status, self.denied = 403, denied


class Base(Between):
    """A cluster where the user has the base role; `granted` are permissions besides, each a verb and a kind."""

    def __init__(self, port: Any, granted: set[tuple[str, type[Object]]]) -> None:
        super().__init__(port)
        self.granted = granted
        self.asked: Counter[tuple[str, type[Object], str]] = Counter()
        self.refused = 0

    async def may(self, verb: str, kind: type[Object], namespace: str = "") -> bool:
        self.asked[verb, kind, namespace] += 1
        return (verb, kind) in self.granted

    async def patch_status(
        self, kind: type[Object], key: str, patch: Mapping[str, Any], subresource: bool | None = None
    ) -> object:
        if kind is Pod and subresource is False and ("patch", Pod) not in self.granted:
            self.refused += 1
            raise DeniedError("patch pods")
        return await self._port.patch_status(kind, key, patch, subresource)

    async def change(self, item: Object, patch: Mapping[str, Any], *, status: bool = False) -> Object:
        if item.kind == "PersistentVolume" and ("patch", type(item)) not in self.granted:
            self.refused += 1
            raise DeniedError("patch persistentvolumes")
        return await self._port.change(item, patch, status=status)


async def why(world: EmbeddedWorld, name: str) -> str:
    (found,) = [one for one in await world.objects(Pod) if one.metadata.name == name]
    return next((one.message for one in found.status.conditions if one.type == "PodScheduled"), "")


async def says(world: EmbeddedWorld, name: str, value: str) -> bool:
    return f"set the chart's value {value}=true" in await why(world, name)


def test_a_gate_that_may_not_be_removed_takes_no_room_from_its_queue(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        world, granted = EmbeddedWorld(), set[tuple[str, type[Object]]]()
        port = Base(world.port(), granted)
        async with scheduling(world, port=port):
            await world.create([queue("small", capability={"cpu": "4"}), node("n1")])
            await world.create(
                [group("waits", 4, "small"), *(gated(pod(f"waits-{n}", "waits")) for n in range(4))]
            )
            await until(lambda: says(world, "waits-0", "rbac.removeGates"), "the pods say why")
            others = gang("others", 4)
            others[0]["spec"]["queue"] = "small"
            await world.create(others)
            await until(lambda: runs(world, "others", 4), "the queue has room for others", seconds=2.0)
            assert port.refused == 0
            # A pod for each minute of waiting would be too many questions; one is enough.
            assert port.asked["patch", Pod, NAMESPACE] <= 2
            for n in range(4):
                await world.delete(Pod, f"{NAMESPACE}/others-{n}")
            granted.add(("patch", Pod))
            await until(lambda: runs(world, "waits", 4), "the gates are removed once that is allowed")

    with caplog.at_level(logging.WARNING):
        run(main(), virtual=True)
    told = [one for one in caplog.messages if "rbac.removeGates" in one]
    assert told == [str(permissions.REMOVE_GATES)]


def test_a_gang_is_not_bound_in_part_where_volumes_may_not_be_bound() -> None:
    async def main() -> None:
        world = EmbeddedWorld()
        port = Base(world.port(), set())
        async with scheduling(world, port=port):
            await world.create([node("n1"), storage_class(LOCAL), volume("v", "n1"), claim("there", LOCAL)])
            mixed = [pod("mixed-0", "mixed"), mounting(pod("mixed-1", "mixed"), "there")]
            await world.create([group("mixed", 2), *mixed, *gang("whole", 4)])
            await until(lambda: says(world, "mixed-1", "rbac.bindVolumes"), "the pod says why")
            await until(lambda: runs(world, "whole", 4), "the others run")
            assert port.refused == 0
            assert not await runs_alone(world, "mixed-0")

    run(main(), virtual=True)


def test_a_permission_that_is_withdrawn_is_noticed_by_the_refusal() -> None:
    async def main() -> None:
        world, granted = EmbeddedWorld(), set[tuple[str, type[Object]]]([("patch", Pod)])
        port = Base(world.port(), granted)
        async with scheduling(world, port=port):
            await world.create([node("n1"), gated(pod("first"))])
            await until(lambda: runs_alone(world, "first"), "the gate is removed")
            granted.clear()
            await world.create([gated(pod("second"))])
            await until(lambda: says(world, "second", "rbac.removeGates"), "the pod says why")
            assert port.refused == 1

    run(main(), virtual=True)


class WithoutConfigMaps(Between):
    """A cluster where the user may not list config maps."""

    async def changes(self, kinds: Iterable[type[Object]]) -> AsyncGenerator[Any]:
        others = [kind for kind in kinds if kind is not ConfigMap]
        yield SimpleNamespace(type="forbidden", kind=ConfigMap, object=None, problem=None)
        async with aclosing(self._port.changes(others)) as changes:
            async for change in changes:
                yield change


def test_config_maps_that_may_not_be_listed_are_not_missing(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        world = EmbeddedWorld()
        async with scheduling(
            world, WithoutConfigMaps(world.port()), profile="kai", bind="direct"
        ) as scheduler:
            one = kai_objects.pod("train-0", "train", 0)
            one["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}]
            await world.create(
                [kai_objects.queue(), kai_objects.node("n1"), kai_objects.group("train", 1), one]
            )
            await until(lambda: runs(world, "train", 1), "the pod runs")
            # Nothing waits, so that no alert is due.
            assert scheduler.forbidden == set()
            assert scheduler.unlisted() == set()
            scheduler.adopt(Planner(profile="kai", options={"debug": True}))
            await world.create([kai_objects.group("next", 1), again(one)])
            await until(lambda: runs(world, "next", 1), "the same after a new configuration")

    with caplog.at_level(logging.WARNING):
        run(main(), virtual=True)
    assert caplog.messages.count(str(permissions.READ_CONFIG_MAPS)) == 1


def again(one: dict[str, Any]) -> dict[str, Any]:
    return {**kai_objects.pod("next-0", "next", 0), "spec": one["spec"]}


def test_the_label_of_a_node_pool_takes_no_permission_to_patch_pods() -> None:
    async def main() -> None:
        world = EmbeddedWorld()
        port = Base(world.port(), set())
        pool = {"nodePoolLabelKey": "pool", "nodePoolLabelValue": "red"}
        async with scheduling(world, port, profile="kai", options=pool, bind="direct"):
            made = [kai_objects.queue(), kai_objects.node("n1"), *kai_objects.gang("train", 1)]
            for item in made:
                if item["kind"] != "Pod":
                    item["metadata"].setdefault("labels", {})["pool"] = "red"
            await world.create(made)

            async def labelled() -> bool:
                return [one.metadata.labels.get("pool") for one in await world.objects(Pod)] == ["red"]

            await until(labelled, "the pod has the label")
            assert port.refused == 0

    run(main(), virtual=True)


class BaseWorld(EmbeddedWorld):
    def port(self) -> Any:
        return Base(super().port(), set())


@pytest.mark.parametrize("scenario", [*SCENARIOS, *MANIPLE_SCENARIOS], ids=lambda scenario: scenario.__name__)
def test_scenario_with_the_base_role(scenario: Scenario) -> None:
    """Moves of pods among them: where one is to go is written into it before it is evicted."""

    async def main() -> None:
        await scenario(BaseWorld())

    run(main(), virtual=True)
