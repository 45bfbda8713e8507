"""Gangs of which their queue takes too few tasks: known from amounts, without placing them and taking them back.

The reasons are as if they had been placed, one after the other: the queue is full for the tasks that it does not take,
and the gang is not whole for the others. So there have to be nodes for all of them, whichever each of them would get.

The first gang of a queue that is not taken whole is placed, all the same: as long as a queue has room, nothing is
computed for it here.
"""

from collections.abc import Iterable, Sequence

from maniple.actions.volcano.failed_gangs import counts_decide, is_plain
from maniple.actions.volcano.placing import note_not_whole, queue_full
from maniple.actions.volcano.worksheet import Worksheet
from maniple.framework.points import TaskRows
from maniple.framework.reasons import Histogram, QueueRefusal
from maniple.framework.session import Session
from maniple.placement.engine import Placement


class QueueRoom:
    """What queues have left for gangs, in one run of allocate."""

    def __init__(self, session: Session, placement: Placement) -> None:
        self._session = session
        self._placement = placement
        self._possible = session.counts_queue_room and counts_decide(session)
        self._short: set[int] = set()  # queues that refused a task of a gang

    def taken_back(self, job: int, causes: Iterable[tuple[TaskRows, Histogram | str]]) -> None:
        """A gang was placed in part. Where its queue refused a task, the next gang of the queue is looked at here."""
        if self._possible and any(isinstance(cause, QueueRefusal) for _, cause in causes):
            self._short.add(int(self._session.jobs.queue[job]))

    def stops(self, sheet: Worksheet) -> bool:
        """Whether it is clear that the queue takes too few tasks of a gang; the reasons are recorded then."""
        session, job = self._session, sheet.job
        short = int(session.jobs.queue[job]) in self._short and job not in session.refusals.roles
        lack = session.hooks.job_lack(job) if short else 0
        if lack <= 0:
            return False
        runs = sheet.runs()
        taken = self._taken(job, runs)
        enough = sum(taken) == len(sheet) or sum(taken) >= lack
        if enough or not self._is_clear(job, sheet.left(), sum(taken)):
            return False
        cause = QueueRefusal(queue_full(session, job))
        for rows, count in zip(runs, taken, strict=True):
            if count < len(rows):
                session.refusals.of_tasks(job, -1, rows[count:], cause, failed=False)
        found = [rows[:count] for rows, count in zip(runs, taken, strict=True) if count]
        note_not_whole(session.refusals, job, found, session.ready(job), int(session.jobs.minimum[job]))
        return True

    def _taken(self, job: int, runs: Sequence[TaskRows]) -> list[int]:
        """How many tasks of each run the queue takes, one run after the other."""
        session, taken = self._session, []
        limits, requests = session.hooks.queue_room(int(session.jobs.queue[job])), session.class_requests
        for rows in runs:
            request, count = requests[session.tasks.class_of[rows[0]]].tolist(), len(rows)
            for left in limits:
                count = _fitting(request, count, left)
            for left in limits if count else ():
                left[:] = [had - count * amount for had, amount in zip(left, request, strict=True)]
            taken.append(count)
        return taken

    def _is_clear(self, job: int, rows: TaskRows, count: int) -> bool:
        """Whether so many tasks would find nodes, with one left for any other, and nothing else decides on them."""
        session = self._session
        if not is_plain(session, job, rows) or session.hooks.job_pipelined(job):
            return False
        numbers = dict.fromkeys(session.tasks.class_of[rows].tolist())
        classes = [session.classes[number] for number in numbers]
        if any(session.hooks.pre_predicate(class_) is not None for class_ in classes):
            return False
        return self._placement.judging.nodes_for_any(classes) > count


def _fitting(request: Sequence[int], count: int, left: Sequence[float]) -> int:
    """How many of `count` equal requests fit into what is left."""
    for amount, had in zip(request, left, strict=True):
        if amount > 0 and amount * count > had:
            count = max(int(had // amount), 0)
    return count
