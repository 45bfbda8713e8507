"""predicates: the filters of kube-scheduler that Volcano uses, in its order.

pod count, NodeUnschedulable, the conditions of nodes (`placing.node_conditions_count`), NodeAffinity,
TaintToleration, NodePorts, InterPodAffinity, NodeVolumeLimits, VolumeZone, PodTopologySpread, VolumeBinding,
DynamicResources. All but the first three and the last can be turned off. A pod that a filter rejects in
advance (because a claim does not exist, say) is not considered on any node.

`volumebinding.bindTimeoutSeconds` is how long a placed pod may wait for its volumes. Some arguments have no
effect here. `predicate.CacheEnable`: verdicts that depend only on labels and taints are always cached, with
the same result. `volumebinding.weight` and `.shape` concern a score that Kubernetes has behind a feature gate
which is off (StorageCapacityScoring). `predicate.DynamicResourceAllocationEnable` is known to Volcano but
never read, and a pod bound without its devices could not start. `dynamicresources.filterTimeoutSeconds`: the
search for devices is bounded by its steps, so that it ends the same way on every machine. There is no filter
by `spec.nodeName`: a pod that names its node is bound, not pending.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from maniple.cluster.classes import TaskClass
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.criteria import Filter, Scorer
from maniple.framework.points import CLAIMS_FIRST, Event, PodVolumes
from maniple.framework.reasons import Reason
from maniple.framework.session import Session
from maniple.plugins.feasibility.dynamic_resources import DynamicResources
from maniple.plugins.feasibility.inter_pod import InterPodFilter
from maniple.plugins.feasibility.node_affinity import NodeAffinity
from maniple.plugins.feasibility.placed import Placements
from maniple.plugins.feasibility.pod_count import pod_count_filter
from maniple.plugins.feasibility.ports import Ports
from maniple.plugins.feasibility.spread import Spreading
from maniple.plugins.feasibility.taints import Taints
from maniple.plugins.feasibility.volume_binding import VolumeBinding
from maniple.plugins.feasibility.volume_limits import VolumeLimits
from maniple.plugins.feasibility.volume_zone import VolumeZone
from maniple.plugins.settings import report


@dataclass(frozen=True, slots=True)
class PredicateSettings:
    """The arguments with an effect, with Volcano's defaults."""

    node_affinity: bool = True
    node_ports: bool = True
    taint_toleration: bool = True
    pod_affinity: bool = True
    node_volume_limits: bool = True
    volume_zone: bool = True
    pod_topology_spread: bool = True
    volume_binding: bool = True
    volume_seconds: int = 600

    @classmethod
    def read(cls, given: Arguments) -> "PredicateSettings":
        settings = cls(
            node_affinity=given.bool("predicate.NodeAffinityEnable", True),
            node_ports=given.bool("predicate.NodePortsEnable", True),
            taint_toleration=given.bool("predicate.TaintTolerationEnable", True),
            pod_affinity=given.bool("predicate.PodAffinityEnable", True),
            node_volume_limits=given.bool("predicate.NodeVolumeLimitsEnable", True),
            volume_zone=given.bool("predicate.VolumeZoneEnable", True),
            pod_topology_spread=given.bool("predicate.PodTopologySpreadEnable", True),
            volume_binding=given.bool("predicate.VolumeBindingEnable", True),
            volume_seconds=given.int("volumebinding.bindTimeoutSeconds", 600),
        )
        _read_what_decides_nothing(given)
        return settings


def _read_what_decides_nothing(given: Arguments) -> None:
    """Read only to report values of the wrong type; see the module's docstring."""
    given.bool("predicate.CacheEnable", False)
    given.bool("predicate.DynamicResourceAllocationEnable", True)
    given.int("volumebinding.weight", 1)
    given.list("volumebinding.shape")
    given.int("dynamicresources.filterTimeoutSeconds", 10)


class Predicates:
    name = "predicates"

    def __init__(
        self, session: Session, arguments: Mapping[str, Any], *, devices: DynamicResources | None = None
    ) -> None:
        """`devices`: those of another plugin, which also tells them of placements and evictions."""
        given = Arguments(arguments, self.name)
        self._settings = PredicateSettings.read(given)
        report(session, given)
        self._session = session
        self._placements = Placements.shared(session, self)
        self._node_affinity = NodeAffinity(session)
        self._volume_limits = VolumeLimits(session)
        self._volume_zone = VolumeZone(session)
        self._volume_binding = VolumeBinding(session)
        unshared = not session.rules.devices.claims_shared_at_once
        self._dynamic_resources = devices or DynamicResources(session, unshared=unshared)
        self._tells_of_devices = devices is None

    @property
    def affinity(self) -> InterPodFilter | None:
        """Affinity between pods; None where it is not looked at."""
        return self._inter_pod if self._settings.pod_affinity else None

    @cached_property
    def _inter_pod(self) -> InterPodFilter:
        return InterPodFilter(
            self._session,
            self._placements,
            frozen=not self._session.rules.placing.affinity_of_new_pods_counts,
        )

    def filters(self) -> list[Filter]:
        session, settings, rules = self._session, self._settings, self._session.rules.placing
        taints = Taints(session)
        spreading = Spreading(session, self._placements, taints)
        choice = [
            (True, pod_count_filter(session)),
            (True, taints.cordon_filter()),
            (rules.node_conditions_count, taints.condition_filter()),
            (settings.node_affinity, self._node_affinity.filter()),
            (settings.taint_toleration, taints.filter()),
            (settings.node_ports, Ports(session, self._placements).filter()),
            (settings.pod_affinity, self._inter_pod.filter()),
            (settings.node_volume_limits, self._volume_limits.filter()),
            (settings.volume_zone, self._volume_zone.filter()),
            (settings.pod_topology_spread, spreading.filter()),
            *((settings.volume_binding, one) for one in self._volume_binding.filters()),
            (True, self._dynamic_resources.filter()),
        ]
        return [one for enabled, one in choice if enabled]

    def scorers(self) -> list[Scorer]:
        return [self._dynamic_resources.scorer()]

    def pre_predicate(self, class_: TaskClass) -> Reason | None:
        """Why a pod of this class is not considered on any node."""
        spec, settings = class_.spec.pod.spec, self._settings
        reason = None
        if spec.affinity is not None and settings.node_affinity:
            reason = self._node_affinity.conflict(class_)
        if spec.volumes and settings.volume_zone:
            reason = reason or self._volume_zone.refusal(class_)
        if spec.volumes and settings.volume_binding:
            reason = reason or self._volume_binding.refusal(class_)
        if spec.resource_claims:
            reason = reason or self._dynamic_resources.refusal(class_)
        return reason

    def pre_bind(self, class_: TaskClass) -> str | None:
        """Delayed volume claims must be bound, and resource claims written, before the pod is bound."""
        if self._settings.volume_binding and self._volume_binding.has_delayed(class_):
            return "volumes"
        return CLAIMS_FIRST if self._dynamic_resources.has_claims(class_) else None

    def claims_to_write(self, rows: Iterable[int]) -> dict[str, dict[str, Any]]:
        """What these tasks need written into the status of resource claims, by claim."""
        return self._dynamic_resources.to_write(rows)

    def volumes_to_bind(self, rows: Iterable[int]) -> dict[str, PodVolumes]:
        """The volumes to bind or provision before these tasks are bound, by task."""
        settings = self._settings
        return self._volume_binding.to_bind(rows, settings.volume_seconds) if settings.volume_binding else {}

    def on_allocate(self, event: Event) -> None:
        self._placements.follow(self, event, +1)
        if event.class_.spec.pod.spec.volumes:
            self._volume_limits.follow(event, +1)
            self._volume_binding.on_allocate(event)
        if event.class_.spec.pod.spec.resource_claims and self._tells_of_devices:
            self._dynamic_resources.on_allocate(event)

    def on_deallocate(self, event: Event) -> None:
        self._placements.follow(self, event, -1)
        if event.class_.spec.pod.spec.volumes:
            self._volume_limits.follow(event, -1)
            self._volume_binding.on_deallocate(event)
        if event.class_.spec.pod.spec.resource_claims and self._tells_of_devices:
            self._dynamic_resources.on_deallocate(event)
