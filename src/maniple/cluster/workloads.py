"""Services and controllers, as the groups of pods that they select.

Pods without spread constraints of their own are spread as the groups they belong to
(`plugins/feasibility/spread.py`). A group is a term like any other (`terms.py`), so that membership is
decided once per distinct set of labels; it is looked up by one of its labels, because there may be a service
per job. A controller's pods are taken to be those that its selector matches.
"""

from collections.abc import KeysView

from maniple.cluster.terms import TermTable
from maniple.objects.core import ReplicaSet, ReplicationController, Service, StatefulSet
from maniple.objects.meta import LabelSelector, Object

WORKLOAD_KINDS: tuple[type[Object], ...] = (Service, ReplicationController, ReplicaSet, StatefulSet)


class Workloads:
    """The groups that exist now, by the objects that make them."""

    def __init__(self, terms: TermTable) -> None:
        self._terms = terms
        self._group_of: dict[tuple[type[Object], str], int] = {}
        self._users: dict[int, int] = {}

    def note(self, item: Object, *, gone: bool) -> bool:
        """Take in a change; False when the object is no service and no controller."""
        if not isinstance(item, Service | ReplicationController | ReplicaSet | StatefulSet):
            return False
        key = (type(item), item.key)
        before = self._group_of.pop(key, None)
        selector = None if gone else _selector(item)
        if selector is not None:
            group = self._terms.enter_group(item.metadata.namespace, selector)
            self._group_of[key] = group
            self._users[group] = self._users.get(group, 0) + 1
        if before is not None:
            self._leave(before)
        return True

    def groups(self) -> KeysView[int]:
        """The numbers of the terms that are groups."""
        return self._users.keys()

    def _leave(self, group: int) -> None:
        self._users[group] -= 1
        if not self._users[group]:
            del self._users[group]
            self._terms.drop_group(group)


def _selector(item: Service | ReplicationController | ReplicaSet | StatefulSet) -> LabelSelector | None:
    """The selector of a group; None when it is empty, which selects no pods."""
    if isinstance(item, Service | ReplicationController):
        return LabelSelector(match_labels=item.spec.selector) if item.spec.selector else None
    selector = item.spec.selector
    asks = selector is not None and (selector.match_labels or selector.match_expressions)
    return selector if asks else None
