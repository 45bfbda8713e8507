"""How much room domains have, and which are alike: lets a search skip domains without trying them.

Used by the search for domains. A domain that has fewer free slots than a gang needs cannot hold it, whatever
else is true. Of domains that are alike for the tasks at hand, node by node and domain by domain inside, one
trial decides for all.
"""

from collections.abc import Mapping

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.domain_sums import Domains, KeptSums
from maniple.cluster.resources import Amounts
from maniple.framework.criteria import Cells, Scores
from maniple.framework.session import Session
from maniple.placement.column import NOWHERE, ClassColumn
from maniple.placement.engine import Placement

_MOST_CELLS = 1_000_000  # from here on comparing costs more than trying

Demand = Mapping[int, int]  # class -> tasks


class DomainRoom:
    """Free slots by domain, for as long as nothing changes."""

    def __init__(self, session: Session, placement: Placement) -> None:
        self._session = session
        self._placement = placement
        self._places = session.groups.places
        self._slots: dict[int, tuple[KeptSums, bool]] = {}
        self._structures: dict[int, bytes] = {}

    def slots(self, class_: TaskClass) -> Amounts:
        """By domain, how many more tasks of a class its nodes have room for, counting what is being released."""
        column, flowing = self._placement.column(class_), self._session.flowing
        kept, flowed = self._slots.get(class_.number) or (
            KeptSums(self._places, self._session.changes),
            flowing,
        )
        self._slots[class_.number] = kept, flowing
        slots = column.later if flowing else column.slots
        sums: Amounts = kept.of(slots[None], afresh=flowing != flowed)[0]
        return sums

    def for_demand(self, demand: Demand) -> Amounts:
        """By domain, how many of these tasks could find a slot at most."""
        total = np.zeros(len(self._places.tree), dtype=np.int64)
        for number, count in demand.items():
            total += np.minimum(self.slots(self._session.classes[number]), count)
        return total

    # -- likeness -------------------------------------------------------------------------------------------------

    def likeness(self, demand: Demand, domains: Domains) -> dict[int, bytes] | None:
        """A key for each of some domains: equal keys, equal outcome. None where that cannot be decided.

        For tasks of one class that no plugin couples to other nodes, the nodes decide: how many tasks fit on
        each of them, what each is worth, and the books themselves.
        """
        if len(demand) != 1:
            return None
        ((number, count),) = demand.items()
        column = self._placement.column(self._session.classes[number])
        if not self._settled_by_nodes(column):
            return None
        depth = int(min(count, max(int(column.slots.max()), int(column.later.max()))))
        if depth * len(column.nodes) > _MOST_CELLS:
            return None
        worth, books = self._worth(column, depth), self._books(column)
        members = self._places.tree.members
        return {
            domain: b"".join(
                (
                    worth[:, members[domain]].tobytes(),
                    books[:, members[domain]].tobytes(),
                    self._structure(domain),
                )
            )
            for domain in domains.tolist()
        }

    def _settled_by_nodes(self, column: ClassColumn) -> bool:
        criteria = column.criteria
        structural = all(one.by_domain for one in criteria.cluster_scorers)
        return structural and not criteria.cluster_filters and not criteria.relative

    def _worth(self, column: ClassColumn, depth: int) -> Scores:
        """What the first, second, ... task is worth on each node, a column a node."""
        nodes = self._session.nodes
        rows, extra = np.arange(len(nodes))[:, None], np.arange(max(depth, 1))
        cells = Cells(nodes, column.class_, rows, extra)
        fits = np.ones((len(nodes), max(depth, 1)), dtype=np.bool_)
        column.rule_out(cells, fits)
        worth: Scores = np.where(fits, column.value(cells), NOWHERE).T
        return worth

    def _books(self, column: ClassColumn) -> Amounts:
        nodes, slots = self._session.nodes, [column.slots, column.later]
        return np.concatenate([slots, nodes.allocatable, nodes.books])

    def _structure(self, domain: int) -> bytes:
        """How a domain's nodes are spread over the domains inside it."""
        known = self._structures.get(domain)
        if known is None:
            tree, below = self._places.tree, self._places.below(domain)
            inside = tree.members[below][:, tree.members[domain]]
            known = self._structures[domain] = inside.tobytes() + tree.tier[below].tobytes()
        return known
