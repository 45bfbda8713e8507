"""Volumes, claims, classes and drivers, as far as they decide where a pod can run.

Import these names from `core`.
"""

from typing import ClassVar

import msgspec

from maniple.objects.affinity import NodeSelector
from maniple.objects.meta import Count, Int32, LabelSelector, Object, Quantity, Record, ResourceList

# Names the class of a claim or a volume; older than the field for it.
LEGACY_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"


class StorageRequirements(Record, frozen=True, kw_only=True):
    requests: ResourceList = msgspec.field(default_factory=dict)


class PersistentVolumeClaimSpec(Record, frozen=True, kw_only=True):
    volume_name: str = ""
    # None: the default class of the cluster; "": explicitly no class.
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    resources: StorageRequirements = StorageRequirements()
    selector: LabelSelector | None = None
    volume_mode: str = "Filesystem"


class PersistentVolumeClaimStatus(Record, frozen=True, kw_only=True):
    phase: str = "Pending"


class PersistentVolumeClaim(Object, frozen=True, kw_only=True):
    kind: ClassVar[str] = "PersistentVolumeClaim"

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class ClaimTemplateMeta(Record, frozen=True, kw_only=True):
    """A template has no name: its claim is called `<pod>-<volume>`."""

    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class PersistentVolumeClaimTemplate(Record, frozen=True, kw_only=True):
    metadata: ClaimTemplateMeta = ClaimTemplateMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class PersistentVolumeClaimVolumeSource(Record, frozen=True, kw_only=True):
    claim_name: str
    read_only: bool = False


class EphemeralVolumeSource(Record, frozen=True, kw_only=True):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class CSIVolumeSource(Record, frozen=True, kw_only=True):
    """A volume of a CSI driver: inline in a pod (no handle) or behind a PersistentVolume."""

    driver: str
    volume_handle: str = ""
    read_only: bool = False


class GCEPersistentDisk(Record, frozen=True, kw_only=True):
    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStore(Record, frozen=True, kw_only=True):
    volume_id: str = msgspec.field(name="volumeID", default="")
    read_only: bool = False


class AzureDisk(Record, frozen=True, kw_only=True):
    disk_name: str = ""
    read_only: bool = False


class RBD(Record, frozen=True, kw_only=True):
    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class ISCSI(Record, frozen=True, kw_only=True):
    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    read_only: bool = False


class VolumeSource(Record, frozen=True, kw_only=True):
    """The sources that a pod's volume and a PersistentVolume have in common; at most one is set."""

    csi: CSIVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    rbd: RBD | None = None
    iscsi: ISCSI | None = None


class ObjectReference(Record, frozen=True, kw_only=True):
    """Another object in the pod's namespace; unless it is optional, the pod cannot start without it."""

    name: str = ""
    optional: bool | None = None


class ProjectedSource(Record, frozen=True, kw_only=True):
    config_map: ObjectReference | None = None


class ProjectedVolumeSource(Record, frozen=True, kw_only=True):
    sources: tuple[ProjectedSource, ...] = ()


class Volume(VolumeSource, frozen=True, kw_only=True):
    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    config_map: ObjectReference | None = None
    projected: ProjectedVolumeSource | None = None

    @property
    def ties(self) -> bool:
        """Whether the volume can restrict where a pod runs.

        Volumes that the node itself provides (secrets, config maps, empty directories) do not.
        """
        return (
            self.persistent_volume_claim is not None
            or self.ephemeral is not None
            or self.csi is not None
            or self.gce_persistent_disk is not None
            or self.aws_elastic_block_store is not None
            or self.azure_disk is not None
            or self.rbd is not None
            or self.iscsi is not None
        )


class ClaimReference(Record, frozen=True, kw_only=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(Record, frozen=True, kw_only=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(VolumeSource, frozen=True, kw_only=True):
    capacity: ResourceList = msgspec.field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"


class PersistentVolumeStatus(Record, frozen=True, kw_only=True):
    phase: str = ""


class PersistentVolume(Object, frozen=True, kw_only=True):
    kind: ClassVar[str] = "PersistentVolume"
    namespaced: ClassVar[bool] = False

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologyLabelRequirement(Record, frozen=True, kw_only=True):
    key: str
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Record, frozen=True, kw_only=True):
    match_label_expressions: tuple[TopologyLabelRequirement, ...] = ()


class StorageClass(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "storage.k8s.io"
    kind: ClassVar[str] = "StorageClass"
    namespaced: ClassVar[bool] = False

    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class DriverAllocatable(Record, frozen=True, kw_only=True):
    # None: the driver states no limit; 0: it can attach nothing.
    count: Count | None = None


class CSINodeDriver(Record, frozen=True, kw_only=True):
    name: str
    topology_keys: tuple[str, ...] = ()
    allocatable: DriverAllocatable | None = None


class CSINodeSpec(Record, frozen=True, kw_only=True):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "storage.k8s.io"
    kind: ClassVar[str] = "CSINode"
    namespaced: ClassVar[bool] = False

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Record, frozen=True, kw_only=True):
    attach_required: bool = True
    storage_capacity: bool = False


class CSIDriver(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "storage.k8s.io"
    kind: ClassVar[str] = "CSIDriver"
    namespaced: ClassVar[bool] = False

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "storage.k8s.io"
    kind: ClassVar[str] = "CSIStorageCapacity"

    storage_class_name: str = ""
    # None matches no node, an empty selector every node.
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
