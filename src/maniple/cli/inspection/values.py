"""Values that can be read and are hardly intended: in one object, without looking at others.

An API server or a webhook would refuse some of them; what the schedulers read without complaint is a warning here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from maniple.framework.configuration.document import quoted, suggestion
from maniple.framework.configuration.durations import nanoseconds
from maniple.objects import core, kai, volcano
from maniple.objects.meta import Object
from maniple.objects.quantity import parse

Raw = Mapping[str, Any]
Found = Iterator[tuple[str, str]]

_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_QUEUE_STATES = ("Open", "Closed", "Closing", "Unknown")
_ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_BYTES = ("memory", "ephemeral-storage", "storage")
_LARGEST_PRIORITY = 1_000_000_000
_UNLIMITED = -1
_SYSTEM = "system-"


def value_remarks(raw: Raw, kind: type[Object]) -> Found:
    """Field and message of every value that is hardly intended."""
    check = _CHECKS.get(kind)
    if check is not None:
        yield from check(raw)


def part(raw: object, *names: str) -> Raw:
    """A mapping inside an object; empty if there is none."""
    for name in names:
        raw = raw.get(name) if type(raw) is dict else None
    return raw if type(raw) is dict else {}


def entries(raw: object, name: str) -> Iterator[tuple[str, Raw]]:
    """The mappings in a list, with their paths."""
    listed = raw.get(name) if type(raw) is dict else None
    for index, item in enumerate(listed if type(listed) is list else ()):
        if type(item) is dict:
            yield f"{name}[{index}]", item


def _number(amount: object) -> Any:
    """A quantity as a number; None if it is none."""
    try:
        return parse(amount) if isinstance(amount, (str, int, float)) else None
    except ValueError:
        return None


def _one_of(field: str, word: object, words: Iterable[str]) -> Found:
    if isinstance(word, str) and word and word not in words:
        hint = suggestion(word, words) or f"; expected one of {', '.join(words)}"
        yield field, f"unknown value {quoted(word)}{hint}"


# -- pods ------------------------------------------------------------------------------------------------------------


def _pod(raw: Raw) -> Found:
    spec = part(raw, "spec")
    for name in ("containers", "initContainers"):
        for path, container in entries(spec, name):
            yield from _requirements(f"spec.{path}.resources", part(container, "resources"))
    yield from _requirements("spec.resources", part(spec, "resources"))
    if not spec.get("containers"):
        yield "spec.containers", "missing; an API server would reject the pod"
    yield from _one_of("spec.preemptionPolicy", spec.get("preemptionPolicy"), _PREEMPTION_POLICIES)
    yield from _one_of("status.phase", part(raw, "status").get("phase"), _PHASES)


def _requirements(field: str, resources: Raw) -> Found:
    requests, limits = part(resources, "requests"), part(resources, "limits")
    for name, amount in requests.items():
        if name in _BYTES:
            yield from _bytes(f"{field}.requests.{name}", amount)
        if name not in limits or amount == limits[name]:
            continue
        asked, most = _number(amount), _number(limits[name])
        if asked is not None and most is not None and asked > most:
            yield f"{field}.requests.{name}", f"{amount} is more than the limit {limits[name]}"
    for name, amount in limits.items():
        if name in _BYTES and name not in requests:
            yield from _bytes(f"{field}.limits.{name}", amount)


def _bytes(field: str, amount: object) -> Found:
    """`512m` of memory is half a byte."""
    number = _number(amount)
    if number is not None and number.denominator != 1:
        digits = str(amount).removesuffix("m")
        meant = f"; did you mean {digits}M or {digits}Mi?" if str(amount).endswith("m") else ""
        yield field, f"{amount} is a fraction of a byte{meant}"


# -- nodes and volumes -----------------------------------------------------------------------------------------------


def _node(raw: Raw) -> Found:
    status = part(raw, "status")
    capacity, allocatable = part(status, "capacity"), part(status, "allocatable")
    if not capacity and not allocatable:
        yield "status.allocatable", "missing: no pod fits a node without resources"
    for name, amount in allocatable.items():
        if name in _BYTES:
            yield from _bytes(f"status.allocatable.{name}", amount)
        offered, most = _number(amount), _number(capacity.get(name))
        if offered is not None and most is not None and offered > most:
            yield f"status.allocatable.{name}", f"{amount} is more than the capacity {capacity[name]}"


def _claim(raw: Raw) -> Found:
    spec = part(raw, "spec")
    yield from _access_modes(spec)
    if not part(spec, "resources", "requests").get("storage"):
        yield "spec.resources.requests.storage", "missing; an API server would reject the claim"


def _volume(raw: Raw) -> Found:
    spec = part(raw, "spec")
    yield from _access_modes(spec)
    if not part(spec, "capacity").get("storage"):
        yield "spec.capacity.storage", "missing; an API server would reject the volume"


def _access_modes(spec: Raw) -> Found:
    modes = spec.get("accessModes")
    for index, mode in enumerate(modes if isinstance(modes, list) else ()):
        yield from _one_of(f"spec.accessModes[{index}]", mode, _ACCESS_MODES)


def _priority_class(raw: Raw) -> Found:
    value, name = raw.get("value"), part(raw, "metadata").get("name")
    if value is None:
        yield "value", "missing, read as 0"
    elif isinstance(value, int) and value > _LARGEST_PRIORITY and not str(name).startswith(_SYSTEM):
        yield "value", f"must be at most {_LARGEST_PRIORITY:,}: higher ones are reserved for {_SYSTEM}*"
    yield from _one_of("preemptionPolicy", raw.get("preemptionPolicy"), _PREEMPTION_POLICIES)


def _budget(raw: Raw) -> Found:
    spec = part(raw, "spec")
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield "spec", "has both minAvailable and maxUnavailable; an API server would reject it"


# -- groups and queues -----------------------------------------------------------------------------------------------


def _not_negative(field: str, amounts: Raw, reads: str) -> Found:
    for name, amount in amounts.items():
        number = _number(amount)
        if number is not None and number < 0:
            yield f"{field}.{name}", f"must not be negative, found {amount}; {reads}"


def _volcano_queue(raw: Raw) -> Found:
    spec = part(raw, "spec")
    capability, guarantee = part(spec, "capability"), part(spec, "guarantee", "resource")
    yield from _not_negative("spec.capability", capability, "omit it for no limit")
    yield from _not_negative("spec.deserved", part(spec, "deserved"), "omit it for none")
    yield from _not_negative("spec.guarantee.resource", guarantee, "omit it for none")
    for field, amounts in (("deserved", part(spec, "deserved")), ("guarantee.resource", guarantee)):
        for name, amount in amounts.items():
            share, most = _number(amount), _number(capability.get(name))
            if share is not None and most is not None and share > most >= 0:
                yield f"spec.{field}.{name}", f"{amount} is more than the capability {capability[name]}"
    yield from _one_of("status.state", part(raw, "status").get("state"), _QUEUE_STATES)


def _volcano_group(raw: Raw) -> Found:
    yield from _not_negative("spec.minResources", part(raw, "spec", "minResources"), "omit it for none")


def _kai_queue(raw: Raw) -> Found:
    spec = part(raw, "spec")
    for resource, stated in part(spec, "resources").items():
        for field in ("quota", "limit", "overQuotaWeight"):
            amount = part(stated).get(field)
            if isinstance(amount, int | float) and amount < 0 and amount != _UNLIMITED:
                means = "" if field == "overQuotaWeight" else "; -1 means unlimited"
                yield f"spec.resources.{resource}.{field}", f"must not be negative, found {amount}{means}"
        quota, limit = part(stated).get("quota"), part(stated).get("limit")
        if isinstance(quota, int | float) and isinstance(limit, int | float) and quota > limit >= 0:
            yield f"spec.resources.{resource}.quota", f"{quota} is more than the limit {limit}"
    for field in ("preemptMinRuntime", "reclaimMinRuntime"):
        yield from _duration(f"spec.{field}", spec.get(field))


def _duration(field: str, text: object) -> Found:
    if not isinstance(text, str):
        return
    try:
        if nanoseconds(text) < 0:
            yield field, f"must not be negative, found {quoted(text)}"
    except ValueError:
        yield field, f'must be a duration such as "90s" or "1h30m", found {quoted(text)}; ignored'


def _kai_group(raw: Raw) -> Found:
    listed = list(entries(part(raw, "spec"), "subGroups"))
    names = [one.get("name") for _, one in listed]
    for index, (path, one) in enumerate(listed):
        parent = one.get("parent")
        if names[index] in names[:index]:
            yield f"spec.{path}.name", f"there are two sub-groups {quoted(str(names[index]))}"
        known = [name for name in names if isinstance(name, str)]
        if isinstance(parent, str) and parent and parent not in known and parent.lower() not in known:
            yield f"spec.{path}.parent", f"no sub-group {quoted(parent)}{suggestion(parent, known)}"


_CHECKS: dict[type[Object], Callable[[Raw], Found]] = {
    core.Pod: _pod,
    core.Node: _node,
    core.PersistentVolumeClaim: _claim,
    core.PersistentVolume: _volume,
    core.PriorityClass: _priority_class,
    core.PodDisruptionBudget: _budget,
    volcano.VolcanoQueue: _volcano_queue,
    volcano.VolcanoPodGroup: _volcano_group,
    kai.KaiQueue: _kai_queue,
    kai.KaiPodGroup: _kai_group,
}
