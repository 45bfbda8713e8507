"""Every metric that is served is documented, the other way round too, and its value is right."""

import asyncio
import re
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from maniple.framework.plans.backlog import CAUSES
from maniple.live.meter import Tally
from maniple.web.exposition import encoded
from tests.live import kai_objects
from tests.live.objects import gang, group, node, pod, queue
from tests.web.stage import Stage, played

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
LIBRARY = ("process_", "python_")


def documented(section: str) -> set[str]:
    """The names of a section's table; `a_x`, `_y`: the ending replaces that of the first."""
    text = PAGE.read_text().split(f"\n## {section}", 1)[1].split("\n## ", 1)[0]
    names = set[str]()
    for row in re.findall(r"^\| (`.+?`) \|", text, re.MULTILINE):
        first, *more = re.findall(r"`([a-z0-9_]+)`", row)
        endings = [one for one in more if one.startswith("_")]
        names |= {first, *(one for one in more if not one.startswith("_"))}
        stem = re.sub(r"_(milli_cpu|cpu_cores)$", "", first)
        names |= {stem + one for one in endings}
    return {name for name in names if "_" in name}


def served(stage: Stage) -> set[str]:
    names = re.findall(r"^# TYPE (\S+)", stage.page(), re.MULTILINE)
    return {name for name in names if not name.startswith(LIBRARY)}


async def quiet(stage: Stage) -> None:
    stage.create(queue("default"), node("a"), *gang("fits", 2))
    await asyncio.sleep(3)


@pytest.mark.parametrize(
    ("profile", "sections"),
    [
        ("volcano", ("Maniple's own", "Volcano's names")),
        ("kai", ("Maniple's own", "KAI's names")),
        ("maniple", ("Maniple's own", "Volcano's names", "KAI's names")),
    ],
)
def test_what_is_served_is_what_is_documented(profile: str, sections: tuple[str, ...]) -> None:
    stage = played(quiet, profile=profile)
    assert served(stage) == set[str]().union(*map(documented, sections))


def test_causes_are_documented() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE))
    assert {cause: rows.get(cause) for cause in CAUSES} == CAUSES


def test_values_of_cycles_queues_and_waiting_jobs() -> None:
    async def scene(stage: Stage) -> None:
        stage.create(queue("default"), node("a", cpu=4), node("b", cpu=4))
        stage.create(*gang("fits", 2), *gang("large", 1, cpu="5"))
        stage.create(
            group("few", 2), pod("few-0", "few"), group("lost", 1, queue="nowhere"), pod("l", "lost")
        )
        await asyncio.sleep(10)

    stage = played(scene)
    value = stage.value
    assert value("maniple_cycle_duration_seconds_count") == stage.scheduler.cycles
    assert value("maniple_action_duration_seconds_count", action="allocate") == stage.scheduler.cycles
    assert value("volcano_e2e_scheduling_latency_milliseconds_count") == stage.scheduler.cycles
    assert value("maniple_nodes") == 2
    assert value("maniple_cluster_allocatable", resource="cpu") == 8
    assert value("maniple_cluster_used", resource="cpu") == 2
    assert value("maniple_pods", status="Running") == 2
    assert value("maniple_queue_allocated", queue="default", resource="cpu") == 2
    assert value("maniple_queue_requested", queue="default", resource="cpu") == 2 + 5 + 1
    assert value("volcano_queue_allocated_milli_cpu", queue_name="default") == 2000
    assert value("volcano_queue_request_milli_cpu", queue_name="default") == 8000
    assert value("maniple_pending_jobs", queue="default", cause="nodes") == 1
    assert value("maniple_pending_pods", queue="default", cause="nodes") == 1
    assert value("maniple_pending_jobs", queue="default", cause="pods") == 1
    assert value("maniple_pending_jobs", queue="nowhere", cause="queue") == 1
    assert value("volcano_unschedule_job_count") == 3
    assert 9 <= value("maniple_oldest_pending_job_seconds", cause="nodes") <= 11
    assert value("maniple_jobs_started_total") == 1
    assert value("maniple_job_wait_seconds_count", cause="none") == 1
    assert value("maniple_pod_wait_seconds_count") == 2
    assert value("maniple_writes_total", write="bind", result="ok") == 2
    assert (
        value("volcano_e2e_job_scheduling_duration", job_name="fits", queue="default", job_namespace="team")
        >= 0
    )
    assert value("maniple_ready") == value("maniple_leader") == 1
    assert value("maniple_effects_pending", urgency="decision") == 0


def test_waiting_time_has_the_cause_of_the_cycle_before() -> None:
    async def scene(stage: Stage) -> None:
        stage.create(queue("default"), node("a", cpu=2), node("b", cpu=2), *gang("large", 1, cpu="3"))
        await asyncio.sleep(60)
        stage.create(node("c", cpu=4))
        await asyncio.sleep(5)

    stage = played(scene)
    assert stage.value("maniple_job_wait_seconds_count", cause="nodes") == 1
    assert 55 <= stage.value("maniple_job_wait_seconds_sum", cause="nodes") <= 65


def test_a_full_queue_is_a_cause_of_its_own() -> None:
    async def scene(stage: Stage) -> None:
        stage.create(kai_objects.queue("parent"), kai_objects.queue(parent="parent", resources=limited))
        stage.create(kai_objects.node("a"), *kai_objects.gang("g", 4))
        await asyncio.sleep(5)

    none = {"quota": 2, "limit": 2, "overQuotaWeight": 0}
    limited = {"gpu": none, "cpu": {"quota": -1, "limit": -1}, "memory": {"quota": -1, "limit": -1}}
    stage = played(scene, profile="kai")
    assert stage.value("maniple_pending_jobs", queue=kai_objects.QUEUE, cause="quota") == 1


def test_evictions_are_counted_by_action_and_group() -> None:
    async def scene(stage: Stage) -> None:
        low, high = ({"metadata": {"name": n}, "value": v} for n, v in (("low", 1), ("high", 2)))
        for one in (low, high):
            stage.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **one})
        stage.create(queue("default"), node("a", cpu=2), *with_class(gang("old", 2, minimum=1), "low"))
        await asyncio.sleep(5)
        stage.create(*with_class(gang("new", 1), "high"))
        await asyncio.sleep(5)

    conf = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""
    stage = played(scene, conf=conf)
    assert stage.value("maniple_evictions_total", action="preempt") == 1
    assert stage.value("maniple_writes_total", write="evict", result="ok") == 1
    assert stage.value("volcano_total_preemption_attempts") == 1
    assert stage.value("volcano_pod_preemption_victims") == 1
    assert stage.value("volcano_eviction_transactions_total", action="preempt") == 1


def with_class(raws: list[dict], name: str) -> list[dict]:  # type: ignore[type-arg]
    for raw in raws:
        raw["spec"]["priorityClassName"] = name
        if raw["kind"] == "Pod":
            raw["spec"]["priority"] = 1 if name == "low" else 2
            raw["metadata"].setdefault("annotations", {})["volcano.sh/preemptable"] = "true"
    return raws


def test_series_of_a_job_end_with_it() -> None:
    async def scene(stage: Stage) -> None:
        from maniple.objects.core import Pod
        from maniple.objects.volcano import VolcanoPodGroup

        stage.create(queue("default"), node("a"), *gang("fits", 2))
        await asyncio.sleep(5)
        assert 'job_name="fits"' in stage.page()
        for name in ("fits-0", "fits-1"):
            stage.world.store.remove(Pod, f"team/{name}")
        stage.world.store.remove(VolcanoPodGroup, "team/fits")
        await asyncio.sleep(5)

    assert 'job_name="fits"' not in played(scene).page()


def test_a_tally_counts_each_value_once() -> None:
    tally = Tally((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        tally.observe(value)
    assert (tally.counts, tally.sum, tally.count) == ([2, 1, 1], 12.0, 4)


def test_the_page_is_what_the_library_would_write() -> None:
    stage = played(quiet)
    registry = stage.metrics.registry
    ours = {one.name: one for one in text_string_to_metric_families(encoded(registry.collect()).decode())}
    theirs = {one.name: one for one in text_string_to_metric_families(generate_latest(registry).decode())}
    assert ours.keys() == theirs.keys()
    for name, family in theirs.items():
        as_lines = name.startswith("volcano_e2e_job_scheduling_")  # see exposition.Prepared
        if not name.startswith(LIBRARY) and "seconds" not in name and not as_lines:
            assert (ours[name].type, ours[name].samples) == (family.type, family.samples)


def test_label_values_and_numbers_are_escaped() -> None:
    family = GaugeMetricFamily("g", "a\\b\nc", labels=("l",))
    for text, value in (('a"b\\c\nd', 1), ("inf", float("inf")), ("nan", float("nan"))):
        family.add_metric([text], value)
    page = encoded([family]).decode()
    assert page.splitlines()[0] == "# HELP g a\\\\b\\nc"
    assert page.splitlines()[2] == 'g{l="a\\"b\\\\c\\nd"} 1.0'
    (again,) = text_string_to_metric_families(page)
    assert [sample.labels["l"] for sample in again.samples] == ['a"b\\c\nd', "inf", "nan"]
    assert page.splitlines()[3:] == ['g{l="inf"} +Inf', 'g{l="nan"} NaN']


def test_pods_that_another_binds_are_measured_too() -> None:
    async def scene(stage: Stage) -> None:
        stage.create(kai_objects.queue("parent"), kai_objects.queue(parent="parent"), kai_objects.node("a"))
        stage.create(*kai_objects.gang("g", 4))
        await asyncio.sleep(20)

    stage = played(scene, profile="kai")
    assert stage.value("maniple_pod_wait_seconds_count") == 4
    assert stage.value("kai_task_scheduling_latency_milliseconds_count") == 4
    assert stage.value("kai_task_bind_latency_milliseconds_count") == 4
