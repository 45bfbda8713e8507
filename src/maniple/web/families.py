"""Metric families of the client library, made from plain numbers."""

from collections.abc import Iterable

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from maniple.live.meter import Tally

Labelled = Iterable[tuple[tuple[str, ...], float]]
MILLISECONDS = 1000.0


def gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def gauges(name: str, text: str, labels: tuple[str, ...], values: Labelled) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for these, value in values:
        family.add_metric(these, value)
    return family


def counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)


def counters(name: str, text: str, labels: tuple[str, ...], values: Labelled) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for these, value in values:
        family.add_metric(these, value)
    return family


def untyped(name: str, text: str, value: float) -> Metric:
    """A counter whose name does not end as names of counters have to in this format."""
    family = Metric(name, text, "unknown")
    family.add_sample(name, {}, value)
    return family


def histogram(name: str, text: str, tally: Tally, scale: float = 1.0) -> Metric:
    family = HistogramMetricFamily(name, text)
    family.add_metric((), _buckets(tally, scale), tally.sum * scale)
    return family


def histograms(
    name: str,
    text: str,
    labels: tuple[str, ...],
    tallies: Iterable[tuple[tuple[str, ...], Tally]],
    scale: float = 1.0,
) -> Metric:
    family = HistogramMetricFamily(name, text, labels=labels)
    for these, tally in tallies:
        family.add_metric(these, _buckets(tally, scale), tally.sum * scale)
    return family


def summaries(name: str, text: str, label: str, values: Iterable[tuple[str, int, float]]) -> Metric:
    """Counts and sums."""
    family = SummaryMetricFamily(name, text, labels=(label,))
    for this, count, total in values:
        family.add_metric((this,), count, total)
    return family


def _buckets(tally: Tally, scale: float) -> list[tuple[str, float]]:
    buckets, below = [], 0
    for bound, count in zip(tally.bounds, tally.counts, strict=False):
        below += count
        buckets.append((f"{bound * scale:g}", below))
    return [*buckets, ("+Inf", below + tally.counts[-1])]
