"""Typed objects from the bytes of lists and watches, one bad object at a time.

`watch` feeds this. Objects are decoded straight into the structs of `maniple.objects`, which have only the
fields in use, and validated. An object that cannot be read becomes a `Bad` with its problem and never stops
the others.
"""

import re
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from maniple.kube.errors import ApiError
from maniple.kube.kinds import Kind, Resource
from maniple.objects.checks import FieldError
from maniple.objects.load import ObjectError, Problem, load
from maniple.objects.meta import Object
from maniple.objects.validate import check

# No supported object is nested deeper, and the decoder cannot go much deeper.
DEEPEST = 100
_UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{\]}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Bad:
    """An object that cannot be read; `key` is empty if not even its name can be."""

    key: str
    resource_version: str
    problem: Problem


class Envelope(msgspec.Struct, frozen=True):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


ObjectT = TypeVar("ObjectT", bound=Object)


class TypedEnvelope(msgspec.Struct, Generic[ObjectT], frozen=True):
    """The same, decoded in one pass."""

    type: str
    object: ObjectT


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class ListBody(msgspec.Struct):
    """One page of a list; the server writes null for a list without items."""

    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _PositionMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Position(msgspec.Struct):
    metadata: _PositionMeta = msgspec.field(default_factory=_PositionMeta)


_ENVELOPE = msgspec.json.Decoder(Envelope)
_LIST = msgspec.json.Decoder(ListBody)
_POSITION = msgspec.json.Decoder(_Position)
T = TypeVar("T")


class Lines:
    """Splits a stream into lines, wherever the chunks begin and end and however long a line is."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The non-blank lines that this chunk completes; the rest is buffered."""
        head, *tail = chunk.split(b"\n")
        self._rest.append(head)
        if not tail:
            return []
        lines = [b"".join(self._rest), *tail[:-1]]
        self._rest = [tail[-1]]
        return [line for line in lines if line and not line.isspace()]


def read_envelope(line: bytes) -> Envelope:
    return _decode(_ENVELOPE, line, "watch event")


def read_list(body: bytes) -> ListBody:
    return _decode(_LIST, body, "list")


def read_position(raw: msgspec.Raw) -> str:
    """The resourceVersion of a bookmark."""
    return _decode(_POSITION, bytes(raw), "bookmark").metadata.resource_version


def _decode(decoder: msgspec.json.Decoder[T], body: bytes, what: str) -> T:
    try:
        try:
            return decoder.decode(body)
        except RecursionError:
            return decoder.decode(shallow(body))
    except _UNREADABLE as error:
        raise ApiError(200, "BadAnswer", f"unreadable {what}: {error}") from None


def shallow(body: bytes, deepest: int = DEEPEST) -> bytes:
    """The same JSON with null in place of whatever is nested deeper than any supported object.

    Some kinds let users store arbitrary data, so one object must not make a whole list unreadable.
    """
    pieces = []
    kept, depth = 0, 0
    for token in _TOKENS.finditer(body):
        mark = token[0]
        if mark in (b"{", b"["):
            depth += 1
            if depth == deepest + 1:
                pieces += [body[kept : token.start()], b"null"]
        elif mark in (b"}", b"]"):
            if depth == deepest + 1:
                kept = token.end()
            depth -= 1
    return b"".join([*pieces, body[kept:]])


class ObjectReader:
    """Reads the objects of one kind."""

    def __init__(self, kind: Kind, resource: Resource) -> None:
        self._kind = kind
        self._api_version = resource.api_version
        self._decoder: msgspec.json.Decoder[Object] = msgspec.json.Decoder(kind.struct)
        self._events = msgspec.json.Decoder(TypedEnvelope[kind.struct])  # type: ignore[name-defined]

    def read(self, raw: msgspec.Raw) -> Object | Bad:
        """Decode one object: nearly always on the fast path.

        The slow path treats nulls as absent and can say what is wrong.
        """
        try:
            thing = self._decoder.decode(raw)
            check(thing)
        except (*_UNREADABLE, FieldError):
            return self._read_slowly(bytes(raw))
        return thing

    def read_event(self, line: bytes) -> TypedEnvelope[Object] | None:
        """A line of a watch if it contains a good object; for anything else there is `read_envelope`."""
        try:
            event: TypedEnvelope[Object] = self._events.decode(line)
            check(event.object)
        except (*_UNREADABLE, FieldError):
            return None
        return event

    def _read_slowly(self, raw: bytes) -> Object | Bad:
        try:
            body = msgspec.json.decode(shallow(raw))
        except _UNREADABLE as error:
            return Bad("", "", Problem(str(self._kind), "", f"unreadable: {error}"))
        if isinstance(body, dict):
            # Items of a list omit kind and version, which are the list's own.
            body = {**body, "apiVersion": self._api_version, "kind": self._kind.struct.kind}
        try:
            return load(body)
        except ObjectError as error:
            metadata = body.get("metadata") if isinstance(body, dict) else None
            return self._bad(metadata if isinstance(metadata, dict) else {}, error.problem)

    def _bad(self, metadata: dict[str, Any], problem: Problem) -> Bad:
        name, namespace = metadata.get("name"), metadata.get("namespace")
        version = metadata.get("resourceVersion")
        key = name if isinstance(name, str) else ""
        if key and self._kind.namespaced:
            key = f"{namespace if namespace and isinstance(namespace, str) else 'default'}/{key}"
        return Bad(key, version if isinstance(version, str) else "", problem)
