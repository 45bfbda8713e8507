"""Quotas on devices: how many of a class, and how much of their capacity, a queue may claim in all.

Called by capacity. A capability names them: `deviceclass/<class>` counts devices,
`<dimension>.deviceclass/<class>` sums what requests need of each device's capacity. Pods request devices
through resource claims. A claim is charged to a queue once, however many of the queue's pods use it, for as
long as one of them holds it. A class that the capability does not mention is not limited; of one that it
mentions, an unnamed dimension is limited to 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import Status
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.objects.dra import DeviceDemand, ResourceClaim
from maniple.objects.meta import Quantity
from maniple.objects.pod import Pod, PodResourceClaim
from maniple.objects.quantity import parse, units

COUNT = "deviceclass/"
CAPACITY = ".deviceclass/"

Measure = tuple[str, str]  # device class and dimension; the empty dimension counts devices
Amount = int | Fraction
Demand = Mapping[Measure, Amount]
Claims = Mapping[str, Demand]  # by the key of the claim


def name_of(measure: Measure) -> str:
    """The measure as a capability writes it."""
    device_class, dimension = measure
    return f"{dimension}{CAPACITY}{device_class}" if dimension else f"{COUNT}{device_class}"


def limits_of(capability: Mapping[str, Quantity]) -> dict[Measure, Amount]:
    """The device quotas among a capability's entries."""
    limits: dict[Measure, Amount] = {}
    for name, amount in capability.items():
        dimension, separator, device_class = name.partition(CAPACITY)
        if separator and dimension and device_class:
            limits[(device_class, dimension)] = parse(amount)
        elif name.startswith(COUNT) and len(name) > len(COUNT):
            limits[(name.removeprefix(COUNT), "")] = units(parse(amount))
    return limits


class DeviceQuota:
    """One queue's limits, and what it holds of them; a queue above others includes theirs."""

    def __init__(self, limits: Mapping[Measure, Amount], *, zero_counts_limit: bool) -> None:
        self._classes = frozenset(device_class for device_class, _ in limits)
        self._limits = {m: amount for m, amount in limits.items() if zero_counts_limit or amount or m[1]}
        self._held: dict[Measure, Amount] = {}
        self._users: dict[str, int] = {}
        self._kept: dict[Measure, Amount] = {}
        self._kept_claims: set[str] = set()

    def held(self, measure: Measure) -> Amount:
        return self._held.get(measure, 0)

    def take(self, claims: Claims) -> None:
        """A task got its claims."""
        for claim, demand in claims.items():
            users = self._users.get(claim, 0)
            self._users[claim] = users + 1
            if not users:
                _add(self._held, demand, 1)

    def give_back(self, claims: Claims) -> None:
        for claim, demand in claims.items():
            self._users[claim] -= 1
            if not self._users[claim]:
                del self._users[claim]
                _add(self._held, demand, -1)

    def room(self, shared: Claims, own: Demand, count: int) -> int:
        """How many of `count` tasks fit that share the same claims and have some of their own."""
        first: dict[Measure, Amount] = {}
        for claim, demand in shared.items():
            if claim not in self._users:
                _add(first, demand, 1)
        for measure in (*first, *own):
            limit = self._limit(measure)
            if limit is None:
                continue
            left = limit - self.held(measure) - first.get(measure, 0)
            each = own.get(measure, 0)
            if left < 0:
                return 0
            count = min(count, int(left // each)) if each else count
        return count

    # -- admission ------------------------------------------------------------------------------------------------

    def short_of(self, demand: Demand) -> list[str]:
        """The quotas that a job's minimum would exceed, beside what is held and kept for admitted jobs."""
        return sorted(
            name_of(measure)
            for measure, amount in demand.items()
            if (limit := self._limit(measure)) is not None
            and self.held(measure) + self._kept.get(measure, 0) + amount > limit
        )

    def unclaimed(self, claims: Claims) -> Claims:
        """The claims that are neither held nor kept yet."""
        return {
            claim: demand
            for claim, demand in claims.items()
            if claim not in self._users and claim not in self._kept_claims
        }

    def keep(self, claims: Iterable[str], demand: Demand) -> None:
        """A job was admitted: keep this much for it, and do not count these claims again."""
        self._kept_claims.update(claims)
        _add(self._kept, demand, 1)

    def _limit(self, measure: Measure) -> Amount | None:
        device_class, dimension = measure
        if device_class not in self._classes:
            return None
        return self._limits.get(measure, 0 if dimension else None)


class DeviceClaims:
    """The claims of a session's tasks; `consumable`: capacities are counted beside devices."""

    def __init__(self, session: Session, *, consumable: bool) -> None:
        self._session = session
        self._objects = session.cluster.all(ResourceClaim)
        self._consumable = consumable
        self._demands: dict[str, Demand] = {}
        self._by_class: dict[int, tuple[Claims, Demand]] = {}

    def rows(self) -> TaskRows:
        """Tasks that claim anything."""
        numbers = [one.number for one in self._session.classes if claims_anything(one)]
        present = self._session.tasks.status >= 0
        return np.flatnonzero(present & np.isin(self._session.tasks.class_of, numbers))

    def of_task(self, row: int) -> Claims:
        pod = self._session.cluster.tasks.pods[row]
        return self._claims(pod, pod.spec.resource_claims)

    def of_class(self, class_: TaskClass) -> tuple[Claims, Demand]:
        """Claims that all tasks of the class share, and the most that a pending one needs for itself."""
        known = self._by_class.get(class_.number)
        if known is None:
            named = [
                one for one in class_.spec.pod.spec.resource_claims if one.resource_claim_name is not None
            ]
            shared = self._claims(class_.spec.pod, named)
            known = self._by_class[class_.number] = (shared, self._own(class_))
        return known

    def _own(self, class_: TaskClass) -> Demand:
        tasks = self._session.tasks
        most: dict[Measure, Amount] = {}
        waiting = np.flatnonzero((tasks.class_of == class_.number) & (tasks.status == Status.PENDING))
        for row in waiting.tolist():
            pod = self._session.cluster.tasks.pods[row]
            made = [one for one in pod.spec.resource_claims if one.resource_claim_name is None]
            for measure, amount in total(self._claims(pod, made)).items():
                most[measure] = max(most.get(measure, 0), amount)
        return most

    def _claims(self, pod: Pod, claims: Sequence[PodResourceClaim]) -> Claims:
        found: dict[str, Demand] = {}
        made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
        for claim in claims:
            name = claim.resource_claim_name or made.get(claim.name)
            key = f"{pod.metadata.namespace or 'default'}/{name}"
            demand = self._demand(key) if name else None
            if demand:
                found[key] = demand
        return found

    def _demand(self, key: str) -> Demand:
        known = self._demands.get(key)
        if known is None:
            claim = self._objects.get(key)
            known = self._demands[key] = {} if claim is None else self._read(key, claim)
        return known

    def _read(self, key: str, claim: ResourceClaim) -> Demand:
        demand: dict[Measure, Amount] = {}
        for request in claim.spec.devices.requests:
            exact = request.exact
            if exact is None or exact.allocation_mode == "All":
                # The number of devices is unknown before they are allocated.
                self._session.report(
                    f"capacity: request {request.name!r} of claim {key} does not count for device quotas"
                )
            elif exact.device_class_name:
                _add(demand, self._measures(exact), exact.count or 1)
        return demand

    def _measures(self, exact: DeviceDemand) -> Demand:
        """Of one device."""
        measures: dict[Measure, Amount] = {(exact.device_class_name, ""): 1}
        if self._consumable and exact.capacity is not None:
            for dimension, amount in exact.capacity.requests.items():
                measures[(exact.device_class_name, dimension)] = parse(amount)
        return measures


def claims_anything(class_: TaskClass) -> bool:
    return bool(class_.spec.pod.spec.resource_claims)


def total(claims: Claims, times: int = 1) -> Demand:
    """All of the claims together, this many times."""
    sums: dict[Measure, Amount] = {}
    for demand in claims.values():
        _add(sums, demand, times)
    return sums


def _add(amounts: dict[Measure, Amount], more: Demand, times: int) -> None:
    """Remove a measure that returns to zero."""
    for measure, amount in more.items():
        amounts[measure] = amounts.get(measure, 0) + amount * times
        if not amounts[measure]:
            del amounts[measure]
