"""Metric families as Prometheus' text format 0.0.4, which every version of Prometheus accepts.

The client library's own encoder takes three times as long, because it prepares for names outside ASCII; with a series
for each job of a cluster that was most of the cost of a scrape.
"""

from collections.abc import Iterable, Mapping
from math import isinf, isnan

from prometheus_client.core import Metric

from maniple.objects.printable import printable_lines

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_TYPES = {"unknown": "untyped", "info": "gauge", "stateset": "gauge"}
_ENDINGS = {"counter": "_total", "info": "_info"}


class Prepared(Metric):
    """A gauge with a series for each of many things, given as lines: there are too many to make objects of."""

    def __init__(self, name: str, text: str, lines: list[str]) -> None:
        super().__init__(name, text, "gauge")
        self.lines = lines


def shown_labels(labels: Mapping[str, str]) -> str:
    shown = ",".join([f'{key}="{_escaped(text)}"' for key, text in labels.items()])
    return f"{{{shown}}}"


def encoded(families: Iterable[Metric]) -> bytes:
    lines: list[str] = []
    for family in families:
        name = family.name + _ENDINGS.get(family.type, "")
        lines.append(f"# HELP {name} {_help(family.documentation)}")
        lines.append(f"# TYPE {name} {_TYPES.get(family.type, family.type)}")
        if isinstance(family, Prepared):
            lines += family.lines
            continue
        for sample in family.samples:
            labels, value = sample.labels, _number(sample.value)
            lines.append(f"{sample.name}{shown_labels(labels) if labels else ''} {value}")
    lines.append("")
    return "\n".join(lines).encode()


def _number(value: float) -> str:
    number = float(value)
    if isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    return "NaN" if isnan(number) else repr(number)


def _escaped(text: str) -> str:
    text = printable_lines(text)
    if "\\" in text or "\n" in text or '"' in text:
        return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return text


def _help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
