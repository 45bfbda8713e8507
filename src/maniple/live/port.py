"""The port: everything that the running scheduler needs from a cluster.

Two classes implement it, `kube.cluster.KubeCluster` and `sim.cluster.SimCluster`; neither imports the other
nor this file, and the tests of this package run on both. A call that fails raises an exception with a
`status`, as in HTTP (0: no response), and perhaps a `retry_after` in seconds and what the user was `denied`. Every
write may be sent twice and is carried out once; all but `change` succeed then.
"""

from collections.abc import AsyncGenerator, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from maniple.objects.core import Pod
from maniple.objects.load import Problem
from maniple.objects.meta import Condition, Object

Kind = type[Object]
EventType = Literal["Normal", "Warning"]

NOT_FOUND = 404
CONFLICT = 409
TOO_MANY = 429


class Change(Protocol):
    """One step in the state of a cluster.

    | type | meaning |
    |---|---|
    | put | `object` exists, new or changed |
    | gone | `object` has been deleted |
    | bad | an object cannot be read, see `problem`; until that changes it counts as absent |
    | sync | all objects of a kind have been reported |
    | absent | the cluster does not have `kind`; its objects follow once it does |
    | forbidden | `kind` may not be listed; until it may, its objects are unknown |
    | synced | all kinds have reached their first sync or absent, or may not be listed and are not essential |
    """

    @property
    def type(self) -> str: ...
    @property
    def kind(self) -> object: ...
    @property
    def object(self) -> Object | None: ...
    @property
    def problem(self) -> Problem | None: ...


class Port(Protocol):
    """A cluster."""

    def changes(self, kinds: Iterable[Kind]) -> AsyncGenerator[Change, None]:
        """All existing objects of these kinds, the marker "synced", and then all changes, forever."""

    async def bind(self, pod: Pod, node: str, annotations: Mapping[str, str] | None = None) -> object:
        """Bind a pod; succeeds if it is bound to that node already."""

    async def evict(self, pod: Pod, grace: int | None = None) -> object:
        """Delete this pod (same uid); succeeds if it is gone already."""

    async def patch_status(
        self, kind: Kind, key: str, patch: Mapping[str, Any], subresource: bool | None = None
    ) -> object:
        """Merge a patch into an object's status; `subresource` is known from the kind unless given."""

    async def patch_pod_condition(
        self, pod: Pod, condition: Condition, now: datetime, nominated_node: str | None = None
    ) -> object:
        """Set one condition of a pod and, unless None, the node that is being cleared for it."""

    async def record_event(
        self,
        regarding: Object,
        event_type: EventType,
        reason: str,
        note: str,
        *,
        annotations: Mapping[str, str] | None = None,
    ) -> object:
        """Record an event; `annotations` carry the details for programs."""

    async def create(self, raw: Mapping[str, Any], *, same: bool = False) -> object:
        """Create an object; succeeds if there is one already.

        `same`: the existing one must contain everything that this one states, or it is a conflict.
        """

    async def read(self, kind: Kind, key: str) -> Object | None:
        """An object as it is now, with its version; None if it does not exist."""

    async def change(self, item: Object, patch: Mapping[str, Any], *, status: bool = False) -> Object:
        """Merge a patch into an object or its status; a conflict if its version is not the one that was read.

        Returns the object after the change. Sent twice, it is a conflict.
        """

    async def delete(self, item: Object) -> object:
        """Delete this object (same uid); succeeds if it is gone already."""

    async def may(self, verb: str, kind: Kind, namespace: str = "") -> bool:
        """Whether this user may do something with objects of a kind, in all namespaces unless one is given."""


class Clock(Protocol):
    """The time of day where the cluster is; pauses are the event loop's."""

    def now(self) -> datetime: ...


class SystemClock:
    """This machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


def status_of(error: BaseException) -> int | None:
    """The status code of a refusal; None for an error that is not a refusal."""
    status = getattr(error, "status", None)
    return status if isinstance(status, int) else None


def denied_by(error: BaseException) -> str:
    """What this user may not do, such as "patch pods"; empty for a refusal with another cause."""
    denied = getattr(error, "denied", "")
    return denied if isinstance(denied, str) else ""


def pause_asked_by(error: BaseException) -> float | None:
    """Seconds that the cluster asked to wait."""
    pause = getattr(error, "retry_after", None)
    return float(pause) if isinstance(pause, int | float) else None
