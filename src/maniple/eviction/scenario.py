"""Room for a whole job: victims in order until it fits, then as few of them as will do.

How many units (`units.py`) are needed at least is known from sums: take that many, ask the plugins about all of them at once, evict, and try to
place the job on what will be free; where that is not enough yet, go on. In the end units whose room is not needed are given back, the most
important first, so that none of those left can be spared. It all happens in a transaction: a job that cannot be served leaves no trace.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.eviction.units import Unit, UnitPool
from maniple.framework.operations import Operation
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transaction import SavedPlan, Transaction
from maniple.placement.engine import Mask, Placement

Reach = Mapping[int, Mask | None]  # by class: nodes where its tasks could go; None for all of them


@dataclass(slots=True, eq=False)
class Demand:
    """Tasks of one class that have to be placed."""

    class_: TaskClass
    rows: TaskRows


@dataclass(slots=True, eq=False)
class Terms:
    """On which terms room is made: out of which queues, whom the plugins give up, and why."""

    queue: int  # that asks
    queues: Sequence[int]
    approve: Callable[[int, TaskRows], TaskRows]
    within_limits: Callable[[list[Demand]], bool]  # asked when the victims are gone and before the tasks come
    accept: Callable[[], bool]  # asked when the tasks are there
    reason: str


@dataclass(slots=True, eq=False)
class _Taken:
    unit: Unit
    operations: list[Operation]


class Scenario:
    """Tasks that ask for room, all or none."""

    def __init__(
        self,
        session: Session,
        placement: Placement,
        demands: list[Demand],
        terms: Terms,
        ratios: dict[tuple[int, int], float],
    ) -> None:
        """`ratios`: how often one class goes into another, as far as that is known already."""
        self._session = session
        self._placement = placement
        self._demands = demands
        self._terms = terms
        self._asker = int(demands[0].rows[0])
        columns = [placement.column(demand.class_) for demand in demands]
        # By class, the nodes that nothing lasting speaks against; None where that is all of them.
        everywhere = {column.class_.number: None if column.all_open else column.open for column in columns}
        self._open: Reach = everywhere
        self._reaches = _by_shard(placement, everywhere)
        # Sums decide where there is one class, and no rule that looks at other nodes, as long as they are not found wrong.
        self._simple = len(demands) == 1 and not columns[0].criteria.coupled
        self._surplus, self._thorough = True, False
        self._passed_over = False  # some unit frees something that is asked for, though by itself no room
        self._ratios = ratios

    def solve(self, pool: UnitPool) -> bool:
        """Pipeline the tasks and evict their victims for good; False, and nothing done, when there is no way.

        Where nodes are in shards and ours are only preferred, victims on ours first.
        """
        return any(self._solve_within(pool, reach) for reach in self._reaches)

    def _solve_within(self, pool: UnitPool, reach: Reach) -> bool:
        """Surplus first. Where that leads nowhere, because what a fair share leaves to take runs out before enough has been
        taken, whole jobs alone may do. Last, units that help only together with others are tried too.
        """
        self._open = reach
        return (
            self._solve(pool, surplus=True)
            or (pool.has_surplus and self._solve(pool, surplus=False))
            or (self._passed_over and self._solve(pool, surplus=True, thorough=True))
        )

    def _solve(self, pool: UnitPool, *, surplus: bool, thorough: bool = False) -> bool:
        self._surplus, self._thorough = surplus, thorough
        transaction, fits = Transaction(self._session), False
        taken: list[_Taken] = []
        # Every round takes units out of the pool for good, and the pool is finite: that is why this ends.
        while not fits:
            missing = self._missing()
            if missing <= 0:
                fits = self._place_sparingly(transaction, taken, pool)
                missing = max(len(taken), 1)  # or the sums were too hopeful: look twice as far
            if not fits:
                units = self._approved(pool, missing)
                if not units:
                    break
                taken += self._evict(transaction, units)
        if not fits or not self._terms.accept():
            transaction.discard()
            pool.put_back(one.unit for one in taken)
            return False
        transaction.commit()
        return True

    def _place_sparingly(self, transaction: Transaction, taken: list[_Taken], pool: UnitPool) -> bool:
        """Place the tasks, and give back units that they can do without; False, and nothing done, when they do not all fit.

        Where sums decide, units are given back first. Should the tasks not fit then, sums were wrong: those units are taken again, and from here on
        placing decides.
        """
        if self._simple:
            spared = self._spare(transaction, taken)
            if self._place(transaction):
                pool.put_back(spared)
                return True
            self._simple = False
            taken += self._evict(transaction, spared) if spared else []
        if not self._place(transaction):
            return False
        transaction.rollback(sum(len(one.operations) for one in taken))
        pool.put_back(self._spare(transaction, taken))
        return self._place(transaction)

    # -- whom to take ---------------------------------------------------------------------------------------------

    def _missing(self) -> int:
        """At least so many tasks cannot be placed yet."""
        return max([len(demand.rows) - self._room(demand) for demand in self._demands])

    def _room(self, demand: Demand) -> int:
        """For how many tasks of the class there will be room."""
        return self._placement.column(demand.class_).room

    def _approved(self, pool: UnitPool, missing: float) -> list[Unit]:
        """The next units that could cover what is missing and that no plugin protects."""
        refused: list[Unit] = []
        approved: list[Unit] = []
        while not approved:
            units = self._enough(pool, missing, refused)
            if not units:
                break
            # Those evicted before are off everybody's books: plugins hear of them as they go.
            asked = np.concatenate([unit.rows for unit in units])
            approval = self._terms.approve(self._asker, asked)
            if len(approval) == len(asked) and not refused:
                return units
            allowed = set(approval.tolist())
            for unit in units:
                free, protected = _split(unit, allowed)
                # A job of which anything is protected is not lost either.
                if unit.whole and (protected or unit.job in {other.job for other in refused}):
                    free, protected = None, unit
                approved += [free] if free else []
                refused += [protected] if protected else []
        pool.put_back(refused)
        return approved

    def _enough(self, pool: UnitPool, missing: float, useless: list[Unit]) -> list[Unit]:
        """Units that could together make room for the missing tasks; those that cannot help at all are laid aside."""
        units: list[Unit] = []
        helpful = self._helpful()
        while missing > 0:
            most = ceil(missing) if self._surplus else 0
            unit = pool.take(self._terms.queue, self._terms.queues, most, helpful)
            if unit is None:
                break
            worth = self._worth(unit)
            (units if worth > 0 else useless).append(unit)
            missing -= worth
        return units

    def _helpful(self) -> Mask | None:
        """The nodes where any of the tasks could go; None where that is all of them."""
        masks = [mask for mask in self._open.values() if mask is not None]
        return np.logical_or.reduce(masks) if len(masks) == len(self._open) else None

    def _worth(self, unit: Unit) -> float:
        """For how many of the tasks the unit makes room at best."""
        return max([self._worth_for(demand, unit) for demand in self._demands])

    def _worth_for(self, demand: Demand, unit: Unit) -> float:
        reachable = self._reachable(demand, unit)
        numbers = self._session.tasks.class_of[reachable].tolist()
        if not numbers:
            return 0.0
        ratio = self._goes_into(demand, numbers[0]) if len(set(numbers)) == 1 else 0.0
        return len(numbers) * ratio if ratio > 0 else self._gain(demand, reachable)

    def _reachable(self, demand: Demand, unit: Unit) -> TaskRows:
        """The tasks of a unit that are on nodes where the demand could go."""
        open_ = self._open[demand.class_.number]
        return unit.rows if open_ is None else unit.rows[open_[self._session.tasks.node[unit.rows]]]

    def _gain(self, demand: Demand, rows: TaskRows) -> float:
        """The same for victims that do not free everything that is asked for: what matters is what their nodes lack."""
        session, asked = self._session, demand.class_.request > 0
        need = demand.class_.request[asked][:, None]
        where, places = np.unique(session.tasks.node[rows], return_inverse=True)
        freed = np.zeros((len(where), len(asked)), dtype=np.int64)
        np.add.at(freed, places, session.requests(rows).T)
        given = freed[:, asked].T
        free = session.nodes.future_idle(where.astype(np.intp))[asked]
        gain = float((((free + given) / need).min(axis=0) - (free / need).min(axis=0)).clip(0).sum())
        if gain > 0:
            return gain
        self._passed_over = self._passed_over or bool(given.any())
        return float((given / need).max()) if self._thorough else 0.0

    def _goes_into(self, demand: Demand, number: int) -> float:
        """How often a task of the demand goes into what one of a class leaves."""
        key = (demand.class_.number, number)
        ratio = self._ratios.get(key)
        if ratio is None:
            asked = demand.class_.request > 0
            freed = self._session.classes[number].request[asked]
            ratio = self._ratios[key] = float((freed / demand.class_.request[asked]).min())
        return ratio

    # -- trying ---------------------------------------------------------------------------------------------------

    def _evict(self, transaction: Transaction, units: list[Unit]) -> list[_Taken]:
        reason = self._terms.reason
        if len({unit.job for unit in units}) < len(units):
            return [_Taken(unit, transaction.evict(unit.rows, reason)) for unit in units]
        by_job: dict[int, list[Operation]] = {unit.job: [] for unit in units}
        for operation in transaction.evict(np.concatenate([unit.rows for unit in units]), reason):
            by_job[operation.event.job].append(operation)
        return [_Taken(unit, by_job[unit.job]) for unit in units]

    def _place(self, transaction: Transaction) -> bool:
        """Pipeline all of the tasks; False, and nothing done, when they do not all fit."""
        if not self._terms.within_limits(self._demands):
            return False
        checkpoint = transaction.checkpoint()
        for demand in self._demands:
            rows = demand.rows
            # Each class fits the limits by itself; now those of the classes before it are there, too.
            if len(self._demands) > 1 and not self._terms.within_limits([demand]):
                transaction.rollback(checkpoint)
                return False
            if self._simple and self._placement.take_last(transaction, demand.class_, rows):
                continue
            while len(rows):
                proposal = self._placement.fill(demand.class_, len(rows))
                if proposal is None:
                    transaction.rollback(checkpoint)
                    return False
                transaction.pipeline(rows[: len(proposal)], proposal.nodes)
                rows = rows[len(proposal) :]
        return True

    # -- sparing --------------------------------------------------------------------------------------------------

    def _spare(self, transaction: Transaction, taken: list[_Taken]) -> list[Unit]:
        """Let every unit stay without which the tasks still fit, the most important first; they are not placed yet.

        A job that is lost is lost with its surplus.
        """
        if len(taken) < 2 or self._all_needed(taken):
            return []
        spared, lost = [], set[int]()
        for one in reversed(list(taken)):
            if one.unit.job not in lost and not self._surely_needed(one.unit):
                for operation in one.operations:
                    transaction.retract(operation)
                if self._missing() <= 0 and self._would_fit(transaction):
                    spared.append(one.unit)
                    taken.remove(one)
                    continue
                checkpoint = transaction.checkpoint()
                transaction.replay(SavedPlan(tuple(one.operations)))
                one.operations[:] = transaction.operations[checkpoint:]
            if one.unit.whole:
                lost.add(one.unit.job)
        return spared

    def _all_needed(self, taken: list[_Taken]) -> bool:
        """There is not one place too many, and every unit leaves at least one."""
        demand = self._demands[0]
        if not self._simple or self._room(demand) > len(demand.rows):
            return False
        firsts = np.array([one.unit.rows[0] for one in taken])
        open_, tasks = self._open[demand.class_.number], self._session.tasks
        if open_ is not None and not open_[tasks.node[firsts]].all():
            return False
        return all(self._goes_into(demand, number) >= 1 for number in set(tasks.class_of[firsts].tolist()))

    def _would_fit(self, transaction: Transaction) -> bool:
        if self._simple:
            return self._terms.within_limits(self._demands)
        checkpoint = transaction.checkpoint()
        fits = self._place(transaction)
        transaction.rollback(checkpoint)
        return fits

    def _surely_needed(self, unit: Unit) -> bool:
        """Sums show it: without the tasks that fit into what single victims leave there is not enough room."""
        class_of = self._session.tasks.class_of
        for demand in self._demands:
            numbers = class_of[self._reachable(demand, unit)].tolist()
            given = sum(int(self._goes_into(demand, number)) for number in numbers)
            if self._room(demand) - given < len(demand.rows):
                return True
        return False


def _by_shard(placement: Placement, everywhere: Reach) -> list[Reach]:
    """Where to look for victims, one after the other: on nodes of our own shard, then everywhere."""
    own = placement.own
    if own is None:
        return [everywhere]
    near = {number: own if mask is None else own & mask for number, mask in everywhere.items()}
    return [near, everywhere]


def _split(unit: Unit, allowed: set[int]) -> tuple[Unit | None, Unit | None]:
    """The tasks of a unit that nobody protects, and the others."""
    free = np.array([row in allowed for row in unit.rows.tolist()], dtype=np.bool_)
    parts = (Unit(unit.job, unit.rows[some], unit.whole) if some.any() else None for some in (free, ~free))
    return next(parts), next(parts)
