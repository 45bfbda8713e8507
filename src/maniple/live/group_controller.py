"""Groups written to the cluster and nothing else: the controller of `maniple group`.

It is a scheduler without cycles. It reads pods, their owners, namespaces and PodGroups, groups pods as a scheduler with
`--groups write` does, and writes the same; Volcano's scheduler, KAI's, or Maniple's with `--groups given` places them.
"""

from typing import Any

from maniple.live.intake import WRITE
from maniple.live.port import Port
from maniple.live.scheduler import Scheduler
from maniple.live.writing import now
from maniple.objects.core import Namespace, Pod
from maniple.objects.meta import Object
from maniple.planner import Planner
from maniple.profiles.written_groups import GROUP_KINDS


class GroupController(Scheduler):
    without_written_group = "its pods have no group until that is mended"

    def __init__(self, planner: Planner, port: Port, **settings: Any) -> None:
        super().__init__(planner, port, groups=WRITE, **settings)

    def _read_kinds(self) -> dict[type[Object], None]:
        groups = [kind for kind in GROUP_KINDS if kind in self.dialect.kinds]
        return dict.fromkeys((Pod, Namespace, *groups, *self.planner.owner_kinds))

    async def _cycle(self) -> None:
        """Nothing is decided."""
        self._dirty = False
        self.cache.deferred.cycle_begins(now())
