"""Which pods count as being on a node for host ports and inter-pod affinity, in KAI.

As everywhere a pod counts once it is placed or pipelined. With strict rules it also continues to count after
an eviction, until it is gone: a port of an evicted pod is not free for the pod that waits for its place, and
a pod that is moved counts at both ends. Otherwise an evicted pod no longer counts.
"""

from dataclasses import replace

from maniple.cluster.statuses import Status
from maniple.framework.points import Event
from maniple.framework.session import Session
from maniple.plugins.feasibility.placed import Placements


class Presence:
    """Forwards a session's events to the counts that several plugins share."""

    def __init__(self, session: Session, keeper: object) -> None:
        self._session = session
        self.placements = Placements.shared(session, keeper)
        self._keeper = keeper
        if session.rules.placing.evicted_pods_keep_neighbours_away:
            self.placements.keep_evicted()

    def on_allocate(self, event: Event) -> None:
        self.placements.follow(self._keeper, self._that_count(event), +1)

    def on_deallocate(self, event: Event) -> None:
        if self.placements.homes is not None:
            self._stay(event)
        self.placements.follow(self._keeper, self._that_count(event), -1)

    def _stay(self, event: Event) -> None:
        """Evicted pods stay, also those that this session has placed; a move that is undone leaves nothing
        behind."""
        tasks = self._session.tasks
        here = tasks.node[event.rows] == event.nodes
        evicted = here & (tasks.status[event.rows] == Status.RELEASING)
        self.placements.keep(event.rows[evicted], event.nodes[evicted])

    def _that_count(self, event: Event) -> Event:
        if self.placements.homes is None:
            return event
        moves = self.placements.away(event.rows, event.nodes)
        return event if moves.all() else replace(event, rows=event.rows[moves], nodes=event.nodes[moves])
