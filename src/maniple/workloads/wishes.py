"""What labels and annotations say about a group, whatever its kind: queue, priority, minimum, preemption, topology.

Objects are asked in this order: the owner that decides, the owners below it, the pod, the owners above. On each object
a label counts before an annotation, and Maniple's own key before KAI's, Volcano's and Kueue's. Only then do the kind's
own fields count (`spec.runPolicy.schedulingPolicy` and the like), then the namespace, and last the profile's default.
So one key is enough to change what a kind would ask for, and a namespace has a say where nothing else has.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from maniple.workloads.fields import MOST, fail, section, shown
from maniple.workloads.model import Chain, DomainWish, Raw

QUEUE = (
    "maniple.dev/queue",
    "kai.scheduler/queue",
    "scheduling.volcano.sh/queue-name",
    "kueue.x-k8s.io/queue-name",
)
MINIMUM = (
    "maniple.dev/min-member",
    "kai.scheduler/batch-min-member",
    "scheduling.volcano.sh/group-min-member",
)
PRIORITY = ("maniple.dev/priority-class", "priorityClassName", "kueue.x-k8s.io/priority-class")
PREEMPTIBLE = ("maniple.dev/preemptible", "kai.scheduler/preemptibility", "volcano.sh/preemptable")
TOPOLOGY = "kai.scheduler/topology"
REQUIRED = "kai.scheduler/topology-required-placement"
PREFERRED = "kai.scheduler/topology-preferred-placement"

KEYS = frozenset((*QUEUE, *MINIMUM, *PRIORITY, *PREEMPTIBLE, TOPOLOGY, REQUIRED, PREFERRED))

T = TypeVar("T")
Read = Callable[[Raw, tuple[str, ...], Any], T]
Said = tuple[Raw, Raw, Raw]  # an object, its labels and its annotations

_LABELS, _ANNOTATIONS = ("metadata", "labels"), ("metadata", "annotations")
_PREEMPTIBLE_WORDS = {
    "true": True,
    "preemptible": True,
    "false": False,
    "non-preemptible": False,
}


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was said; empty or None where nothing was. `namespace_queue` counts after the kind's own fields."""

    queue: str = ""
    namespace_queue: str = ""
    priority_class: str = ""
    minimum: int | None = None
    preemptible: bool | None = None
    domain: DomainWish | None = None


def wishes(chain: Chain) -> Wishes:
    """What labels and annotations of a pod, its owners and its namespace say."""
    said = _said(chain)
    return Wishes(
        queue=_first(said, QUEUE, _text) or "",
        namespace_queue=_first(_said((chain.namespace,)), QUEUE, _text) or "",
        priority_class=_first(said, PRIORITY, _text) or "",
        minimum=_first(said, MINIMUM, _count),
        preemptible=_first(said, PREEMPTIBLE, _preemptible),
        domain=_domain(said),
    )


def said_minimum(*objects: Raw) -> int | None:
    """The minimum that the first of these objects says that says one."""
    return _first(_said(objects), MINIMUM, _count)


def domain_wish(*objects: Raw) -> DomainWish | None:
    """The topology that annotations ask for; the first object that names any part of it counts."""
    return _domain(_said(objects))


def _said(objects: Iterable[Raw]) -> list[Said]:
    """The objects that have any of the keys; most have none."""
    found = [(one, section(one, _LABELS), section(one, _ANNOTATIONS)) for one in objects]
    return [said for said in found if not (KEYS.isdisjoint(said[1]) and KEYS.isdisjoint(said[2]))]


def _domain(said: Iterable[Said]) -> DomainWish | None:
    for one in said:
        wish = DomainWish(
            topology=_first((one,), (TOPOLOGY,), _text) or "",
            required=_first((one,), (REQUIRED,), _text) or "",
            preferred=_first((one,), (PREFERRED,), _text) or "",
        )
        if wish.topology or wish.required or wish.preferred:
            return wish
    return None


def _first(said: Iterable[Said], keys: Iterable[str], read: Read[T]) -> T | None:
    for one, labels, annotations in said:
        for key in keys:
            for place, values in ((_LABELS, labels), (_ANNOTATIONS, annotations)):
                found = values.get(key)
                if found is not None and found != "":
                    return read(one, (*place, key), found)
    return None


def _text(owner: Raw, path: tuple[str, ...], found: Any) -> str:
    if not isinstance(found, str):
        raise fail(owner, path, f"must be a string, not {shown(found)}")
    return found


def _count(owner: Raw, path: tuple[str, ...], found: Any) -> int:
    said = _text(owner, path, found)
    if not (said.isascii() and said.isdecimal() and len(said) < len(str(MOST)) and int(said) > 0):
        raise fail(owner, path, f"must be a whole number from 1 to {MOST - 1:,}, not {shown(said)}")
    return int(said)


def _preemptible(owner: Raw, path: tuple[str, ...], found: Any) -> bool:
    said = _text(owner, path, found)
    if said not in _PREEMPTIBLE_WORDS:
        words = ", ".join(_PREEMPTIBLE_WORDS)
        raise fail(owner, path, f"must be one of {words}, not {shown(said)}")
    return _PREEMPTIBLE_WORDS[said]
