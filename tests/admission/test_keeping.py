"""Replicas that write at the same time, kinds that may not be listed: what the webhook does about them."""

import asyncio
import base64
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("cryptography")

from maniple.admission.authority import Lives, Material, renewed
from maniple.admission.following import Follower
from maniple.admission.keeping import SECRETS, Keeper
from maniple.admission.registration import MUTATING, VALIDATING, Place, Registration
from maniple.kube.client import Client
from maniple.kube.errors import ApiError
from maniple.kube.informer import Change
from maniple.kube.kinds import Resource
from maniple.objects.core import Namespace
from maniple.objects.load import load
from maniple.objects.volcano import VolcanoQueue
from tests.admission.scene import Raw, group, passes, queue, refusal, world

SECRET = "maniple-system/hook-tls"
PLACE = Place("hook", "maniple-system")
LIVES = Lives()
START = datetime(2026, 1, 1, tzinfo=UTC)


class Objects:
    """An API server that keeps versions; `before_write` is called once, before the next write."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], Raw] = {}
        self.writes = 0
        self.before_write: Any = None

    async def get(self, resource: Resource, key: str) -> Raw:
        found = self.kept.get((resource.plural, key))
        if found is None:
            raise ApiError(404, "NotFound", key)
        return found

    async def create(self, resource: Resource, namespace: str, body: Raw) -> Raw:
        name = body["metadata"]["name"]
        return self._write(resource, f"{namespace}/{name}" if namespace else name, body, "")

    async def update(self, resource: Resource, key: str, body: Raw) -> Raw:
        return self._write(resource, key, body, body["metadata"].get("resourceVersion", ""))

    def _write(self, resource: Resource, key: str, body: Raw, version: str) -> Raw:
        race, self.before_write = self.before_write, None
        if race is not None:
            race()
        there = self.kept.get((resource.plural, key), {"metadata": {}})
        if there["metadata"].get("resourceVersion", "") != version:
            raise ApiError(409, "Conflict", key)
        self.put(resource, key, body)
        return body

    def put(self, resource: Resource, key: str, body: Raw) -> None:
        self.writes += 1
        self.kept[resource.plural, key] = {
            **body,
            "metadata": {**body["metadata"], "resourceVersion": str(self.writes)},
        }


def secret_of(material: Material) -> Raw:
    data = {field: base64.b64encode(one).decode() for field, one in material.data().items()}
    return {"metadata": {"name": "hook-tls", "namespace": "maniple-system"}, "data": data}


def keeper_of(objects: Objects, folder: Path, now: datetime = START) -> Keeper:
    folder.mkdir(exist_ok=True)
    return Keeper(cast(Client, objects), Registration("hook", PLACE), SECRET, folder, now=lambda: now)


@pytest.mark.parametrize("there", [False, True])
def test_of_two_replicas_the_one_that_was_faster_counts(tmp_path: Path, there: bool) -> None:
    objects, now = Objects(), datetime.now(UTC)
    if there:  # and due for renewal
        past = now - LIVES.server * 0.7
        objects.put(SECRETS, SECRET, secret_of(renewed(None, PLACE.names, past, LIVES)))
    theirs = renewed(None, PLACE.names, now, LIVES)

    def race() -> None:
        version = objects.kept.get(("secrets", SECRET), {"metadata": {}})["metadata"].get("resourceVersion")
        made = secret_of(theirs)
        made["metadata"]["resourceVersion"] = version
        objects.put(SECRETS, SECRET, made)

    objects.before_write = race
    asyncio.run(keeper_of(objects, tmp_path, now).refresh())
    assert (tmp_path / "tls.crt").read_bytes() == theirs.server
    assert (tmp_path / "tls.key").stat().st_mode & 0o777 == 0o600
    assert objects.writes == 1 + there


def test_a_replica_that_is_not_due_writes_nothing(tmp_path: Path) -> None:
    objects = Objects()
    now = datetime.now(UTC)

    async def both() -> None:
        for name in ("a", "b"):
            one = keeper_of(objects, tmp_path / name, now)
            await one.refresh()
            await one.register(world())
            await one.refresh()
            await one.register(world())

    asyncio.run(both())
    assert (tmp_path / "a" / "tls.crt").read_bytes() == (tmp_path / "b" / "tls.crt").read_bytes()
    assert objects.writes == 3  # the Secret and two configurations


def test_a_configuration_that_another_replica_writes_at_the_same_time(tmp_path: Path) -> None:
    objects = Objects()
    keeper = keeper_of(objects, tmp_path, datetime.now(UTC))

    async def scenario() -> None:
        await keeper.refresh()
        stale: Raw = {"metadata": {"name": "hook", "annotations": {"a": "b"}}, "webhooks": []}
        objects.before_write = lambda: objects.put(VALIDATING, "hook", stale)
        await keeper.register(world())

    asyncio.run(scenario())
    for resource in (VALIDATING, MUTATING):
        assert len(objects.kept[resource.plural, "hook"]["webhooks"]) == 3
    assert objects.kept[VALIDATING.plural, "hook"]["metadata"]["annotations"] == {"a": "b"}


def test_what_fails_is_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    objects, failures = Objects(), 2
    keeper = Keeper(cast(Client, objects), Registration("hook", PLACE), SECRET, tmp_path, look_seconds=0.0)

    async def scenario() -> None:
        await keeper.refresh()

        def broken() -> None:
            nonlocal failures
            if failures:
                failures -= 1
                objects.before_write = broken
                raise ApiError(503, "Unavailable", "later")

        objects.before_write = broken
        task = asyncio.create_task(keeper.run(world()))
        while len(objects.kept) < 3:
            await asyncio.sleep(0)
        task.cancel()

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert caplog.text.count("cannot be kept up to date: 503 Unavailable: later") == 2


def test_expiries_are_those_of_what_is_served(tmp_path: Path) -> None:
    keeper = keeper_of(Objects(), tmp_path, now := datetime.now(UTC))
    assert keeper.expiries() == {}
    asyncio.run(keeper.refresh())
    assert keeper.expiries()["server"] - now < LIVES.server + timedelta(seconds=1)


def test_changes_of_the_cluster_change_the_rules() -> None:
    there = world()
    follower = Follower(cast(Client, Objects()), there)

    def take(*changes: Change) -> None:
        for change in changes:
            follower._take(change)

    gold = load(queue("gold"))
    take(Change("put", VolcanoQueue, gold), Change("sync", VolcanoQueue))
    assert passes(group("g", "gold"), there) == ()
    take(Change("gone", VolcanoQueue, gold))
    assert "does not exist" in refusal(group("g", "gold"), there)
    take(Change("forbidden", VolcanoQueue))
    assert "does not exist" in passes(group("g", "gold"), there)[0]
    take(Change("absent", VolcanoQueue), Change("bad", Namespace))
    assert "does not exist" in refusal(group("g", "gold"), there)
    assert not follower.synced.is_set()
    take(Change("synced", None))
    assert follower.synced.is_set()
