"""Makes a failing cluster as small as it gets while the same kind of violation remains.

Greedy: whole jobs, then objects, then fields, each left out if the violation is still there without it; again
until nothing can be left out, or the trials are used up.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

from tests.soak.amounts import Raw
from tests.soak.clusters import Scenario
from tests.soak.course import ROUNDS, follow
from tests.soak.needs import claims_of, resource_claims
from tests.soak.world import World, group_of, key_of, system_of

TRIALS = 400
# What is left as it is: without it, a cluster would fail for another reason, or not be read at all.
_KEPT = frozenset(
    [
        "apiVersion",
        "kind",
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "metadata",
        "spec",
        "status",
        "phase",
        "queue",
        "schedulerName",
        "nodeName",
        "minMember",
        "containers",
        "allocatable",
        "capacity",
        "devices",
        "members",
        "levels",
        "mode",
    ]
)


def shrunk(scenario: Scenario, kind: str, *, trials: int = TRIALS, rounds: int = ROUNDS) -> Scenario:
    """The smallest cluster found with a violation of this kind."""

    def fails(objects: list[Raw]) -> bool:
        try:
            if not _sound(objects):
                return False
            shuffles = 1 if "shuffled" in kind else 0
            course = follow(
                replace(scenario, objects=objects), rounds, shuffles=shuffles, seconds=5, until=kind
            )
        except Exception:
            return False  # no longer a cluster that can be followed
        return any(one.kind == kind for one in course.violations)

    search = _Search(deepcopy(scenario.objects), fails, trials)
    return replace(scenario, objects=search.smallest())


class _Search:
    def __init__(self, objects: list[Raw], fails: Callable[[list[Raw]], bool], trials: int) -> None:
        self._objects = objects
        self._fails = fails
        self._left = trials

    def smallest(self) -> list[Raw]:
        while self._leave_out_jobs() | self._leave_out_objects() | self._leave_out_fields():
            pass
        return self._objects

    def _try(self, objects: list[Raw]) -> bool:
        if self._left <= 0:
            return False
        self._left -= 1
        if not self._fails(objects):
            return False
        self._objects = objects
        return True

    def _leave_out_jobs(self) -> bool:
        groups = [(system_of(one), key_of(one)) for one in self._objects if one["kind"] == "PodGroup"]
        smaller = [self._try(_without_job(self._objects, job)) for job in groups]
        return any(smaller)

    def _leave_out_objects(self) -> bool:
        smaller = False
        for item in list(self._objects):
            rest = [one for one in self._objects if one is not item]
            if item["kind"] == "Node":
                rest = [
                    one for one in rest if (one.get("spec") or {}).get("nodeName") != item["metadata"]["name"]
                ]
            if len(rest) < len(self._objects):
                smaller = self._try(rest) or smaller
        return smaller

    def _leave_out_fields(self) -> bool:
        smaller = False
        for number in range(len(self._objects)):
            for way in list(_ways(self._objects[number])):
                changed = deepcopy(self._objects[number])
                if _cut(changed, way):
                    trial = [*self._objects[:number], changed, *self._objects[number + 1 :]]
                    smaller = self._try(trial) or smaller
        return smaller


def _sound(objects: list[Raw]) -> bool:
    """What names another object finds it, so that a cluster does not fail for another reason than it did."""
    world = World(objects)
    queues = {name for _, name in world.queues}
    for group in world.groups.values():
        spec = group["spec"]
        if spec.get("queue") not in queues:
            return False
        if spec.get("networkTopology") and not world.kind("HyperNode"):
            return False
        if spec.get("topologyConstraint") and not world.kind("Topology"):
            return False
    above = [raw["spec"].get("parentQueue") or raw["spec"].get("parent") for raw in world.queues.values()]
    if any(one and one not in queues for one in above):
        return False
    return all(_is_whole(world, key) for key in world.pods)


def _is_whole(world: World, key: str) -> bool:
    pod = world.pods[key]
    claims = [*claims_of(world, key), *resource_claims(world, key)]
    known = {*world.kind("PersistentVolumeClaim"), *world.kind("ResourceClaim")}
    ours = pod["spec"].get("schedulerName") != "default-scheduler"
    return (not ours or group_of(pod) in world.groups) and set(claims) <= known


def _without_job(objects: list[Raw], job: tuple[str, str]) -> list[Raw]:
    """Without the group, its pods and its budgets."""
    return [
        one
        for one in objects
        if not (one["kind"] == "PodGroup" and (system_of(one), key_of(one)) == job)
        and not (one["kind"] == "Pod" and group_of(one) == job)
    ]


def _ways(item: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Ways to every field that can be left out, the outer ones first."""
    if isinstance(item, dict):
        for name in item:
            if name not in _KEPT:
                yield (*way, name)
        for name, value in item.items():
            if name not in _KEPT or name == "metadata":
                yield from _ways(value, (*way, name))
    elif isinstance(item, list) and len(item) > 1:
        for number in range(len(item)):
            yield (*way, number)


def _cut(item: Any, way: tuple[Any, ...]) -> bool:
    try:
        for step in way[:-1]:
            item = item[step]
        del item[way[-1]]
    except (KeyError, IndexError, TypeError):
        return False
    return True
