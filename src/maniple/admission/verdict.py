"""A request for admission as the rules read it, and what comes of it."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from maniple.objects.load import Problem
from maniple.objects.meta import Object
from maniple.objects.printable import printable

Raw = Mapping[str, Any]
Patch = tuple[dict[str, Any], ...]

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"
QUEUE, NAMESPACE = "queue", "namespace"
_MOST_FINDINGS = 5
# The API server drops warnings beyond 4096 characters in all, and cuts one at 256; clients print each on a line.
_LONGEST_WARNING = 256


class BadRequestError(Exception):
    """The body is not an AdmissionReview that can be answered."""


@dataclass(frozen=True, slots=True)
class Request:
    """The part of an AdmissionReview that decides; `object` is None on DELETE, `old` on CREATE."""

    uid: str
    operation: str
    namespace: str
    object: Raw | None
    old: Raw | None

    @property
    def subject(self) -> Raw | None:
        return self.old if self.operation == DELETE else self.object


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about one field; `refuses` unless it is only worth a warning."""

    field: str
    message: str
    refuses: bool = True


@dataclass(frozen=True, slots=True)
class Lookup:
    """A name that the rules looked for and did not find: `what` is a queue or a namespace."""

    what: str
    name: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """`missing`: names to read from the API server before a refusal is final, because caches are a moment behind."""

    allowed: bool = True
    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: Patch = ()
    missing: tuple[Lookup, ...] = ()
    kind: type[Object] | None = None


def read_request(body: object) -> Request:
    """The request of an AdmissionReview; raises `BadRequestError`."""
    if not isinstance(body, Mapping) or body.get("kind") != "AdmissionReview":
        raise BadRequestError("not an AdmissionReview")
    if body.get("apiVersion") != "admission.k8s.io/v1":
        raise BadRequestError("only admission.k8s.io/v1 is supported")
    request = body.get("request")
    if not isinstance(request, Mapping):
        raise BadRequestError("request: missing")
    uid, operation = request.get("uid"), request.get("operation")
    if not isinstance(uid, str) or not uid:
        raise BadRequestError("request.uid: missing")
    if not isinstance(operation, str):
        raise BadRequestError("request.operation: missing")
    namespace, name = (_text(request.get(one)) for one in ("namespace", "name"))
    made, old = (_completed(request.get(one), namespace, name) for one in ("object", "oldObject"))
    return Request(uid, operation, namespace, made, old)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _completed(raw: object, namespace: str, name: str) -> Raw | None:
    """The object with its namespace and name: on creation either may only be in the request, or still to be made."""
    if not isinstance(raw, Mapping):
        return None
    metadata = raw.get("metadata")
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, Mapping):
        return raw
    known = {
        "name": metadata.get("name") or name or metadata.get("generateName") or "",
        "namespace": metadata.get("namespace") or namespace,
    }
    return {**raw, "metadata": {**metadata, **{key: value for key, value in known.items() if value}}}


def judged(title: str, findings: list[Finding]) -> tuple[bool, str, tuple[str, ...]]:
    """Whether an object is allowed, what is said if not, and the warnings."""
    wrong = [one for one in findings if one.refuses]
    warnings = tuple(_said(title, one)[:_LONGEST_WARNING] for one in findings if not one.refuses)
    shown = [_said("", one) for one in wrong[:_MOST_FINDINGS]]
    if len(wrong) > _MOST_FINDINGS:
        shown.append(f"and {len(wrong) - _MOST_FINDINGS:,} more problems")
    message = printable(f"{title}: {'; '.join(shown)}") if wrong else ""
    return not wrong, message, warnings[:_MOST_FINDINGS]


def _said(title: str, finding: Finding) -> str:
    return str(Problem(title, finding.field, finding.message))


def answer(uid: str, verdict: Verdict) -> dict[str, Any]:
    """The AdmissionReview to send back."""
    response: dict[str, Any] = {"uid": uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        response["status"] = {"code": 403, "reason": "Forbidden", "message": verdict.message}
    if verdict.warnings:
        response["warnings"] = [*verdict.warnings]
    if verdict.patch:
        encoded = base64.b64encode(msgspec.json.encode([*verdict.patch])).decode("ascii")
        response |= {"patchType": "JSONPatch", "patch": encoded}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
