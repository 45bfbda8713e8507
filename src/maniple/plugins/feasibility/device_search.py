"""Choosing devices on one node for all claims of a pod at once.

Called by `dynamic_resources.py`. A depth-first search: claim by claim, request by request, device by device,
the first device that matches is tried before the next. So a solution is found if there is one, and it is the
first in the order of pools, slices and devices. Alternatives of a request are tried in their order.

Every step counts its units of work, by the number of devices, constraints and amounts that it looks at. They are
bounded on a node (`MOST_WORK`) and, by the account that pays for them, over all nodes (`device_work.py`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from maniple.objects import dra
from maniple.objects.quantity import format_quantity, parse
from maniple.objects.selectors import untolerated
from maniple.plugins.feasibility.device_catalogue import Amount, Offer, PoolId
from maniple.plugins.feasibility.device_stock import Amounts, DeviceStock
from maniple.plugins.feasibility.device_work import Charged, OutOfWorkError, WorkAccount
from maniple.plugins.feasibility.selections import DeviceId, Flaw

MOST_WORK = 50_000  # units, on a node
MOST_RESULTS = 32  # of a claim
MOST_DEVICES = 200  # of a pod
MOST_ALTERNATIVES = 8
_START = 20  # units: to set a search up
_STEP = 2  # units: to try a device or an alternative
_CHECK = 4  # units: to look at a claim, a free device or a constraint
_REFUSING_EFFECTS = ("NoSchedule", "NoExecute")


class TooHardError(Exception):
    """The search on a node was given up."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceChoice:
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


class SearchEnd(Enum):
    FOUND = "found"
    NONE = "none"
    TOO_HARD = "too hard"  # given up after as much work as a node may take
    CUT_SHORT = "cut short"  # the account would not pay for more


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """The outcome of a search."""

    outcome: SearchEnd
    choices: list[list[DeviceChoice]] | None  # by claim
    work: int  # units, without those of `used`
    used: tuple[Charged, ...]  # what was found out about selectors
    flaws: tuple[tuple[int, str, Flaw], ...]  # by claim and request
    points: int  # for the alternatives that were chosen

    @property
    def parts(self) -> tuple[Charged, ...]:
        """All that it has to be paid for."""
        return (self, *self.used)


@dataclass(slots=True, eq=False)
class _TakenDevices:
    """What a search has taken so far."""

    choices: list[list[DeviceChoice]]  # by claim
    devices: dict[DeviceId, list[int]] = field(default_factory=dict)  # claims that use it
    count: int = 0


class DeviceSearch:
    """One node, the claims of one pod; the account pays."""

    def __init__(
        self, stock: DeviceStock, node: int, claims: Sequence[dra.ResourceClaim], account: WorkAccount
    ) -> None:
        self._stock = stock
        self._claims = claims
        self._account = account
        self._requests = [
            (number, request)
            for number, claim in enumerate(claims)
            for request in claim.spec.devices.requests
        ]
        self._offers = stock.catalogue.offers(node)
        self._taken = _TakenDevices([[] for _ in claims])
        self._left: dict[PoolId, dict[tuple[str, str], Amount]] = {}
        self._work = self._prices = self._most = 0
        self._used: dict[Charged, None] = {}
        self._flaws: dict[tuple[int, str, Flaw], None] = {}

    def finding(self) -> Finding:
        outcome = SearchEnd.NONE
        try:
            self._spend(_START + _CHECK * len(self._claims))
            if self._request(0):
                outcome = SearchEnd.FOUND
        except TooHardError:
            outcome = SearchEnd.TOO_HARD
        except OutOfWorkError:
            outcome = SearchEnd.CUT_SHORT
        choices = self._taken.choices if outcome is SearchEnd.FOUND else None
        points = sum(
            preference(claim, [choice.request for choice in some])
            for claim, some in zip(self._claims, choices or (), strict=False)
        )
        return Finding(outcome, choices, self._work, tuple(self._used), tuple(self._flaws), points)

    # -- work -----------------------------------------------------------------------------------------------------

    def _spend(self, units: int) -> None:
        self._work += units
        if self._work > self._most:
            self._check_limits()

    def _use(self, charged: Charged) -> None:
        if charged not in self._used:
            self._used[charged] = None
            self._prices += self._account.price((charged,))
            self._check_limits()

    def _check_limits(self) -> None:
        """Nothing is paid before the end; `_most` is how far the search may go without another look."""
        if self._work > MOST_WORK:
            raise TooHardError
        if not self._account.affords(self._work + self._prices):
            raise OutOfWorkError
        self._most = min(MOST_WORK, int(self._account.left) - self._prices)

    # -- search ---------------------------------------------------------------------------------------------------

    def _request(self, number: int) -> bool:
        """Find devices for this request and all after it."""
        if number == len(self._requests):
            return True
        claim, request = self._requests[number]
        for name, demand in alternatives(request):
            self._spend(_STEP)
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
            return self._request(number + 1)
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
            offer for offer in self._offers.devices if self._is_one_of_all(claim, name, demand, offer)
        ]
        chosen: list[DeviceChoice] = []
        if suitable and len(self._taken.choices[claim]) + len(suitable) <= MOST_RESULTS:
            for offer in suitable:
                choice = self._chosen(claim, name, demand, offer)
                if choice is None:
                    break
                chosen.append(choice)
            if len(chosen) == len(suitable) and self._request(number + 1):
                return True
        for choice in reversed(chosen):
            self._give_back(claim, choice)
        return False

    def _is_one_of_all(self, claim: int, name: str, demand: dra.DeviceDemand, offer: Offer) -> bool:
        self._spend(_CHECK + len(offer.body.capacity))
        return self._suits(claim, name, demand, offer) and consumption(demand, offer, ()) is not None

    # -- one device -----------------------------------------------------------------------------------------------

    def _chosen(self, claim: int, name: str, demand: dra.DeviceDemand, offer: Offer) -> DeviceChoice | None:
        """Take a device for a request; None if it is not available."""
        self._spend(_STEP)
        if self._taken.count >= MOST_DEVICES:
            raise TooHardError
        if not self._is_free(claim, demand, offer):
            return None
        self._spend(_CHECK)
        if not self._suits(claim, name, demand, offer):
            return None
        if offer.body.binding_conditions:
            return None  # binding conditions would have to be awaited, which nothing here does
        if self._is_tainted(demand, offer):
            return None
        parts = [self._stock.consumed(offer.id), *self._parts_of(offer)]
        self._spend(len(offer.body.capacity) * len(parts) + len(offer.draws))
        consumed = consumption(demand, offer, parts)
        if consumed is None or not self._counters_allow(offer):
            return None
        choice = DeviceChoice(name, demand, offer, consumed if offer.shared else {})
        if not self._constraints_hold(claim, choice):
            return None
        self._take(claim, choice)
        return choice

    def _suits(self, claim: int, name: str, demand: dra.DeviceDemand, offer: Offer) -> bool:
        selection = self._stock.selection(demand)
        self._use(selection)
        match = self._stock.catalogue.match(selection, offer)
        self._use(match)
        if isinstance(match.answer, Flaw):
            self._flaws[(claim, name, match.answer)] = None
            return False
        return match.answer

    def _is_tainted(self, demand: dra.DeviceDemand, offer: Offer) -> bool:
        taints = offer.body.taints
        if not taints:
            return False
        self._spend(len(taints) * len(demand.tolerations))
        return untolerated(demand.tolerations, taints, _REFUSING_EFFECTS) is not None

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

    def _take(self, claim: int, choice: DeviceChoice) -> None:
        offer = choice.offer
        if offer.draws and not self._is_drawn(offer):
            left = self._counters(offer.pool)
            for name, amount in offer.draws.items():
                left[name] -= amount
        self._taken.devices.setdefault(offer.id, []).append(claim)
        self._taken.choices[claim].append(choice)
        self._taken.count += 1

    def _give_back(self, claim: int, choice: DeviceChoice) -> None:
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

    def _constraints_hold(self, claim: int, new: DeviceChoice) -> bool:
        taken = self._taken.choices[claim]
        for constraint in self._claims[claim].spec.devices.constraints:
            self._spend(_CHECK + len(taken))
            if not _concerns(constraint, new.request):
                continue
            others = [one for one in taken if _concerns(constraint, one.request)]
            if not _agrees(constraint, new.offer, [one.offer for one in others]):
                return False
        return True


def alternatives(request: dra.DeviceRequest) -> list[tuple[str, dra.DeviceDemand]]:
    """What may satisfy a request, with the name for the result; the first that works is taken."""
    exact = request.exact
    if exact is not None:
        return [(request.name, exact)]
    return [(f"{request.name}/{one.name}", one) for one in request.first_available]


def preference(claim: dra.ResourceClaim, chosen: Iterable[str]) -> int:
    """Points for the alternatives that were chosen."""
    names = set(chosen)
    return sum(
        MOST_ALTERNATIVES - place
        for request in claim.spec.devices.requests
        if request.exact is None
        for place, (name, _) in enumerate(alternatives(request))
        if name in names
    )


def field_of(claim: dra.ResourceClaim, name: str) -> str:
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
