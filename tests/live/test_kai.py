"""The dialect of KAI by itself: kinds, patches, and what is watched for."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from maniple.live import kai_groups
from maniple.live.dialects import dialect_of
from maniple.live.kai import Kai
from maniple.objects.core import ConfigMap
from maniple.objects.kai import Explanation, KaiPodGroup, ResourcesStatus, SchedulingShard
from maniple.objects.load import load
from maniple.objects.meta import Object
from tests.kai_support import group

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 1, 13, tzinfo=UTC)
WHY = (Explanation(reason="PodSchedulingErrors", message="full"),)
LAST_START = "kai.scheduler/last-start-timestamp"
STALE_SINCE = "kai.scheduler/stale-podgroup-timestamp"


def a_group(**annotations: str) -> KaiPodGroup:
    made = group("train", 2, uid="u", annotations=annotations)
    assert isinstance(made, KaiPodGroup)
    return made


def waiting(before: KaiPodGroup, message: str, when: datetime = NOON, pool: str = "default") -> KaiPodGroup:
    return kai_groups.with_condition(before, pool, message, WHY, when)


def test_the_same_words_leave_a_group_as_it_is_and_others_take_their_place() -> None:
    first = waiting(a_group(), "full")
    assert waiting(first, "full", LATER) is first
    second = waiting(first, "fuller", LATER)
    (told,) = second.status.scheduling_conditions
    assert (told.message, told.transition_id, told.last_transition_time) == ("fuller", "2", LATER)


def test_a_transition_of_thousands_of_digits_is_not_counted_on() -> None:
    first = waiting(a_group(), "full")
    (told,) = first.status.scheduling_conditions
    hostile = replace(told, transition_id="9" * 5000)
    second = waiting(
        replace(first, status=replace(first.status, scheduling_conditions=(hostile,))), "fuller", LATER
    )
    assert second.status.scheduling_conditions[-1].transition_id == "1"


def test_a_condition_of_the_own_pool_that_is_not_the_last_becomes_it() -> None:
    both = waiting(waiting(a_group(), "full"), "full", pool="b")
    again = waiting(both, "full", LATER)
    told = [(one.node_pool, one.transition_id) for one in again.status.scheduling_conditions]
    assert told == [("b", "2"), ("default", "3")]


def test_only_what_differs_is_patched_and_each_where_it_lies() -> None:
    dialect, before = Kai(), a_group(**{LAST_START: "x", "theirs": "y"})
    assert list(dialect.group_patches(before, before)) == []
    told = waiting(before, "full")
    (patch,) = dialect.group_patches(before, told)
    assert patch.subresource is True
    (condition,) = patch.body["status"]["schedulingConditions"]
    assert condition["lastTransitionTime"] == "2026-01-01T12:00:00Z"
    assert list(condition["reasons"]) == [{"reason": "PodSchedulingErrors", "message": "full"}]
    broken = a_group(**{STALE_SINCE: "z", "theirs": "y"})
    (patch,) = dialect.group_patches(before, broken)
    assert patch.subresource is False
    assert patch.body == {"metadata": {"uid": "u", "annotations": {LAST_START: None, STALE_SINCE: "z"}}}


def test_what_others_wrote_meanwhile_stays() -> None:
    dialect = Kai()
    after = waiting(a_group(**{LAST_START: "x"}), "full")
    seen = replace(
        a_group(theirs="new"),
        status=replace(a_group().status, resources_status=ResourcesStatus(requested={"cpu": "1"})),
    )
    adopted = dialect.adopted(seen, after)
    assert isinstance(adopted, KaiPodGroup)
    assert adopted.metadata.annotations == {"theirs": "new", LAST_START: "x"}
    assert adopted.status.resources_status == seen.status.resources_status
    assert adopted.status.scheduling_conditions == after.status.scheduling_conditions
    assert dialect.adopted(adopted, after) is adopted


def test_new_messages_are_distinguished_from_what_matters() -> None:
    dialect, first = Kai(), waiting(a_group(), "1 node")
    assert dialect.differ_in_messages_only(first, waiting(first, "2 nodes"))
    assert not dialect.differ_in_messages_only(a_group(), first)
    assert not dialect.differ_in_messages_only(
        first, replace(first, metadata=a_group(**{STALE_SINCE: "z"}).metadata)
    )


def test_config_maps_are_watched_for_predicates_only_and_the_shard_if_there_is_one() -> None:
    assert ConfigMap not in Kai().kinds
    assert ConfigMap in Kai(more_kinds=(ConfigMap,)).kinds
    assert SchedulingShard not in Kai().kinds
    assert SchedulingShard in Kai(shard="a").kinds


def shard(name: str, value: str) -> Object:
    raw = {"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "metadata": {"name": name}}
    return load({**raw, "spec": {"partitionLabelValue": value}})


def test_a_shard_that_changes_or_goes_is_reported() -> None:
    dialect = Kai(shard="a")
    assert dialect.warning(shard("a", "x"), gone=False) == ""
    assert dialect.warning(shard("a", "x"), gone=False) == ""
    assert dialect.warning(shard("b", "y"), gone=False) == ""
    assert "has changed since the start" in dialect.warning(shard("a", "y"), gone=False)
    assert "is gone" in dialect.warning(shard("a", "x"), gone=True)


@pytest.mark.parametrize(
    ("profile", "bind", "message"),
    [
        ("kai", "later", "unknown value 'later'"),
        ("volcano", "request", "cannot be set with the profile 'volcano'"),
        ("maniple", "direct", "cannot be set with the profile 'maniple'"),
        ("nomad", "", "can be planned, but not run"),
    ],
)
def test_a_wrong_way_of_binding_is_named(profile: str, bind: str, message: str) -> None:
    options: dict[str, Any] = {}
    with pytest.raises(ValueError, match=message):
        dialect_of(profile, options, (), bind)
