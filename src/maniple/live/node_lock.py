"""The lock of a node while one of its devices is handed out: an annotation with the time at which it was taken.

Whoever hands the device over on the node takes it off; one that is older than five minutes was forgotten and counts for nothing. Called by `preparing.py`; pure.
"""

from datetime import UTC, datetime, timedelta

from maniple.live.rewriting import Part, conflict
from maniple.objects.core import Node

FORGOTTEN = timedelta(minutes=5)


class NodeLock:
    """Of one pod. `take` and `give_back` say what has to be written on the node for it."""

    def __init__(self, name: str, when: datetime) -> None:
        self._name = name
        self._when = when
        self._stamp = when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._mine = False  # as far as is known: others may lock in the same second

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
        """A lock that was taken for nothing."""
        mine = self._mine and node.metadata.annotations.get(self._name) == self._stamp
        return Part({"metadata": {"annotations": {self._name: None}}}) if mine else None


def _forgotten(stamp: str, when: datetime) -> bool:
    try:
        since = datetime.fromisoformat(stamp)
    except ValueError:
        return True  # nobody's
    return since.tzinfo is None or when - since > FORGOTTEN
