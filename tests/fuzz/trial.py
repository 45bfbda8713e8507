"""One trial: plan a scene beside healthy gangs, and judge what came of it."""

import random
import time
import traceback
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

from maniple.planner import Plan, Planner
from tests.fuzz.scenes import Scene, scene
from tests.hostile.objects import HEALTHY, HOSTILE, Raw, Writer

NOW = datetime(2026, 11, 17, tzinfo=UTC)
GANGS = 5
MOST_SECONDS = 1.0


@dataclass(frozen=True)
class Fault:
    """What went wrong, in a word for telling faults apart, and in full."""

    what: str
    detail: str


@cache
def healthy(profile: str, nodes: int) -> tuple[list[Raw], dict[str, str]]:
    """The healthy part of a scene, and where its pods are placed when it is alone."""
    planner, objects = Planner(profile=profile), Writer(profile).healthy(nodes, GANGS)
    return objects, dict(planner.cycle(planner.build(objects), now=NOW).binds)


def trial(scene: Scene, nodes: int, *, most_seconds: float | None = None) -> Fault | None:
    """Two cycles; the second must not be slower for what the first has met.

    Seconds are those of the process; without `most_seconds` nobody looks at them.
    """
    objects, alone = healthy(scene.profile, nodes)
    planner = Planner(profile=scene.profile, options={"debug": True})
    try:
        cluster = planner.build([*objects, *scene.objects])
        for cycle in ("a cycle", "the next cycle"):
            begin = time.process_time()
            plan = planner.cycle(cluster, now=NOW)
            taken = time.process_time() - begin
            if most_seconds is not None and taken > most_seconds:
                return Fault("slow", f"{cycle} took {taken:.2f} s")
            wrong = _judged(plan, scene, alone)
            if wrong is not None:
                return wrong
        _told(plan)
    except Exception as error:
        return Fault(f"{type(error).__name__} {_where(error)}", traceback.format_exc(limit=-8))
    return None


def _judged(plan: Plan, scene: Scene, alone: dict[str, str]) -> Fault | None:
    """What a tenant writes does not change where others' pods go, unless its own take room."""
    if not scene.by_tenant:
        return None
    placed = {pod: node for pod, node in plan.binds.items() if pod.startswith(f"{HEALTHY}/")}
    takes_room = any(pod.startswith(f"{HOSTILE}/") for pod in plan.binds) or _holds_room(scene)
    if len(placed) != len(alone):
        return Fault("not placed", f"{len(placed)} of {len(alone)} healthy pods are placed")
    if not takes_room and placed != alone:
        return Fault("moved", "healthy pods are placed elsewhere")
    return None


def _holds_room(scene: Scene) -> bool:
    """Some pod is on a node already, or asked others to keep away from it."""
    specs = [raw.get("spec") for raw in scene.objects if raw["kind"] == "Pod"]
    return any(isinstance(spec, dict) and spec.get("nodeName") for spec in specs)


def _told(plan: Plan) -> None:
    """Everything that a plan says can be said."""
    for waiting in plan.waiting.values():
        str(waiting.reason)
    plan.to_json()


def _where(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    last = next((one for one in reversed(frames) if "maniple" in one.filename), frames[-1])
    return f"{last.filename.rpartition('maniple/')[2]}:{last.name}"


def shrunk(found: Scene, fault: Fault, nodes: int, most_seconds: float | None) -> Scene:
    """The same fault with fewer objects and fields."""
    objects = found.objects
    for _ in range(3):
        before = objects
        for candidate in _smaller(objects):
            again = trial(Scene(found.profile, candidate, found.by_tenant), nodes, most_seconds=most_seconds)
            if again is not None and again.what == fault.what:
                objects = candidate
                break
        if objects is before:
            break
    return Scene(found.profile, objects, found.by_tenant)


def _smaller(objects: list[Raw]) -> list[list[Raw]]:
    fewer = (
        [objects[:place] + objects[place + 1 :] for place in range(len(objects))] if len(objects) > 1 else []
    )
    for place, raw in enumerate(objects):
        for part in ("spec", "status"):
            inner = raw.get(part) if isinstance(raw.get(part), dict) else {}
            for key in inner or {}:
                less = {**raw, part: {name: value for name, value in (inner or {}).items() if name != key}}
                fewer.append([*objects[:place], less, *objects[place + 1 :]])
    return fewer


def scene_of_seed(seed: int, profile: str, *, large: float = 0.01) -> Scene:
    return scene(random.Random(f"{seed} {profile}"), profile, large=large)
