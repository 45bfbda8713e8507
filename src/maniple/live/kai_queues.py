"""KAI's queues: their status, and the queue details in an eviction message. Called by `kai.py`.

The details are usage before the cycle, quota, fair share and priority of the two queues concerned.
"""

from collections.abc import Sequence
from math import inf
from typing import Any

from msgspec.structs import replace

from maniple.framework.plans.outcome import OTHERS, Eviction, QueueAccount
from maniple.framework.plans.plan import Plan
from maniple.live.dialect import Find, QueueReport
from maniple.live.queue_amounts import amounts, patched
from maniple.objects.kai import KaiQueue, KaiQueueStatus
from maniple.plugins.kai.queue_accounts import readable

RECLAIM = "reclaim"


def with_status(queue: KaiQueue, report: QueueReport) -> KaiQueue:
    """The queue as KAI's controller would write it; the same one if it reads so."""
    known = queue.status
    status = KaiQueueStatus(
        child_queues=report.children,
        allocated=amounts(known.allocated, report.allocated),
        allocated_non_preemptible=amounts(known.allocated_non_preemptible, report.fixed),
        requested=amounts(known.requested, report.requested),
    )
    return queue if status == known else replace(queue, status=status)


def patch(before: KaiQueue, after: KaiQueue) -> dict[str, Any]:
    old, new = before.status, after.status
    status = {
        "childQueues": list(new.child_queues),
        "allocated": patched(old.allocated, new.allocated),
        "allocatedNonPreemptible": patched(old.allocated_non_preemptible, new.allocated_non_preemptible),
        "requested": patched(old.requested, new.requested),
    }
    return {"metadata": {"uid": after.metadata.uid}, "status": status}


def queue_lines(plan: Plan, eviction: Eviction, find: Find) -> str:
    """Lines about the preemptor's and the victim's queue: the leaves if they are siblings, otherwise those
    above. The victim's alone if the preemptor is not named."""
    if eviction.action != RECLAIM:
        return ""
    jobs = (eviction.job,) if eviction.actor == OTHERS else (eviction.actor, eviction.job)
    groups, accounts = [plan.group(job) for job in jobs], plan.accounts
    queues = [group.queue for group in groups if group is not None and group.queue in accounts]
    if len(queues) < len(jobs):
        return ""
    if len({accounts[queue].parent for queue in queues}) > 1:
        queues = [accounts[queue].parent or queue for queue in queues]
    return "".join(f"\n{_line(queue, accounts[queue], find)}" for queue in queues)


def _line(queue: str, account: QueueAccount, find: Find) -> str:
    item = find(KaiQueue, queue)
    name = item.spec.display_name if isinstance(item, KaiQueue) else ""
    quota, fair = _amounts(account.quota), _amounts(account.fair_share)
    return (
        f"{name or queue} uses {_amounts(account.used)} with a quota of {quota}, "
        f"fair-share of {fair} and queue priority of {account.priority}."
    )


def _amounts(amount: Sequence[float | None]) -> str:
    cpu, memory, gpu = (inf if one is None else one for one in amount)
    return f"GPU: {readable(gpu)}, CPU: {readable(cpu, 1000)} (cores), memory: {readable(memory, 10**9)} (GB)"
