"""Who may be taken for a task of another queue, as the capacity plugin sees it.

Called by capacity for each asker with candidates in victim order. A candidate is passed over if it has no resource in common with the
asker (places for pods aside) or if its queue would fall below its guarantee. It is a victim if its queue deserves nothing of what
it asks for (an immediate victim), or has more than it deserves of one of those resources. What a victim had is taken off its
queue before the next candidate is looked at.

With `ancestorReclaimLevel` > 0 the ancestors have a say: an immediate victim that shares an ancestor below the root with the
asker, within so many levels, is spared if the asker's queue deserves nothing of what it asks for either; and at each of those levels
where the two branches differ, the victim's ancestor must have more than it deserves as well.
"""

from collections.abc import Iterable, Sequence

from maniple.cluster.resources import PODS
from maniple.plugins.fairness.capacity_account import CapacityAccount, Request

Candidate = tuple[CapacityAccount, Request]


class Reclaim:
    """The walk over the candidates of one asker. `levels` is 0 for queues that form no tree."""

    def __init__(self, asker: CapacityAccount, request: Request, levels: int) -> None:
        self._asker = asker
        self._request = request
        self._levels = levels
        self._left: dict[int, list[int]] = {}

    def victims(self, candidates: Iterable[Candidate]) -> list[bool]:
        """For each candidate, whether it is a victim."""
        return [self._take(account, request) for account, request in candidates]

    def _take(self, account: CapacityAccount, request: Request) -> bool:
        if not _have_in_common(request, self._request) or not self._own_queue_yields(account, request):
            return False
        checked = self._ancestors_to_check(account)
        if not all(self._is_over(ancestor, request) for ancestor in checked):
            return False
        for queue in (account, *checked):
            self._take_off(queue, request)
        return True

    def _own_queue_yields(self, account: CapacityAccount, request: Request) -> bool:
        if not account.keeps_guarantee(self._left_of(account), request):
            return False
        if account.deserves_of(request):
            return account.exceeds(self._left_of(account), request)
        among_relatives = self._levels > 0 and self._asker.is_shared_with(account, self._levels)
        return not among_relatives or self._asker.deserves_of(self._request)

    def _is_over(self, queue: CapacityAccount, request: Request) -> bool:
        return not queue.deserves_of(request) or queue.exceeds(self._left_of(queue), request)

    def _ancestors_to_check(self, account: CapacityAccount) -> list[CapacityAccount]:
        """The victim's ancestors within the levels, without the root and those that the asker has at the same level."""
        ours = self._asker.above
        return [
            ancestor
            for level, ancestor in enumerate(account.above[: self._levels])
            if ancestor.above and not (level < len(ours) and ours[level] is ancestor)
        ]

    def _left_of(self, queue: CapacityAccount) -> Sequence[int]:
        return self._left.get(id(queue), queue.allocated)

    def _take_off(self, queue: CapacityAccount, request: Request) -> None:
        left = self._left_of(queue)
        self._left[id(queue)] = [had - amount for had, amount in zip(left, request, strict=True)]


def gang_victims(candidates: Iterable[Candidate]) -> list[bool]:
    """The rule for whole gangs as askers: guarantee and deserved of the victims' own queues, in the given order."""
    left: dict[int, Sequence[int]] = {}
    allowed = []
    for account, request in candidates:
        had = left.get(id(account), account.allocated)
        yields = not account.deserves_of(request) or account.exceeds(had, request)
        allowed.append(yields and account.keeps_guarantee(had, request))
        if allowed[-1]:
            left[id(account)] = [amount - less for amount, less in zip(had, request, strict=True)]
    return allowed


def _have_in_common(request: Request, other: Request) -> bool:
    pairs = enumerate(zip(request, other, strict=True))
    return any(ours > 0 and theirs > 0 for dimension, (ours, theirs) in pairs if dimension != PODS)
