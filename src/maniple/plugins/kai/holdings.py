"""Resource claims as KAI sees them: a claim holds its devices while a pod that is not evicted uses it.

Called by `predicates`, which filters nodes by what is free, and by `dynamicresources`, which reports changes.
Claims of pods that are about to be bound count as allocated, by their bind requests. A claim whose last user
is evicted frees its devices, and gets others if the pod is moved. If the pod stays after all the claim has
its own devices back; claims that took them meanwhile get others.

Devices of an incomplete pool are available, as in the allocator that KAI embeds, unless a request needs all
devices.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
import numpy as np

from maniple.cluster.statuses import ON_NODE, WAITING, Status
from maniple.framework.criteria import NodeRows
from maniple.framework.points import Event
from maniple.framework.session import Session
from maniple.objects import dra
from maniple.objects.core import Pod
from maniple.objects.group_claims import consumer_of, group_claims, group_name, is_group, is_reserved
from maniple.objects.kai import BindRequest
from maniple.plugins.feasibility.dynamic_resources import Decision, DynamicResources
from maniple.plugins.feasibility.resource_claims import MOST_CONSUMERS

DeviceIds = set[tuple[str, str, str]]


class Holdings(DynamicResources):
    """For one session."""

    def __init__(self, session: Session) -> None:
        super().__init__(session, _claims(session), evictable=True, partial=True)
        self._freed: set[str] = set()
        self._users: dict[str, set[str]] = {}
        self._homes: NodeRows = session.tasks.node.astype(np.intp)

    @classmethod
    def shared(cls, session: Session) -> "Holdings":
        """One for both plugins."""
        if cls not in session.shared:
            session.shared[cls] = cls(session)
        known: Holdings = session.shared[cls]
        return known

    def claims_of(self, pod: Pod) -> Iterator[tuple[bool, str, dra.ResourceClaim | None]]:
        """A pod's claims: whether it is this pod's own, its name (empty: unknown), and the claim if it
        exists."""
        for made, name in _claim_names(pod).values():
            yield made, name, self._every.get(f"{pod.metadata.namespace or 'default'}/{name}")

    def is_full(self, claim: dra.ResourceClaim) -> bool:
        """Whether no more pods can use it, counting those that were placed in this session."""
        return len(self._users_of(claim)) >= MOST_CONSUMERS

    def _users_of(self, claim: dra.ResourceClaim) -> set[str]:
        users = self._users.get(claim.key)
        if users is None:
            users = self._users[claim.key] = {consumer.uid for consumer in claim.status.reserved_for}
            for one in filter(is_group, claim.status.reserved_for):
                members = self._members_on_nodes(claim, one.name)
                if members:  # they use it in the name of their PodGroup
                    users.discard(one.uid)
                    users |= members
        return users

    def _members_on_nodes(self, claim: dra.ResourceClaim, group: str) -> set[str]:
        """The pods of a PodGroup that were on nodes when the session opened and use a claim in its name."""
        tasks, namespace = self._session.cluster.tasks, claim.metadata.namespace or "default"
        found = set()
        for row in np.flatnonzero((tasks.status >= 0) & ON_NODE[tasks.status]).tolist():
            pod = tasks.pods[row]
            ours = (pod.metadata.namespace or "default") == namespace and group_name(pod) == group
            if ours and claim.key in group_claims(pod):
                found.add(pod.metadata.uid)
        return found

    def _standing(self, claim: dra.ResourceClaim) -> dra.AllocationResult | None:
        return None if claim.key in self._freed else claim.status.allocation

    # -- events ---------------------------------------------------------------------------------------------------

    def on_allocate(self, event: Event) -> None:
        for task, node in zip(event.rows.tolist(), event.nodes.tolist(), strict=True):
            pod = self._pod(task)
            claims = self._claims.of_pod(pod).claims
            for claim in claims:
                if (
                    claim.key in self._freed
                    and claim.key not in self._decisions
                    and node == self._homes[task]
                ):
                    self._take_back(claim)
            self._promise(task, node)
            for claim in claims:
                self._users_of(claim).add(pod.metadata.uid)

    def on_deallocate(self, event: Event) -> None:
        waited = WAITING[self._session.cluster.tasks.status[event.rows]]
        for task, was_waiting in zip(event.rows.tolist(), waited.tolist(), strict=True):
            pod = self._pod(task)
            self._withdraw(task)
            for claim in self._claims.of_pod(pod).claims:
                # A pod that was there before, and has not run yet, keeps its reservation.
                if not (was_waiting and is_reserved(claim, pod)):
                    self._users_of(claim).discard(pod.metadata.uid)
                if not was_waiting and not self._users_of(claim):
                    self._give_up(claim)

    def _give_up(self, claim: dra.ResourceClaim) -> None:
        standing = self._standing(claim)
        if standing is not None:
            self._freed.add(claim.key)
            self._stock.give_back(standing.devices.results)
            self._log.append(None)

    def _take_back(self, claim: dra.ResourceClaim) -> None:
        """Return the devices that a claim freed to it.

        A claim that has been promised one of them gets another, if there is any.
        """
        assert claim.status.allocation is not None
        results = claim.status.allocation.devices.results
        own = _ids(results)
        takers = {
            key: one
            for key, one in self._decisions.items()
            if not own.isdisjoint(_ids(one.allocation.devices.results))
        }
        for key, taker in takers.items():
            self._stock.give_back(taker.allocation.devices.results)
            del self._decisions[key]
        self._stock.take(results)
        self._freed.discard(claim.key)
        self._log.append(None)
        if not self._serve_again(takers):
            self._freed.add(claim.key)
            self._stock.give_back(results)
            for key, taker in takers.items():
                self._decisions[key] = taker
                self._stock.take(taker.allocation.devices.results)

    def _serve_again(self, takers: Mapping[str, Decision]) -> bool:
        """Find other devices for claims on their nodes; if one cannot be satisfied, none changes."""
        served: list[str] = []
        for key, taker in takers.items():
            if not self._decide([self._every[key]], taker.node):
                for other in served:
                    self._stock.give_back(self._decisions.pop(other).allocation.devices.results)
                return False
            self._decisions[key].users = taker.users
            served.append(key)
        return True


def _claims(session: Session) -> Mapping[str, dra.ResourceClaim]:
    """The cluster's claims as this session sees them."""
    claims = session.cluster.all(dra.ResourceClaim)
    decided = _decided(session, claims)
    return {**claims, **decided} if decided else claims


def _decided(session: Session, claims: Mapping[str, dra.ResourceClaim]) -> dict[str, dra.ResourceClaim]:
    """Claims with an allocation in a bind request that is not written yet."""
    decided: dict[str, dra.ResourceClaim] = {}
    for request in session.cluster.all(BindRequest).values():
        if not request.spec.resource_claim_allocations:
            continue
        namespace = request.metadata.namespace or "default"
        row = session.cluster.tasks.index_of(f"{namespace}/{request.spec.pod_name}")
        if row is None or session.tasks.status[row] != Status.BINDING:
            continue
        pod = session.cluster.tasks.pods[row]
        names = _claim_names(pod)
        for one in request.spec.resource_claim_allocations:
            key = f"{namespace}/{names[one.name][1]}" if one.name in names else ""
            claim = decided.get(key) or claims.get(key)
            if claim is not None and (claim.status.allocation is None or key in decided):
                decided[key] = _allocated(claim, one.allocation, pod)
    return decided


def _claim_names(pod: Pod) -> dict[str, tuple[bool, str]]:
    """By the name inside the pod: whether the claim is created for it alone, and the claim's own name."""
    made = {one.name: one.resource_claim_name or "" for one in pod.status.resource_claim_statuses}
    return {
        one.name: (one.resource_claim_name is None, one.resource_claim_name or made.get(one.name, ""))
        for one in pod.spec.resource_claims
    }


def _allocated(
    claim: dra.ResourceClaim, allocation: dra.AllocationResult | None, pod: Pod
) -> dra.ResourceClaim:
    consumer = consumer_of(pod, claim.key)
    others = tuple(one for one in claim.status.reserved_for if one.uid != consumer.uid)
    status = dra.ResourceClaimStatus(allocation=allocation, reserved_for=(*others, consumer))
    return msgspec.structs.replace(claim, status=status)


def _ids(results: Iterable[dra.DeviceResult]) -> DeviceIds:
    return {(one.driver, one.pool, one.device) for one in results if not one.admin_access}
