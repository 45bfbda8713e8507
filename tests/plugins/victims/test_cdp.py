"""cdp: a pod that was scheduled a moment ago is no victim."""

from datetime import UTC, datetime
from typing import Any

import pytest

from maniple.objects.meta import Object
from maniple.plugins.victims.cdp import COOLDOWN, Cooldown
from tests.plugins.opening import names, session_on, task, tasks
from tests.support import node, pod

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def scheduled(name: str, minute: int, *, status: str = "True", **more: Any) -> Object:
    condition = {
        "type": "PodScheduled",
        "status": status,
        "lastTransitionTime": f"2026-01-01T11:{minute:02}:00Z",
    }
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T11:59:59Z"}
    return pod(name, on="n1", status={"conditions": [ready, condition]}, **more)


def victims(*pods: Object, now: datetime | None = NOON) -> list[str]:
    session = session_on([node("n1"), *pods], now=now)
    plugin = Cooldown(session, {})
    candidates = tasks(session, *(one.metadata.name for one in pods))
    asked = task(session, pods[0].metadata.name)
    assert (plugin.preemptable(asked, candidates) == plugin.reclaimable(asked, candidates)).all()
    return names(session, plugin.preemptable(asked, candidates))


def test_the_cooldown_begins_when_the_pod_was_scheduled() -> None:
    ten = {COOLDOWN: "10m"}
    assert victims(
        scheduled("warm", 51, labels=ten), scheduled("cool", 50, labels=ten), scheduled("any", 59)
    ) == [
        "cool",
        "any",
    ]


def test_the_label_comes_before_the_annotation() -> None:
    by_annotation = scheduled("annotated", 55, annotations={COOLDOWN: "10m"})
    both = scheduled("both", 55, labels={COOLDOWN: "1m"}, annotations={COOLDOWN: "10m"})
    assert victims(by_annotation, both) == ["both"]


def test_only_running_pods_that_are_known_to_be_scheduled_are_protected() -> None:
    ten = {COOLDOWN: "10m"}
    assert victims(
        scheduled("pending", 55, labels=ten, phase="Pending"),
        scheduled("unscheduled", 55, status="False", labels=ten),
        pod("silent", on="n1", labels=ten),
        scheduled("running", 55, labels=ten),
    ) == ["pending", "unscheduled", "silent"]


def test_without_a_clock_every_cooldown_still_runs() -> None:
    assert victims(scheduled("old", 0, labels={COOLDOWN: "1s"}), scheduled("none", 0), now=None) == ["none"]


@pytest.mark.parametrize("text", ["soon", "", "10"])
def test_an_invalid_cooldown_protects_no_pod_and_is_reported(text: str) -> None:
    session = session_on([node("n1"), scheduled("p", 59, labels={COOLDOWN: text})], now=NOON)
    plugin = Cooldown(session, {})
    for _ in range(2):
        assert names(session, plugin.preemptable(0, tasks(session, "p"))) == ["p"]
    assert len(session.warnings) == 1
    assert "default/p" in session.warnings[0]


def test_it_takes_no_arguments() -> None:
    session = session_on([node("n1")])
    Cooldown(session, {"cooldown": "1m"})
    assert len(session.warnings) == 1
