"""What the API server or a webhook would reject in Volcano's and KAI's resources, in claims and in slices.

Called by `validate`. Rules across several objects (a missing parent, a cycle) belong to the builders.
"""

import math
from collections.abc import Sized

from maniple.objects import dra, kai, selectors, volcano
from maniple.objects.checks import (
    FieldError,
    check_amount,
    check_amounts,
    check_each,
    check_requests,
    check_within,
    fail,
    require_one_of,
)

# What the API server accepts of a resource claim.
_MOST_REQUESTS = 32
_MOST_ALTERNATIVES = 8
_MOST_CONSTRAINTS = 32
_MOST_SELECTORS = 32
_MOST_TOLERATIONS = 16


def check_volcano_queue(queue: volcano.VolcanoQueue) -> None:
    # Negative values are allowed here: Volcano reads them as "no limit".
    check_amounts("spec.capability", queue.spec.capability)
    check_amounts("spec.deserved", queue.spec.deserved)
    check_amounts("spec.guarantee.resource", queue.spec.guarantee.resource)
    check_amounts("status.allocated", queue.status.allocated)


def check_volcano_pod_group(group: volcano.VolcanoPodGroup) -> None:
    if group.spec.min_resources:
        check_amounts("spec.minResources", group.spec.min_resources)
    check_within("spec.networkTopology", group.spec.network_topology, _check_network_topology)
    check_each("spec.subGroupPolicy", group.spec.sub_group_policy, _check_sub_group_policy)


def _check_network_topology(topology: volcano.NetworkTopology) -> None:
    require_one_of("mode", topology.mode, ("hard", "soft"))


def _check_sub_group_policy(policy: volcano.SubGroupPolicy) -> None:
    fail("labelSelector", selectors.selector_problem(policy.label_selector))
    check_within("networkTopology", policy.network_topology, _check_network_topology)


def check_hyper_node(hyper_node: volcano.HyperNode) -> None:
    check_each("spec.members", hyper_node.spec.members, _check_member)


def _check_member(member: volcano.HyperNodeMember) -> None:
    if member.type not in ("Node", "HyperNode"):
        raise FieldError("type", f"must be Node or HyperNode: {member.type!r}")
    selector = member.selector
    chosen = (selector.exact_match, selector.regex_match, selector.label_match)
    if sum(choice is not None for choice in chosen) != 1:
        raise FieldError("selector", "needs exactly one of exactMatch, regexMatch, labelMatch")
    if selector.exact_match is not None and not selector.exact_match.name:
        raise FieldError("selector.exactMatch.name", "must not be empty")
    if selector.label_match is not None and member.type != "Node":
        raise FieldError("selector.labelMatch", "can select members of type Node only")
    fail("selector.labelMatch", selectors.selector_problem(selector.label_match))


def check_numa_topology(topology: volcano.Numatopology) -> None:
    # Volcano reads no other reserved resource, so any other value is harmless.
    for name in ("cpu", "memory", "ephemeral-storage"):
        check_amount(f"spec.resReserved.{name}", topology.spec.res_reserved.get(name))
    for cpu in topology.spec.cpu_detail:
        if not (cpu.isascii() and cpu.isdigit() and len(cpu) <= 9):
            raise FieldError("spec.cpuDetail", f"not the number of a cpu: {cpu!r}")


def check_kai_queue(queue: kai.KaiQueue) -> None:
    resources = queue.spec.resources
    if resources is not None:
        check_within("spec.resources.gpu", resources.gpu, _check_queue_resource)
        check_within("spec.resources.cpu", resources.cpu, _check_queue_resource)
        check_within("spec.resources.memory", resources.memory, _check_queue_resource)
    check_amounts("status.allocated", queue.status.allocated)
    check_amounts("status.allocatedNonPreemptible", queue.status.allocated_non_preemptible)
    check_amounts("status.requested", queue.status.requested)


def _check_queue_resource(resource: kai.QueueResource) -> None:
    for field, number in (
        ("quota", resource.quota),
        ("overQuotaWeight", resource.over_quota_weight),
        ("limit", resource.limit),
    ):
        if not math.isfinite(number):
            raise FieldError(field, f"not a number: {number}")


def check_kai_pod_group(group: kai.KaiPodGroup) -> None:
    require_one_of("spec.preemptibility", group.spec.preemptibility, ("preemptible", "non-preemptible"))
    check_each("spec.subGroups", group.spec.sub_groups, _check_sub_group)
    status = group.status.resources_status
    check_amounts("status.resourcesStatus.allocated", status.allocated)
    check_amounts("status.resourcesStatus.allocatedNonPreemptible", status.allocated_non_preemptible)
    check_amounts("status.resourcesStatus.requested", status.requested)


def _check_sub_group(group: kai.SubGroup) -> None:
    if not group.name:
        raise FieldError("name", "must not be empty")


def check_bind_request(request: kai.BindRequest) -> None:
    check_each(
        "spec.resourceClaimAllocations", request.spec.resource_claim_allocations, _check_claim_allocation
    )


def _check_claim_allocation(claim: kai.ClaimAllocation) -> None:
    check_within("allocation", claim.allocation, _check_allocation)


def check_resource_claim(claim: dra.ResourceClaim) -> None:
    devices = claim.spec.devices
    _check_length("spec.devices.requests", devices.requests, _MOST_REQUESTS)
    _check_length("spec.devices.constraints", devices.constraints, _MOST_CONSTRAINTS)
    check_each("spec.devices.requests", devices.requests, _check_device_request)
    check_each("spec.devices.constraints", devices.constraints, _check_device_constraint)
    check_within("status.allocation", claim.status.allocation, _check_allocation)


def _check_device_request(request: dra.DeviceRequest) -> None:
    _check_demand(request)
    check_within("exactly", request.exactly, _check_demand)
    _check_length("firstAvailable", request.first_available, _MOST_ALTERNATIVES)
    check_each("firstAvailable", request.first_available, _check_demand)


def _check_device_constraint(constraint: dra.DeviceConstraint) -> None:
    _check_length("requests", constraint.requests, _MOST_REQUESTS)


def _check_length(field: str, items: Sized, most: int) -> None:
    """The API server accepts no more; searches rely on it."""
    if len(items) > most:
        raise FieldError(field, f"must have at most {most} items: {len(items)}")


def _check_demand(demand: dra.DeviceDemand) -> None:
    require_one_of("allocationMode", demand.allocation_mode, ("ExactCount", "All"))
    if demand.allocation_mode == "ExactCount" and demand.count < 1:
        raise FieldError("count", f"must be at least 1: {demand.count}")
    _check_length("selectors", demand.selectors, _MOST_SELECTORS)
    _check_length("tolerations", demand.tolerations, _MOST_TOLERATIONS)
    if demand.capacity is not None:
        check_requests("capacity.requests", demand.capacity.requests)


def _check_allocation(allocation: dra.AllocationResult) -> None:
    check_each("devices.results", allocation.devices.results, _check_device_result)
    fail("nodeSelector", selectors.node_selector_problem(allocation.node_selector))


def _check_device_result(result: dra.DeviceResult) -> None:
    check_requests("consumedCapacity", result.consumed_capacity)


def check_resource_slice(resource_slice: dra.ResourceSlice) -> None:
    fail("spec.nodeSelector", selectors.node_selector_problem(resource_slice.spec.node_selector))
    check_each("spec.devices", resource_slice.spec.devices, _check_device)
    for index, shared in enumerate(resource_slice.spec.shared_counters):
        _check_counters(f"spec.sharedCounters[{index}].counters", shared.counters)


def _check_device(device: dra.Device) -> None:
    _check_device_body(device)
    check_within("basic", device.basic, _check_device_body)


def _check_device_body(body: dra.DeviceBody) -> None:
    fail("nodeSelector", selectors.node_selector_problem(body.node_selector))
    for name, capacity in body.capacity.items():
        check_within(f"capacity.{name}", capacity, _check_device_capacity)
    for index, consumption in enumerate(body.consumes_counters):
        _check_counters(f"consumesCounters[{index}].counters", consumption.counters)


def _check_device_capacity(capacity: dra.DeviceCapacity) -> None:
    check_amount("value", capacity.value)
    policy = capacity.request_policy
    if policy is None:
        return
    check_amount("requestPolicy.default", policy.default)
    for index, value in enumerate(policy.valid_values):
        check_amount(f"requestPolicy.validValues[{index}]", value)
    if policy.valid_range is not None:
        check_amount("requestPolicy.validRange.min", policy.valid_range.min)
        check_amount("requestPolicy.validRange.max", policy.valid_range.max)
        check_amount("requestPolicy.validRange.step", policy.valid_range.step)


def _check_counters(field: str, counters: dict[str, dra.Counter]) -> None:
    for name, counter in counters.items():
        check_amount(f"{field}.{name}.value", counter.value)
