"""What the loop takes in next: changes of the cluster, and things to be done between two cycles.

Until all kinds have been listed, pods come last. A pod that is taken in before its owner would be a job of its own for
a moment, and forty thousand of them cost half a minute.
"""

from collections import deque
from collections.abc import Callable

from maniple.live.port import Change
from maniple.objects.core import Pod

Item = Change | Callable[[], bool]


class Inbox:
    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._early_pods: deque[Item] = deque()
        self._all_listed = False

    def __len__(self) -> int:
        return len(self._items)

    def append(self, item: Item) -> None:
        early = not self._all_listed and not callable(item) and isinstance(item.object, Pod)
        (self._early_pods if early else self._items).append(item)

    def popleft(self) -> Item:
        return self._items.popleft()

    def all_listed(self) -> None:
        """Objects of all kinds have been taken in, except for pods."""
        self._all_listed = True
        self._items.extendleft(reversed(self._early_pods))
        self._early_pods.clear()
