"""VolumeZone: a bound volume's zone and region labels agree with the node's.

Every zone or region label of a claim's volume must be on the node with one of the volume's values (several
are written `a__b`); the older failure-domain labels of a volume also match the node's newer ones. Nodes
without any such label are in no zone and fit. Volumes that are still to be chosen or provisioned are left to
VolumeBinding.
"""

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.nodes import MISSING, NodeFacts
from maniple.framework.criteria import Cells, Dependence, Filter
from maniple.framework.reasons import FITS, Code, Detail, Reason, Verdicts
from maniple.framework.session import Session
from maniple.objects.core import PersistentVolume, PersistentVolumeClaim
from maniple.objects.printable import printable
from maniple.plugins.feasibility.node_affinity import Mask, has_value
from maniple.plugins.feasibility.volume_claims import refused, waits_for_node

ELSEWHERE = "node(s) had no available volume zone"

_NEWER = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
ZONE_LABELS = (*_NEWER, *_NEWER.values())


Zones = list[tuple[str, set[str]]]  # label, values


class VolumeZone:
    """The filter, for one session."""

    def __init__(self, session: Session) -> None:
        self._storage = session.cluster.storage
        self._facts: NodeFacts = session.nodes.facts
        self._elsewhere = session.reasons.number(ELSEWHERE, Code.UNRESOLVABLE)

    def filter(self) -> Filter:
        return Filter("VolumeZone", Dependence.STATIC, self._check, _names_claims, detail=self._detail)

    def refusal(self, class_: TaskClass) -> Reason | None:
        """Why a pod is not considered at all."""
        message = self._zones(class_)[1] if _names_claims(class_) else ""
        return refused("VolumeZone", message, self._storage, class_.spec.pod) if message else None

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        zones, message = self._zones(class_)
        fits = np.ones(len(self._facts), dtype=np.bool_)
        if not message:  # otherwise `refusal` reports it; nodes are not the cause
            for key, values in zones:
                fits &= self._agrees(key, values)
            fits |= ~self._zoned()
        return np.where(fits, FITS, self._elsewhere).astype(np.int16)[cells.rows]

    def _detail(self, class_: TaskClass, node: int) -> Detail:
        """The volume that is in another zone."""
        for _, _, claim in self._storage.claims_of(class_.spec.pod):
            volume = self._storage.volumes.get(claim.spec.volume_name) if claim is not None else None
            for key, values in _zone_labels(volume) if volume is not None else ():
                if not self._agrees(key, values)[node]:
                    assert volume is not None
                    name, where = printable(volume.metadata.name), " or ".join(sorted(values))
                    return Detail("VolumeZone", f"volume {name} is in {key}={where}", name)
        return Detail("VolumeZone", "a volume of the pod is in another zone")

    def _agrees(self, key: str, values: set[str]) -> Mask:
        agrees = has_value(self._facts, key, values)
        if key in _NEWER:
            lacking = self._facts.label(key).codes == MISSING
            agrees |= lacking & has_value(self._facts, _NEWER[key], values)
        return agrees

    def _zoned(self) -> Mask:
        zoned = np.zeros(len(self._facts), dtype=np.bool_)
        for key in ZONE_LABELS:
            zoned |= self._facts.label(key).codes != MISSING
        return zoned

    def _zones(self, class_: TaskClass) -> tuple[Zones, str]:
        """The zone labels of all bound volumes, or why the volume of a claim cannot be found."""
        zones: Zones = []
        for pod_volume, key, claim in self._storage.claims_of(class_.spec.pod):
            if pod_volume.persistent_volume_claim is None:
                continue
            if claim is None:
                return [], f'persistentvolumeclaim "{printable(key.partition("/")[2])}" not found'
            if not claim.spec.volume_name:
                message = self._unbound(claim)
                if message:
                    return [], message
                continue
            volume = self._storage.volumes.get(claim.spec.volume_name)
            if volume is None:
                return [], f'persistentvolume "{printable(claim.spec.volume_name)}" not found'
            zones += _zone_labels(volume)
        return zones, ""

    def _unbound(self, claim: PersistentVolumeClaim) -> str:
        class_name = self._storage.class_name(claim)
        if not class_name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        if class_name not in self._storage.classes:
            return f'storageclass.storage.k8s.io "{printable(class_name)}" not found'
        return "" if waits_for_node(self._storage, claim) else "PersistentVolume had no name"


def _names_claims(class_: TaskClass) -> bool:
    return any(volume.persistent_volume_claim for volume in class_.spec.pod.spec.volumes)


def _zone_labels(volume: PersistentVolume) -> Zones:
    found = []
    for key in ZONE_LABELS:
        if key in volume.metadata.labels:
            values = {value.strip() for value in volume.metadata.labels[key].split("__")}
            if "" not in values:  # an invalid one is ignored
                found.append((key, values))
    return found
