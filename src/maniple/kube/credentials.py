"""How this process authenticates to the API server: a token, a token file, basic auth, or a credential
plugin.

`configuration` picks one of these per connection; `Client` calls it before every request. Nothing here prints
a secret, and no message quotes one.
"""

import asyncio
import base64
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from maniple.kube.errors import KubeconfigError
from maniple.kube.kubeconfig import ExecPart, Origin, UserPart
from maniple.kube.tls import ClientPair, FreshFile
from maniple.objects.meta import Time

EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXEC_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Credential:
    """What goes with one request: the Authorization header, and a client certificate if a plugin gave one."""

    authorization: str | None = field(default=None, repr=False)
    pair: ClientPair | None = field(default=None, repr=False)


class Credentials(Protocol):
    async def current(self) -> Credential: ...

    def rejected(self, credential: Credential) -> bool:
        """The server rejected this credential; true if a new one may differ."""
        ...


class Fixed:
    """A constant credential."""

    def __init__(self, authorization: str | None = None) -> None:
        self._credential = Credential(authorization)

    async def current(self) -> Credential:
        return self._credential

    def rejected(self, credential: Credential) -> bool:
        return False


class TokenFile:
    """A token that is renewed in a file, as the kubelet does for service accounts."""

    def __init__(self, source: FreshFile, file: object, field: str) -> None:
        self._source = source
        self._file = file
        self._field = field

    async def current(self) -> Credential:
        return Credential(bearer(self._source.read(), self._file, self._field))

    def rejected(self, credential: Credential) -> bool:
        self._source.forget()
        return True


def bearer(token: bytes, file: object, field: str) -> str:
    """The header for a token, which must be valid in a header."""
    text = token.decode("ascii", "replace").strip()
    if not text:
        raise KubeconfigError(file, field, "the token is empty")
    if not all("!" <= letter <= "~" for letter in text):
        raise KubeconfigError(file, field, "the token contains invalid characters")
    return f"Bearer {text}"


def basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode("ascii")


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: Time | None = None

    def __repr__(self) -> str:
        return "_ExecStatus(...)"


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _ExecStatus | None = None


def _now() -> datetime:
    return datetime.now(UTC)


class ExecPlugin:
    """A program that prints a credential.

    It is run if there is none, if it expired, and if it was rejected. `cluster` is the cluster information
    passed to the plugin if it is configured to get it. The plugin never gets our standard input; its standard
    error goes to the user.
    """

    def __init__(
        self,
        origin: Origin[UserPart],
        plugin: ExecPart,
        cluster: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._origin = origin
        self._plugin = plugin
        self._cluster = cluster
        self._environment = os.environ if environment is None else environment
        self._now = now
        self._lock = asyncio.Lock()
        self._credential: Credential | None = None
        self._expires: datetime | None = None
        if plugin.api_version not in EXEC_VERSIONS:
            raise self._error("apiVersion", f"must be one of {', '.join(EXEC_VERSIONS)}")
        if plugin.interactive_mode == "Always":
            raise self._error("interactiveMode", "the plugin needs interactive input, which is not available")
        if not plugin.command:
            raise self._error("command", "missing")

    async def current(self) -> Credential:
        async with self._lock:
            if self._credential is None or (self._expires is not None and self._now() >= self._expires):
                status = await self._run()
                self._credential = self._read(status)
                self._expires = status.expiration_timestamp
            return self._credential

    def rejected(self, credential: Credential) -> bool:
        # Many requests may be rejected at once; only the first of them may discard the credential.
        if self._credential is credential:
            self._credential = None
        return True

    def _error(self, name: str, message: str) -> KubeconfigError:
        return self._origin.error(f"exec.{name}", message)

    def _command(self) -> str:
        """A name is looked up in PATH; a relative path is relative to the kubeconfig."""
        command = self._plugin.command
        return str(self._origin.path(command)) if Path(command).name != command else command

    def _variables(self) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": False}
        if self._plugin.provide_cluster_info and self._cluster is not None:
            spec["cluster"] = self._cluster
        about = {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": spec}
        return {
            **self._environment,
            **{variable.name: variable.value for variable in self._plugin.env},
            "KUBERNETES_EXEC_INFO": msgspec.json.encode(about).decode(),
        }

    async def _run(self) -> _ExecStatus:
        name = self._plugin.command
        try:
            process = await asyncio.create_subprocess_exec(
                self._command(),
                *self._plugin.args,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                env=self._variables(),
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "cannot be run"
            raise self._error("command", f"{name}: {reason}{self._hint()}") from None
        try:
            async with asyncio.timeout(EXEC_SECONDS):
                output, _ = await process.communicate()
        except TimeoutError:
            raise self._error("command", f"{name}: no answer within {EXEC_SECONDS:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            raise self._error("command", f"{name}: ended with code {process.returncode}{self._hint()}")
        return self._decode(output)

    def _hint(self) -> str:
        return f"; {self._plugin.install_hint.strip()}" if self._plugin.install_hint else ""

    def _decode(self, output: bytes) -> _ExecStatus:
        name = self._plugin.command
        try:
            answer = msgspec.json.decode(output, type=_ExecCredential)
        except msgspec.MsgspecError as error:
            # The message may say where it is wrong, but not quote it.
            path = str(error).partition(" - at ")[2].strip("`")
            raise self._error(
                "command", f"{name}: its output is not an ExecCredential{path and f' ({path})'}"
            ) from None
        if answer.kind != "ExecCredential" or answer.api_version != self._plugin.api_version:
            raise self._error(
                "command", f"{name}: its output is not an ExecCredential of {self._plugin.api_version}"
            )
        if answer.status is None:
            raise self._error("command", f"{name}: its output has no status")
        return answer.status

    def _read(self, status: _ExecStatus) -> Credential:
        name = self._plugin.command
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._error(
                "command", f"{name}: a certificate without a key, or a key without a certificate"
            )
        if not status.token and not status.client_certificate_data:
            raise self._error("command", f"{name}: neither a token nor a certificate in its output")
        place = f"{self._origin.place}.exec.command"
        token = bearer(status.token.encode(), self._origin.file, place) if status.token else None
        pair = (status.client_certificate_data.encode(), status.client_key_data.encode())
        return Credential(token, pair if status.client_certificate_data else None)
