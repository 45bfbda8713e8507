"""tdm: nodes that are lent out by the hour take tasks that allow it, while their zone is open.

Arguments, filter and score are those of `plugins/feasibility/tdm.py`. Jobs that may not be preempted come first, whichever system's they are. Nobody is driven off a node when its zone closes:
no action here evicts for anything but a job that needs the room.
"""

from maniple.plugins.feasibility import tdm


class Tdm(tdm.Tdm):
    def job_order(self, job: int) -> int:
        return int(self._session.preemptible(job))


__all__ = ["Tdm"]
