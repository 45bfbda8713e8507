"""Manifests with one value that is wrong."""

import copy
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

Path = tuple[str | int, ...]
ABSENT = object()
CORRUPTIONS = [
    *("x", "", 1.5, True, -1, 0, 10**12, None),
    *([], {}, ["x"], {"x": "y"}, {1: 2}, [[]], [None], ABSENT),
]


def corrupted(manifest: dict[str, Any], path: Path, wrong: object) -> dict[str, Any]:
    """The manifest with another value at a path; what is not there on the way is created."""
    changed = copy.deepcopy(manifest)
    place: Any = changed
    for step, following in pairwise(path):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(step, int) and len(place) <= step:
            place.append(empty)
        elif isinstance(step, str) and not isinstance(place.get(step), type(empty)):
            place[step] = empty
        place = place[step]
    last: Any = path[-1]
    if wrong is not ABSENT:
        if isinstance(last, int) and len(place) <= last:
            place.append(wrong)
        else:
            place[last] = wrong
    elif isinstance(last, int):
        del place[last:]
    else:
        place.pop(last, None)
    return changed


def paths_in(found: Any, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    inner = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for step, below in inner:
        yield from paths_in(below, (*path, step))
