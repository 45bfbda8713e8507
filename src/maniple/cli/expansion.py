"""What a YAML text expands to, found before it is loaded: how deeply it is nested, and what its aliases stand for.

The loader recurses in C, where depth would end the process, and copies what merge keys refer to again and again: a
few hundred bytes can keep it busy for minutes. So the parser's events are counted first, with an alias as what it
stands for. Texts without aliases and without depth are recognised by their characters, at next to no cost.
"""

import re
from dataclasses import dataclass

import yaml

from maniple.framework.configuration.compose import MANY_DIRECTIVES, has_many_directives

DEEPEST = 1_000
# Beyond what is written. Manifests share a few blocks by anchors; nothing in Kubernetes needs a million values so.
MOST_ALIASED = 1_000_000

_BRACKET = re.compile(r"[\[{\]}]")
# A block is a column further in than the one around it, or, for sequences in mappings, in the same one.
_INDENTED = re.compile(rf"^(?:[-?:] | ){{{DEEPEST // 2},}}", re.MULTILINE)
_ANCHOR, _ALIAS = (re.compile(rf"(?:^|[\s\[{{,:?-]){mark}([^\s\[\]{{}},]+)") for mark in (r"&", r"\*"))
_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ExpansionError(Exception):
    """The text must not be loaded."""

    def __init__(self, line: int | None, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


def check_expansion(text: str) -> None:
    """Raise ExpansionError for a text that must not be loaded; one with errors is left to the loader."""
    if has_many_directives(text):
        raise ExpansionError(None, MANY_DIRECTIVES)
    if not _has_aliases(text) and not _may_be_deep(text):
        return
    counting = _Counting()
    try:
        for event in yaml.parse(text, Loader=_PARSER):
            counting.take(event)
    except yaml.YAMLError:
        return


def _has_aliases(text: str) -> bool:
    """Text inside strings counts here, too, if it looks like an alias of something that looks like an anchor."""
    if "&" not in text or "*" not in text:
        return False
    return not set(_ANCHOR.findall(text)).isdisjoint(_ALIAS.findall(text))


def _may_be_deep(text: str) -> bool:
    """Brackets inside strings count here, too."""
    if _INDENTED.search(text):
        return True
    if text.count("[") + text.count("{") <= DEEPEST:
        return False
    depth = 0
    for bracket in _BRACKET.findall(text):
        depth += 1 if bracket in "[{" else -1
        if depth > DEEPEST:
            return True
    return False


@dataclass(slots=True)
class _Part:
    """A value with all that is in it; aliases count as what they stand for."""

    anchor: str | None = None
    size: int = 1
    height: int = 1


class _Counting:
    def __init__(self) -> None:
        self._open: list[_Part] = []
        self._anchors: dict[str, _Part | None] = {}  # None: its value is not complete
        self._aliased = 0

    def take(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.DocumentStartEvent):
            self._anchors.clear()
        elif isinstance(event, yaml.AliasEvent):
            self._take_alias(str(event.anchor), line)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open.append(_Part(event.anchor))
            if event.anchor is not None:
                self._anchors[event.anchor] = None
            _check_depth(len(self._open), line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close(self._open.pop())
        elif isinstance(event, yaml.ScalarEvent):
            self._close(_Part(event.anchor))

    def _take_alias(self, name: str, line: int) -> None:
        target = self._anchors.get(name, _Part())
        if target is None:
            raise ExpansionError(
                line, f"the alias *{name[:60]} is inside its own anchor, which then refers to itself"
            )
        _check_depth(len(self._open) + target.height - 1, line)
        self._aliased += target.size
        if self._aliased > MOST_ALIASED:
            raise ExpansionError(line, f"its aliases stand for more than {MOST_ALIASED:,} values")
        self._close(_Part(None, target.size, target.height))

    def _close(self, part: _Part) -> None:
        if part.anchor is not None:
            self._anchors[part.anchor] = part
        if self._open:
            around = self._open[-1]
            around.size += part.size
            around.height = max(around.height, part.height + 1)


def _check_depth(depth: int, line: int) -> None:
    if depth > DEEPEST:
        raise ExpansionError(line, "nested too deeply")
