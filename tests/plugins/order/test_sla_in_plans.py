"""sla in a whole cycle: a job that is late is let in, goes first, and may hold what it was given."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from maniple.objects.meta import Object
from maniple.planner import Plan, Planner
from tests.support import cluster_of, group, node, pod, queue

NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)
KEY = "volcano.sh/sla-waiting-time"
ONE = {"cpu": "1", "memory": "1Gi"}


def born(hours_ago: int) -> str:
    return (NOW - timedelta(hours=hours_ago)).isoformat()


def planned(*objects: Object, actions: str, tiers: list[list[str]]) -> Plan:
    conf: dict[str, Any] = {
        "actions": actions,
        "tiers": [{"plugins": [{"name": name} for name in tier]} for tier in tiers],
    }
    return Planner(profile="volcano", conf=conf, options={"debug": True}).cycle(cluster_of(*objects), now=NOW)


@pytest.mark.parametrize(
    ("tiers", "expected"), [([["sla"], ["gang"]], set[str]()), ([["gang", "sla"]], {"default/other-0"})]
)
def test_a_late_job_holds_its_part_only_if_sla_is_asked_before_gang(
    tiers: list[list[str]], expected: set[str]
) -> None:
    """It needs two places and there is one: gang rejects, which counts unless an earlier tier has permitted."""
    plan = planned(
        node("n1", {"cpu": "1"}),
        queue("default"),
        group("late", 2, created=born(5), annotations={KEY: "1h"}),
        *(pod(f"late-{i}", ONE, group="late") for i in range(2)),
        group("other", 1, created=born(1)),
        pod("other-0", ONE, group="other"),
        actions="allocate",
        tiers=tiers,
    )
    assert set(plan.binds) == expected


def test_the_earlier_deadline_is_served_first_and_no_deadline_last() -> None:
    jobs = {"plain": ({}, 9), "soon": ({KEY: "6h"}, 5), "urgent": ({KEY: "1h"}, 3)}
    plan = planned(
        node("n1"),
        queue("default"),
        *(group(name, 1, created=born(age), annotations=notes) for name, (notes, age) in jobs.items()),
        *(pod(f"{name}-0", ONE, group=name) for name in jobs),
        actions="allocate",
        tiers=[["sla", "gang"]],
    )
    assert list(plan.binds) == ["default/urgent-0", "default/soon-0", "default/plain-0"]


def test_a_late_job_is_let_in_past_later_tiers_but_not_past_a_rejection_beside_it() -> None:
    def phase(tiers: list[list[str]], wait: str) -> str:
        plan = planned(
            node("n1", {"cpu": "1"}),
            queue("default"),
            group(
                "a", 1, phase="Pending", created=born(5), annotations={KEY: wait}, minResources={"cpu": "9"}
            ),
            actions="enqueue",
            tiers=tiers,
        )
        return plan.jobs["default/a"].phase

    assert phase([["sla"], ["overcommit"]], "1h") == "Inqueue"
    assert phase([["sla"], ["overcommit"]], "9h") == "Pending"
    assert phase([["sla", "overcommit"]], "1h") == "Pending"
