"""Kubeconfig files: reading, merging several, and choosing the cluster and the user of a context.

`configuration` turns the choice into a connection. As with kubectl, the first file that defines a name wins,
and a relative path is relative to its file. Parts print without their contents, since many are secret.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from maniple.framework.configuration.compose import ComposeError, compose
from maniple.kube.errors import KubeconfigError

_LARGEST = 16 * 2**20  # bytes: thousands of clusters with their certificates
_MOST_VALUES = 200_000
_UNREADABLE = "not valid YAML, or larger or nested deeper than a kubeconfig can be"
EXEC_EXTENSION = "client.authentication.k8s.io/exec"


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """Base of every struct of a kubeconfig."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class Extension(Part, frozen=True, kw_only=True):
    name: str = ""
    extension: Any = None


class ClusterPart(Part, frozen=True, kw_only=True):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    proxy_url: str = ""
    extensions: tuple[Extension, ...] = ()


class Variable(Part, frozen=True, kw_only=True):
    name: str
    value: str = ""


class ExecPart(Part, frozen=True, kw_only=True, rename="camel"):
    command: str
    api_version: str = ""
    args: tuple[str, ...] = ()
    env: tuple[Variable, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class UserPart(Part, frozen=True, kw_only=True):
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    password: str = ""
    exec: ExecPart | None = None
    auth_provider: Any = None
    impersonate: str = msgspec.field(name="as", default="")
    impersonate_uid: str = msgspec.field(name="as-uid", default="")
    impersonate_groups: tuple[str, ...] = msgspec.field(name="as-groups", default=())
    impersonate_extra: dict[str, tuple[str, ...]] = msgspec.field(name="as-user-extra", default_factory=dict)


class ContextPart(Part, frozen=True, kw_only=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(Part, frozen=True, kw_only=True):
    name: str
    cluster: ClusterPart = ClusterPart()


class _NamedUser(Part, frozen=True, kw_only=True):
    name: str
    user: UserPart = UserPart()


class _NamedContext(Part, frozen=True, kw_only=True):
    name: str
    context: ContextPart = ContextPart()


class _Document(Part, frozen=True, kw_only=True):
    current_context: str = ""
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()


P = TypeVar("P", bound=Part)


@dataclass(frozen=True, slots=True)
class Origin(Generic[P]):
    """A part, the file that it comes from and its position in that file."""

    file: Path
    place: str
    part: P = field(repr=False)

    def path(self, name: str) -> Path:
        """A path written in this part."""
        return (self.file.parent / name).absolute()

    def error(self, name: str, message: str) -> KubeconfigError:
        return KubeconfigError(self.file, f"{self.place}.{name}" if name else self.place, message)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What one context refers to."""

    context: str
    namespace: str
    cluster: Origin[ClusterPart]
    user: Origin[UserPart]


@dataclass(slots=True)
class Kubeconfig:
    """Several files, merged."""

    files: tuple[Path, ...]
    current_context: str = ""
    clusters: dict[str, Origin[ClusterPart]] = field(default_factory=dict)
    users: dict[str, Origin[UserPart]] = field(default_factory=dict)
    contexts: dict[str, Origin[ContextPart]] = field(default_factory=dict)

    def choose(self, context: str = "") -> Chosen:
        """The cluster and user of the named context, or of the current one."""
        name = context or self.current_context
        files = ", ".join(map(str, self.files))
        if not name:
            raise KubeconfigError(files, "current-context", "not set, and no context was asked for")
        if name not in self.contexts:
            known = ", ".join(sorted(self.contexts)) or "none"
            raise KubeconfigError(files, "contexts", f"no context {name!r}; expected one of {known}")
        found = self.contexts[name]
        if found.part.cluster not in self.clusters:
            raise found.error("cluster", f"no cluster {found.part.cluster!r}")
        user: Origin[UserPart] = Origin(found.file, found.place, UserPart())
        if found.part.user:
            if found.part.user not in self.users:
                raise found.error("user", f"no user {found.part.user!r}")
            user = self.users[found.part.user]
        return Chosen(name, found.part.namespace, self.clusters[found.part.cluster], user)


def default_files(environment: dict[str, str], home: Path) -> tuple[Path, ...]:
    """The files of KUBECONFIG, else the one in the home directory; missing files are left out."""
    named = [Path(name).expanduser() for name in environment.get("KUBECONFIG", "").split(os.pathsep) if name]
    found = tuple(file for file in named or [home / ".kube" / "config"] if file.is_file())
    if named and not found:
        raise KubeconfigError(
            ", ".join(map(str, named)), "", "no such file (named by the environment variable KUBECONFIG)"
        )
    return found


def read(files: Sequence[Path]) -> Kubeconfig:
    """Read and merge: an earlier file takes precedence over a later one."""
    merged = Kubeconfig(tuple(files))
    for file in files:
        document = _read_one(file)
        merged.current_context = merged.current_context or document.current_context
        for name, cluster in _entries(file, "clusters", document.clusters):
            merged.clusters.setdefault(name, Origin(file, f"clusters[{name}].cluster", cluster.cluster))
        for name, user in _entries(file, "users", document.users):
            merged.users.setdefault(name, Origin(file, f"users[{name}].user", user.user))
        for name, context in _entries(file, "contexts", document.contexts):
            merged.contexts.setdefault(name, Origin(file, f"contexts[{name}].context", context.context))
    return merged


N = TypeVar("N", _NamedCluster, _NamedUser, _NamedContext)


def _entries(file: Path, place: str, entries: Iterable[N]) -> Iterable[tuple[str, N]]:
    seen: set[str] = set()
    for entry in entries:
        if entry.name in seen:
            raise KubeconfigError(file, place, f"two entries with the name {entry.name!r}")
        seen.add(entry.name)
        yield entry.name, entry


def _read_one(file: Path) -> _Document:
    try:
        with file.open("rb") as stream:
            text = stream.read(_LARGEST + 1).decode("utf-8-sig")
        raw = compose(text, characters=_LARGEST, values=_MOST_VALUES).value
    except OSError as error:
        raise KubeconfigError(file, "", error.strerror or "cannot be read") from None
    except UnicodeDecodeError:
        raise KubeconfigError(file, "", "not UTF-8 text") from None
    except ComposeError as error:
        # The parser's own message may quote the file, which contains secrets.
        where = f"line {error.line}" if error.line is not None else ""
        raise KubeconfigError(file, where, _UNREADABLE) from None
    if raw is None:
        return _Document()
    try:
        return msgspec.convert(_without_nulls(raw), _Document)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at ")
        raise KubeconfigError(
            file, path.strip("`").removeprefix("$").lstrip("."), message.replace("`", "")
        ) from None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value
