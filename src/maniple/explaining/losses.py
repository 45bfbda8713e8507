"""The work that an eviction loses: what a pod requested, for as long as it had run."""

from collections.abc import Mapping
from datetime import datetime

from maniple.objects.core import Pod
from maniple.objects.requests import pod_requests


def time_run(pod: Pod, when: datetime) -> float:
    """How long a pod has run, in seconds; 0 if it does not run."""
    start = pod.status.start_time
    runs = start is not None and pod.status.phase == "Running"
    return max(0.0, (when - start).total_seconds()) if runs and start is not None else 0.0


def requested(pod: Pod) -> dict[str, float]:
    return {name: float(amount) for name, amount in pod_requests(pod).items()}


def lost(requests: Mapping[str, float], ran: float) -> dict[str, float]:
    """Core seconds, byte seconds of memory, seconds of other resources."""
    return {name: amount * ran for name, amount in requests.items()}


def amounts(lost: Mapping[str, float]) -> str:
    """What was lost, in hours of each resource; memory is left out where there is anything else."""
    shown = {name: value for name, value in lost.items() if value and name != "memory"} or lost
    words = [f"{_unit(name, value)}" for name, value in shown.items() if value]
    return ", ".join(words) or "nothing"


def _unit(name: str, seconds: float) -> str:
    if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        return f"{seconds / 3600 / 2**30:.3g} GiB hours of {name}"
    return f"{seconds / 3600:.3g} {'core' if name == 'cpu' else name} hours"


def duration(seconds: float) -> str:
    """1h 5m, 3m 20s, 12s."""
    whole = int(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours}h {minutes}m"
    return f"{minutes}m {rest}s" if minutes else f"{rest}s"


__all__ = ["amounts", "duration", "lost", "requested", "time_run"]
