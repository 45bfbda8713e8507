"""The way of a pod: seen, decided in a cycle, bind sent, bound. It is measured, and at level debug each step is a line.

Every record of a running scheduler has the number of a cycle: of the one that decided what the line is about, or
else of the last one that began. The command's log adds the latter.
"""

import logging
from datetime import datetime

from maniple.explaining.log_lines import log_lines
from maniple.framework.plans.plan import Plan
from maniple.framework.traces.recorder import Depth, Recorder
from maniple.live.cache import Cache
from maniple.live.meter import Meter
from maniple.live.port import Change, Clock
from maniple.objects.core import Pod

log = logging.getLogger(__name__)
steps_log = logging.getLogger("maniple.steps")


class Trace:
    """One for a scheduler; `cycle` is the number of the last cycle that began."""

    def __init__(self, meter: Meter, clock: Clock) -> None:
        self.cycle = 0
        self.depth: Depth | None = None  # how much of every cycle is logged, if anything is
        self._meter = meter
        self._clock = clock
        # By the uid of a pod that is not bound yet: the cycle that decided it.
        self._decided: dict[str, int] = {}

    def recorder(self) -> Recorder | None:
        """What the next cycle is recorded with."""
        if self.depth is None:
            return None
        return Recorder(depth=self.depth, everything=self.depth is Depth.NODES)

    def steps(self, recorder: Recorder | None) -> None:
        """Log what a cycle did, step by step."""
        if recorder is not None and self.depth is not None:
            for depth, text in log_lines(recorder.events, self.depth):
                steps_log.log(logging.INFO if depth is Depth.TURNS else logging.DEBUG, "%s", text)

    def seen(self, change: Change) -> None:
        """A change was taken in."""
        item = change.object
        if not isinstance(item, Pod):
            return
        if log.isEnabledFor(logging.DEBUG):
            where = f"on node {item.spec.node_name}" if item.spec.node_name else "pending"
            what = "gone" if change.type == "gone" else f"seen, {where}"
            log.debug("Pod %s: %s, version %s", item.key, what, item.metadata.resource_version)
        if item.spec.node_name:
            self._is_bound(item)
        elif change.type == "gone":
            self._decided.pop(item.metadata.uid, None)

    def decided(self, plan: Plan, cache: Cache, when: datetime) -> None:
        """The pods of a plan get their nodes."""
        debug = log.isEnabledFor(logging.DEBUG)
        if log.isEnabledFor(logging.INFO) and (plan.binds or plan.held or plan.evictions):
            decided = f"pods placed: {len(plan.binds) + len(plan.held)}, evicted: {len(plan.evictions)}"
            log.info("cycle %d: %s; it took %.1f ms", self.cycle, decided, self._meter.last_cycle * 1000)
        for placed in (plan.binds, plan.held):
            for key, node in placed.items():
                pod = cache.pod(key)
                if pod is None:
                    continue
                self._meter.decided(pod.metadata.creation_timestamp, when)
                self._decided[pod.metadata.uid] = self.cycle
                if debug:
                    log.debug("Pod %s: decided in cycle %d, node %s", key, self.cycle, node)
        # Complete, as events and conditions are not: those name nothing of other namespaces.
        for eviction in plan.evicted if log.isEnabledFor(logging.INFO) else ():
            by = f" by {eviction.action}" if eviction.action else ""
            log.info("Pod %s: evicted in cycle %d%s: %s", eviction.pod, self.cycle, by, eviction.why)

    def write(self, pod: Pod, text: str, *arguments: object) -> None:
        """A line about a write to a pod."""
        if log.isEnabledFor(logging.DEBUG):
            cycle = self._decided.get(pod.metadata.uid, self.cycle)
            log.debug(f"Pod %s: {text}", pod.key, *arguments, extra={"cycle": cycle})

    def bound(self, pod: Pod, node: str) -> None:
        """The cluster has bound a pod."""
        self.write(pod, "bound to node %s", node)
        self._is_bound(pod)

    def _is_bound(self, pod: Pod) -> None:
        """The response to the bind and the watch tell it, in any order; where another binds, only the watch."""
        if self._decided.pop(pod.metadata.uid, None) is not None:
            self._meter.bound(pod.metadata.creation_timestamp, self._clock.now())
