"""Annotations and labels that scheduling reads: misspelt keys, and values that cannot be read.

A wrong value has no effect, in the original schedulers as here, so that the pod simply runs without what its
author wanted. Keys are compared with the known ones only by a single slip: everybody may have keys of their own.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from maniple.cli.inspection.fields import one_slip
from maniple.framework.configuration.document import quoted
from maniple.framework.configuration.durations import nanoseconds
from maniple.framework.configuration.scalars import parse_bool
from maniple.workloads.wishes import MINIMUM, PREEMPTIBLE, PREFERRED, PRIORITY, QUEUE, REQUIRED, TOPOLOGY

_WHOLE = re.compile(r"\+?[0-9]{1,9}")
_SIGNED = re.compile(r"[+-]?[0-9]{1,10}")
_DECIMAL = re.compile(r"\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_SHARE = re.compile(r"[0-9]{1,9}%?")
_MOST_REPLICAS = 100_000
_NUMA_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")


def _duration(text: str) -> str:
    try:
        long = nanoseconds(text)
    except ValueError:
        return 'must be a duration such as "90s" or "1h30m"'
    return "" if long >= 0 else "must not be negative"


def _fraction(text: str) -> str:
    right = _DECIMAL.fullmatch(text) and 0.01 <= float(text) <= 1
    return "" if right else "must be a number from 0.01 to 1"


def _positive(text: str) -> str:
    return "" if _WHOLE.fullmatch(text) and int(text) > 0 else "must be a whole number above 0"


def _amount(text: str) -> str:
    return "" if _WHOLE.fullmatch(text) else "must be a whole number"


def _number(text: str) -> str:
    right = _SIGNED.fullmatch(text) and -(2**31) <= int(text) < 2**31
    return "" if right else "must be a whole number"


def _replicas(text: str) -> str:
    right = _WHOLE.fullmatch(text) and 0 < int(text) <= _MOST_REPLICAS
    return "" if right else f"must be a whole number from 1 to {_MOST_REPLICAS:,}"


def _switch(text: str) -> str:
    return "" if parse_bool(text) is not None else 'must be "true" or "false"'


def _true_or_false(text: str) -> str:
    return "" if text in ("true", "false") else 'must be "true" or "false"'


def _share(text: str) -> str:
    return "" if _SHARE.fullmatch(text) else 'must be a whole number or a percentage such as "50%"'


def _moment(text: str) -> str:
    try:
        right = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        right = False
    return "" if right else "must be a time with its zone, such as 2026-01-31T12:00:00Z"


def _numa_policy(text: str) -> str:
    return "" if text in _NUMA_POLICIES else f"must be one of {', '.join(_NUMA_POLICIES)}"


def _weights(text: str) -> str:
    right = all(_DECIMAL.fullmatch(part) for part in text.split("/"))
    return "" if right else 'must be numbers with slashes between them, such as "1/2/8"'


Check = Callable[[str], str]

# By key, what is wrong with a value. Plugins themselves report sla-waiting-time, cooldown-time and budgets.
_VALUES: Mapping[str, Check] = {
    "gpu-fraction": _fraction,
    "gpu-memory": _positive,
    "gpu-fraction-num-devices": _positive,
    "kai.scheduler/last-start-timestamp": _moment,
    "kai.scheduler/stale-podgroup-timestamp": _moment,
    "maniple.dev/arrive-after": _duration,
    "maniple.dev/fail-after": _duration,
    "maniple.dev/leave-after": _duration,
    "maniple.dev/replicas": _replicas,
    "maniple.dev/run-for": _duration,
    "maniple.dev/suspend": _true_or_false,
    "volcano.sh/cooldown-time": _duration,
    "volcano.sh/hierarchy-weights": _weights,
    "volcano.sh/jdb-max-unavailable": _share,
    "volcano.sh/jdb-min-available": _share,
    "volcano.sh/numa-topology-policy": _numa_policy,
    "volcano.sh/oversubscription-cpu": _amount,
    "volcano.sh/oversubscription-memory": _amount,
    "volcano.sh/preemptable": _switch,
    "volcano.sh/sla-waiting-time": _duration,
    "volcano.sh/task-priority": _number,
    "sla-waiting-time": _duration,
}
_LABEL_VALUES: Mapping[str, Check] = {
    "kai.scheduler/task-priority": _number,
    "volcano.sh/preemptable": _switch,
}
_KEYS = frozenset(
    {
        *_VALUES,
        *QUEUE,
        *MINIMUM,
        *PRIORITY,
        *PREEMPTIBLE,
        TOPOLOGY,
        REQUIRED,
        PREFERRED,
        "kai.scheduler/node-pool",
        "kai.scheduler/subgroup-name",
        "maniple.dev/namespace-selector",
        "maniple.dev/namespaces",
        "maniple.dev/priority-classes",
        "maniple.dev/queue",
        "maniple.dev/queues",
        "maniple.dev/state",
        "pod-group-name",
        "scheduling.k8s.io/group-name",
        "scheduling.volcano.sh/queue-allocation-gate",
        "volcano.sh/hierarchy",
        "volcano.sh/nodegroup-name",
        "volcano.sh/nodegroup-resource-limits",
        "volcano.sh/resource-strategy-scoring-type",
        "volcano.sh/resource-strategy-weight",
        "volcano.sh/revocable-zone",
        "volcano.sh/task-spec",
        "volcano.sh/task-topology-affinity",
        "volcano.sh/task-topology-anti-affinity",
        "volcano.sh/task-topology-task-order",
        "volcano.sh/vgpu-mode",
        "volcano.sh/vgpu-node",
        "volcano.sh/vgpu-nouse-gpuuuid",
        "volcano.sh/vgpu-podgroup-policy",
        "volcano.sh/vgpu-use-gpuuuid",
    }
)


class AnnotationSpelling:
    """Finds misspelt keys and unreadable values; each distinct key is compared with the known ones once."""

    def __init__(self) -> None:
        self._meant: dict[str, str | None] = dict.fromkeys(_KEYS)

    def remarks(self, metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Field and message of everything that is wrong."""
        for field, checks in (("annotations", _VALUES), ("labels", _LABEL_VALUES)):
            given = metadata.get(field)
            if not isinstance(given, Mapping):
                continue
            for key, value in given.items():
                if not isinstance(key, str) or not isinstance(value, str):
                    continue
                if key not in self._meant:
                    self._meant[key] = _meant(key)
                meant = self._meant[key]
                if meant is not None:
                    yield f"metadata.{field}.{key}", f"unknown key, ignored; did you mean {quoted(meant)}?"
                problem = checks[key](value) if key in checks else ""
                if problem:
                    yield f"metadata.{field}.{key}", f"{problem}, found {quoted(value)}; ignored"


def _meant(key: str) -> str | None:
    if len(key) > 100:
        return None
    return next((known for known in sorted(_KEYS) if one_slip(key.lower(), known.lower())), None)
