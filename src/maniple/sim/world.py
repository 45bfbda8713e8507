"""A whole embedded cluster: the store, the fake kubelets and controllers, and the timetable.

Manifests of workloads come with the pods that their controllers would create.

`maniple run` starts one if it is given no cluster, and so do tests. Make it inside the event loop whose time
it is to use.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from maniple.objects.core import Pod
from maniple.sim.binder import Binder
from maniple.sim.claim_controller import ResourceClaims
from maniple.sim.clock import Clock
from maniple.sim.cluster import SimCluster
from maniple.sim.garbage import GarbageCollector
from maniple.sim.kubelet import FAIL_AFTER, RUN_FOR, Kubelet, duration, finished
from maniple.sim.store import Store
from maniple.sim.timetable import INHERITED, Timetable
from maniple.sim.volumes import Volumes
from maniple.workloads.kinds import TABLE, Table
from maniple.workloads.manifests import with_pods


class World:
    """The embedded cluster; `port()` gives a scheduler access to it."""

    def __init__(
        self, objects: Iterable[dict[str, Any]] = (), *, start_seconds: float = 0.5, table: Table = TABLE
    ) -> None:
        self.clock = Clock()
        self.store = Store(self.clock.now)
        self.kubelet = Kubelet(self.store, self.clock, start_seconds=start_seconds)
        self.binder = Binder(self.store, self.clock)
        self.volumes = Volumes(self.store)
        self.claims = ResourceClaims(self.store)
        self.garbage = GarbageCollector(self.store)
        self.timetable = Timetable(self.store)
        self.timetable.add(with_pods([*objects], table, INHERITED).objects)

    def port(self, **settings: Any) -> SimCluster:
        return SimCluster(self.store, self.clock, **settings)

    @property
    def busy(self) -> bool:
        """Whether something will still happen without any decision: an arrival, a start, an end."""
        stand_ins = (self.timetable, self.kubelet, self.binder, self.volumes, self.claims, self.garbage)
        return any(one.busy for one in stand_ins)

    def unfinished(self) -> list[str]:
        """Pods that are pending, or run and will end some day."""
        pods, _ = self.store.list(Pod)
        return [
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            for pod in pods
            if not finished(pod) and not _runs_for_ever(pod)
        ]


def _runs_for_ever(pod: Mapping[str, Any]) -> bool:
    ends = any(duration(pod, annotation) is not None for annotation in (RUN_FOR, FAIL_AFTER))
    return not ends and pod.get("status", {}).get("phase") == "Running"
