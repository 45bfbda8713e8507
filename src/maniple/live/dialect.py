"""What the running scheduler asks of a profile: kinds to watch, groups for lone pods, statuses as that system writes them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from maniple.live.volcano import Volcano
from maniple.objects.core import Pod
from maniple.objects.meta import Object
from maniple.profiles.options import strings


class LiveDialect(Protocol):
    kinds: tuple[type[Object], ...]
    group_kind: type[Object]
    queue_kind: type[Object]

    def lacking(self, present: Iterable[Object]) -> list[dict[str, Any]]:
        """Objects that have to be there before anything can be scheduled, and are not."""

    def group(self, pod: Pod) -> tuple[Pod, Object | None]:
        """A pod as it is to be read, and the group that is made for it if it has none."""

    def group_status(
        self,
        group: Object,
        phase: str,
        counts: tuple[int, int, int],
        told: Sequence[Mapping[str, str]],
        now: datetime,
        cause: str,
    ) -> Object:
        """The group as it should read."""

    def words(self, group: Object) -> str:
        """What a group says for people."""

    def differ_in_words_only(self, before: Object, after: Object) -> bool:
        """Whether two states of a group mean the same."""

    def group_patch(self, group: Object) -> dict[str, Any]: ...

    def queue_allocated(self, queue: Object, allocated: Mapping[str, str]) -> Object:
        """The queue as it should read."""

    def queue_patch(self, before: Object, after: Object) -> dict[str, Any]: ...

    def parent(self, queue: Object) -> str:
        """The queue above; empty when there is none."""


def dialect_of(profile: str, options: Mapping[str, Any], plugins: Collection[str]) -> LiveDialect:
    """The running scheduler's side of a profile, with the options and plugins that the planner was given."""
    if profile != "volcano":
        raise ValueError(f"the profile {profile!r} can be planned with, but not run yet")
    names = strings(options, "schedulerName") or ("volcano",)
    return Volcano(names, str(options.get("defaultQueue", "default")), plugins)
