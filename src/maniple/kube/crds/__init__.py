"""The custom resources of Volcano and KAI, as manifests of our own, and how to install them.

`maniple crds` prints or installs them. The server keeps fields that the original definitions have and these
do not name.
"""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

import yaml

from maniple.kube.client import Client
from maniple.kube.errors import ApiError
from maniple.kube.kinds import DEFINITIONS

DIALECTS = ("volcano", "kai")
OWNER_LABEL = "app.kubernetes.io/managed-by"
OWNER = "maniple"
_SERVED_TRIES = 100
_CONFLICT_TRIES = 10
_PAUSE = 0.1

Outcome = Literal["created", "updated", "kept"]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One definition: the text for kubectl, and the same as data."""

    dialect: str
    text: str

    @property
    def body(self) -> dict[str, Any]:
        loaded: dict[str, Any] = yaml.safe_load(self.text)
        return loaded

    @property
    def name(self) -> str:
        name: str = self.body["metadata"]["name"]
        return name


@dataclass(frozen=True, slots=True)
class Installed:
    """The result for one definition; "kept" means that a foreign definition exists and stays."""

    name: str
    outcome: Outcome


def manifests(only: str = "") -> list[Manifest]:
    """All definitions, or those of one dialect, in the order of their names."""
    found = []
    for file in resources.files(__name__).iterdir():
        dialect = file.name.partition("-")[0]
        if file.name.endswith(".yaml") and only in ("", dialect):
            found.append((file.name, Manifest(dialect, file.read_text("utf-8"))))
    return [manifest for _, manifest in sorted(found, key=lambda pair: pair[0])]


async def install(
    client: Client, wanted: Iterable[Manifest], *, replace: bool = False
) -> AsyncIterator[Installed]:
    """Create or update each definition and wait until the server serves it.

    A definition that was installed by something else is left alone unless `replace`: it may have more fields.
    """
    for manifest in wanted:
        yield Installed(manifest.name, await _install(client, manifest, replace))


async def _install(client: Client, manifest: Manifest, replace: bool) -> Outcome:
    for _ in range(_CONFLICT_TRIES):
        try:
            outcome = await _put(client, manifest, replace)
        except ApiError as error:
            # The same definition is being written concurrently, perhaps by another instance: look again.
            if error.status != 409:
                raise
            await client.sleep(_PAUSE)
            continue
        if outcome != "kept":
            await _wait_until_served(client, manifest.name)
        return outcome
    raise ApiError(409, "Conflict", f"{manifest.name} is changed again and again by somebody else")


async def _put(client: Client, manifest: Manifest, replace: bool) -> Outcome:
    body, name = manifest.body, manifest.name
    current = await _current(client, name)
    if current is None:
        await client.create(DEFINITIONS, "", body)
        return "created"
    metadata = current["metadata"]
    if (metadata.get("labels") or {}).get(OWNER_LABEL) != OWNER and not replace:
        return "kept"
    body["metadata"]["resourceVersion"] = metadata["resourceVersion"]
    await client.update(DEFINITIONS, name, body)
    return "updated"


async def _current(client: Client, name: str) -> dict[str, Any] | None:
    try:
        return await client.get(DEFINITIONS, name)
    except ApiError as error:
        if error.status == 404:
            return None
        raise


async def _wait_until_served(client: Client, name: str) -> None:
    for _ in range(_SERVED_TRIES):
        status = (await client.get(DEFINITIONS, name)).get("status") or {}
        for condition in status.get("conditions") or ():
            if condition.get("status") == "True" and condition.get("type") == "Established":
                return
            if condition.get("status") == "False" and condition.get("type") == "NamesAccepted":
                raise ApiError(409, "NamesNotAccepted", f"{name}: {condition.get('message')}")
        await client.sleep(_PAUSE)
    raise ApiError(504, "Timeout", f"{name} was stored but is not served yet")
