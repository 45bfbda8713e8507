"""A cluster that carries plans out, for regressions that take several cycles to show.

Between two cycles bound pods run, evicted ones are gone and their controller has made them again, and what
was nominated and admitted is remembered on the objects, as a real cluster would.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from maniple.objects.meta import Object
from maniple.planner import Plan
from tests.actions.volcano.scenes import cycle
from tests.support import group, pod

Tiers = Sequence[Sequence[str | Mapping[str, Any]]]


class World:
    def __init__(self, *objects: Object, actions: str, tiers: Tiers) -> None:
        self._objects = list(objects)
        self._actions = actions
        self._tiers = [
            {"plugins": [{"name": one} if isinstance(one, str) else dict(one) for one in tier]}
            for tier in tiers
        ]
        self._groups: dict[str, dict[str, Any]] = {}
        self._pods: dict[str, dict[str, Any]] = {}
        self.evictions: Counter[str] = Counter()  # by job: how many of its pods were evicted so far

    def put(self, *objects: Object) -> None:
        """Objects that are new, or replace what has the same kind and key."""
        known = {(type(one), one.key) for one in objects}
        self._objects = [one for one in self._objects if (type(one), one.key) not in known] + list(objects)

    def submit(
        self, name: str, tasks: int, minimum: int, cpu: str, *, on: Sequence[str] = (), **spec: Any
    ) -> None:
        """A job with equal tasks; it runs already where `on` names nodes for the first of them."""
        phase = "Running" if on else "Pending"
        self._groups[name] = {"minimum": minimum, "phase": phase, "minResources": {"cpu": cpu}, **spec}
        for number in range(tasks):
            node = on[number] if number < len(on) else ""
            self._pods[f"{name}-{number}"] = {
                "group": name,
                "requests": {"cpu": cpu},
                "on": node,
                "status": {},
            }

    def lose(self, node: str) -> None:
        """The pods of a node are gone, and made again elsewhere."""
        for one in self._pods.values():
            if one["on"] == node:
                one["on"], one["status"] = "", {}

    def cycle(self) -> Plan:
        """Decide, and carry it out."""
        plan = cycle(*self._state(), actions=self._actions, tiers=self._tiers)
        for name, one in self._pods.items():
            key = f"default/{name}"
            if key in plan.evictions:
                one["on"], one["status"] = "", {}
                self.evictions[one["group"]] += 1
            elif key in plan.binds:
                one["on"], one["status"] = plan.binds[key], {}
            elif key in plan.nominations:
                one["status"] = {"nominatedNodeName": plan.nominations[key]}
        for name, wanted in self._groups.items():
            wanted["phase"] = plan.jobs[f"default/{name}"].phase
        return plan

    def settle(self, cycles: int = 12) -> Plan:
        """Cycles until one changes nothing; it is an error if that does not happen."""
        for _ in range(cycles):
            plan = self.cycle()
            if not plan.binds and not plan.evictions and not plan.pipelined:
                return plan
        raise AssertionError(f"not at rest after {cycles} cycles; evicted so far: {dict(self.evictions)}")

    def running(self) -> dict[str, int]:
        """By job: how many of its pods are on nodes."""
        return dict(Counter(one["group"] for one in self._pods.values() if one["on"]))

    def _state(self) -> list[Object]:
        groups = [group(name, **wanted) for name, wanted in self._groups.items()]
        pods = [pod(name, uid=name, **one) for name, one in self._pods.items()]
        return [*self._objects, *groups, *pods]
