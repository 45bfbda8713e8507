"""The shipped examples do what their comments say."""

from pathlib import Path

import pytest

import maniple
from maniple.cli.read import read_paths
from maniple.cli.summary import jobs_of_tasks, placed_jobs, waiting_jobs
from maniple.planner import Plan

EXAMPLES = Path(__file__).parent.parent / "examples"


def objects_of(folder: str) -> list[dict[str, object]]:
    with open("/dev/null", "rb") as nothing:
        reading = read_paths([str(EXAMPLES / folder)], nothing)
    assert reading.problems == []
    return reading.objects


@pytest.fixture(scope="module")
def plan() -> Plan:
    return maniple.plan(objects_of("quickstart"), profile="volcano")


@pytest.fixture(scope="module")
def jobs_of(plan: Plan) -> dict[str, str]:
    return jobs_of_tasks(plan)


def test_the_example_is_without_fault(plan: Plan) -> None:
    assert [str(problem) for problem in plan.problems] == []
    assert plan.warnings == []


def test_the_gang_is_placed_whole_and_the_best_effort_pods_too(plan: Plan, jobs_of: dict[str, str]) -> None:
    placed = {row.job: row.tasks for row in placed_jobs(plan, jobs_of)}
    assert placed["research/pretrain"] == 8
    assert placed["research/watchers"] == 3


def test_the_elastic_job_starts_with_more_than_its_minimum_and_fewer_than_all(
    plan: Plan, jobs_of: dict[str, str]
) -> None:
    placed = {row.job: row.tasks for row in placed_jobs(plan, jobs_of)}
    assert 2 <= placed["research/sweep"] < 6


def test_what_waits_says_why(plan: Plan, jobs_of: dict[str, str]) -> None:
    why = {row.job: " ".join(row.reasons) for row in waiting_jobs(plan, jobs_of)}
    assert set(why) == {"production/vision", "research/evaluate", "research/sweep"}
    assert "Insufficient nvidia.com/gpu" in why["production/vision"]
    assert "node affinity/selector" in why["research/evaluate"]
    assert why["research/sweep"]


def test_the_example_configuration_packs_tighter_so_the_waiting_gang_fits(jobs_of: dict[str, str]) -> None:
    conf = (EXAMPLES / "volcano-scheduler.conf").read_text()
    plan = maniple.plan(objects_of("quickstart"), profile="volcano", conf=conf)
    assert plan.warnings == []
    assert "production/vision" in {row.job for row in placed_jobs(plan, jobs_of)}
