"""How large the containers of a running scheduler are, found by walking from it, so that none is forgotten."""

from collections import deque
from collections.abc import Iterator, Mapping, Sized
from typing import Any

import msgspec
import numpy as np

_DEEPEST = 7
_CONTAINERS = (dict, list, set, deque, np.ndarray)


def sizes(root: object) -> dict[str, int]:
    """By path: the length of every container that is reached through objects of Maniple's."""
    found: dict[str, int] = {}
    seen: set[int] = set()
    todo = deque([("", root, 0)])
    while todo:
        path, thing, depth = todo.popleft()
        if isinstance(thing, _CONTAINERS):
            # What several hold is counted for each of them: which one comes first may differ from time to time.
            found[path] = thing.size if isinstance(thing, np.ndarray) and not thing.ndim else len(thing)
        if id(thing) in seen or depth == _DEEPEST:
            continue
        seen.add(id(thing))
        if isinstance(thing, dict) and len(thing) < 50:
            todo.extend((f"{path}[]", value, depth + 1) for value in thing.values() if _is_ours(value))
        elif _is_ours(thing):
            todo.extend((f"{path}.{name}", value, depth + 1) for name, value in _attributes(thing))
    return found


def _is_ours(thing: object) -> bool:
    """An object with a life of its own, not a value that came from the cluster."""
    kind = type(thing)
    return kind.__module__.startswith("maniple.") and not isinstance(thing, msgspec.Struct | Sized | type)


def _attributes(thing: Any) -> Iterator[tuple[str, object]]:
    names = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    for name in dict.fromkeys([*vars(thing)] if hasattr(thing, "__dict__") else names):
        try:
            yield name, getattr(thing, name)
        except AttributeError:
            continue


def grown(before: Mapping[str, int], after: Mapping[str, int], more: int = 0) -> dict[str, tuple[int, int]]:
    """What is larger by more than so many."""
    return {
        path: (before.get(path, 0), size) for path, size in after.items() if size > before.get(path, 0) + more
    }
