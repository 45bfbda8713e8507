"""A cycle in one line: objects in, plan out, with every sum checked afterwards."""

from collections.abc import Mapping
from typing import Any

from maniple.objects.meta import Object
from maniple.planner import Plan, Planner
from tests.support import cluster_of

GANG = {"name": "gang"}
PLAIN: tuple[dict[str, Any], ...] = (
    {"name": "priority"},
    GANG,
    {"name": "drf"},
    {"name": "proportion"},
    {"name": "predicates"},
    {"name": "nodeorder"},
)


def cycle(
    *objects: Object,
    actions: str = "allocate",
    plugins: tuple[dict[str, Any], ...] = PLAIN,
    options: Mapping[str, Any] | None = None,
    **configuration: Any,
) -> Plan:
    conf = {"actions": actions, "tiers": [{"plugins": list(plugins)}], **configuration}
    planner = Planner(profile="volcano", conf=conf, options={"debug": True, **(options or {})})
    return planner.cycle(cluster_of(*objects))


def on_node(plan: Plan, node: str) -> set[str]:
    return {pod.removeprefix("default/") for pod, name in plan.binds.items() if name == node}


def bound(plan: Plan) -> set[str]:
    return {pod.removeprefix("default/") for pod in plan.binds}
