"""What queues hold, written into their status: the sum over their tasks, with the queues below them."""

import numpy as np

from maniple.cluster.resources import Amounts
from maniple.framework.session import Session
from maniple.live.cache import Assumption, Ref
from maniple.live.dialect import LiveDialect
from maniple.live.pace import Pace
from maniple.live.writing import Writing, ref_of

AMOUNTS_SECONDS = 1.0
_ALWAYS_SHOWN = ("cpu", "memory")


class QueueStatuses:
    def __init__(self, writing: Writing, dialect: LiveDialect) -> None:
        self._writing = writing
        self._dialect = dialect
        self.pace: Pace[Ref, dict[str, str]] = Pace(self._write)

    def compare(self, session: Session) -> None:
        """Find the queues that say something else than they hold, and ask for them to be written."""
        held = self._held(session)
        for row in session.queues.objects:
            allocated = _written(session, held[:, row])
            for queue in session.queues.all_of(row):
                if self._dialect.queue_allocated(queue, allocated) is queue:
                    self.pace.drop(ref_of(queue))
                else:
                    self.pace.ask(ref_of(queue), allocated, AMOUNTS_SECONDS)

    def _write(self, ref: Ref, allocated: dict[str, str]) -> bool:
        before, dialect, port = self._writing.cache.get(*ref), self._dialect, self._writing.port
        if before is None:
            return False  # it went while the amounts waited for their time
        patch = dialect.queue_patch(before, dialect.queue_allocated(before, allocated))
        assumption = Assumption(
            uid=before.metadata.uid,
            change=lambda seen: dialect.queue_allocated(seen, allocated),
            shown=lambda seen: dialect.queue_allocated(seen, allocated) is seen,
        )
        return self._writing.submit(
            ref, "status", assumption, lambda: port.patch_status(*ref, patch), self.pace
        )

    def _held(self, session: Session) -> Amounts:
        """By queue: its own tasks, and those of all queues below."""
        queues, rows = session.queues, session.jobs.rows
        own = np.zeros((len(queues), len(session.resources)), dtype=np.int64)
        np.add.at(own, session.jobs.queue[rows], session.jobs.allocated[:, rows].T)
        total = own.copy()
        for row, facts in queues.facts.items():
            above, passed = self._dialect.parent(queues.keys[row], facts), {row}
            while (parent := queues.index_of(above)) is not None:
                if parent in passed or parent not in queues.facts:
                    break
                passed.add(parent)
                total[parent] += own[row]
                above = self._dialect.parent(above, queues.facts[parent])
        return total.T


def _written(session: Session, amounts: Amounts) -> dict[str, str]:
    """Amounts as Kubernetes writes them. Cpu and memory are always said."""
    written = {}
    for dimension, amount in enumerate(amounts.tolist()):
        name = session.resources.names[dimension]
        if amount or name in _ALWAYS_SHOWN:
            written[name] = session.resources.written(dimension, amount)
    return written
