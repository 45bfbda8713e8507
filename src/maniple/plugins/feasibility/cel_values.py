"""The values of CEL in device selectors, and their operations, for `cel.py`.

Every operation takes any values and either returns one or raises `CelError`. Numbers are equal across their
types; true and false are not numbers.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import total_ordering
from typing import Any

from maniple.cluster.patterns import Pattern, compile_pattern
from maniple.objects.quantity import Exact, parse
from maniple.plugins.feasibility.cel_tokens import CelError

_LONGEST_MATCHED = 1024  # characters; an attribute has at most 64
PATTERN_WORK = 4000  # units, to compile any pattern
_PATTERN_STEPS = 64  # of RE2's slowest engine, in one unit of work
_VERSION = re.compile(
    r"(0|[1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    value: Exact

    @classmethod
    def read(cls, text: str | int | float) -> "Quantity":
        try:
            return cls(parse(text))
        except ValueError as error:
            raise CelError(str(error)) from None


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A semantic version; two that differ only in their build are equal."""

    numbers: tuple[int, int, int]
    before: tuple[tuple[int, int, str], ...]  # the parts of a pre-release; none for a release

    @classmethod
    def read(cls, text: str) -> "Version":
        found = _VERSION.fullmatch(text) if len(text) <= 256 else None
        if found is None:
            raise CelError(f"not a semantic version: {text[:60]!r}")
        major, minor, patch, before = found.groups()
        parts = [] if before is None else before.split(".")
        # Numbers come before words.
        keys = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
        return cls((int(major), int(minor), int(patch)), keys)

    def _key(self) -> tuple[Any, ...]:
        return (self.numbers, not self.before, self.before)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key() == other._key()

    def __lt__(self, other: "Version") -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())


class OverLimitError(Exception):
    """An evaluation takes more work than it may."""


class Meter:
    """Counts the units of work of an evaluation, the same as those of a search (`device_work.py`)."""

    __slots__ = ("most", "spent")

    def __init__(self, most: int) -> None:
        self.most = most
        self.spent = 0

    def spend(self, units: int) -> None:
        self.spent += units
        if self.spent > self.most:
            raise OverLimitError


class ByDomain(dict[str, Mapping[str, "Value"]]):
    """Attributes or capacities by domain; an unknown domain is empty."""

    def __missing__(self, domain: str) -> Mapping[str, "Value"]:
        return {}


@dataclass(frozen=True, slots=True)
class Device:
    """What a selector sees of a device."""

    driver: str
    attributes: ByDomain
    capacity: ByDomain
    multiple: bool = False


Value = None | bool | int | float | str | list[Any] | Mapping[str, Any] | Quantity | Version | Device
_Method = Callable[..., Value]


def kind(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "list"
    return "map" if isinstance(value, Mapping) else type(value).__name__.lower()


def weight(value: Value) -> int:
    """Units of work to compare, search or read a value."""
    if isinstance(value, str):
        return len(value) // 16
    return len(value) if isinstance(value, list) else 0


def boolean(value: Value) -> bool:
    if not isinstance(value, bool):
        raise CelError(f"gives a {kind(value)} where true or false is needed")
    return value


def element(value: Value) -> Value:
    """A value as an element of a list."""
    if isinstance(value, list):
        raise CelError("a list in a list is not supported")
    return value


def equal(one: Value, other: Value) -> bool:
    if kind(one) != kind(other):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(equal(a, b) for a, b in zip(one, other, strict=True))
    return one == other


def ordered(one: Value, other: Value) -> int:
    """Negative, zero or positive, as the first is less than, equal to or greater than the other."""
    if kind(one) != kind(other) or kind(one) not in ("bool", "number", "string", "quantity", "version"):
        raise CelError(f"a {kind(one)} cannot be compared with a {kind(other)}")
    left: Any = one
    return int(left > other) - int(left < other)


def contains(where: Value, what: Value) -> bool:
    if isinstance(where, list):
        return any(equal(what, item) for item in where)
    if isinstance(where, Mapping):
        return isinstance(what, str) and what in where
    raise CelError(f"a {kind(where)} has nothing in it")


def field_of(value: Value, name: str) -> Value:
    if isinstance(value, Device):
        fields: dict[str, Value] = {
            "driver": value.driver,
            "attributes": value.attributes,
            "capacity": value.capacity,
            "allowMultipleAllocations": value.multiple,
        }
        if name not in fields:
            raise CelError(f"a device has no field {name[:60]!r}")
        return fields[name]
    return indexed(value, name)


def has_field(value: Value, name: str) -> bool:
    if isinstance(value, Device):
        return field_of(value, name) is not None
    if not isinstance(value, Mapping):
        raise CelError(f"a {kind(value)} has no fields")
    return name in value


def indexed(value: Value, index: Value) -> Value:
    if isinstance(value, ByDomain) and isinstance(index, str):
        return value[index]
    if isinstance(value, Mapping):
        if not isinstance(index, str) or index not in value:
            raise CelError(f"no such key: {_shown(index)}")
        found: Value = value[index]
        return found
    if not isinstance(value, list):
        raise CelError(f"a {kind(value)} has no fields")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(value):
        raise CelError(f"index out of range: {_shown(index)}")
    item: Value = value[index]
    return item


def _shown(index: Value) -> str:
    """An index in a message; a list may be long."""
    return str(index)[:60] if isinstance(index, str | int | float) else f"a {kind(index)}"


# -- functions and methods -----------------------------------------------------------------------------------------


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise CelError(f"needs a string, not a {kind(value)}")
    return value


def _readable(read: Callable[[str], Value]) -> Callable[[Value], Value]:
    def check(value: Value) -> bool:
        text = _text(value)
        try:
            read(text)
        except CelError:
            return False
        return True

    return check


def _size(value: Value) -> int:
    if not isinstance(value, str | list | Mapping):
        raise CelError(f"a {kind(value)} has no size")
    return len(value)


FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    "quantity": lambda value: Quantity.read(_text(value)),
    "semver": lambda value: Version.read(_text(value)),
    "isQuantity": _readable(Quantity.read),
    "isSemver": _readable(Version.read),
    "size": _size,
}


def pattern_of(value: Value) -> Pattern | CelError:
    try:
        return compile_pattern(_text(value))
    except ValueError as error:
        return CelError(str(error))


def matches(value: Value, pattern: Pattern | CelError, meter: Meter) -> bool:
    if not isinstance(value, str):
        raise CelError(f"the method matches() of a {kind(value)} is not supported")
    if len(value) > _LONGEST_MATCHED:
        raise CelError(f"matches() takes at most {_LONGEST_MATCHED} characters, got {len(value)}")
    if isinstance(pattern, CelError):
        raise pattern
    meter.spend(1 + pattern.most_steps(value) // _PATTERN_STEPS)
    return pattern(value)


_COMPARISONS: dict[str, _Method] = {
    "compareTo": lambda one, other: (one > other) - (one < other),
    "isGreaterThan": lambda one, other: one > other,
    "isLessThan": lambda one, other: one < other,
}
_TEXT_METHODS: dict[str, _Method] = {
    "startsWith": lambda text, other: text.startswith(_text(other)),
    "endsWith": lambda text, other: text.endswith(_text(other)),
    "contains": lambda text, other: _text(other) in text,
}
_PLAIN_METHODS: dict[tuple[str, str], _Method] = {
    ("string", "lowerAscii"): lambda text: "".join(c.lower() if c.isascii() else c for c in text),
    ("string", "upperAscii"): lambda text: "".join(c.upper() if c.isascii() else c for c in text),
    ("string", "size"): _size,
    ("list", "size"): _size,
    ("map", "size"): _size,
    ("version", "major"): lambda version: version.numbers[0],
    ("version", "minor"): lambda version: version.numbers[1],
    ("version", "patch"): lambda version: version.numbers[2],
}


def called(name: str, value: Value, given: list[Value], meter: Meter) -> Value:
    """`value.name(given...)`."""
    meter.spend(1 + weight(value) + sum(map(weight, given)))
    kind_ = kind(value)
    if not given and (kind_, name) in _PLAIN_METHODS:
        return _PLAIN_METHODS[(kind_, name)](value)
    if len(given) == 1 and kind_ == "string" and name in _TEXT_METHODS:
        return _TEXT_METHODS[name](value, given[0])
    if len(given) == 1 and kind_ in ("quantity", "version") and name in _COMPARISONS:
        if kind(given[0]) != kind_:
            raise CelError(f"a {kind_} cannot be compared with a {kind(given[0])}")
        return _COMPARISONS[name](value, given[0])
    raise CelError(f"the method {name[:60]}() of a {kind_} with {len(given)} arguments is not supported")
