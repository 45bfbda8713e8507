"""VolumeBinding: a node can reach the volumes of a pod's bound claims, and unbound claims can be satisfied
there.

A claim that waits for its first consumer gets an existing volume (`volume_offers.py`), else a new one: its
class has a provisioner, the class's allowed topologies include the node, and, if the driver reports capacity,
a CSIStorageCapacity that the node can reach has enough. A claim with a selected node can only be provisioned
there. What a placement takes is promised until it is undone, and later tasks that share a claim follow it.
Claims with a missing volume keep the pod from being considered.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.nodes import NodeFacts
from maniple.cluster.statuses import WAITING
from maniple.framework.criteria import Cells, Dependence, Filter
from maniple.framework.points import Event, PodVolumes
from maniple.framework.reasons import FITS, Code, Detail, Reason, Verdicts
from maniple.framework.session import Session
from maniple.objects.core import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
)
from maniple.objects.printable import printable
from maniple.objects.quantity import units
from maniple.plugins.feasibility.node_affinity import Mask, has_value, label_selector_mask, written
from maniple.plugins.feasibility.volume_claims import (
    SELECTED_NODE,
    VolumeClaims,
    refused,
    sorted_claims,
    uses_claims,
)
from maniple.plugins.feasibility.volume_offers import VolumeOffers, size_of

OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_ROOM = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

_NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")


@dataclass(frozen=True, slots=True)
class Promises:
    """What one placed task relies on."""

    volumes: dict[str, str]  # existing volumes, by claim
    chosen_for: tuple[str, ...]  # claims to be provisioned on the task's node


class VolumeBinding:
    """The filter and its promises, for one session; `checks_capacity`: whether reported storage capacity counts."""

    def __init__(self, session: Session, *, checks_capacity: bool = True) -> None:
        self._session = session
        self._minds_room = checks_capacity
        self._storage = session.cluster.storage
        self._facts: NodeFacts = session.nodes.facts
        self._classes: dict[int, VolumeClaims] = {}
        self._made: dict[str, Verdicts] = {}
        self._offers_made: VolumeOffers | None = None
        # Claim -> node where it will be provisioned, tasks that rely on it
        self._node_of: dict[str, tuple[int, int]] = {}
        self._promises: dict[int, Promises] = {}
        number = session.reasons.number
        self._out_of_reach = number(OUT_OF_REACH, Code.UNRESOLVABLE)
        self._nothing = number(NOTHING_TO_BIND, Code.UNRESOLVABLE)
        self._no_room = number(NO_ROOM, Code.UNRESOLVABLE)
        self._gone = number(GONE, Code.UNRESOLVABLE)

    def filters(self) -> list[Filter]:
        """Bound claims depend on labels; the others on what has been promised so far."""
        return [
            Filter(
                "VolumeBinding",
                Dependence.STATIC,
                self._check_bound,
                self._has_bound,
                detail=self._bound_detail,
            ),
            Filter(
                "VolumeBinding of waiting claims",
                Dependence.CLUSTER,
                self._check_delayed,
                self.has_delayed,
                detail=self._delayed_detail,
            ),
        ]

    def problem(self, class_: TaskClass) -> str:
        """Why a pod is not considered at all; empty if it is."""
        return self._claims(class_).refusal if uses_claims(class_) else ""

    def refusal(self, class_: TaskClass) -> Reason | None:
        message = self.problem(class_)
        return refused("VolumeBinding", message, self._storage, class_.spec.pod) if message else None

    def _claims(self, class_: TaskClass) -> VolumeClaims:
        found = self._classes.get(class_.number)
        if found is None:
            found = self._classes[class_.number] = sorted_claims(self._storage, class_.spec.pod)
        return found

    def _has_bound(self, class_: TaskClass) -> bool:
        return uses_claims(class_) and bool(self._claims(class_).bound)

    def has_delayed(self, class_: TaskClass) -> bool:
        return uses_claims(class_) and bool(self._claims(class_).delayed)

    @property
    def _offers(self) -> VolumeOffers:
        if self._offers_made is None:
            self._offers_made = VolumeOffers(self._session)
        return self._offers_made

    # -- the filters ----------------------------------------------------------------------------------------------

    def _check_bound(self, class_: TaskClass, cells: Cells) -> Verdicts:
        verdict = np.zeros(len(self._facts), dtype=np.int16)
        for claim in self._claims(class_).bound:
            volume = self._storage.volumes.get(claim.spec.volume_name)
            if volume is None:
                verdict[verdict == FITS] = self._gone
            else:
                verdict[(verdict == FITS) & ~self._offers.reachable(volume)] = self._out_of_reach
        return verdict[cells.rows]

    def _bound_detail(self, class_: TaskClass, node: int) -> Detail:
        for claim in self._claims(class_).bound:
            name, volume = (
                printable(claim.spec.volume_name),
                self._storage.volumes.get(claim.spec.volume_name),
            )
            if volume is None:
                return Detail(
                    "VolumeMissing", f"PersistentVolume {name} of {printable(claim.key)} does not exist", name
                )
            if not self._offers.reachable(volume)[node]:
                where = _needed(volume)
                hint = f" (it needs {where})" if where else ""
                return Detail("VolumeZone", f"volume {name} cannot be reached from there{hint}", name)
        return Detail("VolumeZone", "a volume of the pod cannot be reached from there")

    def _delayed_detail(self, class_: TaskClass, node: int) -> Detail:
        for claim in self._claims(class_).delayed:
            if not self._offers.available(claim)[node] and self._making(claim)[node] != FITS:
                name, class_name = printable(claim.key), self._storage.class_name(claim)
                driver = printable(self._storage.classes[class_name].provisioner)
                room = int(self._making(claim)[node]) == self._no_room
                why = "has too little storage there" if room else "cannot provision one there"
                return Detail(
                    "VolumeUnavailable",
                    f"no volume for PersistentVolumeClaim {name}: driver {driver} of storage class "
                    f"{printable(class_name)} {why}",
                    name,
                )
        return Detail("VolumeUnavailable", "no volume for a claim of the pod can be had there")

    def _check_delayed(self, class_: TaskClass, cells: Cells) -> Verdicts:
        verdict = np.zeros(len(self._facts), dtype=np.int16)
        open_claims = []
        for claim in self._claims(class_).delayed:
            chosen = self._chosen_node(claim)
            if chosen is None:
                open_claims.append(claim)
                continue
            elsewhere = np.ones(len(self._facts), dtype=np.bool_)
            elsewhere[chosen : chosen + 1] = chosen < 0
            verdict[elsewhere] = self._nothing
        for claim in self._claims(class_).delayed:
            if claim not in open_claims:
                verdict = np.where(verdict == FITS, self._making(claim), verdict)
        return self._check_open(open_claims, verdict)[cells.rows]

    def _chosen_node(self, claim: PersistentVolumeClaim) -> int | None:
        """The selected node of a claim; -1 for one that does not exist, None if there is none."""
        if claim.key in self._node_of:
            return self._node_of[claim.key][0]
        name = claim.metadata.annotations.get(SELECTED_NODE)
        return None if name is None else self._facts.index.get(name, -1)

    def _check_open(self, claims: list[PersistentVolumeClaim], verdict: Verdicts) -> Verdicts:
        """Claims without a node: an existing volume, or one that can be provisioned."""
        claims = sorted(claims, key=lambda c: size_of(c.spec.resources.requests))
        if self._offers.compete(claims):
            for node in np.flatnonzero(verdict == FITS).tolist():
                verdict[node] = self._on_node(claims, node)
            return verdict
        for claim in claims:
            found = np.where(self._offers.available(claim), FITS, self._making(claim))
            verdict = np.where(verdict == FITS, found, verdict).astype(np.int16)
        return verdict

    def _on_node(self, claims: list[PersistentVolumeClaim], node: int) -> int:
        """Claims that could compete for volumes, on one node: each in its turn takes what is left."""
        taken: set[str] = set()
        for claim in claims:
            volume = self._offers.pick(claim, node, taken)
            if volume is not None:
                taken.add(volume.metadata.name)
            elif self._making(claim)[node] != FITS:
                return int(self._making(claim)[node])
        return FITS

    # -- making a volume ------------------------------------------------------------------------------------------

    def _making(self, claim: PersistentVolumeClaim) -> Verdicts:
        """Where a volume can be provisioned for a claim."""
        if claim.key not in self._made:
            self._made[claim.key] = self._make(claim)
        return self._made[claim.key]

    def _make(self, claim: PersistentVolumeClaim) -> Verdicts:
        storage_class = self._storage.classes[self._storage.class_name(claim)]
        if storage_class.provisioner in _NO_PROVISIONER:
            return np.full(len(self._facts), self._nothing, dtype=np.int16)
        verdict = np.where(self._room(storage_class, claim), FITS, self._no_room)
        verdict[~self._allowed(storage_class.allowed_topologies)] = self._nothing
        return verdict.astype(np.int16)

    def _allowed(self, terms: tuple[TopologySelectorTerm, ...]) -> Mask:
        if not terms:
            return np.ones(len(self._facts), dtype=np.bool_)
        allowed = np.zeros(len(self._facts), dtype=np.bool_)
        for term in terms:
            held = np.full(len(self._facts), bool(term.match_label_expressions))
            for expression in term.match_label_expressions:
                held &= has_value(self._facts, expression.key, expression.values)
            allowed |= held
        return allowed

    def _room(self, storage_class: StorageClass, claim: PersistentVolumeClaim) -> Mask:
        """Nodes that reach enough capacity, if the driver reports it."""
        driver = self._session.cluster.all(CSIDriver).get(storage_class.provisioner)
        asked = claim.spec.resources.requests.get("storage")
        if not self._minds_room or asked is None or driver is None or not driver.spec.storage_capacity:
            return np.ones(len(self._facts), dtype=np.bool_)
        room = np.zeros(len(self._facts), dtype=np.bool_)
        for capacity in self._session.cluster.all(CSIStorageCapacity).values():
            limit = (
                capacity.maximum_volume_size
                if capacity.maximum_volume_size is not None
                else capacity.capacity
            )
            right = capacity.storage_class_name == storage_class.metadata.name
            if (
                right
                and capacity.node_topology is not None
                and limit is not None
                and units(limit) >= units(asked)
            ):
                room |= label_selector_mask(self._facts, capacity.node_topology)
        return room

    # -- promises -------------------------------------------------------------------------------------------------

    def on_allocate(self, event: Event) -> None:
        if not self.has_delayed(event.class_):
            return
        before = self._session.cluster.tasks.status
        for task, node in zip(event.rows.tolist(), event.nodes.tolist(), strict=True):
            # A running task whose eviction was undone takes nothing new.
            if WAITING[before[task]]:
                self._promise(event.class_, task, node)

    def on_deallocate(self, event: Event) -> None:
        if not self.has_delayed(event.class_):
            return
        for task in event.rows.tolist():
            promises = self._promises.pop(task, None)
            if promises is not None:
                self._withdraw(promises)

    def _promise(self, class_: TaskClass, task: int, node: int) -> None:
        claims = sorted(self._claims(class_).delayed, key=lambda c: size_of(c.spec.resources.requests))
        volumes: dict[str, str] = {}
        chosen_for = []
        for claim in claims:
            taken = volumes.values()
            picked = self._offers.pick(claim, node, taken) if self._chosen_node(claim) is None else None
            if picked is not None:
                volumes[claim.key] = picked.metadata.name
                self._offers.promise(picked.metadata.name, claim.key)
            else:
                _, tasks = self._node_of.get(claim.key, (node, 0))
                self._node_of[claim.key] = (node, tasks + 1)
                chosen_for.append(claim.key)
        self._promises[task] = Promises(volumes, tuple(chosen_for))

    def _withdraw(self, promises: Promises) -> None:
        for volume in reversed(promises.volumes.values()):
            self._offers.withdraw(volume)
        for claim in promises.chosen_for:
            node, tasks = self._node_of.pop(claim)
            if tasks > 1:
                self._node_of[claim] = (node, tasks - 1)

    # -- writes before binding ------------------------------------------------------------------------------------

    def to_bind(self, rows: Iterable[int], seconds: float) -> dict[str, PodVolumes]:
        """The volumes to bind or provision before these tasks are bound, by task, and the time limit."""
        return {
            self._session.task_key(task): PodVolumes(promises.volumes, promises.chosen_for, seconds)
            for task in rows
            if (promises := self._promises.get(task)) is not None
        }


def _needed(volume: PersistentVolume) -> str:
    """The labels that nodes need to reach a volume."""
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    terms = required.node_selector_terms if required is not None else ()
    return " or ".join(" and ".join(written(one) for one in term.match_expressions) for term in terms)
