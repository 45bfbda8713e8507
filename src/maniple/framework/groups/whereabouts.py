"""Where jobs are in the network: as committed, remembered by name across cycles, and as their tasks say.

Used by `Groups`. A decision counts for as long as its domain exists and something of the job (or pod set)
holds a node. It may be wider than what the tasks take up; it is never narrower, since what the tasks say is
added to it. With `topology.remembered_domain_decides` memory alone counts where it has something.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.domain_sums import DomainSums, sums_of
from maniple.cluster.domains import NONE
from maniple.cluster.statuses import ALLOCATED_LIKE
from maniple.framework.groups.tree import Group, TaskRows

if TYPE_CHECKING:
    from maniple.framework.session import Session

_HOLDING = np.flatnonzero(ALLOCATED_LIKE)


@dataclass(frozen=True, slots=True)
class Settled:
    """Where a job was when it was last committed, and what it was promised."""

    uid: str
    domain: str
    pod_sets: dict[str, tuple[str, str]]  # name -> domain, nominated domain


class Whereabouts:
    def __init__(self, session: "Session") -> None:
        self._session = session
        self._memory_decides = session.rules.topology.remembered_domain_decides
        self._memory: dict[str, Settled] = session.cluster.memory.setdefault(Settled, {})  # type: ignore[assignment]
        self._forget_the_gone()

    def _forget_the_gone(self) -> None:
        jobs = self._session.cluster.jobs
        for key in list(self._memory):
            row = jobs.index_of(key)
            known = jobs.objects.get(row) if row is not None else None
            if known is None or known.metadata.uid != self._memory[key].uid:
                del self._memory[key]

    @property
    def _places(self) -> DomainSums:
        return sums_of(self._session.domains, self._session.cluster.memory)

    # -- remembering ----------------------------------------------------------------------------------------------

    def keep(self, root: Group) -> None:
        """Remember where a job is, and what it was promised as far as promises are kept."""
        session, names = self._session, self._session.domains.names
        kept = session.rules.placing.cleared_room_is_kept

        def name(domain: int) -> str:
            return names[domain] if domain != NONE else ""

        self._memory[session.cluster.jobs.keys[root.job]] = Settled(
            session.cluster.jobs.objects[root.job].metadata.uid,
            name(root.domain),
            {one.name: (name(one.domain), name(one.nominated) if kept else "") for one in root.members},
        )

    def promised(self) -> list[int]:
        """Jobs of the session for which a domain was cleared."""
        rows = [
            self._session.cluster.jobs.index_of(key)
            for key, known in self._memory.items()
            if any(nominated for _, nominated in known.pod_sets.values())
        ]
        served = set(self._session.jobs.rows.tolist()) if rows else set()
        return [row for row in rows if row is not None and row in served]

    # -- finding out ----------------------------------------------------------------------------------------------

    def locate(self, roots: Iterable[Group]) -> None:
        """Fill in the domains of jobs and pod sets that hold something."""
        session = self._session
        if session.rules.topology.broken_domain_stops_all and session.domains.broken:
            return
        holding = session.jobs.counts[_HOLDING].sum(axis=0) > 0
        for root in roots:
            known = self._memory.get(session.cluster.jobs.keys[root.job]) if self._memory else None
            if known is not None or holding[root.job]:
                self._locate(root, known)

    def _locate(self, root: Group, known: Settled | None) -> None:
        index, found = self._session.domains.index, False
        for one in root.members:
            domain, nominated = known.pod_sets.get(one.name, ("", "")) if known else ("", "")
            one.nominated = index.get(nominated, NONE)
            nodes = self._held(one.rows)
            if nodes is None:
                continue
            one.domain = index.get(domain, NONE)
            if one.limit is not None and (one.domain == NONE or not self._memory_decides):
                around = self._around(nodes)
                found = found or (one.domain == NONE and around != NONE)
                one.domain = self._places.joined(one.domain, around)
        if root.limits:
            self._locate_job(root, index.get(known.domain, NONE) if known else NONE, found)

    def _locate_job(self, root: Group, domain: int, found: bool) -> None:
        """Around all pod sets; where memory decides, around those that have a topology of their own."""
        nodes = self._held(np.concatenate([one.rows for one in root.members]))
        if nodes is None:
            return
        root.domain = domain
        if not self._memory_decides:
            root.domain = self._places.joined(domain, self._around(nodes))
        elif domain == NONE or found:
            root.domain = NONE
            for one in root.members:
                root.domain = self._places.joined(root.domain, one.domain)

    def _held(self, rows: TaskRows) -> NDArray[np.int32] | None:
        """The nodes of tasks that hold some; None when none does."""
        tasks = self._session.tasks
        rows = rows[ALLOCATED_LIKE[tasks.status[rows]]]
        return tasks.node[rows] if len(rows) else None

    def _around(self, nodes: NDArray[np.int32]) -> int:
        """The narrowest domain around nodes; none when one of them is not in the session."""
        if (nodes < 0).any():
            return NONE
        if self._memory_decides and not self._session.domains.members[1:, nodes].any():
            return NONE  # tasks that are in no HyperNode at all do not keep the others out of them there
        return self._places.around(nodes)
