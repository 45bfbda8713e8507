"""Binds and evictions: counted from the moment of the decision, carried out beside the cycles, taken back when refused.

The scheduler calls `read` on a fresh plan and `carry_out` once everything else has read its session. A pod whose bind was refused is left
alone for a while, longer each time, and its gang is looked at again meanwhile. Pods are bound from here, or by somebody else who is asked to (`bind_requests.py`); the
dialect says which.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from maniple.framework.outcome import Plan
from maniple.live.bind_requests import BindRequests
from maniple.live.cache import Assumption, Cache, Ref, bound, leaving
from maniple.live.dialect import Farewell, LiveDialect
from maniple.live.effects import Effect, Effects, Urgency
from maniple.live.notes import Notes
from maniple.live.port import NOT_FOUND, Port, status_of
from maniple.live.retries import Retries
from maniple.live.writing import Later, lane
from maniple.objects.core import Pod
from maniple.objects.meta import Condition, Object


@dataclass(frozen=True, slots=True)
class _Bind:
    """`request` is what has to be made so that somebody else binds the pod."""

    pod: str
    node: str
    annotations: dict[str, str] = field(default_factory=dict)
    request: Mapping[str, Any] | None = None


class Decisions:
    def __init__(
        self, cache: Cache, effects: Effects, port: Port, notes: Notes, later: Later, dialect: LiveDialect
    ) -> None:
        self._cache = cache
        self._effects = effects
        self._port = port
        self._notes = notes
        self._later = later
        self._dialect = dialect
        self._retries = Retries(cache)
        self.requests = BindRequests(cache, effects, port, dialect, self._retries, later)
        self._binds: list[_Bind] = []
        self._evictions: list[tuple[str, Farewell]] = []
        self.left_out: dict[str, str] = {}  # pods that the last plan placed and that are not bound, and why

    def read(self, plan: Plan) -> list[str]:
        """Take the decisions out of a plan. What of it cannot be carried out is said."""
        session, dialect = plan.session, self._dialect
        problems = dict(dialect.beyond_us(plan))
        placed = {**plan.binds, **plan.held}
        job_of = {key: session.tasks.job[session.cluster.tasks.index_of(key)] for key in (*placed, *problems)}
        left_out = {job_of[key]: f"waits for {key} of its gang: {why}" for key, why in problems.items()}
        for job in left_out:
            session.started.pop(int(job), None)  # it has not
        self.left_out = {key: left_out[job_of[key]] for key in placed if job_of[key] in left_out} | problems
        self._binds = [
            _Bind(key, node, plan.annotations.get(key, {}), dialect.bind_request(plan, key, node))
            for key, node in placed.items()
            if job_of[key] not in left_out  # a gang is bound whole
        ]
        self._evictions = [
            (session.task_key(row), dialect.farewell(plan, row, reason)) for row, reason in session.evicted
        ]
        return [f"Pod {key}: {why}" for key, why in problems.items()]

    def carry_out(self, when: datetime) -> bool:
        """Have everything done. True when there was something."""
        binds, self._binds = self._binds, []
        evictions, self._evictions = self._evictions, []
        for key, farewell in evictions:
            self._evict(key, farewell, when.replace(microsecond=0))
        for each in binds:
            self._bind(each)
        return bool(binds or evictions)

    def forget(self, item: Object) -> bool:
        """The object is gone. True when a decision may depend on what follows from it."""
        self._retries.forget(item.metadata.uid)
        return self.requests.gone(item)

    # -- binds --------------------------------------------------------------------------------------------------------

    def _bind(self, bind: _Bind) -> None:
        pod = self._cache.pod(bind.pod)
        if pod is None:
            return
        node, annotations = bind.node, bind.annotations
        if bind.request is not None:
            self.requests.ask(pod, bind.request, lambda error: self._bound(pod, node, error))
        else:
            self._submit(
                pod,
                "bind",
                bound(pod, node),
                lambda: self._port.bind(pod, node, annotations),
                lambda error: self._bound(pod, node, error, bound=True),
            )

    def _bound(self, pod: Pod, node: str, error: BaseException | None, *, bound: bool = False) -> bool:
        """A bind is over, or the request for one is made."""
        if error is not None:
            return self._retries.failed(pod, f"failed to bind to node {node}: {error}")
        if bound:
            self._retries.forget(pod.metadata.uid)
        self._notes.write(pod, "Normal", "Scheduled", self._dialect.assigned(pod, node))
        self._label(pod)
        return False

    def _label(self, pod: Pod) -> None:
        """Labels say where a pod was scheduled; that it runs does not depend on them."""
        labels = self._dialect.labels(pod)
        if labels:
            patch = {"metadata": {"uid": pod.metadata.uid, "labels": dict(labels)}}
            self._effects.submit(
                Effect(
                    lane((Pod, pod.key)),
                    "labels",
                    Urgency.STATUS,
                    lambda: self._port.patch_status(Pod, pod.key, patch, False),
                    lambda error: None,
                )
            )

    # -- evictions ----------------------------------------------------------------------------------------------------

    def _evict(self, key: str, farewell: Farewell, when: datetime) -> None:
        pod = self._cache.pod(key)
        if pod is None:
            return
        self._notes.write(farewell.regarding, farewell.type, "Evict", farewell.text)
        self._submit(
            pod,
            "evict",
            leaving(pod, when),
            lambda: self._have_evicted(pod, farewell.condition, when),
            lambda error: False,
        )

    async def _have_evicted(self, pod: Pod, message: str, when: datetime) -> None:
        """First the condition by which controllers know that the pod is not to blame, if there is to be one, then the end of it."""
        target = Condition(
            type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message=message
        )
        try:
            if message:
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
