"""Gangs that are bound in part: which members are given back, and when."""

from datetime import UTC, datetime, timedelta

from maniple.framework.plans.plan import Plan
from maniple.objects.meta import Object
from tests.plugins.planning import planned
from tests.support import group, node, pod, queue

BOUND = datetime(2026, 1, 1, tzinfo=UTC)


def member(number: int, on: str = "", *, created: str = "") -> Object:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": BOUND.isoformat()}
    status = {"phase": "Pending", "conditions": [scheduled] if on else []}
    return pod(f"g-{number}", {"cpu": "2"}, group="g", on=on, status=status, created=created)


def after(seconds: float, *members: Object, minimum: int = 2) -> Plan:
    objects = [node("n1", {"cpu": "2"}), queue("default"), group("g", minimum), *members]
    return planned(objects, "predicates", now=BOUND + timedelta(seconds=seconds))


def test_members_on_a_node_that_is_gone_are_given_back_and_the_others_stay() -> None:
    plan = after(60, member(0, "n1"), member(1, "gone"))
    (eviction,) = plan.evicted
    assert eviction.pod == "default/g-1"
    assert eviction.why == "its node gone is gone, and the pod has not started for 60 s"
    assert after(59, member(0, "n1"), member(1, "gone")).evictions == []


def test_the_time_begins_again_with_a_new_member() -> None:
    created = (BOUND + timedelta(seconds=50)).isoformat()
    assert after(100, member(0, "n1"), member(1, created=created)).evictions == []
    assert after(110, member(0, "n1"), member(1, created=created)).evictions == ["default/g-0"]


def test_a_gang_whose_missing_pods_do_not_exist_yet_is_left_alone() -> None:
    assert after(3600, member(0, "n1")).evictions == []


def test_a_whole_gang_may_take_any_time_to_start() -> None:
    plan = after(3600, member(0, "n1"), minimum=1)
    assert plan.evictions == []
    assert not plan.time_matters


def test_while_a_gang_is_half_time_matters() -> None:
    assert after(1, member(0, "n1"), member(1)).time_matters
