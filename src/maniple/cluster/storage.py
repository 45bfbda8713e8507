"""Volumes: which claim a pod's volume means, and which driver attaches it.

Claims, volumes and classes are kept by key. The number of volumes that a pod attaches per driver is a resource like any
other, so that limits per node need no code of their own.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from maniple.objects.core import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    Volume,
)
from maniple.objects.meta import Object
from maniple.objects.storage import LEGACY_STORAGE_CLASS

Kept = TypeVar("Kept")

UNLIMITED_VOLUMES = 2**31 - 1


class Storage:
    """Claims, volumes and classes, and the drivers behind them."""

    def __init__(self, ignored_provisioners: frozenset[str]) -> None:
        self.claims: dict[str, PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.version = 0
        self._ignored = ignored_provisioners

    def note(self, item: Object, *, gone: bool) -> bool:
        """Take in a change; False when the object is none of storage's kinds."""
        if isinstance(item, PersistentVolumeClaim):
            _keep(self.claims, item.key, item, gone)
        elif isinstance(item, PersistentVolume):
            _keep(self.volumes, item.metadata.name, item, gone)
        elif isinstance(item, StorageClass):
            _keep(self.classes, item.metadata.name, item, gone)
        else:
            return False
        self.version += 1
        return True

    def claims_of(self, pod: Pod) -> Iterator[tuple[Volume, str, PersistentVolumeClaim | None]]:
        """The volumes of a pod that go through a claim: the volume, the claim's key, and the claim if it exists."""
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                name = volume.persistent_volume_claim.claim_name
            elif volume.ephemeral is not None:
                name = f"{pod.metadata.name}-{volume.name}"
            else:
                continue
            key = f"{pod.metadata.namespace or 'default'}/{name}"
            yield volume, key, self.claims.get(key)

    def drivers_of(self, pod: Pod) -> Mapping[str, int]:
        """How many volumes of each counted driver a pod attaches. Unknown and ignored drivers do not count."""
        counted: dict[str, int] = {}
        for _, _, claim in self.claims_of(pod):
            driver = self.driver(claim) if claim is not None else ""
            if driver and driver not in self._ignored:
                counted[driver] = counted.get(driver, 0) + 1
        return counted

    def driver(self, claim: PersistentVolumeClaim) -> str:
        """The driver that serves a claim, by its volume or else by its class; empty when there is none to count."""
        if claim.spec.volume_name:
            volume = self.volumes.get(claim.spec.volume_name)
            return volume.spec.csi.driver if volume is not None and volume.spec.csi is not None else ""
        storage_class = self.classes.get(self.class_name(claim))
        return storage_class.provisioner if storage_class is not None else ""

    @staticmethod
    def class_name(claim: PersistentVolumeClaim) -> str:
        return claim.metadata.annotations.get(LEGACY_STORAGE_CLASS) or claim.spec.storage_class_name or ""

    @staticmethod
    def limits(node: CSINode) -> Mapping[str, int]:
        """How many volumes of each driver a node can attach."""
        return {
            driver.name: UNLIMITED_VOLUMES
            if driver.allocatable is None or driver.allocatable.count is None
            else driver.allocatable.count
            for driver in node.spec.drivers
        }


def _keep(kept: dict[str, Kept], key: str, item: Kept, gone: bool) -> None:
    if gone:
        kept.pop(key, None)
    else:
        kept[key] = item
