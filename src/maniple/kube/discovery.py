"""Which of the supported kinds a server has, and in which version.

Informers look before they list, and again when a list returns "not found". What was found is cached; what was
not found is looked up again each time, since a CRD may be installed at any moment.
"""

from typing import Any

import msgspec

from maniple.kube.client import Client
from maniple.kube.errors import ApiError
from maniple.kube.kinds import Kind, Resource


class Discovery:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._found: dict[Kind, Resource] = {}

    async def find(self, kind: Kind) -> Resource | None:
        """The kind in the best version that is served, or None if the server does not have it."""
        if kind in self._found:
            return self._found[kind]
        served = await self._versions(kind.group)
        for version in kind.versions:
            if version in served and kind.plural in await self._plurals(kind.group, version):
                self._found[kind] = kind.at(version)
                return self._found[kind]
        return None

    def forget(self, kind: Kind) -> None:
        """The server no longer has what was found."""
        self._found.pop(kind, None)

    async def _versions(self, group: str) -> frozenset[str]:
        if not group:
            return frozenset(_texts(await self._look("/api"), "versions"))
        answer = await self._look(f"/apis/{group}")
        return frozenset(_texts(answer, "versions", "version"))

    async def _plurals(self, group: str, version: str) -> frozenset[str]:
        answer = await self._look(f"/apis/{group}/{version}" if group else f"/api/{version}")
        return frozenset(_texts(answer, "resources", "name"))

    async def _look(self, path: str) -> dict[str, Any]:
        """A page of the server's discovery API; empty if there is none."""
        try:
            answer = msgspec.json.decode(await self._client.request("GET", path))
        except ApiError as error:
            if error.status == 404:
                return {}
            raise
        except msgspec.MsgspecError:
            raise ApiError(200, "BadAnswer", f"{path}: not JSON") from None
        return answer if isinstance(answer, dict) else {}


def _texts(answer: dict[str, Any], name: str, inner: str = "") -> list[str]:
    """The strings of a list, or of one field of each entry; anything else in it is skipped."""
    entries = answer.get(name)
    if not isinstance(entries, list):
        return []
    if inner:
        entries = [entry.get(inner) for entry in entries if isinstance(entry, dict)]
    return [entry for entry in entries if isinstance(entry, str)]
