"""The devices that drivers publish: which ones a node can reach, and which of them match a request.

Drivers publish devices in slices, slices form pools. Of a pool only the newest generation counts, and only if
it is complete, unless the caller accepts incomplete ones (`partial`); a pool with duplicate device names or
with missing counters offers nothing. Pools are ordered by driver and name, slices by name, devices as listed,
so that drivers determine what is used first. Nothing here depends on allocations: a catalogue serves many
sessions until slices, device classes or nodes change.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import blake2b

import msgspec
import numpy as np

from maniple.cluster.nodes import NodeFacts
from maniple.framework.criteria import NodeRows
from maniple.framework.session import Session
from maniple.objects import dra
from maniple.objects.affinity import NodeSelector
from maniple.objects.quantity import parse
from maniple.plugins.feasibility.cel_tokens import CelError
from maniple.plugins.feasibility.cel_values import ByDomain, Device, Quantity, Value, Version
from maniple.plugins.feasibility.node_affinity import Mask, selector_mask
from maniple.plugins.feasibility.selections import DeviceId, Match, Selection

PoolId = tuple[str, str]
Amount = int | Fraction
Counters = Mapping[tuple[str, str], Amount]  # counter set and counter

_WORK_REMEMBERED = 10  # units of compiling that leave as much in memory as a match
_encoder = msgspec.json.Encoder(order="deterministic")


class NodeMasks:
    """Nodes by selector, by identity: the selector is kept, and so is its identity."""

    def __init__(self, facts: NodeFacts) -> None:
        self._facts = facts
        self._known: dict[int, tuple[NodeSelector, Mask]] = {}

    def of(self, selector: NodeSelector) -> Mask:
        known = self._known.get(id(selector))
        if known is None:
            known = self._known[id(selector)] = (selector, selector_mask(self._facts, selector))
        return known[1]


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """A device as a node finds it."""

    id: DeviceId
    body: dra.DeviceBody
    slice: dra.ResourceSliceSpec
    draws: Counters  # what it consumes of its pool's counters

    @property
    def pool(self) -> PoolId:
        return self.id[:2]

    @property
    def shared(self) -> bool:
        """Whether several claims may share it."""
        return bool(self.body.allow_multiple_allocations)

    @property
    def place(self) -> dra.DeviceBody | dra.ResourceSliceSpec:
        """The selector of the nodes that reach it."""
        return self.body if self.slice.per_device_node_selection else self.slice

    def attribute(self, name: str) -> tuple[str, object] | None:
        """The value of an attribute by its full name, with its type; the driver's own may omit the domain."""
        found = self.body.attributes.get(name)
        domain, _, short = name.partition("/")
        if found is None and domain == self.id[0]:
            found = self.body.attributes.get(short)
        return None if found is None else _kind_and_value(found)


@dataclass(frozen=True, slots=True, eq=False)
class NodeOffers:
    """What a node can reach; `whole`: no pool is incomplete or invalid, so that all devices are known."""

    devices: tuple[Offer, ...]
    whole: bool
    pools: tuple[PoolId, ...]  # of the devices


@dataclass(slots=True, eq=False)
class Pool:
    id: PoolId
    slices: list[dra.ResourceSliceSpec]
    counters: dict[tuple[str, str], Amount]
    complete: bool


Part = tuple[Pool, dra.ResourceSliceSpec]


class DeviceCatalogue:
    """All devices of the cluster."""

    def __init__(
        self,
        facts: NodeFacts,
        slices: Mapping[str, dra.ResourceSlice],
        classes: Mapping[str, dra.DeviceClass],
        *,
        partial: bool = False,
    ) -> None:
        self._facts = facts
        self._partial = partial
        self._made_of = (*slices.values(), *classes.values())
        self._masks = NodeMasks(facts)
        self.classes = dict(classes)
        self.pools = {pool.id: pool for pool in _pools(slices.values())}
        self._local: dict[str, list[Part]] = {}  # by node
        self._wide: list[Part] = []  # of more than one node
        for pool in self.pools.values():
            for one in pool.slices:
                where = self._local.setdefault(one.node_name, []) if one.node_name else self._wide
                where.append((pool, one))
        self._offers: dict[int, NodeOffers] = {}
        self._views: dict[DeviceId, Device] = {}
        self._selections: dict[bytes, Selection] = {}
        self._states: dict[Hashable, int] = {}

    @classmethod
    def of(cls, session: Session, *, partial: bool = False) -> "DeviceCatalogue":
        """The one of an earlier session, if it is still valid."""
        facts = session.nodes.facts
        slices, classes = session.cluster.all(dra.ResourceSlice), session.cluster.all(dra.DeviceClass)
        known = facts.memory.get(cls)
        if not isinstance(known, cls) or not known._holds((*slices.values(), *classes.values())):
            known = facts.memory[cls] = cls(facts, slices, classes, partial=partial)
        return known

    def _holds(self, objects: tuple[object, ...]) -> bool:
        return len(objects) == len(self._made_of) and all(
            one is other for one, other in zip(objects, self._made_of, strict=True)
        )

    # -- reachability ---------------------------------------------------------------------------------------------

    def offers(self, node: int) -> NodeOffers:
        if node not in self._offers:
            self._offers[node] = self._gather(node)
        return self._offers[node]

    def _gather(self, node: int) -> NodeOffers:
        found: dict[PoolId, list[Offer]] = {}
        for pool, one in (*self._local.get(self._facts.names[node], ()), *self._wide):
            offers = list(self._of_slice(one, node))
            if offers or self._reaches(one, node):
                found.setdefault(pool.id, []).extend(offers)
        right = {id_: offers for id_, offers in sorted(found.items()) if _is_right(self.pools[id_], offers)}
        complete = {id_: offers for id_, offers in right.items() if self.pools[id_].complete}
        usable = right if self._partial else complete
        devices = tuple(offer for offers in usable.values() for offer in offers)
        return NodeOffers(devices, len(complete) == len(found), tuple(usable))

    def _of_slice(self, spec: dra.ResourceSliceSpec, node: int) -> Iterator[Offer]:
        each = bool(spec.per_device_node_selection)
        if not each and not self._reaches(spec, node):
            return
        for device in spec.devices:
            body = device.body
            if not each or self._reaches(body, node):
                yield Offer((spec.driver, spec.pool.name, device.name), body, spec, _draws(body))

    def _reaches(self, place: dra.DeviceBody | dra.ResourceSliceSpec, node: int) -> bool:
        if place.node_name:
            return place.node_name == self._facts.names[node]
        if place.all_nodes:
            return True
        return place.node_selector is not None and bool(self._masks.of(place.node_selector)[node])

    def neighbours(self, offers: Iterable[Offer]) -> NodeRows | None:
        """Nodes affected when these devices are allocated or freed; None for all."""
        rows: set[int] = set()
        for offer in offers:
            name = offer.place.node_name
            if not name or self.pools[offer.pool].counters:
                return None
            rows.add(self._facts.index[name])
        return np.array(sorted(rows), dtype=np.intp)

    # -- matching -------------------------------------------------------------------------------------------------

    def selection(self, demand: dra.DeviceDemand) -> Selection:
        """The selectors of a request and of its class; requests with equal ones share it."""
        key = _digest((demand.device_class_name, demand.selectors))
        if key not in self._selections:
            self._selections[key] = Selection(self.classes.get(demand.device_class_name), demand)
        return self._selections[key]

    def match(self, selection: Selection, offer: Offer) -> Match:
        known = selection.known(offer.id)
        if known is not None:
            return known
        if offer.id not in self._views:
            self._views[offer.id] = _view(offer)
        return selection.match(offer.id, self._views[offer.id])

    # -- memory ---------------------------------------------------------------------------------------------------

    def state_number(self, state: Hashable) -> int:
        """The same number for equal states of pools."""
        return self._states.setdefault(state, len(self._states))

    @property
    def size(self) -> int:
        """Of what is remembered of selectors and states; it grows with the claims that come and go."""
        matches = sum(len(one) + one.work // _WORK_REMEMBERED for one in self._selections.values())
        return matches + len(self._states)

    def forget(self) -> None:
        self._selections.clear()
        self._states.clear()

    @cached_property
    def drawing(self) -> dict[DeviceId, Counters]:
        """The devices that consume counters."""
        return {
            (*pool.id, device.name): _draws(device.body)
            for pool in self.pools.values()
            if pool.counters
            for one in pool.slices
            for device in one.devices
        }


def _digest(value: object) -> bytes:
    return blake2b(_encoder.encode(value), digest_size=32).digest()


def _pools(slices: Iterable[dra.ResourceSlice]) -> Iterator[Pool]:
    newest: dict[PoolId, list[dra.ResourceSlice]] = {}
    for one in sorted(slices, key=lambda one: one.metadata.name):
        id_ = (one.spec.driver, one.spec.pool.name)
        known = newest.get(id_)
        generation = one.spec.pool.generation
        if known is None or generation > known[0].spec.pool.generation:
            newest[id_] = [one]
        elif generation == known[0].spec.pool.generation:
            known.append(one)
    for id_, members in newest.items():
        counters = {
            (set_.name, name): parse(counter.value)
            for one in members
            for set_ in one.spec.shared_counters
            for name, counter in set_.counters.items()
        }
        complete = len(members) == members[0].spec.pool.resource_slice_count
        yield Pool(id_, [one.spec for one in members], counters, complete)


def _is_right(pool: Pool, offers: list[Offer]) -> bool:
    unique = len({offer.id for offer in offers}) == len(offers)
    return unique and all(name in pool.counters for offer in offers for name in offer.draws)


def _draws(body: dra.DeviceBody) -> Counters:
    return {
        (consumption.counter_set, name): parse(counter.value)
        for consumption in body.consumes_counters
        for name, counter in consumption.counters.items()
    }


def _kind_and_value(attribute: dra.DeviceAttribute) -> tuple[str, object] | None:
    for name in ("string_value", "int_value", "bool_value", "version_value"):
        value = getattr(attribute, name)
        if value is not None:
            return name, value
    return None


def _view(offer: Offer) -> Device:
    """What selectors see; an invalid version is absent."""
    driver = offer.id[0]
    attributes: dict[str, dict[str, Value]] = {}
    for name, attribute in offer.body.attributes.items():
        found = _kind_and_value(attribute)
        if found is None:
            continue
        domain, short = _qualified(name, driver)
        try:
            value: Value = found[1]  # type: ignore[assignment]
            if found[0] == "version_value":
                value = Version.read(str(found[1]))
        except CelError:
            continue
        attributes.setdefault(domain, {})[short] = value
    capacity: dict[str, dict[str, Value]] = {}
    for name, amount in offer.body.capacity.items():
        domain, short = _qualified(name, driver)
        capacity.setdefault(domain, {})[short] = Quantity(parse(amount.value))
    return Device(driver, ByDomain(attributes), ByDomain(capacity), offer.shared)


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, separator, short = name.partition("/")
    return (domain, short) if separator else (driver, name)
