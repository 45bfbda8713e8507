"""Whether a queue and those above it can take a job at all, for KAI's proportion.

A queue never exceeds its limit, and its non-preemptible jobs never exceed its quota. Checked before a job is
placed, with its whole request, and for a task on a node, where the part of a device that an amount of GPU
memory is becomes known. The message names the first queue on the way up that has no room.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import isinf
from typing import Any

from maniple.cluster.resources import CPU, MEMORY
from maniple.framework.points import Capacity
from maniple.objects.quantity import format_quantity
from maniple.plugins.kai.counting import GPU
from maniple.plugins.kai.queue_accounts import Account, readable

SCHEDULABLE = Capacity()
OVER_LIMIT, OVER_QUOTA = "OverLimit", "NonPreemptibleOverQuota"
# name in a limit's message, unit, and how many of our units make one of it
_WORDS = {CPU: ("CPU cores", "cores", 1000), MEMORY: ("memory", "GB", 10**9), GPU: ("GPUs", "GPUs", 100)}
_SUBJECT = {CPU: "CPU cores", MEMORY: "GB memory", GPU: "GPUs"}


def over_capacity(path: Sequence[Account], request: Sequence[float], *, firm: bool) -> Capacity:
    """Of a job in the first queue of the path; `firm`: it is not preemptible."""
    for account in path:
        resource = beyond(account.limit, account.allocated, request)
        if resource is not None:
            words = _over_limit(account, resource, request)
            return Capacity(False, OVER_LIMIT, words, details(account, request, firm=firm))
    return over_quota(path, request) if firm else SCHEDULABLE


def over_quota(path: Sequence[Account], request: Sequence[float]) -> Capacity:
    """The same for quotas, of a job that is not preemptible."""
    for account in path:
        resource = beyond(account.firm_quota, account.firm, request)
        if resource is not None:
            words = _over_quota(account, resource, request)
            return Capacity(False, OVER_QUOTA, words, details(account, request, firm=True))
    return SCHEDULABLE


def beyond(bound: Sequence[float], has: Sequence[float], request: Sequence[float]) -> int | None:
    """The first requested resource that would exceed its bound."""
    for resource, more in enumerate(request):
        if more and bound[resource] < has[resource] + more:
            return resource
    return None


def _over_limit(account: Account, resource: int, request: Sequence[float]) -> str:
    what, unit, scale = _WORDS[resource]
    limit, allocated, requested = (
        f"{readable(amount[resource], scale)} {unit}"
        for amount in (account.limit, account.allocated, request)
    )
    return (
        f"{account.name} has reached its limit of {what}. "
        f"Limit is {limit}, currently {allocated} allocated and workload requested {requested}"
    )


def _over_quota(account: Account, resource: int, request: Sequence[float]) -> str:
    _, unit, scale = _WORDS[resource]
    quota, firm = (f"{readable(amount[resource], scale)} {unit}" for amount in (account.quota, account.firm))
    # GPUs are written with all decimals.
    asked = f"{request[GPU] / scale:.12g}" if resource == GPU else readable(request[resource], scale)
    return (
        f"Non-preemptible workload is over quota. Workload requested {asked} {_SUBJECT[resource]}, "
        f"but {account.name} quota is {quota}, while {firm} are already allocated for non-preemptible pods. "
        "Use a preemptible workload to go over quota."
    )


def details(account: Account, request: Sequence[float], *, firm: bool) -> Mapping[str, Any]:
    """The queue's amounts, as in a pod group's scheduling condition: CPU, memory and GPUs."""
    described: dict[str, Any] = {"name": account.key}
    for field, amount in (
        ("queueRequestedResources", account.request),
        ("queueDeservedResources", account.quota),
        ("queueAllocatedResources", account.allocated),
        ("queueAllocatedNonPreemptibleResources", account.firm),
        ("queueResourceLimits", account.limit),
        ("podGroupRequestedResources", request),
        ("podGroupRequestedNonPreemptibleResources", request if firm else (0, 0, 0)),
    ):
        described[field] = _resource_list(tuple(amount))
    return {"queueDetails": described}


@lru_cache(maxsize=4096)
def _resource_list(amount: tuple[float, ...]) -> Mapping[str, str]:
    """Remembered, since of all jobs in line for a queue most of the amounts are the same."""
    names: tuple[tuple[str, Callable[[float], Fraction]], ...] = (
        ("cpu", lambda value: Fraction(int(value), 1000)),
        ("memory", lambda value: Fraction(int(value))),
        ("nvidia.com/gpu", lambda value: Fraction(round(value * 10), 1000)),
    )
    return {
        name: "-1" if isinf(value) else format_quantity(exact(value))
        for (name, exact), value in zip(names, amount, strict=False)
    }


__all__ = ["OVER_LIMIT", "OVER_QUOTA", "SCHEDULABLE", "beyond", "details", "over_capacity", "over_quota"]
