"""The same plan as tables, JSON and YAML says the same, over random clusters of all profiles."""

import io
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from maniple.cli.render import plan_json, plan_yaml, print_plan
from maniple.cli.summary import jobs_of_tasks, summary
from maniple.planner import Plan, Planner
from tests.soak.clusters import PROFILES, generate
from tests.soak.shapes import START

SEEDS = st.integers(0, 10**6)
WIDE = 4000  # columns: no cell wraps
SECTIONS = {
    "placed": "Placed",
    "starting": "Starting when others have left",
    "evicted": "Evicted",
    "waiting": "Waiting",
}


def planned(profile: str, seed: int) -> Plan:
    """Of a random cluster; every third has lost a queue, and a group of which there is no pod."""
    scenario = generate(profile, seed)
    objects = list(scenario.objects)
    if seed % 3 == 0:
        lost = next((one for one in objects if one["kind"] == "Queue"), None)
        objects = [one for one in objects if one is not lost]
        group = next((one for one in objects if one["kind"] == "PodGroup"), None)
        if group is not None:
            empty = json.loads(json.dumps(group))
            empty["metadata"] = {"name": "empty", "namespace": group["metadata"].get("namespace", "default")}
            objects.append(empty)
    planner = Planner(conf=scenario.conf, profile=scenario.profile)
    return planner.cycle(planner.build(objects), START)


def tables(plan: Plan) -> dict[str, list[list[str]]]:
    """The cells of each printed table, by title. A line that continues a cell is joined to its row."""
    out = io.StringIO()
    print_plan(
        plan,
        jobs_of_tasks(plan),
        Console(file=out, width=WIDE, force_terminal=True, color_system=None, highlight=False),
    )
    found: dict[str, list[list[str]]] = {}
    for block in out.getvalue().split("\n\n")[1:]:
        title, head, _, *lines = block.rstrip("\n").splitlines()
        starts = [at for at in range(len(head)) if head[at] != " " and (not at or head[at - 2 : at] == "  ")]
        rows: list[list[str]] = []
        for line in lines:
            cells = [line[at:to].strip() for at, to in zip(starts, [*starts[1:], WIDE], strict=True)]
            if cells[0]:
                rows.append(cells)
            else:
                rows[-1][-1] += "\n" + cells[-1]
        found[title.strip()] = rows
    return found


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(PROFILES), SEEDS)
def test_json_and_yaml_are_the_same_value_and_have_the_rows_of_the_tables(profile: str, seed: int) -> None:
    plan = planned(profile, seed)
    values = json.loads(plan_json(plan))
    assert values == yaml.safe_load(plan_yaml(plan))
    printed = tables(plan)
    for name, title in SECTIONS.items():
        rows, shown = values["summary"][name], printed.get(title, [])
        assert [row["job"] for row in rows] == [cells[0] for cells in shown], title
    for row, cells in zip(values["summary"]["waiting"], printed.get("Waiting", []), strict=True):
        assert cells[-1] == "\n".join(line.strip() for line in "\n".join(row["reasons"]).splitlines())
        assert cells[3] == f"{row['ready']}/{row['minimum']}"


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(PROFILES), SEEDS)
def test_every_pod_is_counted_once_and_nothing_waits_without_a_reason(profile: str, seed: int) -> None:
    plan = planned(profile, seed)
    rows = summary(plan)
    moving = {one.pod for one in plan.evicted if one.moves_to}
    assert sum(row.tasks for row in rows.placed) == len(plan.binds) + len(plan.held)
    assert sum(row.tasks for row in rows.starting) == len(plan.pipelined) - len(moving)
    assert sum(len(row.pods) for row in rows.evicted) == len(plan.evictions)
    pending = [one for one in plan.tasks.values() if one.status in ("Pending", "Gated")]
    assert sum(row.tasks for row in rows.waiting) == len(pending)
    assert all(one.reason for one in pending)
    for row in rows.waiting:
        assert row.reasons, row.job
        assert all(row.reasons), row.job
    assert len({row.job for row in rows.waiting}) == len(rows.waiting)
    check_states(plan, {row.job for row in rows.waiting})


def check_states(plan: Plan, waiting: set[str]) -> None:
    """Every job has one state, and it agrees with its pods."""
    statuses: Mapping[str, Counter[str]] = {name: Counter() for name in plan.jobs}
    for task in plan.tasks.values():
        if task.job is not None and task.job in statuses:
            statuses[task.job][task.status] += 1
    for name, job in plan.jobs.items():
        counts = statuses[name]
        assert (job.state == "waiting") == (name in waiting)
        assert job.waiting == counts["Pending"] + counts["Gated"]
        assert job.waiting == 0 or job.state == "waiting"
        expected: dict[str, Any] = {"starting": job.starting, "evicted": job.evicted, "placed": job.placed}
        assert expected.get(job.state, True), (name, job)
        assert bool(job.reasons) == (job.state in ("waiting", "starting", "evicted")), (name, job)


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(PROFILES), SEEDS)
def test_every_eviction_says_for_which_job_and_by_which_rule(profile: str, seed: int) -> None:
    plan = planned(profile, seed)
    for one in plan.evicted:
        assert one.action
        assert one.why
        assert one.text
        assert one.node
        assert one.why in plan.tasks[one.pod].reason
        if one.actor:
            assert one.actor in plan.jobs
            assert one.actor in one.why or one.actor == one.job
    for pod, start in plan.starting.items():
        assert plan.pipelined[pod] == start.node
        assert plan.tasks[pod].reason
        assert all(plan.tasks[other].status in ("Releasing", "Pipelined") for other in start.after)
    served = {one.actor for one in plan.evicted if one.actor}
    for name in served:
        assert plan.jobs[name].state != "evicted" or plan.jobs[name].evicted
