"""What a pod requests of its node, computed from its containers by Kubernetes' rules.

Called once per class of pods when the columns are built. Quantities are valid here: `load` has checked them.
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from maniple.objects.meta import ResourceList
from maniple.objects.pod import Container, ContainerStatus, Pod, PodSpec
from maniple.objects.quantity import Exact, milli, parse, units

# What the scheduler assumes for scoring if a container sets no request.
DEFAULT_CPU = Fraction(1, 10)
DEFAULT_MEMORY = 200 * 1024 * 1024

Amounts = dict[str, Exact]
AmountsOf = Callable[[Container], Amounts]
_NOTHING: Mapping[str, Exact] = {}


def pod_requests(pod: Pod) -> dict[str, Fraction | int]:
    """Effective requests by resource, without the pod itself (the resource `pods`)."""
    return _total(pod, _NOTHING)


def pod_limits(pod: Pod) -> dict[str, Fraction | int]:
    """Limits by resource, summed up as requests are; a container without limits adds nothing."""
    total = container_limits(pod.spec)
    stated = pod.spec.resources.limits if pod.spec.resources is not None else {}
    total.update(_pod_level(stated))
    for name, amount in _parsed(pod.spec.overhead).items():
        if name in total:
            total[name] += amount
    return total


def container_requests(spec: PodSpec) -> Amounts:
    """What the containers request together, without pod-level resources."""
    return _summed(spec, lambda container: _parsed(container.resources.requests))


def container_limits(spec: PodSpec) -> Amounts:
    return _summed(spec, lambda container: _parsed(container.resources.limits))


def nonzero_requests(pod: Pod) -> tuple[int, int]:
    """Millicores and bytes for scoring: a container without requests counts with 100m and 200Mi.

    If the pod sets pod-level resources, only resources that are set nowhere are assumed.
    """
    assumed: Mapping[str, Exact] = {"cpu": DEFAULT_CPU, "memory": DEFAULT_MEMORY}
    if _pod_requests(pod):
        stated = _total(pod, _NOTHING)
        assumed = {name: amount for name, amount in assumed.items() if name not in stated}
    amounts = _total(pod, assumed)
    return milli(amounts.get("cpu", 0)), units(amounts.get("memory", 0))


def _total(pod: Pod, assumed: Mapping[str, Exact]) -> Amounts:
    statuses = _statuses(pod)
    infeasible = bool(statuses) and _resize_infeasible(pod)

    def of_container(container: Container) -> Amounts:
        return _container_requests(container, statuses, infeasible, assumed)

    def of_init_container(container: Container) -> Amounts:
        known = statuses if container.restart_policy == "Always" else {}
        return _container_requests(container, known, infeasible, assumed)

    total = _summed(pod.spec, of_container, of_init_container)
    total.update(_pod_requests(pod))
    if pod.spec.overhead:
        _add(total, _parsed(pod.spec.overhead))
    return total


def _summed(spec: PodSpec, of_container: AmountsOf, of_init_container: AmountsOf | None = None) -> Amounts:
    """The sum over the containers; init containers follow a rule of their own, if given."""
    total: Amounts = {}
    for container in spec.containers:
        _add(total, of_container(container))
    if spec.init_containers:
        _include_init_containers(total, spec, of_init_container or of_container)
    return total


def _include_init_containers(total: Amounts, spec: PodSpec, amounts_of: AmountsOf) -> None:
    """Raise the total to what start-up needs.

    Init containers run one after another, each beside the sidecars started before it; sidecars stay for good.
    """
    sidecars: Amounts = {}
    startup: Amounts = {}
    for container in spec.init_containers:
        amounts = amounts_of(container)
        if container.restart_policy == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            _raise(startup, {name: sidecars[name] for name in amounts})
        else:
            _raise(startup, {name: amount + sidecars.get(name, 0) for name, amount in amounts.items()})
    _raise(total, startup)


def _container_requests(
    container: Container,
    statuses: Mapping[str, ContainerStatus],
    infeasible: bool,
    assumed: Mapping[str, Exact],
) -> Amounts:
    """A container's requests; during a resize the largest of desired, allocated and actual."""
    amounts = _parsed(container.resources.requests)
    status = statuses.get(container.name)
    if status is not None and status.resources is not None:
        # A resize that can never be granted changes nothing: the container keeps its resources.
        amounts = {} if infeasible else amounts
        _raise(amounts, _parsed(status.resources.requests))
        _raise(amounts, _parsed(status.allocated_resources))
    for name, amount in assumed.items():
        amounts.setdefault(name, amount)
    return amounts


def _statuses(pod: Pod) -> Mapping[str, ContainerStatus]:
    status = pod.status
    if not status.container_statuses and not status.init_container_statuses:
        return {}
    known: Iterable[ContainerStatus] = (*status.container_statuses, *status.init_container_statuses)
    return {entry.name: entry for entry in known}


def _resize_infeasible(pod: Pod) -> bool:
    if pod.status.resize == "Infeasible":
        return True
    return any(
        condition.type == "PodResizePending" and condition.reason == "Infeasible"
        for condition in pod.status.conditions
    )


def _pod_requests(pod: Pod) -> Amounts:
    return _pod_level(pod.spec.resources.requests) if pod.spec.resources is not None else {}


def _pod_level(stated: ResourceList) -> Amounts:
    """The pod-level resources; only CPU, memory and huge pages can be set there."""
    return {
        name: parse(amount)
        for name, amount in stated.items()
        if name in ("cpu", "memory") or name.startswith("hugepages-")
    }


def _parsed(resources: ResourceList) -> Amounts:
    return {name: parse(amount) for name, amount in resources.items()}


def _add(total: Amounts, amounts: Mapping[str, Exact]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: Amounts, amounts: Mapping[str, Exact]) -> None:
    for name, amount in amounts.items():
        if name not in total or total[name] < amount:
            total[name] = amount
