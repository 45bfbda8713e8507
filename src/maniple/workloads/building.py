"""What the modules of kinds build with: groups that heed labels and annotations, and objects of a controller."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from maniple.workloads.fields import fail, section, shown, text, written
from maniple.workloads.model import Chain, DomainWish, Group, Owner, PodSet, Raw
from maniple.workloads.wishes import PREFERRED, REQUIRED, TOPOLOGY, wishes

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
        domain=said.domain or domain,
        after=after,
    )


def independent(
    chain: Chain, most: int | None = None, part: str = "", *, queue: str = "", priority_class: str = ""
) -> Group:
    """Pods one by one, unless a minimum is said."""
    group = group_of(chain, 1, most=most, part=part, queue=queue, priority_class=priority_class)
    return replace(group, independent=wishes(chain).minimum is None)


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


# -- pods of several templates -----------------------------------------------------------------------------------------

_OF_A_SET = frozenset({TOPOLOGY, REQUIRED, PREFERRED})


def template_of(
    owner: Raw, path: Path, metadata: Path = ("metadata",), spec: Path = ("spec",)
) -> dict[str, Any]:
    """What a pod template says about its pods, as an object of its own that messages can name.

    `metadata` and `spec`: where in the template the labels are, and the pod's fields.
    """
    said = {
        "name": text(owner, ("metadata", "name")),
        "namespace": namespace_of(owner),
        "labels": section(owner, (*path, *metadata, "labels")),
        "annotations": section(owner, (*path, *metadata, "annotations")),
    }
    priority_class = text(owner, (*path, *spec, "priorityClassName"))
    kind = f"{written(path)} of {owner.get('kind')}"
    return {"kind": kind, "metadata": said, "spec": {"priorityClassName": priority_class}}


def shared(chain: Chain, templates: Sequence[Raw]) -> Chain:
    """The chain that pods of different templates have in common, so that all of them ask for the same group.

    After the owner come its templates, in this order, whichever of them the pod is from; owners between the two do
    not count. A topology that a template asks for is one for its own pods: the kind gives it to their set.
    """
    return replace(
        chain,
        pod=_without_topology(chain.pod),
        owners=(*(_without_topology(one) for one in reversed(templates)), chain.top),
    )


def label_of(pod: Raw, keys: Sequence[str], expected: Sequence[str]) -> str:
    """Which of the expected names a label of a pod says; of several keys the first that is there counts."""
    labels = section(pod, ("metadata", "labels"))
    found = next((labels[key] for key in keys if labels.get(key)), None)
    if found not in expected:
        wrong = "absent" if found is None else shown(found)
        raise fail(pod, ("metadata", "labels", keys[0]), f"must be one of {', '.join(expected)}, not {wrong}")
    return str(found)


def first_priority(templates: Sequence[Raw]) -> str:
    return next((found for one in templates if (found := pod_priority(one))), "")


def _without_topology(raw: Raw) -> Raw:
    metadata = dict(section(raw, ("metadata",)))
    for place in ("labels", "annotations"):
        found = section(raw, ("metadata", place))
        metadata[place] = {key: said for key, said in found.items() if key not in _OF_A_SET}
    return {**raw, "metadata": metadata}


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
