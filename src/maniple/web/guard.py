"""Who may read: a token of a file, or what the API server says of the client's own token.

Delegated authorization is that of Kubernetes' components: a TokenReview says who the client is, a SubjectAccessReview
whether that user may `get` the path. Answers hold for a short time, so that a scrape costs the API server nothing.
Tokens are compared in constant time, and kept as digests only.
"""

import hashlib
import hmac
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from maniple.kube.client import Client

ALLOWED_SECONDS, REFUSED_SECONDS = 60.0, 10.0
MOST_REMEMBERED = 1000
REVIEWS = {
    "TokenReview": "/apis/authentication.k8s.io/v1/tokenreviews",
    "SubjectAccessReview": "/apis/authorization.k8s.io/v1/subjectaccessreviews",
}


class Guard(Protocol):
    async def status(self, authorization: str, path: str) -> int:
        """200 if a request with this header may read the path, else 401, 403, or 503 if that is unknown."""


class Open:
    """Everyone who reaches the address may read."""

    async def status(self, authorization: str, path: str) -> int:
        return 200


class TokenFile:
    """One token, which the file has now."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def status(self, authorization: str, path: str) -> int:
        try:
            expected = self._path.read_text().strip()
        except OSError:
            return 503
        given = bearer(authorization)
        if not given or not expected:
            return 401
        return 200 if hmac.compare_digest(given.encode(), expected.encode()) else 401


class Delegated:
    """The API server decides."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._known: dict[tuple[bytes, str], tuple[float, int]] = {}

    async def status(self, authorization: str, path: str) -> int:
        token = bearer(authorization)
        if not token:
            return 401
        key = (hashlib.sha256(token.encode()).digest(), path)
        until, status = self._known.get(key, (0.0, 0))
        if time.monotonic() < until:
            return status
        status = await self._ask(token, path)
        if status != 503:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            holds = ALLOWED_SECONDS if status == 200 else REFUSED_SECONDS
            self._known[key] = (time.monotonic() + holds, status)
        return status

    async def _ask(self, token: str, path: str) -> int:
        from maniple.kube.errors import ApiError

        try:
            found = await self._review("TokenReview", {"token": token})
            if not found.get("authenticated"):
                return 401
            user: dict[str, Any] = found.get("user") or {}
            allowed = await self._review(
                "SubjectAccessReview",
                {
                    "user": user.get("username", ""),
                    "uid": user.get("uid", ""),
                    "groups": user.get("groups") or [],
                    "extra": user.get("extra") or {},
                    "nonResourceAttributes": {"path": path, "verb": "get"},
                },
            )
        except ApiError:
            return 503
        return 200 if allowed.get("allowed") else 403

    async def _review(self, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        import msgspec

        group = REVIEWS[kind].split("/")[2]
        body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
        answer = msgspec.json.decode(
            await self._client.request("POST", REVIEWS[kind], body=body, idempotent=True)
        )
        status = answer.get("status") if isinstance(answer, dict) else None
        return status if isinstance(status, dict) else {}


def bearer(authorization: str) -> str:
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
