"""Keeps the certificates in a Secret, for all replicas, and the API server's configurations in step with them.

Every replica does the same: it reads the Secret, replaces what is due, and writes it back with the version that it
read. If another replica was faster the write is a conflict, and what that replica wrote is used. The server's pair
is put in files that only this user can read, because TLS contexts take files. Keys are in no message.
"""

import asyncio
import base64
import binascii
import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

from maniple.admission.authority import Lives, Material, expiries, material_of, renewed
from maniple.admission.registration import MUTATING, VALIDATING, Body, Registration, differs
from maniple.admission.world import World
from maniple.kube.client import Client
from maniple.kube.errors import ApiError
from maniple.kube.kinds import Resource
from maniple.web.certificates import Certificate

log = logging.getLogger(__name__)

SECRETS = Resource("", "v1", "secrets", namespaced=True)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", namespaced=False)
LOOK_SECONDS = 60.0
_ATTEMPTS = 10


class Keeper:
    """`secret`: namespace/name. `folder` is private to this process."""

    def __init__(
        self,
        client: Client,
        registration: Registration,
        secret: str,
        folder: Path,
        *,
        lives: Lives | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._client = client
        self.registration = registration
        self._secret = secret
        self._files = folder / "tls.crt", folder / "tls.key"
        self._lives = lives or Lives()
        self._now = now
        self._look_seconds = look_seconds
        self._material: Material | None = None
        self._certificate: Certificate | None = None

    @property
    def certificate(self) -> Certificate:
        """The pair that is served; there after the first `refresh`."""
        assert self._certificate is not None
        return self._certificate

    def expiries(self) -> dict[str, datetime]:
        return expiries(self._material) if self._material is not None else {}

    async def refresh(self) -> None:
        """Use what the Secret holds, after replacing what is due; raises `ApiError`."""
        material = await self._shared()
        if material == self._material:
            return
        self._material = material
        for path, content in zip(self._files, (material.server, material.server_key), strict=True):
            _write_private(path, content)
        if self._certificate is None:
            self._certificate = Certificate(*self._files)
        else:
            self._certificate.look()

    async def _shared(self) -> Material:
        names = self.registration.place.names
        for _ in range(_ATTEMPTS):
            secret = await self._read(SECRETS, self._secret)
            known = _material_in(secret) if secret is not None else None
            wanted = renewed(known, names, self._now(), self._lives)
            if wanted is known:
                return wanted
            try:
                await self._write(secret, wanted)
            except ApiError as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
                continue  # another replica was faster: use what it wrote
            log.info("Secret %s: new certificates", self._secret)
        raise ApiError(409, "Conflict", f"Secret {self._secret} changes all the time")

    async def _write(self, secret: Body | None, material: Material) -> None:
        data = {field: base64.b64encode(one).decode("ascii") for field, one in material.data().items()}
        namespace, _, name = self._secret.rpartition("/")
        if secret is None:
            body = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": namespace},
                "type": "Opaque",
                "data": data,
            }
            await self._client.create(SECRETS, namespace, body)
        else:
            await self._client.update(SECRETS, self._secret, {**secret, "data": data})

    async def _read(self, resource: Resource, key: str) -> Body | None:
        try:
            return await self._client.get(resource, key)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    async def register(self, world: World) -> None:
        """Have both configurations say what they should, with every authority that is trusted now."""
        assert self._material is not None
        bundle = self._material.bundle
        await self._ensure(VALIDATING, self.registration.validating(world, bundle))
        await self._ensure(MUTATING, self.registration.mutating(world, bundle))

    async def _ensure(self, resource: Resource, wanted: Body) -> None:
        name = self.registration.name
        for _ in range(_ATTEMPTS):
            there = await self._read(resource, name)
            if there is not None and not differs(there, wanted):
                return
            try:
                if there is None:
                    await self._client.create(resource, "", wanted)
                else:
                    metadata = {**wanted["metadata"], **_identity(there)}
                    await self._client.update(resource, name, {**wanted, "metadata": metadata})
            except ApiError as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
                continue
            log.info("%s %s: written", wanted["kind"], name)
            return

    async def run(self, world: World) -> None:
        """Look again and again, until cancelled; what fails is tried at the next look."""
        while True:
            await asyncio.sleep(self._look_seconds)
            try:
                await self.refresh()
                await self.register(world)
            except ApiError as error:
                log.warning("certificates and webhook configurations cannot be kept up to date: %s", error)


def _identity(there: Body) -> Body:
    metadata = there.get("metadata") or {}
    return {key: metadata[key] for key in ("uid", "resourceVersion", "annotations") if key in metadata}


def _material_in(secret: Body) -> Material | None:
    data: Any = secret.get("data") or {}
    try:
        return material_of({field: base64.b64decode(text, validate=True) for field, text in data.items()})
    except (binascii.Error, TypeError, ValueError, AttributeError):
        return None


def _write_private(path: Path, content: bytes) -> None:
    """Replace a file at once; it is readable by this user only from the first byte on."""
    beside = path.with_suffix(".new")
    beside.unlink(missing_ok=True)
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    beside.replace(path)


async def owner_of(client: Client, role: str) -> tuple[str, str]:
    """A ClusterRole with its uid: what it owns is deleted with it."""
    found = await client.get(ROLES, role)
    return role, str((found.get("metadata") or {}).get("uid") or "")
