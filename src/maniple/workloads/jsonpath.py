"""The part of JSONPath (RFC 9535) with which a configuration names fields of custom resources.

    $.spec.workers            a field; the $ may be left out
    $.spec['worker-count']    a field with any name
    $.spec.groups[0]          an entry of a list, counted from 0
    $.spec.groups[*].size     every entry of a list, or every field of an object; numbers are added up

There is nothing else: no filters, slices, unions or descendants. What is refused is named with its position.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from maniple.workloads.fields import count, fail, section_of, shown, text
from maniple.workloads.model import Raw

Place = tuple[str | int, ...]

_FIELD = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)")
_QUOTED = re.compile(r"\['([^'\\]+)'\]|\[\"([^\"\\]+)\"\]")
_ENTRY = re.compile(r"\[(0|[1-9][0-9]{0,5})\]")
_EVERY = "[*]"
_REFUSED = (
    ("..", "descendants (..) are not supported"),
    (".*", "write [*] for every entry"),
    ("[?", "filters are not supported"),
    ("[-", "entries are counted from the start"),
    ("{", "write the path without braces"),
    ("(", "functions are not supported"),
)


class JsonPathError(ValueError):
    """A path that cannot be used, with the position of what is wrong, counted from 1."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(f"position {position}: {message}")
        self.position = position


@dataclass(frozen=True, slots=True)
class JsonPath:
    """`steps`: a field by its name, an entry by its number, None for every one."""

    text: str
    steps: tuple[str | int | None, ...]

    @property
    def finds_one(self) -> bool:
        return None not in self.steps

    @property
    def place(self) -> Place:
        """The only place that it can find, of a path that finds one."""
        return tuple(step for step in self.steps if step is not None)

    @property
    def field(self) -> str:
        """As fields are written in the table of kinds: spec.workers[].count."""
        names = (f".{step}" if isinstance(step, str) else "[]" for step in self.steps)
        return "".join(names).removeprefix(".")

    def total(self, owner: Raw) -> int | None:
        """The sum of the numbers that it finds; None if there are none."""
        places = [*self._places(owner)]
        return sum(count(owner, place) for place in places) if places else None

    def said(self, owner: Raw) -> str:
        """The text that it finds, or nothing."""
        return next((text(owner, place) for place in self._places(owner)), "")

    def _places(self, owner: Raw) -> Iterator[Place]:
        found: list[tuple[Place, Any]] = [((), owner)]
        for step in self.steps:
            found = [below for place, value in found for below in _below(owner, place, value, step)]
        return (place for place, value in found if value is not None)


def _below(owner: Raw, place: Place, found: Any, step: str | int | None) -> Iterator[tuple[Place, Any]]:
    if found is None:
        return
    if isinstance(found, list | tuple) and not isinstance(step, str):
        for number, one in enumerate(found):
            if step is None or step == number:
                yield (*place, number), one
        return
    if isinstance(step, int):
        raise fail(owner, place, f"must be a list, not {shown(found)}")
    for key, one in section_of(owner, place, found).items():
        if step is None or step == key:
            yield (*place, key), one


def parse(written: str) -> JsonPath:
    """Raises `JsonPathError`."""
    at = 1 if written.startswith("$") else 0
    rest = written if at or not written or written.startswith(("[", ".")) else f".{written}"
    shift = len(rest) - len(written)
    steps: list[str | int | None] = []
    while at < len(rest):
        if rest.startswith(_EVERY, at):
            steps.append(None)
            at += len(_EVERY)
        elif match := _FIELD.match(rest, at) or _QUOTED.match(rest, at):
            steps.append(next(name for name in match.groups() if name is not None))
            at = match.end()
        elif match := _ENTRY.match(rest, at):
            steps.append(int(match.group(1)))
            at = match.end()
        else:
            raise JsonPathError(max(at - shift, 0) + 1, _refusal(rest[at:]))
    if not steps:
        raise JsonPathError(1, "names no field")
    return JsonPath(written, tuple(steps))


def _refusal(rest: str) -> str:
    for begin, message in _REFUSED:
        if rest.startswith((begin, f".{begin}")):
            return message
    if re.match(r"\[[0-9]*:", rest):
        return "slices are not supported"
    if re.match(r"\[[^\]]*,", rest):
        return "several names in one bracket are not supported"
    return f"expected .field, ['field'], [number] or [*], found {rest[:20]!r}"
