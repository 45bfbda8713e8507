"""Both solvers on random small clusters.

The default serves the jobs that KAI's search serves, and evicts no more than it has to.
"""

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.actions.searching.search import Search
from maniple.actions.searching.trial import Trial
from maniple.cli.bench_one import NOW
from maniple.cli.shapes import DIALECTS, SHAPES
from maniple.eviction.chunks import ScenarioOutcome
from maniple.planner import Plan, Planner
from tests.actions.allocate_scenes import Bench, cycle, gang, node, placed, queue, waiting
from tests.support import priority_class

ACTIONS = ("reclaim", "preempt", "consolidation")


@dataclass
class Scene:
    parts: list[Any]
    minimums: dict[str, int]
    sizes: dict[str, int]
    asking: list[str] = field(default_factory=list)


@st.composite
def scenes(draw: st.DrawFn, most_asking: int = 1) -> Scene:
    """Nodes that are nearly full of gangs, some with tasks to spare, and jobs that need room."""
    size = draw(st.sampled_from([2, 4]))
    free = {f"n{number}": size for number in range(draw(st.integers(2, 4)))}
    queues = ["q0", "q1", "q2"][: draw(st.integers(1, 3))]
    scene = Scene([node(name, size) for name in free], {}, {})
    scene.parts += [queue("top"), priority_class("low", 40), priority_class("high", 60)]
    for name in queues:
        quota = draw(st.sampled_from([0, size, 2 * size, -1]))
        weight = draw(st.sampled_from([0, 1, 3]))
        scene.parts.append(queue(name, quota, parent="top", weight=weight))
    for number in range(draw(st.integers(2, 7))):
        gpus = draw(st.sampled_from([1, 1, size // 2]))
        on: list[str] = []
        for _ in range(draw(st.sampled_from([1, 2, 3]))):
            open_ = [name for name, left in free.items() if left >= gpus]
            if open_:
                on.append(draw(st.sampled_from(open_)))
                free[on[-1]] -= gpus
        if on:
            _add(draw, scene, f"r{number}", queues, len(on), gpus=gpus, on=on, created=number)
    for number in range(draw(st.integers(1, most_asking))):
        count, gpus = draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([1, 2, size]))
        _add(draw, scene, f"p{number}", queues, count, gpus=gpus, created=30 + number)
        scene.asking.append(f"p{number}")
    return scene


def _add(
    draw: st.DrawFn, scene: Scene, name: str, queues: list[str], count: int, *, created: int, **job: Any
) -> None:
    minimum = draw(st.integers(1, count))
    where, priority = draw(st.sampled_from(queues)), draw(st.sampled_from(["low", "low", "high"]))
    when = f"2026-01-01T00:{created:02d}:00Z"
    scene.parts.append(gang(name, count, minimum, queue=where, priority=priority, created=when, **job))
    scene.minimums[name], scene.sizes[name] = minimum, count


def decide(scene: Scene, action: str, *, strict: bool = False) -> Plan:
    return cycle(scene.parts, actions=f"allocate, {action}", strict=strict)


def job_of(pod: str) -> str:
    return pod.removeprefix("default/").rpartition("-")[0]


def served(plan: Plan, scene: Scene) -> int:
    return sum(job_of(pod) in scene.asking for pod in waiting(plan))


@settings(max_examples=60)
@given(scenes(), st.sampled_from(ACTIONS))
def test_whom_the_original_serves_is_served(scene: Scene, action: str) -> None:
    ours, theirs = decide(scene, action), decide(scene, action, strict=True)
    assert served(ours, scene) >= served(theirs, scene)


@settings(max_examples=60)
@given(scenes(most_asking=3), st.sampled_from(ACTIONS))
def test_jobs_lose_what_they_can_spare_or_everything(scene: Scene, action: str) -> None:
    plan = decide(scene, action)
    lost, moved = (Counter(map(job_of, pods)) for pods in (plan.evictions, plan.pipelined))
    for job, count in lost.items():
        left = scene.sizes[job] - count + moved[job]
        assert left == 0 or left >= scene.minimums[job]
        assert action != "consolidation" or count == moved[job]


@settings(max_examples=60)
@given(scenes(most_asking=3), st.sampled_from(ACTIONS))
def test_nobody_is_evicted_for_nothing(scene: Scene, action: str) -> None:
    plan = decide(scene, action)
    assert not plan.evictions or served(plan, scene)
    for job in scene.asking:
        have = sum(job_of(pod) == job for pod in (*plan.binds, *plan.pipelined))
        assert have == 0 or have >= scene.minimums[job]


@settings(max_examples=30)
@given(scenes(most_asking=3), st.sampled_from(ACTIONS))
def test_the_same_cluster_gives_the_same_plan(scene: Scene, action: str) -> None:
    first = decide(scene, action)
    turned = Scene(scene.parts[::-1], scene.minimums, scene.sizes)
    second = decide(turned, action)
    assert (first.evictions, first.pipelined) == (second.evictions, second.pipelined)


@settings(max_examples=60)
@given(scenes(), st.sampled_from(ACTIONS))
def test_no_victim_could_have_stayed(scene: Scene, action: str) -> None:
    plan = decide(scene, action)
    victims = [pod.removeprefix("default/") for pod in plan.evictions]
    for stays in _chunks(scene, victims):
        rest = [pod for pod in victims if pod not in stays]
        assert not _would_do(scene, action, plan, rest), stays


@st.composite
def scattered(draw: st.DrawFn) -> Scene:
    """Small jobs all over the nodes, so that there is room for larger ones only if some move."""
    size = draw(st.sampled_from([4, 6]))
    nodes = [f"n{number}" for number in range(draw(st.integers(3, 6)))]
    scene = Scene([*(node(name, size) for name in nodes), queue("top"), queue("q0", parent="top")], {}, {})
    scene.parts.append(priority_class("low", 40))
    free = dict.fromkeys(nodes, size)
    for number, first in enumerate(nodes * 2):
        gpus, second = draw(st.sampled_from([1, 1, 1, 2])), draw(st.sampled_from([first, *nodes]))
        on = [name for name in dict.fromkeys([first, second]) if free[name] >= gpus]
        for name in on:
            free[name] -= gpus
        if on:
            scene.parts.append(_whole(f"r{number}", len(on), gpus=gpus, on=on, created=number))
    for number in range(draw(st.integers(1, 2))):
        count, gpus = draw(st.sampled_from([1, 1, 2])), draw(st.sampled_from([size, size - 1]))
        scene.parts.append(_whole(f"p{number}", count, gpus=gpus, created=30 + number))
    return scene


def _whole(name: str, count: int, *, created: int, **job: Any) -> Any:
    """A gang that needs all its pods."""
    when = f"2026-01-01T00:{created:02d}:00Z"
    return gang(name, count, count, queue="q0", priority="low", created=when, **job)


@settings(max_examples=150)
@given(scattered())
def test_what_lasts_in_any_order_need_not_be_tried_in_another(scene: Scene) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Search, "_lasts_in_any_order", lambda _: False)
        tried = decide(scene, "consolidation")
    known = decide(scene, "consolidation")
    assert (known.evictions, known.pipelined) == (tried.evictions, tried.pipelined)


def test_moves_that_would_not_last_are_not_made() -> None:
    """Three moves would do as long as the moved pods come first: with the job first, r1 is left without a place."""
    parts = [node("n0", 6), node("n1", 6), node("n2", 5), queue("top"), queue("q0", parent="top")]
    parts += [priority_class("low", 40)]
    for number, (gpus, on) in enumerate([(1, ["n0"]), (3, ["n1", "n0"])]):
        parts.append(_whole(f"r{number}", len(on), gpus=gpus, on=on, created=number))
    parts.append(_whole("p0", 3, gpus=3, created=30))
    plan = cycle(parts, actions="allocate, consolidation")
    assert plan.evictions == ["default/r0-0"]
    assert sum(pod.startswith("default/p0") for pod in plan.pipelined) == 3


def test_many_jobs_alike_are_all_served_by_moves_within_the_budget() -> None:
    shape = SHAPES["f"](Fraction(1))
    cluster = (planner := Planner(profile="kai")).build(DIALECTS["kai"](shape))
    plan = planner.cycle(cluster, now=NOW)
    gangs, pods = 100, 2
    assert len(plan.pipelined) == len(plan.evictions) + gangs * pods


@st.composite
def full(draw: st.DrawFn) -> Scene:
    """Nodes full of gangs of one-GPU pods, of queues some of which have no quota, and gangs that need room."""
    size, nodes = draw(st.sampled_from([2, 4])), draw(st.integers(2, 4))
    queues = ["q0", "q1", "q2"]
    scene = Scene([node(f"n{number}", size) for number in range(nodes)], {}, {})
    scene.parts += [queue("top"), priority_class("low", 40), priority_class("high", 60)]
    scene.parts += [
        queue(name, draw(st.sampled_from([-1, -1, 2])), parent="top", weight=1) for name in queues
    ]
    places = [f"n{number}" for number in range(nodes) for _ in range(size)]
    while places:
        on = [places.pop() for _ in range(min(len(places), draw(st.integers(1, 3))))]
        _add(draw, scene, f"r{len(places)}", queues, len(on), gpus=1, on=on, created=len(places))
    for number in range(draw(st.integers(1, 3))):
        _add(draw, scene, f"p{number}", queues, draw(st.integers(1, 3)), gpus=1, created=30 + number)
        scene.asking.append(f"p{number}")
    return scene


@settings(max_examples=150)
@given(full())
def test_victims_that_all_come_back_first_need_not_be_placed_to_know_it(scene: Scene) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trial, "_all_return_first", lambda *_: False)
        tried = decide(scene, "reclaim")
    known = decide(scene, "reclaim")
    assert (known.evictions, waiting(known)) == (tried.evictions, waiting(tried))


def test_victims_that_all_come_back_first_are_not_placed() -> None:
    parts: list[Any] = [node("n0", 4), queue("top"), priority_class("low", 40)]
    parts += [queue(name, -1, parent="top", weight=1) for name in ("q0", "q1")]
    parts += [
        gang("r0", 2, 2, queue="q0", priority="low", gpus=1, on=["n0", "n0"], created="2026-01-01T00:00:00Z")
    ]
    parts += [gang("r1", 1, 1, queue="q1", priority="low", gpus=1, on=["n0"], created="2026-01-01T00:01:00Z")]
    parts += [gang("p0", 2, 2, queue="q1", priority="low", gpus=1, created="2026-01-01T00:30:00Z")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trial, "_comes_back", lambda *_: pytest.fail("placed"))
        plan = cycle(parts, actions="reclaim")
    assert plan.evictions == []


def _chunks(scene: Scene, pods: list[str]) -> list[list[str]]:
    """What goes together: a task that can be spared, or all of a job."""
    by_job: dict[str, list[str]] = {}
    for pod in pods:
        by_job.setdefault(job_of(pod), []).append(pod)
    chunks: list[list[str]] = []
    for job, own in by_job.items():
        spare = scene.sizes[job] - scene.minimums[job]
        chunks += [[pod] for pod in own] if len(own) <= spare else [own]
    return chunks


def _would_do(scene: Scene, action: str, plan: Plan, victims: list[str]) -> bool:
    """Whether the job fits if only these are evicted, and no validator objects."""
    bench = Bench(scene.parts)
    session, job = bench.session, bench.job(scene.asking[0])
    for pod, name in placed(plan).items():
        where = np.array([session.nodes.facts.index[name]])
        bench.transaction.allocate(bench.rows(pod), where)
    session.hooks.on_job_solution_start()
    if victims:
        bench.evict(*victims)
    claimed = [pod for pod in waiting(plan) if job_of(pod) in scene.asking]
    if not bench.place(scene.asking[0], real=False, rows=claimed):
        return False
    lost: dict[int, list[int]] = {}
    for pod in victims:
        lost.setdefault(bench.job(job_of(pod)), []).append(int(bench.rows(pod)[0]))
    outcome = ScenarioOutcome(job, bench.rows(*claimed), {one: np.array(rows) for one, rows in lost.items()})
    if action == "consolidation":
        return False if victims else bool(claimed)
    return action == "preempt" or session.hooks.reclaim_scenario_validator(outcome)
