"""The account of one queue in `fairness`, and whether it and those above it can take a job.

Beyond KAI's proportion: what is guaranteed to a queue, and its siblings with guarantees. Guarantees of others
are kept free even if several queues together would use them up. A request that leaves a queue within its own
guarantee is never refused for another's. The message names the first queue on the way up that has no room.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isinf

from maniple.framework.points import Capacity
from maniple.framework.sentences import CLOSED, LIMIT, QUOTA
from maniple.objects.quantity import format_quantity, human_cpu
from maniple.plugins.kai.counting import GPU, Amount, Counting
from maniple.plugins.kai.proportion_capacity import OVER_LIMIT, OVER_QUOTA, SCHEDULABLE, beyond, details
from maniple.plugins.kai.queue_accounts import Account, readable

LESS = (
    "queue {queue} has a limit of {limit} of {resource}, because {promised} of {bound} is guaranteed to others: "
    "{has} is allocated and {asked} more is requested"
)
GUARANTEE = (
    "queue {queue} cannot have {asked} more of {resource}: of {bound}, {has} is allocated and {reserved} is "
    "guaranteed to others"
)
CLOSED_REASON = "QueueClosed"
CLUSTER, ABOVE_ALL = -1, -2  # rows for the cluster, and for what is above it: nothing


@dataclass(slots=True, eq=False)
class QueueAccount(Account):
    """Made by `open_accounts`, completed by `fairness`; `limit` is without what is guaranteed to others."""

    guarantee: Amount = field(init=False)
    ceiling: Amount = field(init=False)  # the limit as it was stated
    bound: Amount = field(init=False)  # the most that it and its siblings may have together
    beside: Amount = field(init=False)  # what they have: the account above follows the session
    guaranteed: "list[QueueAccount]" = field(init=False)  # siblings that are guaranteed something
    open: bool = field(init=False)
    reclaimable: bool = field(init=False)

    def is_above_share(self) -> bool:
        """Whether it has more than its fair share of everything that it has."""
        held = [(fair, has) for fair, has in zip(self.fair, self.allocated, strict=True) if has > 0]
        return bool(held) and all(fair < has for fair, has in held)

    def reserved(self, resource: int) -> float:
        """What others are guaranteed and do not have."""
        return sum(max(one.guarantee[resource] - one.allocated[resource], 0.0) for one in self.guaranteed)

    def into_guarantees(self, request: Sequence[float]) -> int | None:
        """The first resource of which the request would take what is guaranteed to others."""
        if self.guaranteed:
            for resource, more in enumerate(request):
                own = self.allocated[resource] + more <= self.guarantee[resource]
                if more and not own and self._is_too_much(resource, more):
                    return resource
        return None

    def _is_too_much(self, resource: int, more: float) -> bool:
        reserved = self.reserved(resource)
        return reserved > 0 and self.beside[resource] + more + reserved > self.bound[resource]


def whole_cluster(total: Amount, tops: Sequence[QueueAccount]) -> QueueAccount:
    """What all queues have together, as the account above them."""
    unlimited = [inf] * len(total)
    account = QueueAccount(
        queue=CLUSTER,
        parent=ABOVE_ALL,
        key="",
        name="the cluster",
        priority=0,
        created=0.0,
        quota=unlimited,
        limit=unlimited,
        request=_sum([one.request for one in tops], len(total)),
        fair=unlimited,
        allocatable=unlimited,
        against=total,
        allocated=_sum([one.allocated for one in tops], len(total)),
        firm=_sum([one.firm for one in tops], len(total)),
    )
    account.guarantee, account.bound, account.beside = [0.0] * len(total), unlimited, account.allocated
    account.guaranteed, account.open, account.reclaimable = [], True, True
    return account


def _sum(amounts: Sequence[Amount], size: int) -> Amount:
    return [sum(one[resource] for one in amounts) for resource in range(size)]


# -- whether a job fits ----------------------------------------------------------------------------------------------


def over_capacity(
    counting: Counting, path: Sequence[QueueAccount], request: Sequence[float], *, firm: bool
) -> Capacity:
    """Of a job in the first queue of the path; `firm`: it is not preemptible."""
    for account in path:
        resource = beyond(account.limit, account.allocated, request)
        if resource is not None:
            stated = account.limit[resource] >= account.ceiling[resource]
            promised = sum(other.guarantee[resource] for other in account.guaranteed)
            text = (LIMIT if stated else LESS).format(
                **_words(counting, account, resource, request),
                limit=_amount(counting, resource, account.limit[resource]),
                bound=_amount(counting, resource, account.bound[resource]),
                promised=_amount(counting, resource, promised),
                has=_amount(counting, resource, account.allocated[resource]),
            )
            return Capacity(False, OVER_LIMIT, text, details(account, request, firm=firm))
        resource = account.into_guarantees(request)
        if resource is not None:
            text = GUARANTEE.format(
                **_words(counting, account, resource, request),
                bound=_amount(counting, resource, account.bound[resource]),
                has=_amount(counting, resource, account.beside[resource]),
                reserved=_amount(counting, resource, account.reserved(resource)),
            )
            return Capacity(False, OVER_LIMIT, text, details(account, request, firm=firm))
    return over_quota(counting, path, request) if firm else SCHEDULABLE


def over_quota(counting: Counting, path: Sequence[QueueAccount], request: Sequence[float]) -> Capacity:
    """The same for quotas, of a non-preemptible job."""
    for account in path:
        resource = beyond(account.firm_quota, account.firm, request)
        if resource is not None:
            text = QUOTA.format(
                **_words(counting, account, resource, request),
                limit=_amount(counting, resource, account.firm_quota[resource]),
                has=_amount(counting, resource, account.firm[resource]),
            )
            return Capacity(False, OVER_QUOTA, text, details(account, request, firm=True))
    return SCHEDULABLE


def closed(path: Sequence[QueueAccount]) -> Capacity:
    """Of a new job in the first queue of the path."""
    shut = next((account for account in path if not account.open), None)
    if shut is None:
        return SCHEDULABLE
    return Capacity(False, CLOSED_REASON, CLOSED.format(queue=shut.name))


def _words(
    counting: Counting, account: QueueAccount, resource: int, request: Sequence[float]
) -> dict[str, str]:
    return {
        "queue": account.name,
        "resource": counting.names[resource],
        "asked": _amount(counting, resource, request[resource]),
    }


def _amount(counting: Counting, resource: int, value: float) -> str:
    """An amount in the format of the queue's own system."""
    name = counting.names[resource]
    if isinf(value):
        return "any amount"
    if name == "cpu":
        return human_cpu(round(value))
    if resource != GPU and counting.units[resource, 0] == 1:
        return format_quantity(Fraction(round(value)), binary=True)
    return readable(value, float(counting.units[resource, 0]))


__all__ = ["QueueAccount", "closed", "over_capacity", "over_quota", "whole_cluster"]
