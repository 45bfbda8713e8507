"""What the webhook fills in, where a namespace says so: the schedulerName of pods, the queue of groups and pods.

Nothing else is changed, nothing that an object states itself, and nothing after its creation.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from maniple.admission.naming import Missing
from maniple.admission.verdict import NAMESPACE, Lookup, Patch, Raw
from maniple.admission.world import World
from maniple.objects.core import Namespace, Pod
from maniple.objects.defaults import DEFAULT_SCHEDULER
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoPodGroup
from maniple.profiles import kai, volcano
from maniple.workloads.wishes import QUEUE as QUEUE_KEYS

SCHEDULER_LABEL = "maniple.dev/scheduler"
# Volcano's definition of groups, and clients made for it, write this where no queue was named.
_WRITTEN_BY_DEFAULT = "default"


def patch_of(kind: type[Object], raw: Raw, namespace: str, world: World, missing: Missing) -> Patch:
    """The changes to a new object, as operations of a JSON patch."""
    home = world.namespace(namespace)
    if home is None:
        missing.add(Lookup(NAMESPACE, namespace))
        return ()
    if kind is Pod:
        return tuple(_pod_changes(raw, home, world))
    if kind in world.group_kinds:
        return tuple(_group_changes(kind, raw, home))
    return ()


def namespace_queue(namespace: Namespace) -> str:
    """The queue of jobs of a namespace that name none: a label counts before an annotation."""
    meta = namespace.metadata
    found = (meta.labels.get(key) or meta.annotations.get(key) for key in QUEUE_KEYS)
    return next(filter(None, found), "")


def _group_changes(kind: type[Object], raw: Raw, home: Namespace) -> Iterator[dict[str, Any]]:
    queue, spec = namespace_queue(home), raw.get("spec")
    stated = spec.get("queue") if isinstance(spec, Mapping) else None
    unset = ("", None, _WRITTEN_BY_DEFAULT) if kind is VolcanoPodGroup else ("", None)
    if not queue or stated == queue or stated not in unset:
        return
    if not isinstance(spec, Mapping):
        if spec is None:
            yield {"op": "add", "path": "/spec", "value": {"queue": queue}}
        return
    yield {"op": "add", "path": "/spec/queue", "value": queue}


def _pod_changes(raw: Raw, home: Namespace, world: World) -> Iterator[dict[str, Any]]:
    spec, metadata = raw.get("spec"), raw.get("metadata")
    if not isinstance(spec, Mapping) or not isinstance(metadata, Mapping):
        return
    name = spec.get("schedulerName") or DEFAULT_SCHEDULER
    wanted = home.metadata.labels.get(SCHEDULER_LABEL, "")
    if name == DEFAULT_SCHEDULER and wanted in world.dialect.scheduler_names and _is_free(spec, metadata):
        yield {"op": "add", "path": "/spec/schedulerName", "value": wanted}
        name = wanted
    queue = namespace_queue(home)
    if queue and name in world.dialect.scheduler_names and not _names_queue_or_group(metadata):
        yield from _with_entry(metadata, *world.queue_key, queue)


def _is_free(spec: Raw, metadata: Raw) -> bool:
    """Whether a scheduler places the pod: not one of a DaemonSet, nor one that is on its node already."""
    owners = metadata.get("ownerReferences")
    kinds = (
        [one.get("kind") for one in owners if isinstance(one, Mapping)] if isinstance(owners, list) else []
    )
    return not spec.get("nodeName") and "DaemonSet" not in kinds


def _names_queue_or_group(metadata: Raw) -> bool:
    keys = (*QUEUE_KEYS, volcano.GROUP_NAME, kai.GROUP_NAME)
    places = [
        one for one in (metadata.get("labels"), metadata.get("annotations")) if isinstance(one, Mapping)
    ]
    return any(place.get(key) for place in places for key in keys)


def _with_entry(metadata: Raw, place: str, key: str, value: str) -> Iterator[dict[str, Any]]:
    """One more label or annotation."""
    if not isinstance(metadata.get(place), Mapping):
        yield {"op": "add", "path": f"/metadata/{place}", "value": {key: value}}
        return
    escaped = key.replace("~", "~0").replace("/", "~1")
    yield {"op": "add", "path": f"/metadata/{place}/{escaped}", "value": value}
