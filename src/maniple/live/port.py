"""The port: all that the running scheduler asks of a cluster.

Two implement it, `kube.cluster.KubeCluster` and `sim.cluster.SimCluster`; neither knows of the other nor of this file, and the tests of
this room run on both. A call that fails raises an exception with a `status`, as HTTP numbers it (0: no answer), and perhaps a
`retry_after` in seconds. Every write may be sent twice and is carried out once; all but `change` are done then.
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
    | synced | all kinds have reached their first sync or absent |
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
        """Everything that there is of these kinds, the marker "synced", and then all that changes, for ever."""

    async def bind(self, pod: Pod, node: str, annotations: Mapping[str, str] | None = None) -> object:
        """Bind a pod; done when it is bound to that node already."""

    async def evict(self, pod: Pod, grace: int | None = None) -> object:
        """Delete this very pod; done when it is gone already."""

    async def patch_status(
        self, kind: Kind, key: str, patch: Mapping[str, Any], subresource: bool | None = None
    ) -> object:
        """Merge a patch into an object's status; `subresource` is known from the kind unless it is said."""

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
        """A note for people; `annotations` say it for programs."""

    async def create(self, raw: Mapping[str, Any], *, same: bool = False) -> object:
        """Make an object; done when there is one already. `same`: that one must say all that this one says, or it is a conflict."""

    async def read(self, kind: Kind, key: str) -> Object | None:
        """An object as it is now, with its version; None when it is not there."""

    async def change(self, item: Object, patch: Mapping[str, Any], *, status: bool = False) -> Object:
        """Merge a patch into an object, or into its status, that still has the version that it was read with; a conflict if it
        has another one. Gives the object as it is then. Sent twice, it is a conflict."""

    async def delete(self, item: Object) -> object:
        """Delete this very object; done when it is gone already."""


class Clock(Protocol):
    """The time of day where the cluster is. Pauses are the event loop's."""

    def now(self) -> datetime: ...


class SystemClock:
    """This machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


def status_of(error: BaseException) -> int | None:
    """The number with which a cluster refused; None for an error that is not a refusal."""
    status = getattr(error, "status", None)
    return status if isinstance(status, int) else None


def pause_asked_by(error: BaseException) -> float | None:
    """Seconds that the cluster asked to be left alone."""
    pause = getattr(error, "retry_after", None)
    return float(pause) if isinstance(pause, int | float) else None
