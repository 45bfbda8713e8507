"""network-topology-aware: tasks that talk to each other go close together, and domains are filled one after the other.

gradient     domains up to the highest tier allowed, the nearest tier first (`gradients.py`)
domain score 100 x weight x how full a sub-job would make the domain (`packing.py`); equals at the top get
             + (its tasks already inside) / (its tasks)
node score   of a task with a topology, once its sub-job has a place: 1 in the node's own domain, else
             (highest tier - tier of the domain around both) / (highest tier - lowest tier); equals at the top get
             + (tasks of the sub-job in the node's own domain) / (its tasks); x 100 x weight
             of any other task: sum over tiers of fading^(tier - 1) x how full the domain of that tier would be
             (1 where the node is in none), divided by the sum of the fading weights; x 100 x weight

Tiers count the root's, one above the highest HyperNode. A node's own domain is the one of the lowest tier.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.domain_sums import Domains
from maniple.cluster.domains import NONE
from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import Status
from maniple.framework.arguments import Arguments
from maniple.framework.criteria import Cells, Dependence, Scorer, Scores
from maniple.framework.points import Purpose
from maniple.framework.session import Session
from maniple.framework.sub_jobs import Limit, SubJob
from maniple.plugins.settings import report
from maniple.plugins.topology.gradients import Gradients
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
        self._requests: dict[int, Amounts] = {}
        self._nearness: dict[int, Scores] = {}
        self._gradients: Gradients | None = None
        shapes = session.sub_jobs.shapes.values()
        if any(shape.bounded for shape in shapes):
            self._gradients = Gradients(session, self._arguments.most_for_eviction)
        tied = [one.tasks for shape in shapes for one in shape.sub_jobs if one.limit is not None]
        if tied:
            rows = np.concatenate(tied)
            rows = rows[session.tasks.status[rows] == Status.PENDING]
            session.refine(self.name, rows, np.zeros(len(rows), dtype=np.int64))

    # -- domains --------------------------------------------------------------------------------------------------

    def hyper_node_gradient_for_job(self, job: int, domain: int, purpose: Purpose) -> list[list[int]]:
        shape = self._session.sub_jobs.of(job)
        least = self._session.resources.vector(self._session.job_facts(job).min_resources)
        return self._gradient(shape.limit, domain, shape.domain, least, purpose)

    def hyper_node_gradient_for_sub_job(self, sub_job: int, domain: int, purpose: Purpose) -> list[list[int]]:
        one = self._session.sub_jobs[sub_job]
        waiting = one.tasks[self._session.tasks.status[one.tasks] == Status.PENDING]
        least = self._session.requests(waiting).sum(axis=1)
        return self._gradient(one.limit, domain, one.domain, least, purpose)

    def _gradient(
        self, limit: Limit | None, domain: int, placed: int, least: Amounts, purpose: Purpose
    ) -> list[list[int]]:
        if limit is None or limit.highest is None or self._gradients is None:
            return [[domain]]
        return self._gradients.of(domain, placed, limit.highest, least, purpose)

    def hyper_node_order(self, sub_job: int, domains: Domains) -> Scores:
        one = self._session.sub_jobs[sub_job]
        if sub_job not in self._requests:
            self._requests[sub_job] = self._session.requests(one.tasks).sum(axis=1)
        scores = self._packing.scores(self._requests[sub_job])[domains]
        nodes = self._nodes_of(one)
        if len(nodes):
            top = scores == scores.max()
            if np.count_nonzero(top) > 1:
                inside = self._session.domains.members[np.ix_(domains[top], nodes)].sum(axis=1)
                scores[top] += inside / len(one.tasks)
        return scores * float(_BEST * self._arguments.weight)

    @cached_property
    def _packing(self) -> DomainPacking:
        return DomainPacking(self._session, self._arguments.resources)

    def _nodes_of(self, one: SubJob) -> NDArray[np.int32]:
        nodes = self._session.tasks.node[one.tasks]
        return nodes[nodes >= 0]

    # -- nodes ----------------------------------------------------------------------------------------------------

    def scorers(self) -> list[Scorer]:
        if self._arguments.weight == 0 or len(self._session.domains) == 1:
            return []  # without HyperNodes all nodes are equally close
        tied = Scorer(
            self.name,
            float(_BEST * self._arguments.weight),
            Dependence.CLUSTER,
            self._closeness,
            applies=self._is_tied,
            silent=self._sees_no_difference,
            by_domain=True,
        )
        others = Scorer(
            f"{self.name} for other pods",
            float(_BEST * self._arguments.weight),
            Dependence.CLUSTER,
            self._fullness,
            applies=lambda class_: not self._is_tied(class_),
        )
        return [tied, others] if self._arguments.pack_others else [tied]

    def _is_tied(self, class_: TaskClass) -> bool:
        return self.name in class_.marks

    def _sees_no_difference(self, _: TaskClass) -> bool:
        """Nothing is being placed that is tied together, or only where all nodes are equally close."""
        progress = self._session.sub_jobs.progress
        return progress is None or bool(self._session.sub_jobs.places.uniform[progress.ground])

    def _closeness(self, _: TaskClass, cells: Cells) -> Scores:
        home = self._session.sub_jobs.places.home[cells.node_rows()]
        progress = self._session.sub_jobs.progress
        if progress is None or progress.domain == NONE:
            return np.zeros(len(home))
        scores = self._near(progress.domain)[home]
        top = scores == scores.max()
        if np.count_nonzero(top) > 1:
            scores[top] += self._share_at(progress.sub_job)[home[top]]
        return scores

    def _near(self, domain: int) -> Scores:
        """By a node's own domain, how close it is to a domain. The last entry is for nodes that have none."""
        known = self._nearness.get(domain)
        if known is None:
            places, tree = self._session.sub_jobs.places, self._session.domains
            lowest, highest = places.tiers[0], places.tiers[-1]
            known = np.zeros(len(tree) + 1)
            for around in reversed(tree.ancestors(domain)):
                far = (highest - int(tree.tier[around])) / (highest - lowest) if highest > lowest else 1.0
                known[places.below(around)] = far
            known[domain] = 1.0
            self._nearness[domain] = known
        return known

    def _share_at(self, one: SubJob) -> Scores:
        """By a node's own domain, which part of a sub-job's tasks is there. The last entry is for nodes that have none."""
        home = self._session.sub_jobs.places.home[self._nodes_of(one)]
        counts = np.bincount(home[home >= 0], minlength=len(self._session.domains) + 1)
        shares: Scores = counts / len(one.tasks)
        return shares

    def _fullness(self, class_: TaskClass, cells: Cells) -> Scores:
        weights, holders = self._tiers
        full = np.append(
            self._packing.scores(class_.request), 1.0
        )  # the last is for nodes that are in no domain of a tier
        scores: Scores = weights @ full[holders[:, cells.rows]] / weights.sum()
        return scores

    @cached_property
    def _tiers(self) -> tuple[Scores, Domains]:
        """What every tier counts, and which domain of it holds a node (tiers x nodes)."""
        tree, tiers = self._session.domains, self._session.sub_jobs.places.tiers
        every = range(tiers[0], tiers[-1] + 1)  # tiers in between that nobody has count too
        fading = self._arguments.fading
        # Tier 0 would count more than tier 1, and without end when nothing is to fade in.
        weights = np.array([fading ** (tier - 1 if fading > 0 else max(tier - 1, 0)) for tier in every])
        holders = np.full((len(weights), len(self._session.nodes)), NONE, dtype=np.int64)
        for place, tier in enumerate(every):
            rows = np.flatnonzero(tree.tier == tier)
            if len(rows):
                members = tree.members[rows]
                holders[place] = np.where(members.any(axis=0), rows[members.argmax(axis=0)], NONE)
        return weights, holders
