"""Protection from end to end: who is preempted when somebody is protected, in both ways to evict."""

from datetime import UTC, datetime
from typing import Any

import pytest

from maniple.objects.meta import Object
from maniple.plugins.feasibility.tdm import PREEMPTABLE, ZONE
from maniple.plugins.victims.cdp import COOLDOWN
from tests.plugins.planning import planned
from tests.plugins.victims.test_pdb import WEB, budget
from tests.support import group, node, pod, priority_class, queue

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BOTH = pytest.mark.parametrize("strict", [False, True])


def low(name: str, on: str = "n1", **more: Any) -> Object:
    """A pod of a job of its own, elastic, so that gangs are no reason to spare anybody."""
    return pod(name, {"cpu": "2"}, group=f"low-{name}", on=on, uid=name, **more)


def crowded(*victims: Object, wanted: int = 1) -> list[Object]:
    """A node of 8 cpu, full; a job of higher priority that wants 2 for each of its pods."""
    asking = [
        pod(f"high{n}", {"cpu": "2"}, group="high", uid=f"high{n}", annotations={PREEMPTABLE: "false"})
        for n in range(wanted)
    ]
    return [
        node("n1"),
        queue("default"),
        priority_class("high", 100),
        *(group(f"low-{name}", 0) for name in "abcde"),
        group("high", wanted, priorityClassName="high"),
        *victims,
        *asking,
    ]


def scheduled(minute: int) -> dict[str, Any]:
    at = f"2026-01-01T11:{minute:02}:00Z"
    return {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at}]}


def evicted(objects: list[Object], *plugins: Any, strict: bool) -> list[str]:
    plan = planned(objects, "priority", *plugins, actions="preempt", now=NOON, strict=strict)
    return sorted(key.partition("/")[2] for key in plan.evictions)


@BOTH
def test_a_pod_in_its_cooldown_is_passed_over(strict: bool) -> None:
    ten = {COOLDOWN: "10m"}
    pods = [
        low(name, labels=ten, status=scheduled(minute))
        for name, minute in zip("abcd", (55, 56, 40, 57), strict=True)
    ]
    assert evicted(crowded(*pods), "cdp", strict=strict) == ["c"]
    assert len(evicted(crowded(*pods, wanted=2), "cdp", strict=False)) == 0


@BOTH
def test_a_budget_is_kept(strict: bool) -> None:
    pods = [low(name, labels=WEB) for name in "abcd"]
    assert len(evicted([*crowded(*pods), budget("b", 1)], "pdb", strict=strict)) == 1
    assert evicted([*crowded(*pods), budget("b", 0)], "pdb", strict=strict) == []


def test_a_budget_holds_for_a_whole_session_but_in_volcano_only_for_a_question() -> None:
    pods = [low(name, labels=WEB) for name in "abcd"]
    for allowed, taken in ((1, 0), (2, 2)):
        assert len(evicted([*crowded(*pods, wanted=2), budget("b", allowed)], "pdb", strict=False)) == taken
    assert len(evicted([*crowded(*pods, wanted=2), budget("b", 1)], "pdb", strict=True)) == 2


@BOTH
def test_time_division_takes_from_preemptable_pods_outside_zones(strict: bool) -> None:
    entry = {"name": "tdm", "arguments": {"tdm.revocable-zone.day": "08:00-20:00"}}
    pods = [
        low("a", annotations={PREEMPTABLE: "false"}),
        low("b"),
        low("c", annotations={PREEMPTABLE: "false"}),
    ]
    zone = [node("n2", labels={ZONE: "day"}), low("d", on="n2")]
    filler = low("e", annotations={PREEMPTABLE: "false"})
    assert evicted([*crowded(*pods, filler), *zone], entry, strict=strict) == ["b"]


@BOTH
def test_shuffle_clears_closed_zones_within_budgets(strict: bool) -> None:
    """In Volcano the budgets name victims of their own: whoever they do not protect."""
    entry = {"name": "tdm", "arguments": {"tdm.revocable-zone.night": "20:00-06:00"}}
    pods = [
        low("a", labels=WEB),
        low("b", on="n2", labels=WEB),
        low("c", on="n2", labels=WEB),
        low("d", labels=WEB),
    ]
    objects = [*crowded(*pods, wanted=0), node("n2", labels={ZONE: "night"}), budget("web", 1)]
    plan = planned(objects, entry, "pdb", actions="shuffle", now=NOON, strict=strict)
    found = sorted(key.partition("/")[2] for key in plan.evictions)
    assert found == (["a", "b", "c"] if strict else ["b"])
