"""The allocated devices of the cluster, by claims and by this session's decisions.

Called by `device_search.py`, which chooses, and by `dynamic_resources.py`, which takes and frees. Freeing
what was taken restores the earlier state.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from maniple.framework.session import Session
from maniple.objects import dra
from maniple.objects.affinity import NodeSelector
from maniple.objects.quantity import parse
from maniple.plugins.feasibility.device_catalogue import (
    Amount,
    DeviceCatalogue,
    DeviceId,
    Flaw,
    NodeMasks,
    Offer,
    PoolId,
    selectors_key,
)
from maniple.plugins.feasibility.node_affinity import Mask

Amounts = dict[str, Amount]
Key = TypeVar("Key")


class DeviceStock:
    """The devices of one session, some of them allocated to the given claims."""

    def __init__(
        self, session: Session, claims: Iterable[dra.ResourceClaim], *, partial: bool = False
    ) -> None:
        self._session = session
        self.catalogue = DeviceCatalogue.of(session, partial=partial)
        self._masks = NodeMasks(session.nodes.facts)
        self._keys: dict[int, tuple[dra.DeviceDemand, bytes]] = {}  # by identity; the demand is kept alive
        self._users: dict[DeviceId, Amount] = {}
        self._consumed: dict[DeviceId, Amounts] = {}
        self._drawn: dict[PoolId, dict[tuple[str, str], Amount]] = {}
        for claim in claims:
            if claim.status.allocation is not None:
                self.take(claim.status.allocation.devices.results)

    def mask(self, selector: NodeSelector) -> Mask:
        """Nodes that a claim's allocation allows."""
        return self._masks.of(selector)

    def suits(self, demand: dra.DeviceDemand, offer: Offer, field: Callable[[], str]) -> bool:
        """Whether a device matches a request; `field` is the path of the request, for messages."""
        known = self._keys.get(id(demand))
        if known is None:
            known = self._keys[id(demand)] = (demand, selectors_key(demand))
        answer = self.catalogue.suits(known[1], demand, offer)
        if isinstance(answer, Flaw):
            self._session.report(answer.message_about(field()))
            return False
        return answer

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
            if result.consumed_capacity:
                had = dict(self._consumed.pop(device, {}))
                for name, amount in result.consumed_capacity.items():
                    _set(had, name, had.get(name, 0) + sign * parse(amount))
                if had:
                    self._consumed[device] = had
            if (
                before == 0 or before + sign == 0
            ):  # its first user consumes the counters, the last one frees them
                for counter, drawn in self.catalogue.drawing.get(device, {}).items():
                    sums = self._drawn.setdefault(device[:2], {})
                    _set(sums, counter, sums.get(counter, 0) + sign * drawn)


def _set(amounts: dict[Key, Amount], key: Key, amount: Amount) -> None:
    """Remove what returns to zero."""
    if amount:
        amounts[key] = amount
    else:
        amounts.pop(key, None)
