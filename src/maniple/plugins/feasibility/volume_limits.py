"""NodeVolumeLimits: a node attaches no more volumes of a driver than its CSINode says.

Counted are distinct volumes, however many pods share one: those of the pods on the node plus those of the new
pod that are not attached there yet. A claim without a volume counts as one of its class's driver; in-tree
cloud disks that migrated to a CSI driver count as that driver's.
"""

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import Amounts
from maniple.cluster.storage import UNLIMITED_VOLUMES
from maniple.framework.criteria import Cells, Dependence, Filter
from maniple.framework.points import Event
from maniple.framework.reasons import FITS, Code, Detail, Verdicts
from maniple.framework.session import Session
from maniple.objects.core import CSINode, PersistentVolumeClaim, VolumeSource
from maniple.objects.printable import printable
from maniple.plugins.feasibility.placed import classes_in_use, present_rows

EXCEEDED = "node(s) exceed max volume count"

# in-tree provisioner -> the driver that it became
_MOVED = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}

Attached = tuple[str, str]  # driver, identity of the volume


class Attachments:
    """Which volumes are attached to which nodes, for drivers with limits; follows placements once built."""

    def __init__(self, session: Session, volumes_of: Callable[[TaskClass], frozenset[Attached]]) -> None:
        self._volumes_of = volumes_of
        self._size = len(session.nodes)
        self._users: dict[Attached, dict[int, int]] = {}  # volume -> node -> pods that use it there
        self._counts: dict[str, Amounts] = {}  # driver -> different volumes per node
        with_volumes = {c.number: c for c in classes_in_use(session) if c.spec.pod.spec.volumes}
        rows = present_rows(session)
        rows = rows[np.isin(session.tasks.class_of[rows], list(with_volumes))]
        for number, node in zip(
            session.tasks.class_of[rows].tolist(), session.tasks.node[rows].tolist(), strict=True
        ):
            self._use(with_volumes[number], node, +1)

    def follow(self, event: Event, sign: int) -> None:
        for node in event.nodes.tolist():
            if node >= 0:
                self._use(event.class_, node, sign)

    def nodes_of(self, volume: Attached) -> list[int]:
        return list(self._users.get(volume, ()))

    def counts(self, driver: str) -> Amounts:
        found = self._counts.get(driver)
        if found is None:
            found = self._counts[driver] = np.zeros(self._size, dtype=np.int64)
        return found

    def _use(self, class_: TaskClass, node: int, sign: int) -> None:
        for volume in self._volumes_of(class_):
            users = self._users.setdefault(volume, {})
            before = users.get(node, 0)
            users[node] = before + sign
            if not users[node]:
                del users[node]
            self.counts(volume[0])[node] += bool(before + sign) - bool(before)


class VolumeLimits:
    """The filter, for one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._storage = session.cluster.storage
        self._exceeded = session.reasons.number(EXCEEDED)
        self._volumes: dict[int, frozenset[Attached]] = {}
        self._attachments: Attachments | None = None

    def filter(self) -> Filter:
        return Filter("NodeVolumeLimits", Dependence.NODE, self._check, self._applies, detail=self._detail)

    def follow(self, event: Event, sign: int) -> None:
        if self._attachments is not None and event.class_.spec.pod.spec.volumes:
            self._attachments.follow(event, sign)

    def _applies(self, class_: TaskClass) -> bool:
        if not class_.spec.pod.spec.volumes:
            return False
        return bool(self._attaches(class_)) or self._missing(class_) is not None

    @cached_property
    def _limits(self) -> dict[str, Amounts]:
        """Per driver, how many volumes each node can attach."""
        limits: dict[str, Amounts] = {}
        index = self._session.nodes.facts.index
        for name, node in self._session.cluster.all(CSINode).items():
            for driver, limit in self._storage.limits(node).items():
                if name in index and limit != UNLIMITED_VOLUMES:
                    if driver not in limits:
                        limits[driver] = np.full(len(index), UNLIMITED_VOLUMES, dtype=np.int64)
                    limits[driver][index[name]] = limit
        return limits

    def _missing(self, class_: TaskClass) -> str | None:
        """The key of a claim that does not exist."""
        claims = self._storage.claims_of(class_.spec.pod)
        return next((key for _, key, claim in claims if claim is None), None)

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        missing = self._missing(class_)
        if missing is not None:
            named = printable(missing)
            text = f'looking up PVC {named}: persistentvolumeclaim "{named.partition("/")[2]}" not found'
            number = self._session.reasons.number(text, Code.UNRESOLVABLE)
            return np.full(len(self._session.nodes), number, dtype=np.int16)[cells.rows]
        # After a first task of this class all its volumes are attached already.
        refused = self._exceeds(class_)[cells.rows] & (np.asarray(cells.extra) == 0)
        return np.where(refused, self._exceeded, FITS).astype(np.int16)

    def _detail(self, class_: TaskClass, node: int) -> Detail:
        """The driver that has no place left for a volume on a node."""
        missing = self._missing(class_)
        if missing is not None:
            name = printable(missing)
            return Detail("VolumeClaimMissing", f"PersistentVolumeClaim {name} does not exist", name)
        for driver in sorted({volume[0] for volume in self._attaches(class_)}):
            limit = int(self._limits[driver][node])
            if self._attachments is not None and self._attachments.counts(driver)[node] + 1 > limit:
                name = printable(driver)
                return Detail(
                    "VolumeLimit", f"driver {name} attaches at most {limit} volumes to the node", name
                )
        return Detail("VolumeLimit", "too many volumes are attached to the node")

    def _exceeds(self, class_: TaskClass) -> NDArray[np.bool_]:
        if self._attachments is None:
            self._attachments = Attachments(self._session, self._attaches)
        exceeds = np.zeros(len(self._session.nodes), dtype=np.bool_)
        by_driver: dict[str, list[Attached]] = {}
        for volume in self._attaches(class_):
            by_driver.setdefault(volume[0], []).append(volume)
        for driver, wanted in by_driver.items():
            new = np.full(len(exceeds), len(wanted), dtype=np.int64)
            for volume in wanted:
                new[self._attachments.nodes_of(volume)] -= 1
            exceeds |= (new > 0) & (self._attachments.counts(driver) + new > self._limits[driver])
        return exceeds

    # -- volumes of a class ---------------------------------------------------------------------------------------

    def _attaches(self, class_: TaskClass) -> frozenset[Attached]:
        """The volumes of a class, of drivers that have a limit somewhere."""
        known = self._volumes.get(class_.number)
        if known is None:
            limited = (volume for volume in self._attached_by(class_) if volume[0] in self._limits)
            known = self._volumes[class_.number] = frozenset(limited)
        return known

    def _attached_by(self, class_: TaskClass) -> Iterator[Attached]:
        pod = class_.spec.pod
        for volume in pod.spec.volumes:
            moved = _cloud_disk(volume)
            if moved is not None:
                yield moved
        for _, key, claim in self._storage.claims_of(pod):
            found = self._of_claim(key, claim) if claim is not None else None
            if found is not None:
                yield found

    def _of_claim(self, key: str, claim: PersistentVolumeClaim) -> Attached | None:
        volume = self._storage.volumes.get(claim.spec.volume_name)
        if volume is None:
            storage_class = self._storage.classes.get(self._storage.class_name(claim))
            if storage_class is None or not storage_class.provisioner:
                return None
            return _MOVED.get(storage_class.provisioner, storage_class.provisioner), f"claim {key}"
        csi = volume.spec.csi
        if csi is not None:
            return (csi.driver, csi.volume_handle) if csi.volume_handle else None
        return _cloud_disk(volume.spec)


def _cloud_disk(source: VolumeSource) -> Attached | None:
    """A disk of a cloud provider whose in-tree volume plugin migrated to a CSI driver."""
    if source.aws_elastic_block_store is not None:
        return _MOVED["kubernetes.io/aws-ebs"], source.aws_elastic_block_store.volume_id
    if source.gce_persistent_disk is not None:
        return _MOVED["kubernetes.io/gce-pd"], source.gce_persistent_disk.pd_name
    if source.azure_disk is not None:
        return _MOVED["kubernetes.io/azure-disk"], source.azure_disk.disk_name
    return None
