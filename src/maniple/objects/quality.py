"""A pod's quality of service class, as Kubernetes derives it from requests and limits.

Called by plugins that depend on it. Only CPU and memory count. Guaranteed: every container sets limits for
both, and equal requests; best effort: no container sets any; burstable: the rest. If the pod sets pod-level
resources, only those count.
"""

from enum import IntEnum

from maniple.objects.meta import ResourceList
from maniple.objects.pod import Pod
from maniple.objects.quantity import Exact, parse

_COUNTED = ("cpu", "memory")


class Quality(IntEnum):
    """The lower is evicted first."""

    BEST_EFFORT = 0
    BURSTABLE = 1
    GUARANTEED = 2


def quality_of(pod: Pod) -> Quality:
    spec = pod.spec
    if spec.resources is not None and (spec.resources.requests or spec.resources.limits):
        parts = [spec.resources]
    else:
        parts = [container.resources for container in (*spec.containers, *spec.init_containers)]
    stated = [(_counted(part.requests), _counted(part.limits)) for part in parts]
    if not any(requests or limits for requests, limits in stated):
        return Quality.BEST_EFFORT
    if all(len(limits) == len(_COUNTED) and requests == limits for requests, limits in stated):
        return Quality.GUARANTEED
    return Quality.BURSTABLE


def _counted(amounts: ResourceList) -> dict[str, Exact]:
    exact = {name: parse(amounts[name]) for name in _COUNTED if name in amounts}
    return {name: amount for name, amount in exact.items() if amount > 0}
