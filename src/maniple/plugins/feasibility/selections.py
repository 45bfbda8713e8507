"""Which devices the selectors of a request match: every different case is evaluated once.

Called by `device_stock.py`. A `Selection` stands for a device class and the selectors of a request. The outcome on
a device depends on what the selectors read of it (`Expression.reads`), so devices that are equal in that share a
`Match`, whatever else distinguishes them. Outcomes and failures alike are kept.
"""

from collections.abc import Hashable
from dataclasses import dataclass

from maniple.objects import dra
from maniple.plugins.feasibility.cel import MOST_WORK, Expression, Path, compile_work, compiled
from maniple.plugins.feasibility.cel_tokens import CelError
from maniple.plugins.feasibility.cel_values import Device, Meter

DeviceId = tuple[str, str, str]  # driver, pool, device
_LEAST_WORK = 5  # to find out what the selectors read of a device


@dataclass(frozen=True, slots=True)
class Flaw:
    """A selector that fails on a device; it is one of a class, or else of the request."""

    device_class: str
    place: int
    message: str

    def message_about(self, request: str) -> str:
        whose = f"DeviceClass {self.device_class}: spec" if self.device_class else request
        return f"{whose}.selectors[{self.place}]{self.message}; the device does not match"


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """The outcome for some devices, and the units of work that it took."""

    answer: bool | Flaw
    work: int


@dataclass(frozen=True, slots=True)
class _Part:
    """One selector: a compiled expression, or what is wrong with it."""

    device_class: str
    place: int
    expression: Expression | str

    def outcome(self, device: Device, meter: Meter) -> bool | Flaw:
        if isinstance(self.expression, str):
            return Flaw(self.device_class, self.place, self.expression)
        try:
            return self.expression.holds(device, meter)
        except CelError as error:
            return Flaw(self.device_class, self.place, f".cel.expression: {error}")


class Selection:
    """The selectors of a device class and of a request. They are compiled when a device is looked at."""

    def __init__(self, device_class: dra.DeviceClass | None, demand: dra.DeviceDemand) -> None:
        self._exists = device_class is not None
        of_class = device_class.spec.selectors if device_class is not None else ()
        self._selectors = [
            *((demand.device_class_name, place, one) for place, one in enumerate(of_class)),
            *(("", place, one) for place, one in enumerate(demand.selectors)),
        ]
        texts = [one.cel.expression for _, _, one in self._selectors if one.cel is not None]
        self.work = sum(map(compile_work, texts))
        self._parts: list[_Part] | None = None
        self._reads: tuple[Path, ...] | None = ()  # None: anything
        self._by_device: dict[DeviceId, Match] = {}
        self._by_case: dict[Hashable, Match] = {}

    def __len__(self) -> int:
        return len(self._by_device)

    def known(self, id_: DeviceId) -> Match | None:
        return self._by_device.get(id_)

    def match(self, id_: DeviceId, device: Device) -> Match:
        if self._parts is None:
            self._parts = [_part(*one) for one in self._selectors]
            self._reads = _reads(self._parts)
        case = id_ if self._reads is None else tuple(_value(device, path) for path in self._reads)
        found = self._by_case.get(case)
        if found is None:
            found = self._by_case[case] = self._evaluated(self._parts, device)
        self._by_device[id_] = found
        return found

    def _evaluated(self, parts: list[_Part], device: Device) -> Match:
        if not self._exists:
            return Match(answer=False, work=_LEAST_WORK)
        work = _LEAST_WORK
        for part in parts:
            meter = Meter(MOST_WORK)
            answer = part.outcome(device, meter)
            work += meter.spent
            if answer is not True:
                return Match(answer, work)
        return Match(answer=True, work=work)


def _part(device_class: str, place: int, selector: dra.DeviceSelector) -> _Part:
    if selector.cel is None:
        return _Part(device_class, place, ": a selector of a kind that is not known")
    found = compiled(selector.cel.expression)
    if isinstance(found, CelError):
        return _Part(device_class, place, f".cel.expression: {found}")
    return _Part(device_class, place, found)


def _reads(parts: list[_Part]) -> tuple[Path, ...] | None:
    """What the selectors read; None if one of them takes a device, or all of its attributes, as a whole."""
    paths = {
        path for part in parts if isinstance(part.expression, Expression) for path in part.expression.reads
    }
    whole = any(path in ((), ("attributes",), ("capacity",)) for path in paths)
    return None if whole else tuple(sorted(paths))


def _value(device: Device, path: Path) -> Hashable:
    """A part of a device; values of different types are different, even true and 1."""
    if path[0] == "driver":
        return device.driver
    if path[0] == "allowMultipleAllocations":
        return device.multiple
    if path[0] not in ("attributes", "capacity"):
        return None  # a device has no such field
    domains = device.attributes if path[0] == "attributes" else device.capacity
    values = domains[path[1]]
    if len(path) > 2:
        value = values.get(path[2])
        return type(value), value
    return tuple(
        sorted(((name, str(type(one)), one) for name, one in values.items()), key=lambda each: each[0])
    )
