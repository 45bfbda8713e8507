"""Maniple's own metrics; docs/metrics.md describes each."""

import platform
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from maniple import __version__
from maniple.journal.writer import Figures
from maniple.live.refs import kind_of
from maniple.live.turns import Urgency
from maniple.web.families import (
    counter,
    counters,
    gauge,
    gauges,
    histogram,
    histograms,
    summaries,
)
from maniple.web.view import View, in_cores

if TYPE_CHECKING:
    from maniple.web.health import Health

SESSION = ("open", "close")


def own_metrics(view: View, health: "Health") -> Iterator[Metric]:
    yield from _process(view, health)
    yield from _cycles(view)
    yield from _backlog(view)
    yield from _queues(view)
    yield from _writes(view)
    yield from _requests(view)
    yield from _cache(view)
    yield from _journal(view)


def _process(view: View, health: "Health") -> Iterator[Metric]:
    scheduler = view.scheduler
    labels = (__version__, scheduler.planner.profile.name, platform.python_version())
    yield gauges("maniple_build_info", "Always 1", ("version", "profile", "python"), [(labels, 1)])
    yield gauge("maniple_ready", "1 if /readyz answers 200", not health.not_ready())
    yield gauge("maniple_leader", "1 if this replica schedules", health.leads)
    yield gauge(
        "maniple_loop_lag_seconds", "By how much the event loop was late at its last beat", health.lag
    )
    yield counter("maniple_problems_total", "Distinct problems reported in the log", scheduler.problems.found)
    yield counters(
        "maniple_config_reloads_total",
        "Changed configurations, applied (ok) or not (refused)",
        ("result",),
        [
            (("ok",), scheduler.configuration.reloads),
            (("refused",), scheduler.configuration.failures),
        ],
    )
    yield gauge(
        "maniple_config_last_reload_success_timestamp_seconds",
        "When a changed configuration was last applied, as a Unix time; 0: never",
        scheduler.configuration.last_success_time,
    )


def _cycles(view: View) -> Iterator[Metric]:
    meter = view.scheduler.meter
    session = [((step,), meter.steps[step]) for step in SESSION]
    actions = [((step,), tally) for step, tally in meter.steps.items() if step not in SESSION]
    yield histogram("maniple_cycle_duration_seconds", "One scheduling cycle", meter.cycle)
    yield histograms("maniple_action_duration_seconds", "One action of a cycle", ("action",), actions)
    yield histograms(
        "maniple_session_duration_seconds", "The start and the end of a cycle", ("step",), session
    )
    yield summaries(
        "maniple_plugin_open_seconds",
        "Opening a plugin at the start of a cycle",
        "plugin",
        [(name, tally.count, tally.sum) for name, tally in meter.plugins.items()],
    )
    waits = [((cause,), tally) for cause, tally in meter.job_waits.items()]
    yield counter(
        "maniple_jobs_started_total",
        "Jobs that got their first nodes",
        sum(tally.count for _, tally in waits),
    )
    yield histograms(
        "maniple_job_wait_seconds", "From a job's creation to its first nodes", ("cause",), waits
    )
    yield histogram("maniple_pod_wait_seconds", "From a pod's creation to its bind", meter.pods_bound)


def _backlog(view: View) -> Iterator[Metric]:
    standing, now = view.standing(), view.scheduler.now()
    jobs: Counter[tuple[str, str]] = Counter()
    pods: Counter[tuple[str, str]] = Counter()
    oldest: dict[str, float] = {}
    for one in standing.pending:
        jobs[one.queue, one.cause] += 1
        pods[one.queue, one.cause] += one.pods
        age = (now - one.created).total_seconds() if one.created is not None else 0.0
        oldest[one.cause] = max(age, oldest.get(one.cause, 0.0))
    labels = ("queue", "cause")
    yield gauges("maniple_pending_jobs", "Jobs with pods that have no node", labels, jobs.items())
    yield gauges("maniple_pending_pods", "Pods without a node", labels, pods.items())
    ages = [((cause,), age) for cause, age in oldest.items()]
    yield gauges("maniple_oldest_pending_job_seconds", "Age of the oldest pending job", ("cause",), ages)
    statuses = [((status,), number) for status, number in standing.statuses.items()]
    yield gauges("maniple_pods", "Pods of jobs", ("status",), statuses)
    yield gauge("maniple_nodes", "Nodes", standing.nodes)
    for name, text, amounts in (
        ("maniple_cluster_allocatable", "What all nodes have", standing.allocatable),
        ("maniple_cluster_used", "What of it is used", standing.used),
    ):
        yield gauges(name, text, ("resource",), [((one,), amount) for one, amount in amounts.items()])


def _queues(view: View) -> Iterator[Metric]:
    standing = view.standing()
    queues = standing.queues.items()
    for name, text, values in (
        ("share", "The largest used fraction of what is deserved", {q: one.share for q, one in queues}),
        ("weight", "Its weight", {q: one.weight for q, one in queues}),
        ("jobs", "Its jobs", {q: one.jobs for q, one in queues}),
    ):
        yield gauges(
            f"maniple_queue_{name}", text, ("queue",), [((q,), value) for q, value in values.items()]
        )
    for name, text, amounts in (
        ("deserved", "What it is entitled to now", {q: in_cores(one.deserved) for q, one in queues}),
        ("allocated", "What its jobs have", {q: in_cores(one.allocated) for q, one in queues}),
        ("requested", "What its jobs have and request", standing.requested),
        ("limit", "The most that it may have", {q: in_cores(one.capability) for q, one in queues}),
    ):
        yield gauges(
            f"maniple_queue_{name}",
            text,
            ("queue", "resource"),
            [((q, r), amount) for q, each in amounts.items() for r, amount in each.items()],
        )


def _writes(view: View) -> Iterator[Metric]:
    meter, effects = view.scheduler.meter, view.scheduler.effects
    evictions = [((action,), number) for action, number in meter.evictions.items()]
    yield counters("maniple_evictions_total", "Pods that an action decided to evict", ("action",), evictions)
    writes = meter.writes.items()
    yield counters("maniple_writes_total", "Calls that change the cluster", ("write", "result"), writes)
    seconds = [((write,), tally) for write, tally in meter.write_seconds.items()]
    yield histograms("maniple_write_duration_seconds", "One such call", ("write",), seconds)
    pending = effects.pending
    yield gauges(
        "maniple_effects_pending",
        "Writes that are decided and not finished",
        ("urgency",),
        [((urgency.name.lower(),), pending[urgency]) for urgency in Urgency],
    )
    yield gauge("maniple_effects_in_flight", "Writes that wait for a response", effects.in_flight)
    yield gauge("maniple_effects_slow", "Those without a response for long", effects.slow)
    yield counter("maniple_effects_refusals_total", "Attempts that were refused", effects.refused)
    notes = view.scheduler.notes
    yield counter("maniple_events_gathered_total", "Events written together with others", notes.gathered)
    yield counter("maniple_events_dropped_total", "Events that the cluster refused", notes.failed)
    yield counter(
        "maniple_bind_failures_total",
        "Binds that were given up, so that the pod is backed off",
        view.scheduler.bind_failures,
    )


def _requests(view: View) -> Iterator[Metric]:
    client = view.client
    requests: Counter[tuple[str, str, int]] = client.requests if client is not None else Counter()
    seconds = client.seconds if client is not None else {}
    heard = client.heard if client is not None else {}
    by_verb: Counter[str] = Counter()
    for (verb, _, _), number in requests.items():
        by_verb[verb] += number
    yield counters(
        "maniple_api_requests_total",
        "Requests to the API server",
        ("verb", "resource", "code"),
        [((verb, resource, str(code)), number) for (verb, resource, code), number in requests.items()],
    )
    yield summaries(
        "maniple_api_request_duration_seconds",
        "One request, except watches",
        "verb",
        [(verb, by_verb[verb], total) for verb, total in seconds.items()],
    )
    now = time.monotonic()
    silence = [((resource,), now - at) for resource, at in heard.items()]
    yield gauges("maniple_watch_silence_seconds", "Since the last data of a watch", ("resource",), silence)


def _cache(view: View) -> Iterator[Metric]:
    scheduler = view.scheduler
    yield gauge("maniple_inbox_changes", "Changes that are not taken in yet", scheduler.inbox)
    yield gauge(
        "maniple_unconfirmed_decisions",
        "Decisions that the watch has not shown yet",
        scheduler.cache.unconfirmed,
    )
    aside = Counter(kind_of(kind) for kind, _ in scheduler.cache.aside)
    yield gauges(
        "maniple_set_aside_objects",
        "Objects that are left out because planning failed on them",
        ("kind",),
        [((kind,), number) for kind, number in sorted(aside.items())],
    )
    yield counters(
        "maniple_faults_total",
        "Exceptions that were caught, by what was being done",
        ("during",),
        [((during,), number) for during, number in scheduler.guard.faults.items()],
    )
    forbidden = [((kind,), 1.0) for kind in sorted(scheduler.forbidden)]
    yield gauges("maniple_forbidden_kinds", "Kinds that may not be listed", ("kind",), forbidden)


def _journal(view: View) -> Iterator[Metric]:
    """Zero without a journal."""
    journal = view.scheduler.journal
    figures = journal.writer.figures if journal is not None else Figures()
    yield counters(
        "maniple_journal_cycles_total",
        "Cycles that are in the journal (written), or not (lost)",
        ("result",),
        [(("written",), figures.records), (("lost",), figures.dropped)],
    )
    yield counter("maniple_journal_bytes_total", "Bytes written to the journal", figures.bytes)
    yield gauge("maniple_journal_size_bytes", "What the files of the journal take now", figures.size)
    yield counter("maniple_journal_failures_total", "Writes to the journal that failed", figures.failures)
