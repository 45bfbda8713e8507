"""predicates: on which nodes a pod can run at all.

First, everything wrong with the pod itself is reported together: affinity terms that all name two nodes at
once, unusable claims of volumes or devices, more of a resource than any node has, missing config maps. Then
by node, in this order: the queue's capacity with what the pod would count there; GPUs of the right kind; a
slot for the pod; the node's conditions; host ports, taints, node affinity, inter-pod affinity, volumes,
devices; and, if nodes are restricted to GPU or CPU tasks, the node's role.

Topology spread, volume limits and zones, preferred node affinity and PreferNoSchedule are not implemented by
KAI. With `scheduleCSIStorage` the capacity that storage drivers report is accounted for; otherwise each claim
is compared with it by itself.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from maniple.cluster.classes import TaskClass
from maniple.eviction.chunks import ScenarioOutcome
from maniple.framework.criteria import Filter
from maniple.framework.points import Event, PodVolumes
from maniple.framework.reasons import POD, Code, Detail, Reason
from maniple.framework.session import Session
from maniple.framework.triggers import Triggers
from maniple.objects.core import ConfigMap
from maniple.objects.printable import printable
from maniple.plugins.feasibility.inter_pod import InterPodFilter
from maniple.plugins.feasibility.node_affinity import NodeAffinity
from maniple.plugins.feasibility.ports import Ports
from maniple.plugins.feasibility.resource_claims import claim_detail
from maniple.plugins.feasibility.taints import Taints
from maniple.plugins.feasibility.volume_binding import VolumeBinding
from maniple.plugins.feasibility.volume_claims import claims_detail
from maniple.plugins.kai.config_maps import ConfigMaps
from maniple.plugins.kai.holdings import Holdings
from maniple.plugins.kai.max_node_resources import MaxNodeResources
from maniple.plugins.kai.node_quota import NodeQuota
from maniple.plugins.kai.node_rules import NodeRules
from maniple.plugins.kai.pod_slots import PodSlots
from maniple.plugins.kai.presence import Presence
from maniple.plugins.kai.storage_room import StorageRoom
from maniple.plugins.settings import takes_none

_CONFLICT = "pod affinity terms conflict"
VOLUME_SECONDS = 120.0  # the timeout of KAI's binder for volumes


class Predicates:
    """No arguments."""

    name = "predicates"
    triggers = Triggers(kinds=(ConfigMap,))

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session
        self._presence = Presence(session, self)
        self._quota = NodeQuota(session)
        self._devices = Holdings.shared(session)
        self._node_affinity = NodeAffinity(session)
        self._room = StorageRoom(session) if session.options.get("scheduleCSIStorage", False) else None
        if self._room is not None:
            session.shared[StorageRoom] = self._room
        self._volumes = VolumeBinding(session, checks_capacity=self._room is None)
        self._most = MaxNodeResources(session)
        self._config_maps = ConfigMaps(session)
        self._known: dict[int, Reason | None] = {}
        if len(session.cluster.terms) and not session.rules.placing.leaving_pods_satisfy_affinity:
            self.reclaim_scenario_validator = self._keeps_near
            self.preempt_scenario_validator = self._keeps_near
            self.consolidation_scenario_validator = self._keeps_near

    @cached_property
    def _inter_pod(self) -> InterPodFilter:
        return InterPodFilter(self._session, self._presence.placements)

    def _keeps_near(self, outcome: ScenarioOutcome) -> bool:
        return self._inter_pod.keeps_near(outcome)

    def filters(self) -> list[Filter]:
        session, placements = self._session, self._presence.placements
        rules = NodeRules(session)
        return [
            self._quota.filter(),
            *rules.by_gpus(),
            PodSlots(session).filter(),
            *rules.by_conditions(),
            Ports(session, placements).filter(),
            Taints(session).filter(),
            self._node_affinity.filter(),
            self._inter_pod.filter(),
            *self._volumes.filters(),
            *([self._room.filter()] if self._room is not None else []),
            self._devices.filter(),
            *rules.by_role(),
        ]

    def pre_predicate(self, class_: TaskClass) -> Reason | None:
        """Why a pod of this class is not considered on any node."""
        if class_.number not in self._known:
            self._known[class_.number] = self._refusal(class_)
        return self._known[class_.number]

    def _refusal(self, class_: TaskClass) -> Reason | None:
        spec = class_.spec.pod.spec
        conflict = spec.affinity is not None and self._node_affinity.conflict(class_) is not None
        problems = {
            "NodeAffinity": _CONFLICT if conflict else "",
            "VolumeBinding": self._volumes.problem(class_) if spec.volumes else "",
            "DynamicResources": self._devices.problem(class_) if spec.resource_claims else "",
            "MaxNodePoolResources": self._most.problem(class_),
            "ConfigMap": self._config_maps.problem(class_),
        }
        if not any(problems.values()):
            return None
        listed = "".join(f"{name}: {problem}.\n" for name, problem in problems.items() if problem)
        text = f"Scheduling conditions were not met for pod {POD}:\n{listed.rstrip()}"
        return Reason(text, Code.UNRESOLVABLE, self._detail(class_, problems))

    def _detail(self, class_: TaskClass, problems: Mapping[str, str]) -> Detail | None:
        """Of the claims and config maps of a pod; that it is too large is seen from the nodes."""
        pod = class_.spec.pod
        if problems["VolumeBinding"]:
            return claims_detail(self._session.cluster.storage, pod, problems["VolumeBinding"])
        if problems["DynamicResources"]:
            return claim_detail(pod, problems["DynamicResources"])
        for kind, name in (("ConfigMapMissing", "ConfigMap"), ("NodeAffinity", "NodeAffinity")):
            if problems[name]:
                return Detail(kind, printable(problems[name]))
        return None

    def pre_bind(self, class_: TaskClass) -> str | None:
        """Delayed claims must get their volumes before the pod is bound."""
        return "volumes" if self._volumes.has_delayed(class_) else None

    def volumes_to_bind(self, rows: Iterable[int]) -> dict[str, PodVolumes]:
        """The volumes to bind or provision before these tasks are bound, by task."""
        return self._volumes.to_bind(rows, VOLUME_SECONDS)

    def on_allocate(self, event: Event) -> None:
        self._presence.on_allocate(event)
        if event.class_.spec.pod.spec.volumes:
            self._volumes.on_allocate(event)
            self._note_room(event)

    def on_deallocate(self, event: Event) -> None:
        self._presence.on_deallocate(event)
        if event.class_.spec.pod.spec.volumes:
            self._volumes.on_deallocate(event)
            self._note_room(event)

    def _note_room(self, event: Event) -> None:
        if self._room is not None:
            self._room.on_change(event)
