"""DynamicResources: a node reaches the devices of a pod's allocated claims, and has devices for the others.

A claim without an allocation gets devices that the node can reach (`device_catalogue.py`, `device_stock.py`),
all open claims of a pod together (`device_search.py`). What a placement takes is promised until it is undone,
and later tasks that share a claim follow it to the nodes that reach its devices. Results for a node are
cached until devices that it can reach are allocated or freed, and remembered over cycles (`search_memory.py`).
Score: of requests with alternatives, 8 points for the first, 7 for the second, and so on; then in proportion to
the best node.

The search for one set of claims has an account of work for all nodes (`device_work.py`). Once it is used up, other
nodes are not searched in this cycle. Which nodes come first changes every half minute, by the time of the cycle, so
that a claim that is hard to satisfy gets to all of them; in between, what was found before is remembered.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import WAITING, Status
from maniple.framework.criteria import Cells, Dependence, Filter, NodeRows, Scorer, Scores
from maniple.framework.draws import drawn
from maniple.framework.points import Event
from maniple.framework.reasons import FITS, Code, Detail, Reason, Verdicts
from maniple.framework.session import Session
from maniple.objects import dra
from maniple.objects.core import Pod
from maniple.objects.group_claims import consumer_of, is_reserved
from maniple.objects.printable import printable
from maniple.plugins.feasibility.claim_status import allocation
from maniple.plugins.feasibility.device_search import (
    DeviceSearch,
    Finding,
    SearchEnd,
    field_of,
    preference,
)
from maniple.plugins.feasibility.device_stock import DeviceStock
from maniple.plugins.feasibility.device_work import DeviceBudget, OutOfWorkError, WorkAccount
from maniple.plugins.feasibility.node_affinity import Mask
from maniple.plugins.feasibility.resource_claims import (
    PodClaims,
    ResourceClaims,
    claim_detail,
    claims_anything,
    requested,
)
from maniple.plugins.feasibility.search_memory import SearchMemory
from maniple.plugins.normalise import by_maximum

NAME = "DynamicResources"
NOT_HERE = "resourceclaim not available on the node"
NOT_ENOUGH = "cannot allocate all claims"
GIVEN_UP = "too many ways to allocate all claims"
CUT_SHORT = (
    "not searched for devices in this cycle: resource claim {claim} takes too much work; "
    "use fewer requests, alternatives, constraints or selectors, or simpler selectors"
)
LATER = (
    "not searched for devices in this cycle: too many pods of this namespace wait for resource claims that differ; "
    "{most} different sets of claims have their turn at a time"
)
IN_PROGRESS = "resource claim {claim} is in the process of being allocated"
MOST_FLAWS = 100  # to report in a session
_ROTATION = 30  # seconds after which the search begins at another node, and other claims have their turn
_UNKNOWN = -1
_NO_NODES: NDArray[np.intp] = np.zeros(0, dtype=np.intp)


@dataclass(slots=True, eq=False)
class Decision:
    """The devices of a claim, and how many placed tasks rely on that."""

    allocation: dra.AllocationResult
    node: int  # of its first user
    nodes: NodeRows | None  # nodes affected by its devices; None: all
    users: int = 0


@dataclass(slots=True, eq=False)
class _Column:
    """By node, the result of the search for some claims; valid up to a position in the log of changes."""

    key: tuple[bytes, ...]
    account: WorkAccount
    verdict: Verdicts
    points: Scores
    seen: int


class DynamicResources:
    """The filter, the score and the promises, for one session.

    `claims`, by key, if they are not as the cluster has them.
    """

    def __init__(
        self,
        session: Session,
        claims: Mapping[str, dra.ResourceClaim] | None = None,
        *,
        evictable: bool = False,
        partial: bool = False,
        unshared: bool = False,
    ) -> None:
        """`evictable`: see `ResourceClaims`; `partial`: see `DeviceCatalogue`.

        `unshared`: a claim allocated in this session is refused to other pods until the allocation is
        written.
        """
        self._session = session
        self._facts = session.nodes.facts
        self._every = session.cluster.all(dra.ResourceClaim) if claims is None else claims
        self._claims = ResourceClaims(session, self._every, evictable=evictable)
        self._partial = partial
        self._unshared = unshared
        self._stock_made: DeviceStock | None = None
        self._columns: dict[tuple[bytes, ...], _Column] = {}
        self._flaws: set[str] = set()
        self._log: list[NodeRows | None] = []  # nodes affected by device changes; None: all
        self._decisions: dict[str, Decision] = {}
        self._promises: dict[int, tuple[str, ...]] = {}
        number = session.reasons.number
        self._not_here = number(NOT_HERE, Code.UNRESOLVABLE)
        self._verdict_of = {
            SearchEnd.FOUND: FITS,
            SearchEnd.NONE: number(NOT_ENOUGH, Code.UNRESOLVABLE),
            SearchEnd.TOO_HARD: number(GIVEN_UP, Code.ERROR),
        }

    @property
    def _stock(self) -> DeviceStock:
        if self._stock_made is None:
            self._stock_made = DeviceStock(self._session, self._every.values(), partial=self._partial)
        return self._stock_made

    def filter(self) -> Filter:
        return Filter(NAME, Dependence.CLUSTER, self._check, claims_anything, detail=self._detail)

    def scorer(self) -> Scorer:
        return Scorer(NAME, 1, Dependence.CLUSTER, self._points, by_maximum, self._has_alternatives)

    def problem(self, class_: TaskClass) -> str:
        """Why a pod is not considered at all; empty if it is."""
        if not claims_anything(class_):
            return ""
        asked = self._claims.of_class(class_)
        return asked.refusal or self._in_progress(asked) or self.cut_short(class_)

    def cut_short(self, class_: TaskClass) -> str:
        """That it is not the turn of a pod's claims, or the work for them is used up and no node was found.

        Nothing can help in this cycle.
        """
        asked = self._claims.of_class(class_)
        undecided = [] if asked.refusal else self._undecided(asked)
        if not undecided:
            return ""
        key = self._key(undecided)
        if self._budget.comes_later(key):
            self._session.decisions.goes_on_later = True
            return LATER.format(most=self._budget.most_sets)
        column = self._columns.get(key)
        if column is None or not column.account.empty or (column.verdict == FITS).any():
            return ""
        return CUT_SHORT.format(claim=undecided[0].key)

    def _in_progress(self, asked: PodClaims) -> str:
        """The first claim that was promised to another pod in this session, if that is an obstacle."""
        if not self._unshared:
            return ""
        promised = (
            one.key for one in asked.claims if one.key in self._decisions and one.key not in asked.own
        )
        return next((IN_PROGRESS.format(claim=key) for key in promised), "")

    def refusal(self, class_: TaskClass) -> Reason | None:
        message = self.problem(class_)
        if not message:
            return None
        text = f"plugin {NAME} pre-predicates failed {message}"
        return Reason(text, Code.UNRESOLVABLE, claim_detail(class_.spec.pod, message))

    def has_claims(self, class_: TaskClass) -> bool:
        return claims_anything(class_) and bool(self._claims.of_class(class_).claims)

    # -- filter and score -----------------------------------------------------------------------------------------

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        asked, rows = self._claims.of_class(class_), cells.node_rows()
        if asked.refusal:  # `problem` reports it; nodes are not the cause
            return np.zeros(rows.shape, dtype=np.int16)
        busy = self._in_progress(asked)
        if busy:
            return np.full(rows.shape, self._session.reasons.number(busy), dtype=np.int16)
        within = self._within(asked)[rows]
        verdict = np.where(within, FITS, self._not_here).astype(np.int16)
        undecided = self._undecided(asked)
        if undecided:
            column = self._column(undecided, rows[within])
            verdict[within] = column.verdict[rows[within]]
        return verdict

    def _detail(self, class_: TaskClass, node: int) -> Detail:
        """What is requested of the devices of a node, and how many devices it has."""
        asked = self._claims.of_class(class_)
        undecided = [] if asked.refusal else self._undecided(asked)
        if not self._within(asked)[node] or not undecided:
            names = ", ".join(printable(one.key) for one in asked.allocated)
            return Detail(
                "DevicesElsewhere", f"the devices of ResourceClaim {names} are on other nodes", names
            )
        names = ", ".join(printable(one.key) for one in undecided)
        wanted = ", ".join(printable(one) for claim in undecided for one in requested(claim))
        return Detail("DevicesShort", f"too few free devices for ResourceClaim {names} ({wanted})", names)

    def _points(self, class_: TaskClass, cells: Cells) -> Scores:
        asked, rows = self._claims.of_class(class_), cells.node_rows()
        points = np.zeros(rows.shape)
        for claim in asked.claims:
            known = self._known(claim, asked)
            if known is not None:
                points += preference(claim, [result.request for result in known.devices.results])
        undecided = self._undecided(asked)
        return points + self._column(undecided, rows).points[rows] if undecided else points

    def _has_alternatives(self, class_: TaskClass) -> bool:
        return claims_anything(class_) and any(
            request.exact is None
            for claim in self._claims.of_class(class_).claims
            for request in claim.spec.devices.requests
        )

    def _known(self, claim: dra.ResourceClaim, asked: PodClaims) -> dra.AllocationResult | None:
        """The allocation that a claim has or has been promised."""
        if claim.key in asked.own:
            return None
        standing = self._standing(claim)
        if standing is not None:
            return standing
        decision = self._decisions.get(claim.key)
        return None if decision is None else decision.allocation

    def _standing(self, claim: dra.ResourceClaim) -> dra.AllocationResult | None:
        """The allocation that a claim had before this session."""
        return claim.status.allocation

    def _undecided(self, asked: PodClaims) -> list[dra.ResourceClaim]:
        return [claim for claim in asked.claims if self._known(claim, asked) is None]

    def _within(self, asked: PodClaims) -> Mask:
        """Nodes that reach the devices of all claims that have any."""
        mask = np.ones(len(self._facts), dtype=np.bool_)
        for claim in asked.claims:
            known = self._known(claim, asked)
            if known is not None and known.node_selector is not None:
                mask &= self._stock.mask(known.node_selector)
        return mask

    # -- search results -------------------------------------------------------------------------------------------

    @cached_property
    def _memory(self) -> SearchMemory:
        return SearchMemory.of(self._session, self._stock.catalogue)

    @cached_property
    def _budget(self) -> DeviceBudget:
        """Shared by the namespaces whose pods wait for devices."""
        session = self._session
        pending = session.tasks.class_of[session.tasks.status == Status.PENDING]
        counts = np.bincount(pending, minlength=len(session.classes))
        waiting: dict[str, dict[Hashable, int]] = {}
        for class_ in session.classes:
            count = int(counts[class_.number])
            if not count or not claims_anything(class_):
                continue
            asked = self._claims.of_class(class_)
            undecided = [] if asked.refusal else self._undecided(asked)
            if undecided:
                keys = waiting.setdefault(undecided[0].key.partition("/")[0], {})
                key = self._key(undecided)
                keys[key] = keys.get(key, 0) + count
        return DeviceBudget(len(self._facts), waiting, self._period)

    def _key(self, claims: Sequence[dra.ResourceClaim]) -> tuple[bytes, ...]:
        return tuple(self._claims.spec_keys.of(claim) for claim in claims)

    def _new_column(self, key: tuple[bytes, ...]) -> _Column:
        size = len(self._facts)
        unknown = np.full(size, _UNKNOWN, dtype=np.int16)
        return _Column(key, self._budget.account(key), unknown, np.zeros(size), len(self._log))

    def _column(self, claims: Sequence[dra.ResourceClaim], rows: NDArray[np.intp]) -> _Column:
        """The results for these nodes; claims with equal requests share them."""
        key = self._key(claims)
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = self._new_column(key)
        for changed in self._log[column.seen :]:
            column.verdict[slice(None) if changed is None else changed] = _UNKNOWN
        column.seen = len(self._log)
        unknown = rows[column.verdict[rows] == _UNKNOWN]
        if len(unknown):
            self._search(column, claims, np.roll(unknown, -int(np.searchsorted(unknown, self._first))))
        return column

    def _search(self, column: _Column, claims: Sequence[dra.ResourceClaim], nodes: NDArray[np.intp]) -> None:
        """Look at nodes as long as there is work left for them."""
        for place, node in enumerate(nodes.tolist()):
            found = None if column.account.empty else self._find(column, claims, node)
            if found is None:
                text = CUT_SHORT.format(claim=claims[0].key)
                self._session.decisions.goes_on_later = True
                column.verdict[nodes[place:]] = self._session.reasons.number(text, Code.ERROR)
                return
            column.verdict[node], column.points[node] = self._verdict_of[found.outcome], found.points

    @cached_property
    def _period(self) -> int:
        now = self._session.now
        return int(now.timestamp()) // _ROTATION if now is not None else 0

    @cached_property
    def _first(self) -> int:
        """The node at which searches begin."""
        return drawn(self._period) % max(len(self._facts), 1)

    def _find(self, column: _Column, claims: Sequence[dra.ResourceClaim], node: int) -> Finding | None:
        """The outcome of the search on a node; None if there is no work left for it."""
        key, account = (column.key, node, self._stock.state(node)), column.account
        found = self._memory.get(key)
        if found is None or (
            found.outcome is SearchEnd.CUT_SHORT and account.affords(account.price(found.parts))
        ):
            found = DeviceSearch(self._stock, node, claims, account).finding()
            self._memory.keep(key, found)
        try:
            account.pay(found.parts)
        except OutOfWorkError:
            return None
        self._report(found, claims)
        return found

    def _report(self, found: Finding, claims: Sequence[dra.ResourceClaim]) -> None:
        for number, request, flaw in found.flaws:
            if len(self._flaws) >= MOST_FLAWS:
                return
            message = flaw.message_about(field_of(claims[number], request))
            if message not in self._flaws:
                self._flaws.add(message)
                self._session.report(message)

    # -- promises -------------------------------------------------------------------------------------------------

    def on_allocate(self, event: Event) -> None:
        before = self._session.cluster.tasks.status
        for task, node in zip(event.rows.tolist(), event.nodes.tolist(), strict=True):
            # A running task whose eviction was undone takes nothing new.
            if WAITING[before[task]]:
                self._promise(task, node)

    def on_deallocate(self, event: Event) -> None:
        for task in event.rows.tolist():
            self._withdraw(task)

    def _withdraw(self, task: int) -> None:
        for key in self._promises.pop(task, ()):
            decision = self._decisions[key]
            decision.users -= 1
            if not decision.users:
                del self._decisions[key]
                self._stock.give_back(decision.allocation.devices.results)
                self._log.append(decision.nodes)

    def _promise(self, task: int, node: int) -> None:
        asked = self._claims.of_pod(self._pod(task))
        wanting = [claim for claim in asked.claims if self._standing(claim) is None]
        undecided = [claim for claim in wanting if claim.key not in self._decisions]
        if asked.refusal or not self._decide(undecided, node):
            return  # placed despite the filter: there is nothing to promise
        for claim in wanting:
            self._decisions[claim.key].users += 1
        self._promises[task] = tuple(claim.key for claim in wanting)

    def _decide(self, claims: Sequence[dra.ResourceClaim], node: int) -> bool:
        if not claims:
            return True
        found = self._find(self._column(claims, _NO_NODES), claims, node)
        if found is None or found.choices is None:
            return False
        for claim, choices in zip(claims, found.choices, strict=True):
            decided = allocation(self._stock.catalogue, claim, choices, self._facts.names[node])
            nodes = self._stock.catalogue.neighbours(choice.offer for choice in choices)
            self._decisions[claim.key] = Decision(decided, node, nodes)
            self._stock.take(decided.devices.results)
            self._log.append(nodes)
        return True

    # -- writes before binding ------------------------------------------------------------------------------------

    def to_write(self, rows: Iterable[int]) -> dict[str, dict[str, Any]]:
        """The changes to claims' statuses that must precede the binding of these tasks."""
        written: dict[str, dict[str, Any]] = {}
        for task in rows:
            pod = self._pod(task)
            for claim in self._claims.of_pod(pod).claims if pod.spec.resource_claims else ():
                if is_reserved(claim, pod) and claim.status.allocation is not None:
                    continue
                change = written.setdefault(claim.key, {"reservedFor": []})
                consumer = _plain(consumer_of(pod, claim.key))
                if consumer not in change["reservedFor"]:  # a PodGroup is, once for all of its pods
                    change["reservedFor"].append(consumer)
                if claim.key in self._decisions:
                    change["allocation"] = _plain(self._decisions[claim.key].allocation)
        return written

    def _pod(self, task: int) -> Pod:
        pod: Pod = self._session.cluster.tasks.pods[task]
        return pod


def _plain(record: msgspec.Struct) -> Any:
    """As in JSON: lists instead of tuples."""
    return msgspec.json.decode(msgspec.json.encode(record))
