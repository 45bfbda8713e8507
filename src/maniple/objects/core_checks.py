"""What the API server would reject in a pod, a node, a volume or another built-in kind.

Called by `validate`. Only what later code relies on is checked: quantities, selectors, names, closed lists of
values.
"""

from maniple.objects import core, selectors
from maniple.objects.checks import (
    FieldError,
    check_amount,
    check_amounts,
    check_each,
    check_requests,
    check_resources,
    check_within,
    fail,
    require_one_of,
    require_word,
)

_LARGEST_PORT = 65535


def check_pod(pod: core.Pod) -> None:
    spec = pod.spec
    check_each("spec.containers", spec.containers, _check_container)
    if spec.init_containers:
        check_each("spec.initContainers", spec.init_containers, _check_container)
    if spec.overhead:
        check_resources("spec.overhead", spec.overhead)
    if spec.resources is not None:
        check_within("spec.resources", spec.resources, _check_requirements)
    if spec.affinity is not None:
        check_within("spec.affinity", spec.affinity, _check_affinity)
    if spec.tolerations:
        check_each("spec.tolerations", spec.tolerations, _check_toleration)
    if spec.topology_spread_constraints:
        check_each("spec.topologySpreadConstraints", spec.topology_spread_constraints, _check_spread)
    if spec.volumes:
        check_each("spec.volumes", spec.volumes, _check_volume)
    if spec.node_name:
        require_word("spec.nodeName", spec.node_name)
    status = pod.status
    if status.container_statuses:
        check_each("status.containerStatuses", status.container_statuses, _check_container_status)
    if status.init_container_statuses:
        check_each("status.initContainerStatuses", status.init_container_statuses, _check_container_status)


def _check_requirements(resources: core.ResourceRequirements) -> None:
    check_resources("requests", resources.requests)
    check_resources("limits", resources.limits)


def _check_container(container: core.Container) -> None:
    if container.resources.requests:
        check_resources("resources.requests", container.resources.requests)
    if container.resources.limits:
        check_resources("resources.limits", container.resources.limits)
    if container.ports:
        check_each("ports", container.ports, _check_port)


def _check_port(port: core.ContainerPort) -> None:
    if not 0 <= port.host_port <= _LARGEST_PORT:
        raise FieldError("hostPort", f"must be between 0 and {_LARGEST_PORT}: {port.host_port}")
    require_one_of("protocol", port.protocol, ("TCP", "UDP", "SCTP"))


def _check_container_status(status: core.ContainerStatus) -> None:
    check_within("resources", status.resources, _check_requirements)
    check_resources("allocatedResources", status.allocated_resources)


def _check_toleration(toleration: core.Toleration) -> None:
    problem = selectors.toleration_problem(toleration)
    if problem is not None:
        field, _, message = problem.partition(": ")
        raise FieldError(field, message)


def _check_affinity(affinity: core.Affinity) -> None:
    node = affinity.node_affinity
    if node is not None:
        required = node.required_during_scheduling_ignored_during_execution
        fail(
            "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            selectors.node_selector_problem(required),
        )
        check_each(
            "nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution",
            node.preferred_during_scheduling_ignored_during_execution,
            _check_preferred_node,
        )
    check_within("podAffinity", affinity.pod_affinity, _check_pod_terms)
    check_within("podAntiAffinity", affinity.pod_anti_affinity, _check_pod_terms)


def _check_weight(weight: int) -> None:
    if not 1 <= weight <= 100:
        raise FieldError("weight", f"must be between 1 and 100: {weight}")


def _check_preferred_node(preferred: core.PreferredSchedulingTerm) -> None:
    _check_weight(preferred.weight)
    fail("preference", selectors.term_problem(preferred.preference))


def _check_pod_terms(affinity: core.PodAffinity | core.PodAntiAffinity) -> None:
    check_each(
        "requiredDuringSchedulingIgnoredDuringExecution",
        affinity.required_during_scheduling_ignored_during_execution,
        _check_pod_term,
    )
    check_each(
        "preferredDuringSchedulingIgnoredDuringExecution",
        affinity.preferred_during_scheduling_ignored_during_execution,
        _check_weighted_pod_term,
    )


def _check_weighted_pod_term(weighted: core.WeightedPodAffinityTerm) -> None:
    _check_weight(weighted.weight)
    check_within("podAffinityTerm", weighted.pod_affinity_term, _check_pod_term)


def _check_pod_term(term: core.PodAffinityTerm) -> None:
    fail("topologyKey", selectors.key_problem(term.topology_key))
    fail("labelSelector", selectors.selector_problem(term.label_selector))
    fail("namespaceSelector", selectors.selector_problem(term.namespace_selector))


def _check_spread(constraint: core.TopologySpreadConstraint) -> None:
    if constraint.max_skew < 1:
        raise FieldError("maxSkew", f"must be at least 1: {constraint.max_skew}")
    fail("topologyKey", selectors.key_problem(constraint.topology_key))
    if constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
        raise FieldError("whenUnsatisfiable", "must be DoNotSchedule or ScheduleAnyway")
    if constraint.min_domains is not None and constraint.min_domains < 1:
        raise FieldError("minDomains", f"must be at least 1: {constraint.min_domains}")
    require_one_of("nodeAffinityPolicy", constraint.node_affinity_policy, ("Honor", "Ignore"))
    require_one_of("nodeTaintsPolicy", constraint.node_taints_policy, ("Honor", "Ignore"))
    fail("labelSelector", selectors.selector_problem(constraint.label_selector))


def _check_volume(volume: core.Volume) -> None:
    ephemeral = volume.ephemeral
    if ephemeral is not None and ephemeral.volume_claim_template is not None:
        check_within(
            "ephemeral.volumeClaimTemplate.spec", ephemeral.volume_claim_template.spec, _check_claim_spec
        )


def check_node(node: core.Node) -> None:
    if node.spec.taints:
        check_each("spec.taints", node.spec.taints, _check_taint)
    check_resources("status.capacity", node.status.capacity)
    check_resources("status.allocatable", node.status.allocatable)


def _check_taint(taint: core.Taint) -> None:
    fail("key", selectors.key_problem(taint.key))
    if taint.effect not in selectors.TAINT_EFFECTS:
        raise FieldError(
            "effect", f"unknown effect {taint.effect!r}, expected {', '.join(selectors.TAINT_EFFECTS)}"
        )


def check_claim(claim: core.PersistentVolumeClaim) -> None:
    check_within("spec", claim.spec, _check_claim_spec)


def _check_claim_spec(spec: core.PersistentVolumeClaimSpec) -> None:
    check_requests("resources.requests", spec.resources.requests)
    fail("selector", selectors.selector_problem(spec.selector))


def check_persistent_volume(volume: core.PersistentVolume) -> None:
    check_requests("spec.capacity", volume.spec.capacity)
    if volume.spec.node_affinity is not None:
        required = volume.spec.node_affinity.required
        fail("spec.nodeAffinity.required", selectors.node_selector_problem(required))


def check_storage_class(storage_class: core.StorageClass) -> None:
    modes = ("Immediate", "WaitForFirstConsumer")
    require_one_of("volumeBindingMode", storage_class.volume_binding_mode, modes)


def check_storage_capacity(capacity: core.CSIStorageCapacity) -> None:
    fail("nodeTopology", selectors.selector_problem(capacity.node_topology))
    check_amount("capacity", capacity.capacity)
    check_amount("maximumVolumeSize", capacity.maximum_volume_size)


def check_runtime_class(runtime_class: core.RuntimeClass) -> None:
    if runtime_class.overhead is not None:
        check_requests("overhead.podFixed", runtime_class.overhead.pod_fixed)


def check_limit_range(limit_range: core.LimitRange) -> None:
    check_each("spec.limits", limit_range.spec.limits, _check_limit_range_item)


def _check_limit_range_item(item: core.LimitRangeItem) -> None:
    check_requests("max", item.max)
    check_requests("min", item.min)
    check_requests("default", item.default)
    check_requests("defaultRequest", item.default_request)


def check_quota(quota: core.ResourceQuota) -> None:
    check_requests("spec.hard", quota.spec.hard)
    check_requests("status.hard", quota.status.hard)
    check_amounts("status.used", quota.status.used)


def check_budget(budget: core.PodDisruptionBudget) -> None:
    fail("spec.selector", selectors.selector_problem(budget.spec.selector))
    _check_budget_share("spec.minAvailable", budget.spec.min_available)
    _check_budget_share("spec.maxUnavailable", budget.spec.max_unavailable)


def _check_budget_share(field: str, share: int | str | None) -> None:
    if isinstance(share, str):
        number = share.removesuffix("%")
        if number == share or not (number.isascii() and number.isdigit() and len(number) <= 9):
            raise FieldError(field, f"not a percentage: {share!r}")
    elif share is not None and share < 0:
        raise FieldError(field, f"must not be negative: {share}")


def check_workload(workload: core.ReplicaSet | core.StatefulSet) -> None:
    fail("spec.selector", selectors.selector_problem(workload.spec.selector))
