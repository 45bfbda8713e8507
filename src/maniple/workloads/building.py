"""What the modules of kinds build with: groups that heed labels and annotations, and objects of a controller."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from maniple.workloads.fields import fail, section, shown, text
from maniple.workloads.model import Chain, DomainWish, Group, Owner, Part, PodSet, Raw
from maniple.workloads.wishes import domain_wish, wishes

Path = tuple[str | int, ...]


def owner_of(raw: Raw) -> Owner:
    return Owner(
        api_version=text(raw, ("apiVersion",)),
        kind=text(raw, ("kind",)),
        name=text(raw, ("metadata", "name")),
        uid=text(raw, ("metadata", "uid")),
    )


def namespace_of(raw: Raw) -> str:
    return text(raw, ("metadata", "namespace")) or "default"


def group_of(
    chain: Chain,
    minimum: int,
    sets: Sequence[PodSet] = (),
    *,
    most: int | None = None,
    part: str = "",
    queue: str = "",
    priority_class: str = "",
    domain: DomainWish | None = None,
    after: tuple[str, ...] = (),
) -> Group:
    """A group of the owner that decides, with what its kind asks for unless labels or annotations say otherwise.

    `most`: pods that ever run at a time; a larger minimum would never start.
    """
    said = wishes(chain)
    if said.minimum is not None and said.minimum != minimum:
        minimum = said.minimum if most is None else min(said.minimum, max(most, 1))
        sets = with_minimum(sets, minimum)
    return Group(
        namespace=namespace_of(chain.top),
        owner=owner_of(chain.top),
        minimum=minimum,
        part=part,
        sets=tuple(sets),
        queue=said.queue or queue or said.namespace_queue,
        priority_class=said.priority_class or priority_class or pod_priority(chain.pod),
        preemptible=said.preemptible,
        # A template with a topology of its own asks for its set, and the pods of other sets know nothing of it.
        domain=(domain_wish(chain.top, *chain.above) if sets else said.domain) or domain,
        after=after,
    )


def independent(
    chain: Chain, most: int | None = None, part: str = "", *, queue: str = "", priority_class: str = ""
) -> Group:
    """Pods one by one, unless a minimum is said."""
    group = group_of(chain, 1, most=most, part=part, queue=queue, priority_class=priority_class)
    return replace(group, independent=wishes(chain).minimum is None)


def with_minimum(sets: Sequence[PodSet], minimum: int) -> tuple[PodSet, ...]:
    """The sets with another sum of minimums: what is too much goes from the last ones, what lacks to the last that
    have room for it. The minimum of a set with sets below it is the sum of theirs.
    """
    parents = {one.parent for one in sets}
    leaves = [one for one in sets if one.name not in parents]
    changed = {}
    more = minimum - sum(one.minimum for one in leaves)
    for leaf in reversed(leaves):
        wanted = max(leaf.minimum + more, 0)
        if leaf.most is not None:
            wanted = min(wanted, leaf.most)
        changed[leaf.name] = replace(leaf, minimum=wanted)
        more -= wanted - leaf.minimum
        if more == 0:
            break
    result = [changed.get(one.name, one) for one in sets]

    def needed(one: PodSet) -> int:
        if one.name not in parents:
            return one.minimum
        return sum(needed(below) for below in result if below.parent == one.name)

    return tuple(replace(one, minimum=needed(one)) for one in result)


def in_order(owner: Raw, after: Mapping[str, Sequence[str]], paths: Mapping[str, Path]) -> None:
    """Raises `FieldError` if parts of an owner wait for one that is not there, or for each other.

    `after`: the parts that each waits for, by name; `paths`: where that is said.
    """
    for name, others in after.items():
        if unknown := [one for one in others if one not in after]:
            raise fail(owner, paths[name], f"names no other part: {shown(unknown[0])}")
    waiting = dict(after)
    while waiting:
        ready = [name for name, others in waiting.items() if not any(one in waiting for one in others)]
        if not ready:
            name = next(iter(waiting))
            raise fail(owner, paths[name], "depends on itself, by way of what it depends on")
        for name in ready:
            del waiting[name]


def template_domain(owner: Raw, template: Path) -> DomainWish | None:
    """The topology that annotations of a template ask for: that of the set of its pods."""
    return domain_wish(template_of(owner, template))


def pod_priority(pod: Raw) -> str:
    return text(pod, ("spec", "priorityClassName"))


# -- pods of several templates -----------------------------------------------------------------------------------------


def template_of(owner: Raw, path: Path, metadata: Path = ("metadata",), spec: Path = ("spec",)) -> Part:
    """What a pod template says about its pods, as an object of its own.

    `metadata` and `spec`: where in the template the labels are, and the pod's fields.
    """
    said = {
        "name": text(owner, ("metadata", "name")),
        "namespace": namespace_of(owner),
        "labels": section(owner, (*path, *metadata, "labels")),
        "annotations": section(owner, (*path, *metadata, "annotations")),
    }
    priority_class = text(owner, (*path, *spec, "priorityClassName"))
    found = {"kind": owner.get("kind"), "metadata": said, "spec": {"priorityClassName": priority_class}}
    return Part(found, path)


def shared(chain: Chain, templates: Sequence[Raw]) -> Chain:
    """The chain that pods of different templates have in common, so that all of them ask for the same group.

    After the owner come its templates, in this order, whichever of them the pod is from; owners between the two do
    not count.
    """
    return replace(chain, owners=(*reversed(templates), chain.top))


def first_priority(templates: Sequence[Raw]) -> str:
    return next((found for one in templates if (found := pod_priority(one))), "")


# -- what controllers create -------------------------------------------------------------------------------------------


def child(
    owner: Raw,
    api_version: str,
    kind: str,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **rest: Any,
) -> dict[str, Any]:
    """An object that the owner's controller creates."""
    parent = owner_of(owner)
    reference = {
        "apiVersion": parent.api_version,
        "kind": parent.kind,
        "name": parent.name,
        "uid": parent.uid,
        "controller": True,
    }
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace_of(owner),
        "ownerReferences": [reference],
    }
    if labels:
        metadata["labels"] = dict(labels)
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def pod(
    owner: Raw,
    template: Path,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A pod of the template at this path in the owner, with the labels that its controller adds."""
    metadata = section(owner, (*template, "metadata"))
    return child(
        owner,
        "v1",
        "Pod",
        name,
        labels={**_texts(metadata.get("labels")), **(labels or {})},
        annotations={**_texts(metadata.get("annotations")), **(annotations or {})},
        spec=dict(section(owner, (*template, "spec"))),
    )


def pods(
    owner: Raw, template: Path, names: Iterable[str], labels: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    return [pod(owner, template, name, labels=labels) for name in names]


def _texts(found: Any) -> Mapping[str, str]:
    return found if isinstance(found, Mapping) else {}
