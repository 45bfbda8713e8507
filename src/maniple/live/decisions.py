"""Binds, evictions and admissions: counted at once, written beside the cycles, reverted if refused.

The scheduler passes every plan to `carry_out`. A pod whose bind was refused is backed off, longer each time,
and its gang is reconsidered meanwhile. Pods are bound directly, once their volumes and devices are ready
(`preparing.py`), or by a BindRequest (`bind_requests.py`); the dialect says which. `binding.py` has the pods whose
bind is not confirmed yet.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from maniple.framework.plans.evictions import listed
from maniple.framework.plans.outcome import Eviction
from maniple.framework.plans.plan import Plan
from maniple.live.assumptions import Assumption, bound, leaving, ungated
from maniple.live.bind_requests import BindRequests, pod_of
from maniple.live.binding import Binding
from maniple.live.cache import Cache
from maniple.live.dialect import EvictionNotice, LiveDialect, group_of
from maniple.live.effects import Effect, Effects, Urgency
from maniple.live.messages import message
from maniple.live.notes import Notes
from maniple.live.permissions import BIND_VOLUMES, REMOVE_GATES, Feature, Permissions
from maniple.live.port import CONFLICT, NOT_FOUND, TOO_MANY, Port, status_of
from maniple.live.preparing import Needs, Preparation, Preparations, needs_of
from maniple.live.refs import Ref
from maniple.live.retries import Retries
from maniple.live.writing import Later, lane
from maniple.objects.core import Node, Pod
from maniple.objects.kai import BindRequest
from maniple.objects.meta import Condition, Object
from maniple.objects.pod import MOVES_TO
from maniple.plugins.devices.deviceshare import LOCK
from maniple.profiles.kai import is_under_way


def _starting(plan: Plan) -> dict[str, str]:
    """By job that claims what others are releasing: when it starts."""
    nodes, after = dict[str, set[str]](), dict[str, set[str]]()
    for one in plan.starting.values() if plan.pipelined else ():
        nodes.setdefault(one.job, set()).add(one.node)
        after.setdefault(one.job, set()).update(one.after)
    found = {}
    for job, where in nodes.items():
        leaving = listed(sorted(after[job]), "pod") or "others"
        have = "has" if len(after[job]) == 1 else "have"
        found[job] = f"starts when {leaving} {have} left {listed(sorted(where), 'node')}"
    return found


@dataclass(frozen=True, slots=True)
class _Bind:
    """`request` is the object to create for an indirect bind, `needs` what has to be done before a direct
    one."""

    pod: Pod
    node: str
    annotations: dict[str, str] = field(default_factory=dict)
    request: Mapping[str, Any] | None = None
    needs: Needs | None = None


@dataclass(frozen=True, slots=True)
class _Write:
    """A decision about a pod: what to assume, how to write it, and the callback with the result."""

    aspect: str
    assumption: Assumption
    call: Callable[[], Awaitable[object]]
    after: Callable[[BaseException | None], bool]
    urgency: Urgency = Urgency.DECISION
    refused: Callable[[Exception], bool] | None = None  # of an attempt that is going to be repeated


class Decisions:
    def __init__(
        self,
        cache: Cache,
        effects: Effects,
        port: Port,
        notes: Notes,
        later: Later,
        dialect: LiveDialect,
        binding: Binding,
        permissions: Permissions,
    ) -> None:
        self.evicted: dict[str, Eviction] = {}  # pods that were evicted and are not gone yet
        self.starting: Mapping[str, str] = {}  # jobs that start when others have left, and when that is
        self._cache = cache
        self._effects = effects
        self._port = port
        self._notes = notes
        self._later = later
        self._dialect = dialect
        self._binding = binding
        self._permissions = permissions
        self._retries = Retries(cache, notes)
        self._preparations = Preparations(cache, effects, port, later)
        self._requests = BindRequests(cache, effects, port, dialect, self._retries, notes, later)

    @property
    def bind_failures(self) -> int:
        return self._retries.failures

    def carry_out(self, plan: Plan, when: datetime) -> bool:
        """Have everything done; returns whether there was anything."""
        binds, evictions = self._permitted([*self._binds(plan)]), [*self._notices(plan)]
        self.starting = _starting(plan)
        for pod, notice in evictions:
            self._evict(pod, notice, when.replace(microsecond=0))
        for key in plan.admitted:
            self._admit(key)
        preparations = [one for each in binds if (one := self._bind(each, when)) is not None]
        self._preparations.begin(preparations)
        return bool(plan.binds or plan.held or plan.evictions or plan.admitted)

    def _binds(self, plan: Plan) -> Iterator[_Bind]:
        """The placements of a plan; not of a pod that is gone by now."""
        find, needs = self._cache.get, needs_of(plan, self._cache.get)
        for placed in (plan.binds, plan.held):
            for key, node in placed.items():
                pod = self._cache.pod(key)
                if pod is not None:
                    request = self._dialect.bind_request(plan, pod, node, find)
                    yield _Bind(pod, node, plan.annotations.get(key, {}), request, needs.get(key))

    def _permitted(self, binds: list[_Bind]) -> list[_Bind]:
        """Without jobs of which a pod needs a volume that may not be bound: a part of a gang would be bound."""
        naming = [one for one in binds if one.needs is not None and one.needs.volumes.bound]
        withheld = set[int]()
        for one in naming:
            if not self._permissions.has(BIND_VOLUMES):
                withheld.add(self._job_of(one.pod))
                self._withhold(BIND_VOLUMES, one.pod)
        return [one for one in binds if self._job_of(one.pod) not in withheld] if withheld else binds

    def _job_of(self, pod: Pod) -> int:
        tasks = self._cache.cluster.tasks
        row = tasks.index_of(pod.key)
        return int(tasks.job[row]) if row is not None else -1

    def seen(self, item: Object) -> bool:
        """The watch showed an object; returns whether a decision may depend on the consequences."""
        if isinstance(item, Pod) and item.spec.node_name:
            self._binding.end(item.key)
        elif isinstance(item, BindRequest) and not is_under_way(item):
            self._binding.end(pod_of(item))
        return self._requests.seen(item) | self._preparations.seen(item)

    def forget(self, item: Object) -> bool:
        """The object is gone; returns whether a decision may depend on the consequences."""
        self._retries.forget(item.metadata.uid)
        if isinstance(item, Pod):
            self.evicted.pop(item.key, None)
            self._binding.end(item.key)
        elif isinstance(item, BindRequest):
            self._binding.end(pod_of(item))
        return self._requests.gone(item) | self._preparations.gone(item)

    def all_listed(self) -> None:
        """Every existing object has been listed."""
        self._requests.all_listed()
        for pod in self._requests.under_way():
            self._binding.begin(pod, self._cache.cluster)
        self._preparations.all_listed(self._dialect.direct)

    def expire(self, moment: float) -> bool:
        """Give up pods whose preparation takes too long; returns whether a decision may depend on that."""
        self._requests.check_binder(moment)
        return self._preparations.expire(moment)

    def next_due(self) -> float | None:
        """When to call `expire` again."""
        moments = (self._preparations.next_due(), self._requests.next_due())
        return min((moment for moment in moments if moment is not None), default=None)

    # -- binds -------------------------------------------------------------------------------------------------------

    def _bind(self, bind: _Bind, when: datetime) -> Preparation | None:
        """Count a pod as bound, and have that done; returns what has to be done before."""
        pod, node = bind.pod, bind.node
        self._binding.begin(pod.key, self._cache.cluster)
        annotations = {name: text for name, text in bind.annotations.items() if name != LOCK}
        if bind.request is not None:
            self._requests.submit(pod, bind.request, lambda error: self._bound(pod, node, error))
            return None
        write = _Write(
            "bind",
            bound(pod, node, annotations),
            lambda: self._port.bind(pod, node, annotations),
            lambda error: self._bound(pod, node, error, bound=True),
            refused=lambda error: self._refused(pod, node, error),
        )
        self._cache.assume((Pod, pod.key), write.aspect, write.assumption)
        if bind.needs is None:
            self._submit(pod, write)
            return None
        return Preparation(pod, node, bind.needs, when, lambda error: self._prepared(pod, write, error))

    def _prepared(self, pod: Pod, write: _Write, error: BaseException | None) -> bool:
        """The pod's volumes and devices are ready, or will not be."""
        if error is not None:
            return self._settle(pod, write, error)
        self._submit(pod, write)
        return False

    def _refused(self, pod: Pod, node: str, error: Exception) -> bool:
        """An attempt was refused and is repeated; a race and a busy server are not worth a word."""
        if status_of(error) not in (CONFLICT, TOO_MANY):
            self._retries.struggles(pod, _failed(node, error))
        return False

    def _bound(self, pod: Pod, node: str, error: BaseException | None, *, bound: bool = False) -> bool:
        """A bind is over, or its BindRequest has been created."""
        if error is not None:
            self._binding.end(pod.key)
            self._preparations.end(pod.metadata.uid, failed=True)
            missing = self._permissions.missing(error)
            if missing is not None:
                self._wait_for(missing, pod)
            else:
                self._retries.failed(pod, _failed(node, error), node)
            return True  # its gang is not whole
        self._preparations.end(pod.metadata.uid, failed=False)
        if bound:
            self._binding.end(pod.key)
            self._retries.succeeded(pod, node)
        self._notes.write(pod, "Normal", "Scheduled", self._dialect.assigned(pod, node))
        self._label(pod)
        return False

    def _label(self, pod: Pod) -> None:
        """Labels record where a pod was scheduled; running does not depend on them."""
        labels = self._dialect.labels(pod)
        if labels:
            patch = {"metadata": {"uid": pod.metadata.uid, "labels": dict(labels)}}
            self._effects.submit(
                Effect(
                    lane((Pod, pod.key)),
                    "labels",
                    Urgency.STATUS,
                    # Through the status, as all metadata of pods: to patch pods would be to change their images, too.
                    lambda: self._port.patch_status(Pod, pod.key, patch),
                    lambda error: None,
                )
            )

    # -- admissions --------------------------------------------------------------------------------------------------

    def _admit(self, key: str) -> None:
        """Remove the gate of queue admission from a pod that has no other."""
        pod = self._cache.pod(key)
        if pod is None:
            return
        namespace = pod.metadata.namespace
        if not self._permissions.has(REMOVE_GATES, namespace):
            self._withhold(REMOVE_GATES, pod, namespace)
            return
        patch = {"metadata": {"uid": pod.metadata.uid}, "spec": {"schedulingGates": None}}

        def after(error: BaseException | None) -> bool:
            missing = self._permissions.missing(error, namespace) if error is not None else None
            if missing is not None:
                return self._wait_for(missing, pod, namespace)
            if error is not None:
                return self._retries.failed(pod, f"its scheduling gate cannot be removed: {error}")
            self._retries.forget(pod.metadata.uid)
            return False

        write = _Write(
            "gate",
            ungated(pod),
            lambda: self._port.patch_status(Pod, key, patch, False),
            after,
            Urgency.AWAITED,  # autoscalers and quota controllers act on pods without a gate
        )
        self._cache.assume((Pod, key), write.aspect, write.assumption)
        self._submit(pod, write)

    # -- evictions ---------------------------------------------------------------------------------------------------

    def _notices(self, plan: Plan) -> Iterator[tuple[Pod, EvictionNotice]]:
        """The evictions of a plan; not of a pod that is gone by now."""
        for eviction, told in zip(plan.evicted, plan.eviction_notices, strict=True):
            pod = self._cache.pod(eviction.pod)
            if pod is not None:
                self.evicted[pod.key] = eviction
                yield pod, self._notice(plan, told, pod)

    def _notice(self, plan: Plan, eviction: Eviction, pod: Pod) -> EvictionNotice:
        """A pod that is to move is annotated with its target until it is gone, so that the place is kept."""
        find = self._cache.get
        notice = self._dialect.eviction_notice(plan, eviction, pod, find)
        if not self._dialect.pod_reporting(group_of(plan, eviction.job, find)).nominates:
            return notice
        return replace(notice, promised=plan.nominations.get(eviction.pod, ""))

    def _evict(self, pod: Pod, notice: EvictionNotice, when: datetime) -> None:
        self._notes.write(notice.regarding, notice.type, "Evict", notice.text, notice.annotations)
        write = _Write(
            "evict",
            leaving(pod, when, notice.promised),
            lambda: self._delete(pod, notice, when),
            lambda error: False,
        )
        self._cache.assume((Pod, pod.key), write.aspect, write.assumption)
        self._submit(pod, write)

    async def _delete(self, pod: Pod, notice: EvictionNotice, when: datetime) -> None:
        """Write the pod's condition first, if any, then delete it."""
        try:
            await self._mark_evicted(pod, notice, when)
        except Exception as error:
            if status_of(error) != NOT_FOUND:
                raise
        # Without a node there is no kubelet to confirm that the pod has stopped.
        lost = bool(pod.spec.node_name) and self._cache.get(Node, pod.spec.node_name) is None
        await self._port.evict(pod, 0 if lost else None)

    async def _mark_evicted(self, pod: Pod, notice: EvictionNotice, when: datetime) -> None:
        """Write the condition DisruptionTarget, and the node kept for the pod's replacement."""
        if notice.condition:
            target = Condition(
                type="DisruptionTarget",
                status="True",
                reason="PreemptionByScheduler",
                message=message(notice.condition),
            )
            await self._port.patch_pod_condition(pod, target, when)
        if notice.promised:
            moves = Condition(type=MOVES_TO, status="True", reason="Moves", message=notice.promised)
            await self._port.patch_pod_condition(pod, moves, when)

    # -- both --------------------------------------------------------------------------------------------------------

    def _wait_for(self, feature: Feature, pod: Pod, namespace: str = "") -> bool:
        """Leave a pod out of decisions while a permission is missing; returns whether one may depend on that."""
        again = self._permissions.again(feature, namespace)
        return self._cache.hold(pod.key, pod.metadata.uid, again, str(feature))

    def _withhold(self, feature: Feature, pod: Pod, namespace: str = "") -> None:
        """What was decided for a pod is not carried out: another cycle tells why."""
        if self._wait_for(feature, pod, namespace):
            self._later(lambda: True)

    def _submit(self, pod: Pod, write: _Write) -> None:
        def done(error: BaseException | None) -> None:
            self._later(lambda: self._settle(pod, write, error))

        def refused(error: Exception) -> None:
            if write.refused is not None:
                self._later(partial(write.refused, error))

        # Its reason for waiting is obsolete: what is not written yet need not be.
        effect = Effect(lane((Pod, pod.key)), write.aspect, write.urgency, write.call, done, refused)
        self._effects.submit(effect, replaces=("condition",))

    def _settle(self, pod: Pod, write: _Write, error: BaseException | None) -> bool:
        ref: Ref = (Pod, pod.key)
        matters = self._cache.settle(ref, write.aspect, write.assumption, failed=error is not None)
        return write.after(error) | matters


def _failed(node: str, error: BaseException) -> str:
    return f"failed to bind to node {node}: {error}"
