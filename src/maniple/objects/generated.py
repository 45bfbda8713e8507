"""Objects that Kubernetes' controllers create for pods: claims from templates, and of ephemeral volumes. Pods of a
PodGroup of Kubernetes' own share a claim if the group has the same entry as they have.

A plan gets them from `with_generated`; the fake controllers of the embedded cluster build theirs with the
same functions. Objects are plain, so that they go through admission like any other.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Raw = Mapping[str, Any]

_FINISHED = ("Succeeded", "Failed")
_NATIVE = "scheduling.k8s.io/"


def with_generated(raws: Sequence[Any]) -> Sequence[Any]:
    """The objects, with the claims that their pods need and that have not been created yet."""
    pods = [place for place, raw in enumerate(raws) if type(raw) is dict and raw.get("kind") == "Pod"]
    # Most pods have neither claims nor volumes, and there may be many of them.
    some = [place for place in pods if _states_needs(raws[place].get("spec"))]
    needy = [place for place in some if missing_claims(raws[place]) or own_volumes(raws[place])]
    if not needy:
        return raws
    made = list(raws)
    templates, claims, volume_claims = (
        _by_key(raws, kind) for kind in ("ResourceClaimTemplate", "ResourceClaim", "PersistentVolumeClaim")
    )
    groups = {_key(raw): raw for raw in raws if isinstance(raw, Mapping) and is_native_group(raw)}
    for place in needy:
        pod, namespace = raws[place], _namespace(raws[place])
        statuses = []
        for name, template in missing_claims(pod):
            found = templates.get(f"{namespace}/{template}")
            owner = sharing_group(pod, name, template, groups.get) or pod
            claim = resource_claim(found, owner, name) if found is not None else None
            if claim is None:
                continue
            statuses.append({"name": name, "resourceClaimName": claim["metadata"]["name"]})
            if _key(claim) not in claims:
                claims[_key(claim)] = claim
                made.append(claim)
        if statuses:
            made[place] = _with_statuses(pod, statuses)
        for name, source in own_volumes(pod):
            volume = volume_claim(source, pod, name)
            if _key(volume) not in volume_claims:
                made.append(volume)
    return made


def _states_needs(spec: Any) -> bool:
    return type(spec) is not dict or "resourceClaims" in spec or "volumes" in spec


# -- claims for devices ----------------------------------------------------------------------------------------------


def missing_claims(pod: Raw) -> list[tuple[str, str]]:
    """The claims of a pod that are still to be created: the pod's name for it, and the template."""
    spec, status = pod.get("spec"), pod.get("status")
    asked = spec.get("resourceClaims") if isinstance(spec, Mapping) else None
    if not asked or not isinstance(asked, list | tuple):
        return []
    status = status if isinstance(status, Mapping) else {}
    if status.get("phase") in _FINISHED:
        return []
    known = {str(one.get("name")) for one in _mappings(status.get("resourceClaimStatuses"))}
    return [
        (str(one.get("name")), str(one["resourceClaimTemplateName"]))
        for one in _mappings(asked)
        if one.get("resourceClaimTemplateName") and str(one.get("name")) not in known
    ]


def is_native_group(raw: Raw) -> bool:
    """Whether it is a PodGroup of Kubernetes' own."""
    return raw.get("kind") == "PodGroup" and str(raw.get("apiVersion")).startswith(_NATIVE)


def sharing_group(
    pod: Raw, name: str, template: str, find: Callable[[str], Raw | None]
) -> Mapping[str, Any] | None:
    """The PodGroup of Kubernetes' own that has an equal entry, so that its pods share one claim; found by its key."""
    spec = pod.get("spec")
    named = spec.get("schedulingGroup") if isinstance(spec, Mapping) else None
    key = named.get("podGroupName") if isinstance(named, Mapping) else None
    group = find(f"{_namespace(pod)}/{key}") if key else None
    own = group.get("spec") if group is not None else None
    entries = _mappings(own.get("resourceClaims")) if isinstance(own, Mapping) else []
    same = [
        one for one in entries if (one.get("name"), one.get("resourceClaimTemplateName")) == (name, template)
    ]
    return group if same else None


def resource_claim(template: Raw, owner: Raw, name: str) -> dict[str, Any] | None:
    """The claim that a pod, or the pods of a PodGroup, call by this name; None if the template is malformed."""
    inner = template.get("spec")
    if not isinstance(inner, Mapping):
        return None
    return {
        "apiVersion": template.get("apiVersion"),
        "kind": "ResourceClaim",
        "metadata": _metadata(inner, owner, name),
        "spec": inner.get("spec"),
    }


def _with_statuses(pod: Raw, made: list[dict[str, str]]) -> dict[str, Any]:
    status = pod.get("status") or {}
    known = status.get("resourceClaimStatuses") or []
    return {**pod, "status": {**status, "resourceClaimStatuses": [*known, *made]}}


# -- claims for ephemeral volumes ------------------------------------------------------------------------------------


def own_volumes(pod: Raw) -> list[tuple[str, Raw]]:
    """The ephemeral volumes of a pod: the name, and the template of the claim."""
    spec = pod.get("spec")
    volumes = spec.get("volumes") if isinstance(spec, Mapping) else None
    found = []
    for one in _mappings(volumes):
        source = one.get("ephemeral")
        template = source.get("volumeClaimTemplate") if isinstance(source, Mapping) else None
        if isinstance(template, Mapping):
            found.append((str(one.get("name")), template))
    return found


def volume_claim(template: Raw, pod: Raw, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": _metadata(template, pod, name),
        "spec": template.get("spec"),
    }


# -- both ------------------------------------------------------------------------------------------------------------


def _metadata(template: Raw, of: Raw, name: str) -> dict[str, Any]:
    """Labels and annotations are the template's; the pod, or the PodGroup, is the owner."""
    stated, mine = template.get("metadata"), of.get("metadata")
    mine = mine if isinstance(mine, Mapping) else {}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": mine.get("name"), "controller": True}
    if is_native_group(of):
        owner |= {"apiVersion": of["apiVersion"], "kind": of["kind"]}
    if mine.get("uid"):
        owner["uid"] = mine["uid"]
    return {
        **(stated if isinstance(stated, Mapping) else {}),
        "name": f"{mine.get('name')}-{name}",
        "namespace": _namespace(of),
        "ownerReferences": [owner],
    }


def _by_key(raws: Iterable[Any], kind: str) -> dict[str, Raw]:
    found = (raw for raw in raws if isinstance(raw, Mapping) and raw.get("kind") == kind)
    return {_key(raw): raw for raw in found}


def _key(raw: Raw) -> str:
    metadata = raw.get("metadata")
    return f"{_namespace(raw)}/{metadata.get('name') if isinstance(metadata, Mapping) else None}"


def _namespace(raw: Raw) -> str:
    metadata = raw.get("metadata")
    return str((metadata.get("namespace") if isinstance(metadata, Mapping) else None) or "default")


def _mappings(value: Any) -> list[Raw]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list | tuple) else []
