"""tdm: nodes that are lent out by the hour accept tasks that allow it, while their zone is open.

Arguments, filter and score are those of `plugins/feasibility/tdm.py`. Non-preemptible jobs come first, of
either system. Nothing is evicted when a zone closes: actions here evict only for a job that needs the room.
"""

from maniple.plugins.feasibility import tdm


class Tdm(tdm.Tdm):
    def job_order(self, job: int) -> int:
        return int(self._session.preemptible(job))


__all__ = ["Tdm"]
