"""Whether a queue may reclaim from others, for KAI's proportion.

A job may try if its queue stays within its fair share with it. A scenario is allowed if
- every victim is taken from a queue that, at that moment, has more than it may have, or more than its quota
  while the reclaimer stays within its own. The queues compared are those where the paths down to the two
  leaves part. Victims go in chunks, tasks beyond a gang's minimum one by one and the rest of the gang at
  once, so that the last chunk may leave a queue with less than its share;
- afterwards no queue on the reclaimer's side has both more than its fair share and a larger part of it than a
  sibling that lost something;
- a non-preemptible reclaimer stays within the quotas all the way up.

Amounts are those from before the trial in which the victims were evicted. Since a queue's chunks only make it
smaller, it is enough to check it before the last one: thousands of victims cost a few sums.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.framework.devices.gpu_facts import MIG_PREFIX
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.plugins.kai.counting import GPU, Amount, Counting, Floats
from maniple.plugins.kai.queue_accounts import Account, fits, minus, plus

# queue -> what it had allocated, and of that not preemptible, before the trial
Books = Mapping[int, tuple[Amount, Amount]]
Path = Sequence[Account]  # from a leaf up


@dataclass(slots=True, eq=False)
class Reclaimer:
    """The job that reclaims: its queue and those above, its request, and whether it is not preemptible."""

    path: Path
    request: Amount
    involved: tuple[bool, ...]  # the resources that it asks for
    firm: bool
    of: Sequence[int] | None = None  # the resources that victims' queues must exceed; None: any


@dataclass(slots=True, eq=False)
class Loss:
    """What a leaf loses in a scenario."""

    total: Amount
    last: Amount  # of that, the chunk that goes last
    involved: tuple[bool, ...]


def can_reclaim(path: Path, request: Sequence[float], *, firm: bool, of: Sequence[int] | None = None) -> bool:
    """`of`: the resources that count; None for all."""
    leaf = path[0]
    if not fits(plus(leaf.allocated, request), leaf.fair, of):
        return False
    return not firm or fits(plus(leaf.firm, request), leaf.firm_quota, of)


def may_take(
    reclaimer: Reclaimer, losses: Sequence[tuple[Path, Loss]], before: Books, multiplier: float
) -> bool:
    """The rules above; `multiplier` scales the reclaimer's part."""
    taken: dict[int, _Taken] = {}
    for path, loss in losses:
        mine, theirs = _level(reclaimer.path, path)
        has = _had(theirs, before)[0]
        if theirs.queue in taken:
            has = minus(has, taken[theirs.queue].amount)
        has = minus(has, minus(loss.total, loss.last))
        if fits(has, theirs.allocatable, reclaimer.of) and not _guaranteed(
            mine, reclaimer, theirs, has, before
        ):
            return False
        for account in path:
            if account.queue in taken:
                taken[account.queue].add(loss)
            else:
                taken[account.queue] = _Taken(account, loss.total, loss.involved)
    return _within_bounds(reclaimer, taken, before, multiplier)


@dataclass(slots=True, eq=False)
class _Taken:
    account: Account
    amount: Amount
    involved: tuple[bool, ...]

    def add(self, loss: Loss) -> None:
        self.amount = plus(self.amount, loss.total)
        self.involved = _either(self.involved, loss.involved)


def _either(one: tuple[bool, ...], other: tuple[bool, ...]) -> tuple[bool, ...]:
    return tuple(a or b for a, b in zip(one, other, strict=True))


def _had(account: Account, before: Books) -> tuple[Amount, Amount]:
    return before.get(account.queue, (account.allocated, account.firm))


def _level(mine: Path, theirs: Path) -> tuple[Account, Account]:
    """The first pair that differs on the paths down; if one path is a prefix of the other, its end."""
    pair = mine[-1], theirs[-1]
    for pair in zip(reversed(mine), reversed(theirs), strict=False):
        if pair[0] is not pair[1]:
            break
    return pair


def _guaranteed(
    mine: Account, reclaimer: Reclaimer, theirs: Account, has: Sequence[float], before: Books
) -> bool:
    """Whether the reclaimer stays within its quota, and the other exceeds its own."""
    asked = plus(_had(mine, before)[0], reclaimer.request)
    return fits(asked, mine.quota) and not fits(has, theirs.firm_quota, reclaimer.of)


def _within_bounds(
    reclaimer: Reclaimer, taken: Mapping[int, _Taken], before: Books, multiplier: float
) -> bool:
    for account in reclaimer.path:
        allocated, firm = _had(account, before)
        if account.queue in taken:
            allocated = minus(allocated, taken[account.queue].amount)
        allocated = plus(allocated, reclaimer.request)
        for queue, other in taken.items():
            if queue == account.queue or other.account.parent != account.parent:
                continue
            has = minus(_had(other.account, before)[0], other.amount)
            involved = _either(other.involved, reclaimer.involved)
            if _more_saturated(account, allocated, other.account, has, involved, multiplier):
                return False
        if reclaimer.firm and not fits(plus(firm, reclaimer.request), account.firm_quota):
            return False
    return True


def _more_saturated(
    account: Account,
    allocated: Sequence[float],
    sibling: Account,
    has: Sequence[float],
    involved: Sequence[bool],
    multiplier: float,
) -> bool:
    """Whether, in some resource involved, the queue would exceed its share, and by a larger part than the
    sibling."""
    for resource in np.flatnonzero(involved).tolist():
        part = _saturation(allocated[resource], account.fair[resource])
        due = sibling.fair[resource]
        if part > 1 and due > 0 and part * multiplier >= _saturation(has[resource], due):
            return True
    return False


def _saturation(allocated: float, fair: float) -> float:
    if fair:
        return allocated / fair
    return inf if allocated > 0 else 0.0


# -- reading a scenario ---------------------------------------------------------------------------------------------


def _by_leaf(amounts: Floats, place: NDArray[np.intp], leaves: int) -> list[Amount]:
    """Amounts (resources x tasks) added up by leaf."""
    sums = [np.bincount(place, weights=amount, minlength=leaves) for amount in amounts]
    added: list[Amount] = np.array(sums).T.tolist()
    return added


_NOBODY = np.zeros(0, dtype=np.bool_)


class QueueLosses:
    """Turns the tasks that a scenario evicts into what their queues lose."""

    def __init__(self, session: Session, counting: Counting) -> None:
        self._session = session
        self._counting = counting
        self._ignore_moved = bool(session.options.get("allowConsolidatingReclaim", True))
        # Slices of devices that do not make GPUs a resource of a scenario.
        names = [] if session.rules.queues.slices_count_in_reclaim else session.resources.names
        self._slices = [number for number, name in enumerate(names) if name.startswith(MIG_PREFIX)]

    def losses(self, victims: Mapping[int, TaskRows]) -> dict[int, Loss]:
        """By leaf queue, in the order of their first victims; victims with another place count as no loss."""
        session = self._session
        if not victims:
            return {}
        jobs = list(victims)
        sizes = np.fromiter((len(rows) for rows in victims.values()), dtype=np.int64, count=len(jobs))
        rows = np.concatenate(list(victims.values()))
        owner = np.repeat(np.arange(len(jobs)), sizes)
        stays = ACTIVE_ALLOCATED[session.tasks.status[rows]] if self._ignore_moved else _NOBODY
        if stays.any():
            rows, owner = rows[~stays], owner[~stays]
        if not len(rows):
            return {}
        amounts = self._counting.of_tasks(rows)
        queues = session.jobs.queue[jobs]
        if len(set(queues.tolist())) == 1:  # then there is nothing to sort
            leaves, first, place = queues[:1], np.zeros(1, dtype=np.intp), np.zeros(len(rows), dtype=np.intp)
            ends = np.array([len(rows) - 1])
        else:
            leaves, first, place = np.unique(queues[owner], return_index=True, return_inverse=True)
            # After the last task of a leaf there is none, so it is in the chunk that goes last.
            ends = np.zeros(len(leaves), dtype=np.intp)
            ends[place] = np.arange(len(rows))
        totals = _by_leaf(amounts, place, len(leaves))
        counting = _by_leaf(self._that_counts(rows, amounts), place, len(leaves)) if self._slices else totals
        found: dict[int, Loss] = {}
        for number in np.argsort(first).tolist():
            end = ends.item(number)
            own = (owner == owner[end]).nonzero()[0]
            chunk: Amount = amounts[:, end].tolist()
            if len(own) > 1:
                chunk = self._last_chunk(victims[jobs[owner.item(end)]], rows[own], amounts[:, own])
            involved = tuple([amount > 0 for amount in counting[number]])
            found[leaves.item(number)] = Loss(totals[number], chunk, involved)
        return found

    def involved(self, rows: TaskRows, amounts: Floats) -> tuple[bool, ...]:
        """Which resources the tasks have any of."""
        return tuple(
            amount > 0 for amount in self._that_counts(rows, amounts).max(axis=1, initial=0.0).tolist()
        )

    def _that_counts(self, rows: TaskRows, amounts: Floats) -> Floats:
        """Amounts without what does not make a resource part of the scenario."""
        if not self._slices:
            return amounts
        counting = amounts.copy()
        counting[GPU, self._session.requests(rows)[self._slices].any(axis=0)] = 0.0
        return counting

    def _last_chunk(self, rows: TaskRows, gone: TaskRows, amounts: Floats) -> Amount:
        """Of a job's evicted victims: those of its core, or else the last of the others."""
        last: Amount
        job = int(self._session.tasks.job[rows[0]])
        all_core = self._session.groups.undivided[job] and len(rows) <= self._session.jobs.minimum[job]
        if all_core:
            last = amounts.sum(axis=1).tolist()
            return last
        needed = set(self._core(rows).tolist())
        core = [place for place, row in enumerate(gone.tolist()) if row in needed]
        chosen = amounts[:, core] if core else amounts[:, -1:]
        last = chosen.sum(axis=1).tolist()
        return last

    def _core(self, rows: TaskRows) -> TaskRows:
        """The first tasks of each pod set, as many as it needs."""
        pod_sets = self._session.groups.of(int(self._session.tasks.job[rows[0]]))
        if len(pod_sets) == 1:
            return rows[: pod_sets[0].minimum]
        return np.concatenate([rows[np.isin(rows, one.rows)][: one.minimum] for one in pod_sets])


__all__ = ["Books", "Loss", "QueueLosses", "Reclaimer", "can_reclaim", "may_take"]
