"""What placed pods need before they are bound: volumes, devices in resource claims, the node's device lock.

`decisions.py` begins a preparation with the decision and binds the pod when it is complete. All of it counts
from that moment: the cache assumes what is going to be written, so that the next cycle gives no volume and no
device away twice. Writes are effects; nothing blocks, and the watch advances a preparation. One that fails,
is refused by the provisioner or takes too long ends, too: the pod then no longer reserves its resource
claims. As with kube-scheduler, volumes stay as they were written: they belong to the claim, not to the pod.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from maniple.framework.plans.plan import Plan
from maniple.framework.points import PodVolumes
from maniple.live import devices, volumes
from maniple.live.assumptions import Assumption
from maniple.live.cache import Cache, version_of
from maniple.live.devices import Grant
from maniple.live.dialect import Find
from maniple.live.effects import Effect, Effects, Urgency
from maniple.live.node_lock import NodeLock
from maniple.live.port import NOT_FOUND, Port, status_of
from maniple.live.refs import Ref
from maniple.live.rewriting import Missing, RefusedError, Rewriting
from maniple.live.writing import Call, Later, lane, now
from maniple.objects.core import Node, PersistentVolume, PersistentVolumeClaim, Pod
from maniple.objects.dra import Consumer, ResourceClaim
from maniple.objects.group_claims import consumer_of, group_claims, group_name, is_group, named_claims
from maniple.objects.meta import Object
from maniple.plugins.devices.deviceshare import LOCK

log = logging.getLogger(__name__)

ASPECT = "prepare"
STILL_USED = 422  # the status of a refusal of an invalid request
_NO_VOLUMES = PodVolumes({}, (), 0.0)

# Called once with the result of a preparation; returns whether a decision may depend on it.
Over = Callable[[BaseException | None], bool]


@dataclass(frozen=True, slots=True)
class Needs:
    """What a pod needs besides a node."""

    volumes: PodVolumes = _NO_VOLUMES
    claims: Mapping[str, Grant] = field(default_factory=dict)
    lock: str = ""  # under which the node assigns its devices

    @property
    def volume_claims(self) -> tuple[str, ...]:
        return (*self.volumes.bound, *self.volumes.made)


def needs_of(plan: Plan, find: Find) -> dict[str, Needs]:
    """By pod, for the pods of a plan that need anything."""
    granted, bound = devices.grants(plan, find), plan.volumes
    locks = {key: notes[LOCK] for key, notes in plan.annotations.items() if LOCK in notes}
    if not granted and not bound and not locks:
        return {}
    found = {}
    for key in (*plan.binds, *plan.held):
        pod = find(Pod, key)
        claims = devices.granted_to(pod, granted, find) if isinstance(pod, Pod) else {}
        if claims or key in bound or key in locks:
            found[key] = Needs(bound.get(key, _NO_VOLUMES), claims, locks.get(key, ""))
    return found


@dataclass(eq=False, slots=True)
class Preparation:
    """The preparation of one pod."""

    pod: Pod
    node: str
    needs: Needs
    since: datetime
    over: Over
    until: float = 0.0
    writes: int = 0  # in flight
    error: BaseException | None = None  # of the first write that failed
    lock: NodeLock | None = None
    watched: set[Ref] = field(default_factory=set)
    ready: bool = False  # nothing is missing: the pod is being bound
    ended: bool = False

    def consumer(self, claim: str) -> Consumer:
        """What a claim is reserved for: the pod, or its PodGroup."""
        return consumer_of(self.pod, claim)

    @property
    def aspect(self) -> str:
        return f"for {self.pod.metadata.uid}"


class Preparations:
    def __init__(self, cache: Cache, effects: Effects, port: Port, later: Later) -> None:
        self._cache = cache
        self._effects = effects
        self._port = port
        self._later = later
        self._all: dict[str, Preparation] = {}  # by the uid of the pod
        self._watching: dict[Ref, list[Preparation]] = {}

    # -- preparations ------------------------------------------------------------------------------------------------

    def begin(self, wanted: Sequence[Preparation]) -> None:
        """Have everything written; pods that share a resource claim are written into it together."""
        users: dict[str, list[Preparation]] = {}
        for one in wanted:
            self._all[one.pod.metadata.uid] = one
            one.until = now() + one.needs.volumes.seconds
            self._ask_for_volumes(one)
            for key in one.needs.claims:
                users.setdefault(key, []).append(one)
            if one.needs.lock:
                one.lock = NodeLock(one.needs.lock, one.since)
                self._write((Node, one.node), {one: None}, one.lock.take)
        for key, together in users.items():
            self._reserve(key, together)
        for one in wanted:
            self._look(one)

    def end(self, uid: str, *, failed: bool) -> bool:
        """The pod is bound, or will not be; returns whether a decision may depend on the consequences."""
        one = self._all.get(uid)
        if one is None:
            return False
        self._forget(one)
        return failed and self._release_all(one)

    # -- events ------------------------------------------------------------------------------------------------------

    def seen(self, item: Object) -> bool:
        """The watch showed an object."""
        if not isinstance(item, PersistentVolume | PersistentVolumeClaim):
            return False
        return self._look_at(self._watching.get((type(item), item.key), ()))

    def gone(self, item: Object) -> bool:
        if isinstance(item, Pod):
            return self.end(item.metadata.uid, failed=True) | self._left(item)
        if isinstance(item, Node):
            return self._look_at(one for one in self._all.values() if one.node == item.metadata.name)
        return self.seen(item)

    def _left(self, pod: Pod) -> bool:
        """A pod is gone; if it was the last of its PodGroup on a node, the group's claims are free."""
        ours = pod.spec.scheduler_name in self._cache.cluster.dialect.scheduler_names
        if not ours or not pod.spec.resource_claims or not group_name(pod):
            return False
        matters = False
        for _, name in named_claims(pod):
            claim = self._cache.get(ResourceClaim, f"{pod.metadata.namespace or 'default'}/{name}")
            if isinstance(claim, ResourceClaim):
                groups = filter(is_group, claim.status.reserved_for)
                for one in groups:
                    if one.name == group_name(pod):
                        matters |= self._release_unused(claim, one, pod)
        return matters

    def expire(self, moment: float) -> bool:
        """Give up preparations that are out of time."""
        return self._look_at(one for one in self._all.values() if self._waits(one) and one.until <= moment)

    def next_due(self) -> float | None:
        return min((one.until for one in self._all.values() if self._waits(one)), default=None)

    def all_listed(self, direct: Callable[[Pod], bool]) -> None:
        """Release resource claims that an earlier scheduler reserved for pods that it did not bind.

        `direct`: whether a pod is bound by this scheduler.
        """
        for claim in [*self._cache.of_kind(ResourceClaim)]:
            assert isinstance(claim, ResourceClaim)
            for user in claim.status.reserved_for:
                key = f"{claim.metadata.namespace or 'default'}/{user.name}"
                pod = self._cache.pod(key)
                ours = pod is not None and pod.metadata.uid == user.uid and self._cache.waits(key)
                if ours and pod is not None and direct(pod):
                    self._release(claim.key, claim.metadata.uid, pod, user.uid, free=True)
                elif is_group(user):
                    waiting = self._cache.pods_of_native(
                        f"{claim.metadata.namespace or 'default'}/{user.name}"
                    )
                    for one in waiting[:1]:
                        self._release_unused(claim, user, one)

    def _release_unused(self, claim: ResourceClaim, group: Consumer, pod: Pod) -> bool:
        """Release a claim that is reserved for a PodGroup of which no pod has a node; `pod`: one of it.

        Otherwise the group could start only where the devices are that it had.
        """
        if any(one.spec.node_name for one in self._cache.mates(pod)):
            return False
        return self._release(claim.key, claim.metadata.uid, pod, group.uid, free=True)

    @staticmethod
    def _waits(one: Preparation) -> bool:
        return not one.ready and not one.writes

    # -- writing -----------------------------------------------------------------------------------------------------

    def _ask_for_volumes(self, one: Preparation) -> None:
        wanted = one.needs.volumes
        for key, name in wanted.bound.items():
            claim = self._cache.get(PersistentVolumeClaim, key)
            assert isinstance(claim, PersistentVolumeClaim)  # it is in the plan
            ref = volumes.volume_ref(name)
            self._watch(one, ref)
            self._write(ref, {one: volumes.named(claim)}, volumes.naming(claim))
        for key in wanted.made:
            self._write(volumes.claim_ref(key), {one: volumes.chosen(one.node)}, volumes.choosing(one.node))
        for key in one.needs.volume_claims:
            self._watch(one, volumes.claim_ref(key))

    def _reserve(self, key: str, together: Sequence[Preparation]) -> None:
        grant = together[0].needs.claims[key]
        consumers = {one.consumer(key).uid: one.consumer(key) for one in together}
        missing = devices.reserving(grant, consumers.values())
        assumed = {one: devices.reserved(grant, one.consumer(key)) for one in together}
        self._write(devices.resource_claim_ref(key), assumed, missing)

    def _write(self, ref: Ref, assumed: Mapping[Preparation, Assumption | None], missing: Missing) -> None:
        """For some pods; what no other decision depends on need not be assumed."""
        item = self._cache.get(*ref)
        assert item is not None  # it is in the plan
        write = Rewriting(self._cache, self._port, ref, item.metadata.uid, missing)
        for one, assumption in assumed.items():
            one.writes += 1
            if assumption is not None:
                self._cache.assume(ref, one.aspect, assumption)

        def settle(error: BaseException | None) -> bool:
            matters = False
            for one, assumption in assumed.items():
                if assumption is not None:
                    matters |= self._settle(ref, one.aspect, assumption, write, error)
                one.writes -= 1
                one.error = one.error or error
            return self._look_at(assumed) | matters

        self._submit(ref, write, settle)

    def _release_all(self, one: Preparation) -> bool:
        """Revert what was written for a pod that is given up."""
        matters, node = False, self._cache.get(Node, one.node)
        if one.lock is not None and node is not None:
            ref: Ref = (Node, one.node)
            give_back = Rewriting(
                self._cache, self._port, ref, node.metadata.uid, one.lock.give_back, fresh=True
            )
            self._submit(ref, give_back, lambda error: False)
        for key, grant in one.needs.claims.items():
            claim = self._cache.get(ResourceClaim, key)
            shared = key in group_claims(one.pod)
            if claim is not None and not (shared and self._others_stay(one.pod)):
                matters |= self._release(
                    key, claim.metadata.uid, one.pod, one.consumer(key).uid, free=shared or grant.new
                )
        return matters

    def _others_stay(self, pod: Pod) -> bool:
        """Whether another pod of the pod's PodGroup has a node, so that the group keeps its claims."""
        return any(one.spec.node_name and one.key != pod.key for one in self._cache.mates(pod))

    def _release(self, key: str, claim: str, pod: Pod, consumer: str, *, free: bool) -> bool:
        """Remove the pod, or its PodGroup, from the claim; `consumer`: its uid.

        The known state may be older than what was written, so the claim is read first.
        """
        ref, uid = devices.resource_claim_ref(key), pod.metadata.uid
        missing, aspect = devices.releasing(consumer, free=free), f"for {uid}"
        write = Rewriting(self._cache, self._port, ref, claim, missing, fresh=True)
        assumption = devices.released(consumer, free=free)
        matters = self._cache.assume(ref, aspect, assumption)

        async def call() -> None:
            # A bind whose response was lost may have been carried out: then the pod does use the claim.
            there = await self._port.read(Pod, pod.key)
            if isinstance(there, Pod) and there.metadata.uid == uid and there.spec.node_name:
                raise RefusedError(STILL_USED, f"Pod {pod.key} was bound after all")
            await write()

        def settle(error: BaseException | None) -> bool:
            if error is not None and status_of(error) not in (STILL_USED, NOT_FOUND):
                log.warning("ResourceClaim %s: Pod %s is not taken out: %s", key, pod.key, error)
            return self._settle(ref, aspect, assumption, write, error)

        self._submit(ref, call, settle)
        return matters

    def _submit(self, ref: Ref, call: Call, settle: Over) -> None:
        effect = Effect(
            lane(ref),
            ASPECT,
            Urgency.DECISION,
            call,
            lambda error: self._later(lambda: settle(error)),
        )
        self._effects.submit(effect)

    def _settle(
        self, ref: Ref, aspect: str, assumption: Assumption, write: Rewriting, error: BaseException | None
    ) -> bool:
        if write.item is not None:
            assumption.version = version_of(write.item)
        # Without a version to wait for, the next one seen counts.
        assumption.lasting = assumption.version > 0
        return self._cache.settle(ref, aspect, assumption, failed=error is not None)

    # -- progress ----------------------------------------------------------------------------------------------------

    def _look_at(self, some: Iterable[Preparation]) -> bool:
        matters = [self._look(one) for one in [*some]]
        return any(matters)

    def _look(self, one: Preparation) -> bool:
        """Check whether a preparation is over."""
        if one.ended or not self._waits(one):
            return False
        error = one.error
        waits = False
        if error is None:
            why, waits = self._volumes_of(one)
            if waits and not why and one.until <= now():
                why = f"its volumes were not ready in {one.needs.volumes.seconds:g} s"
            error = RefusedError(0, why) if why else None
        if error is not None:
            self._forget(one)
            matters = self._release_all(one)
            return one.over(error) | matters
        if waits:
            return False
        one.ready = True
        return one.over(None)

    def _volumes_of(self, one: Preparation) -> tuple[str, bool]:
        """What is wrong with the volumes of a pod, and whether one is still pending."""
        node, waits = self._cache.get(Node, one.node), False
        if not isinstance(node, Node):
            return f"node {one.node} is gone", False
        for key in one.needs.volume_claims:
            claim = self._cache.whole(PersistentVolumeClaim, key)
            if not isinstance(claim, PersistentVolumeClaim):
                return f"{key} is gone", False
            bound = volumes.is_bound(claim)
            name = claim.spec.volume_name if bound else one.needs.volumes.bound.get(key, "")
            volume = self._volume(name)
            if bound and volume is None:
                self._watch(one, volumes.volume_ref(name))
            elif name and volume is None:
                return f"volume {name} is gone", False
            why = self._problem(claim, node, volume)
            if why:
                return why, False
            waits |= volume is None or not bound
        return "", waits

    @staticmethod
    def _problem(claim: PersistentVolumeClaim, node: Node, volume: PersistentVolume | None) -> str:
        if not volumes.is_bound(claim):
            return volumes.binding_failure(claim, node.metadata.name, volume)
        if volume is not None and not volumes.reaches(node, volume):
            return f"{claim.key} has got a volume that node {node.metadata.name} cannot reach"
        return ""

    def _volume(self, name: str) -> PersistentVolume | None:
        found = self._cache.whole(PersistentVolume, name)
        return found if isinstance(found, PersistentVolume) else None

    def _watch(self, one: Preparation, ref: Ref) -> None:
        if ref not in one.watched:
            one.watched.add(ref)
            self._watching.setdefault(ref, []).append(one)

    def _forget(self, one: Preparation) -> None:
        one.ended = True
        self._all.pop(one.pod.metadata.uid, None)
        for ref in one.watched:
            self._watching[ref].remove(one)
            if not self._watching[ref]:
                del self._watching[ref]
