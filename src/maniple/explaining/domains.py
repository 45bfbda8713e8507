"""The network domains that a gang has to fit into, and for how many of its pods each has room."""

from collections.abc import Iterator
from difflib import get_close_matches

import numpy as np

from maniple.cluster.levels import OUTSIDE, KaiTopology
from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.explaining.model import Cause, Domain
from maniple.explaining.parts import Parts
from maniple.framework.groups.tree import Group, PodSet
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.objects.printable import printable
from maniple.placement.engine import Mask

_MOST = 200  # domains to try


class Domains:
    """Of one session."""

    def __init__(self, session: Session, parts: Parts) -> None:
        self._session = session
        self._parts = parts

    def problem(self, job: int) -> Cause | None:
        """A topology, level or tier that does not exist."""
        known = self._session.domains.kai
        for one in self._constrained(job):
            wish, limit = one.wish, one.limit
            if wish is not None and wish.required and wish.topology not in known:
                near = get_close_matches(wish.topology, known, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                name = printable(wish.topology)
                text = f"topology {name} does not exist{hint}"
                return Cause(kind="TopologyMissing", sentence=text, lasting=True, subject=name)
            if wish is not None and wish.required and wish.required not in known[wish.topology].levels:
                levels, name = ", ".join(known[wish.topology].levels), printable(wish.required)
                text = f"topology {printable(wish.topology)} has no level {name}; it has {levels}"
                return Cause(kind="TopologyLevelMissing", sentence=text, lasting=True, subject=name)
            if (
                wish is not None
                and wish.required
                and not self._has_nodes(known[wish.topology], wish.required)
            ):
                return self._unlabelled(known[wish.topology])
            if limit is not None and limit.unknown:
                name = printable(limit.unknown)
                text = f"no HyperNode has the tier name {name}"
                return Cause(kind="TopologyLevelMissing", sentence=text, lasting=True, subject=name)
        return None

    def _has_nodes(self, topology: KaiTopology, label: str) -> bool:
        return bool((topology.domain_of[topology.levels.index(label)] != OUTSIDE).any())

    def _unlabelled(self, topology: KaiTopology) -> Cause:
        """No node has all labels of a topology."""
        used = {key for node in self._session.cluster.nodes.objects.values() for key in node.metadata.labels}
        missing = [label for label in topology.levels if label not in used]
        near = [one for label in missing for one in get_close_matches(label, used, n=1)]
        hint = f"; did you mean {printable(near[0])}?" if near else ""
        labels = " and ".join(map(printable, missing or topology.levels))
        text = f"no node has the label{'s' if len(missing or topology.levels) > 1 else ''} {labels}{hint}"
        return Cause(kind="TopologyLabelMissing", sentence=text, lasting=True, subject=labels)

    def rooms(self, job: int) -> tuple[Domain, ...]:
        """The domains that the job as a whole may choose from, the roomiest first: those around pods that have their
        places; none if it may be anywhere."""
        found = [
            Domain(name=printable(name), nodes=int(mask.sum()), room=self._parts.room(job, mask))
            for name, mask in self._masks(job)
        ]
        return tuple(sorted(found, key=lambda one: (-one.room, one.name)))

    def cause(self, job: int, rooms: tuple[Domain, ...]) -> Cause | None:
        """That no domain is large enough; None if one is."""
        needed, placed = len(self._parts.rows(job)), len(self._placed(job))
        if not rooms and self._all_masks(job):
            text = f"its pods have to be in one {self._what(job)}, and those that have their places are not"
            return Cause(kind="DomainTooSmall", sentence=text, lasting=True)
        if not rooms or rooms[0].room >= needed:
            return None
        best = ", ".join(f"{one.name} has room for {one.room}" for one in rooms[:3])
        more = f" and {len(rooms) - 3} more for no more than that" if len(rooms) > 3 else ""
        return Cause(
            kind="DomainTooSmall",
            sentence=f"{_all_of(needed, placed)} in one {self._what(job)}: {best}{more}",
            lasting=self._empty_room(job) < needed + placed,
            subject=rooms[0].name,
            needed={"pods": str(needed)},
            there={"pods": str(rooms[0].room)},
        )

    def miscounted(self, job: int, rooms: tuple[Domain, ...]) -> Cause | None:
        """That a domain has room, and plugin `topology` counts too few places in it: it takes a pod with a part of a
        GPU to need one of its own."""
        session, rows = self._session, self._parts.rows(job)
        shared = any(
            session.classes[one].share is not None for one in set(session.tasks.class_of[rows].tolist())
        )
        if not shared or not rooms or rooms[0].room < len(rows):
            return None
        text = (
            f"{rooms[0].name} has room for all {len(rows)} pods, but plugin topology, which decides on domains, counts "
            f"a GPU of its own for each pod that requests a part of one, and finds too few"
        )
        return Cause(kind="DomainMiscounted", sentence=text, subject=rooms[0].name)

    def _empty_room(self, job: int) -> int:
        """How many such pods the roomiest domain would hold if it were empty."""
        session, rows = self._session, self._parts.rows(job)
        request = session.requests(rows[:1])[:, 0]
        asked = request > 0
        slots = (session.nodes.allocatable[asked] // request[asked][:, None]).min(axis=0)
        return max((int(slots[mask].sum()) for _, mask in self._masks(job)), default=0)

    def _what(self, job: int) -> str:
        constrained = self._constrained(job)
        for one in constrained:
            if one.wish is not None and one.wish.required:
                return f"domain of level {printable(one.wish.required)} (topology {printable(one.wish.topology)})"
        highest = next((one.limit.highest for one in constrained if one.limit is not None), None)
        return f"HyperNode of tier {highest} or lower"

    def _constrained(self, job: int) -> list[Group | PodSet]:
        root = self._session.groups.root(job)
        return [root, *root.groups, *root.all_pod_sets()]

    def _masks(self, job: int) -> list[tuple[str, Mask]]:
        """Domains in which the job may have more pods: a level goes on wherever it began, a tier is around all."""
        session, found = self._session, self._all_masks(job)
        nodes = session.tasks.node[self._placed(job)]
        if not len(nodes):
            return found
        by_level = any(one.wish is not None and one.wish.required for one in self._choices(job))
        return [
            (name, mask) for name, mask in found if (mask[nodes].any() if by_level else mask[nodes].all())
        ]

    def _placed(self, job: int) -> TaskRows:
        tasks, rows = self._session.tasks, self._session.tasks_of(job)
        return rows[ACTIVE_ALLOCATED[tasks.status[rows]] & (tasks.node[rows] >= 0)]

    def _choices(self, job: int) -> list[Group | PodSet]:
        root = self._session.groups.root(job)
        inner = root.all_pod_sets()
        return [root, *inner] if len(inner) == 1 else [root]

    def _all_masks(self, job: int) -> list[tuple[str, Mask]]:
        for one in self._choices(job):
            if one.wish is not None and one.wish.required:
                return [*self._by_level(one.wish.topology, one.wish.required)]
            if one.limit is not None and one.limit.highest is not None and not one.limit.wished:
                return [*self._by_tier(one.limit.highest)]
        return []

    def _by_level(self, topology: str, label: str) -> Iterator[tuple[str, Mask]]:
        tree = self._session.domains.kai.get(topology)
        if tree is None or label not in tree.levels:
            return
        of_nodes = tree.domain_of[tree.levels.index(label)]
        for domain in np.unique(of_nodes[of_nodes >= 0]).tolist()[:_MOST]:
            yield ".".join(tree.paths[domain]), of_nodes == domain

    def _by_tier(self, highest: int) -> Iterator[tuple[str, Mask]]:
        tree = self._session.domains
        rows = [row for row in range(1, len(tree)) if tree.tier[row] <= highest]
        # A domain inside another that is allowed has no more room than that.
        outermost = [row for row in rows if not set(tree.ancestors(row)[1:]) & set(rows)]
        for row in outermost[:_MOST]:
            mask = np.zeros(len(self._session.nodes), dtype=np.bool_)
            mask[tree.nodes(row)] = True
            yield tree.names[row], mask


def _all_of(needed: int, placed: int) -> str:
    if not placed:
        return f"all {needed} pods have to be"
    more = "1 more pod has" if needed == 1 else f"{needed} more pods have"
    return f"{more} to be with the {'one that has its place' if placed == 1 else f'{placed} that have their places'}"


__all__ = ["Domains"]
