"""Binds, evictions and admissions: counted from the moment of the decision, carried out beside the cycles, taken back when refused.

The scheduler calls `read` on a fresh plan and `carry_out` once everything else has read its session. A pod whose bind was refused is left
alone for a while, longer each time, and its gang is looked at again meanwhile. Pods are bound from here, once what they need besides a node is there (`preparing.py`), or by somebody else who is asked to (`bind_requests.py`); the
dialect says which.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from maniple.framework.outcome import Plan
from maniple.live.bind_requests import BindRequests
from maniple.live.cache import Assumption, Cache, Ref, bound, leaving, ungated
from maniple.live.dialect import Farewell, LiveDialect
from maniple.live.effects import Effect, Effects, Urgency
from maniple.live.notes import Notes
from maniple.live.port import NOT_FOUND, Port, status_of
from maniple.live.preparing import Needs, Preparation, Preparations, needs_of
from maniple.live.retries import Retries
from maniple.live.writing import Later, lane
from maniple.objects.core import Pod
from maniple.objects.meta import Condition, Object
from maniple.objects.pod import MOVES_TO
from maniple.plugins.devices.deviceshare import LOCK


@dataclass(frozen=True, slots=True)
class _Bind:
    """`request` is what has to be made so that somebody else binds the pod, `needs` what has to be done before it is bound from here."""

    pod: str
    node: str
    annotations: dict[str, str] = field(default_factory=dict)
    request: Mapping[str, Any] | None = None
    needs: Needs | None = None


@dataclass(frozen=True, slots=True)
class _Write:
    """What is decided about a pod: what is believed from then on, how it becomes true, and who is told how that ended."""

    aspect: str
    assumption: Assumption
    call: Callable[[], Awaitable[object]]
    after: Callable[[BaseException | None], bool]


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
        self._preparations = Preparations(cache, effects, port, later)
        self._requests = BindRequests(cache, effects, port, dialect, self._retries, notes, later)
        self._binds: list[_Bind] = []
        self._evictions: list[tuple[str, Farewell]] = []
        self._admitted: list[str] = []

    def read(self, plan: Plan) -> None:
        """Take the decisions out of a plan."""
        session, dialect, needs = plan.session, self._dialect, needs_of(plan)
        self._binds = [
            _Bind(
                key,
                node,
                plan.annotations.get(key, {}),
                dialect.bind_request(plan, key, node),
                needs.get(key),
            )
            for placed in (plan.binds, plan.held)
            for key, node in placed.items()
        ]
        self._evictions = [
            (session.task_key(row), self._farewell(plan, row, reason)) for row, reason in session.evicted
        ]
        self._admitted = [session.task_key(row) for rows in session.admitted for row in rows.tolist()]

    def carry_out(self, when: datetime) -> bool:
        """Have everything done. True when there was something."""
        binds, self._binds = self._binds, []
        evictions, self._evictions = self._evictions, []
        admitted, self._admitted = self._admitted, []
        for key, farewell in evictions:
            self._evict(key, farewell, when.replace(microsecond=0))
        for key in admitted:
            self._admit(key)
        preparations = [one for each in binds if (one := self._bind(each, when)) is not None]
        self._preparations.begin(preparations)
        return bool(binds or evictions or admitted)

    def seen(self, item: Object) -> bool:
        """The watch showed an object. True when a decision may depend on what follows from it."""
        return self._requests.seen(item) | self._preparations.seen(item)

    def forget(self, item: Object) -> bool:
        """The object is gone. True when a decision may depend on what follows from it."""
        self._retries.forget(item.metadata.uid)
        return self._requests.gone(item) | self._preparations.gone(item)

    def all_told(self) -> None:
        """Every object that there is has been told."""
        self._requests.all_told()
        self._preparations.all_told(self._dialect.direct)

    def expire(self, moment: float) -> bool:
        """Let go of pods that have been prepared for too long. True when a decision may depend on that."""
        self._requests.listen(moment)
        return self._preparations.expire(moment)

    def next_due(self) -> float | None:
        """When to call `expire` again."""
        moments = (self._preparations.next_due(), self._requests.next_due())
        return min((moment for moment in moments if moment is not None), default=None)

    # -- binds --------------------------------------------------------------------------------------------------------

    def _bind(self, bind: _Bind, when: datetime) -> Preparation | None:
        """Count a pod as bound, and have that done; what has to be done before is returned."""
        pod = self._cache.pod(bind.pod)
        if pod is None:
            return None
        node = bind.node
        annotations = {name: text for name, text in bind.annotations.items() if name != LOCK}
        if bind.request is not None:
            self._requests.ask(pod, bind.request, lambda error: self._bound(pod, node, error))
            return None
        write = _Write(
            "bind",
            bound(pod, node, annotations),
            lambda: self._port.bind(pod, node, annotations),
            lambda error: self._bound(pod, node, error, bound=True),
        )
        self._cache.assume((Pod, pod.key), write.aspect, write.assumption)
        if bind.needs is None:
            self._submit(pod, write)
            return None
        return Preparation(pod, node, bind.needs, when, lambda error: self._prepared(pod, write, error))

    def _prepared(self, pod: Pod, write: _Write, error: BaseException | None) -> bool:
        """What a pod needs besides a node is there, or will not be."""
        if error is not None:
            return self._settle(pod, write, error)
        self._submit(pod, write)
        return False

    def _bound(self, pod: Pod, node: str, error: BaseException | None, *, bound: bool = False) -> bool:
        """A bind is over, or the request for one is made."""
        if error is not None:
            matters = self._preparations.end(pod.metadata.uid, failed=True)
            return self._retries.failed(pod, f"failed to bind to node {node}: {error}") | matters
        self._preparations.end(pod.metadata.uid, failed=False)
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

    # -- admissions ---------------------------------------------------------------------------------------------------

    def _admit(self, key: str) -> None:
        """A pod that waits behind the gate of queue admission, and behind no other, waits no more."""
        pod = self._cache.pod(key)
        if pod is None:
            return
        patch = {"metadata": {"uid": pod.metadata.uid}, "spec": {"schedulingGates": None}}

        def after(error: BaseException | None) -> bool:
            if error is not None:
                return self._retries.failed(pod, f"its scheduling gate cannot be removed: {error}")
            self._retries.forget(pod.metadata.uid)
            return False

        write = _Write("gate", ungated(pod), lambda: self._port.patch_status(Pod, key, patch, False), after)
        self._cache.assume((Pod, key), write.aspect, write.assumption)
        self._submit(pod, write)

    # -- evictions ----------------------------------------------------------------------------------------------------

    def _farewell(self, plan: Plan, row: int, reason: str) -> Farewell:
        """A pod that is to move says where to until it is gone, so that its place is kept."""
        session = plan.session
        farewell = self._dialect.farewell(plan, row, reason)
        group = session.cluster.jobs.objects.get(int(session.tasks.job[row]))
        if not self._dialect.pod_words(group).nominates:
            return farewell
        return replace(farewell, promised=plan.nominations.get(session.task_key(row), ""))

    def _evict(self, key: str, farewell: Farewell, when: datetime) -> None:
        pod = self._cache.pod(key)
        if pod is None:
            return
        self._notes.write(farewell.regarding, farewell.type, "Evict", farewell.text, farewell.annotations)
        write = _Write(
            "evict",
            leaving(pod, when, farewell.promised),
            lambda: self._have_evicted(pod, farewell, when),
            lambda error: False,
        )
        self._cache.assume((Pod, key), write.aspect, write.assumption)
        self._submit(pod, write)

    async def _have_evicted(self, pod: Pod, farewell: Farewell, when: datetime) -> None:
        """First what the pod has to say, if anything, then the end of it."""
        try:
            await self._last_words(pod, farewell, when)
        except Exception as error:
            if status_of(error) != NOT_FOUND:
                raise
        await self._port.evict(pod)

    async def _last_words(self, pod: Pod, farewell: Farewell, when: datetime) -> None:
        """The condition by which controllers know that the pod is not to blame, and the node that is kept for its successor."""
        if farewell.condition:
            target = Condition(
                type="DisruptionTarget",
                status="True",
                reason="PreemptionByScheduler",
                message=farewell.condition,
            )
            await self._port.patch_pod_condition(pod, target, when)
        if farewell.promised:
            metadata = {"uid": pod.metadata.uid, "annotations": {MOVES_TO: farewell.promised}}
            await self._port.patch_status(Pod, pod.key, {"metadata": metadata}, False)

    # -- both ---------------------------------------------------------------------------------------------------------

    def _submit(self, pod: Pod, write: _Write) -> None:
        def done(error: BaseException | None) -> None:
            self._later(lambda: self._settle(pod, write, error))

        # Why it waited is past: what has not been written of it need not be.
        effect = Effect(lane((Pod, pod.key)), write.aspect, Urgency.DECISION, write.call, done)
        self._effects.submit(effect, replaces=("condition",))

    def _settle(self, pod: Pod, write: _Write, error: BaseException | None) -> bool:
        ref: Ref = (Pod, pod.key)
        matters = self._cache.settle(ref, write.aspect, write.assumption, failed=error is not None)
        return write.after(error) | matters
