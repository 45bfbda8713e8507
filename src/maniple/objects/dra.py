"""Dynamic resource allocation: claims, the slices of devices that drivers publish, device classes.

One set of structs reads resource.k8s.io v1, v1beta2 and v1beta1. In v1beta1 the fields of a request and of a
device are one level higher or lower; `DeviceRequest.exact` and `Device.body` hide the difference.
"""

from typing import Any, ClassVar, Self

import msgspec

from maniple.objects.affinity import NodeSelector, Taint, Toleration
from maniple.objects.meta import Int64, Object, Quantity, Record, ResourceList


class CelSelector(Record, frozen=True, kw_only=True):
    expression: str = ""


class DeviceSelector(Record, frozen=True, kw_only=True):
    cel: CelSelector | None = None


class CapacityRequirements(Record, frozen=True, kw_only=True):
    requests: ResourceList = msgspec.field(default_factory=dict)


class DeviceDemand(Record, frozen=True, kw_only=True):
    """What one request, or one alternative of it, needs of a device class."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: Int64 = 1
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(DeviceDemand, frozen=True, kw_only=True):
    name: str


class DeviceRequest(DeviceDemand, frozen=True, kw_only=True):
    name: str
    exactly: DeviceDemand | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()

    @property
    def exact(self) -> DeviceDemand | None:
        """The demand, wherever this version of the API puts it; None if the request lists alternatives
        instead."""
        if self.exactly is not None:
            return self.exactly
        return None if self.first_available else self


class DeviceConstraint(Record, frozen=True, kw_only=True):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceConfiguration(Record, frozen=True, kw_only=True):
    """Opaque parameters for a driver.

    `source` is set where an allocation repeats those of a class or a claim.
    """

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: dict[str, Any] | None = None


class DeviceClaim(Record, frozen=True, kw_only=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class ResourceClaimSpec(Record, frozen=True, kw_only=True):
    devices: DeviceClaim = DeviceClaim()


class DeviceResult(Record, frozen=True, kw_only=True):
    """One device that a claim holds; `share_id` tells the holders of one device apart."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str | None = msgspec.field(name="shareID", default=None)
    consumed_capacity: ResourceList = msgspec.field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


class DeviceResults(Record, frozen=True, kw_only=True):
    results: tuple[DeviceResult, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class AllocationResult(Record, frozen=True, kw_only=True):
    devices: DeviceResults = DeviceResults()
    node_selector: NodeSelector | None = None


class Consumer(Record, frozen=True, kw_only=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Record, frozen=True, kw_only=True):
    allocation: AllocationResult | None = None
    reserved_for: tuple[Consumer, ...] = ()


class ResourceClaim(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "resource.k8s.io"
    kind: ClassVar[str] = "ResourceClaim"

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Record, frozen=True, kw_only=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Object, frozen=True, kw_only=True):
    """The template of per-pod claims; the claims themselves are created by another controller."""

    api_group: ClassVar[str] = "resource.k8s.io"
    kind: ClassVar[str] = "ResourceClaimTemplate"

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceAttribute(Record, frozen=True, kw_only=True):
    """Exactly one is set."""

    int_value: Int64 | None = msgspec.field(name="int", default=None)
    bool_value: bool | None = msgspec.field(name="bool", default=None)
    string_value: str | None = msgspec.field(name="string", default=None)
    version_value: str | None = msgspec.field(name="version", default=None)


class CapacityRange(Record, frozen=True, kw_only=True):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityPolicy(Record, frozen=True, kw_only=True):
    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Record, frozen=True, kw_only=True):
    value: Quantity
    request_policy: CapacityPolicy | None = None


class Counter(Record, frozen=True, kw_only=True):
    value: Quantity


class CounterSet(Record, frozen=True, kw_only=True):
    name: str
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)


class CounterConsumption(Record, frozen=True, kw_only=True):
    counter_set: str = ""
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)


class DeviceBody(Record, frozen=True, kw_only=True):
    attributes: dict[str, DeviceAttribute] = msgspec.field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = msgspec.field(default_factory=dict)
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[Taint, ...] = ()
    allow_multiple_allocations: bool | None = None
    binding_conditions: tuple[str, ...] = ()


class Device(DeviceBody, frozen=True, kw_only=True):
    name: str
    basic: DeviceBody | None = None

    @property
    def body(self) -> DeviceBody | Self:
        """The device's properties, wherever this version of the API puts them."""
        return self if self.basic is None else self.basic


class ResourcePool(Record, frozen=True, kw_only=True):
    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 1


class ResourceSliceSpec(Record, frozen=True, kw_only=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "resource.k8s.io"
    kind: ClassVar[str] = "ResourceSlice"
    namespaced: ClassVar[bool] = False

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceClassSpec(Record, frozen=True, kw_only=True):
    selectors: tuple[DeviceSelector, ...] = ()
    extended_resource_name: str | None = None
    config: tuple[DeviceConfiguration, ...] = ()


class DeviceClass(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "resource.k8s.io"
    kind: ClassVar[str] = "DeviceClass"
    namespaced: ClassVar[bool] = False

    spec: DeviceClassSpec = DeviceClassSpec()
