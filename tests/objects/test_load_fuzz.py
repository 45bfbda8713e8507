"""However an object is damaged, loading gives the object or a problem: never an exception, never silence."""

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.objects import selectors
from maniple.objects.core import Pod
from maniple.objects.load import load_batch
from maniple.objects.requests import nonzero_requests, pod_requests
from tests.fuzz.values import places
from tests.objects.samples import SAMPLES

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**31, 2**63, -(2**63) - 1, 10**50, -1, 0]),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["", "1e999999999", "-1", "1 Gi", "\ud800", "a\nb", "List", "Exists", "a" * 300]),
    st.binary(max_size=2),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.text(max_size=4), st.integers()), inner, max_size=3),
    ),
    max_leaves=6,
)


@st.composite
def damaged(draw: st.DrawFn) -> dict[Any, Any]:
    raw: dict[Any, Any] = copy.deepcopy(draw(st.sampled_from(SAMPLES)))
    for _ in range(draw(st.integers(1, 3))):
        spots = places(raw)
        if not spots:
            break
        part, key = spots[draw(st.integers(0, len(spots) - 1))]
        action = draw(st.sampled_from(["replace", "delete", "null", "swap", "add"]))
        if action == "delete":
            del part[key]
        elif action == "null":
            part[key] = None
        elif action == "swap":
            other, other_key = spots[draw(st.integers(0, len(spots) - 1))]
            part[key] = copy.deepcopy(other[other_key])
        elif action == "add" and isinstance(part, dict):
            part[draw(st.one_of(st.text(max_size=3), st.integers()))] = draw(VALUES)
        else:
            part[key] = draw(VALUES)
    return raw


def use(built: object) -> None:
    """What later code does with a valid pod; it may not fail."""
    if not isinstance(built, Pod):
        return
    assert all(amount >= 0 for amount in pod_requests(built).values())
    cpu, memory = nonzero_requests(built)
    assert cpu >= 0
    assert memory >= 0
    affinity = built.spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
        if required is not None:
            selectors.node_selector_matches(required, {"zone": "a", "size": "4"}, "n1")


@settings(max_examples=400)
@given(damaged())
def test_a_damaged_object_is_loaded_or_reported(raw: dict[Any, Any]) -> None:
    before = copy.deepcopy(raw)
    loaded = load_batch([raw])
    assert len(loaded.objects) + len(loaded.problems) + sum(loaded.ignored.values()) >= (
        0 if "items" in raw else 1
    )
    for built in loaded.objects:
        assert built.metadata.name
        assert built.key.count("/") >= built.namespaced
        use(built)
    for problem in loaded.problems:
        assert problem.object
        assert problem.message
        assert str(problem).isprintable()
    assert repr(raw) == repr(before)


@given(st.lists(VALUES, max_size=4))
def test_a_batch_of_anything_is_survived(values: list[Any]) -> None:
    loaded = load_batch(values)
    assert loaded.objects == []
    assert len(loaded.problems) + sum(loaded.ignored.values()) <= len(values)


@settings(max_examples=200)
@given(st.lists(damaged(), max_size=3))
def test_the_neighbours_of_a_damaged_object_are_unharmed(raws: list[dict[Any, Any]]) -> None:
    good = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "good"}}
    objects = load_batch([good, *raws, good]).objects
    assert objects[0] == objects[-1]
    assert objects[0].key == "default/good"
