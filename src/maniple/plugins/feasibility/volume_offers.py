"""The volumes available to claims, and what this session has promised.

`VolumeBinding` looks up here which volume a claim would get on a node: the one that is already bound to it,
else the smallest that is free, large enough, of the claim's class and modes, matched by its selector and
reachable from the node; of equally small ones the first by name. A promise is counted per task that relies on
it, so that undoing one in any order leaves the others' intact.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction

import msgspec
import numpy as np

from maniple.cluster.nodes import NodeFacts
from maniple.cluster.resources import Amounts
from maniple.cluster.storage import Storage
from maniple.framework.criteria import NodeRows
from maniple.framework.session import Session
from maniple.objects.core import PersistentVolume, PersistentVolumeClaim
from maniple.objects.meta import ResourceList
from maniple.objects.quantity import parse
from maniple.objects.selectors import matches
from maniple.objects.storage import LEGACY_STORAGE_CLASS
from maniple.plugins.feasibility.node_affinity import Mask, requirements_mask

_encoder = msgspec.msgpack.Encoder(order="deterministic")


@dataclass(slots=True)
class Pool:
    """Volumes that match equal claims, smallest first."""

    volumes: list[PersistentVolume]
    names: frozenset[str]
    free: Amounts  # how many of them each node can have now
    # volumes with the same node affinity, by index; and the sets of these that each node can reach
    groups: list[list[int]]
    groups_at: dict[int, list[int]]


class VolumeOffers:
    """For one session."""

    def __init__(self, session: Session) -> None:
        self._storage: Storage = session.cluster.storage
        self._facts: NodeFacts = session.nodes.facts
        self._pools: dict[bytes, Pool] = {}
        self._promised: dict[str, tuple[str, int]] = {}  # volume -> claim, tasks that rely on it
        self._promised_to: dict[str, str] = {}  # claim -> volume
        self._by_class: dict[str, list[PersistentVolume]] = {}
        self._bound_to: dict[str, list[PersistentVolume]] = {}  # claim -> volumes that name it
        for volume in sorted(
            self._storage.volumes.values(), key=lambda v: (size_of(v.spec.capacity), v.metadata.name)
        ):
            reference = volume.spec.claim_ref
            if reference is None:
                self._by_class.setdefault(_class_of(volume), []).append(volume)
            else:
                self._bound_to.setdefault(f"{reference.namespace}/{reference.name}", []).append(volume)

    # -- which nodes ----------------------------------------------------------------------------------------------

    def reachable(self, volume: PersistentVolume) -> Mask:
        """Nodes that a volume's node affinity allows."""
        mask = np.zeros(len(self._facts), dtype=np.bool_)
        mask[self.rows(volume)] = True
        return mask

    def rows(self, volume: PersistentVolume) -> NodeRows:
        """The same as rows; node fields are ignored, as everywhere for volumes."""
        memory = ("reachable", _affinity_key(volume))
        if memory not in self._facts.memory:
            affinity = volume.spec.node_affinity
            required = affinity.required if affinity is not None else None
            mask = np.full(len(self._facts), required is None)
            for term in required.node_selector_terms if required is not None else ():
                if term.match_expressions or term.match_fields:
                    mask |= requirements_mask(self._facts, term.match_expressions)
            self._facts.memory[memory] = np.flatnonzero(mask)
        return self._facts.memory[memory]  # type: ignore[return-value]  # what this function put there

    def available(self, claim: PersistentVolumeClaim) -> Mask:
        """Nodes on which the claim, by itself, would get a volume."""
        bound = self._bound(claim)
        if bound is not None:
            return self.reachable(bound)
        available: Mask = self._pool(claim).free > 0
        return available

    # -- which volume ---------------------------------------------------------------------------------------------

    def pick(
        self, claim: PersistentVolumeClaim, node: int, taken: Collection[str]
    ) -> PersistentVolume | None:
        """The volume that the claim would get on a node after others of its pod have taken some."""
        bound = self._bound(claim)
        if bound is not None:
            return bound if self.reachable(bound)[node] and bound.metadata.name not in taken else None
        pool = self._pool(claim)
        if not pool.free[node]:
            return None
        firsts = (self._first_free(pool, group, taken) for group in pool.groups_at[node])
        first = min((place for place in firsts if place is not None), default=None)
        return None if first is None else pool.volumes[first]

    def _first_free(self, pool: Pool, group: int, taken: Collection[str]) -> int | None:
        for place in pool.groups[group]:
            name = pool.volumes[place].metadata.name
            if name not in taken and name not in self._promised:
                return place
        return None

    def compete(self, claims: Iterable[PersistentVolumeClaim]) -> bool:
        """Whether two of the claims could get the same volume."""
        seen: set[str] = set()
        for claim in claims:
            names = self._pool(claim).names if self._bound(claim) is None else frozenset[str]()
            if not seen.isdisjoint(names):
                return True
            seen |= names
        return False

    def _bound(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """The volume bound to the claim, in the cluster or by a promise of this session."""
        promised = self._promised_to.get(claim.key)
        if promised is not None:
            return self._storage.volumes[promised]
        for volume in self._bound_to.get(claim.key, ()):
            reference = volume.spec.claim_ref
            same = reference is not None and reference.uid in ("", claim.metadata.uid)
            if same and _large_enough(volume, claim) and _class_of(volume) == self._storage.class_name(claim):
                return volume
        return None

    def _pool(self, claim: PersistentVolumeClaim) -> Pool:
        spec = claim.spec
        wanted = (
            self._storage.class_name(claim),
            str(size_of(spec.resources.requests)),
            spec.access_modes,
            spec.volume_mode,
            spec.selector,
        )
        key = _encoder.encode(wanted)
        pool = self._pools.get(key)
        if pool is None:
            pool = self._pools[key] = self._make_pool(claim)
        return pool

    def _make_pool(self, claim: PersistentVolumeClaim) -> Pool:
        offered = self._by_class.get(self._storage.class_name(claim), ())
        volumes = [volume for volume in offered if _suits(volume, claim)]
        names = frozenset(volume.metadata.name for volume in volumes)
        pool = Pool(volumes, names, np.zeros(len(self._facts), dtype=np.int64), [], {})
        group_of: dict[bytes, int] = {}
        for place, volume in enumerate(volumes):
            rows = self.rows(volume)
            if volume.metadata.name not in self._promised:
                pool.free[rows] += 1
            group = group_of.setdefault(_affinity_key(volume), len(pool.groups))
            if group == len(pool.groups):
                pool.groups.append([])
                for row in rows.tolist():
                    pool.groups_at.setdefault(row, []).append(group)
            pool.groups[group].append(place)
        return pool

    # -- promises -------------------------------------------------------------------------------------------------

    def promise(self, volume: str, claim: str) -> None:
        """One more task relies on the claim getting the volume."""
        _, tasks = self._promised.get(volume, (claim, 0))
        self._promised[volume] = (claim, tasks + 1)
        if not tasks:
            self._promised_to[claim] = volume
            self._count(volume, -1)

    def withdraw(self, volume: str) -> None:
        """One task less."""
        claim, tasks = self._promised[volume]
        if tasks > 1:
            self._promised[volume] = (claim, tasks - 1)
            return
        del self._promised[volume]
        del self._promised_to[claim]
        self._count(volume, +1)

    def _count(self, volume: str, sign: int) -> None:
        for pool in self._pools.values():
            if volume in pool.names:
                pool.free[self.rows(self._storage.volumes[volume])] += sign


def size_of(amounts: ResourceList) -> int | Fraction:
    return parse(amounts.get("storage", 0))


def _affinity_key(volume: PersistentVolume) -> bytes:
    return _encoder.encode(volume.spec.node_affinity)


def _class_of(volume: PersistentVolume) -> str:
    return volume.metadata.annotations.get(LEGACY_STORAGE_CLASS, volume.spec.storage_class_name)


def _large_enough(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Also of the same mode, and not being deleted."""
    return (
        size_of(volume.spec.capacity) >= size_of(claim.spec.resources.requests)
        and volume.spec.volume_mode == claim.spec.volume_mode
        and volume.metadata.deletion_timestamp is None
    )


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether an unclaimed volume matches, wherever it is."""
    selector = claim.spec.selector
    return (
        _large_enough(volume, claim)
        and volume.status.phase == "Available"
        and (selector is None or matches(selector, volume.metadata.labels))
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )
