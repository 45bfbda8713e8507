"""The queues of a session as a tree: parents, children, paths.

A queue with a parent that does not exist, or that is its own ancestor, is left out with everything below it:
`queue in tree` says whether it is there. Only leaves take jobs. Made by the session; read by actions and by
plugins that share among queues.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from maniple.cluster.tables import QueueTable

ROOT = -1


class QueueTree:
    """Queues by row. The root, which is no queue, is -1.

    `flat`: resources are shared among queues without their departments. Queues at the top are left out, and
    all others, at whatever depth, are leaves side by side.
    """

    def __init__(self, queues: QueueTable, *, flat: bool = False) -> None:
        self._queues = queues
        self._flat = flat
        self._paths: dict[int, list[int]] = {}
        for queue in sorted(queues.facts, key=queues.keys.__getitem__):
            path = self._way_up(queue)
            if path is not None:
                self._paths[queue] = path

    def _way_up(self, queue: int) -> list[int] | None:
        """The queue, its parent and so on; None when that leads nowhere, or in a circle."""
        if self._flat:
            return [queue] if self._queues.facts[queue].parent else None
        path = [queue]
        while (name := self._queues.facts[path[-1]].parent) != "":
            parent = self._queues.index_of(name)
            if parent is None or parent not in self._queues.facts or parent in path:
                return None
            path.append(parent)
        return path

    def __contains__(self, queue: int) -> bool:
        return queue in self._paths

    def __iter__(self) -> Iterator[int]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def path(self, queue: int) -> list[int]:
        """The queue, its parent and so on up to a top-level queue."""
        return self._paths[queue]

    def paths(self) -> Mapping[int, Sequence[int]]:
        """Of every queue that is in the tree."""
        return self._paths

    def parent(self, queue: int) -> int:
        path = self._paths[queue]
        return path[1] if len(path) > 1 else ROOT

    @cached_property
    def _children(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for queue in self._paths:
            found.setdefault(self.parent(queue), []).append(queue)
        return found

    def children(self, queue: int) -> list[int]:
        """By name; those of the root are the top-level queues."""
        return self._children.get(queue, [])

    @property
    def roots(self) -> list[int]:
        return self.children(ROOT)

    def leaf(self, queue: int) -> bool:
        return queue not in self._children

    def serves(self, queue: int) -> bool:
        """Whether jobs of this queue are scheduled: it is there, and it is a leaf."""
        return queue in self._paths and self.leaf(queue)
