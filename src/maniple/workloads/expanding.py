"""The pods that controllers would create for manifests, before there is a cluster to create them."""

from collections.abc import Iterable, Iterator
from typing import Any

from maniple.workloads.fields import fail
from maniple.workloads.kind import Find
from maniple.workloads.kinds import TABLE, Table, kind_of
from maniple.workloads.model import Owner, Raw

MOST_OBJECTS = 100_000  # of one manifest
_DEEPEST = 8  # owners of owners


def nothing_else(owner: Owner) -> Raw | None:
    """There are no objects but the manifest."""
    return None


def expanded(owner: Raw, table: Table = TABLE, find: Find = nothing_else) -> list[dict[str, Any]]:
    """All objects below a manifest, owners before what they own. Raises `FieldError` if one cannot be read.

    `find` has the other objects that a controller reads, such as the runtime of a TrainJob.
    """
    made: list[dict[str, Any]] = []
    for one in _below([owner], table, find, 0):
        made.append(one)
        if len(made) > MOST_OBJECTS:
            raise fail(owner, ("spec",), f"asks for more than {MOST_OBJECTS:,} pods")
    return made


def _below(owners: Iterable[Raw], table: Table, find: Find, depth: int) -> Iterator[dict[str, Any]]:
    for owner in owners:
        kind = kind_of(owner, table)
        if kind is None:
            continue
        if depth > _DEEPEST:
            raise fail(owner, ("metadata", "ownerReferences"), f"has more than {_DEEPEST} owners above it")
        children = kind.children(owner) if kind.children_with is None else kind.children_with(owner, find)
        for one in children:
            yield one
            yield from _below([one], table, find, depth + 1)
