"""Brute force for what surrounds a job: other queues, open nodes, claims, volumes, devices, weights, quotas, owners.

Like `oracle.py`, it knows nothing of how remedies are searched for: each change is as generous as it can be.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

Raw = dict[str, Any]
Change = tuple[str, list[Raw]]
ZONE = "topology.kubernetes.io/zone"
_BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
_TAINTS_OF_STATES = ("unschedulable", "not-ready", "unreachable")
_DEVICES = 8
_FACTOR = 64
# By the name of a change: the kinds of remedies of which one is to be shown where it helps.
KINDS = {
    "queue": ("queue",),
    "uncordoned": ("cordoned nodes",),
    "ready": ("nodes not ready", "cordoned nodes"),
    "volume claims": ("volume claims",),
    "resource claims": ("resource claims",),
    "devices": ("devices",),
    "weight": ("queue weight",),
    "resource quota": ("resource quota",),
    "owner": ("members",),
    "zone": ("nodes",),
}


def object_changes(objects: list[Raw], job: str, pods: list[Raw]) -> Iterator[Change]:
    """`pods`: those of the job."""
    yield from queue_names(objects, job)
    yield "uncordoned", _edited(objects, "Node", _uncordoned)
    yield "ready", _edited(objects, "Node", _ready)
    yield "volume claims", _with_volumes(objects, pods)
    yield "resource claims", _with_claims(objects, pods)
    yield "devices", _edited(objects, "ResourceSlice", _with_devices)
    yield "weight", _with_weights(objects, job)
    yield "resource quota", _edited(objects, "ResourceQuota", _without_limits)
    for least in (4, 3, 2, 1):
        yield "owner", _edited(objects, "Job", partial(_with_minimum, job=job, least=least))
    for node in [one for one in objects if one["kind"] == "Node"]:
        yield "zone", [*objects, *(_elsewhere(node, number, objects) for number in range(4))]


def mended(objects: list[Raw], job: str, pods: list[Raw]) -> list[Raw]:
    """With everything around a job as it should be."""
    if wrong_queue(objects, job):
        objects = next((made for _, made in queue_names(objects, job)), objects)
    objects = _edited(objects, "Node", _ready)
    objects = _with_claims(_with_volumes(objects, pods), pods)
    objects = _edited(objects, "ResourceSlice", _with_devices)
    return _edited(objects, "ResourceQuota", _without_limits)


def _edited(objects: list[Raw], kind: str, edit: Callable[[Raw], object]) -> list[Raw]:
    made = deepcopy(objects)
    for one in made:
        if one["kind"] == kind:
            edit(one)
    return made


# -- queues and owners ------------------------------------------------------------------------------------------------


def _name(job: str) -> str:
    return job.partition("@")[0].partition("/")[2]


def _is_of(one: Raw, job: str) -> bool:
    """Whether an object is the group of a job, or the owner that a group in memory is named after."""
    name = _name(job)
    if one["kind"] == "PodGroup":
        return bool(one["metadata"]["name"] == name)
    return bool(one["kind"] == "Job" and f"job:{one['metadata']['name']}" == name)


def _queue(objects: list[Raw], job: str) -> str:
    for one in objects:
        if _is_of(one, job):
            group = one["kind"] == "PodGroup"
            said = one["spec"].get("queue") if group else one["metadata"]["labels"].get("maniple.dev/queue")
            return str(said or "")
    return ""


def wrong_queue(objects: list[Raw], job: str) -> bool:
    queue, queues = _queue(objects, job), [one for one in objects if one["kind"] == "Queue"]
    names = {one["metadata"]["name"] for one in queues}
    return queue not in names or queue in {one["spec"].get("parentQueue") for one in queues}


def queue_names(objects: list[Raw], job: str) -> Iterator[Change]:
    """In each other queue, where the job's own takes no jobs."""
    if not wrong_queue(objects, job):
        return
    for name in sorted(one["metadata"]["name"] for one in objects if one["kind"] == "Queue"):
        made = deepcopy(objects)
        for one in made:
            if _is_of(one, job) and one["kind"] == "PodGroup":
                one["spec"]["queue"] = name
            elif _is_of(one, job):
                one["metadata"]["labels"]["maniple.dev/queue"] = name
        yield "queue", made


def _with_minimum(owner: Raw, job: str, least: int) -> None:
    if _is_of(owner, job):
        notes = owner["metadata"].setdefault("annotations", {})
        notes["maniple.dev/min-member"] = str(min(int(notes.get("maniple.dev/min-member", least)), least))


def _with_weights(objects: list[Raw], job: str) -> list[Raw]:
    """Of the job's queue and of all that may be above it."""
    parents = {
        one["spec"].get("parentQueue") or one["spec"].get("parent")
        for one in objects
        if one["kind"] == "Queue"
    }
    chosen = {_queue(objects, job), *parents}

    def edit(queue: Raw) -> None:
        if queue["metadata"]["name"] not in chosen:
            return
        for one in queue["spec"].get("resources", {}).values():
            one["overQuotaWeight"] = _FACTOR * max(one.get("overQuotaWeight", 0), 1)
        if "weight" in queue["spec"]:
            queue["spec"]["weight"] *= _FACTOR

    return _edited(objects, "Queue", edit)


def _without_limits(quota: Raw) -> None:
    quota["spec"]["hard"] = {}
    quota["status"]["hard"] = dict.fromkeys(quota["status"]["hard"], "1000000")


# -- nodes ------------------------------------------------------------------------------------------------------------


def _uncordoned(node: Raw) -> None:
    node["spec"].pop("unschedulable", None)
    kept = [
        one
        for one in node["spec"].get("taints", ())
        if one["key"] not in [f"node.kubernetes.io/{name}" for name in _TAINTS_OF_STATES]
    ]
    node["spec"]["taints"] = kept


def _ready(node: Raw) -> None:
    _uncordoned(node)
    node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]


def _elsewhere(node: Raw, number: int, objects: list[Raw]) -> Raw:
    """A node like this one where the volumes are."""
    made = deepcopy(node)
    made["metadata"]["name"] = made["metadata"]["uid"] = f"{node['metadata']['name']}-z{number}"
    made["metadata"]["labels"]["kubernetes.io/hostname"] = made["metadata"]["name"]
    for one in objects:
        if one["kind"] == "PersistentVolume" and ZONE in one["metadata"].get("labels", {}):
            made["metadata"]["labels"][ZONE] = one["metadata"]["labels"][ZONE]
    return made


# -- claims -----------------------------------------------------------------------------------------------------------


def _with_volumes(objects: list[Raw], pods: list[Raw]) -> list[Raw]:
    """Every claim of the pods exists and is bound to a volume that is everywhere."""
    made = deepcopy(objects)
    claims = {one["metadata"]["name"]: one for one in made if one["kind"] == "PersistentVolumeClaim"}
    names = {
        volume["persistentVolumeClaim"]["claimName"]: pod["metadata"]["namespace"]
        for pod in pods
        for volume in pod["spec"].get("volumes", ())
        if "persistentVolumeClaim" in volume
    }
    for name, space in names.items():
        claim = claims.get(name)
        if claim is None:
            metadata: Raw = {"name": name, "namespace": space}
            claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {}}
            claim["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            made.append(claim)
        if claim["spec"].get("volumeName"):
            continue
        claim["metadata"].setdefault("annotations", {}).update(_BOUND)
        claim["spec"]["volumeName"] = f"o-{name}"
        claim["status"] = {"phase": "Bound"}
        reference = {"namespace": space, "name": name, "uid": claim["metadata"].get("uid", "")}
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "claimRef": reference}
        spec["storageClassName"] = claim["spec"].get("storageClassName", "")
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"o-{name}"}}
        made.append({**volume, "spec": spec, "status": {"phase": "Bound"}})
    return made


def _with_claims(objects: list[Raw], pods: list[Raw]) -> list[Raw]:
    """Every ResourceClaim of the pods exists; the new ones are for one device."""
    known = {one["metadata"]["name"] for one in objects if one["kind"] == "ResourceClaim"}
    classes = [one["metadata"]["name"] for one in objects if one["kind"] == "DeviceClass"]
    made = list(objects)
    for pod in pods if classes else ():
        for one in pod["spec"].get("resourceClaims", ()):
            name = one.get("resourceClaimName")
            if name and name not in known:
                known.add(name)
                exactly = {"deviceClassName": classes[0], "allocationMode": "ExactCount", "count": 1}
                spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
                metadata = {"name": name, "namespace": pod["metadata"]["namespace"]}
                body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata}
                made.append({**body, "spec": spec, "status": {}})
    return made


def _with_devices(one: Raw) -> None:
    last = one["spec"]["devices"][-1]
    one["spec"]["devices"] += [{**last, "name": f"o{number}"} for number in range(_DEVICES)]
