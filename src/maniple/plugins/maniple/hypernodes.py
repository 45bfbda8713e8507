"""hypernodes: jobs, and parts of jobs, with a network topology get nodes of one HyperNode.

The domains that a limit allows are tried one after the other: the narrower tier first, inside a tier the
tighter first (the one with the least to spare that still has enough), then by name. A domain that has less
free than all tasks request together is not tried, and once tasks of a part are placed, only domains around
them are. A soft constraint tries all nodes at last.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.cluster.domains import ROOT
from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.framework.criteria import NodeRows
from maniple.framework.groups.tree import Group, PodSet
from maniple.framework.points import TaskRows
from maniple.framework.refusals import Refusals
from maniple.framework.session import Session
from maniple.plugins.settings import takes_none

UNKNOWN_TIER = "no HyperNode has the tier name {name!r}"
NO_DOMAIN = "no HyperNode of tier {tier} or below has room for {count} pods together"


class HyperNodes:
    """No arguments."""

    name = "hypernodes"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session
        self._tree = session.domains

    def subset_nodes(
        self, group: Group | PodSet, rows: TaskRows, refusals: Refusals, nodes: NodeRows
    ) -> list[NodeRows]:
        limit = group.limit
        if limit is None or not len(rows):
            return [nodes]
        if isinstance(group, PodSet) and group.whole:
            return [nodes]  # the limit of the job, which has been kept for its root
        if limit.unknown:
            refusals.of_job(group.job, UNKNOWN_TIER.format(name=limit.unknown))
            return []
        if limit.highest is None:
            return [nodes]
        found = self._domains(group, rows, nodes, limit.highest)
        if limit.wished:
            found.append(nodes)
        elif not found:
            cause = NO_DOMAIN.format(tier=limit.highest, count=len(rows))
            refusals.of_job(group.job, cause)
        return found

    def _domains(
        self, group: Group | PodSet, rows: TaskRows, nodes: NodeRows, highest: int
    ) -> list[NodeRows]:
        tree = self._tree
        among = np.zeros(len(self._session.nodes), dtype=np.bool_)
        among[nodes] = True
        allowed = tree.tier <= highest
        allowed[ROOT] = False
        placed = self._placed(group)
        allowed &= tree.members[:, placed].all(axis=1)
        domains = np.flatnonzero(allowed)
        members = tree.members[domains] & among
        asked = self._session.requests(rows).sum(axis=1)
        free = np.maximum(self._session.nodes.future_idle(), 0)[: len(asked)] @ members.T
        enough = (free >= asked[:, None]).all(axis=0)
        spare = (free[asked > 0] / asked[asked > 0][:, None]).min(axis=0, initial=np.inf)
        order = np.lexsort((domains, spare, tree.tier[domains]))
        return [np.flatnonzero(members[place]) for place in order.tolist() if enough[place]]

    def _placed(self, group: Group | PodSet) -> NodeRows:
        """Nodes where tasks of this part are or will be."""
        parts = [group] if isinstance(group, PodSet) else group.all_pod_sets()
        tasks = self._session.tasks
        rows = np.concatenate([one.rows for one in parts]) if parts else np.zeros(0, dtype=np.int64)
        nodes = tasks.node[rows[ACTIVE_ALLOCATED[tasks.status[rows]]]]
        return np.unique(nodes[nodes >= 0]).astype(np.intp)
