"""podaffinity: preferred inter-pod affinity of both sides as Kubernetes counts it, unscaled, times 100,000."""

from collections.abc import Mapping
from typing import Any

from maniple.framework.criteria import Scorer
from maniple.framework.points import Event
from maniple.framework.session import Session
from maniple.plugins.feasibility.inter_pod import InterPodScore
from maniple.plugins.kai.bands import KUBERNETES
from maniple.plugins.kai.presence import Presence
from maniple.plugins.settings import takes_none


class PodAffinity:
    """No arguments; required affinity of placed pods does not count."""

    name = "podaffinity"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._presence = Presence(session, self)
        self._score = InterPodScore(session, self._presence.placements, hard_weight=0)

    def scorers(self) -> list[Scorer]:
        return [self._score.scorer(KUBERNETES, normalise=None)]

    def on_allocate(self, event: Event) -> None:
        self._presence.on_allocate(event)

    def on_deallocate(self, event: Event) -> None:
        self._presence.on_deallocate(event)
