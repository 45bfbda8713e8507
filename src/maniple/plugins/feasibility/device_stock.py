"""The allocated devices of the cluster, by claims and by this session's decisions.

Called by `device_search.py`, which chooses, and by `dynamic_resources.py`, which takes and frees. Freeing
what was taken restores the earlier state.
"""

from collections.abc import Iterable
from typing import TypeVar

from maniple.framework.session import Session
from maniple.objects import dra
from maniple.objects.affinity import NodeSelector
from maniple.objects.quantity import parse
from maniple.plugins.feasibility.device_catalogue import (
    Amount,
    DeviceCatalogue,
    NodeMasks,
    PoolId,
)
from maniple.plugins.feasibility.node_affinity import Mask
from maniple.plugins.feasibility.selections import DeviceId, Selection

Amounts = dict[str, Amount]
Key = TypeVar("Key")


class DeviceStock:
    """The devices of one session, some of them allocated to the given claims."""

    def __init__(
        self, session: Session, claims: Iterable[dra.ResourceClaim], *, partial: bool = False
    ) -> None:
        self.catalogue = DeviceCatalogue.of(session, partial=partial)
        self._masks = NodeMasks(session.nodes.facts)
        # By identity; the demand is kept alive.
        self._selections: dict[int, tuple[dra.DeviceDemand, Selection]] = {}
        self._users: dict[DeviceId, Amount] = {}
        self._consumed: dict[DeviceId, Amounts] = {}
        self._drawn: dict[PoolId, dict[tuple[str, str], Amount]] = {}
        self._used: dict[PoolId, set[DeviceId]] = {}  # the devices with users
        self._states: dict[PoolId, int] = {}  # until something of the pool is taken or given back
        for claim in claims:
            if claim.status.allocation is not None:
                self.take(claim.status.allocation.devices.results)

    def mask(self, selector: NodeSelector) -> Mask:
        """Nodes that a claim's allocation allows."""
        return self._masks.of(selector)

    def selection(self, demand: dra.DeviceDemand) -> Selection:
        known = self._selections.get(id(demand))
        if known is None:
            known = self._selections[id(demand)] = (demand, self.catalogue.selection(demand))
        return known[1]

    def state(self, node: int) -> tuple[int, ...]:
        """Equal for equal states of all that a search on a node may take."""
        return tuple(self._state_of(pool) for pool in self.catalogue.offers(node).pools)

    def _state_of(self, pool: PoolId) -> int:
        known = self._states.get(pool)
        if known is None:
            used = sorted(self._used.get(pool, ()))
            parts = tuple((device, tuple(sorted(self.consumed(device).items()))) for device in used)
            known = self._states[pool] = self.catalogue.state_number((pool, parts))
        return known

    # -- allocations ----------------------------------------------------------------------------------------------

    def in_use(self, device: DeviceId) -> bool:
        return device in self._users

    def consumed(self, device: DeviceId) -> Amounts:
        """What claims use of a device that they share."""
        return self._consumed.get(device, {})

    def left(self, pool: PoolId) -> dict[tuple[str, str], Amount]:
        """What is left of a pool's counters."""
        drawn = self._drawn.get(pool, {})
        return {
            name: amount - drawn.get(name, 0) for name, amount in self.catalogue.pools[pool].counters.items()
        }

    def take(self, results: Iterable[dra.DeviceResult]) -> None:
        self._book(results, +1)

    def give_back(self, results: Iterable[dra.DeviceResult]) -> None:
        self._book(results, -1)

    def _book(self, results: Iterable[dra.DeviceResult], sign: int) -> None:
        for result in results:
            if result.admin_access:  # admin access allocates nothing
                continue
            device = (result.driver, result.pool, result.device)
            before = self._users.get(device, 0)
            _set(self._users, device, before + sign)
            self._note_use(device)
            if result.consumed_capacity:
                had = dict(self._consumed.pop(device, {}))
                for name, amount in result.consumed_capacity.items():
                    _set(had, name, had.get(name, 0) + sign * parse(amount))
                if had:
                    self._consumed[device] = had
            # The first user of a device consumes the counters, the last one frees them.
            if before == 0 or before + sign == 0:
                for counter, drawn in self.catalogue.drawing.get(device, {}).items():
                    sums = self._drawn.setdefault(device[:2], {})
                    _set(sums, counter, sums.get(counter, 0) + sign * drawn)

    def _note_use(self, device: DeviceId) -> None:
        pool = device[:2]
        self._states.pop(pool, None)
        if device in self._users:
            self._used.setdefault(pool, set()).add(device)
        else:
            self._used.get(pool, set()).discard(device)


def _set(amounts: dict[Key, Amount], key: Key, amount: Amount) -> None:
    """Remove what returns to zero."""
    if amount:
        amounts[key] = amount
    else:
        amounts.pop(key, None)
