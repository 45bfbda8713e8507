"""overcommit: admit as many jobs as fit into a little more than the cluster has.

idle = total x factor - used by nodes. A job is admitted while, in every resource of its stated minimum, kept
for admitted jobs + its minimum <= idle. Kept are the whole minimums of jobs that were admitted and do not run
yet, and what running jobs lack of theirs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maniple.framework.combine import Vote
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.reasons import Detail, Refused
from maniple.framework.session import Session
from maniple.plugins.fairness.amounts import TOLERANCE, named
from maniple.plugins.fairness.min_resources import MinResources
from maniple.plugins.settings import report

REFUSED = "resource in cluster is overused"
_DEFAULT_FACTOR = 1.2


@dataclass(frozen=True, slots=True)
class OvercommitArguments:
    factor: float = _DEFAULT_FACTOR

    @classmethod
    def read(cls, session: Session, values: Mapping[str, Any]) -> "OvercommitArguments":
        given = Arguments(values, Overcommit.name)
        factor = given.float("overcommit-factor", _DEFAULT_FACTOR)
        report(session, given)
        if factor < 1:
            session.report(
                f"overcommit: argument overcommit-factor must be at least 1, found {factor}, keeping {_DEFAULT_FACTOR}"
            )
            factor = _DEFAULT_FACTOR
        return cls(factor)


class Overcommit:
    name = "overcommit"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        self._claims = MinResources.of(session)
        factor = OvercommitArguments.read(session, arguments).factor
        idle = session.total * factor - session.nodes.used.sum(axis=1)
        # A product such as 3000 x 1.13 comes out slightly too small.
        self._idle: list[float] = (
            idle if session.rules.queues.rounding_errors_count else idle + TOLERANCE
        ).tolist()
        _, admitted = self._claims.of_admitted(less_allocated=False)
        _, running = self._claims.of_running()
        self._kept: list[int] = (admitted.sum(axis=1) + running.sum(axis=1)).tolist()

    def job_enqueueable(self, job: int) -> Vote:
        claims, kept, idle = self._claims, self._kept, self._idle
        if not claims.states(job):
            return Vote.PERMIT
        short = [
            dimension
            for dimension, amount in claims.wanted(job)
            if kept[dimension] + amount > idle[dimension]
        ]
        unoffered = claims.unoffered(job)
        if not short and not unoffered:
            return Vote.PERMIT
        names = [*(self._session.resources.names[dimension] for dimension in short), *unoffered]
        phrase = f"not admitted yet: jobs that were admitted before leave too little {' and '.join(names)} (overcommit)"
        refused = Refused(named(REFUSED, "overused", names), Detail("Overcommit", phrase, ", ".join(names)))
        self._session.refusals.of_job(job, refused)
        return Vote.REJECT

    def job_enqueued(self, job: int) -> None:
        if self._claims.states(job):
            self._kept = [
                kept + more for kept, more in zip(self._kept, self._claims.on_entry(job), strict=True)
            ]
