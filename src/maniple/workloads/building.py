"""What the modules of kinds build with: groups that heed labels and annotations, and objects of a controller."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from maniple.workloads.fields import section, text
from maniple.workloads.model import Chain, DomainWish, Group, Owner, PodSet, Raw
from maniple.workloads.wishes import Wishes, wishes

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
    said: Wishes | None = None,
) -> Group:
    """A group of the owner that decides, with what its kind asks for unless labels or annotations say otherwise.

    `most`: pods that ever run at a time; a larger minimum would never start. `said`: what labels and annotations say,
    if that is known.
    """
    said = wishes(chain) if said is None else said
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
        domain=said.domain or domain,
        after=after,
    )


def independent(chain: Chain, most: int | None = None, part: str = "") -> Group:
    """Pods one by one, unless a minimum is said."""
    said = wishes(chain)
    group = group_of(chain, 1, most=most, part=part, said=said)
    return replace(group, independent=True) if said.minimum is None else group


def with_minimum(sets: Sequence[PodSet], minimum: int) -> tuple[PodSet, ...]:
    """The sets with another sum of minimums: what is too much goes from the last ones, what lacks to the last."""
    parents = {one.parent for one in sets}
    leaves = [one for one in sets if one.name not in parents]
    changed = {}
    more = minimum - sum(one.minimum for one in leaves)
    for leaf in reversed(leaves):
        changed[leaf.name] = replace(leaf, minimum=max(leaf.minimum + more, 0))
        more += leaf.minimum - changed[leaf.name].minimum
        if more >= 0:
            break
    return tuple(changed.get(one.name, one) for one in sets)


def pod_priority(pod: Raw) -> str:
    return text(pod, ("spec", "priorityClassName"))


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
