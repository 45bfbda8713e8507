"""The cluster after a plan has been carried out: a pure function from objects to objects.

For `maniple replay`, which continues from there. Everything that was decided happens at once and nothing else
does: placed pods run, evicted ones are pending again (as if their controllers had recreated them),
terminating ones are gone. What the scheduler records in the cluster is written: the phase or the timestamps
of groups, devices of claims. The input objects are not changed.

A simulation with its own controllers (`tests/soak`) says when evicted pods begin to terminate, and removes
them itself.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from maniple.cluster.facts import job_key
from maniple.objects.generated import with_generated
from maniple.objects.lists import flattened
from maniple.objects.load import title_of
from maniple.planner import Plan
from maniple.profiles.maniple import KAI, VOLCANO

Raw = Mapping[str, Any]

GPU_GROUP = "runai-gpu-group"
LAST_START = "kai.scheduler/last-start-timestamp"
STALE_SINCE = "kai.scheduler/stale-podgroup-timestamp"
_PLACED = frozenset({"Binding", "Bound"})  # not what a gang holds that waits for the rest
_VOLCANO = "scheduling.volcano.sh/"


def carried_out(objects: Iterable[Raw], plan: Plan, *, leaving: str = "") -> list[dict[str, Any]]:
    """The objects after the plan's effects.

    `leaving`: evicted pods terminate from this time on, instead of being pending again at once.
    """
    evicted = frozenset(plan.evictions)
    found = []
    refused = frozenset(problem.object for problem in plan.problems)
    for item in with_generated([*flattened(objects)]):
        if _is_refused(item, refused):
            found.append(dict(item))
            continue
        match item.get("kind"):
            case "Pod":
                after = _leaving(item, plan, evicted, leaving) if leaving else _pod(item, plan, evicted)
            case "PodGroup":
                after = _group(item, plan)
            case "BindRequest":
                after = None  # finished
            case "ResourceClaim":
                after = _claim(item, plan, frozenset() if leaving else evicted)
            case _:
                after = dict(item)
        if after is not None:
            found.append(after)
    return found


def _is_refused(item: Raw, refused: frozenset[str]) -> bool:
    """Whether an object is invalid: nothing was decided about it, and any part of it may have any shape."""
    metadata = item.get("metadata")
    nameless = not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str)
    return nameless or (bool(refused) and title_of(item) in refused)


def key_of(item: Raw) -> str:
    metadata = item.get("metadata") or {}
    return f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"


def _pod(pod: Raw, plan: Plan, evicted: frozenset[str]) -> dict[str, Any] | None:
    key = key_of(pod)
    if key in evicted:
        return _waiting(pod)
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return None
    task = plan.tasks.get(key)
    if task is None or task.status not in _PLACED or task.node is None:
        return dict(pod)
    metadata, labels = _metadata(pod)
    labels |= _group_labels(task.gpu_groups)
    if key in plan.annotations:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **plan.annotations[key]}
    spec = {**(pod.get("spec") or {}), "nodeName": task.node}
    return {**pod, "metadata": {**metadata, "labels": labels}, "spec": spec, "status": {"phase": "Running"}}


def _leaving(pod: Raw, plan: Plan, evicted: frozenset[str], since: str) -> dict[str, Any] | None:
    """As `_pod`, if pods take time to terminate."""
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return dict(pod)
    after = _pod(pod, plan, frozenset())
    if after is None or key_of(pod) not in evicted:
        return after
    return {**after, "metadata": {**after["metadata"], "deletionTimestamp": since}}


def _waiting(pod: Raw) -> dict[str, Any]:
    metadata, labels = _metadata(pod)
    metadata.pop("deletionTimestamp", None)
    spec = {name: value for name, value in (pod.get("spec") or {}).items() if name != "nodeName"}
    return {**pod, "metadata": {**metadata, "labels": labels}, "spec": spec, "status": {"phase": "Pending"}}


def _metadata(pod: Raw) -> tuple[dict[str, Any], dict[str, str]]:
    """Copies of a pod's metadata and of its labels, without the devices that it shared."""
    metadata = dict(pod.get("metadata") or {})
    labels = metadata.get("labels") or {}
    return metadata, {name: value for name, value in labels.items() if name.partition("/")[0] != GPU_GROUP}


def _group_labels(groups: tuple[str, ...]) -> dict[str, str]:
    """As KAI's binder writes them: one device has the plain label, several have one each."""
    if len(groups) == 1:
        return {GPU_GROUP: groups[0]}
    return {f"{GPU_GROUP}/{group}": group for group in groups}


def _group(group: Raw, plan: Plan) -> dict[str, Any]:
    volcano = str(group.get("apiVersion")).startswith(_VOLCANO)
    key = key_of(group)
    if key not in plan.jobs:
        # Its key if the other system has a job of that name.
        key = job_key(key, VOLCANO if volcano else KAI)
    if volcano:
        if key not in plan.jobs:
            return dict(group)
        return {**group, "status": {**(group.get("status") or {}), "phase": plan.jobs[key].phase}}
    written = {LAST_START: plan.started.get(key), STALE_SINCE: plan.stale_since.get(key)}
    metadata = dict(group.get("metadata") or {})
    annotations = dict(metadata.get("annotations") or {})
    if key in plan.stale_since:
        annotations.pop(STALE_SINCE, None)
    annotations |= {name: _text(moment) for name, moment in written.items() if moment is not None}
    return {**group, "metadata": {**metadata, "annotations": annotations}}


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _claim(claim: Raw, plan: Plan, evicted: frozenset[str]) -> dict[str, Any]:
    key = key_of(claim)
    namespace = key.partition("/")[0]
    status = dict(claim.get("status") or {})
    users = [
        one for one in status.get("reservedFor") or () if f"{namespace}/{one.get('name')}" not in evicted
    ]
    change = plan.claims.get(key, {})
    users += change.get("reservedFor", [])
    if not users:
        status.pop("allocation", None)
    if "allocation" in change:
        status["allocation"] = change["allocation"]
    return {**claim, "status": {**status, "reservedFor": users}}
