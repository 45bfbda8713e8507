"""Reads Kubernetes objects from files, folders and standard input, for commands with PATH arguments.

YAML (one document or many) and JSON (one value or several in a row) are accepted, single objects as well as
lists, so the output of `kubectl get -o json` and `-o yaml` is read unchanged; so is KAI's snapshot, zipped or
not. An error costs only its own file: it is returned as a `ReadProblem` that names file and line. What a text may
cost is bounded while it is read: its length, what a zip unpacks to, its depth, what its aliases stand for, and the
digits of its numbers. Objects are not interpreted here; `Reading.origins` knows where each was read.
"""

import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Literal

import msgspec
import yaml

from maniple.cli.expansion import ExpansionError, check_expansion
from maniple.cli.lines import Origin, Source, repeated_keys
from maniple.cli.lines import Path as ValuePath
from maniple.framework.configuration.document import path_text
from maniple.objects.kai_snapshot import FILE_NAME, KaiSnapshot, is_snapshot, read_snapshot
from maniple.objects.lists import SETTINGS, has_settings
from maniple.objects.load import title_of

if TYPE_CHECKING:
    from maniple.journal.moment import Moment

SUFFIXES = (".yaml", ".yml", ".json")
STANDARD_INPUT = "-"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
JSON_SPACE = re.compile(r"[ \t\r\n]*")
LARGEST_HANDWRITTEN = 2**20
LARGEST_TEXT = 2**30  # bytes; ten times the dump of a large cluster
ZIP_BEGIN, ZIP_ENTRY = b"PK\x03\x04", b"PK\x01\x02"
MOST_ENTRIES = 1_000  # of a zip; a snapshot has one
# Snapshots are repetitive, but not as repetitive as a file that is made to fill the memory.
MOST_PACKED, ALWAYS_UNPACKED = 200, 64 * 2**20
MOST_REPEATS = 100  # keys given twice that are named one by one
LONGEST_NUMBER = 100  # characters; a number of Kubernetes has 20
_PIECE = 2**20


@dataclass(frozen=True, slots=True)
class ReadProblem:
    """One thing that could not be read, and where."""

    source: str
    line: int | None
    message: str

    def __str__(self) -> str:
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        return f"{place}: {self.message}"


@dataclass(slots=True)
class Reading:
    """Everything that was read, in the order of the arguments, and everything that was not."""

    objects: list[dict[str, Any]] = field(default_factory=list)
    # where each object was read
    origins: list[Origin] = field(default_factory=list)
    problems: list[ReadProblem] = field(default_factory=list)
    # what can be read, and is hardly intended
    warnings: list[ReadProblem] = field(default_factory=list)
    # KAI's snapshots among the files; their objects are in `objects` as well
    snapshots: list[KaiSnapshot] = field(default_factory=list)
    # Lists that say what to plan with; their objects are in `objects` as well
    moments: "list[Moment]" = field(default_factory=list)


class UnreadableError(ValueError):
    """The text is not YAML or JSON, or there is too much of it."""

    def __init__(self, line: int | None, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


class _NotingRepeats:
    """Notes that a mapping has a key twice, of which YAML's loader keeps the last without a word."""

    repeats = False

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        written = node.value
        mapping = super().construct_mapping(node, deep=deep)  # type: ignore[misc]
        merged = node.value is not written  # merged keys may be repeated; what the mapping has itself may not
        if len(mapping) < len(written) or (merged and len({key.value for key, _ in written}) < len(written)):
            self.repeats = True
        return mapping


def _manifest_loader() -> Any:
    """PyYAML's fastest safe loader, without dates: Kubernetes keeps those as strings."""
    fastest = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    resolvers = {
        first: [(tag, pattern) for tag, pattern in choices if tag != "tag:yaml.org,2002:timestamp"]
        for first, choices in fastest.yaml_implicit_resolvers.items()
    }
    loader: Any = type("ManifestLoader", (_NotingRepeats, fastest), {"yaml_implicit_resolvers": resolvers})
    for kind in ("int", "float"):
        tag = f"tag:yaml.org,2002:{kind}"
        loader.add_constructor(tag, partial(_number, fastest.yaml_constructors[tag]))
    return loader


def _number(convert: Callable[[Any, Any], Any], loader: Any, node: Any) -> Any:
    if len(node.value) > LONGEST_NUMBER:
        raise UnreadableError(node.start_mark.line + 1, _long_number(node.value))
    return convert(loader, node)


def _long_number(text: str) -> str:
    return f"a number of {len(text):,} characters; at most {LONGEST_NUMBER} are read"


MANIFEST_LOADER = _manifest_loader()


def read_paths(paths: Sequence[str], standard_input: BinaryIO) -> Reading:
    """Read every path; a folder stands for all YAML and JSON files below it, `-` for standard input."""
    reading = Reading()
    for path in paths:
        if path == STANDARD_INPUT:
            _read_standard_input(standard_input, reading)
        elif os.path.isdir(path):
            _read_folder(Path(path), reading)
        else:
            _read_file(Path(path), reading)
    return reading


def _read_standard_input(stream: BinaryIO, reading: Reading) -> None:
    name = "standard input"
    try:
        content = _bounded(stream)
    except UnreadableError as error:
        reading.problems.append(ReadProblem(name, None, error.message))
        return
    _read_bytes(name, "", content, lambda: content, reading)


def _read_folder(folder: Path, reading: Reading) -> None:
    files = list(manifests_below(folder))
    for file in files:
        _read_file(file, reading)
    if not files:
        reading.problems.append(ReadProblem(str(folder), None, f"no {', '.join(SUFFIXES)} file below it"))


def manifests_below(folder: Path) -> Iterator[Path]:
    """In a fixed order, without hidden files and folders."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield Path(parent, name)


def _read_file(file: Path, reading: Reading) -> None:
    try:
        content = _content(file)
    except OSError as error:
        reading.problems.append(ReadProblem(str(file), None, error.strerror or str(error)))
        return
    except UnreadableError as error:
        reading.problems.append(ReadProblem(str(file), None, error.message))
        return
    _read_bytes(str(file), file.suffix.lower(), content, partial(_content, file), reading)


def _content(file: Path) -> bytes:
    with file.open("rb") as stream:
        return _bounded(stream)


def _bounded(stream: IO[bytes], most: int = LARGEST_TEXT) -> bytes:
    """All of a stream, which may be endless."""
    pieces, size = [], 0
    while piece := stream.read(_PIECE):
        size += len(piece)
        if size > most:
            raise UnreadableError(None, f"more than {most // 2**20:,} MiB, which is not read")
        pieces.append(piece)
    return b"".join(pieces)


@dataclass(frozen=True, slots=True)
class _Documents:
    """The values of a file, each with its number among the file's documents."""

    form: Literal["json", "yaml"]
    values: list[tuple[int, Any]]
    repeats: bool = False  # some mapping has a key twice


def _read_bytes(name: str, suffix: str, content: bytes, again: Callable[[], bytes], reading: Reading) -> None:
    """`again` reads the content once more, if a message needs a line."""
    try:
        text = _text(content)
        documents = _documents(text, ".json" if content.startswith(ZIP_BEGIN) else suffix)
    except UnreadableError as error:
        reading.problems.append(ReadProblem(name, error.line, error.message))
        return
    source = Source(name, documents.form, lambda: _text(again()).encode())
    for number, document in documents.values:
        if is_snapshot(document):
            _take_snapshot(document, source, number, reading)
        elif has_settings(document):
            _take_moment(document, source, number, reading)
        else:
            _take_items(document, source, number, reading)
    if documents.repeats:
        _report_repeats(text, source, reading)


def _take_snapshot(document: Mapping[str, Any], source: Source, number: int, reading: Reading) -> None:
    snapshot = read_snapshot(document, source.name)
    reading.snapshots.append(snapshot)
    reading.objects += snapshot.objects
    reading.origins += [Origin(source, (number, *place)) for place in snapshot.places]
    for found, kept in ((snapshot.problems, reading.problems), (snapshot.warnings, reading.warnings)):
        for place, message in found:
            kept.append(_problem(source, (number, *place), f"{path_text(place)}: {message}"))


def _take_moment(document: Mapping[str, Any], source: Source, number: int, reading: Reading) -> None:
    """The objects, and what they are to be planned with."""
    from maniple.journal.moment import Moment

    try:
        reading.moments.append(Moment.of_list(document))
    except ValueError as error:
        message = f"{SETTINGS}: not what `maniple snapshot` or `maniple rewind` writes, ignored: {error}"
        reading.warnings.append(_problem(source, (number, SETTINGS), message))
    _take_items(document, source, number, reading)


def _take_items(document: Any, source: Source, number: int, reading: Reading) -> None:
    for path, item in _items(document):
        if isinstance(item, dict):
            reading.objects.append(item)
            reading.origins.append(Origin(source, (number, *path)))
        else:
            message = f"expected a Kubernetes object, found {_kind_of_value(item)}"
            reading.problems.append(_problem(source, (number, *path), message))


def _problem(source: Source, path: ValuePath, message: str) -> ReadProblem:
    return ReadProblem(source.name, source.line(path), message)


def _report_repeats(text: str, source: Source, reading: Reading) -> None:
    """Say which keys are there twice, and in which object."""
    try:
        repeated = repeated_keys(text.encode())
    except yaml.YAMLError:  # JSON that is not YAML, by its tabs
        reading.warnings.append(ReadProblem(source.name, None, "a key is given twice; the last one counts"))
        return
    for path, first, line in repeated[:MOST_REPEATS]:
        raw, field_path = _object_at(path, source, reading)
        title = f"{title_of(raw)}: " if raw is not None else ""
        message = f"{title}{path_text(field_path)}: given twice, first on line {first}; the last one counts"
        reading.warnings.append(ReadProblem(source.name, line, message))
    if len(repeated) > MOST_REPEATS:
        more = f"{len(repeated) - MOST_REPEATS:,} more keys are given twice; the last one counts"
        reading.warnings.append(ReadProblem(source.name, repeated[MOST_REPEATS][2], more))


def _object_at(
    path: ValuePath, source: Source, reading: Reading
) -> tuple[Mapping[str, Any] | None, ValuePath]:
    """The object that a path of a file leads into, and the rest of the path."""
    for raw, origin in zip(reading.objects, reading.origins, strict=True):
        if origin.source is source and path[: len(origin.path)] == origin.path:
            return raw, path[len(origin.path) :]
    return None, path[1:]


def _text(content: bytes) -> str:
    if content.startswith(ZIP_BEGIN):
        content = _unpacked(content)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(_line_at(content, error.start), "not UTF-8 text") from None


def _documents(text: str, suffix: str) -> _Documents:
    try:
        if suffix == ".json" or (text.lstrip()[:1] in ("{", "[") and suffix == ""):
            return _json_documents(text)
        return _yaml_documents(text)
    except RecursionError:
        raise UnreadableError(None, "nested too deeply") from None


def _unpacked(content: bytes) -> bytes:
    """The snapshot.json of a zip."""
    if content.count(ZIP_ENTRY) > MOST_ENTRIES:
        raise UnreadableError(None, f"a zip with more than {MOST_ENTRIES:,} files, so not a KAI snapshot")
    most = min(LARGEST_TEXT, max(ALWAYS_UNPACKED, MOST_PACKED * len(content)))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if FILE_NAME not in archive.namelist():
                raise UnreadableError(None, f"a zip without {FILE_NAME}, so not a KAI snapshot")
            with archive.open(FILE_NAME) as packed:
                return _bounded(packed, most)
    except UnreadableError as error:
        raise UnreadableError(None, f"{FILE_NAME}: {error.message}") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise UnreadableError(None, f"not a readable zip: {error}") from None


def _line_at(content: bytes, offset: int) -> int:
    return content.count(b"\n", 0, offset) + 1


def _line_of(text: str, word: str) -> int:
    return text.count("\n", 0, text.find(word)) + 1


def _json_documents(text: str) -> _Documents:
    try:
        values = [msgspec.json.decode(text)]
    except msgspec.DecodeError:
        values = _json_in_a_row(text)  # either several values, or an error that this can locate
    return _Documents("json", list(enumerate(values)), _json_repeats(text))


def _json_repeats(text: str) -> bool:
    """Whether an object has a key twice.

    Only what people write is short, and only people write a key twice: a dump of a cluster is not searched.
    """
    if len(text) > LARGEST_HANDWRITTEN:
        return False
    repeats = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        if len(dict(pairs)) < len(pairs):
            repeats.append(True)

    decoder = json.JSONDecoder(object_pairs_hook=note, parse_int=str)
    position = _after_space(text, 0)
    while position < len(text):
        position = _after_space(text, decoder.raw_decode(text, position)[1])
    return bool(repeats)


def _refuse_constant(name: str) -> Any:
    raise UnreadableError(None, f"{name} is not a JSON value")


def _json_in_a_row(text: str) -> list[Any]:
    def number(convert: Callable[[str], Any], word: str) -> Any:
        if len(word) > LONGEST_NUMBER:
            raise UnreadableError(_line_of(text, word), _long_number(word))
        value = convert(word)
        if not isfinite(value):
            raise UnreadableError(_line_of(text, word), f"the number {word} is out of range")
        return value

    decoder = json.JSONDecoder(
        parse_constant=_refuse_constant, parse_int=partial(number, int), parse_float=partial(number, float)
    )
    values = []
    position = _after_space(text, 0)
    while position < len(text):
        try:
            value, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise UnreadableError(error.lineno, f"not JSON: {error.msg} (column {error.colno})") from None
        values.append(value)
        position = _after_space(text, position)
    return [*map(_whole_characters, values)] if _SURROGATE.search(text) else values


def _whole_characters(value: Any) -> Any:
    """Half of a character becomes a replacement character, as it does when an API server reads it."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(each) for key, each in value.items()}
    return [*map(_whole_characters, value)] if isinstance(value, list) else value


def _after_space(text: str, position: int) -> int:
    space = JSON_SPACE.match(text, position)
    return position if space is None else space.end()


def _yaml_documents(text: str) -> _Documents:
    if text.lstrip()[:1] == "{":  # JSON in a YAML file is common, and much faster to read as JSON
        try:
            return _Documents("json", [(0, msgspec.json.decode(text))], _json_repeats(text))
        except msgspec.DecodeError:
            pass
    try:
        check_expansion(text)
    except ExpansionError as error:
        raise UnreadableError(error.line, error.message) from None
    try:
        loader = MANIFEST_LOADER(text)
        try:
            documents = []
            while loader.check_data():
                documents.append(loader.get_data())
        finally:
            loader.dispose()
    except UnreadableError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # What is never closed is noticed one line past the end.
        line = None if mark is None else min(mark.line + 1, max(len(text.splitlines()), 1))
        raise UnreadableError(line, f"not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UnreadableError(None, f"not YAML: {str(error).splitlines()[0]}") from None
    given = [(number, document) for number, document in enumerate(documents) if document is not None]
    return _Documents("yaml", given, loader.repeats)


def _items(document: Any) -> Iterator[tuple[ValuePath, Any]]:
    """The objects of one document: itself, or the items of a list of any kind; each with its path."""
    if isinstance(document, list):
        yield from (((index,), item) for index, item in enumerate(document))
        return
    if not isinstance(document, dict) or not isinstance(document.get("items"), list):
        yield (), document
        return
    kind = document.get("kind")
    if not isinstance(kind, str) or not kind.endswith("List"):
        yield (), document
        return
    # The API server omits kind and version from the items of a typed list (PodList); kubectl's List has them.
    named = (
        {}
        if kind == "List"
        else {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    )
    for index, item in enumerate(document["items"]):
        yield ("items", index), {**named, **item} if isinstance(item, dict) else item


def _kind_of_value(value: Any) -> str:
    if isinstance(value, list):
        return "a list"
    return "nothing" if value is None else f"the value {str(value)[:40]!r}"
