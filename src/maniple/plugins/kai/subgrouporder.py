"""subgrouporder: pod sets that lack something of their minimum first, then the one with the least in proportion to its minimum."""

from collections.abc import Mapping
from typing import Any

from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.framework.pod_sets import PodSet
from maniple.framework.points import Key
from maniple.framework.session import Session
from maniple.plugins.settings import takes_none


class SubGroupOrder:
    """No arguments."""

    name = "subgrouporder"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session

    def pod_set_order(self, pod_set: PodSet) -> Key:
        have = self._session.pod_sets.count(pod_set, ACTIVE_ALLOCATED)
        return (1, have / pod_set.minimum) if have >= pod_set.minimum else (0, 0.0)
