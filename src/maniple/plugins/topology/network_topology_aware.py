"""network-topology-aware: tasks of a job go close together, and domains are filled one after the other.

- gradient: domains up to the highest tier allowed, the nearest tier first (`gradients.py`)
- domain score: 100 x weight x (how full a sub-job would make the domain; equals at the top get + its tasks
  already inside / its tasks) (`packing.py`)
- node score: 100 x weight x how close the node is to what the sub-job has (`nearness.py`); for a task without
  a topology, 100 x weight x how full the domains around the node would be (`fullness.py`)

Tiers include the root's, one above the highest HyperNode. A node's own domain is the one of the lowest tier.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.domain_sums import Domains
from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import Status
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.criteria import Dependence, Scorer, Scores
from maniple.framework.groups.tree import Limit, PodSet
from maniple.framework.points import Purpose
from maniple.framework.session import Session
from maniple.plugins.settings import report
from maniple.plugins.topology.fullness import Fullness
from maniple.plugins.topology.gradients import Gradients
from maniple.plugins.topology.nearness import Nearness
from maniple.plugins.topology.packing import DomainPacking

_BEST = 100
_RESOURCES = "hypernode.binpack.resources"


@dataclass(frozen=True, slots=True)
class TopologyArguments:
    weight: int = 1
    resources: Mapping[str, int] = field(default_factory=lambda: {"cpu": 1, "memory": 1})
    pack_others: bool = True
    fading: float = 0.8
    most_for_eviction: int = 8

    @classmethod
    def read(cls, session: Session, values: Mapping[str, Any]) -> "TopologyArguments":
        given = Arguments(values, NetworkTopologyAware.name)
        names = [name.strip() for name in given.string(_RESOURCES, "").split(",")]
        keys = {name: f"{_RESOURCES}.{name}" for name in names if name}
        keys |= {"cpu": "hypernode.binpack.cpu", "memory": "hypernode.binpack.memory"}
        weight = given.int("weight", 1)
        resources = {name: given.int(key, 1) for name, key in keys.items()}
        fading = given.float("hypernode.binpack.normal-pod.fading", 0.8)
        most = given.int("hypernode.gradient.evict.max-hypernodes", 8)
        pack_others = given.bool("hypernode.binpack.normal-pod.enable", True)
        report(session, given)
        return cls(
            weight=1 if weight < 0 else weight,
            resources={name: 1 if own < 0 else own for name, own in resources.items()},
            pack_others=pack_others,
            fading=0.8 if fading < 0 else fading,
            most_for_eviction=8 if most <= 0 else most,
        )


class NetworkTopologyAware:
    name = "network-topology-aware"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        self._arguments = TopologyArguments.read(session, arguments)
        self._requests: dict[PodSet, Amounts] = {}
        self._packed: tuple[tuple[PodSet, int], Scores] | None = None
        self._gradients: Gradients | None = None
        shapes = session.groups.shaped.values()
        if any(shape.bounded for shape in shapes):
            self._gradients = Gradients(session, self._arguments.most_for_eviction)
        tied = [one.rows for shape in shapes for one in shape.members if one.limit is not None]
        if tied:
            rows = np.concatenate(tied)
            rows = rows[session.tasks.status[rows] == Status.PENDING]
            session.refine(self.name, rows, np.zeros(len(rows), dtype=np.int64))

    # -- domains --------------------------------------------------------------------------------------------------

    def hyper_node_gradient_for_job(self, job: int, domain: int, purpose: Purpose) -> list[list[int]]:
        shape = self._session.groups.root(job)
        least = self._session.resources.vector(self._session.job_facts(job).min_resources)
        return self._gradient(shape.limit, domain, shape.domain, least, purpose)

    def hyper_node_gradient_for_pod_set(self, one: PodSet, domain: int, purpose: Purpose) -> list[list[int]]:
        """Domains with enough for all that waits; by default, then those with enough for what the pod set lacks."""
        session = self._session
        waiting = one.rows[session.tasks.status[one.rows] == Status.PENDING]
        requests = session.requests(waiting)
        found = self._gradient(one.limit, domain, one.domain, requests.sum(axis=1), purpose)
        if session.rules.topology.domains_hold_all_waiting or not len(waiting):
            return found
        fewest = np.sort(requests, axis=1)[:, : self._lacking(one)].sum(axis=1)
        known = {row for domains in found for row in domains}
        others = self._gradient(one.limit, domain, one.domain, fewest, purpose)
        left = ([row for row in domains if row not in known] for domains in others)
        return [*found, *(domains for domains in left if domains)]

    def _lacking(self, one: PodSet) -> int:
        """How many tasks complete a pod set; one, if it is complete."""
        session = self._session
        if not one.whole:
            return max(session.groups.lacking(one), 1)
        return max(int(session.jobs.minimum[one.job]) - session.ready(one.job), 1)

    def _gradient(
        self, limit: Limit | None, domain: int, placed: int, least: Amounts, purpose: Purpose
    ) -> list[list[int]]:
        if limit is None or limit.highest is None or self._gradients is None:
            return [[domain]]
        return self._gradients.of(domain, placed, limit.highest, least, purpose)

    def hyper_node_order(self, one: PodSet, domains: Domains) -> Scores:
        scores = self._fullness_with(one)[domains]
        nodes = self._nodes_of(one)
        if len(nodes):
            top = scores == scores.max()
            if np.count_nonzero(top) > 1:
                inside = self._session.domains.members[np.ix_(domains[top], nodes)].sum(axis=1)
                scores[top] += inside / len(one.rows)
        return scores * float(_BEST * self._arguments.weight)

    def _fullness_with(self, one: PodSet) -> Scores:
        """By domain, how full the whole pod set would make it; remembered until a node changes."""
        moment = one, len(self._session.changes)
        if self._packed is None or self._packed[0] != moment:
            if one not in self._requests:
                self._requests[one] = self._session.requests(one.rows).sum(axis=1)
            self._packed = moment, self._packing.scores(self._requests[one])
        return self._packed[1]

    @cached_property
    def _packing(self) -> DomainPacking:
        return DomainPacking(self._session, self._arguments.resources)

    def _nodes_of(self, one: PodSet) -> NDArray[np.int32]:
        nodes = self._session.tasks.node[one.rows]
        return nodes[nodes >= 0]

    # -- nodes ----------------------------------------------------------------------------------------------------

    def scorers(self) -> list[Scorer]:
        weight = float(_BEST * self._arguments.weight)
        if weight == 0 or len(self._session.domains) == 1:
            return []  # without HyperNodes all nodes are equally close
        nearness = Nearness(self._session)
        tied = Scorer(
            self.name,
            weight,
            Dependence.CLUSTER,
            lambda _, cells: np.zeros(cells.node_rows().shape),
            applies=self._is_tied,
            by_domain=True,
            beside=lambda progress: replace(
                tied,
                raw=lambda _, cells: nearness.score(progress, cells),
                silent=lambda _: nearness.silent(progress),
                steps=lambda _, rows: nearness.steps(progress, rows),
                beside=None,
            ),
        )
        if not self._arguments.pack_others:
            return [tied]
        fullness = Fullness(self._session, self._packing, self._arguments.fading)
        others = Scorer(
            f"{self.name} for other pods",
            weight,
            Dependence.CLUSTER,
            fullness.score,
            applies=lambda class_: not self._is_tied(class_),
            steps=fullness.steps,
        )
        return [tied, others]

    def _is_tied(self, class_: TaskClass) -> bool:
        return self.name in class_.marks
