"""Typed objects from plain dictionaries, as `kubectl get -o json` prints them or as manifests are written.

The planner passes all its input to `load_all`, which fills in what manifests leave out (see `admission`).
`load` is for objects that have been through an API server, real or embedded. An invalid object costs only
itself: it becomes a `Problem` that names the object and the field, and the rest is loaded as if it did not
exist. What comes out is valid (see `validate`). JSON nulls count as absent.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec

from maniple.objects import core, dra, kai, volcano
from maniple.objects.admission import POLICY_KINDS, Policies, admitted
from maniple.objects.checks import FieldError
from maniple.objects.lease import Lease
from maniple.objects.meta import Object
from maniple.objects.owners import OWNER_KINDS, owner_struct
from maniple.objects.printable import printable
from maniple.objects.validate import check

KINDS: tuple[type[Object], ...] = (
    core.Pod,
    core.Node,
    core.Namespace,
    core.ConfigMap,
    core.PriorityClass,
    core.RuntimeClass,
    core.LimitRange,
    core.PersistentVolumeClaim,
    core.PersistentVolume,
    core.StorageClass,
    core.CSINode,
    core.CSIDriver,
    core.CSIStorageCapacity,
    core.ResourceQuota,
    core.PodDisruptionBudget,
    core.Service,
    core.ReplicationController,
    core.ReplicaSet,
    core.StatefulSet,
    dra.ResourceClaim,
    dra.ResourceClaimTemplate,
    dra.ResourceSlice,
    dra.DeviceClass,
    volcano.VolcanoQueue,
    volcano.VolcanoPodGroup,
    volcano.HyperNode,
    volcano.Numatopology,
    volcano.NodeShard,
    kai.KaiQueue,
    kai.KaiPodGroup,
    kai.BindRequest,
    kai.Topology,
    kai.SchedulingShard,
    kai.KaiConfig,
    Lease,
    *OWNER_KINDS,
)

_BY_NAME = {(kind.api_group, kind.kind): kind for kind in KINDS}
# Groups in which older versions have another shape; in other groups every version reads the same.
_VERSIONS = {"resource.k8s.io": ("v1", "v1beta1", "v1beta2")}
# Deeper than any supported object, and far from Python's own limit.
_DEEPEST = 64
_LONGEST = 1000  # characters of what a problem says; it may quote any part of an object

_NO_POLICIES = Policies()
# An object of a supported kind, not yet decoded, and where it was found.
_Manifest = tuple[Mapping[str, Any], type[Object], str]
_REPORT = re.compile(r"(?P<message>.*?)(?: - at (?P<key>`key` in )?`\$\.?(?P<path>.*)`)?", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>\w+)`")
_WRONG_TYPE = re.compile(r"Expected .*, got `(?P<got>\w+)`")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_TYPE_NAMES = {str: "str", int: "int", float: "float", bool: "bool", list: "array", dict: "object"}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with one object; as text it is one line."""

    object: str
    field: str
    message: str

    def __post_init__(self) -> None:
        for name in ("object", "field", "message"):
            text = getattr(self, name)
            if len(text) > _LONGEST:
                object.__setattr__(self, name, f"{text[:_LONGEST]}...")

    def __str__(self) -> str:
        return printable(": ".join(filter(None, (self.object, self.field, self.message))))


class ObjectError(Exception):
    """An object cannot be loaded; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass(slots=True)
class Loaded:
    """The result of a batch; `ignored` counts the objects of unsupported kinds, by "kind.group"."""

    objects: list[Object] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    ignored: dict[str, int] = field(default_factory=dict)


def load(raw: Mapping[str, Any]) -> Object:
    """Load one object; raises `ObjectError` if its kind is unknown or anything in it is wrong."""
    if not isinstance(raw, Mapping):
        raise ObjectError(Problem("object", "", "not an object"))
    api_version, kind = raw.get("apiVersion"), raw.get("kind")
    problem = _kind_problem(api_version, kind, "object")
    if problem is not None:
        raise ObjectError(problem)
    struct = _struct(str(api_version), str(kind))
    if struct is None:
        raise ObjectError(Problem(_title(raw, str(kind)), "kind", f"unknown kind in {api_version}"))
    return _build(raw, struct)


def load_all(raws: Iterable[object]) -> tuple[list[Object], list[Problem]]:
    """Every valid object, and a problem for every other; lists are flattened.

    Unsupported kinds are skipped; `load_batch` counts them.
    """
    loaded = load_batch(raws)
    return loaded.objects, loaded.problems


def load_batch(raws: Iterable[object]) -> Loaded:
    """As `load_all`, with the count of skipped objects; objects that are already loaded are taken unchanged."""
    loaded = Loaded()
    if isinstance(raws, Mapping):
        raws = (raws,)
    batch = _Batch(loaded.ignored)
    for position, raw in enumerate(raws):
        batch.take(raw, f"item {position}", depth=0)
    policies = Policies(batch.policies)
    for found in batch.found:
        item = _read(found, policies) if isinstance(found, tuple) else found
        if isinstance(item, Problem):
            loaded.problems.append(item)
        else:
            loaded.objects.append(item)
    return loaded


def _read(manifest: _Manifest, policies: Policies) -> Object | Problem:
    raw, struct, place = manifest
    try:
        return _build(admitted(struct, raw, policies), struct, place)
    except ObjectError as error:
        return error.problem


class _Batch:
    """All input in order, lists flattened.

    What admission looks up is decoded at once, the rest when all of that is known.
    """

    def __init__(self, ignored: dict[str, int]) -> None:
        self.found: list[Object | Problem | _Manifest] = []
        self.policies: list[Object] = []
        self._ignored = ignored

    def take(self, raw: object, place: str, depth: int) -> None:
        if isinstance(raw, Object):
            self._add(raw)
            return
        # The check against the abstract class is slow, and nearly everything is a plain dictionary.
        if type(raw) is not dict and not isinstance(raw, Mapping):
            self.found.append(Problem(place, "", "not an object"))
            return
        struct = struct_of(raw)
        if struct is None:
            self._take_other(raw, place, depth)
            return
        if struct in POLICY_KINDS:
            self._add(_read((raw, struct, place), _NO_POLICIES))
        else:
            self.found.append((raw, struct, place))

    def _add(self, item: Object | Problem) -> None:
        self.found.append(item)
        if isinstance(item, Object) and type(item) in POLICY_KINDS:
            self.policies.append(item)

    def _take_other(self, raw: Mapping[str, Any], place: str, depth: int) -> None:
        """A list, an unsupported kind, or something without a kind."""
        api_version, kind = raw.get("apiVersion"), raw.get("kind")
        if isinstance(kind, str) and kind.endswith("List") and "items" in raw:
            self._take_list(raw, kind, place, depth)
            return
        problem = _kind_problem(api_version, kind, place)
        if problem is not None:
            self.found.append(problem)
            return
        group = _group(str(api_version))
        name = f"{kind}.{group}" if group else str(kind)
        self._ignored[name] = self._ignored.get(name, 0) + 1

    def _take_list(self, raw: Mapping[str, Any], kind: str, place: str, depth: int) -> None:
        items = raw["items"]
        if items is None:
            return
        if not isinstance(items, list | tuple):
            self.found.append(Problem(place, "items", "not a list"))
            return
        if depth >= _DEEPEST:
            self.found.append(Problem(place, "items", "lists inside lists, too deep"))
            return
        # The API server leaves kind and version out of the items of a PodList: they are the list's own.
        implied = {"apiVersion": raw.get("apiVersion"), "kind": kind.removesuffix("List")}
        for position, item in enumerate(items):
            if implied["kind"] and isinstance(item, Mapping) and "kind" not in item:
                item = {**implied, **item}  # noqa: PLW2901
            self.take(item, f"{place}, items[{position}]", depth + 1)


def _kind_problem(api_version: object, kind: object, place: str) -> Problem | None:
    for name, value in (("kind", kind), ("apiVersion", api_version)):
        if value is None or value == "":
            return Problem(place, name, "missing")
        if not isinstance(value, str):
            return Problem(place, name, "not a string")
    return None


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def _struct(api_version: str, kind: str) -> type[Object] | None:
    return _own_struct(api_version, kind) or owner_struct(_group(api_version), kind)


@lru_cache(maxsize=1024)
def _own_struct(api_version: str, kind: str) -> type[Object] | None:
    group, _, version = api_version.rpartition("/")
    if group in _VERSIONS and version not in _VERSIONS[group]:
        return None
    return _BY_NAME.get((group, kind))


def _build(raw: Mapping[str, Any], struct: type[Object], place: str = "") -> Object:
    try:
        built = _convert(raw, struct)
        check(built)
    except FieldError as error:
        title = _title(raw, struct.kind, place, namespaced=struct.namespaced)
        raise ObjectError(Problem(title, error.field, error.message)) from None
    return built


def _convert(raw: Mapping[str, Any], struct: type[Object]) -> Object:
    try:
        return msgspec.convert(raw, struct)
    except (msgspec.ValidationError, UnicodeEncodeError):
        # Nulls are rare, so only look for them after a decoding error.
        stripped = _without_nulls(raw, 0)
    try:
        return msgspec.convert(stripped, struct)
    except msgspec.ValidationError as error:
        raise _field_error(str(error), stripped) from None
    except UnicodeEncodeError:
        # Half a surrogate pair, which JSON can express but UTF-8 cannot.
        raise FieldError(_unencodable(stripped, "", 0) or "", "not valid Unicode text") from None


def _without_nulls(value: Any, depth: int) -> Any:
    """The same without keys whose value is null.

    A null in a list stays: no valid object has one.
    """
    if depth > _DEEPEST:
        return value
    if isinstance(value, Mapping):
        return {key: _without_nulls(part, depth + 1) for key, part in value.items() if part is not None}
    if isinstance(value, list | tuple):
        return [_without_nulls(part, depth + 1) for part in value]
    return value


def _unencodable(value: Any, path: str, depth: int) -> str | None:
    """The path of the first text that cannot be written as UTF-8."""
    if isinstance(value, str):
        return path if any("\ud800" <= letter <= "\udfff" for letter in value) else None
    if depth > _DEEPEST or not isinstance(value, Mapping | list):
        return None
    parts = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, part in parts:
        inner = f"{path}[{key}]" if isinstance(value, list) else f"{path}.{key}".lstrip(".")
        found = _unencodable(key, inner, depth + 1) or _unencodable(part, inner, depth + 1)
        if found is not None:
            return found
    return None


def _field_error(report: str, raw: Any) -> FieldError:
    """A decoder's report, such as "Expected `int`, got `str` - at `$.spec.priority`", as a field and a message."""
    match = _REPORT.fullmatch(report)
    path, message = (match["path"] or "", match["message"]) if match else ("", report)
    missing = _MISSING.fullmatch(message)
    if missing is not None:
        return FieldError(".".join(filter(None, (path, missing["name"]))), "missing")
    wrong = _WRONG_TYPE.fullmatch(message)
    if wrong is not None and path.endswith("[...]"):
        path = _entry(raw, path.removesuffix("[...]"), wrong["got"])
    if match is not None and match["key"]:
        message = f"a key is not a string: {message}"
    return FieldError(path, message.replace("`", ""))


def _entry(raw: Any, path: str, type_name: str) -> str:
    """The decoder does not say which entry of a map it means; it is the first one with the type that it names."""
    for name, index in _STEP.findall(path):
        try:
            raw = raw[name] if name else raw[int(index)]
        except (LookupError, TypeError):
            return f"{path}[...]"
    if isinstance(raw, Mapping):
        for key, value in raw.items():
            if _TYPE_NAMES.get(type(value)) == type_name:
                return f"{path}.{key}"
    return f"{path}[...]"


def title_of(raw: Mapping[str, Any]) -> str:
    """How messages name an object: kind, namespace and name, as far as it has them."""
    kind, metadata = struct_of(raw), raw.get("metadata")
    if kind is not None:
        namespaced = kind.namespaced
    else:
        namespaced = isinstance(metadata, Mapping) and bool(metadata.get("namespace"))
    return _title(raw, str(raw.get("kind") or "object"), namespaced=namespaced)


def struct_of(raw: Mapping[str, Any]) -> type[Object] | None:
    """The struct that an object is decoded to; None for kinds that are not supported."""
    api_version, kind = raw.get("apiVersion"), raw.get("kind")
    return _struct(api_version, kind) if type(api_version) is str and type(kind) is str else None


def _title(raw: Mapping[str, Any], kind: str, place: str = "", *, namespaced: bool = True) -> str:
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(name, str) or not name:
        return f"{kind} ({place})" if place else kind
    namespace = metadata.get("namespace") if isinstance(metadata, Mapping) else None
    if not namespaced or (namespace is not None and not isinstance(namespace, str)):
        return f"{kind} {name}"
    return f"{kind} {namespace or 'default'}/{name}"
