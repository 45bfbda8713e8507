"""Short ways to write requests for admission, and a world to review them in."""

from typing import Any

from maniple.admission.review import review
from maniple.admission.verdict import Verdict, read_request
from maniple.admission.world import Settings, World
from maniple.objects.load import load
from maniple.planner import Planner

Raw = dict[str, Any]
VOLCANO, KAI = "scheduling.volcano.sh/v1beta1", "scheduling.run.ai"
TEAM = "team"


def manifest(api: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Raw:
    metadata: Raw = {"name": name, **({"namespace": namespace} if namespace else {})}
    for field in ("labels", "annotations"):
        if field in fields:
            metadata[field] = fields.pop(field)
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def queue(
    name: str, parent: str = "", *, annotations: Raw | None = None, state: str = "", **spec: Any
) -> Raw:
    above = {"parent": parent} if parent else {}
    return manifest(
        VOLCANO,
        "Queue",
        name,
        annotations=annotations or {},
        spec={**above, **spec},
        status={"state": state} if state else {},
    )


def kai_queue(name: str, parent: str = "", gpu: float = -1, **resource: Any) -> Raw:
    every = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"gpu": {**every, "quota": gpu, **resource}, "cpu": every, "memory": every}
    return manifest(
        f"{KAI}/v2",
        "Queue",
        name,
        spec={**({"parentQueue": parent} if parent else {}), "resources": resources},
    )


def group(name: str, queue: str = "", namespace: str = TEAM, **spec: Any) -> Raw:
    named = {"queue": queue} if queue else {}
    return manifest(VOLCANO, "PodGroup", name, namespace, spec={"minMember": 1, **named, **spec})


def kai_group(name: str, queue: str = "", namespace: str = TEAM, **spec: Any) -> Raw:
    named = {"queue": queue} if queue else {}
    return manifest(f"{KAI}/v2alpha2", "PodGroup", name, namespace, spec={"minMember": 1, **named, **spec})


def pod(name: str, namespace: str = TEAM, scheduler: str = "maniple", **fields: Any) -> Raw:
    metadata = {key: fields.pop(key) for key in ("labels", "annotations") if key in fields}
    spec = {
        "schedulerName": scheduler,
        "containers": [{"name": "main", "image": "work:1", "resources": {}}],
        **fields,
    }
    return manifest("v1", "Pod", name, namespace, spec=spec, **metadata)


def namespace(name: str = TEAM, **metadata: Any) -> Raw:
    return manifest("v1", "Namespace", name, **metadata)


def priority_class(name: str, **fields: Any) -> Raw:
    return manifest("scheduling.k8s.io/v1", "PriorityClass", name, value=10, **fields)


def world(*raws: Raw, profile: str = "maniple", **options: Any) -> World:
    """A world of these objects, and of the namespace `team` unless they have one."""
    made = World(Planner(profile=profile, options=options or None))
    for raw in (namespace(), *raws):
        made.apply(load(raw))
    return made


def envelope(raw: Raw | None, operation: str = "CREATE", old: Raw | None = None) -> Raw:
    subject = raw if raw is not None else old
    assert subject is not None
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "operation": operation,
            "namespace": subject["metadata"].get("namespace", ""),
            "name": subject["metadata"].get("name", ""),
            "object": raw,
            "oldObject": old,
        },
    }


def reviewed(
    raw: Raw | None,
    there: World,
    operation: str = "CREATE",
    old: Raw | None = None,
    *,
    mutating: bool = False,
    **settings: Any,
) -> Verdict:
    asked = read_request(envelope(raw, operation, old))
    return review(asked, there, Settings(**settings), mutating=mutating)


def refusal(raw: Raw, there: World | None = None, **arguments: Any) -> str:
    """Why an object is refused; it has to be."""
    verdict = reviewed(raw, there or world(), **arguments)
    assert not verdict.allowed
    return verdict.message


def passes(raw: Raw, there: World | None = None, **arguments: Any) -> tuple[str, ...]:
    """The warnings about an object, which has to be allowed."""
    verdict = reviewed(raw, there or world(), **arguments)
    assert verdict.allowed, verdict.message
    return verdict.warnings
