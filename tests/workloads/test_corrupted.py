"""A malformed owner: every value of every example is corrupted in turn, and nothing but a named field comes of it."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from maniple.workloads.fields import written
from maniple.workloads.model import FieldError
from tests.workloads.support import EXAMPLES, example, members

FILES = sorted(path.name for path in EXAMPLES.glob("*.yaml"))
WRONG: tuple[Any, ...] = (None, True, -1, 7, 10**9, 0.5, "", "x", [], ["x"], [None], {}, {"x": 7}, {1: 2})


def paths(found: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values below."""
    steps = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for step, below in steps:
        # A controller passes on what is in a pod; the scheduler reads it there.
        if step != "containers":
            yield (*above, step)
            yield from paths(below, (*above, step))


def corrupted(found: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    copy = deepcopy(found)
    inner = copy
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = wrong
    return copy


def complaint(manifests: list[dict[str, Any]]) -> FieldError | None:
    try:
        members(*manifests)
    except FieldError as error:
        return error
    return None


@pytest.mark.parametrize("file", FILES)
def test_nothing_but_a_named_field_comes_of_a_wrong_value(file: str) -> None:
    manifests = example(file)
    for path in paths(manifests):
        if path[1:] in [(), ("apiVersion",), ("kind",), ("metadata",), ("metadata", "name")]:
            continue  # what every object has, checked where it is read
        for wrong in WRONG:
            error = complaint(corrupted(manifests, path, wrong))
            assert error is None or (error.path and not error.title.startswith("None"))


@pytest.mark.parametrize("file", FILES)
def test_the_field_that_is_named_is_the_wrong_one(file: str) -> None:
    manifests = example(file)
    places = [path for path in paths(manifests) if path[1:2] == ("spec",)]
    found = [(path, complaint(corrupted(manifests, path, 10**9))) for path in places]
    named = [(path, error) for path, error in found if error is not None]
    assert named
    for path, error in named:
        assert error.path.endswith(written(path[-1:])), (path, str(error))
