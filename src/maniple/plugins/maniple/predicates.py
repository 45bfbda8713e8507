"""predicates: on which nodes a pod can run at all; all of kube-scheduler's filters, and KAI's for GPUs.

The filters and arguments are those of `plugins/feasibility/predicates.py`. Beside them: the right kind of
GPUs (slices, devices of DRA drivers), room in the queue for the part of a device that an amount of memory is
on a node, a slot for the reservation pod of a shared GPU, and nodes restricted to GPU or CPU tasks if the
options say so. Claims free their devices when their pods are evicted, and get them back when they stay;
`dynamicresources` reports that.
"""

from collections.abc import Mapping
from typing import Any

from maniple.eviction.kai_scenario import Outcome
from maniple.framework.criteria import Filter
from maniple.framework.session import Session
from maniple.plugins.feasibility import predicates
from maniple.plugins.feasibility.dynamic_resources import DynamicResources
from maniple.plugins.kai.holdings import Holdings
from maniple.plugins.kai.node_quota import NodeQuota
from maniple.plugins.kai.node_rules import NodeRules
from maniple.plugins.kai.pod_slots import PodSlots


class Predicates(predicates.Predicates):
    _forwards_device_events = False

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._quota = NodeQuota(session)
        super().__init__(session, arguments)
        relies_on_leaving = session.rules.placing.leaving_pods_satisfy_affinity
        if self._settings.pod_affinity and len(session.cluster.terms) and not relies_on_leaving:
            self.reclaim_scenario_validator = self._keeps_near
            self.preempt_scenario_validator = self._keeps_near
            self.consolidation_scenario_validator = self._keeps_near

    def _claimed_devices(self) -> DynamicResources:
        return Holdings.shared(self._session)

    def _keeps_near(self, outcome: Outcome) -> bool:
        return self._inter_pod.keeps_near(outcome)

    def filters(self) -> list[Filter]:
        rules = NodeRules(self._session)
        return [
            *super().filters(),
            self._quota.filter(),
            *rules.by_gpus(),
            PodSlots(self._session).filter(),
            *rules.by_role(),
        ]


__all__ = ["Predicates"]
