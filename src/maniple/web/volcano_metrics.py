"""Metrics under the names of Volcano's scheduler, for its dashboards; docs/metrics.md describes each."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric

from maniple.live.meter import MOST_JOBS, PREEMPTING, Tally
from maniple.web.exposition import Prepared, shown_labels
from maniple.web.families import (
    MILLISECONDS,
    counters,
    gauge,
    gauges,
    histogram,
    histograms,
    untyped,
)
from maniple.web.own_metrics import SESSION
from maniple.web.view import View

JOB = ("job_name", "queue", "job_namespace")


def volcano_metrics(view: View) -> Iterator[Metric]:
    yield from _latencies(view)
    yield from _jobs(view)
    yield from _queues(view)
    meter = view.scheduler.meter
    yield gauge(
        "volcano_pod_preemption_victims",
        "Pods evicted by the last cycle that preempted",
        meter.last_victims,
    )
    yield untyped(
        "volcano_total_preemption_attempts",
        "Jobs for which pods were evicted by preemption",
        preemptions(view),
    )
    yield counters(
        "volcano_eviction_transactions_total",
        "Jobs for which pods were evicted",
        ("action",),
        [((action,), number) for action, number in meter.transactions.items()],
    )


def preemptions(view: View) -> int:
    return sum(view.scheduler.meter.transactions[action] for action in PREEMPTING)


def _latencies(view: View) -> Iterator[Metric]:
    meter = view.scheduler.meter
    for name, tally in (
        ("e2e_scheduling_latency", meter.cycle),
        ("open_session_duration", meter.steps["open"]),
    ):
        yield histogram(f"volcano_{name}_milliseconds", "One cycle, or its start", tally, MILLISECONDS)
    several: Mapping[str, tuple[tuple[str, ...], list[tuple[tuple[str, ...], Tally]]]] = {
        "action_scheduling_latency": (
            ("action",),
            [((name,), tally) for name, tally in meter.steps.items() if name not in SESSION],
        ),
        "plugin_scheduling_latency": (
            ("plugin", "OnSession"),
            [((name, "OnSessionOpen"), tally) for name, tally in meter.plugins.items()],
        ),
        "task_scheduling_latency": (
            ("stage",),
            [(("Assumed",), meter.pods_decided), (("Bound",), meter.pods_bound)],
        ),
        "scheduling_stage_duration": (("stage",), [(("Bind",), meter.write_seconds["bind"])]),
    }
    for name, (labels, tallies) in several.items():
        text = "See docs/metrics.md"
        yield histograms(f"volcano_{name}_milliseconds", text, labels, tallies, MILLISECONDS)


def _jobs(view: View) -> Iterator[Metric]:
    meter, standing = view.scheduler.meter, view.standing()
    total = Tally()
    for index, tally in enumerate(meter.job_waits.values()):
        if not index:
            total = Tally(tally.bounds)
        total.counts = [one + more for one, more in zip(total.counts, tally.counts, strict=True)]
        total.sum += tally.sum
    name = "volcano_e2e_job_scheduling_latency_milliseconds"
    yield histogram(name, "From a job's creation to its first nodes", total, MILLISECONDS)
    yield from _each_job(view)
    pending = standing.pending
    yield gauge("volcano_unschedule_job_count", "Jobs with pods that have no node", len(pending))
    yield gauges(
        "volcano_unschedule_task_count",
        "Pods without a node",
        ("job_id",),
        [((one.job,), one.pods) for one in pending[:MOST_JOBS]],
    )


def _each_job(view: View) -> Iterator[Metric]:
    name = "volcano_e2e_job_scheduling"
    durations, starts, lasts = [], [], []
    for job, times in view.scheduler.meter.jobs.items():
        if not times.labels:
            namespace, _, short = job.rpartition("/")
            times.labels = shown_labels(dict(zip(JOB, (short, times.queue, namespace), strict=True)))
        taken = (times.first - times.created).total_seconds() * MILLISECONDS
        durations.append(f"{name}_duration{times.labels} {taken}")
        starts.append(f"{name}_start_time{times.labels} {times.created.timestamp()}")
        lasts.append(f"{name}_last_time{times.labels} {times.last.timestamp()}")
    yield Prepared(f"{name}_duration", "From creation to the first nodes, in milliseconds", durations)
    yield Prepared(f"{name}_start_time", "When the job was created", starts)
    yield Prepared(f"{name}_last_time", "When it last got nodes", lasts)


def _queues(view: View) -> Iterator[Metric]:
    standing = view.standing()
    queues = standing.queues.items()
    milli = {
        queue: {name: amount * (1000 if name == "cpu" else 1) for name, amount in amounts.items()}
        for queue, amounts in standing.requested.items()
    }
    for word, amounts in (
        ("allocated", {queue: one.allocated for queue, one in queues}),
        ("request", milli),
        ("deserved", {queue: one.deserved for queue, one in queues}),
        ("capacity", {queue: one.capability for queue, one in queues}),
        ("real_capacity", {queue: one.capability for queue, one in queues}),
    ):
        yield from _amounts(f"volcano_queue_{word}", amounts)
    for word, values in (
        ("share", {queue: one.share for queue, one in queues}),
        ("weight", {queue: one.weight for queue, one in queues}),
        ("overused", {queue: one.share > 1 for queue, one in queues}),
    ):
        yield gauges(
            f"volcano_queue_{word}",
            "See docs/metrics.md",
            ("queue_name",),
            [((queue,), value) for queue, value in values.items()],
        )


def _amounts(name: str, amounts: Mapping[str, Mapping[str, float]]) -> Iterator[Metric]:
    """As Volcano divides them: cpu, memory, and everything else by name."""
    text = "See docs/metrics.md"
    for suffix, resource in (("milli_cpu", "cpu"), ("memory_bytes", "memory")):
        values = [((queue,), each.get(resource, 0)) for queue, each in amounts.items()]
        yield gauges(f"{name}_{suffix}", text, ("queue_name",), values)
    rest = [
        ((queue, resource), amount)
        for queue, each in amounts.items()
        for resource, amount in each.items()
        if resource not in ("cpu", "memory")
    ]
    yield gauges(f"{name}_scalar_resources", text, ("queue_name", "resource"), rest)
