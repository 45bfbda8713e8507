"""nodeorder: kube-scheduler's scores, each 0..100 times its weight, added up; a weight of 0 turns one off.

Required affinity of placed pods adds nothing to InterPodAffinity's score here, unlike in kube-scheduler with
its default of 1: Volcano leaves that weight at 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maniple.framework.configuration.arguments import Arguments
from maniple.framework.criteria import Scorer
from maniple.framework.points import Event
from maniple.framework.session import Session
from maniple.plugins.feasibility.inter_pod import InterPodScore
from maniple.plugins.feasibility.node_affinity import NodeAffinity
from maniple.plugins.feasibility.placed import Placements
from maniple.plugins.feasibility.spread import Spreading
from maniple.plugins.feasibility.taints import Taints
from maniple.plugins.score.image_locality import ImageLocality
from maniple.plugins.score.resources import ResourceScores
from maniple.plugins.settings import report

HARD_POD_AFFINITY_WEIGHT = 0


@dataclass(frozen=True, slots=True)
class NodeOrderWeights:
    """The arguments, with Volcano's defaults."""

    least_requested: int = 1
    most_requested: int = 0
    node_affinity: int = 2
    pod_affinity: int = 2
    balanced_resource: int = 1
    taint_toleration: int = 3
    image_locality: int = 1
    pod_topology_spread: int = 2

    @classmethod
    def read(cls, given: Arguments) -> "NodeOrderWeights":
        default = cls()
        return cls(
            least_requested=given.int("leastrequested.weight", default.least_requested),
            most_requested=given.int("mostrequested.weight", default.most_requested),
            node_affinity=given.int("nodeaffinity.weight", default.node_affinity),
            pod_affinity=given.int("podaffinity.weight", default.pod_affinity),
            balanced_resource=given.int("balancedresource.weight", default.balanced_resource),
            taint_toleration=given.int("tainttoleration.weight", default.taint_toleration),
            image_locality=given.int("imagelocality.weight", default.image_locality),
            pod_topology_spread=given.int("podtopologyspread.weight", default.pod_topology_spread),
        )


class NodeOrder:
    name = "nodeorder"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        given = Arguments(arguments, self.name)
        self._weights = NodeOrderWeights.read(given)
        report(session, given)
        self._session = session
        self._placements = Placements.shared(session, self)

    def scorers(self) -> list[Scorer]:
        session, weights = self._session, self._weights
        resources, taints = ResourceScores(session), Taints(session)
        frozen = not session.rules.placing.affinity_of_new_pods_counts
        scorers = [
            resources.least(weights.least_requested),
            resources.most(weights.most_requested),
            resources.balanced(weights.balanced_resource),
            NodeAffinity(session).scorer(weights.node_affinity),
            ImageLocality(session).scorer(weights.image_locality),
            InterPodScore(session, self._placements, HARD_POD_AFFINITY_WEIGHT, frozen=frozen).scorer(
                weights.pod_affinity
            ),
            taints.scorer(weights.taint_toleration),
            Spreading(session, self._placements, taints).scorer(weights.pod_topology_spread),
        ]
        return [scorer for scorer in scorers if scorer.weight]

    def on_allocate(self, event: Event) -> None:
        self._placements.follow(self, event, +1)

    def on_deallocate(self, event: Event) -> None:
        self._placements.follow(self, event, -1)
