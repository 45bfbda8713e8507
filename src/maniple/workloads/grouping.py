"""The group that a pod belongs to: the highest of its owners that is known decides, by the table of kinds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maniple.workloads.fields import sections, text
from maniple.workloads.grove import gang_reference
from maniple.workloads.kind import Find, any_owner
from maniple.workloads.kinds import TABLE, Table, kind_of
from maniple.workloads.model import Chain, Member, Owner, Raw
from maniple.workloads.native import native_reference
from maniple.workloads.wishes import KEYS, said_minimum

DEEPEST = 8  # owners above a pod; a circle of references ends here, too
POD = ("", "Pod")
_NO_NAMESPACE: Raw = {}


@dataclass(frozen=True, slots=True)
class Owners:
    """The owners of a pod, the nearest first; `missing` is one that is named and not there."""

    found: tuple[Raw, ...]
    missing: Owner | None = None


def owners_of(pod: Raw, find: Find) -> Owners:
    """Follow the references from owner to owner. The group that a pod names itself comes before its owners."""
    found: list[Raw] = []
    named = native_reference(pod) or gang_reference(pod)
    if named is not None:
        group = find(named)
        if group is None:
            return Owners((), named)
        found.append(group)
    below = pod
    while len(found) < DEEPEST:
        owner = reference_of(below)
        if owner is None:
            return Owners(tuple(found))
        above = find(owner)
        if above is None:
            return Owners(tuple(found), owner)
        found.append(above)
        below = above
    return Owners(tuple(found))


def reference_of(raw: Raw) -> Owner | None:
    """The owner that controls an object, or else its first."""
    references = sections(raw, ("metadata", "ownerReferences"))
    if not references:
        return None
    chosen = next((one for one in references if one.get("controller") is True), references[0])
    return Owner(
        api_version=text(chosen, ("apiVersion",)),
        kind=text(chosen, ("kind",)),
        name=text(chosen, ("name",)),
        uid=text(chosen, ("uid",)),
    )


def member(
    pod: Raw,
    owners: Sequence[Raw],
    namespace: Raw = _NO_NAMESPACE,
    table: Table = TABLE,
    known: dict[object, Any] | None = None,
) -> Member:
    """The group of a pod with these owners, the nearest first. Raises `FieldError` for an owner that cannot be read.

    `known`: what was found out with pods of the same deciding owner, priority class and wishes; more is added to it.
    """
    if "kind" not in pod:  # as in the items of a list
        pod = {"apiVersion": "v1", "kind": "Pod", **pod}
    number = _deciding(owners, table)
    chain = Chain(pod, owners[:number], owners[number:], namespace, {} if known is None else known)
    kind = kind_of(chain.top, table)
    return any_owner(chain) if kind is None else kind.member(chain)


@dataclass(frozen=True, slots=True)
class Reads:
    """What makes a difference to the group of a pod: labels and annotations, whether its name does, and which owner
    decides, counted from the nearest; 0 if it is the pod itself.
    """

    keys: frozenset[str]
    name: bool
    deciding: int

    @classmethod
    def of(cls, owners: Sequence[Raw], table: Table = TABLE) -> "Reads":
        """Of pods with these owners."""
        number = _deciding(owners, table)
        kind = kind_of(owners[number - 1], table) if number else table.get(POD)
        if kind is None:
            return cls(KEYS, False, number)
        return cls(KEYS.union(kind.reads_of_pod), kind.reads_pod_name or not number, number)


def _deciding(owners: Sequence[Raw], table: Table) -> int:
    """How many of the owners are left without those above the one that decides.

    It is the highest that is in the table, or that says a minimum: the pods of a gang stay one, whatever is above it.
    """
    kinds = [kind_of(owner, table) for owner in owners]
    for number, kind in enumerate(kinds, 1):
        if kind is not None and kind.ends_chain:
            return number
    for number in range(len(owners), 0, -1):
        kind = kinds[number - 1]
        if said_minimum(owners[number - 1]) if kind is None else not kind.leaves_to_others:
            return number
    return next(
        (number for number in range(len(owners), 1, -1) if kinds[number - 1] is None), min(len(owners), 1)
    )
