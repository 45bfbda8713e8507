"""The webhook and a real API server: what is refused, what is filled in, rotation under load, and its end."""

import asyncio
import base64
import logging
import ssl
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

pytest.importorskip("cryptography")

from maniple.admission import webhook as webhook_module
from maniple.admission.authority import Lives, material_of
from maniple.admission.keeping import SECRETS
from maniple.admission.registration import MUTATING, VALIDATING, Place, Registration
from maniple.admission.webhook import Options, Webhook
from maniple.admission.world import Settings, World
from maniple.kube import crds
from maniple.kube.client import Client
from maniple.kube.configuration import load_configuration
from maniple.kube.errors import ApiError
from maniple.kube.kinds import KINDS, PODS, resource_of
from maniple.objects.core import Namespace
from maniple.objects.kai import KaiPodGroup
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue
from maniple.planner import Planner
from plane.control import free_port
from plane.plane import Plane
from tests.admission.scene import Raw, group, kai_group, kai_queue, namespace, pod, queue
from tests.live.worlds import until

SYSTEM = "maniple-system"
SECRET = f"{SYSTEM}/hook-tls"
NAME = "maniple-admission"
# As in use: the last third of a certificate's life is longer than the overlap, and that than the time between looks.
SHORT = Lives(timedelta(seconds=24), timedelta(seconds=18), timedelta(seconds=1))
NAMESPACES, GROUPS = KINDS[Namespace].at("v1"), KINDS[VolcanoPodGroup].at("v1beta1")
KAI_GROUPS, QUEUES = KINDS[KaiPodGroup].at("v2alpha2"), KINDS[VolcanoQueue].at("v1beta1")


@dataclass
class Stage:
    """A cluster with its administrator, and how webhooks are started on it."""

    client: Client
    port: int

    async def create(self, *raws: Raw) -> None:
        for raw in raws:
            await self.client.create(resource_of(raw), raw["metadata"].get("namespace", ""), raw)

    async def refusal(self, raw: Raw) -> str:
        """Why the API server does not create an object; empty if it did."""
        try:
            await self.create(raw)
        except ApiError as error:
            return error.message
        return ""

    def webhook(self, *, closed: bool = False, port: int = 0, **options: Any) -> Webhook:
        skipped = frozenset({"kube-system", SYSTEM})
        registration = Registration(NAME, Place(url=f"https://127.0.0.1:{self.port}"), closed, skipped)
        where = Options(
            "127.0.0.1",
            port or self.port,
            SECRET,
            drain_seconds=0,
            look_again=0.5,
            **{"look_seconds": 0.5, **options},
        )
        return Webhook(self.client, World(Planner()), Settings(skipped), registration, where)

    @asynccontextmanager
    async def running(self, **options: Any) -> AsyncIterator[Webhook]:
        one = self.webhook(**options)
        task = asyncio.create_task(one.run())
        try:
            started = asyncio.create_task(one.started.wait())
            await asyncio.wait([task, started], return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await task
            yield one
        finally:
            one.stop()
            await task


def on_plane(plane: Plane, scenario: Callable[[Stage], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Client(load_configuration(plane.kubeconfig)) as client:
            async for _ in crds.install(client, crds.manifests()):
                pass
            stage = Stage(client, free_port())
            await stage.create(namespace(SYSTEM), namespace("team"))
            await scenario(stage)

    asyncio.run(main())


async def in_force(stage: Stage, raw: Raw, words: str) -> None:
    """A configuration takes a moment to be in force; until then a dry run of a bad object passes."""
    path = resource_of(raw).path_in(raw["metadata"].get("namespace", ""))

    async def refused() -> bool:
        try:
            await stage.client.request("POST", path, query={"dryRun": "All"}, body=raw, idempotent=True)
        except ApiError as error:
            return words in error.message
        return False

    await until(refused, f"refused: {words}")


BAD_POD = pod("bad", annotations={"gpu-fraction": "7"})


async def all_in_force(stage: Stage) -> None:
    await in_force(stage, queue("bad", "nowhere"), "does not exist")
    await in_force(stage, group("bad", "nowhere"), "does not exist")
    await in_force(stage, BAD_POD, "gpu-fraction")


def test_bad_objects_are_refused_and_good_ones_pass(own_plane: Plane) -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.running():
            await all_in_force(stage)
            await stage.create(queue("research"), queue("vision", "research"), group("g", "vision"))
            await stage.create(kai_queue("speech", "research", 4), kai_group("k", "speech"))
            await stage.create(pod("good", annotations={"gpu-fraction": "0.5"}))
            refused = [
                (queue("q", "reserch"), "Queue q: spec.parent: queue 'reserch' does not exist"),
                (queue("q", deserved={"cpu": "-1"}), "Queue q: spec.deserved.cpu: must not be negative"),
                (group("h", "vison"), "PodGroup team/h: spec.queue: queue 'vison' does not exist"),
                (kai_group("h", "vison"), "PodGroup team/h: spec.queue: queue 'vison' does not exist"),
                (group("h", "../../namespaces/team"), "queue '../../namespaces/team' does not exist"),
                (group("h", ".."), "queue '..' does not exist"),
                (group("h", "research"), "only leaf queues hold jobs; name one of speech, vision"),
                (BAD_POD, "Pod team/bad: metadata.annotations.gpu-fraction: must be a part of a GPU"),
            ]
            for raw, words in refused:
                message = await stage.refusal(raw)
                assert 'admission webhook "' in message
                assert words in message
            # What is not ours passes unread.
            assert (
                await stage.refusal(pod("other", scheduler="other", annotations={"gpu-fraction": "7"})) == ""
            )
            assert await stage.refusal(pod("system", "kube-system", annotations={"gpu-fraction": "7"})) == ""
            await changes_and_deletions(stage)

    on_plane(own_plane, scenario)


async def changes_and_deletions(stage: Stage) -> None:
    async def attempt(call: Awaitable[Any]) -> str:
        try:
            await call
        except ApiError as error:
            return error.message
        return ""

    patch = stage.client.patch
    circle = await attempt(patch(QUEUES, "research", {"spec": {"parent": "vision"}}))
    assert "would close a circle: research -> vision -> research" in circle
    assert "'nowhere' does not exist" in await attempt(
        patch(GROUPS, "team/g", {"spec": {"queue": "nowhere"}})
    )
    assert await attempt(patch(GROUPS, "team/g", {"status": {"phase": "Inqueue"}})) == ""
    assert "has 2 queues below it" in await attempt(stage.client.delete(QUEUES, "research"))

    async def held() -> bool:
        return "holds 1 pod group;" in await attempt(stage.client.delete(QUEUES, "vision"))

    assert await held()
    await stage.client.delete(GROUPS, "team/g")

    async def gone() -> bool:
        return await attempt(stage.client.delete(QUEUES, "vision")) == ""

    await until(gone, "an empty queue can be deleted")


def test_only_what_a_namespace_asks_for_is_filled_in(own_plane: Plane) -> None:
    async def scenario(stage: Stage) -> None:
        scheduler = {"maniple.dev/scheduler": "maniple"}
        async with stage.running():
            await all_in_force(stage)
            await stage.create(
                queue("gold"),
                namespace("labelled", labels=scheduler),
                namespace("both", labels=scheduler, annotations={"maniple.dev/queue": "gold"}),
                namespace("queued", annotations={"kai.scheduler/queue": "gold"}),
            )
            every = ("team", "labelled", "both", "queued")
            for name in every:
                await stage.create(pod("p", name, "default-scheduler"), group("g", namespace=name))
                await stage.create(kai_group("k", namespace=name), pod("ours", name))
            seen = {name: await filled(stage, name) for name in every}
            # Volcano's definition of groups writes "default" where no queue is named.
            plain: Raw = {"p": ("default-scheduler", ""), "ours": ("maniple", ""), "g": "default", "k": ""}
            assert seen["team"] == plain
            assert seen["labelled"] == {**plain, "p": ("maniple", "")}
            assert seen["queued"] == {**plain, "ours": ("maniple", "gold"), "g": "gold", "k": "gold"}
            both = {"p": ("maniple", "gold"), "ours": ("maniple", "gold"), "g": "gold", "k": "gold"}
            assert seen["both"] == both

    on_plane(own_plane, scenario)


async def filled(stage: Stage, home: str) -> Raw:
    found: Raw = {}
    for name in ("p", "ours"):
        one = await stage.client.get(PODS, f"{home}/{name}")
        notes = one["metadata"].get("annotations", {})
        found[name] = one["spec"]["schedulerName"], notes.get("scheduling.volcano.sh/queue-name", "")
    for name, resource in (("g", GROUPS), ("k", KAI_GROUPS)):
        found[name] = (await stage.client.get(resource, f"{home}/{name}"))["spec"].get("queue", "")
    return found


async def bundles(stage: Stage) -> set[bytes]:
    """The authorities that the API server is given, in every webhook the same."""
    found = set()
    for resource in (VALIDATING, MUTATING):
        for one in (await stage.client.get(resource, NAME))["webhooks"]:
            found.add(base64.b64decode(one["clientConfig"]["caBundle"]))
    return found


async def trusted(stage: Stage, bundle: bytes) -> bool:
    """Whether what is served is signed by one of these authorities, for this address, and valid now."""
    context = ssl.create_default_context(cadata=bundle.decode())
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(f"https://127.0.0.1:{stage.port}/healthz", ssl=context) as response:
                return response.status == 200
        except aiohttp.ClientConnectorCertificateError:
            return False


async def shared(stage: Stage) -> dict[str, bytes]:
    data = (await stage.client.get(SECRETS, SECRET))["data"]
    return {field: base64.b64decode(text) for field, text in data.items()}


def test_rotation_under_load_loses_no_request(
    own_plane: Plane, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With lives of seconds: every bad object is refused while certificates and authorities come and go."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    keys: set[bytes] = set()

    async def scenario(stage: Stage) -> None:
        authorities: set[bytes] = set()
        servers: set[bytes] = set()
        async with stage.running(closed=True, lives=SHORT, look_seconds=0.2):
            await all_in_force(stage)
            (folder,) = tmp_path.glob("maniple-admission-*")
            asked = 0
            while len(authorities) < 3 or len(servers) < 3:
                message = await stage.refusal(
                    {**BAD_POD, "metadata": {**BAD_POD["metadata"], "name": f"p{asked}"}}
                )
                assert "gpu-fraction" in message
                asked += 1
                # A new connection, as an API server makes one that knows the present configuration.
                for bundle in await bundles(stage):
                    assert await trusted(stage, bundle)
                data = await shared(stage)
                servers.add(data["tls.crt"])
                keys.update((data["tls.key"], data["ca.key"]))
                made = material_of(data)
                assert made is not None
                authorities.update(made.authorities)
                assert stat.S_IMODE((folder / "tls.key").stat().st_mode) == 0o600
        assert asked > 50

    with caplog.at_level(logging.DEBUG, "maniple"):
        on_plane(own_plane, scenario)
    for key in keys:
        assert key.decode().splitlines()[1] not in caplog.text
    assert not [*tmp_path.glob("maniple-admission-*")]


def test_replicas_share_one_secret(own_plane: Plane) -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.running() as _, stage.running(port=free_port(stage.port)):
            await all_in_force(stage)
            data = await shared(stage)
            assert await bundles(stage) == {data["ca.crt"]}
            # Whatever becomes of the Secret and the configurations, they come back.
            await stage.client.delete(SECRETS, SECRET)
            await stage.client.delete(VALIDATING, NAME)

            async def mended() -> bool:
                try:
                    fresh = await shared(stage)
                    return fresh != data and await bundles(stage) == {fresh["ca.crt"]}
                except ApiError:
                    return False

            await until(mended, "a new Secret, and configurations that trust it")
            await all_in_force(stage)

    on_plane(own_plane, scenario)


@pytest.mark.parametrize("closed", [False, True])
def test_without_an_answer_the_failure_policy_decides(own_plane: Plane, closed: bool) -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.running(closed=closed):
            await all_in_force(stage)
            await stage.create(queue("gold"), group("g", "gold"))
        # The scheduler goes on: statuses of groups and pods of other schedulers and of the system do not depend on it.
        await stage.client.patch(GROUPS, "team/g", {"status": {"phase": "Running"}})
        message = await stage.refusal(BAD_POD)
        assert ("failed calling webhook" in message) is closed
        assert await stage.refusal(pod("other", scheduler="default-scheduler")) == ""
        assert await stage.refusal(pod("system", "kube-system")) == ""

    on_plane(own_plane, scenario)


def test_a_port_that_is_taken_is_an_error(own_plane: Plane) -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.running():
            with pytest.raises(OSError, match="address already in use"):
                await stage.webhook().run()

    assert webhook_module.DRAIN_SECONDS > 0
    on_plane(own_plane, scenario)
