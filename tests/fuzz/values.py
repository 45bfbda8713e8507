"""Values for any field of any kind that is read: by its type, by its name, and of sizes that hurt.

Structure-aware: it asks `msgspec` what a struct has, so a new kind or field is fuzzed from the day it is read.
"""

import random
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect as shapes

TEXTS = (
    "",
    "a",
    "x" * 64,
    "default",
    "\x1b[31m",
    "a\nb",
    "ü",
    "-",
    "0",
    "1",
    "true",
    "team",
    "zone",
    "é" * 5,
)
LABELS = ("a", "zone", "rack", "kubernetes.io/hostname", "app", "team", "x.example/y")
NUMBERS = (0, 1, 2, 3, 7, 64, 100, 1000, 2**31 - 1, -1, -(2**31))
QUANTITIES = ("0", "1", "2", "100m", "1Gi", "9E", "1e-9", "0.001", "1e30", "4", "8", "1n", "7Ei", "500")
RESOURCES = ("cpu", "memory", "pods", "nvidia.com/gpu", "ephemeral-storage", "example.com/x", "hugepages-2Mi")
TIMES = (
    "2026-11-01T00:00:00Z",
    "1970-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "2026-11-17T00:00:01.5+23:59",
)
# What fields of these names mean, wherever they are
WORDS: dict[str, tuple[Any, ...]] = {
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", ""),
    "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute", ""),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    "topologyKey": ("zone", "rack", "kubernetes.io/hostname", "missing"),
    "phase": ("Pending", "Running", "Succeeded", "Failed", "Unknown", "Inqueue", ""),
    "queue": ("kind", "mean", "top", "missing"),
    "parentQueue": ("top", "mean", "kind", "missing"),
    "parent": ("", "a", "s0", "s1", "root", "mean"),
    "nodeName": ("", "", "", "node-0000", "node-0001", "missing"),
    "schedulerName": ("volcano", "kai-scheduler", "maniple", "default-scheduler"),
    "restartPolicy": ("Always", "Never", "OnFailure"),
    "priorityClassName": ("", "high", "low", "system-node-critical", "missing"),
    "mode": ("hard", "soft", ""),
    "resourceClaimName": ("claim-a", "claim-b", "missing"),
    "deviceClassName": ("gpu.example.com", "missing"),
    "driver": ("gpu.example.com", "d"),
    "expression": (
        "true",
        "device.driver == 'd'",
        "device.attributes['d'].x",
        "1/0 == 1",
        "[1,2].exists(x, x > 1)",
    ),
    "allocationMode": ("ExactCount", "All"),
    "preemptibility": ("preemptible", "non-preemptible", "semi", ""),
    "claimName": ("claim-a", "volume-a", "missing"),
    "protocol": ("TCP", "UDP", "SCTP"),
}
_MANY = (50, 200, 700)
_DEEPEST = 7


class Values:
    """Random values. `large`: how often a list or a map is very long."""

    def __init__(self, rng: random.Random, *, large: float = 0.01) -> None:
        self._rng = rng
        self._large = large

    def of(self, kind: type) -> dict[str, Any]:
        """A raw object of a kind, without what identifies it."""
        return self._struct(fields_of(kind), 0)

    def _struct(self, fields: tuple[shapes.Field, ...], depth: int) -> dict[str, Any]:
        chance = 0.75 if depth < 3 else 0.4
        return {
            one.encode_name: self._value(one.type, one.encode_name, depth + 1)
            for one in fields
            if one.required or (self._rng.random() < chance and depth < _DEEPEST)
        }

    def _value(self, shape: Any, name: str, depth: int) -> Any:
        rng = self._rng
        if name in WORDS and rng.random() < 0.9:
            return rng.choice(WORDS[name])
        match shape:
            case shapes.StructType():
                return self._struct(fields_of(shape.cls), depth)
            case shapes.UnionType():
                return self._value(rng.choice(shape.types), name, depth)
            case shapes.ListType() | shapes.VarTupleType() | shapes.SetType() | shapes.FrozenSetType():
                return [self._value(shape.item_type, name, depth + 1) for _ in range(self._length(depth))]
            case shapes.DictType():
                keys = RESOURCES if _holds_quantities(shape) else LABELS
                named = [self._key(keys, number) for number in range(self._length(depth))]
                return {key: self._value(shape.value_type, name, depth + 1) for key in named}
        return self._scalar(shape)

    def _scalar(self, shape: Any) -> Any:
        rng = self._rng
        match shape:
            case shapes.BoolType():
                return rng.random() < 0.5
            case shapes.IntType():
                low, high = shape.ge, shape.le
                fitting = [
                    one for one in NUMBERS if (low is None or one >= low) and (high is None or one <= high)
                ]
                return rng.choice(fitting)
            case shapes.FloatType():
                return rng.choice((0.0, 0.5, 1.0, -1.0, 1e300))
            case shapes.NoneType():
                return None
            case shapes.DateTimeType():
                return rng.choice(TIMES)
        return rng.choice(QUANTITIES) if rng.random() < 0.4 else rng.choice(TEXTS + LABELS)

    def _length(self, depth: int) -> int:
        if depth < 4 and self._rng.random() < self._large:
            return self._rng.choice(_MANY)
        return self._rng.choice((0, 1, 1, 1, 2, 3))

    def _key(self, keys: tuple[str, ...], number: int) -> str:
        return self._rng.choice(keys) if number < 3 else f"{self._rng.choice(keys)}-{number}"


@cache
def fields_of(kind: type) -> tuple[shapes.Field, ...]:
    found = shapes.type_info(kind)
    assert isinstance(found, shapes.StructType)
    return found.fields


def _holds_quantities(shape: shapes.DictType) -> bool:
    return isinstance(shape.value_type, shapes.UnionType) and any(
        isinstance(one, shapes.FloatType) for one in shape.value_type.types
    )


def mutated(rng: random.Random, raw: dict[str, Any]) -> dict[str, Any]:
    """The same object with some of its parts replaced, left out, doubled, or taken from elsewhere in it."""
    made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(raw))
    for _ in range(rng.choice((1, 1, 2, 4))):
        spots = [(part, key) for part, key in places(made) if key not in ("apiVersion", "kind")]
        if not spots:
            break
        part, key = rng.choice(spots)
        match rng.randrange(5):
            case 0:
                del part[key]
            case 1 if isinstance(part[key], list):
                part[key] = part[key] * rng.choice((2, 50))
            case 2:
                other, other_key = rng.choice(spots)
                part[key] = msgspec.json.decode(msgspec.json.encode(other[other_key]))
            case 3:
                part[key] = rng.choice(NUMBERS)
            case _:
                part[key] = rng.choice(TEXTS + QUANTITIES + LABELS)
    return made


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in an object with every key or index into it."""
    found: list[tuple[Any, Any]] = []
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        found.append((value, key))
        found.extend(places(value[key]))
    return found
