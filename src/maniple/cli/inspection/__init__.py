"""What is doubtful in the objects of the input, for `plan`, `replay` and `run`; read-only, nothing is changed.

None of it stops a plan: an invalid object is refused where it is loaded (`maniple.objects`), and what remains are
fields, values and names that are legal and yet hardly intended. Every remark names the object, the field and the
nearest right form; `remarks.lines_of` adds file and line and sums up objects that are alike.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maniple.cli.inspection.annotations import AnnotationSpelling
from maniple.cli.inspection.fields import misspelt
from maniple.cli.inspection.references import References
from maniple.cli.inspection.remarks import Remark
from maniple.cli.inspection.values import part, value_remarks
from maniple.framework.configuration.document import quoted
from maniple.objects.core import Pod
from maniple.objects.kai import KaiPodGroup, KaiQueue
from maniple.objects.load import struct_of, title_of
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue

# Kinds of the other system, which a profile does not read.
_FOREIGN: Mapping[str, tuple[type[Object], ...]] = {
    "volcano": (KaiPodGroup, KaiQueue),
    "kai": (VolcanoPodGroup, VolcanoQueue),
}


def inspect(
    objects: Sequence[Mapping[str, Any]], profile: str, schedulers: Sequence[str], default_queue: str
) -> Iterator[Remark]:
    """Everything that is doubtful, in the order of the objects."""
    annotations = AnnotationSpelling()
    kinds = [struct_of(raw) for raw in objects]
    by_kind: dict[type[Object], list[Mapping[str, Any]]] = {}
    for raw, kind in zip(objects, kinds, strict=True):
        if kind is not None:
            by_kind.setdefault(kind, []).append(raw)
    references = References(by_kind, schedulers, default_queue, one_tree=profile not in _FOREIGN)
    owners: set[str] = set()
    foreign = _FOREIGN.get(profile, ())
    for position, (raw, kind) in enumerate(zip(objects, kinds, strict=True)):
        if kind is None or kind in foreign:
            continue
        found: list[tuple[str, str]] = []
        owner = _owner(raw) if kind is Pod else ""
        if owner not in owners and not (kind is Pod and _is_placed(raw)):
            found += [
                (path, f"unknown field, ignored; did you mean {quoted(meant)}?")
                for path, meant in misspelt(raw, kind)
            ]
            found += annotations.remarks(part(raw, "metadata"))
            found += value_remarks(raw, kind)
            if owner:
                owners.add(owner)
        found += references.remarks(raw, kind)
        if found:
            title = title_of(raw)
            yield from (Remark(position, title, field, message) for field, message in found)


def _is_placed(raw: Mapping[str, Any]) -> bool:
    """Whether a cluster has accepted and bound the pod: whatever it says has been read."""
    return bool(part(raw, "metadata").get("uid") and part(raw, "spec").get("nodeName"))


def _owner(raw: Mapping[str, Any]) -> str:
    """The owner of a pod that has been in a cluster: its pods are made from one template, and one is enough."""
    metadata = part(raw, "metadata")
    listed = metadata.get("ownerReferences")
    return (
        str(part(listed[0]).get("uid") or "")
        if metadata.get("uid") and listed and type(listed) is list
        else ""
    )
