"""A configuration document: plain values, and for each of them the line and the path that a message can name.

The loaders in configuration.py call `open_document` and walk the result through `Place`. What always holds: values are
only dict (text keys), list, str, int (64 bits), float, bool and None; nesting and the number of values are bounded,
aliases counted at their full size; every failure, whatever the input, is a ConfigurationError.
"""

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from maniple.framework.configuration.compose import MAXIMUM_DEPTH, MAXIMUM_VALUES, ComposeError, Path, compose
from maniple.framework.configuration.scalars import GREATEST_INTEGER, LEAST_INTEGER, parse_switch, scalar_text

MAXIMUM_WARNINGS = 100
_LONGEST_EXCERPT = 60
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


class ConfigurationError(Exception):
    """The configuration cannot be used. Names the source, the line (of a text) and the path in the file."""

    def __init__(self, source: str, line: int | None, path: str, message: str) -> None:
        super().__init__(source, line, path, message)
        self.source = source
        self.line = line
        self.path = path
        self.message = message

    def __str__(self) -> str:
        return located(self.source, self.line, self.path, self.message)


def located(source: str, line: int | None, path: str, message: str) -> str:
    """One line that says where and what; the parts that are not known are left out."""
    where = source if line is None else f"{source}:{line}"
    return ": ".join(part for part in (where, path, message) if part)


def path_text(path: Path) -> str:
    """`tiers[0].plugins[1].name`; keys that are not plain words stand quoted in brackets."""
    parts: list[str] = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif _PLAIN_KEY.fullmatch(step) and len(step) <= _LONGEST_EXCERPT:
            parts.append(f".{step}" if parts else step)
        else:
            parts.append(f"[{quoted(step)}]")
    return "".join(parts)


def quoted(text: str) -> str:
    """Text between double quotes, on one line and not endless."""
    if len(text) > _LONGEST_EXCERPT:
        text = text[:_LONGEST_EXCERPT] + "…"
    return json.dumps(text, ensure_ascii=not text.isprintable())


def describe(value: object) -> str:
    """What a value is, for a message that wanted something else."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if isinstance(value, int | float):
        return f"the number {value}"
    return "a list" if isinstance(value, list | tuple) else "a mapping"


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that a mistyped word most likely meant."""
    if len(word) > _LONGEST_EXCERPT:
        return None
    by_lower = {candidate.lower(): candidate for candidate in sorted(candidates)}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[found[0]] if found else None


def suggestion(word: str, candidates: Iterable[str]) -> str:
    """`; did you mean "x"?`, or nothing when no candidate is near."""
    found = nearest(word, candidates)
    return "" if found is None else f"; did you mean {quoted(found)}?"


def _alike(key: str, known: Iterable[str]) -> list[str]:
    """Known keys that may be suggested for a key: never one that switches the other way."""
    word = key.lower()
    opposite = "disable" if word.startswith("enable") else "enable"
    switches = word.startswith(("enable", "disable"))
    return [name for name in known if not (switches and name.startswith(opposite))]


@dataclass(slots=True)
class Document:
    """One source and what was noticed while reading it."""

    source: str
    lines: Mapping[Path, int] = field(default_factory=dict)
    texts: Mapping[Path, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def full(self) -> bool:
        return len(self.warnings) > MAXIMUM_WARNINGS

    def warn(self, path: Path, message: str) -> None:
        if len(self.warnings) < MAXIMUM_WARNINGS:
            self.warnings.append(located(self.source, self.lines.get(path), path_text(path), message))
        elif not self.full():
            self.warnings.append(f"{self.source}: further warnings are left out")


@dataclass(frozen=True, slots=True)
class Place:
    """A value and where it stands. The readers below return it in the wanted shape or raise."""

    document: Document
    path: Path
    value: Any

    @property
    def line(self) -> int | None:
        return self.document.lines.get(self.path)

    def error(self, message: str) -> ConfigurationError:
        return ConfigurationError(self.document.source, self.line, path_text(self.path), message)

    def warn(self, message: str) -> None:
        self.document.warn(self.path, message)

    def warn_unknown(self, kind: str, known: Iterable[str], word: str | None = None) -> None:
        """Say that this key, or the name that stands here, is ignored, and which known one it resembles."""
        # Looking for the nearest name is slow, and the warning would be left out.
        if self.document.full():
            return
        named = "" if word is None else f" {quoted(word)}"
        hint = suggestion(str(self.path[-1]) if word is None else word, known)
        self.warn(f"unknown {kind}{named}, ignored{hint}")

    def fields(self, what: str) -> "dict[str, Place]":
        """The entries of a mapping; nothing at all reads as an empty one."""
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            raise self.error(f"{what} must be a mapping, found {describe(self.value)}")
        return {key: Place(self.document, (*self.path, key), value) for key, value in self.value.items()}

    def known_fields(self, what: str, known: Iterable[str], *, any_case: bool = False) -> "dict[str, Place]":
        """The entries of a mapping under their known spelling; the others are warned of and left out."""
        spelling = {key.lower() if any_case else key: key for key in known}
        result: dict[str, Place] = {}
        for key, place in self.fields(what).items():
            name = spelling.get(key.lower() if any_case else key)
            if name is None:
                place.warn_unknown("key", _alike(key, spelling.values()))
            elif name in result:
                raise place.error(f"says {quoted(name)} a second time")
            else:
                result[name] = place
        return result

    def entries(self, what: str) -> "list[Place]":
        """The entries of a list; nothing at all reads as an empty one."""
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise self.error(f"{what} must be a list, found {describe(self.value)}")
        return [Place(self.document, (*self.path, index), value) for index, value in enumerate(self.value)]

    def text(self, what: str) -> str:
        if not isinstance(self.value, str):
            hint = " (quote it)" if isinstance(self.value, int | float) else ""
            raise self.error(f"{what} must be text, found {describe(self.value)}{hint}")
        return self.value

    def scalar_text(self, what: str) -> str:
        """A scalar of any type as text: `yes` reads as "true", `0x10` as "16"."""
        if isinstance(self.value, dict | list):
            raise self.error(f"{what} must be text, found {describe(self.value)}")
        return scalar_text(self.value)

    def written_text(self, what: str) -> str:
        """A scalar of any type as it was written: `yes` stays "yes"."""
        text = self.scalar_text(what)
        return text if self.value is None else self.document.texts.get(self.path, text)

    def switch(self, what: str) -> bool:
        value = parse_switch(self.value) if isinstance(self.value, str) else self.value
        if not isinstance(value, bool):
            raise self.error(f"{what} must be true or false, found {describe(self.value)}")
        return value

    def integer(self, what: str) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.error(f"{what} must be an integer, found {describe(self.value)}")
        return self.value


def open_document(source: object, name: str) -> Place:
    """The root of a YAML text or of an already parsed mapping."""
    if isinstance(source, str):
        return _open_text(source, name)
    if not isinstance(source, Mapping):
        raise ConfigurationError(
            name, None, "", f"wanted YAML text or a mapping, found a {type(source).__name__}"
        )
    return Place(Document(name), (), _Copy(name).copy(source, ()))


def _open_text(text: str, name: str) -> Place:
    try:
        composed = compose(text)
    except ComposeError as problem:
        raise ConfigurationError(name, problem.line, path_text(problem.path), problem.message) from None
    document = Document(name, composed.lines, composed.texts)
    for line, message in composed.remarks:
        document.warnings.append(located(name, line, "", message))
    return Place(document, (), composed.value)


class _Copy:
    """Copies a parsed mapping, so that later changes by its owner, cycles and odd types stay outside."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0

    def error(self, path: Path, message: str) -> ConfigurationError:
        return ConfigurationError(self.name, None, path_text(path), message)

    def copy(self, value: object, path: Path) -> Any:
        self.count += 1
        if self.count > MAXIMUM_VALUES:
            raise self.error((), f"more than {MAXIMUM_VALUES} values")
        if isinstance(value, Mapping | list | tuple):
            if len(path) >= MAXIMUM_DEPTH:
                raise self.error(path[:4], f"nested more than {MAXIMUM_DEPTH} levels deep")
            if isinstance(value, Mapping):
                return self.copy_mapping(value, path)
            return [self.copy(item, (*path, index)) for index, item in enumerate(value)]
        return self.scalar(value, path)

    def copy_mapping(self, value: Mapping[Any, object], path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, item in value.items():
            if isinstance(key, Mapping | list | tuple):
                raise self.error(path, "a key must be text")
            word = scalar_text(self.scalar(key, path))
            if word in result:
                raise self.error((*path, word), "the key stands twice")
            result[word] = self.copy(item, (*path, word))
        return result

    def scalar(self, value: object, path: Path) -> str | int | float | bool | None:
        if isinstance(value, date):
            return value.isoformat()
        # The exact types: a subclass may print itself in its own way.
        if isinstance(value, str):
            return str.__str__(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            if not LEAST_INTEGER <= value <= GREATEST_INTEGER:
                raise self.error(path, "the number does not fit in 64 bits")
            return int(value)
        if isinstance(value, float):
            return math.nan if math.isnan(value) else float(value)
        raise self.error(path, f"values of type {type(value).__name__} are not known here")
