"""What docs/policy.md promises of making room, on random clusters with queues and gangs of both systems.

Each promise is checked against the objects and the plan alone: amounts are counted from pods, not read from
the session's books.
"""

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.objects.core import Pod
from maniple.objects.meta import Object
from maniple.planner import Plan
from tests.plugins.maniple.scenes import GPU, cycle, flat, gang, kai_queue, node, volcano_queue
from tests.support import make, priority_class

PRIORITIES = {"low": 30, "": 50, "high": 70}


@dataclass(frozen=True)
class Job:
    name: str
    queue: str
    size: int
    minimum: int
    gpus: int
    priority: str
    kai: bool
    firm: bool = False
    on: tuple[str, ...] = ()
    app: str = ""

    def objects(self) -> list[Object]:
        labels = {"app": self.app} if self.app else {}
        return gang(
            self.name, self.queue, self.size, self.minimum, kai=self.kai, gpus=self.gpus, on=self.on,
            priority=self.priority, firm=self.firm, labels=labels,
        )  # fmt: skip


@dataclass(frozen=True)
class QueueWords:
    """Of GPUs. `limit` and `guarantee`: 0 for none; only a Volcano queue guarantees."""

    name: str
    kai: bool
    parent: str = ""
    quota: int = 0
    limit: int = 0
    guarantee: int = 0
    weight: int = 1

    def object(self) -> Object:
        if self.kai:
            limit = float(self.limit) if self.limit else -1.0
            return kai_queue(
                self.name, float(self.quota), limit=limit, weight=float(self.weight), parent=self.parent
            )
        said: dict[str, Any] = {"parent": self.parent} if self.parent else {}
        if self.quota:
            said["deserved"] = {GPU: str(self.quota)}
        if self.limit:
            said["capability"] = {GPU: str(self.limit)}
        if self.guarantee:
            said["guarantee"] = {"resource": {GPU: str(self.guarantee)}}
        return volcano_queue(self.name, weight=self.weight, **said)


@dataclass
class Scene:
    nodes: dict[str, int]
    queues: list[QueueWords]
    jobs: list[Job]
    budgets: dict[str, int] = field(default_factory=dict)

    def objects(self) -> list[Object]:
        parts: list[Any] = [node(name, gpus) for name, gpus in self.nodes.items()]
        parts += [priority_class(name, value) for name, value in PRIORITIES.items() if name]
        parts += [queue.object() for queue in self.queues]
        parts += [job.objects() for job in self.jobs]
        parts += [_budget(app, allowed) for app, allowed in self.budgets.items()]
        return flat(parts)

    def job(self, pod: str) -> Job:
        name = pod.removeprefix("default/").rpartition("-")[0]
        return next(job for job in self.jobs if job.name == name)

    def path(self, queue: str) -> list[str]:
        above = next(one.parent for one in self.queues if one.name == queue)
        return [queue, *(self.path(above) if above else [])]


def _budget(app: str, allowed: int) -> Object:
    spec = {"selector": {"matchLabels": {"app": app}}}
    status = {"disruptionsAllowed": allowed}
    return make("policy/v1", "PodDisruptionBudget", app, namespace="default", spec=spec, status=status)


@st.composite
def scenes(draw: st.DrawFn, *, waiting: int = 3, strict: bool = False) -> Scene:
    """Nodes that are nearly full, and `waiting` jobs at most that want in. `strict`: these have nothing to spare."""
    size = draw(st.sampled_from([2, 4]))
    nodes = {f"n{number}": size for number in range(draw(st.integers(2, 4)))}
    queues = draw(_queues(size))
    below = {queue.parent for queue in queues}
    leaves = [queue.name for queue in queues if queue.name not in below]
    scene = Scene(nodes, queues, [])
    free = dict(nodes)
    for number in range(draw(st.integers(2, 6))):
        gpus, homes = draw(st.sampled_from([1, 1, size // 2])), list[str]()
        for _ in range(draw(st.integers(1, 4))):
            roomy = [name for name, left in free.items() if left >= gpus]
            if roomy:
                homes.append(draw(st.sampled_from(roomy)))
                free[homes[-1]] -= gpus
        if homes:
            grows = draw(st.sampled_from([0, 0, 1]))
            scene.jobs.append(
                _job(draw, f"r{number}", leaves, len(homes) + grows, len(homes), gpus, on=tuple(homes))
            )
    for number in range(draw(st.integers(1, waiting))):
        count = draw(st.integers(1, 3))
        least = count if strict else draw(st.integers(1, count))
        gpus = draw(st.sampled_from([1, 2, size]))
        scene.jobs.append(_job(draw, f"w{number}", leaves, count, count, gpus, least=least))
    for app in ("a", "b"):
        if draw(st.booleans()):
            scene.budgets[app] = draw(st.integers(0, 2))
    return scene


@st.composite
def _queues(draw: st.DrawFn, size: int) -> list[QueueWords]:
    found: list[QueueWords] = []
    for name in ("q0", "q1", "q2")[: draw(st.integers(1, 3))]:
        kai = draw(st.booleans())
        quota, limit = draw(st.sampled_from([0, size, 2 * size])), draw(st.sampled_from([0, 0, 2 * size]))
        guarantee = 0 if kai else draw(st.sampled_from([0, 0, 2]))
        weight = draw(st.sampled_from([1, 1, 3]))
        found.append(QueueWords(name, kai, quota=quota, limit=limit, guarantee=guarantee, weight=weight))
    if draw(st.booleans()):
        for name in ("q0a", "q0b"):
            kai = draw(st.booleans())
            found.append(QueueWords(name, kai, parent="q0", quota=draw(st.sampled_from([0, size]))))
    return found


def _job(
    draw: st.DrawFn,
    name: str,
    queues: list[str],
    size: int,
    most: int,
    gpus: int,
    *,
    on: tuple[str, ...] = (),
    least: int = 1,
) -> Job:
    return Job(
        name,
        draw(st.sampled_from(queues)),
        size,
        draw(st.integers(least, most)),
        gpus,
        draw(st.sampled_from([*PRIORITIES])),
        kai=draw(st.booleans()),
        firm=draw(st.sampled_from([False, False, False, True])),
        on=on,
        app=draw(st.sampled_from(["", "a", "b"])),
    )


def placed(plan: Plan) -> dict[str, str]:
    """Pods that have a node, or have claimed one, once everything that was decided is done."""
    gone = set(plan.evictions)
    stay = {key: one.node for key, one in plan.tasks.items() if one.node and key not in gone}
    return {**{key: str(name) for key, name in stay.items()}, **plan.binds, **plan.pipelined}


def held(scene: Scene, pods: dict[str, str]) -> Counter[str]:
    """GPUs by queue, with those below."""
    total: Counter[str] = Counter()
    for pod in pods:
        job = scene.job(pod)
        for queue in scene.path(job.queue):
            total[queue] += job.gpus
    return total


def before(scene: Scene) -> dict[str, str]:
    return {f"default/{job.name}-{number}": name for job in scene.jobs for number, name in enumerate(job.on)}


def takers(plan: Plan) -> list[tuple[str, str, str]]:
    """Who was evicted, by which action, for which job."""
    return [(one.pod, one.action, one.actor) for one in plan.evicted if one.actor]


# -- one cycle ------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_what_a_cycle_leaves_behind(scene: Scene) -> None:
    plan = cycle(scene.objects())
    gangs_are_whole_or_absent(scene, plan)
    nodes_hold_what_they_have(scene, plan)
    whoever_gained_is_below_every_ceiling(scene, plan)
    guarantees_of_others_are_left_alone(scene, plan)
    budgets_are_respected(scene, plan)
    victims_are_those_who_may_be(scene, plan)
    assert not {*plan.binds} & {*plan.evictions}


def gangs_are_whole_or_absent(scene: Scene, plan: Plan) -> None:
    """So a victim has lost what it could spare, or all that it had."""
    after = Counter(scene.job(pod).name for pod in placed(plan))
    for job in scene.jobs:
        assert after[job.name] == 0 or after[job.name] >= job.minimum, job


def nodes_hold_what_they_have(scene: Scene, plan: Plan) -> None:
    used: Counter[str] = Counter()
    for pod, name in placed(plan).items():
        used[name] += scene.job(pod).gpus
    assert all(used[name] <= gpus for name, gpus in scene.nodes.items())


def whoever_gained_is_below_every_ceiling(scene: Scene, plan: Plan) -> None:
    after, had = held(scene, placed(plan)), held(scene, before(scene))
    for queue in scene.queues:
        if queue.limit and after[queue.name] > had[queue.name]:
            assert after[queue.name] <= queue.limit


def guarantees_of_others_are_left_alone(scene: Scene, plan: Plan) -> None:
    after, had = held(scene, placed(plan)), held(scene, before(scene))
    tops = [queue for queue in scene.queues if not queue.parent]
    beyond = [queue for queue in tops if after[queue.name] > max(had[queue.name], queue.guarantee)]
    if beyond:
        assert sum(max(after[queue.name], queue.guarantee) for queue in tops) <= sum(scene.nodes.values())


def budgets_are_respected(scene: Scene, plan: Plan) -> None:
    lost = Counter(scene.job(pod).app for pod in plan.evictions)
    assert all(lost[app] <= allowed for app, allowed in scene.budgets.items())


def victims_are_those_who_may_be(scene: Scene, plan: Plan) -> None:
    for pod, action, actor in takers(plan):
        victim, taker = scene.job(pod), scene.job(f"{actor}-0")
        assert not victim.firm
        if action == "preempt":
            assert victim.queue == taker.queue
            assert PRIORITIES[victim.priority] < PRIORITIES[taker.priority]
        elif action == "reclaim":
            assert victim.queue != taker.queue


@settings(max_examples=60, deadline=None)
@given(scenes(waiting=1))
def test_reclaim_keeps_guarantees_and_takes_only_from_above_the_quota(scene: Scene) -> None:
    """A queue may end below its quota only by a gang that stood across it: without its last chunk it had more."""
    plan = cycle(scene.objects(), actions=["allocate", "reclaim"])
    had, after = held(scene, before(scene)), held(scene, placed(plan))
    words = {queue.name: queue for queue in scene.queues}
    chunks = _chunks(scene, plan)
    for pod, action, actor in takers(plan):
        assert action == "reclaim"
        ours = scene.path(scene.job(f"{actor}-0").queue)
        for name in scene.path(scene.job(pod).queue):
            if name in ours or after[name] >= had[name]:
                continue
            largest = max(
                sum(scene.job(one).gpus for one in chunk)
                for chunk in chunks
                if name in scene.path(scene.job(chunk[0]).queue)
            )
            assert after[name] >= min(words[name].guarantee, had[name])
            if not _sibling(scene, name, ours):
                continue
            assert after[name] + largest > _promised(scene, words[name])


def _promised(scene: Scene, queue: QueueWords) -> int:
    """Its quota, as far as its limit and what is guaranteed to others let it have that."""
    others = sum(
        one.guarantee for one in scene.queues if one.parent == queue.parent and one.name != queue.name
    )
    return min(queue.quota, queue.limit or queue.quota, sum(scene.nodes.values()) - others)


def _sibling(scene: Scene, queue: str, path: list[str]) -> bool:
    """Whether the ways of the two part here."""
    parents = {one.name: one.parent for one in scene.queues}
    return any(parents[one] == parents[queue] for one in path)


@settings(max_examples=60, deadline=None)
@given(scenes(waiting=1, strict=True), st.sampled_from(["reclaim", "preempt"]))
def test_with_one_victim_less_the_job_would_not_fit(scene: Scene, action: str) -> None:
    """The others gone, the victim where it was: the job finds no place."""
    plan = cycle(scene.objects(), actions=["allocate", action])
    if not plan.evictions:
        return
    (job,) = (one for one in scene.jobs if one.name.startswith("w"))
    homes = placed(plan)
    for stays in _chunks(scene, plan):
        rest = [pod for pod in plan.evictions if pod not in stays]
        objects = [*_without(scene, job, rest, homes), *job.objects()]
        if _overfull(scene, objects):
            continue  # somebody moved to where the victim was, and would be one in its place
        again = cycle(objects, actions=["allocate"])
        assert not again.binds, (stays, again.binds)


def _chunks(scene: Scene, plan: Plan) -> list[list[str]]:
    """What goes together: a task that can be spared, or all of a job."""
    by_job: dict[str, list[str]] = defaultdict(list)
    for pod in plan.evictions:
        by_job[scene.job(pod).name].append(pod)
    chunks: list[list[str]] = []
    for pods in by_job.values():
        job = scene.job(pods[0])
        spare = len(job.on) - job.minimum
        chunks += [[pod] for pod in pods] if len(pods) <= spare else [pods]
    return chunks


def _without(scene: Scene, asking: Job, gone: list[str], homes: dict[str, str]) -> list[Object]:
    """The cluster without these or with them moved, the others unchanged, and only `asking` pending."""
    found = []
    for item in scene.objects():
        if isinstance(item, Pod):
            home = item.spec.node_name
            if item.key in gone or not home:
                home = homes.get(item.key, "")
            if scene.job(item.key) is asking or not home:
                continue
            item = msgspec.structs.replace(item, spec=msgspec.structs.replace(item.spec, node_name=home))  # noqa: PLW2901
        elif type(item).kind == "PodGroup" and item.metadata.name == asking.name:
            continue
        found.append(item)
    return found


def _overfull(scene: Scene, objects: list[Object]) -> bool:
    used = Counter(
        {
            name: sum(
                scene.job(one.key).gpus
                for one in objects
                if isinstance(one, Pod) and one.spec.node_name == name
            )
            for name in scene.nodes
        }
    )
    return any(used[name] > gpus for name, gpus in scene.nodes.items())


@settings(max_examples=30, deadline=None)
@given(scenes(), st.integers(0, 10**6))
def test_the_same_objects_in_any_order_give_the_same_plan(scene: Scene, seed: int) -> None:
    objects = scene.objects()
    shuffled = objects.copy()
    random.Random(seed).shuffle(shuffled)
    one, other = cycle(objects), cycle(shuffled)
    assert (one.binds, one.evictions, one.pipelined) == (other.binds, other.evictions, other.pipelined)
    assert [job.reasons for job in one.jobs.values()] == [other.jobs[key].reasons for key in one.jobs]
