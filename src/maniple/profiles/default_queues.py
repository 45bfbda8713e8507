"""The queue of jobs that name none: schedulers create it when they start, so a plan has it, too."""

from collections.abc import Iterable, Mapping
from typing import Any

from maniple.objects.kai import KaiPodGroup, KaiQueue
from maniple.objects.meta import Object, ObjectMeta
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue

DEFAULT_QUEUE = "default"

_Kinds = tuple[type[Object], ...]


def of_volcano(options: Mapping[str, Any], objects: Iterable[Object]) -> Object | None:
    """The default queue, if a job is in it and it is not among the objects."""
    return _missing(options, objects, (VolcanoPodGroup,), (VolcanoQueue,))


def of_maniple(options: Mapping[str, Any], objects: Iterable[Object]) -> Object | None:
    """As Volcano's; a queue of either system will do."""
    return _missing(options, objects, (VolcanoPodGroup, KaiPodGroup), (VolcanoQueue, KaiQueue))


def of_kai(options: Mapping[str, Any], objects: Iterable[Object]) -> Object | None:
    """None: users create the queues."""
    return None


def _missing(
    options: Mapping[str, Any], objects: Iterable[Object], groups: _Kinds, queues: _Kinds
) -> Object | None:
    name = str(options.get("defaultQueue", DEFAULT_QUEUE))
    used = False
    for item in objects:
        if isinstance(item, queues) and item.metadata.name == name:
            return None
        used = used or (isinstance(item, groups) and _queue(item) in ("", name))
    return VolcanoQueue(metadata=ObjectMeta(name=name)) if used else None


def _queue(group: Object) -> str:
    assert isinstance(group, VolcanoPodGroup | KaiPodGroup)
    return group.spec.queue
