"""The plain answer for each waiting job: what its messages say beside the brief cause of the plan, or in place of it.

A plan says briefly why a job waits; the constraint that binds takes asking (`explaining/`), which is too much for every
job of every cycle. `explanations.py` asks for some jobs between cycles; this remembers the answers and keeps the line
of jobs without one. An answer holds until the brief cause has other words, or the group another specification. If only
numbers changed, or the cluster did, it stays until it is this job's turn to be asked about again: messages do not
alternate between the two.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from maniple.live.pace import without_numbers
from maniple.live.refs import Ref

AWAITED_SECONDS = 5.0  # for which an event waits for the answer
AWAITED_JOBS = 200  # of a longer line, events do not wait


@dataclass(frozen=True, slots=True)
class Question:
    """A job without an answer to its brief cause."""

    job: str
    brief: str
    spec: Any  # of its group
    since: float


@dataclass(frozen=True, slots=True)
class _Answer:
    question: Question
    sentence: str  # empty: nothing to add to the brief cause
    cycle: int  # that it is about


class Answers:
    """`plain`: the profile has no other words, so that an answer replaces the brief cause."""

    def __init__(self) -> None:
        self.plain = True
        self.enabled = False  # until it is known that there will be answers
        self._known: dict[Ref, _Answer] = {}
        self._line: dict[Ref, Question] = {}

    def worded(self, group: Ref, question: Question) -> str:
        """The message of a job that waits for this brief cause."""
        if not self.enabled:
            return question.brief
        known = self._known.get(group)
        if known is None or not _alike(known.question, question):
            self._known.pop(group, None)
            waiting = self._line.get(group)
            if waiting is None:
                self._line[group] = question
            elif not _same(waiting, question):
                self._line[group] = replace(question, since=waiting.since)
            return question.brief
        if known.question.brief != question.brief:
            self._known[group] = replace(known, question=question, cycle=0)
        return self.with_sentence(question.brief, known.sentence)

    def of(self, group: Ref, brief: str) -> str:
        """A message about the same job in other words, with the answer if there is one."""
        known = self._known.get(group)
        return self.with_sentence(brief, known.sentence) if known is not None else brief

    def with_sentence(self, brief: str, sentence: str) -> str:
        if not sentence or sentence in brief:
            return brief
        return sentence if self.plain else f"{brief}\n{sentence}"

    def awaited(self, group: Ref, moment: float) -> bool:
        """Whether an answer is about to come, so that an event need not be recorded with the brief cause first."""
        question = self._line.get(group)
        return (
            question is not None
            and moment - question.since < AWAITED_SECONDS
            and len(self._line) <= AWAITED_JOBS
        )

    # -- the line -----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Jobs without an answer."""
        return len(self._line)

    def next(self) -> tuple[Ref, Question] | None:
        """The job that has waited longest for an answer."""
        return next(iter(self._line.items()), None)

    def oldest(self, cycle: int) -> tuple[Ref, Question] | None:
        """The job with the oldest answer, if that is about an earlier cycle."""
        refs: Iterator[tuple[Ref, _Answer]] = iter(self._known.items())
        group, answer = min(refs, key=lambda one: one[1].cycle, default=(None, None))
        if group is None or answer is None or answer.cycle >= cycle:
            return None
        return group, answer.question

    def answer(self, group: Ref, question: Question, sentence: str, cycle: int) -> bool:
        """Remember an answer; returns whether it is another one than before."""
        before = self._known.pop(group, None)
        self._line.pop(group, None)
        self._known[group] = _Answer(question, sentence, cycle)
        return before is None or before.sentence != sentence

    def forget(self, group: Ref) -> None:
        """The job is gone or does not wait any more."""
        self._known.pop(group, None)
        self._line.pop(group, None)


def _same(one: Question, other: Question) -> bool:
    return one.brief == other.brief and (one.spec is other.spec or one.spec == other.spec)


def _alike(one: Question, other: Question) -> bool:
    """But for numbers; asked of every waiting job in every cycle, so that what is the same is seen at once."""
    return _same(one, other) or (
        without_numbers(one.brief) == without_numbers(other.brief) and one.spec == other.spec
    )


__all__ = ["Answers", "Question"]
