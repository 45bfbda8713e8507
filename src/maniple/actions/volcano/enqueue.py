"""enqueue: which pending jobs are admitted, so that their pods may be created and scheduled.

One job per turn of its queue. A job that states no minimum resources is admitted without a vote; for the others
plugins vote. A refused job is not considered again in this cycle and does not hold back the jobs behind it. No
job is admitted to a queue that is not open; in the original a job without minimum resources is.
"""

from collections.abc import Mapping
from typing import Any

from maniple.actions.volcano.placing import QUEUE_SHUT
from maniple.actions.volcano.turns import JobTurns
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.session import Session
from maniple.framework.traces.recorder import Recorder
from maniple.placement.engine import Placement


class Enqueue:
    name = "enqueue"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = Arguments(arguments, "action enqueue")
        self.arguments.unknown(())  # there are none

    def run(self, session: Session, placement: Placement) -> None:
        closed_admit = session.rules.queues.closed_take_jobs
        turns = JobTurns(session, session.waiting_jobs(), once=True)
        while (queue := turns.next_queue()) is not None:
            job = turns.next_job(queue)
            if job is None:
                continue
            if (trace := session.traced(job)) is not None:
                _tell(session, trace, job, queue)
            if not closed_admit and not session.queues.facts[queue].open:
                session.refusals.of_job(job, QUEUE_SHUT.format(queue=session.queue_name(queue)))
            elif session.job_facts(job).min_resources is None or session.hooks.job_enqueueable(job):
                session.hooks.job_enqueued(job)
                session.decisions.phases[job] = "Inqueue"
            elif job not in session.refusals.jobs:
                session.refusals.of_job(job, "not admitted yet: a plugin voted against it")
            turns.return_queue(queue)


def _tell(session: Session, trace: Recorder, job: int, queue: int) -> None:
    if not session.rules.queues.closed_take_jobs and not session.queues.facts[queue].open:
        trace.left_out(job, QUEUE_SHUT.format(queue=session.queue_name(queue)))
    elif session.job_facts(job).min_resources is not None:
        with trace.session.aside():
            admitted = session.hooks.job_enqueueable(job)
        trace.asked(job, "job_enqueueable", admitted)
