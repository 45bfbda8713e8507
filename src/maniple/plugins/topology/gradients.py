"""Gradients: the domains that a job or a sub-job may be placed in, tier by tier.

Called by network-topology-aware. If nothing is placed yet: all domains inside the given one, up to the
highest tier allowed, that have enough of every resource. If something is placed: the domains inside the
widest one that is allowed around it, whatever they have.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.domain_sums import DomainSums
from maniple.cluster.domains import NONE
from maniple.cluster.resources import CPU, MEMORY, Amounts
from maniple.framework.points import Purpose
from maniple.framework.session import Session


class Gradients:
    """The capacity of domains, as of the opening of the session."""

    def __init__(self, session: Session, most_for_eviction: int) -> None:
        self._places: DomainSums = session.groups.places
        self._most = most_for_eviction
        nodes = session.nodes
        self._idle = self._places.over(nodes.idle())
        self._future = self._places.over(nodes.future_idle())
        self._allocatable = self._places.over(nodes.allocatable)
        self._known: dict[tuple[bytes, Purpose], NDArray[np.bool_]] = {}

    def of(self, given: int, placed: int, highest: int, least: Amounts, purpose: Purpose) -> list[list[int]]:
        """Domains by tier, the lowest first; for eviction the highest first, and at most this many."""
        root = self._search_root(given, placed, highest)
        if root == NONE:
            return []
        tier = self._places.tree.tier
        domains = self._places.below(root)
        domains = domains[tier[domains] <= highest]
        if placed == NONE:
            domains = domains[self._enough(least, purpose)[domains]]
        by_tier = [domains[tier[domains] == one].tolist() for one in sorted(set(tier[domains].tolist()))]
        return self._capped(by_tier) if purpose is Purpose.EVICT else by_tier

    def _search_root(self, given: int, placed: int, highest: int) -> int:
        """The allowed part of the given domain: all of it, or only around what is placed."""
        if placed == NONE:
            return given
        tree, widest = self._places.tree, NONE
        for domain in tree.ancestors(placed):
            if tree.tier[domain] > highest:
                break
            widest = domain
        if widest == NONE:
            return NONE
        common = tree.lowest_common(given, widest)
        if common == widest:
            return given
        return widest if common == given else NONE

    def _enough(self, least: Amounts, purpose: Purpose) -> NDArray[np.bool_]:
        """By domain; equal gangs share the result."""
        key = least.tobytes(), purpose
        if key not in self._known:
            if purpose is Purpose.EVICT:
                self._known[key] = _covers(self._allocatable, least)
            else:
                self._known[key] = _covers(self._idle, least) | _covers(self._future, least)
        return self._known[key]

    def _capped(self, by_tier: list[list[int]]) -> list[list[int]]:
        left, capped = self._most, []
        for domains in reversed(by_tier):
            if left <= 0:
                break
            capped.append(domains[:left])
            left -= len(capped[-1])
        return capped


def _covers(sums: Amounts, least: Amounts) -> NDArray[np.bool_]:
    """By domain: whether it has enough of every requested resource, without overcommitted CPU or memory."""
    known = len(sums)
    covers = np.full(sums.shape[1], not least[known:].any(), dtype=np.bool_)
    for dimension in {CPU, MEMORY, *np.flatnonzero(least[:known]).tolist()}:
        covers &= sums[dimension] >= least[dimension]
    return covers
