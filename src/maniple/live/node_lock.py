"""The lock of a node while one of its devices is assigned: an annotation with the time it was taken.

The device plugin on the node removes it; a lock older than five minutes counts as abandoned. Called by
`preparing.py`; pure.
"""

from datetime import UTC, datetime, timedelta

from maniple.live.rewriting import Part, conflict
from maniple.objects.core import Node

FORGOTTEN = timedelta(minutes=5)


class NodeLock:
    """The lock for one pod; `take` and `give_back` return what to write on the node for it."""

    def __init__(self, name: str, when: datetime) -> None:
        self._name = name
        self._when = when
        self._stamp = when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._mine = False  # as far as is known: another scheduler may lock in the same second

    def take(self, node: Node) -> Part | None:
        there = node.metadata.annotations.get(self._name)
        if self._mine and there == self._stamp:
            return None
        if there is not None and not _forgotten(there, self._when):
            self._mine = False
            raise conflict((Node, node.key), f"has been locked by {self._name} since {there}")
        self._mine = True
        return Part({"metadata": {"annotations": {self._name: self._stamp}}})

    def give_back(self, node: Node) -> Part | None:
        """Release a lock that is not needed."""
        mine = self._mine and node.metadata.annotations.get(self._name) == self._stamp
        return Part({"metadata": {"annotations": {self._name: None}}}) if mine else None


def _forgotten(stamp: str, when: datetime) -> bool:
    try:
        since = datetime.fromisoformat(stamp)
    except ValueError:
        return True  # not locked
    return since.tzinfo is None or when - since > FORGOTTEN
