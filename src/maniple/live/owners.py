"""Owners of pods that have not arrived yet, and those that left before their pods.

A pod may be seen before its owner. It then waits a little, with a reason that names the owner, and is scheduled by the
owners that are there if that one never comes. An owner that is deleted while it has pods counts for as long as they
are there: their group stays what it was.
"""

from collections.abc import Iterable, Iterator

from maniple.live.refs import Ref, ref_of
from maniple.objects.core import Pod
from maniple.objects.meta import Object
from maniple.profiles.grouping import Grouper
from maniple.profiles.named_grouping import NamedGrouper

OWNER_SECONDS = 10.0
_WHY = "waits for its owner {kind} {namespace}/{name}, which has not been seen yet"


class Owners:
    def __init__(self, grouper: Grouper | NamedGrouper) -> None:
        self._grouper = grouper
        self._new: dict[
            str, None
        ] = {}  # pods that came without an owner, since the last time that it was asked
        self._waiting: set[str] = set()  # pods that wait, or have waited long enough
        self._departed: dict[Ref, Object] = {}

    def seen(self, pod: Pod) -> None:
        """A pod came, or has changed."""
        key = pod.key
        if self._grouper.missing(key) is not None and not pod.spec.node_name and key not in self._waiting:
            self._new[key] = None

    def begin_to_wait(self) -> Iterator[tuple[str, str]]:
        """The pods that wait from now on, and why."""
        for key in [*self._new]:
            owner = self._grouper.missing(key)
            if owner is not None:
                self._waiting.add(key)
                namespace = key.partition("/")[0]
                yield key, _WHY.format(kind=owner.kind, namespace=namespace, name=owner.name)
        self._new.clear()

    def arrived(self, owner: Object) -> list[str]:
        """An owner came; returns the pods that need not wait any longer."""
        self._departed.pop(ref_of(owner), None)
        waiting = self._waiting
        found = [
            key
            for key in self._grouper.pods_of(owner)
            if key in waiting and self._grouper.missing(key) is None
        ]
        waiting.difference_update(found)
        return found

    def departs(self, owner: Object) -> bool:
        """An owner is gone; returns whether it has pods, for which it is kept."""
        if not self._grouper.has_pods(owner):
            return False
        self._departed[ref_of(owner)] = owner
        return True

    def forget(self, pod: str) -> None:
        """A pod is gone."""
        self._new.pop(pod, None)
        self._waiting.discard(pod)

    def without_pods(self, owners: Iterable[Ref]) -> list[Ref]:
        """Those of the owners that are gone and have no pods left."""
        found = [
            ref for ref in owners if ref in self._departed and not self._grouper.has_pods(self._departed[ref])
        ]
        for ref in found:
            del self._departed[ref]
        return found

    @property
    def departed(self) -> frozenset[Ref]:
        return frozenset(self._departed)
