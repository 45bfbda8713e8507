"""A session with some of KAI's plugins, and what they say of pods and nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maniple.cluster import snapshot
from maniple.cluster.cluster import Cluster
from maniple.framework.configuration.loading import load_kai
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.profiles.catalogue import KAI
from maniple.profiles.kai import KaiDialect
from tests.plugins.kai.fairness_scenes import ACTIONS
from tests.plugins.opening import job as job_row
from tests.plugins.opening import names, task, tasks
from tests.plugins.score.cells import class_of, scores, verdicts
from tests.support import make

Plugins = Sequence[Any]
QUEUE = make("scheduling.run.ai/v2", "Queue", "q", uid="q", spec={"resources": {}})


def flat(parts: Sequence[Any]) -> list[Object]:
    return [one for part in parts for one in ([part] if isinstance(part, Object) else flat(part))]


class Asking:
    """Objects, or lists of them; plugin classes, the later ones with their arguments as pairs."""

    def __init__(
        self,
        plugins: Plugins,
        *parts: Any,
        strict: bool = False,
        arguments: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        settings = {
            "actions": "allocate",
            "tiers": [{"plugins": [{"name": one.name} for one in plugins]}],
            "compat": "strict" if strict else "better",
            **(conf or {}),
        }
        configuration = load_kai(settings, known_actions=ACTIONS)
        cluster = Cluster.from_objects(KaiDialect(strict=strict), [QUEUE, *flat(parts)])
        self.session = Session(
            snapshot.take(cluster),
            configuration,
            rules=KAI.rules_for(configuration),
            actions=ACTIONS,
            now=None,
            options=options or {},
        )
        self.plugins = [one(self.session, arguments or {}) for one in plugins]
        self.session.use([list(zip(configuration.tiers[0], self.plugins, strict=True))])

    # -- nodes ----------------------------------------------------------------------------------------------------

    def refused(self, pod: str, *, extra: int = 0) -> dict[str, str]:
        """By node, the first reason to refuse; nodes that are fine are left out."""
        found: dict[str, str] = {}
        for plugin in self.plugins:
            if hasattr(plugin, "filters"):
                found = {**verdicts(self.session, plugin, pod, extra=extra), **found}
        return found

    def points(self, pod: str, *, extra: int = 0) -> dict[str, float]:
        total = dict.fromkeys(self.session.nodes.facts.names, 0.0)
        for plugin in self.plugins:
            for node, more in scores(self.session, plugin, pod, extra=extra).items():
                total[node] += more
        return total

    def refusal(self, pod: str) -> str:
        """Why a pod is not considered at all."""
        reason = self.session.hooks.pre_predicate(class_of(self.session, pod))
        return reason.text if reason is not None else ""

    # -- orders ---------------------------------------------------------------------------------------------------

    def in_order(self, *pods: str) -> list[str]:
        return names(self.session, self.session.in_task_order(tasks(self.session, *pods)))

    def jobs_in_order(self, *jobs: str) -> list[str]:
        return sorted(jobs, key=lambda name: self.session.job_key_order(job_row(self.session, name)))

    # -- what happens ---------------------------------------------------------------------------------------------

    def row(self, pod: str) -> int:
        return task(self.session, pod)

    def node(self, name: str) -> int:
        return self.session.nodes.facts.index[name]

    def place(self, pod: str, node: str, *groups: str, wait: bool = False) -> Transaction:
        transaction = Transaction(self.session)
        carry_out = transaction.pipeline if wait else transaction.allocate
        rows, nodes = np.array([self.row(pod)]), np.array([self.node(node)], dtype=np.intp)
        carry_out(rows, nodes, [groups] if groups else None)
        return transaction

    def evict(self, *pods: str) -> Transaction:
        transaction = Transaction(self.session)
        transaction.evict(tasks(self.session, *pods), "to make room")
        return transaction


__all__ = ["Asking"]
