"""The defaults of the API server's schema that depend only on the object itself.

`admission` calls this for every manifest. A constant default is the default of its field (see `pod`,
`storage`, `dra`, `volcano`, `kai`); here are those that follow from other fields, and those read from plain
dictionaries. Defaulting is idempotent: an object from an API server comes back unchanged, at the cost of a
few look-ups.

Nothing is validated here: `load` reports what has the wrong shape.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from maniple.objects.core import Namespace, Node, Pod, PodSpec, ReplicationController
from maniple.objects.meta import Object
from maniple.objects.quantity import Exact, format_quantity
from maniple.objects.requests import container_limits, container_requests

Raw = Mapping[str, Any]

DEFAULT_SCHEDULER = "default-scheduler"
NAMESPACE_NAME = "kubernetes.io/metadata.name"
_CONTAINERS = ("containers", "initContainers")
_HUGE_PAGES = "hugepages-"


def defaulted(kind: type[Object], raw: Raw) -> Raw:
    """The object with its defaults; the same dictionary if nothing is missing."""
    fill = _FILLERS.get(kind)
    return raw if fill is None else fill(raw)


def section(value: Any) -> Raw | None:
    """A part of an object if it has the right shape; an absent part is empty."""
    if type(value) is dict:
        return value
    if value is None:
        return {}
    return value if isinstance(value, Mapping) else None


def changed(raw: Raw, changes: Raw) -> Raw:
    return {**raw, **changes} if changes else raw


# -- pods ------------------------------------------------------------------------------------------------------------


def _pod(raw: Raw) -> Raw:
    spec, status = section(raw.get("spec")), section(raw.get("status"))
    if spec is None or status is None:
        return raw
    filled = _pod_spec(spec)
    changes: dict[str, Any] = {} if filled is spec else {"spec": filled}
    if not status.get("phase"):
        changes["status"] = {**status, "phase": "Pending"}
    return changed(raw, changes)


def _pod_spec(spec: Raw) -> Raw:
    changes: dict[str, Any] = {}
    for field in _CONTAINERS:
        containers = spec.get(field)
        if containers:
            filled = each_container(containers, _from_limits)
            if spec.get("hostNetwork") is True:
                filled = each_container(filled, _with_host_ports)
            if filled is not containers:
                changes[field] = filled
    if not spec.get("schedulerName"):
        changes["schedulerName"] = DEFAULT_SCHEDULER
    filled_spec = changed(spec, changes)
    return _with_pod_requests(filled_spec) if spec.get("resources") else filled_spec


def each_container(containers: Any, fill: Callable[[Raw], Raw]) -> Any:
    """The containers with defaults; the same list if nothing was missing."""
    if not isinstance(containers, list | tuple):
        return containers
    made: list[Any] = []
    for place, one in enumerate(containers):
        filled = fill(one) if isinstance(one, dict) else one
        if filled is not one:
            made = made or list(containers)
            made[place] = filled
    return made or containers


def _from_limits(container: Raw) -> Raw:
    """A resource with a limit and no request requests its limit."""
    resources: Any = container.get("resources")
    limits = resources.get("limits") if isinstance(resources, dict) else None
    if not limits or not isinstance(limits, dict):
        return container
    requests = section(resources.get("requests"))
    if requests is None or limits.keys() <= requests.keys():
        return container
    return {**container, "resources": {**resources, "requests": {**limits, **requests}}}


def _with_host_ports(container: Raw) -> Raw:
    """On the host network, container ports are host ports."""
    ports = container.get("ports")
    if not isinstance(ports, list | tuple):
        return container
    made = [
        {**port, "hostPort": port["containerPort"]}
        if isinstance(port, dict) and not port.get("hostPort") and port.get("containerPort")
        else port
        for port in ports
    ]
    return {**container, "ports": made} if made != list(ports) else container


def _with_pod_requests(spec: Raw) -> Raw:
    """Default the pod-level requests: to the containers' requests, else to the pod's own limits.

    Huge pages cannot be overcommitted.
    """
    stated = section(spec["resources"])
    if stated is None:
        return spec
    limits, requests = section(stated.get("limits")), section(stated.get("requests"))
    if limits is None or requests is None or not (limits or requests):
        return spec
    asked, allowed = _of_containers(spec)
    pages = {
        name: format_quantity(amount, binary=True)
        for name, amount in allowed.items()
        if name.startswith(_HUGE_PAGES) and name not in requests
    }
    limits = {**pages, **limits}
    if not limits:
        return spec
    shared = {
        name: format_quantity(asked[name], binary=name == "memory")
        for name in ("cpu", "memory")
        if name in asked
    }
    own = {
        name: amount
        for name, amount in limits.items()
        if name in ("cpu", "memory") or name.startswith(_HUGE_PAGES)
    }
    filled = {**stated, "limits": limits, "requests": {**own, **shared, **requests}}
    return spec if filled == stated else {**spec, "resources": filled}


def _of_containers(spec: Raw) -> tuple[Mapping[str, Exact], Mapping[str, Exact]]:
    """The requests and limits of all containers together; empty if `load` is going to reject them."""
    try:
        parts = msgspec.convert({field: spec.get(field) or () for field in _CONTAINERS}, PodSpec)
        return container_requests(parts), container_limits(parts)
    except (msgspec.ValidationError, ValueError):
        return {}, {}


# -- other kinds -----------------------------------------------------------------------------------------------------


def _node(raw: Raw) -> Raw:
    """Allocatable defaults to the node's capacity."""
    status = section(raw.get("status"))
    if not status or status.get("allocatable") is not None or status.get("capacity") is None:
        return raw
    return {**raw, "status": {**status, "allocatable": status["capacity"]}}


def _namespace(raw: Raw) -> Raw:
    metadata = section(raw.get("metadata"))
    labels = section(metadata.get("labels")) if metadata else None
    if not metadata or labels is None or labels.get(NAMESPACE_NAME) == metadata.get("name"):
        return raw
    return {**raw, "metadata": {**metadata, "labels": {**labels, NAMESPACE_NAME: metadata.get("name")}}}


def _replication_controller(raw: Raw) -> Raw:
    """The selector defaults to the labels of the template."""
    spec = section(raw.get("spec"))
    template = section(spec.get("template")) if spec else None
    metadata = section(template.get("metadata")) if template else None
    if not spec or spec.get("selector") or not metadata or not metadata.get("labels"):
        return raw
    return {**raw, "spec": {**spec, "selector": metadata["labels"]}}


_FILLERS: dict[type[Object], Callable[[Raw], Raw]] = {
    Pod: _pod,
    Node: _node,
    Namespace: _namespace,
    ReplicationController: _replication_controller,
}
