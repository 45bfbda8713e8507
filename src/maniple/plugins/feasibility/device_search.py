"""Choosing devices on one node for all claims of a pod at once.

Called by `dynamic_resources.py`. A depth-first search: claim by claim, request by request, device by device,
the first device that matches is tried before the next. So a solution is found if there is one, and it is the
first in the order of pools, slices and devices. Alternatives of a request are tried in their order. The work
on a node is bounded by `MOST_STEPS`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from maniple.objects import dra
from maniple.objects.quantity import format_quantity, parse
from maniple.objects.selectors import untolerated
from maniple.plugins.feasibility.device_catalogue import Amount, DeviceId, Offer, PoolId
from maniple.plugins.feasibility.device_stock import Amounts, DeviceStock

MOST_STEPS = 20_000
MOST_RESULTS = 32  # of a claim
MOST_DEVICES = 200  # of a pod
MOST_ALTERNATIVES = 8
_REFUSING_EFFECTS = ("NoSchedule", "NoExecute")


class TooHardError(Exception):
    """The search was given up."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One device for one request."""

    request: str  # "request", or "request/alternative"
    demand: dra.DeviceDemand
    offer: Offer
    consumed: Amounts  # of a device shared by claims

    @property
    def admin(self) -> bool:
        return bool(self.demand.admin_access)

    def result(self, share: str) -> dra.DeviceResult:
        """As in a claim's status; `share` distinguishes the claims that share the device."""
        driver, pool, device = self.offer.id
        return dra.DeviceResult(
            request=self.request,
            driver=driver,
            pool=pool,
            device=device,
            admin_access=True if self.admin else None,
            share_id=share if self.offer.shared else None,
            consumed_capacity={name: format_quantity(amount) for name, amount in self.consumed.items()},
            tolerations=self.demand.tolerations,
        )


@dataclass(slots=True, eq=False)
class _TakenDevices:
    """What a search has taken so far."""

    choices: list[list[Choice]]  # by claim
    devices: dict[DeviceId, list[int]] = field(default_factory=dict)  # claims that use it
    count: int = 0


class DeviceSearch:
    """One node, the claims of one pod."""

    def __init__(self, stock: DeviceStock, node: int, claims: Sequence[dra.ResourceClaim]) -> None:
        self._stock = stock
        self._claims = claims
        self._offers = stock.catalogue.offers(node)
        self._taken = _TakenDevices([[] for _ in claims])
        self._left: dict[PoolId, dict[tuple[str, str], Amount]] = {}
        self._steps = 0

    def solution(self) -> list[list[Choice]] | None:
        """The choices by claim, None if there are none; raises TooHardError."""
        return self._taken.choices if self._claim(0) else None

    # -- search ---------------------------------------------------------------------------------------------------

    def _claim(self, claim: int) -> bool:
        return claim == len(self._claims) or self._request(claim, 0)

    def _request(self, claim: int, number: int) -> bool:
        requests = self._claims[claim].spec.devices.requests
        if number == len(requests):
            return self._claim(claim + 1)
        for name, demand in alternatives(requests[number]):
            if demand.allocation_mode == "All":
                found = self._all(claim, number, name, demand)
            else:
                found = self._next(claim, number, name, demand, demand.count, 0)
            if found:
                return True
        return False

    def _next(
        self, claim: int, number: int, name: str, demand: dra.DeviceDemand, wanted: int, start: int
    ) -> bool:
        """Find `wanted` more devices from index `start` on, and everything after this request."""
        if not wanted:
            return self._request(claim, number + 1)
        devices = self._offers.devices
        if len(self._taken.choices[claim]) + wanted > MOST_RESULTS:
            return False
        for place in range(start, len(devices) - wanted + 1):
            choice = self._chosen(claim, name, demand, devices[place])
            if choice is not None:
                if self._next(claim, number, name, demand, wanted - 1, place + 1):
                    return True
                self._give_back(claim, choice)
        return False

    def _all(self, claim: int, number: int, name: str, demand: dra.DeviceDemand) -> bool:
        """Every device that matches, in use or not; there must be one, and all must be available."""
        if not self._offers.whole:
            return False
        suitable = [
            offer
            for offer in self._offers.devices
            if self._suits(claim, name, demand, offer) and consumption(demand, offer, ()) is not None
        ]
        chosen: list[Choice] = []
        if suitable and len(self._taken.choices[claim]) + len(suitable) <= MOST_RESULTS:
            for offer in suitable:
                choice = self._chosen(claim, name, demand, offer)
                if choice is None:
                    break
                chosen.append(choice)
            if len(chosen) == len(suitable) and self._request(claim, number + 1):
                return True
        for choice in reversed(chosen):
            self._give_back(claim, choice)
        return False

    # -- one device -----------------------------------------------------------------------------------------------

    def _chosen(self, claim: int, name: str, demand: dra.DeviceDemand, offer: Offer) -> Choice | None:
        """Take a device for a request; None if it is not available."""
        self._steps += 1
        if self._steps > MOST_STEPS or self._taken.count >= MOST_DEVICES:
            raise TooHardError
        if not self._is_free(claim, demand, offer):
            return None
        if not self._suits(claim, name, demand, offer):
            return None
        if offer.body.binding_conditions:
            return None  # binding conditions would have to be awaited, which nothing here does
        if untolerated(demand.tolerations, offer.body.taints, _REFUSING_EFFECTS) is not None:
            return None
        parts = [self._stock.consumed(offer.id), *self._parts_of(offer)]
        consumed = consumption(demand, offer, parts)
        if consumed is None or not self._counters_allow(offer):
            return None
        choice = Choice(name, demand, offer, consumed if offer.shared else {})
        if not self._constraints_hold(claim, choice):
            return None
        self._take(claim, choice)
        return choice

    def _suits(self, claim: int, name: str, demand: dra.DeviceDemand, offer: Offer) -> bool:
        return self._stock.suits(demand, offer, lambda: _field(self._claims[claim], name))

    def _is_free(self, claim: int, demand: dra.DeviceDemand, offer: Offer) -> bool:
        if offer.shared:
            return True
        users = self._taken.devices.get(offer.id, ())
        if demand.admin_access:
            return claim not in users
        return not users and not self._stock.in_use(offer.id)

    def _parts_of(self, offer: Offer) -> Iterator[Amounts]:
        """What this search has taken of a device shared by claims."""
        if offer.shared and offer.id in self._taken.devices:
            for choices in self._taken.choices:
                yield from (choice.consumed for choice in choices if choice.offer.id == offer.id)

    def _counters_allow(self, offer: Offer) -> bool:
        if not offer.draws or self._is_drawn(offer):
            return True
        left = self._counters(offer.pool)
        return all(left[name] >= amount for name, amount in offer.draws.items())

    def _is_drawn(self, offer: Offer) -> bool:
        """Whether a part of the device is in use, so that its counters are accounted for."""
        return offer.shared and (offer.id in self._taken.devices or self._stock.in_use(offer.id))

    def _counters(self, pool: PoolId) -> dict[tuple[str, str], Amount]:
        if pool not in self._left:
            self._left[pool] = self._stock.left(pool)
        return self._left[pool]

    def _take(self, claim: int, choice: Choice) -> None:
        offer = choice.offer
        if offer.draws and not self._is_drawn(offer):
            left = self._counters(offer.pool)
            for name, amount in offer.draws.items():
                left[name] -= amount
        self._taken.devices.setdefault(offer.id, []).append(claim)
        self._taken.choices[claim].append(choice)
        self._taken.count += 1

    def _give_back(self, claim: int, choice: Choice) -> None:
        offer = choice.offer
        self._taken.count -= 1
        self._taken.choices[claim].pop()
        users = self._taken.devices[offer.id]
        users.pop()
        if not users:
            del self._taken.devices[offer.id]
        if offer.draws and not self._is_drawn(offer):
            left = self._counters(offer.pool)
            for name, amount in offer.draws.items():
                left[name] += amount

    # -- constraints ----------------------------------------------------------------------------------------------

    def _constraints_hold(self, claim: int, new: Choice) -> bool:
        for constraint in self._claims[claim].spec.devices.constraints:
            if not _concerns(constraint, new.request):
                continue
            others = [one for one in self._taken.choices[claim] if _concerns(constraint, one.request)]
            if not _agrees(constraint, new.offer, [one.offer for one in others]):
                return False
        return True


def alternatives(request: dra.DeviceRequest) -> list[tuple[str, dra.DeviceDemand]]:
    """What may satisfy a request, with the name for the result; the first that works is taken."""
    exact = request.exact
    if exact is not None:
        return [(request.name, exact)]
    return [(f"{request.name}/{one.name}", one) for one in request.first_available]


def _field(claim: dra.ResourceClaim, name: str) -> str:
    """The path of the demand that a result's request names."""
    base, _, choice = name.partition("/")
    for number, request in enumerate(claim.spec.devices.requests):
        if request.name == base:
            path = f"ResourceClaim {claim.key}: spec.devices.requests[{number}]"
            if request.exact is not None:
                return path if request.exactly is None else f"{path}.exactly"
            places = [place for place, one in enumerate(request.first_available) if one.name == choice]
            return f"{path}.firstAvailable[{places[0]}]"
    return f"ResourceClaim {claim.key}"


def _concerns(constraint: dra.DeviceConstraint, request: str) -> bool:
    wanted = constraint.requests
    return not wanted or request in wanted or request.partition("/")[0] in wanted


def _agrees(constraint: dra.DeviceConstraint, new: Offer, others: Iterable[Offer]) -> bool:
    """Whether a device may join others; a constraint of an unknown kind matches none."""
    name = constraint.match_attribute or constraint.distinct_attribute
    value = new.attribute(name) if name else None
    if name is None or value is None:
        return False
    same = [one.attribute(name) == value for one in others]
    return all(same) if constraint.match_attribute else not any(same)


# -- capacity of a device ------------------------------------------------------------------------------------------


def consumption(demand: dra.DeviceDemand, offer: Offer, parts: Iterable[Amounts]) -> Amounts | None:
    """What a request would take of a device's capacity beside the allocated parts; None if too much."""
    wanted = demand.capacity.requests if demand.capacity is not None else {}
    capacity = offer.body.capacity
    if any(name not in capacity for name in wanted):
        return None
    if not wanted and not offer.shared:
        return {}
    taken: Amounts = {}
    parts = list(parts)
    for name, there in capacity.items():
        asked = parse(wanted[name]) if name in wanted else None
        amount = _rounded(asked, there)
        used = sum(part.get(name, 0) for part in parts)
        if amount is None or used + amount > parse(there.value):
            return None
        taken[name] = amount
    return taken


def _rounded(asked: Amount | None, capacity: dra.DeviceCapacity) -> Amount | None:
    """The amount rounded up to the next one that the driver offers; None if there is none."""
    policy = capacity.request_policy
    default = parse(policy.default) if policy is not None and policy.default is not None else None
    if asked is None:
        return default if default is not None else parse(capacity.value)
    if policy is None:
        return asked
    if policy.valid_range is not None:
        return _in_range(asked, policy.valid_range)
    if policy.valid_values:
        enough = [value for value in map(parse, policy.valid_values) if value >= asked]
        return min(enough, default=None)
    return asked


def _in_range(asked: Amount, valid: dra.CapacityRange) -> Amount | None:
    low = parse(valid.min) if valid.min is not None else 0
    step = parse(valid.step) if valid.step is not None else 0
    amount = max(asked, low)
    if step > 0:
        amount = low + -(-(amount - low) // step) * step
    return None if valid.max is not None and amount > parse(valid.max) else amount
