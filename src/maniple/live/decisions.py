"""Binds and evictions: counted from the moment of the decision, carried out beside the cycles, taken back when refused.

The scheduler calls `read` on a fresh plan and `carry_out` once everything else has read its session. A pod whose bind was refused is left
alone for a while, longer each time, and its gang is looked at again meanwhile.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from maniple.framework.outcome import Plan
from maniple.live.cache import Assumption, Cache, Ref, bound, leaving
from maniple.live.effects import Effect, Effects, Urgency
from maniple.live.notes import Notes
from maniple.live.port import NOT_FOUND, Port, status_of
from maniple.live.writing import Later, lane, now
from maniple.objects.core import Pod
from maniple.objects.meta import Condition, Object

log = logging.getLogger(__name__)

FIRST_HOLD = 1.0
LONGEST_HOLD = 60.0


@dataclass(frozen=True, slots=True)
class _Bind:
    pod: str
    node: str
    annotations: dict[str, str] = field(default_factory=dict)


class Decisions:
    def __init__(self, cache: Cache, effects: Effects, port: Port, notes: Notes, later: Later) -> None:
        self._cache = cache
        self._effects = effects
        self._port = port
        self._notes = notes
        self._later = later
        self._binds: list[_Bind] = []
        self._evictions: list[tuple[str, str]] = []
        self._failures: dict[str, int] = {}  # by uid: binds that were refused in a row

    def read(self, plan: Plan) -> list[str]:
        """Take the decisions out of a plan. What of it cannot be carried out is said."""
        session = plan.session
        problems = dict(_beyond_us(plan))
        job_of = {
            key: session.tasks.job[session.cluster.tasks.index_of(key)] for key in (*plan.binds, *problems)
        }
        left_out = {job_of[key] for key in problems}
        self._binds = [
            _Bind(key, node, plan.annotations.get(key, {}))
            for key, node in plan.binds.items()
            if job_of[key] not in left_out  # a gang is bound whole
        ]
        self._evictions = [(session.task_key(row), reason) for row, reason in session.evicted]
        return [f"Pod {key}: {why}" for key, why in problems.items()]

    def carry_out(self, when: datetime) -> bool:
        """Have everything done. True when there was something."""
        binds, self._binds = self._binds, []
        evictions, self._evictions = self._evictions, []
        for key, reason in evictions:
            self._evict(key, reason, when.replace(microsecond=0))
        for each in binds:
            self._bind(each)
        return bool(binds or evictions)

    def forget(self, item: Object) -> None:
        """The object is gone."""
        self._failures.pop(item.metadata.uid, None)

    # -- binds --------------------------------------------------------------------------------------------------------

    def _bind(self, bind: _Bind) -> None:
        pod = self._cache.pod(bind.pod)
        if pod is None:
            return
        node, annotations = bind.node, bind.annotations
        self._submit(
            pod,
            "bind",
            bound(pod, node),
            lambda: self._port.bind(pod, node, annotations),
            lambda error: self._bound(pod, node, error),
        )

    def _bound(self, pod: Pod, node: str, error: BaseException | None) -> bool:
        """A bind is over."""
        uid = pod.metadata.uid
        if error is None:
            self._failures.pop(uid, None)
            self._notes.write(pod, "Normal", "Scheduled", f"Successfully assigned {pod.key} to {node}")
            return False
        failures = self._failures[uid] = self._failures.get(uid, 0) + 1
        seconds = min(LONGEST_HOLD, FIRST_HOLD * 2.0 ** (failures - 1))
        why = f"failed to bind to node {node}: {error}"
        if failures == 1:
            log.warning("Pod %s: %s; looked at again in %g s", pod.key, why, seconds)
        return self._cache.hold(pod.key, uid, now() + seconds, why)

    # -- evictions ----------------------------------------------------------------------------------------------------

    def _evict(self, key: str, reason: str, when: datetime) -> None:
        pod = self._cache.pod(key)
        if pod is None:
            return
        self._notes.write(pod, "Warning", "Evict", f"Pod is evicted, because of {reason}")
        self._submit(
            pod,
            "evict",
            leaving(pod, when),
            lambda: self._have_evicted(pod, reason, when),
            lambda error: False,
        )

    async def _have_evicted(self, pod: Pod, reason: str, when: datetime) -> None:
        """First the condition by which controllers know that the pod is not to blame, then the end of it."""
        target = Condition(
            type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message=reason
        )
        try:
            await self._port.patch_pod_condition(pod, target, when)
        except Exception as error:
            if status_of(error) != NOT_FOUND:
                raise
        await self._port.evict(pod)

    # -- both ---------------------------------------------------------------------------------------------------------

    def _submit(
        self,
        pod: Pod,
        aspect: str,
        assumption: Assumption,
        call: Callable[[], Awaitable[object]],
        after: Callable[[BaseException | None], bool],
    ) -> None:
        ref: Ref = (Pod, pod.key)

        def settle(error: BaseException | None) -> bool:
            matters = self._cache.settle(ref, aspect, assumption, failed=error is not None)
            return after(error) | matters

        def done(error: BaseException | None) -> None:
            self._later(lambda: settle(error))

        self._cache.assume(ref, aspect, assumption)
        # Why it waited is past: what has not been written of it need not be.
        effect = Effect(lane(ref), aspect, Urgency.DECISION, call, done)
        self._effects.submit(effect, replaces=("condition",))


def _beyond_us(plan: Plan) -> Iterator[tuple[str, str]]:
    """Pods that need more than a binding: it is planned, but nobody here would write it."""
    pods, index_of = plan.session.cluster.tasks.pods, plan.session.cluster.tasks.index_of
    for key in plan.held:
        yield key, "its volumes have to be bound to the node first, which is planned but not done yet"
    for key in plan.binds:
        row = index_of(key)
        if row is not None and pods[row].spec.resource_claims:
            yield key, "its resource claims have to be allocated first, which is planned but not done yet"
