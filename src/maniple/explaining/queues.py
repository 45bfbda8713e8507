"""The queues on a job's way up: what each holds, may hold and deserves, and which of them has no room for it."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import PODS, Amounts
from maniple.explaining.model import Cause, Holder, QueueLevel
from maniple.explaining.names import Names
from maniple.framework.points import JobRows, TaskRows
from maniple.framework.sentences import CEILING, DESERVED, LIMIT, QUOTA
from maniple.framework.session import Session
from maniple.objects.printable import printable
from maniple.objects.volcano import VolcanoQueue

Floats = NDArray[np.float64]
_HOLDERS = 3
_KINDS = {"OverLimit": "QueueLimit"}  # by the reason of an answer
_SHARES = (("QueueCeiling", CEILING, "capability"), ("QueueShare", DESERVED, "deserved"))


class Queues:
    """Of one session."""

    def __init__(self, session: Session, names: Names) -> None:
        self._session = session
        self._names = names

    def path(self, queue: int) -> list[int]:
        """The queue, and those above it."""
        facts, found = self._session.queues.facts, [queue]
        while queue in facts and facts[queue].parent:
            above = self._session.queues.index_of(facts[queue].parent)
            if above is None or above not in facts or above in found:
                break
            found.append(above)
            queue = above
        return [one for one in found if one in facts]

    def levels(self, job: int, rows: TaskRows) -> tuple[QueueLevel, ...]:
        queue = int(self._session.jobs.queue[job])
        return tuple(self._level(job, one, rows) for one in self.path(queue))

    def causes(self, job: int, rows: TaskRows) -> Iterator[Cause]:
        """Every level and resource that has no room for the job's next pods, the job's own queue first.

        Only limits and quotas that queues state: what the cluster as a whole has is a matter of nodes.
        """
        requested = self._session.requests(rows).sum(axis=1)
        firm = not self._session.preemptible(job)
        for queue in self.path(int(self._session.jobs.queue[job])):
            yield from self._over_limit(job, queue, requested)
            if firm and self._session.rules.queues.only_leaves_take_jobs:
                yield from self._over_quota(job, queue, requested)

    def answered(self, job: int) -> Cause | None:
        """What the queue's plugin answered while deciding: it also counts parts of devices, and guarantees."""
        over = self._session.refusals.over.get(job)
        if over is None:
            return None
        kind = _KINDS.get(over.reason, over.reason)
        return Cause(
            kind=kind, sentence=printable(over.message), subject=printable(self._session.job_facts(job).queue)
        )

    def share_cause(self, job: int, rows: TaskRows) -> Cause | None:
        """That a queue may have no more than it deserves, or than others leave it, where that keeps a job waiting."""
        requested = self._session.requests(rows).sum(axis=1)
        for queue in self.path(int(self._session.jobs.queue[job])):
            report = self._session.hooks.queue_report(queue)
            for kind, sentence, bound in _SHARES:
                if bound not in report or "allocated" not in report:
                    continue
                limits = np.asarray(report[bound], dtype=np.float64)
                for dimension in self._exceeded(report["allocated"], requested, limits):  # type: ignore[arg-type]
                    limit = float(limits[dimension])
                    return self._cause(kind, sentence, job, queue, dimension, limit, requested)
        return None

    # -- one queue ----------------------------------------------------------------------------------------------------

    def _level(self, job: int, queue: int, rows: TaskRows) -> QueueLevel:
        report = self._session.hooks.queue_report(queue)
        requested = self._session.requests(rows).sum(axis=1)
        limits = self._limits(queue, report)
        exceeded = [
            self._session.resources.names[dimension]
            for dimension in self._exceeded(report.get("allocated", 0), requested, limits)  # type: ignore[arg-type]
        ]
        return QueueLevel(
            name=printable(self._session.queue_name(queue)),
            allocated=self._amounts(report.get("allocated")),
            limit=self._amounts(limits),
            quota=self._amounts(report.get("quota")),
            share=self._amounts(report.get("deserved")),
            exceeded=tuple(exceeded),
            holders=self._holders(job, queue, requested),
        )

    def _limits(self, queue: int, report: Mapping[str, object]) -> Floats:
        """The limits that the queue's object states."""
        size, found = len(self._session.resources), np.full(len(self._session.resources), np.inf)
        item = self._session.queues.objects[queue]
        if isinstance(item, VolcanoQueue):
            # A resource that no request and no node names is not accounted for, and limits nothing.
            names = self._session.resources.names
            stated = {name: amount for name, amount in (item.spec.capability or {}).items() if name in names}
            vector = self._session.resources.vector(stated)
            for name in stated:
                dimension = names.index(name)
                found[dimension] = vector[dimension]
        elif "capability" in report:
            found = np.asarray(report["capability"], dtype=np.float64)[:size]
        return found

    def _exceeded(self, allocated: Amounts | int, requested: Amounts, limits: Amounts | Floats) -> list[int]:
        have = np.broadcast_to(np.asarray(allocated, dtype=np.float64), requested.shape)
        bound = np.asarray(limits, dtype=np.float64)
        over = (requested > 0) & (have + requested > bound)
        return [dimension for dimension in np.flatnonzero(over).tolist() if dimension != PODS]

    def _over_limit(self, job: int, queue: int, requested: Amounts) -> Iterator[Cause]:
        report = self._session.hooks.queue_report(queue)
        if "allocated" not in report:
            return
        limits = self._limits(queue, report)
        for dimension in self._exceeded(report["allocated"], requested, limits):  # type: ignore[arg-type]
            yield self._cause("QueueLimit", LIMIT, job, queue, dimension, float(limits[dimension]), requested)

    def _over_quota(self, job: int, queue: int, requested: Amounts) -> Iterator[Cause]:
        """Of a job that is not preemptible: such jobs may not have more than the quota."""
        report, session = self._session.hooks.queue_report(queue), self._session
        if "quota" not in report:
            return
        quota = np.asarray(report["quota"], dtype=np.float64)
        firm = self._held(queue, only_firm=True)
        for dimension in self._exceeded(firm, requested, quota):
            name = session.resources.names[dimension]
            sentence = QUOTA.format(
                queue=printable(session.queue_name(queue)),
                resource=name,
                limit=self._written(dimension, quota[dimension]),
                has=self._written(dimension, firm[dimension]),
                asked=self._written(dimension, requested[dimension]),
            )
            yield self._made(
                "NonPreemptibleOverQuota", sentence, job, queue, dimension, requested, float(firm[dimension])
            )

    def _cause(
        self, kind: str, sentence: str, job: int, queue: int, dimension: int, limit: float, requested: Amounts
    ) -> Cause:
        session = self._session
        has = float(np.asarray(session.hooks.queue_report(queue)["allocated"])[dimension])
        text = sentence.format(
            queue=printable(session.queue_name(queue)),
            limit=self._written(dimension, limit),
            resource=session.resources.names[dimension],
            has=self._written(dimension, has),
            asked=self._written(dimension, requested[dimension]),
        )
        return self._made(kind, text, job, queue, dimension, requested, has)

    def _made(
        self, kind: str, text: str, job: int, queue: int, dimension: int, requested: Amounts, has: float
    ) -> Cause:
        name = self._session.resources.names[dimension]
        holders = self._holders(job, queue, requested)
        holding = [one for one in holders if name in one.amounts and self._names.shows(one.job)]
        others = "" if len(holding) == len(holders) else "jobs of other namespaces"
        held = ", ".join(filter(None, [*(f"{one.job} {one.amounts[name]}" for one in holding), others]))
        return Cause(
            kind=kind,
            sentence=f"{text} (held by {held})" if held else text,
            lasting=has == 0,
            subject=printable(self._session.queue_name(queue)),
            needed={name: self._written(dimension, requested[dimension])},
            there={name: self._written(dimension, has)},
            holders=tuple(one for one in holders if self._names.shows(one.job)),
        )

    # -- holders ------------------------------------------------------------------------------------------------------

    def _below(self, queue: int) -> JobRows:
        """The jobs of a queue and of those below it."""
        inside = [one for one in self._session.queues.facts if queue in self.path(one)]
        rows = self._session.jobs.rows
        return rows[np.isin(self._session.jobs.queue[rows], inside)]

    def _held(self, queue: int, *, only_firm: bool = False) -> Amounts:
        session, jobs = self._session, self._below(queue)
        if only_firm:
            jobs = jobs[~session.are_preemptible(jobs)]
        held: Amounts = session.jobs.allocated[:, jobs].sum(axis=1)
        return held

    def _holders(self, job: int, queue: int, requested: Amounts) -> tuple[Holder, ...]:
        """The jobs that hold most of what is requested."""
        session, asked = self._session, np.flatnonzero(requested)
        asked = asked[asked != PODS]
        others = self._below(queue)
        weight = session.jobs.allocated[np.ix_(asked, others)].sum(axis=0)
        weight[others == job] = 0
        best = np.argsort(-weight, kind="stable")[:_HOLDERS]
        most = others[best[weight[best] > 0]].tolist()
        return tuple(
            Holder(
                job=session.job_key(one),
                amounts={
                    session.resources.names[d]: self._written(d, session.jobs.allocated[d, one])
                    for d in asked.tolist()
                },
            )
            for one in most
        )

    def _amounts(self, vector: object) -> dict[str, str]:
        if vector is None:
            return {}
        amounts = np.asarray(vector, dtype=np.float64)
        return {
            self._session.resources.names[dimension]: self._written(dimension, amount)
            for dimension, amount in enumerate(amounts.tolist())
            if np.isfinite(amount) and amount and dimension != PODS
        }

    def _written(self, dimension: int, amount: float) -> str:
        return (
            self._session.resources.written(dimension, round(float(amount)))
            if np.isfinite(amount)
            else "any amount"
        )
