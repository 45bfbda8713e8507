"""The way of a pod through the log: seen, decided in a cycle, bind sent, bound. At level debug, a line each.

Every record of a running scheduler has the number of a cycle: of the one that decided what the line is about, or
else of the last one that began (`cycle_of`).
"""

import logging
from datetime import datetime

from maniple.framework.plans.plan import Plan
from maniple.live.cache import Cache
from maniple.live.meter import Meter
from maniple.live.port import Change
from maniple.objects.core import Pod

log = logging.getLogger(__name__)


class Trace:
    """One for a scheduler; `cycle` is the number of the last cycle that began."""

    def __init__(self, meter: Meter) -> None:
        self.cycle = 0
        self._meter = meter
        self._decided: dict[
            str, int
        ] = {}  # by the uid of a pod that is being bound: the cycle that decided it

    def seen(self, change: Change) -> None:
        """A change was taken in."""
        item = change.object
        if isinstance(item, Pod) and log.isEnabledFor(logging.DEBUG):
            where = f"on node {item.spec.node_name}" if item.spec.node_name else "pending"
            what = "gone" if change.type == "gone" else f"seen, {where}"
            log.debug("Pod %s: %s, version %s", item.key, what, item.metadata.resource_version)

    def decided(self, plan: Plan, cache: Cache, when: datetime) -> None:
        """The pods of a plan get their nodes."""
        debug = log.isEnabledFor(logging.DEBUG)
        if log.isEnabledFor(logging.INFO) and (plan.binds or plan.held or plan.evictions):
            told = f"pods placed: {len(plan.binds) + len(plan.held)}, evicted: {len(plan.evictions)}"
            log.info("cycle %d: %s; it took %.1f ms", self.cycle, told, self._meter.last_cycle * 1000)
        for placed in (plan.binds, plan.held):
            for key, node in placed.items():
                pod = cache.pod(key)
                if pod is None:
                    continue
                self._meter.decided(pod.metadata.creation_timestamp, when)
                if debug:
                    self._decided[pod.metadata.uid] = self.cycle
                    log.debug("Pod %s: decided in cycle %d, node %s", key, self.cycle, node)
        if debug:
            for eviction in plan.evicted:
                log.debug("Pod %s: evicted in cycle %d by %s", eviction.pod, self.cycle, eviction.action)

    def bind(self, pod: Pod, text: str, *arguments: object, last: bool = False) -> None:
        """A line about the bind of a pod."""
        if log.isEnabledFor(logging.DEBUG):
            uid = pod.metadata.uid
            cycle = self._decided.pop(uid, self.cycle) if last else self._decided.get(uid, self.cycle)
            log.debug(f"Pod %s: {text}", pod.key, *arguments, extra={"cycle": cycle})
