"""YAML text to plain values with the line of each, safely.

Called by document.py, and for other YAML that is not manifests: kubeconfigs, and descriptions of devices. Reads the
parser's event stream with a stack of its own, because the library's composer recurses once per level and expands
aliases for code that walks the result: here depth and the number of values are checked while reading, before anything
is expanded.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from maniple.framework.configuration.scalars import resolve

Path: TypeAlias = tuple[str | int, ...]

# An object of the API server cannot be larger than about this, so no ConfigMap can hold more.
MAXIMUM_CHARACTERS = 2**20
MAXIMUM_DEPTH = 32
MAXIMUM_VALUES = 20_000
MAXIMUM_DIRECTIVES = 100
MANY_DIRECTIVES = f"more than {MAXIMUM_DIRECTIVES} directives %TAG"

# What YAML allows in a text, turned round. Checked here because the loaders count positions differently.
_UNREADABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DIRECTIVE = re.compile(r"^%TAG\b", re.MULTILINE)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_SCALAR_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}


class ComposeError(Exception):
    """The text is not a document that we read."""

    def __init__(self, line: int | None, message: str, path: Path = ()) -> None:
        super().__init__(line, message, path)
        self.line = line
        self.message = message
        self.path = path


@dataclass(slots=True)
class Composed:
    """The first document of a text: its value, the line of every path, and every scalar as it was written."""

    value: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    texts: dict[Path, str] = field(default_factory=dict)
    remarks: list[tuple[int, str]] = field(default_factory=list)


@dataclass(slots=True)
class _Node:
    """A scalar with its text, a list of nodes, or a mapping from key to (line of the key, node).

    `size` and `height` count an alias as what it stands for.
    """

    line: int
    value: Any
    text: str | None = None
    size: int = 1
    height: int = 1


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not been read yet."""

    node: _Node
    anchor: str | None
    # The line and text of a key that still waits for its value.
    key: tuple[int, str] | None = None
    merged: list[_Node] = field(default_factory=list)


def compose(text: str, *, characters: int = MAXIMUM_CHARACTERS, values: int = MAXIMUM_VALUES) -> Composed:
    """Read the first document of a YAML text. Raises ComposeError and nothing else."""
    if len(text) > characters:
        raise ComposeError(None, f"the text is longer than {characters} characters")
    strange = _UNREADABLE.search(text)
    if strange is not None:
        at = text.count("\n", 0, strange.start()) + 1
        raise ComposeError(at, f"not valid YAML: the character U+{ord(strange[0]):04X} is not allowed")
    if has_many_directives(text):
        raise ComposeError(None, MANY_DIRECTIVES)
    result = Composed()
    composer = _Composer(result, values)
    try:
        root = composer.read(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, composer.here()) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise ComposeError(None, f"not valid YAML: {' '.join(str(error).split())}") from None
    if root is not None:
        result.value = _expand(root, root.line, (), result)
    return result


def has_many_directives(text: str) -> bool:
    """The parser compares each directive with all before it, before it returns anything."""
    return len(_DIRECTIVE.findall(text)) > MAXIMUM_DIRECTIVES


def _syntax_error(error: yaml.MarkedYAMLError, text: str, path: Path) -> ComposeError:
    words = ": ".join(part for part in (error.context, error.problem) if part)
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return ComposeError(None, f"not valid YAML: {words}", path)
    # What is never closed is noticed one line past the end.
    line = min(mark.line + 1, max(len(text.splitlines()), 1))
    begun = error.context_mark.line + 1 if error.context_mark is not None else line
    since = f" (begun on line {begun})" if begun < line else ""
    return ComposeError(line, f"not valid YAML: {words}{since}", path)


def _expand(node: _Node, line: int, path: Path, result: Composed) -> Any:
    """The plain value of a node. Depth and size were bounded when the node was built."""
    result.lines[path] = line
    if isinstance(node.value, list):
        return [_expand(item, item.line, (*path, index), result) for index, item in enumerate(node.value)]
    if isinstance(node.value, dict):
        return {
            key: _expand(item, key_line, (*path, key), result) for key, (key_line, item) in node.value.items()
        }
    if node.text is not None:
        result.texts[path] = node.text
    return node.value


class _Composer:
    """Builds the node of the first document out of parser events."""

    def __init__(self, result: Composed, most: int) -> None:
        self.result = result
        self.most = most
        self.open: list[_Open] = []
        self.anchors: dict[str, _Node | None] = {}
        self.total = 0
        self.root: _Node | None = None

    def read(self, events: Iterator[yaml.Event]) -> _Node | None:
        documents = 0
        for event in events:
            line = event.start_mark.line + 1 if event.start_mark else 0
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self.result.remarks.append((line, "only the first document of the text is read"))
                    break
            elif isinstance(event, yaml.ScalarEvent):
                self.place(self.scalar(event, line), event.anchor, line)
            elif isinstance(event, yaml.AliasEvent):
                self.place_alias(event.anchor or "", line)
            elif isinstance(event, yaml.CollectionStartEvent):
                self.start(event, line)
            elif isinstance(event, yaml.CollectionEndEvent):
                self.finish()
        return self.root

    def error(self, line: int, message: str) -> ComposeError:
        return ComposeError(line, message, self.here())

    def here(self) -> Path:
        """The path of the value that is being read."""
        path: list[str | int] = []
        for level in self.open:
            if isinstance(level.node.value, list):
                path.append(len(level.node.value))
            elif level.key is not None:
                path.append(level.key[1])
        return tuple(path)

    def scalar(self, event: yaml.ScalarEvent, line: int) -> _Node:
        text = event.value
        if event.tag in (None, "!", f"{_TAG}str"):
            plain = event.tag is None and event.implicit[0]
            return _Node(line, resolve(text) if plain else text, text)
        kind = event.tag.removeprefix(_TAG)
        value = resolve(text)
        wanted = _SCALAR_TYPES.get(kind, ())
        if not isinstance(value, wanted) or (isinstance(value, bool) and kind != "bool"):
            raise self.error(line, f"a value with the tag {json.dumps(event.tag[:60])} is not read here")
        return _Node(line, float(value) if kind == "float" and value is not None else value, text)

    def start(self, event: yaml.CollectionStartEvent, line: int) -> None:
        if len(self.open) >= MAXIMUM_DEPTH:
            raise ComposeError(line, f"nested more than {MAXIMUM_DEPTH} levels deep", self.here()[:4])
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", f"{_TAG}map" if mapping else f"{_TAG}seq"):
            raise self.error(line, f"a value with the tag {json.dumps(event.tag[:60])} is not read here")
        node = _Node(line, {} if mapping else [])
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.open.append(_Open(node, event.anchor))

    def finish(self) -> None:
        level = self.open.pop()
        # What the mapping says itself is all there by now; merged keys only fill the gaps.
        for source in level.merged:
            for key, entry in source.value.items():
                level.node.value.setdefault(key, entry)
        self.place(level.node, level.anchor, level.node.line)

    def place_alias(self, anchor: str, line: int) -> None:
        if anchor not in self.anchors:
            raise self.error(line, f"the alias *{anchor[:60]} has no anchor before it")
        target = self.anchors[anchor]
        if target is None:
            raise self.error(line, f"the alias *{anchor[:60]} stands inside its own anchor")
        if len(self.open) + target.height > MAXIMUM_DEPTH + 1:
            raise self.error(line, f"nested more than {MAXIMUM_DEPTH} levels deep")
        self.total += target.size - 1
        self.place(target, None, line)

    def place(self, node: _Node, anchor: str | None, line: int) -> None:
        """Put a finished node where the reader stands."""
        self.total += 1
        if self.total > self.most:
            raise ComposeError(line, f"more than {self.most} values, aliases counted as what they stand for")
        if anchor is not None:
            self.anchors[anchor] = node
        if not self.open:
            self.root = node
            return
        level = self.open[-1]
        level.node.size += node.size
        level.node.height = max(level.node.height, node.height + 1)
        if isinstance(level.node.value, list):
            level.node.value.append(node)
        elif level.key is None:
            self.place_key(level, node, line)
        else:
            self.place_field(level, level.key, node, line)
            level.key = None

    def place_key(self, level: _Open, node: _Node, line: int) -> None:
        if node.text is None:
            raise self.error(line, "a key must be text")
        level.key = (line, node.text)
        first = level.node.value.get(node.text)
        if first is not None:
            raise self.error(line, f"the key stands twice, first on line {first[0]}")

    def place_field(self, level: _Open, key: tuple[int, str], node: _Node, line: int) -> None:
        if key[1] != "<<" or node.text is not None:
            level.node.value[key[1]] = (key[0], node)
            return
        sources = node.value if isinstance(node.value, list) else [node]
        if not all(isinstance(source.value, dict) for source in sources):
            raise self.error(line, "only mappings can be merged")
        level.merged.extend(sources)
