"""topology: keeps a group of pods together in the domains of a topology, as its constraint says.

A required level: the whole group goes into one domain of that level, the one that they fill best. A preferred
level: narrower domains are tried first, and if none of them works, the nodes of the roomiest domains come
first. `subset_nodes` returns the node sets to be tried, the narrowest domains first, inside a level the
fullest; the scorer orders nodes by their domains at the preferred level. Nodes that lack a label of the
topology are excluded.

Without `topology.required_level_is_deepest` a group whose nodes all lie in a domain deeper than required
finds nothing; with `topology.mixed_parts_are_refused` tasks with different parts of devices are refused. Both
are so in KAI.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.facts import LevelWish
from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.framework.criteria import Cells, Dependence, NodeRows, Scorer, Scores, Stepper
from maniple.framework.groups.tree import DEFAULT, Group, PodSet
from maniple.framework.points import TaskRows
from maniple.framework.refusals import Refusals
from maniple.framework.session import Session
from maniple.plugins.kai.bands import TOPOLOGY
from maniple.plugins.kai.level_demand import Measure, Measures
from maniple.plugins.kai.level_tree import ROOT_LEVEL, Chosen, Domains, LevelTree
from maniple.plugins.settings import takes_none

UNKNOWN = "Requested topology {topology} does not exist"
NO_LEVEL = "topology {topology}: {whose} has a constraint that names no level"
UNKNOWN_LEVEL = "topology {topology} has no level {level!r}, the {kind} level of {whose}"
UNSATISFIED = "topology {topology}, requirement {level} couldn't be satisfied for {whose}"
TOO_LITTLE = "not enough resources in {domain} to allocate the job"
TOO_FEW = "node-group {domain} can allocate only {places} of {count} required pods"
MIXED_PARTS = "tasks that request different parts of GPUs cannot be counted together"
_OUT = -np.inf
_DOMAINS_SHOWN = 10  # domains in a job's message, those with the most room


class _Group:
    """The tasks to be kept together, and where."""

    def __init__(
        self,
        session: Session,
        group: Group | PodSet,
        tree: LevelTree,
        wish: LevelWish,
        refusals: Refusals,
    ) -> None:
        self.job = group.job
        self.refusals = refusals
        self.tree = tree
        self.wish = wish
        self.pod_sets = [group] if isinstance(group, PodSet) else group.all_pod_sets()
        self.whose = f"job <{session.job_key(group.job)}>"
        if group.name not in ("", DEFAULT):
            self.whose += f", subgroup {group.name}"

    def level(self, label: str) -> int | None:
        """The number of a level; None if none is requested or it is unknown."""
        return self.tree.levels.index(label) if label in self.tree.levels else None


class _Constant:
    """The scores of nodes do not change as tasks are placed."""

    def __init__(self, scores: Scores) -> None:
        self._scores = scores

    def shift(self, _candidates: Chosen) -> Scores:
        return self._scores

    def take(self, _place: int) -> None:
        """Nothing changes."""


class Topology:
    """No arguments."""

    name = "topology"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session
        self._trees: dict[str, LevelTree] = {}
        self._measures = Measures(session)
        self._scores: dict[str, Scores] = {}  # by name of group, for the job at hand
        self._now: Scores | None = None  # those of the pod set at hand

    # -- points ---------------------------------------------------------------------------------------------------

    def pre_job_allocation(self, _job: int) -> None:
        if self._scores:
            self._scores = {}
        self._now = None

    def subset_nodes(
        self, group: Group | PodSet, rows: TaskRows, refusals: Refusals, nodes: NodeRows
    ) -> list[NodeRows]:
        sets = [nodes]
        if group.wish is not None and group.wish.topology:
            sets = self._sets(group, group.wish, rows, refusals, nodes)
        if isinstance(group, PodSet) and self._scores:
            self._now = self._scores_of_part(group, nodes)
        return sets

    def lacks_domains(self, group: Group | PodSet) -> bool:
        if group.wish is None or not group.wish.required:
            return False
        tree, required = self._tree(group.wish.topology), group.wish.required
        return tree is None or required not in tree.levels or not len(tree.at(tree.levels.index(required)))

    def scorers(self) -> list[Scorer]:
        return [
            Scorer(
                self.name,
                TOPOLOGY,
                Dependence.CLUSTER,
                self._raw,
                silent=self._is_silent,
                steps=self._steps,
                by_domain=True,
                alike=lambda _: (),  # it looks at jobs
            )
        ]

    # -- scores ---------------------------------------------------------------------------------------------------

    def _scores_of_part(self, pod_set: PodSet, nodes: NodeRows) -> Scores | None:
        """The scores of a pod set, or of the nearest group around it; None if they are equal for all these
        nodes."""
        scores, group = self._scores.get(pod_set.name), pod_set.parent
        while scores is None:
            scores = self._scores.get(group.name)
            if group.parent is None:
                break
            group = group.parent
        if scores is None or not len(nodes):
            return None
        some = scores[nodes]
        return None if some[0] != _OUT and (some == some[0]).all() else scores

    def _is_silent(self, _class: TaskClass) -> bool:
        return self._now is None

    def _raw(self, _class: TaskClass, cells: Cells) -> Scores:
        if self._now is None:
            return np.zeros(np.shape(cells.node_rows()))
        return self._now[cells.node_rows()]

    def _steps(self, _class: TaskClass, nodes: NodeRows) -> Stepper:
        return _Constant(np.zeros(len(nodes)) if self._now is None else self._now[nodes])

    # -- node sets ------------------------------------------------------------------------------------------------

    def _sets(
        self, group: Group | PodSet, wish: LevelWish, rows: TaskRows, refusals: Refusals, nodes: NodeRows
    ) -> list[NodeRows]:
        session = self._session
        tree = self._tree(wish.topology)
        if tree is None:
            refusals.of_job(group.job, UNKNOWN.format(topology=wish.topology))
            return []
        if not len(rows):
            return [nodes]
        asking, measure = _Group(session, group, tree, wish, refusals), self._measures.of(tree, rows)
        if (
            measure.demand.alike
            and not measure.demand.countable
            and session.rules.topology.mixed_parts_are_refused
        ):
            self._refuse(asking, MIXED_PARTS)
            return []
        inside = tree.inside(nodes)
        domain = tree.common(inside, self._deepest(asking))
        if not measure.fits[domain]:
            where = "the cluster" if domain == tree.root else tree.ids[domain]
            self._refuse(asking, TOO_LITTLE.format(domain=where))
            return []
        below = tree.below([domain])
        self._score(asking, group.name, below, measure.order)
        levels = self._levels(asking)
        if not levels:
            return []
        below &= self._around_placed(asking)
        fitting = below & measure.fits
        chosen = [one for level in levels for one in _in_order(tree.at(level), fitting, measure.order)]
        if not chosen:
            self._explain(asking, measure, _in_order(tree.at(levels[-1]), below, measure.order))
        return [tree.nodes(one, inside) for one in chosen]

    def _tree(self, name: str) -> LevelTree | None:
        if name not in self._trees and name in self._session.domains.kai:
            self._trees[name] = LevelTree(self._session.domains.kai[name])
        return self._trees.get(name)

    def _deepest(self, asking: _Group) -> int:
        """The level below which a narrower common domain does not matter."""
        preferred, required = asking.level(asking.wish.preferred), asking.level(asking.wish.required)
        if preferred is not None:
            return preferred
        if required is not None and self._session.rules.topology.required_level_is_deepest:
            return required
        return len(asking.tree.levels) - 1

    def _score(self, asking: _Group, name: str, below: Chosen, order: Domains) -> None:
        """Nodes by their domains at the preferred level, if there is one: in ten steps, the roomiest highest."""
        tree, level = asking.tree, asking.level(asking.wish.preferred)
        if level is not None:
            ordered = _in_order(tree.at(level), below, order)
            values = np.full(tree.root + 1, _OUT)
            values[ordered] = np.floor(np.arange(1, len(ordered) + 1) / max(len(ordered), 1) * 10)
            self._scores[name] = tree.by_node(values, level, len(self._session.nodes), _OUT)

    def _levels(self, asking: _Group) -> list[int]:
        """The levels whose domains are tried: from the narrowest requested up to the required one."""
        wish, tree = asking.wish, asking.tree
        for kind, label in (("required", wish.required), ("preferred", wish.preferred)):
            if label and asking.level(label) is None:
                asking.refusals.of_job(
                    asking.job,
                    UNKNOWN_LEVEL.format(topology=tree.name, level=label, whose=asking.whose, kind=kind),
                )
                return []
        required, preferred = asking.level(wish.required), asking.level(wish.preferred)
        if required is None and preferred is None:
            asking.refusals.of_job(asking.job, NO_LEVEL.format(topology=tree.name, whose=asking.whose))
            return []
        widest = ROOT_LEVEL if required is None else required
        narrowest = widest if preferred is None else max(preferred, widest)
        return list(range(narrowest, widest - 1, -1))

    def _around_placed(self, asking: _Group) -> Chosen:
        """By domain: whether it is inside a required domain that already contains a task of the group, if any
        does."""
        session, tree = self._session, asking.tree
        required = asking.level(asking.wish.required)
        everywhere = np.ones(tree.root + 1, dtype=np.bool_)
        if required is None:
            return everywhere
        rows = np.concatenate([one.rows for one in asking.pod_sets])
        placed = rows[ACTIVE_ALLOCATED[session.tasks.status[rows]]]
        if not len(placed):
            return everywhere
        nodes = np.unique(session.tasks.node[placed]).astype(np.intp)
        return tree.below(tree.domains(tree.inside(nodes[nodes >= 0]), required))

    # -- reasons --------------------------------------------------------------------------------------------------

    def _refuse(self, asking: _Group, cause: str = "") -> None:
        text = UNSATISFIED.format(topology=asking.tree.name, level=asking.wish.required, whose=asking.whose)
        asking.refusals.of_job(asking.job, f"{text}: {cause}" if cause else text)

    def _explain(self, asking: _Group, measure: Measure, tried: list[int]) -> None:
        """Why no domain of the widest level that was tried will do."""
        tree, refusals, demand = asking.tree, asking.refusals, measure.demand
        places = measure.places
        if demand.countable:
            for one in sorted(tried, key=lambda domain: (-places[domain], tree.ids[domain]))[:_DOMAINS_SHOWN]:
                refusals.of_job(
                    asking.job, TOO_FEW.format(domain=tree.ids[one], places=places[one], count=demand.count)
                )
        else:
            for one in tried[-_DOMAINS_SHOWN:]:
                refusals.of_job(asking.job, ", ".join(demand.lacking(measure.free[:, one])))
        self._refuse(asking)


def _in_order(domains: Domains, chosen: Chosen, order: Domains) -> list[int]:
    some = domains[chosen[domains]]
    ordered: list[int] = some[np.argsort(order[some])].tolist()
    return ordered
