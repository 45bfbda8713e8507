"""Amounts in the status of queues: compared by value, and written so that none is left over."""

from collections.abc import Mapping
from typing import Any

from maniple.objects.meta import ResourceList
from maniple.objects.quantity import parse


def amounts(known: ResourceList, new: Mapping[str, str] | None) -> ResourceList:
    """The new amounts; the known ones where they are equal but written differently, or none are given."""
    if new is None or (
        known.keys() == new.keys() and all(parse(known[k]) == parse(v) for k, v in new.items())
    ):
        return known
    return dict(new)


def patched(before: ResourceList, after: ResourceList) -> dict[str, Any]:
    """The part of a merge patch: what is no longer there is removed."""
    return {**after, **dict.fromkeys(before.keys() - after.keys())}
