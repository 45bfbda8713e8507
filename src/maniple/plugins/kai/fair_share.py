"""Fair shares: what each queue of a tree is entitled to, for any number of resources at once.

Called by `proportion` when a session opens. Arrays in, arrays out; nothing here depends on sessions. Every
resource is divided by itself, level by level: the top queues divide the whole, the queues below a queue
divide what that one got.

1. A queue gets its quota, as far as it requests it. An unlimited quota is all that there is to divide. Quotas
   are guaranteed: if they add up to more than there is, none is cut.
2. What is left is divided by priority, the highest first, and by weight, in rounds: a queue that requests no
   more than its part gets its request, any other gets whole units of its part; the rest is divided again.
   With weight w as a fraction of the weights of all unsatisfied queues and past usage u as a fraction of
   capacity, a queue's part is in proportion to w + k (w - u), or 0 if that is negative.
3. Units left by rounding down go one each, by priority, to the queues from which most was cut, then to the
   earlier in the given order.

No queue gets more than it requests or than its limit, unless `whole_leftovers` is set (see there).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ShareTerms:
    """What is known of the queues, in an order that breaks ties: the earlier goes first.

    Matrices are resources x queues. Unlimited quotas and limits are infinite. `parent` is the index of the
    queue above, -1 for none; there are no cycles.
    """

    parent: NDArray[np.int64]
    priority: NDArray[np.int64]
    quota: Floats
    limit: Floats
    weight: Floats
    request: Floats
    usage: Floats


def fair_shares(total: Floats, terms: ShareTerms, *, k: float = 1.0, whole_leftovers: bool = False) -> Floats:
    """The share of every queue (resources x queues) of `total`, which has one amount per resource.

    `whole_leftovers`: a unit left by rounding is given whole, also to a queue that requests less, as KAI
    does.
    """
    shares = np.zeros(terms.quota.shape, dtype=np.float64)
    for queues in _levels(terms.parent):
        above = terms.parent[queues]
        parents, family = np.unique(above, return_inverse=True)
        amount = shares[:, parents]
        if parents[0] < 0:
            amount[:, 0] = total
        division = _Division(terms, queues, family, amount)
        division.by_quota()
        division.by_weight(k)
        division.leftovers(whole=whole_leftovers)
        shares[:, queues] = division.share
    return shares


def _levels(parent: NDArray[np.int64]) -> Iterator[Rows]:
    """The queues of each level, from the top; each level in the given order."""
    level = np.flatnonzero(parent < 0)
    reached = np.zeros(len(parent) + 1, dtype=np.bool_)  # -1 reads the last entry, which stays false
    while len(level):
        yield level
        reached[:] = False
        reached[level] = True
        level = np.flatnonzero(reached[parent])


class _Division:
    """One level: families of siblings, each dividing an amount of every resource.

    `family` is the family of each queue; `left` is what remains (resources x families).
    """

    def __init__(self, terms: ShareTerms, queues: Rows, family: Rows, amount: Floats) -> None:
        self._priority = terms.priority[queues]
        self._quota = terms.quota[:, queues]
        self._weight = terms.weight[:, queues]
        self._usage = terms.usage[:, queues]
        self._wanted = np.minimum(terms.request[:, queues], terms.limit[:, queues])
        self._family = family
        self._height, self._families = amount.shape
        self.left = amount
        self.share = np.zeros_like(self._quota)
        self._cut = np.zeros_like(self._quota)  # what rounding down last took from a queue

    def by_quota(self) -> None:
        due = np.where(np.isinf(self._quota), self.left[:, self._family], self._quota)
        self.share = np.minimum(due, self._wanted)
        every = np.arange(len(self._family))
        left = self.left - self._sums(self.share, every)
        self.left = np.maximum(left, 0.0)

    def by_weight(self, k: float) -> None:
        hungry = ((self.share < self._wanted) & (self._weight != 0)).any(axis=0)
        for priority in np.unique(self._priority[hungry])[::-1].tolist():
            if not self.left.any():
                return
            members = np.flatnonzero((self._priority == priority) & hungry)
            going = np.ones(self.left.shape, dtype=np.bool_)
            while going.any():
                going = self._round(members, going & (self.left > 0), k)

    def _round(self, members: Rows, going: Flags, k: float) -> Flags:
        """Divide what is left once; returns where satisfied queues left something over."""
        family = self._family[members]
        share, wanted = self.share[:, members], self._wanted[:, members]
        weight, want = self._weight[:, members], wanted - share
        hungry = (want > 0) & going[:, family]
        part = self._parts(members, hungry, k)
        sums = self._sums(part, members)[:, family]
        hungry &= (weight != 0) & (sums > 0)
        fair = np.divide(part, sums, out=np.zeros_like(part), where=hungry) * self.left[:, family]
        satisfied = hungry & (want <= fair)
        whole = np.floor(fair)
        given = np.where(satisfied, want, np.where(hungry, whole, 0.0))
        cut = self._cut[:, members]
        cut = np.where(hungry & ~satisfied & (fair > whole), fair - whole, cut)
        self._cut[:, members] = np.where(satisfied, 0.0, cut)
        self.share[:, members] = np.where(satisfied, wanted, share + given)
        self.left = self.left - self._sums(given, members)
        return self._sums((satisfied & (want < fair)).astype(np.float64), members) > 0

    def _parts(self, members: Rows, hungry: Flags, k: float) -> Floats:
        """In what proportion the unsatisfied queues divide."""
        weight = np.where(hungry, self._weight[:, members], 0.0)
        sums = self._sums(weight, members)[:, self._family[members]]
        normal = np.divide(weight, sums, out=np.zeros_like(weight), where=hungry & (sums != 0))
        usage = self._usage[:, members]
        return np.where(hungry & (sums != 0), np.maximum(0.0, normal + k * (normal - usage)), 0.0)

    def leftovers(self, *, whole: bool) -> None:
        resource, place = np.nonzero(self._cut > 0)
        if not len(place):
            return
        family, cut = self._family[place], self._cut[resource, place]
        order = np.lexsort((place, -cut, -self._priority[place], family, resource))
        resource, place, family = resource[order], place[order], family[order]
        want = self._wanted[resource, place] - self.share[resource, place]
        most = np.ones(len(order)) if whole else np.clip(want, 0.0, 1.0)
        given_before = most.cumsum() - most
        starts = np.ones(len(order), dtype=np.bool_)
        starts[1:] = (resource[1:] != resource[:-1]) | (family[1:] != family[:-1])
        given_before -= given_before[starts][starts.cumsum() - 1]
        left = self.left[resource, family]
        self.share[resource, place] += np.clip(left - given_before, 0.0, most)

    def _sums(self, amounts: Floats, members: Rows) -> Floats:
        """Amounts of some queues (resources x members) by family."""
        family = self._family[members]
        flat = (np.arange(self._height)[:, None] * self._families + family).ravel()
        sums = np.bincount(flat, weights=amounts.ravel(), minlength=self._height * self._families)
        return sums.astype(np.float64, copy=False).reshape(self._height, self._families)


__all__ = ["ShareTerms", "fair_shares"]
