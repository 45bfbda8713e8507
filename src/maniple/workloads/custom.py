"""Custom resources that a configuration describes: which fields say how many pods start together, by JSONPath."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from maniple.workloads.building import (
    first_priority,
    group_of,
    independent,
    pod,
    shared,
    template_of,
    with_minimum,
)
from maniple.workloads.fields import fail, section, text, title
from maniple.workloads.jsonpath import JsonPath
from maniple.workloads.kind import Kind
from maniple.workloads.kinds import TABLE, Table
from maniple.workloads.model import Chain, FieldError, Member, PodSet, Raw
from maniple.workloads.wishes import domain_wish


@dataclass(frozen=True, slots=True)
class Pods:
    """Pods that a resource asks for. Without a path for their minimum all of them are needed."""

    minimum: JsonPath | None = None
    replicas: JsonPath | None = None
    template: JsonPath | None = None


@dataclass(frozen=True, slots=True)
class Role:
    """Pods with these labels: a set of the group."""

    name: str
    labels: tuple[tuple[str, str], ...]
    pods: Pods


@dataclass(frozen=True, slots=True)
class CustomKind:
    """An entry of the configuration. With roles, a minimum of its own is one for all of them together."""

    api_version: str
    kind: str
    plural: str
    pods: Pods = Pods()
    roles: tuple[Role, ...] = ()
    queue: JsonPath | None = None
    priority_class: JsonPath | None = None

    @property
    def title(self) -> str:
        return f"{self.kind} ({self.api_version})"

    @property
    def all_pods(self) -> tuple[Pods, ...]:
        return tuple(role.pods for role in self.roles) or (self.pods,)


def table_with(customs: Iterable[CustomKind], table: Table = TABLE) -> Table:
    """The table of kinds with those of a configuration, which come before ours."""
    return {**table, **{kind.key: kind for kind in map(kind_of_custom, customs)}}


def kind_of_custom(custom: CustomKind) -> Kind:
    group, _, version = custom.api_version.rpartition("/")
    paths = [
        one
        for pods in (custom.pods, *custom.all_pods)
        for one in (pods.minimum, pods.replicas, pods.template)
    ]
    reads = [one.field for one in (*paths, custom.queue, custom.priority_class) if one is not None]
    return Kind(
        api_group=group,
        name=custom.kind,
        plural=custom.plural,
        versions=(version,),
        reads=tuple(dict.fromkeys(reads)),
        member=lambda chain: _member(custom, chain),
        reads_of_pod=tuple(key for role in custom.roles for key, _ in role.labels),
        children=lambda owner: _children(custom, owner),
    )


# -- the group ---------------------------------------------------------------------------------------------------------


def _member(custom: CustomKind, chain: Chain) -> Member:
    owner = chain.top
    templates = [
        template_of(owner, one.template.place) for one in custom.all_pods if one.template is not None
    ]
    common = shared(chain, templates) if custom.roles else chain
    queue = custom.queue.said(owner) if custom.queue is not None else ""
    said = custom.priority_class.said(owner) if custom.priority_class is not None else ""
    priority_class = said or first_priority(templates)
    most = _most(custom, owner)
    if not custom.roles:
        minimum = _found(custom.pods.minimum, owner)
        if minimum is None and custom.pods.minimum is not None:
            minimum = most
        if minimum is None:
            return Member(independent(common, most, queue=queue, priority_class=priority_class))
        group = group_of(common, max(minimum, 1), most=most, queue=queue, priority_class=priority_class)
        return Member(group)
    sets = [_set(role, owner) for role in custom.roles]
    minimum = sum(one.minimum for one in sets)
    together = _found(custom.pods.minimum, owner)
    if together is not None:
        minimum = max(min(together, minimum), 1)
    group = group_of(
        common,
        minimum,
        with_minimum(sets, minimum),
        most=most,
        queue=queue,
        priority_class=priority_class,
    )
    return Member(group, _role_of(custom, chain.pod))


def _found(path: JsonPath | None, owner: Raw) -> int | None:
    return None if path is None else path.total(owner)


def _most(custom: CustomKind, owner: Raw) -> int | None:
    """The number of pods, where the configuration says where it is."""
    replicas = [_found(one.replicas, owner) for one in custom.all_pods]
    known = [one for one in replicas if one is not None]
    return sum(known) if len(known) == len(replicas) else None


def _set(role: Role, owner: Raw) -> PodSet:
    minimum = _found(role.pods.minimum, owner)
    if minimum is None:
        minimum = _found(role.pods.replicas, owner)
    if minimum is None:
        path = role.pods.minimum or role.pods.replicas
        named = "" if path is None else path.text.removeprefix("$").removeprefix(".")
        raise FieldError(title(owner), named, f"must be the number of pods of the role {role.name}")
    template = role.pods.template
    domain = None if template is None else domain_wish(template_of(owner, template.place))
    return PodSet(role.name, minimum, domain=domain, most=_found(role.pods.replicas, owner))


def _role_of(custom: CustomKind, pod: Raw) -> str:
    labels = section(pod, ("metadata", "labels"))
    for role in custom.roles:
        if all(labels.get(key) == value for key, value in role.labels):
            return role.name
    names = ", ".join(role.name for role in custom.roles)
    raise fail(pod, ("metadata", "labels"), f"must be those of a role of {custom.title}: {names}")


# -- the pods ----------------------------------------------------------------------------------------------------------


def _children(custom: CustomKind, owner: Raw) -> Iterator[dict[str, Any]]:
    name = text(owner, ("metadata", "name"))
    if not custom.roles:
        yield from _pods(owner, custom.pods, name, {})
    for role in custom.roles:
        yield from _pods(owner, role.pods, f"{name}-{role.name}", dict(role.labels))


def _pods(owner: Raw, pods: Pods, prefix: str, labels: dict[str, str]) -> Iterator[dict[str, Any]]:
    if pods.template is None:
        return
    for index in range(_found(pods.replicas, owner) or 0):
        yield pod(owner, pods.template.place, f"{prefix}-{index}", labels=labels)
