"""Lists of objects, as `kubectl get` prints them, one inside the other if need be."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_DEEPEST = 64
# Beside the items of a List that a scheduler wrote: what to plan them with (see `journal/moment.py`).
SETTINGS = "maniple"


def flattened(raws: Iterable[Any]) -> Iterator[Any]:
    """Every object that is in no list, and the items of all lists; malformed lists are left to `load`."""
    for raw in raws:
        yield from _items(raw, 0)


def _items(raw: Any, depth: int) -> Iterator[Any]:
    kind = raw.get("kind") if type(raw) is dict or isinstance(raw, Mapping) else None
    if not isinstance(kind, str) or not kind.endswith("List") or depth > _DEEPEST:
        yield raw
        return
    items = raw.get("items")
    if not isinstance(items, list | tuple):
        yield raw
        return
    # The API server leaves kind and version out of the items of a PodList: they are the list's own.
    implied = {"apiVersion": raw.get("apiVersion"), "kind": kind.removesuffix("List")}
    for item in items:
        bare = implied["kind"] and isinstance(item, Mapping) and "kind" not in item
        yield from _items({**implied, **item} if bare else item, depth + 1)


def has_settings(document: object) -> bool:
    """Whether this is a List that says what to plan its items with."""
    return (
        isinstance(document, Mapping)
        and isinstance(document.get(SETTINGS), Mapping)
        and isinstance(document.get("items"), list)
    )
