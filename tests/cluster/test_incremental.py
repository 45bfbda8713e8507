"""The same objects give the same model, whether they came at once or as a stream of edits."""

from enum import Enum
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.cluster import snapshot
from maniple.cluster.canonical import canonical
from maniple.cluster.check import validate
from maniple.cluster.cluster import Cluster
from maniple.cluster.facts import Dialect
from maniple.objects.meta import Object
from maniple.profiles.kai import KaiDialect, NodePool
from maniple.profiles.volcano import VolcanoDialect
from tests.cluster import kai_pools
from tests.cluster.pools import FAMILIES


class Edit(Enum):
    APPLY = 0
    DELETE = 1
    LOOK = 2  # a cycle happens in between: what was put off is worked out and remembered


Edits = list[tuple[Edit, Object]]
Families = dict[str, list[list[Object]]]
every_family = pytest.mark.parametrize("family", FAMILIES)
some_families = pytest.mark.parametrize("family", ["accounts", "terms", "volumes", "everything"])


@st.composite
def edits_of(draw: st.DrawFn, family: str, most: int, families: Families = FAMILIES) -> Edits:
    # The length first: left to themselves, lists are too short for one edit to undo what another did.
    edits: Edits = []
    for _ in range(draw(st.integers(0, most))):
        edit = draw(
            st.sampled_from([Edit.APPLY, Edit.APPLY, Edit.APPLY, Edit.DELETE, Edit.DELETE, Edit.LOOK])
        )
        there = surviving(edits) if edit is Edit.DELETE and draw(st.booleans()) else []
        edits.append((edit, draw(st.sampled_from(there or draw(st.sampled_from(families[family]))))))
    return edits


def surviving(edits: Edits) -> list[Object]:
    kept: dict[tuple[type, str], Object] = {}
    for edit, item in edits:
        if edit is Edit.APPLY:
            kept[type(item), item.key] = item
        elif edit is Edit.DELETE:
            kept.pop((type(item), item.key), None)
    return list(kept.values())


def edited(edits: Edits, dialect: Dialect | None = None) -> Cluster:
    cluster = Cluster(dialect or VolcanoDialect())
    for edit, item in edits:
        if edit is Edit.APPLY:
            cluster.apply(item)
        elif edit is Edit.DELETE:
            cluster.delete(item)
        else:
            snapshot.take(cluster)
    return cluster


@every_family
def test_every_object_comes_and_goes_without_a_trace(family: str) -> None:
    nothing = canonical(Cluster(VolcanoDialect()))
    for item in (item for pool in FAMILIES[family] for item in pool):
        cluster = Cluster.from_objects(VolcanoDialect(), [item])
        assert validate(cluster) == []
        assert validate(snapshot.take(cluster)) == []
        cluster.delete(item)
        assert validate(cluster) == []
        assert canonical(cluster) == nothing


@every_family
@given(st.data())
def test_edits_one_by_one_give_what_their_result_gives(family: str, data: st.DataObject) -> None:
    edits = data.draw(edits_of(family, 20))
    objects = data.draw(st.permutations(surviving(edits)))
    cluster = edited(edits)
    assert validate(cluster) == []
    assert canonical(cluster) == canonical(Cluster.from_objects(VolcanoDialect(), objects))


@some_families
@settings(max_examples=50)
@given(st.data())
def test_forgetting_pods_long_gone_changes_nothing(family: str, data: st.DataObject) -> None:
    edits = data.draw(edits_of(family, 20))
    with patch("maniple.cluster.classes._MANY_SPECS", 0):
        kept = canonical(edited(edits))
    assert kept == canonical(Cluster.from_objects(VolcanoDialect(), surviving(edits)))


@some_families
@settings(max_examples=50)
@given(st.data())
def test_columns_are_sums_over_tasks_after_every_edit(family: str, data: st.DataObject) -> None:
    cluster = Cluster(VolcanoDialect())
    for edit, item in data.draw(edits_of(family, 10)):
        if edit is Edit.DELETE:
            cluster.delete(item)
        else:
            cluster.apply(item)
        assert validate(cluster) == []
        assert validate(snapshot.take(cluster)) == []


@some_families
@settings(max_examples=50)
@given(st.data())
def test_deleting_everything_leaves_nothing(family: str, data: st.DataObject) -> None:
    edits = data.draw(edits_of(family, 10))
    cluster = edited(edits)
    for item in surviving(edits):
        cluster.delete(item)
    assert validate(cluster) == []
    assert canonical(cluster) == canonical(Cluster(VolcanoDialect()))


# -- KAI's objects: bind requests, claims, slices, and node pools that objects join and leave ------------------------

every_kai_family = pytest.mark.parametrize("family", kai_pools.FAMILIES)
DIALECTS = {
    "by default": KaiDialect(),
    "to the letter": KaiDialect(strict=True),
    "in a pool": KaiDialect(pool=NodePool(value="a")),
}
every_dialect = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)


@every_dialect
def test_every_object_of_kai_comes_and_goes_without_a_trace(dialect: KaiDialect) -> None:
    nothing = canonical(Cluster(dialect))
    for item in (item for pool in kai_pools.FAMILIES["everything"] for item in pool):
        cluster = Cluster.from_objects(dialect, [item])
        assert validate(cluster) == []
        assert validate(snapshot.take(cluster)) == []
        cluster.delete(item)
        assert validate(cluster) == []
        assert canonical(cluster) == nothing


@every_kai_family
@every_dialect
@settings(max_examples=40)
@given(st.data())
def test_edits_of_kai_objects_one_by_one_give_what_their_result_gives(
    family: str, dialect: KaiDialect, data: st.DataObject
) -> None:
    edits = data.draw(edits_of(family, 20, kai_pools.FAMILIES))
    objects = data.draw(st.permutations(surviving(edits)))
    cluster = edited(edits, dialect)
    assert validate(cluster) == []
    assert validate(snapshot.take(cluster)) == []
    assert canonical(cluster) == canonical(Cluster.from_objects(dialect, objects))
