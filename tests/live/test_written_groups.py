"""Groups that cannot be written: what is said, how often it is tried, and that the gang is scheduled all the same.

And the role of `maniple group`, on a real API server: sufficient and minimal.
"""

import asyncio
import logging
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from maniple.live import group_writer
from maniple.live.group_writer import NOT_WRITTEN
from maniple.live.permissions import WRITE_GROUPS
from maniple.objects.core import Pod
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoPodGroup
from maniple.sim.clock import run
from maniple.web.health import Health
from maniple.web.metrics import Metrics
from maniple.web.view import View
from plane.plane import Plane
from tests.journal.recording import check, recorded
from tests.live.audit import OF_OWNERS, features, refused, used
from tests.live.group_scenarios import JOB, bound, created, job, messages, pods
from tests.live.objects import NAMESPACE, node
from tests.live.ports import Between, RefusedError
from tests.live.scenarios import Scenario, scheduling
from tests.live.test_missing_permissions import DeniedError
from tests.live.test_permissions import PATHS, running, token_of_the_role
from tests.live.worlds import EmbeddedWorld, real_world, until
from tests.live.written_group_scenarios import (
    WRITING,
    WRITTEN_GROUP_SCENARIOS,
    are_bound,
    controlling,
    gang,
    groups,
    is_written,
    pods_leave_their_group,
)
from tests.plane.api import Api

ROLE = Path(__file__).parent.parent.parent / "examples" / "rbac-maniple.yaml"


class NotCreating(Between):
    """Refuses to create PodGroups with an error, while there is one."""

    def __init__(self, port: Any, error: Exception) -> None:
        super().__init__(port)
        self.error: Exception | None = error
        self.refused: Counter[str] = Counter()

    async def create(self, raw: Mapping[str, Any], *, same: bool = False) -> object:
        if raw["kind"] == "PodGroup" and self.error is not None:
            self.refused[raw["metadata"]["name"]] += 1
            raise self.error
        return await self._port.create(raw, same=same)


def test_without_the_permission_the_groups_in_memory_count_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        world = EmbeddedWorld()
        port = NotCreating(world.port(), DeniedError("create podgroups"))
        async with scheduling(world, port, **WRITING):
            await world.create([node("n1", 11)])
            first = await gang(world, "first", 4)
            await until(lambda: are_bound(world, "first", 4), "the gang is bound")
            second = await gang(world, "second", 4)
            await until(lambda: are_bound(world, "second", 4), "so is the next")
            third = await gang(world, "third", 4)

            async def waits() -> bool:
                return len(await messages(world, "third")) == 4

            await until(waits, "one that does not fit waits whole")
            # One was tried, and none again before a minute is over.
            assert port.refused == {first: 1}
            port.error = None

            async def all_written() -> bool:
                named = [await is_written(world, *one) for one in (("first", first), ("second", second))]
                return all(named) and await is_written(world, "third", third)

            await until(all_written, "they are written once that is allowed")

    with caplog.at_level(logging.WARNING):
        run(main(), virtual=True)
    assert [one for one in caplog.messages if "writeGroups" in one] == [str(WRITE_GROUPS[0])]


@pytest.mark.parametrize(("status", "attempts"), [(422, 1), (503, 6)])
def test_a_refusal_names_group_and_verb_on_the_pods_and_is_not_repeated_for_ever(
    status: int, attempts: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        world = EmbeddedWorld()
        port = NotCreating(world.port(), RefusedError(status))
        async with scheduling(world, port, **WRITING):
            await world.create([node("n1", 4)])
            name = await gang(world, "count", 4)
            await until(lambda: are_bound(world, "count", 4), "the gang is bound")

            async def said() -> bool:
                notes = [one for one in await world.notes() if one.reason == NOT_WRITTEN]
                return len(notes) == 4 and all(
                    f"PodGroup {NAMESPACE}/{name}: cannot create it: {status}" in one.note for one in notes
                )

            await until(said, "an event on each pod")
            await asyncio.sleep(30)
            assert port.refused == {name: attempts}
            port.error = None
            await until(lambda: is_written(world, "count", name), "it is written later")

    with caplog.at_level(logging.WARNING):
        run(main(), virtual=True)
    assert sum("cannot create it" in one for one in caplog.messages) == 1


class Without(Between):
    """A cluster without a definition, until it is installed."""

    def __init__(self, port: Any, kind: type[Object]) -> None:
        super().__init__(port)
        self._kind = kind
        self.installed = asyncio.Event()

    async def changes(self, kinds: Iterable[type[Object]]) -> AsyncGenerator[Any]:
        others = [kind for kind in kinds if kind is not self._kind]
        told: asyncio.Queue[Any] = asyncio.Queue()
        told.put_nowait(SimpleNamespace(type="absent", kind=self._kind, object=None, problem=None))

        async def read(chosen: list[type[Object]]) -> None:
            async with aclosing(self._port.changes(chosen)) as changes:
                async for change in changes:
                    told.put_nowait(change)

        async def read_later() -> None:
            await self.installed.wait()
            await read([self._kind])

        readers = [asyncio.create_task(read(others)), asyncio.create_task(read_later())]
        try:
            while True:
                yield await told.get()
        finally:
            for one in readers:
                one.cancel()


def test_nothing_is_written_where_the_definition_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        world = EmbeddedWorld()
        port = Without(world.port(), VolcanoPodGroup)
        async with scheduling(world, port, **WRITING):
            await world.create([node("n1", 4)])
            name = await gang(world, "count", 4)
            await until(lambda: are_bound(world, "count", 4), "the gang is bound")
            assert await groups(world) == {}
            port.installed.set()
            await until(lambda: is_written(world, "count", name), "it is written once there is a definition")

    with caplog.at_level(logging.WARNING):
        run(main(), virtual=True)
    told = [one for one in caplog.messages if "groups of that kind are not written" in one]
    assert len(told) == 1
    assert "scheduling.volcano.sh/PodGroup" in told[0]


def test_a_write_that_the_watch_never_shows_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Losing(Between):
        """Says that it has created the first group, and has not."""

        lost = 0

        async def create(self, raw: Mapping[str, Any], *, same: bool = False) -> object:
            if raw["kind"] == "PodGroup" and not self.lost:
                self.lost += 1
                return None
            return await self._port.create(raw, same=same)

    async def main() -> None:
        world = EmbeddedWorld()
        async with scheduling(world, Losing(world.port()), **WRITING):
            await world.create([node("n1", 4)])
            name = await gang(world, "count", 4)
            await until(lambda: is_written(world, "count", name), "the group is written")

    monkeypatch.setattr(group_writer, "CONFIRM_SECONDS", 3.0)
    run(main(), virtual=True)


def test_a_group_goes_with_its_owner_and_its_pods() -> None:
    async def main() -> None:
        world = EmbeddedWorld()
        async with scheduling(world, **WRITING) as scheduler:
            await world.create([node("n1", 4)])
            name = await gang(world, "count", 4)
            await until(lambda: is_written(world, "count", name), "the group is written")
            await world.delete(JOB, f"{NAMESPACE}/count")
            for number in range(4):
                await world.delete(Pod, f"{NAMESPACE}/count-{number}")

            async def gone() -> bool:
                return not await groups(world) and not scheduler.cache.cluster.jobs.objects

            await until(gone, "nothing is left of it, nor written again")

    run(main(), virtual=True)


def test_the_controller_is_healthy_and_has_metrics() -> None:
    async def main() -> tuple[list[str], str]:
        world = EmbeddedWorld()
        async with controlling(world) as controller:
            health = Health(controller)
            name = await gang(world, "count", 4)
            await until(lambda: is_written(world, "count", name), "the group is written")
            return [
                *health.not_alive(),
                *health.not_ready(),
                *health.remarks(),
            ], Metrics(View(controller), health).page().decode()

    said, page = run(main(), virtual=True)
    assert said == ["no leader election"]
    assert 'maniple_writes_total{write="create",result="ok"} 1.0' in page


@pytest.mark.parametrize("scenario", WRITTEN_GROUP_SCENARIOS, ids=lambda one: one.__name__)
def test_every_cycle_with_written_groups_rewinds_to_its_plan(scenario: Scenario, tmp_path: Path) -> None:
    async def main() -> None:
        await scenario(EmbeddedWorld())

    with recorded(tmp_path) as made:
        run(main(), virtual=True)
    assert check(made)


# -- the command, on a real API server ---------------------------------------------------------------------------------


def test_the_role_of_the_controller_is_enough_and_allows_no_more(
    audited_plane: Plane, tmp_path: Path
) -> None:
    token, log = token_of_the_role(audited_plane, ROLE, "write-groups"), tmp_path / "output"
    api = Api(audited_plane)
    name = "maniple:maniple-system:scheduler-maniple"
    assert api.call("DELETE", f"{PATHS['ClusterRoleBinding']}/{name}").status == 200
    kubeconfig = audited_plane.write_kubeconfig(tmp_path / "kubeconfig", "maniple", token)
    words = ["group", "--kubeconfig", str(kubeconfig), "--listen=off"]
    code = f"from maniple.cli.main import main; main({words!r})"

    async def main() -> None:
        async with real_world(audited_plane, "") as world:
            with log.open("w") as output, running([sys.executable, "-c", code], output) as command:
                await world.create([node("n1", 4)])
                written = await gang(world, "count", 4)
                await until(lambda: is_written(world, "count", written), "the group is written")
                fewer = {"metadata": {"labels": {"maniple.dev/min-member": "2"}}}
                await world.patch(JOB, f"{NAMESPACE}/count", fewer)

                async def follows() -> bool:
                    return bool((await groups(world))[written].spec.min_member == 2)

                await until(follows, "it follows its owner")
                await _taken_name(world)
                await pods_leave_their_group(world)
                assert await bound(world, "left") == 0
                assert await bound(world, "count") == 0
                command.send_signal(signal.SIGTERM)
                await asyncio.to_thread(command.wait, 30)
            assert command.returncode == 0

    try:
        asyncio.run(main())
    except AssertionError as error:
        raise AssertionError(f"{error}\n{log.read_text()}") from error
    assert not refused(audited_plane)
    of_kai = {("scheduling.run.ai", "podgroups", verb) for verb in ("create", "patch", "delete")}
    rarely = {("events.k8s.io", "events", "patch")}
    assert features("write-groups") - used(audited_plane) - OF_OWNERS - of_kai - rarely == set()


async def _taken_name(world: Any) -> None:
    """Somebody else has a group of that name: events say so."""
    uid = await created(world, job("taken", 2, "2"))
    metadata = {"name": f"podgroup-{uid}", "namespace": NAMESPACE}
    body = {"metadata": metadata, "spec": {"minMember": 1}}
    await world.create([{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", **body}])
    await world.create(pods("taken", 2, uid=uid))

    async def said() -> bool:
        return len([one for one in await world.notes() if one.reason == NOT_WRITTEN]) == 2

    await until(said, "events on the pods")
