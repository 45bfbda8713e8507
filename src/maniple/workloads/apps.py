"""Deployment, ReplicaSet, StatefulSet and ReplicationController: pods one by one unless a minimum is said."""

from collections.abc import Callable, Iterator
from typing import Any

from maniple.workloads.building import child, independent, pod
from maniple.workloads.fields import choice, count, section, text
from maniple.workloads.kind import Children, Kind
from maniple.workloads.model import Chain, Member, Raw

_REPLICAS = ("spec", "replicas")
_TEMPLATE = ("spec", "template")


def _member(chain: Chain) -> Member:
    return Member(independent(chain, most=count(chain.top, _REPLICAS, 1)))


def _stateful_set_member(chain: Chain) -> Member:
    """In order, the next pod is created when the last one is ready: a gang would wait for pods that never come."""
    policy = choice(chain.top, ("spec", "podManagementPolicy"), ("OrderedReady", "Parallel"))
    replicas = count(chain.top, _REPLICAS, 1)
    return Member(independent(chain, most=replicas if policy == "Parallel" else 1))


def _deployment_children(deployment: Raw) -> Iterator[dict[str, Any]]:
    spec = section(deployment, ("spec",))
    wanted = {key: spec[key] for key in ("selector", "template") if key in spec}
    wanted["replicas"] = count(deployment, _REPLICAS, 1)
    name = text(deployment, ("metadata", "name"))
    labels = section(deployment, (*_TEMPLATE, "metadata", "labels"))
    yield child(deployment, "apps/v1", "ReplicaSet", f"{name}-new", labels=labels, spec=wanted)


def _replica_set_children(owner: Raw) -> Iterator[dict[str, Any]]:
    """Also of a ReplicationController. The random endings of names are numbers here."""
    name = text(owner, ("metadata", "name"))
    for index in range(count(owner, _REPLICAS, 1)):
        yield pod(owner, _TEMPLATE, f"{name}-{index}")


def _stateful_set_children(owner: Raw) -> Iterator[dict[str, Any]]:
    name, first = text(owner, ("metadata", "name")), count(owner, ("spec", "ordinals", "start"))
    for index in range(first, first + count(owner, _REPLICAS, 1)):
        labels = {
            "apps.kubernetes.io/pod-index": str(index),
            "statefulset.kubernetes.io/pod-name": f"{name}-{index}",
        }
        yield pod(owner, _TEMPLATE, f"{name}-{index}", labels=labels)


def _kind(
    api_group: str,
    name: str,
    plural: str,
    children: Children,
    member: Callable[[Chain], Member] = _member,
    more: tuple[str, ...] = (),
) -> Kind:
    return Kind(api_group, name, plural, ("v1",), ("spec.replicas", "spec.template", *more), member, children)


KINDS = (
    _kind("apps", "Deployment", "deployments", _deployment_children),
    _kind("apps", "ReplicaSet", "replicasets", _replica_set_children),
    _kind(
        "apps",
        "StatefulSet",
        "statefulsets",
        _stateful_set_children,
        _stateful_set_member,
        ("spec.podManagementPolicy",),
    ),
    _kind("", "ReplicationController", "replicationcontrollers", _replica_set_children),
)
