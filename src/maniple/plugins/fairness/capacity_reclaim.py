"""Which tasks may be evicted for a task of another queue, in the capacity plugin.

Called by capacity for each reclaimer with candidates in victim order. A candidate is skipped if it has no
resource in common with the reclaimer (`pods` aside) or if its queue would fall below its guarantee. It is a
victim if its queue deserves none of what it requests (an immediate victim), or exceeds what it deserves of
one of those resources. A victim's amount is subtracted from its queue before the next candidate is
considered.

A task is no victim if it has any of a resource that the reclaimer's queue would then exceed (`barred`). So no
queue can reclaim in turn what it lost, and queues settle. In the original it is enough that the reclaimer
stays within what it deserves of one resource; two queues of which each has too much of another then evict
each other forever.

With `ancestorReclaimLevel` > 0 ancestors count: an immediate victim that shares an ancestor below the root
with the reclaimer, within that many levels, is spared if the reclaimer's queue deserves none of what it
requests either; and at each of those levels where the two branches differ, the victim's ancestor must exceed
what it deserves as well.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from maniple.cluster.resources import PODS
from maniple.plugins.fairness.capacity_account import CapacityAccount, Request

Candidate = tuple[CapacityAccount, Request]
Measures = list[tuple[int, float]]


@dataclass(frozen=True, slots=True, eq=False)
class _Test:
    """The condition for a queue to lose a task of one kind; `left` is shared by all tests of the queue."""

    left: list[int]
    floors: Measures  # at least this much must be left
    excess: Measures | None  # more than this of any of them; None: no condition

    def passes(self) -> bool:
        left = self.left
        if any(left[dimension] < floor for dimension, floor in self.floors):
            return False
        return self.excess is None or any(left[dimension] > deserved for dimension, deserved in self.excess)


@dataclass(frozen=True, slots=True, eq=False)
class _Kind:
    """Candidates of one queue with equal requests."""

    request: list[tuple[int, int]]
    tests: list[_Test]

    def take(self) -> bool:
        """Whether one more of them is a victim; if so, its amount is subtracted from the queues concerned."""
        if not all(test.passes() for test in self.tests):
            return False
        for test in self.tests:
            for dimension, amount in self.request:
                test.left[dimension] -= amount
        return True


class Reclaim:
    """The walk over the candidates of one reclaimer.

    For a whole gang as the reclaimer there is no request to compare with, and only the victims' own queues
    count.
    """

    def __init__(
        self,
        asker: CapacityAccount,
        request: Request | None = None,
        levels: int = 0,
        barred: Collection[int] = (),
    ) -> None:
        self._asker = asker
        self._barred = barred
        self._request = request
        self._levels = levels
        self._left: dict[int, list[int]] = {}
        self._kinds: dict[tuple[int, int], _Kind | None] = {}

    def victims(self, candidates: Iterable[Candidate]) -> list[bool]:
        """For each candidate, whether it is a victim."""
        allowed, kinds = [], self._kinds
        for account, request in candidates:
            key = (id(account), id(request))
            if key not in kinds:
                kinds[key] = self._kind(account, request)
            kind = kinds[key]
            allowed.append(kind is not None and kind.take())
        return allowed

    def _kind(self, account: CapacityAccount, request: Request) -> _Kind | None:
        """None for those that are skipped whatever their queue has."""
        if self._request is not None and not _have_in_common(request, self._request):
            return None
        if any(request[dimension] > 0 for dimension in self._barred):
            return None
        if not account.deserves_of(request) and self._spares_relative(account):
            return None
        floors: Measures = [
            (dimension, guarantee + request[dimension])
            for dimension, guarantee in enumerate(account.guarantee)
            if guarantee > 0
        ]
        tests = [self._test(account, request, floors)]
        tests += [self._test(ancestor, request, []) for ancestor in self._ancestors_to_check(account)]
        return _Kind([(dimension, amount) for dimension, amount in enumerate(request) if amount], tests)

    def _test(self, queue: CapacityAccount, request: Request, floors: Measures) -> _Test:
        left = self._left.setdefault(id(queue), list(queue.allocated))
        return _Test(left, floors, queue.measures_excess(request) if queue.deserves_of(request) else None)

    def _spares_relative(self, account: CapacityAccount) -> bool:
        """An immediate victim is spared by a relative that deserves nothing either."""
        if self._request is None or not self._asker.is_shared_with(account, self._levels):
            return False
        return not self._asker.deserves_of(self._request)

    def _ancestors_to_check(self, account: CapacityAccount) -> list[CapacityAccount]:
        """The victim's ancestors within the levels, without the root and those shared with the reclaimer."""
        ours = self._asker.above
        return [
            ancestor
            for level, ancestor in enumerate(account.above[: self._levels])
            if ancestor.above and not (level < len(ours) and ours[level] is ancestor)
        ]


def _have_in_common(request: Request, other: Request) -> bool:
    pairs = enumerate(zip(request, other, strict=True))
    return any(ours > 0 and theirs > 0 for dimension, (ours, theirs) in pairs if dimension != PODS)
