"""The lines of files on which objects and fields are, found only when a message needs one.

Decoding gives plain values without positions, because keeping them would slow down large files that have
nothing wrong with them. Here a file is gone through again: JSON by decoding only the level on the way, so that
even a large dump takes a moment, YAML by composing it with marks.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import msgspec
import yaml

Step = str | int
Path = tuple[Step, ...]

# Where an entry begins (with its key, if it has one), and where its value begins and ends.
_Span = tuple[int, int, int]
_NODE_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BEFORE_ITEM = re.compile(rb"[\s,\[]*")
_BEFORE_VALUE = re.compile(rb'[\s,{]*"(?:[^"\\]|\\.)*"\s*:\s*', re.DOTALL)
_SPACE = re.compile(rb"\s*")


@dataclass(slots=True, weakref_slot=True)
class Source:
    """A file or standard input. Paths in it begin with the number of the document."""

    name: str
    form: Literal["json", "yaml"]
    content: Callable[[], bytes]
    _lines: "_JsonLines | _YamlLines | None" = field(default=None, repr=False)

    def line(self, path: Path) -> int | None:
        """The line of a value, or of the innermost part of it that is there; None if it cannot be found."""
        if self._lines is None:
            try:
                content = self.content()
                self._lines = _JsonLines(content) if self.form == "json" else _YamlLines(content)
            except (OSError, ValueError):
                return None
        try:
            return self._lines.of(path)
        except (ValueError, RecursionError, yaml.YAMLError, msgspec.DecodeError):
            return None

    def place(self, path: Path) -> str:
        """`file:line`."""
        line = self.line(path)
        return self.name if line is None else f"{self.name}:{line}"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an object was read."""

    source: Source
    path: Path

    def __str__(self) -> str:
        return self.source.name

    def place(self, raw: object = None, field_path: str = "") -> str:
        """`file:line` of a field of the object, or of the object."""
        return self.source.place((*self.path, *steps(raw, field_path)))


def steps(raw: object, text: str) -> Path:
    """The path that a text such as `spec.containers[0].resources.limits.nvidia.com/gpu` means in a value.

    Keys may contain dots, so the longest that is there counts. The path ends where the value does.
    """
    found: list[Step] = []
    while text:
        text = text.removeprefix(".")
        if isinstance(raw, Mapping):
            bracketed = re.match(r"\[\"?(.*?)\"?\]", text)
            keys = [key for key in raw if isinstance(key, str) and _begins(text, key)]
            key = max(keys, key=len, default=None)
            if key is None and bracketed is not None and bracketed[1] in raw:
                found.append(bracketed[1])
                raw, text = raw[bracketed[1]], text[bracketed.end() :]
                continue
            if key is None:
                break
            found.append(key)
            raw, text = raw[key], text[len(key) :]
        elif isinstance(raw, Sequence) and not isinstance(raw, str):
            index = re.match(r"\[([0-9]{1,9})\]", text)
            if index is None or int(index[1]) >= len(raw):
                break
            found.append(int(index[1]))
            raw, text = raw[int(index[1])], text[index.end() :]
        else:
            break
    return tuple(found)


def _begins(text: str, key: str) -> bool:
    return bool(key) and text.startswith(key) and text[len(key) : len(key) + 1] in ("", ".", "[")


class _JsonLines:
    """Offsets in JSON text: `Raw` skips values without decoding them."""

    def __init__(self, content: bytes) -> None:
        self._content = content.removeprefix(b"\xef\xbb\xbf")
        self._known: dict[Path, dict[Step, _Span]] = {}

    def of(self, path: Path) -> int:
        begin, value, end = self._documents[int(path[0])]
        for depth, step in enumerate(path[1:], start=1):
            inner = self._entries(path[:depth], value, end).get(step)
            if inner is None:
                break
            begin, value, end = inner
        return self._content.count(b"\n", 0, begin) + 1

    @cached_property
    def _documents(self) -> list["_Span"]:
        """Where each value of the text is; there is nearly always one."""
        begin = _after(_SPACE, self._content, 0)
        try:
            msgspec.json.decode(self._content, type=msgspec.Raw)
            return [(begin, begin, len(self._content))]
        except msgspec.DecodeError:
            pass
        found, text, position = [], self._content.decode(), 0
        decoder = json.JSONDecoder()
        while position < len(text.rstrip()):
            position += len(text[position:]) - len(text[position:].lstrip())
            _, end = decoder.raw_decode(text, position)
            begin = len(text[:position].encode())
            found.append((begin, begin, len(text[:end].encode())))
            position = end
        return found

    def _entries(self, path: Path, begin: int, end: int) -> dict[Step, "_Span"]:
        """Where the entries of the value between `begin` and `end` are; empty for a scalar."""
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = self._spans(begin, end)
        return known

    def _spans(self, begin: int, end: int) -> dict[Step, "_Span"]:
        text, found, at = self._content[begin:end], {}, begin
        parts: Iterable[tuple[Step, msgspec.Raw]] = ()
        if text[:1] == b"{":
            before, parts = _BEFORE_VALUE, msgspec.json.decode(text, type=dict[str, msgspec.Raw]).items()
        elif text[:1] == b"[":
            before, parts = _BEFORE_ITEM, enumerate(msgspec.json.decode(text, type=list[msgspec.Raw]))
        for step, raw in parts:
            value = _after(before, self._content, at)
            entry = self._content.index(b'"', at) if isinstance(step, str) else value
            at = value + len(memoryview(raw))
            found[step] = entry, value, at
        return found


def _after(pattern: re.Pattern[bytes], content: bytes, position: int) -> int:
    match = pattern.match(content, position)
    return position if match is None else match.end()


class _YamlLines:
    """Lines in YAML text, by composing it; the library's nodes know where they begin."""

    def __init__(self, content: bytes) -> None:
        self._text = content.decode("utf-8-sig")

    @cached_property
    def _documents(self) -> list[Any]:
        return list(yaml.compose_all(self._text, Loader=_NODE_LOADER))

    def of(self, path: Path) -> int | None:
        node = self._documents[int(path[0])]
        line = None if node is None else node.start_mark.line
        for step in path[1:]:
            found = _below(node, step)
            if found is None:
                break
            line, node = found
        return None if line is None else int(line) + 1


def _below(node: Any, step: Step) -> tuple[int, Any] | None:
    """An entry of a node and its line."""
    if isinstance(node, yaml.MappingNode):
        # Of a key that is there twice, the last counts.
        for key, value in reversed(node.value):
            if key.value == step:
                return key.start_mark.line, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark.line, node.value[step]
    return None


def repeated_keys(content: bytes) -> list[tuple[Path, int, int]]:
    """Keys that a mapping has twice, in YAML or JSON: the path, the first line, the last line."""
    found: list[tuple[Path, int, int]] = []
    documents = yaml.compose_all(content.decode("utf-8-sig"), Loader=_NODE_LOADER)
    pending: list[tuple[Path, Any]] = [((number,), node) for number, node in enumerate(documents)]
    seen: set[int] = set()  # an alias is the node of its anchor
    while pending:
        path, node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            pending += [((*path, index), item) for index, item in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            pending += [((*path, key.value), value) for key, value in node.value if _is_key(key)]
            found += _repeated_in(node, path)
    return sorted(found, key=lambda one: one[2])


def _repeated_in(node: Any, path: Path) -> Iterator[tuple[Path, int, int]]:
    first: dict[str, int] = {}
    for key, _ in node.value:
        if not _is_key(key):
            continue
        line = key.start_mark.line + 1
        if key.value in first:
            yield (*path, key.value), first[key.value], line
        first.setdefault(key.value, line)


def _is_key(key: Any) -> bool:
    return isinstance(key, yaml.ScalarNode) and key.value != "<<"
