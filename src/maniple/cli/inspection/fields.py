"""Fields that nothing reads, but that are nearly spelled like one that is read: `minmember` for `minMember`.

Decoding ignores unknown fields, and has to: an object has many that scheduling does not need, and other versions
of Kubernetes have more. So only what is one slip away from a known name is reported. Which names an object's
struct knows is worked out once; a name that was found harmless counts as known from then on, so that a large
dump costs one comparison of sets for each mapping in it.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import msgspec

from maniple.objects.meta import Object

_CLOSE = 0.86
_SHORTEST = 4  # shorter names are a letter apart by chance
_LONG_ENOUGH = 6
_MOST_NAMES = 1000
# Names of Kubernetes' API that resemble a field read here, and are none.
_REAL = frozenset({"bools", "ints", "strings", "versions"})  # of device attributes, since Kubernetes 1.36

Shape = Literal["one", "many", "named"]


@dataclass(slots=True)
class _Level:
    """The names that one struct knows, and the structs below it."""

    fields: frozenset[str]
    known: set[str]
    below: "list[tuple[str, Shape, _Level]]"


def misspelt(raw: Mapping[str, Any], struct: type[Object]) -> Iterator[tuple[str, str]]:
    """The path of each field that is nearly a known one, and the right spelling."""
    level = _level(struct)
    return iter(()) if _is_clean(raw, level) else _walk(raw, level)


def _is_clean(raw: Mapping[str, Any], level: _Level) -> bool:
    """Whether the walk would find nothing. Nearly always so: no paths and no generators, for the sake of speed."""
    if not level.known.issuperset(raw) and any(True for _ in _unknown(raw, level)):
        return False
    for name, shape, inner in level.below:
        held = raw.get(name)
        if not held:
            continue
        if shape == "one":
            if type(held) is dict and not _is_clean(held, inner):
                return False
        elif shape == "many" and type(held) is list:
            for item in held:
                if type(item) is dict and not _is_clean(item, inner):
                    return False
        elif type(held) is dict:
            for item in held.values():
                if type(item) is dict and not _is_clean(item, inner):
                    return False
    return True


def _walk(raw: Mapping[str, Any], level: _Level) -> Iterator[tuple[str, str]]:
    yield from _unknown(raw, level)
    for name, shape, inner in level.below:
        held = raw.get(name)
        for path, part in _parts(name, shape, held) if held else ():
            if isinstance(part, dict):
                yield from _inside(path, _walk(part, inner))


@cache
def _level(struct: type) -> _Level:
    described = msgspec.inspect.type_info(struct)
    assert isinstance(described, msgspec.inspect.StructType)
    names = frozenset(one.encode_name for one in described.fields)
    own = {"apiVersion", "kind"} if issubclass(struct, Object) else set()
    below = [
        (one.encode_name, shape, _level(inner))
        for one in described.fields
        for shape, inner in _structs_in(one.type)
    ]
    return _Level(names, {*names, *own}, below)


def _parts(name: str, shape: Shape, held: object) -> Iterator[tuple[str, object]]:
    """The parts of a field that have a struct of their own, with their paths."""
    if shape == "one":
        yield name, held
    elif shape == "many" and isinstance(held, list):
        yield from ((f"{name}[{index}]", item) for index, item in enumerate(held))
    elif shape == "named" and isinstance(held, dict):
        yield from ((f"{name}.{key}", item) for key, item in held.items())


def _structs_in(described: Any, shape: Shape = "one") -> Iterator[tuple[Shape, type]]:
    """The struct that a field holds: one, a list of them, or some by name."""
    if isinstance(described, msgspec.inspect.StructType):
        yield shape, described.cls
    elif isinstance(described, msgspec.inspect.UnionType):
        for part in described.types:
            yield from _structs_in(part, shape)
    elif isinstance(described, msgspec.inspect.VarTupleType | msgspec.inspect.ListType):
        yield from _structs_in(described.item_type, "many")
    elif isinstance(described, msgspec.inspect.DictType):
        yield from _structs_in(described.value_type, "named")


def _unknown(raw: Mapping[str, Any], level: _Level) -> Iterator[tuple[str, str]]:
    for name in raw:
        if name in level.known or type(name) is not str:
            continue
        meant = near_miss(name, level.fields)
        if meant is not None:
            yield name, meant
        elif len(level.known) < _MOST_NAMES:
            level.known.add(name)


def _inside(outer: str, found: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for path, meant in found:
        yield f"{outer}.{path}", meant


def near_miss(word: str, names: Iterable[str]) -> str | None:
    """The name that a word misses by a slip: another case, a letter more, less, wrong or swapped."""
    if word in _REAL or len(word) > 100:
        return None
    plain = _plain(word)
    for name in sorted(names):
        other = _plain(name)
        if _singular(plain) == _singular(other) or f"{plain}name" == other:
            return name
        if min(len(word), len(name)) >= _SHORTEST and one_slip(plain, other):
            return name
    close = [name for name in names if min(len(word), len(name)) >= _LONG_ENOUGH]
    found = difflib.get_close_matches(word, sorted(close), n=1, cutoff=_CLOSE)
    return found[0] if found else None


def _plain(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "")


def _singular(word: str) -> str:
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")


def one_slip(one: str, other: str) -> bool:
    """Whether a letter added, dropped, changed, or swapped with the next makes one of the other."""
    if abs(len(one) - len(other)) > 1:
        return False
    short, long = sorted((one, other), key=len)
    at = next((index for index, letter in enumerate(short) if letter != long[index]), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    swapped = short[at : at + 2] == long[at : at + 2][::-1] and short[at + 2 :] == long[at + 2 :]
    return swapped or short[at + 1 :] == long[at + 1 :]
