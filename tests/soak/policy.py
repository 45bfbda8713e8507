"""What groups and queues promise, read from their objects: minimums, priorities, who may be evicted, quotas and limits.

Written from the policy page and the documentation of the two systems.
"""

import re
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from tests.soak.amounts import Amounts, Raw, amounts, quantity
from tests.soak.world import (
    DEVICES,
    FRACTION,
    GPU,
    GPU_MEMORY,
    KAI,
    VOLCANO,
    World,
    annotations,
    group_of,
    labels,
)

Job = tuple[str, str]
UNLIMITED = -1
_PREEMPTABLE = "volcano.sh/preemptable"
_SUB_GROUP = "kai.scheduler/subgroup-name"
_ROLE = "volcano.sh/task-spec"
_CRITICAL = ("system-cluster-critical", "system-node-critical")
_KAI_UNITS = {
    "cpu": ("cpu", Fraction(1, 1000)),
    "memory": ("memory", Fraction(10**6)),
    "gpu": (GPU, Fraction(1)),
}
_FIRM_FROM = 100
_SLICE = re.compile(r"nvidia\.com/mig-(\d+)g\.")


# -- gangs ------------------------------------------------------------------------------------------------------------


def broken(world: World, job: Job, present: Iterable[str]) -> str:
    """Which minimum of a job these pods do not reach; empty if it is whole."""
    spec, keys = world.groups[job]["spec"], list(present)
    said = _too_few("the gang", len(keys), least(world, job))
    if job[0] == KAI:
        parts = Counter(labels(world.pods[key]).get(_SUB_GROUP, "") for key in keys)
        parents = {one.get("parent") for one in spec.get("subGroups", ())}
        for one in spec.get("subGroups", ()):
            if one["name"] not in parents:
                said = said or _too_few(
                    f"sub-group {one['name']}", parts[one["name"]], max(one["minMember"], 1)
                )
        return said
    roles = Counter(annotations(world.pods[key]).get(_ROLE, "") for key in keys)
    for role, wanted in (spec.get("minTaskMember") or {}).items():
        said = said or _too_few(f"role {role}", roles[role], wanted)
    for policy in spec.get("subGroupPolicy") or ():
        slices = Counter(
            tuple(labels(world.pods[key]).get(name, "") for name in policy["matchLabelKeys"]) for key in keys
        )
        whole = sum(1 for count in slices.values() if count >= policy["subGroupSize"])
        said = said or _too_few(f"sub-groups of {policy['name']}", whole, policy["minSubGroups"])
    return said


def least(world: World, job: Job) -> int:
    spec = world.groups[job]["spec"]
    if job[0] == KAI and spec.get("subGroups"):
        parents = {one.get("parent") for one in spec["subGroups"]}
        return sum(max(one["minMember"], 1) for one in spec["subGroups"] if one["name"] not in parents)
    return max(int(spec.get("minMember", 1)), 1)


def _too_few(what: str, has: int, wanted: int) -> str:
    return f"{what} has {has} of {wanted}" if has < wanted else ""


# -- rank and protection ----------------------------------------------------------------------------------------------


def priority(world: World, job: Job, profile: str) -> int:
    name = world.groups[job]["spec"].get("priorityClassName", "")
    found = world.kind("PriorityClass").get(name)
    return int(found["value"]) if found is not None else 0 if profile == "volcano" else 50


def never_preempts(world: World, job: Job) -> bool:
    found = world.kind("PriorityClass").get(world.groups[job]["spec"].get("priorityClassName", ""))
    return found is not None and found.get("preemptionPolicy") == "Never"


def firm(world: World, job: Job, profile: str) -> bool:
    """Whether a job may not be preempted."""
    group = world.groups[job]
    if job[0] == KAI:
        said = group["spec"].get("preemptibility")
        return said == "non-preemptible" if said else priority(world, job, profile) >= _FIRM_FROM
    return profile == "maniple" and annotations(group).get(_PREEMPTABLE) == "false"


def protected(world: World, pod: str, profile: str) -> str:
    """Why a pod may not be evicted to make room."""
    raw = world.pods[pod]
    job = group_of(raw)
    if job is None or job not in world.groups:
        return "it belongs to no job of ours"
    if raw["metadata"]["namespace"] == "kube-system" or raw["spec"].get("priorityClassName") in _CRITICAL:
        return "it is critical" if profile != "kai" else ""
    if annotations(raw).get(_PREEMPTABLE) == "false" and profile != "kai":
        return "its pod says that it may not be preempted"
    return "its job may not be preempted" if firm(world, job, profile) else ""


# -- queues -----------------------------------------------------------------------------------------------------------


def queue_of(world: World, job: Job) -> str:
    return str(world.groups[job]["spec"].get("queue", "default"))


def queue_named(world: World, name: str) -> list[tuple[str, Raw]]:
    return [(system, raw) for (system, key), raw in world.queues.items() if key == name]


def path(world: World, queue: str) -> list[str]:
    """A queue and those above it."""
    found: list[str] = []
    while queue and queue not in found and queue != "root":
        found.append(queue)
        said = queue_named(world, queue)
        specs = [raw["spec"] for _, raw in said]
        queue = next(
            (str(above) for one in specs if (above := one.get("parentQueue") or one.get("parent"))), ""
        )
    return found


def limits(world: World, queue: str) -> Amounts:
    found: Amounts = {}
    for system, raw in queue_named(world, queue):
        said = _kai_amounts(raw, "limit") if system == KAI else amounts(raw["spec"].get("capability"))
        for name, value in said.items():
            found[name] = min(found.get(name, value), value)
    return found


def quotas(world: World, queue: str) -> Amounts:
    found: Amounts = {}
    for system, raw in queue_named(world, queue):
        said = _kai_amounts(raw, "quota") if system == KAI else amounts(raw["spec"].get("deserved"))
        for name, value in said.items():
            found[name] = max(found.get(name, value), value)
    return found


def guarantees(world: World, queue: str) -> Amounts:
    found: Amounts = {}
    for system, raw in queue_named(world, queue):
        if system == VOLCANO:
            found |= amounts((raw["spec"].get("guarantee") or {}).get("resource"))
    return found


def _kai_amounts(queue: Raw, field: str) -> Amounts:
    stated = queue["spec"].get("resources") or {}
    return {
        name: Fraction(str(stated[key][field])) * unit
        for key, (name, unit) in _KAI_UNITS.items()
        if key in stated and stated[key].get(field, UNLIMITED) != UNLIMITED
    }


def counted(world: World, pod: str, profile: str, *, claims: bool = False) -> Amounts:
    """What a pod counts in its queue: its requests, parts of GPUs, slices by number; `claims`: devices, too."""
    raw, found = world.pods[pod], dict(world.asks[pod])
    notes, node = annotations(raw), world.nodes.get(world.home.get(pod, ""))
    part = Fraction(notes.get(FRACTION, "0"))
    if not part and GPU_MEMORY in notes and node is not None:
        part = Fraction(notes[GPU_MEMORY]) / quantity(labels(node).get("nvidia.com/gpu.memory", "100"))
    if part:
        found[GPU] = found.get(GPU, Fraction(0)) + part * int(notes.get(DEVICES, "1"))
    if profile == "volcano":
        return found
    slices = ((_SLICE.match(name), value) for name, value in world.asks[pod].items())
    more = sum((int(match[1]) * value for match, value in slices if match), Fraction(0))
    more += world.asks[pod].get("amd.com/gpu", Fraction(0))
    more += len(raw["spec"].get("resourceClaims") or ()) if claims else 0
    if more:
        found[GPU] = found.get(GPU, Fraction(0)) + more
    return found


def is_closed(world: World, queue: str) -> bool:
    return any(
        (raw.get("status") or {}).get("state") == "Closed"
        for one in path(world, queue)
        for system, raw in queue_named(world, one)
        if system == VOLCANO
    )


def reclaimable(world: World, queue: str) -> bool:
    return all(raw["spec"].get("reclaimable") is not False for _, raw in queue_named(world, queue))
