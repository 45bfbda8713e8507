"""Explains waiting jobs between cycles, a few at a time, while there is nothing to decide.

The session of the last cycle is kept and asked (`explaining/diagnosis.py`): nothing is planned again but the trial
whether a job would start alone. It is dropped when a decision may depend on a change. How much is asked is counted in
units, the nodes and pods that are looked at: so many for each schedule period, whatever the number of waiting jobs. A
job is always asked about in one piece; what it took too much is taken off the next period. Jobs without an answer come
first, in the order in which they began to wait. If all have one, the oldest is made again, one in a period.
"""

import logging
from dataclasses import dataclass
from datetime import datetime

from maniple.explaining.diagnosis import Diagnosis, UnknownJobError
from maniple.framework.plans.plan import Plan
from maniple.framework.session import Session
from maniple.live.answers import Question
from maniple.live.refs import Ref
from maniple.live.status import StatusWriter
from maniple.objects.printable import printable
from maniple.planner import Planner

log = logging.getLogger(__name__)

BUDGET = 100_000  # units for each period
LEAST = 1_000  # units for one job
_TRIAL = 3  # as much as asking so many times

Chosen = tuple[Ref, Question]


@dataclass(frozen=True, slots=True, eq=False)
class _Ended:
    """A cycle that has been carried out."""

    planner: Planner
    session: Session
    plan: Plan
    when: datetime

    def diagnosis(self) -> Diagnosis:
        discreet = not self.planner.rules.words.name_others
        planned = self.session, self.plan
        return Diagnosis(self.planner, self.session.cluster, self.when, planned, discreet=discreet)


class Explanations:
    def __init__(self, status: StatusWriter, period: float) -> None:
        self._status = status
        self._answers = status.answers
        self._period = period
        self._session: Session | None = None
        self._ended: _Ended | None = None  # the last cycle, while it tells how things are
        self._diagnosis: Diagnosis | None = None  # of it, once something has been asked
        self._cycle = 0
        self._left = BUDGET
        self._refill = 0.0
        self._renewed = False  # an answer, in this period

    def opened(self, session: Session) -> None:
        """A cycle has begun."""
        words = session.rules.words
        # An extender would be asked again, over the network.
        asks_others = any(option.name == "extender" for option, _ in session.plugins)
        self._answers.plain, self._answers.enabled = words.plain, words.explained and not asks_others
        self._session = session if self._answers.enabled else None

    def drop(self) -> None:
        """The session no longer tells how things are."""
        self._session = self._ended = self._diagnosis = None

    def decided(self, planner: Planner, plan: Plan, when: datetime, cycle: int) -> None:
        """The cycle is over and has been carried out. `planner` is not used for cycles that count."""
        session = self._session
        if session is not None:
            self._cycle = cycle
            self._ended, self._diagnosis = _Ended(planner, session, plan, when), None

    def complete(self, planner: Planner, plan: Plan | None) -> Diagnosis | None:
        """Of the last cycle, for operators, who may read all names; None if it does not tell how things are.

        `plan`: the one that tells how they are.
        """
        known = self._ended
        if known is None or known.plan is not plan:
            return None
        session = known.session
        return Diagnosis(planner, session.cluster, session.now, (session, known.plan))

    @property
    def owes(self) -> bool:
        """Whether a job is without an answer that it could get now."""
        return self._ended is not None and bool(self._answers)

    def next_due(self) -> float | None:
        """When to call `choose` again; None if there is nothing to explain."""
        return self._refill if self._ended is not None and self._next() is not None else None

    def choose(self, moment: float) -> Chosen | None:
        """The job to explain next; None if there is none, or no units are left for it."""
        if moment >= self._refill:
            self._refill, self._renewed = moment + self._period, False
            self._left = min(BUDGET, self._left + BUDGET)
        chosen = self._next()
        if self._ended is None or self._left <= 0 or chosen is None or (self._renewed and not self._answers):
            return None
        self._renewed |= not self._answers
        return chosen

    def ask(self, question: Question) -> str:
        """The sentence for a job that was chosen.

        May run in a thread, as a cycle does, while the cache and the answers stay as they are.
        """
        if self._ended is None:
            return ""
        diagnosis = self._diagnosis = self._diagnosis or self._ended.diagnosis()
        before = diagnosis.trials
        sentence = self._asked(diagnosis, question)
        session, trials = diagnosis.session, diagnosis.trials - before
        self._left -= max(LEAST, len(session.nodes) + len(session.tasks)) * (1 + _TRIAL * trials)
        return sentence

    def answer(self, chosen: Chosen, sentence: str) -> None:
        """Remember the sentence, and have it written."""
        group, question = chosen
        if self._answers.answer(group, question, sentence, self._cycle):
            self._status.explained(group, question.job)

    def _next(self) -> Chosen | None:
        return self._answers.next() or self._answers.oldest(self._cycle)

    def _asked(self, diagnosis: Diagnosis, question: Question) -> str:
        """The sentence of the constraint that binds; empty if there is nothing to add to the brief cause."""
        try:
            cause = diagnosis.answer(question.job)
        except UnknownJobError:
            return ""
        except Exception:
            if diagnosis.session.options.get("debug"):
                raise
            log.warning("cannot explain why job %s waits", question.job, exc_info=True)
            return ""
        # It may quote any text of an object, and no line of a message may be forged by it.
        return printable(cause.sentence) if cause is not None else ""


__all__ = ["Explanations"]
