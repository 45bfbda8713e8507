"""The printed plan: a row a gang, every reason, and values that programs can read back."""

import io
import json
from typing import Any

import pytest
import yaml
from rich.console import Console

from maniple.cli.render import NODE_ROWS, bar, bounded, plan_json, plan_yaml, print_plan
from maniple.framework.plans.outcome import Eviction
from tests.cli.plans import Node, Queue, Task, gang_plan, make_plan


def printed(plan: Any, jobs_of: dict[str, str], everything: bool = False) -> str:
    out = io.StringIO()
    print_plan(plan, jobs_of, bounded(Console(file=out, highlight=False)), everything)
    return out.getvalue()


def test_a_gang_is_printed_as_one_row() -> None:
    text = printed(*gang_plan())
    (row,) = [line for line in text.splitlines() if "ml/train" in line]
    assert row.split() == ["ml/train", "research", "8", "node-0", "×4,", "node-1", "×4"]


def test_every_task_is_printed_on_demand() -> None:
    text = printed(*gang_plan(), everything=True)
    assert all(f"ml/train-{index}" in text for index in range(8))


def test_what_waits_is_printed_with_its_reason() -> None:
    text = printed(*gang_plan())
    (row,) = [line for line in text.splitlines() if line.startswith("ml/big")]
    assert "0/2" in row
    assert "Insufficient nvidia.com/gpu" in row


def test_the_headline_counts() -> None:
    assert printed(*gang_plan()).splitlines()[0] == "8 tasks bound, 1 job waits; 2 nodes, 1 queue."


def test_evictions_are_printed_in_order() -> None:
    plan, jobs_of = gang_plan()
    for name in ("second", "first"):
        gone = Eviction(f"ml/{name}-0", f"ml/{name}", "", "preempt", "ml/train", node="node-0")
        plan.evicted = (*plan.evicted, gone)
        plan.tasks[gone.pod] = Task("Releasing", "node-0", reason="preempt: makes room", job=gone.job)
    rows = [line.split() for line in printed(plan, jobs_of).splitlines() if "makes room" in line]
    assert [row[0] for row in rows] == ["ml/second", "ml/first"]
    assert rows[0][1:] == ["-", "1", "node-0", "ml/train", "preempt:", "makes", "room"]


def test_nothing_at_all_prints_only_the_headline() -> None:
    assert printed(make_plan(), {}).strip() == "0 tasks bound, 0 jobs wait; 0 nodes, 0 queues."


def test_many_nodes_are_cut_and_the_cut_is_reported() -> None:
    plan = make_plan(nodes={f"n{index}": Node({"cpu": 0}, {"cpu": 1000}) for index in range(NODE_ROWS + 3)})
    assert "3 more nodes" in printed(plan, {})
    assert "more nodes" not in printed(plan, {}, everything=True)


def test_names_with_brackets_are_not_markup() -> None:
    plan, jobs_of = gang_plan()
    plan.jobs["ml/big"].reasons = ["wants [red]this[/nonsense]"]
    assert "wants [red]this[/nonsense]" in printed(plan, jobs_of)


def test_queues_without_a_share_yet_are_printed() -> None:
    plan = make_plan(queues={"empty": Queue({}, {}), "wide": Queue({"cpu": float("inf")}, {})})
    text = printed(plan, {})
    assert "empty" in text
    assert "∞" in text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "░░░░░░░░░░   0%"),
        (0.5, "█████░░░░░  50%"),
        (1.25, "██████████ 125%"),
        (float("inf"), "██████████    ∞"),
    ],
)
def test_bars(share: float, text: str) -> None:
    assert bar(share).plain == text


def test_json_and_yaml_hold_the_whole_plan() -> None:
    plan, _ = gang_plan()
    values = json.loads(plan_json(plan))
    assert values == yaml.safe_load(plan_yaml(plan))
    assert list(values) == [
        "summary",
        "binds",
        "held",
        "pipelined",
        "starting",
        "evictions",
        "evicted",
        "tasks",
        "jobs",
        "queues",
        "nodes",
        "problems",
        "warnings",
    ]
    assert values["binds"] == plan.binds
    assert values["tasks"]["ml/big-0"]["reason"] == "0/2 nodes: 2 Insufficient nvidia.com/gpu"
    assert values["nodes"]["node-1"]["used"]["nvidia.com/gpu"] == 8
