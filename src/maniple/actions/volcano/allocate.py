"""allocate: place jobs on nodes, a gang at a time.

Queues take turns, with one job in each turn. A job is brought to exactly its minimum, all or nothing; once it
is there, each further turn places one more task, so that the extra tasks of elastic jobs are distributed
fairly. Tasks that fit only on resources being released are pipelined. A job that becomes ready is committed;
one that could become ready only after releases keeps what it took for the rest of the cycle; any other is
undone and not tried again. Jobs with a network topology, or split into sub-jobs, are placed domain by domain
(`topology.py`).

Jobs for which pods were evicted have the first turn. Otherwise the evicted job would take
the place back, as its queue now has a smaller share, only to lose it again (`placing.cleared_room_is_kept`).
"""

from collections.abc import Mapping
from typing import Any

from maniple.actions.volcano.failed_gangs import FailedGangs
from maniple.actions.volcano.holding import Holding
from maniple.actions.volcano.nomination import NominationPath
from maniple.actions.volcano.placing import Ground, TaskPlacer
from maniple.actions.volcano.queue_room import QueueRoom
from maniple.actions.volcano.topology import TopologyAllocation, stopped
from maniple.actions.volcano.turns import JobTurns
from maniple.actions.volcano.worksheet import JobSheet, Worksheet, worksheets
from maniple.cluster.statuses import Status
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.reasons import QueueRefusal
from maniple.framework.session import Session
from maniple.framework.traces.recorder import Recorder
from maniple.framework.transactions.transaction import Transaction
from maniple.placement.engine import Placement

NOT_READY = "the job is not ready, and would not be once other pods have left"
OVERUSED = "queue {queue!r} has used up what it deserves"


class Allocate:
    name = "allocate"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = Arguments(arguments, "action allocate")
        self._remember_errors = self.arguments.bool("predicateErrorCacheEnable", True)
        self.arguments.unknown(())

    def run(self, session: Session, placement: Placement) -> None:
        placer = TaskPlacer(session, placement, remember_errors=self._remember_errors)
        _Allocation(session, placement, placer).run()


class _Allocation:
    """One run of the action."""

    def __init__(self, session: Session, placement: Placement, placer: TaskPlacer) -> None:
        self._session = session
        self._placer = placer
        self._holding = Holding(session, placement)
        self._failed = FailedGangs(session)
        self._queue_room = QueueRoom(session, placement)
        self._nominations = NominationPath(session, placement, placer)
        self._topology = TopologyAllocation(session, placement, placer, self._nominations)

    def run(self) -> None:
        session = self._session
        self._let_in()
        sheets = {
            sheet.job: self._shaped(sheet) for sheet in worksheets(session) if self._is_valid(sheet.job)
        }
        if session.trace is not None and session.trace.job not in sheets:
            self._tell_absent(session.trace)
        if session.rules.placing.cleared_room_is_kept:
            self._keep_promises(sheets)
        turns = JobTurns(session, sheets)
        while (queue := turns.next_queue()) is not None:
            if session.hooks.overused(queue):
                if session.trace is not None:
                    session.trace.passed_over(queue, "overused", "the queue is overused", turns.left(queue))
                self._turn_away(queue, turns.left(queue))
                continue  # out for the rest of the cycle
            job = turns.next_job(queue)
            if job is None:
                continue
            if self._serve(sheets[job]) and len(sheets[job]):
                turns.return_job(job)
            turns.return_queue(queue)

    def _let_in(self) -> None:
        """Without enqueue, admit every pending job, with or without tasks."""
        session = self._session
        if "enqueue" not in session.actions:
            waiting = session.waiting_jobs()
            session.decisions.phases.update(dict.fromkeys(waiting, "Inqueue"))

    def _keep_promises(self, sheets: dict[int, Worksheet | JobSheet]) -> None:
        """The turn of jobs with nominated tasks.

        A job that has no tasks left, or could not be served, is removed from the sheets.
        """
        session = self._session
        tasks = [
            row for row in session.cluster.tasks.nominated if session.tasks.status[row] == Status.PENDING
        ]
        jobs = {int(session.tasks.job[row]) for row in tasks}.intersection(sheets)
        for job in sorted(jobs, key=session.job_key_order):
            queue = int(session.jobs.queue[job])
            if session.hooks.overused(queue):
                continue
            sheet = sheets[job]
            served = self._serve(sheet)
            # Where a topology binds the job, its nodes have to be found together or not at all.
            if not served and not isinstance(sheet, JobSheet) and not session.hooks.job_pipelined(job):
                self._holding.hold(job)
            if not served or not len(sheet):
                del sheets[job]

    def _shaped(self, sheet: Worksheet) -> Worksheet | JobSheet:
        shape = self._session.groups.shaped.get(sheet.job)
        if shape is None or not (shape.split or shape.bounded):
            return sheet
        return JobSheet(self._session, shape, sheet)

    def _tell_absent(self, trace: Recorder) -> None:
        """Why the traced job has no sheet."""
        session, job = self._session, trace.job
        if not trace.considered:
            return
        if session.is_waiting(job):
            trace.left_out(job, f"it is not admitted: its phase is {session.phase(job)}")
        elif session.hooks.job_valid(job) is not None:
            trace.asked(job, "job_valid", session.hooks.job_valid(job))
        elif job in session.groups.shaped and (cause := stopped(session, session.groups.root(job))):
            trace.left_out(job, cause)
        else:
            trace.left_out(job, "no pod of it that has requests and no scheduling gate waits for a node")

    def _turn_away(self, queue: int, jobs: list[int]) -> None:
        cause = QueueRefusal(OVERUSED.format(queue=self._session.queue_name(queue)))
        for job in jobs:
            self._session.refusals.of_job(job, cause)

    def _is_valid(self, job: int) -> bool:
        session = self._session
        refused = session.hooks.job_valid(job)
        if refused is None and job in session.groups.shaped:
            refused = stopped(session, session.groups.root(job))
        if refused is not None:
            session.refusals.of_job(job, refused)
        return refused is None

    def _serve(self, sheet: Worksheet | JobSheet) -> bool:
        """One turn of a job: place tasks until it is ready. True when that ended in a commit."""
        if isinstance(sheet, JobSheet):
            return self._topology.serve(sheet)
        if self._failed.repeats(sheet) or self._queue_room.stops(sheet):
            return False
        session, job = self._session, sheet.job
        transaction, ground = Transaction(session), Ground(job, session.refusals)
        before, trace = session.refusals.count, session.traced(job)
        if trace is not None:
            trace.task_order(job, sheet.left())
        if job in session.groups.shaped:
            self._nominations.try_job(transaction, sheet)
            ground.beside = session.groups.progress(session.groups.root(job).members[0])
        ready = self._placer.fill(transaction, sheet, ground)
        if trace is not None:
            trace.asked(job, "job_ready", ready)
        if ready:
            transaction.commit()
            self._nominations.redeem(job)
            return True
        if session.hooks.job_pipelined(job):
            transaction.keep()
            return False
        if trace is not None:
            placed = sum(len(one.event.rows) for one in transaction.operations)
            trace.undone(job, placed, NOT_READY, "job_pipelined")
        self._placer.note_not_whole(transaction, ground)
        transaction.discard()
        self._queue_room.taken_back(job, session.refusals.since(before))
        self._failed.undone()
        return False
