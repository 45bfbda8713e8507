"""Why a job found no domain, in words: from the trial that came closest, else from what was known without a trial.

Kept by topology during one turn of a job. Nothing here decides anything.
"""

from dataclasses import dataclass

from maniple.actions.volcano.placing import NOT_WHOLE, Ground
from maniple.cluster.domain_sums import Domains
from maniple.cluster.domains import NONE, ROOT
from maniple.cluster.resources import Amounts
from maniple.framework.groups.tree import Group, PodSet
from maniple.framework.points import TaskRows
from maniple.framework.reasons import NotWhole
from maniple.framework.refusals import Refusals
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction

TOO_SMALL = (
    "no HyperNode up to tier {highest} has room for the {need} tasks that {part} needs at least: "
    "the roomiest is {name}, for {slots}"
)
TOO_FULL = "it has room for {slots} pods, and {part} needs at least {need}"
TOO_WIDE = "its pods are in HyperNode {name} (tier {tier}), which is wider than tier {highest}"
OUTSIDE = "its pods are in no HyperNode up to tier {highest}"
NO_CANDIDATE = "no HyperNode up to tier {highest} has enough resources for {part}"
NO_PLACE = "no nodes were found for all pods that have to be placed together"
LEFT_OUT = "HyperNode {name!r} is left out: {why}"


@dataclass(frozen=True, slots=True)
class _Measured:
    """The roomiest domain that was looked at for a job or a sub-job."""

    slots: int
    domain: int
    need: int
    part: PodSet | None


class DomainReasons:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._shape: Group | None = None
        self._clear()

    def begin(self, shape: Group) -> None:
        """A job's turn."""
        self._shape = shape
        self._clear()

    def _clear(self) -> None:
        self._closest = -1
        self._refusals = Refusals()
        self._measured: dict[PodSet | None, _Measured] = {}  # the roomiest domain; of the job under None

    def looked_at(self, domains: Domains, slots: Amounts, need: int, part: PodSet | None) -> None:
        """Domains were measured for a job, or for a sub-job of it, that needs so many tasks placed."""
        best = int(slots.argmax())
        measured = _Measured(int(slots[best]), int(domains[best]), need, part)
        known = self._measured.get(part)
        if known is None or measured.slots > known.slots:
            self._measured[part] = measured

    def failed(self, transaction: Transaction, ground: Ground) -> None:
        """A trial is about to be undone: it is remembered if it came closer than those before it."""
        found = sum(len(operation.event.rows) for operation in transaction.operations)
        if found <= self._closest:
            return
        self._closest, self._refusals = found, Refusals()
        self._refusals.take_over(ground.refusals)
        session, job = self._session, ground.job
        ready, minimum = session.ready(job) - found, int(session.jobs.minimum[job])
        cause = NotWhole(NOT_WHOLE.format(found=found, ready=ready, minimum=minimum))
        for operation in transaction.operations:
            self._refusals.of_tasks(job, -1, operation.event.rows, cause, failed=False)

    def conclude(self, rows: TaskRows) -> None:
        """Nothing was found: every task gets its cause."""
        assert self._shape is not None
        session, job = self._session, self._shape.job
        session.refusals.take_over(self._refusals)
        cause = "; ".join([self._cause(self._shape), *self._left_out(self._shape)])
        session.refusals.of_tasks(job, -1, rows, cause, failed=False)

    def why(self, one: PodSet) -> str:
        """Why a sub-job found no place inside the domain of its job."""
        measured = self._measured.get(one)
        if measured is None and one.limit is not None and one.limit.highest is not None:
            return NO_CANDIDATE.format(highest=one.limit.highest, part=_named(one))
        if measured is None or measured.slots >= measured.need or self._shape is None:
            return NO_PLACE
        return self._too_small(self._shape, measured)

    def _cause(self, shape: Group) -> str:
        short = next((one for one in self._measured.values() if one.slots < one.need), None)
        if short is not None:
            return self._too_small(shape, short)
        highest = shape.limit.highest if shape.limit is not None else None
        if self._measured or highest is None:
            return NO_PLACE
        names, tiers = self._session.domains.names, self._session.domains.tier
        if shape.domain == ROOT:
            return OUTSIDE.format(highest=highest)
        if shape.domain != NONE and int(tiers[shape.domain]) > highest:
            return TOO_WIDE.format(name=repr(names[shape.domain]), tier=tiers[shape.domain], highest=highest)
        return NO_CANDIDATE.format(highest=highest, part=_named(None))

    def _too_small(self, shape: Group, short: "_Measured") -> str:
        limit = shape.limit if short.part is None else short.part.limit
        part = _named(short.part)
        if limit is None or limit.highest is None or short.domain == ROOT:
            return TOO_FULL.format(slots=short.slots, part=part, need=short.need)
        name = repr(self._session.domains.names[short.domain])
        return TOO_SMALL.format(
            highest=limit.highest, part=part, need=short.need, name=name, slots=short.slots
        )

    def _left_out(self, shape: Group) -> list[str]:
        """HyperNodes that the job might have been placed in, were they not wrong."""
        if not any(limit.highest is not None and not limit.wished for limit in shape.limits):
            return []
        tree = self._session.domains
        told = []
        for name in sorted(tree.broken):
            about = (
                f"{one.object}: {one.message}"
                for one in tree.problems
                if one.object == f"HyperNode {name}" or repr(name) in one.message
            )
            told.append(LEFT_OUT.format(name=name, why=next(about, "it is below a HyperNode that is wrong")))
        return told


def _named(one: PodSet | None) -> str:
    return f"sub-group {one.name!r}" if one is not None and one.name else "the job"
