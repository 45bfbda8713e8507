"""Metrics under the names of KAI's scheduler, with its prefix; docs/metrics.md describes each."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from maniple.web.families import MILLISECONDS, counters, gauge, gauges, histogram, untyped
from maniple.web.own_metrics import SESSION
from maniple.web.view import View
from maniple.web.volcano_metrics import preemptions

GPU = "nvidia.com/gpu"
GIGABYTE = 1e9


def kai_metrics(view: View, prefix: str) -> Iterator[Metric]:
    scheduler = view.scheduler
    meter = scheduler.meter
    text = "Of the last cycle, in milliseconds"
    for name, seconds in (
        ("e2e_scheduling", meter.last_cycle),
        ("open_session", meter.last_steps.get("open", 0.0)),
        ("close_session", meter.last_steps.get("close", 0.0)),
    ):
        yield gauge(f"{prefix}_{name}_latency_milliseconds", text, seconds * MILLISECONDS)
    plugins = [((name, "OnSessionOpen"), s * MILLISECONDS) for name, s in meter.last_plugins.items()]
    yield gauges(f"{prefix}_plugin_scheduling_latency_milliseconds", text, ("plugin", "OnSession"), plugins)
    actions = [((name,), s * MILLISECONDS) for name, s in meter.last_steps.items() if name not in SESSION]
    yield gauges(f"{prefix}_action_scheduling_latency_milliseconds", text, ("action",), actions)
    for name, tally in (
        ("task_scheduling", meter.pods_bound),
        ("task_bind", meter.write_seconds["bind"]),
    ):
        text = "See docs/metrics.md"
        yield histogram(f"{prefix}_{name}_latency_milliseconds", text, tally, MILLISECONDS)
    yield from _queues(view, prefix)
    yield untyped(
        f"{prefix}_total_preemption_attempts",
        "Jobs for which pods were evicted by preemption",
        preemptions(view),
    )
    yield _evicted(view, prefix)


def _queues(view: View, prefix: str) -> Iterator[Metric]:
    queues = view.standing().queues.items()
    for name, resource, unit in (
        ("cpu_cores", "cpu", 1000.0),
        ("memory_gb", "memory", GIGABYTE),
        ("gpu", GPU, 1.0),
    ):
        shares = [((queue,), one.deserved.get(resource, 0) / unit) for queue, one in queues]
        yield gauges(f"{prefix}_queue_fair_share_{name}", "The fair share", ("queue_name",), shares)
    for name, resource in (("cpu", "cpu"), ("memory", "memory"), ("gpu", GPU)):
        usage = [((queue,), one.usage.get(resource, 0.0)) for queue, one in queues]
        yield gauges(f"{prefix}_queue_{name}_usage", "Past usage", ("queue_name",), usage)


def _evicted(view: View, prefix: str) -> Metric:
    pool = str(view.scheduler.planner.options.get("nodePoolLabelValue") or "default")
    samples = []
    for job, counts in view.scheduler.meter.evicted_of.items():
        namespace, _, name = job.rpartition("/")
        for (uid, action), number in counts.items():
            samples.append(((name, namespace, uid, pool, action), float(number)))
    labels = ("podgroup", "namespace", "uid", "nodepool", "action")
    return counters(f"{prefix}_pod_group_evicted_pods_total", "Evicted pods", labels, samples)
