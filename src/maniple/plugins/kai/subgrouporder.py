"""subgrouporder: pod sets below their minimum first, then the one with the least in proportion to its
minimum.

Pod sets without a minimum come last, the one with the fewest tasks first.
"""

from collections.abc import Mapping
from typing import Any

from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.framework.groups.tree import PodSet
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
        have = self._session.groups.count(pod_set, ACTIVE_ALLOCATED)
        if have < pod_set.minimum:
            return (0, 0.0)
        return (2, float(have)) if pod_set.optional else (1, have / pod_set.minimum)
