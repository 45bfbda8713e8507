"""What is said about objects: one remark per object and field, and one line for many that are alike."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maniple.cli.lines import Origin
from maniple.objects.load import Problem, title_of
from maniple.objects.printable import printable

_EXAMPLES = 3
_MESSAGES = 5
_INDEX = re.compile(r"\[\d+\]")
_ITEM = re.compile(r"(?:\S+ \()?item (?P<number>\d+)(?:, items\[\d+\])*\)?")


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about the object at `position` of the input, -1 if it is not known; `title` names it."""

    position: int
    title: str
    field: str
    message: str


def of_problems(problems: Iterable[Problem], objects: Sequence[Mapping[str, Any]]) -> list[Remark]:
    """The objects that could not be loaded, as remarks; "item 3" is the name of an object that has none."""
    found: list[Remark] = []
    positions: dict[str, int] = {}
    for problem in problems:
        numbered = _ITEM.fullmatch(problem.object)
        if numbered is None and not positions:
            positions = {title_of(raw): position for position, raw in enumerate(objects)}
        position = int(numbered["number"]) if numbered is not None else positions.get(problem.object, -1)
        named = numbered is None or position >= len(objects)
        title = problem.object if named else title_of(objects[position])
        found.append(Remark(position, title, problem.field, problem.message))
    return found


def lines_of(remarks: Iterable[Remark], objects: Sequence[object], origins: Sequence[Origin]) -> list[str]:
    """A line for each message, with the file and line of the first object, and how many others there are.

    Of many different messages about one field, the first few are enough.
    """
    fields: dict[tuple[str, str], dict[str, list[Remark]]] = {}
    for remark in remarks:
        kind = remark.title.partition(" ")[0]
        alike = fields.setdefault((kind, _INDEX.sub("[]", remark.field)), {})
        alike.setdefault(remark.message, []).append(remark)
    lines: list[str] = []
    for (kind, field), alike in fields.items():
        groups = list(alike.values())
        lines += [_line(group, objects, origins) for group in groups[:_MESSAGES]]
        if len(groups) > _MESSAGES:
            more = sum(map(len, groups[_MESSAGES:]))
            lines.append(printable(f"{kind}: {field}: {more:,} more like these"))
    return lines


def _line(group: list[Remark], objects: Sequence[object], origins: Sequence[Origin]) -> str:
    first = group[0]
    known = 0 <= first.position < len(origins)
    place = origins[first.position].place(objects[first.position], first.field) if known else ""
    text = ": ".join(filter(None, (place, first.title, first.field, first.message)))
    others = list(dict.fromkeys(one.title for one in group if one.title != first.title))
    if not others:
        return printable(text)
    kind = first.title.partition(" ")[0]
    named = ", ".join(title.partition(" ")[2] for title in others[: _EXAMPLES - 1])
    more = f"{len(others):,} more of kind {kind}: {named}{', ...' if len(others) >= _EXAMPLES else ''}"
    return printable(f"{text} (and {more})")
