"""The key `workloads` of a configuration file: custom resources whose pods are groups. Ours alone.

An entry names a kind, and by JSONPath the fields that say how many of its pods start together; docs/workloads.md has
the keys. A mistake is an error: a gang must not come apart by a slip of the pen.
"""

import re
from collections.abc import Iterable
from typing import Any

from maniple.framework.configuration.document import Place, quoted, suggestion
from maniple.workloads.custom import CustomKind, Pods, Role
from maniple.workloads.jsonpath import JsonPath, JsonPathError, parse
from maniple.workloads.kinds import TABLE

_PODS = ("minimum", "replicas", "template")
_ENTRY = ("apiVersion", "kind", "plural", *_PODS, "roles", "queue", "priorityClass")
_ROLE = ("name", "labels", *_PODS)
_API_VERSION = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?/v[a-z0-9]+")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


def read_workloads(place: Place | None) -> tuple[CustomKind, ...]:
    """The entries, checked."""
    found: dict[tuple[str, str], CustomKind] = {}
    for entry in place.entries("workloads") if place is not None else ():
        custom = _custom(entry)
        key = (custom.api_version.rpartition("/")[0], custom.kind)
        if key in found:
            raise entry.error(f"{custom.title} has an entry already")
        if key in TABLE:
            entry.warn(f"{custom.title} is known without an entry; what this one says counts instead")
        found[key] = custom
    return tuple(found.values())


def written(custom: CustomKind) -> dict[str, Any]:
    """An entry as a file says it, with the default of its plural."""
    given = {
        "apiVersion": custom.api_version,
        "kind": custom.kind,
        "plural": custom.plural,
        **_written_pods(custom.pods),
        "roles": [
            {"name": role.name, "labels": dict(role.labels), **_written_pods(role.pods)}
            for role in custom.roles
        ],
        "queue": custom.queue and custom.queue.text,
        "priorityClass": custom.priority_class and custom.priority_class.text,
    }
    return {key: value for key, value in given.items() if value}


def _written_pods(pods: Pods) -> dict[str, str]:
    paths = {"minimum": pods.minimum, "replicas": pods.replicas, "template": pods.template}
    return {name: path.text for name, path in paths.items() if path is not None}


def _custom(entry: Place) -> CustomKind:
    fields = _fields(entry, "an entry of workloads", _ENTRY, ("apiVersion", "kind"))
    api_version = _text(
        fields["apiVersion"], "the API version", _API_VERSION, "a group and a version: example.com/v1"
    )
    kind = _text(fields["kind"], "the kind", _KIND, "the kind as its objects name it: TrainingRun")
    plural = f"{kind.lower()}s"
    if "plural" in fields:
        plural = _text(fields["plural"], "the plural", _NAME, "the name of its resource: trainingruns")
    roles = _roles(fields["roles"]) if "roles" in fields else ()
    for name in ("replicas", "template") if roles else ():
        if name in fields:
            raise fields[name].error("is said by each of the roles")
    return CustomKind(
        api_version,
        kind,
        plural,
        _pods(entry, fields),
        roles,
        queue=_path(fields, "queue", one=True),
        priority_class=_path(fields, "priorityClass", one=True),
    )


def _roles(place: Place) -> tuple[Role, ...]:
    found: dict[str, Role] = {}
    for entry in place.entries("roles"):
        role = _role(entry)
        if role.name in found:
            raise entry.error(f"there is a role {quoted(role.name)} already")
        found[role.name] = role
    return tuple(found.values())


def _role(entry: Place) -> Role:
    fields = _fields(entry, "a role", _ROLE, ("name", "labels"))
    labels = fields["labels"].fields("labels")
    if not labels:
        raise fields["labels"].error("needs the labels by which its pods are known")
    pods = _pods(entry, fields)
    if pods.minimum is None and pods.replicas is None:
        raise entry.error("a role needs minimum or replicas")
    return Role(
        _text(fields["name"], "the name of a role", _NAME, "lower case letters, digits and -"),
        tuple((key, one.text("a label")) for key, one in labels.items()),
        pods,
    )


def _pods(entry: Place, fields: dict[str, Place]) -> Pods:
    if "template" in fields and "replicas" not in fields:
        raise entry.error("template needs replicas, the number of pods")
    return Pods(_path(fields, "minimum"), _path(fields, "replicas"), _path(fields, "template", one=True))


def _fields(place: Place, what: str, known: Iterable[str], needed: Iterable[str]) -> dict[str, Place]:
    fields = place.fields(what)
    for name, field in fields.items():
        if name not in known:
            hint = suggestion(name, known) or f"; expected one of {', '.join(known)}"
            raise field.error(f"unknown field{hint}")
    for name in needed:
        if name not in fields:
            raise place.error(f"{what} needs {name}")
    return fields


def _text(place: Place, what: str, pattern: re.Pattern[str], expected: str) -> str:
    text = place.text(what)
    if not pattern.fullmatch(text):
        raise place.error(f"must be {expected}")
    return text


def _path(fields: dict[str, Place], name: str, one: bool = False) -> JsonPath | None:
    if name not in fields:
        return None
    try:
        path = parse(fields[name].text("a JSONPath"))
    except JsonPathError as error:
        raise fields[name].error(f"is no JSONPath that is supported: {error}") from None
    if one and not path.finds_one:
        raise fields[name].error("must name one field, without [*]")
    return path


__all__ = ["read_workloads", "written"]
