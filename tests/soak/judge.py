"""Judges one plan by the oracle's rules: what it binds, what it claims, what it evicts."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from maniple.planner import Plan
from tests.soak import fits, needs, policy
from tests.soak.amounts import Raw, total
from tests.soak.policy import Job
from tests.soak.world import World, group_of, leaves

PREEMPTS = ("preempt", "gangpreempt")
RECLAIMS = ("reclaim", "gangreclaim")
MOVES = ("consolidation",)


@dataclass(frozen=True)
class Violation:
    """What went wrong: a rule's name, which stays the same while a cluster is made smaller, and words for people."""

    kind: str
    words: str
    round: int = 0


@dataclass
class Case:
    """A plan with the cluster that it was made for."""

    profile: str
    objects: list[Raw]
    plan: Plan
    conf: Any = None
    before: World = field(init=False)

    def __post_init__(self) -> None:
        self.before = World(self.objects)

    @cached_property
    def binds(self) -> dict[str, str]:
        return {**self.plan.binds, **self.plan.held}

    @cached_property
    def evicted(self) -> frozenset[str]:
        return frozenset(self.plan.evictions)

    @cached_property
    def moved(self) -> dict[str, str]:
        """Evicted pods that claim another place in the same plan."""
        return {key: node for key, node in self.plan.pipelined.items() if key in self.evicted}

    @cached_property
    def after(self) -> World:
        """The cluster with all pods bound, before any has left."""
        world = self.before.copy()
        for key, node in self.binds.items():
            world.place(key, node, self.plan.tasks[key].gpu_groups)
        return world

    @cached_property
    def later(self) -> World:
        """The cluster once what leaves is gone and what waits for it has its place."""
        world = self.before.copy()
        for key in list(world.home):
            if leaves(world.pods[key]) or key in self.evicted:
                world.remove(key)
        stay = {key: node for key, node in self.binds.items() if key not in self.evicted}
        for key, node in {**stay, **self.plan.pipelined}.items():
            world.place(key, node, self.plan.tasks[key].gpu_groups)
        return world

    def takers(self) -> Iterator[tuple[str, str, Job | None]]:
        """Each victim that makes room, with the action that evicted it and the job that it was for."""
        for one in self.plan.evicted:
            if one.actor:
                yield one.pod, one.action, self.job(one.actor)

    def queues_of_stale_gangs(self) -> set[str]:
        """Queues of which the rest of a broken gang goes, for no other job's sake."""
        made_room = (*PREEMPTS, *RECLAIMS)
        gone = [one.pod for one in self.plan.evicted if not one.actor and one.action not in made_room]
        jobs = {group_of(self.before.pods[key]) for key in gone}
        return {policy.queue_of(self.before, job) for job in jobs if job in self.before.groups}

    def job(self, name: str) -> Job | None:
        key, _, system = name.partition("@")
        found = [one for one in self.before.groups if one[1] == key and system in ("", one[0])]
        return found[0] if found else None

    def staying(self, job: Job) -> list[str]:
        """Pods of a job that are on nodes once the plan is carried out; one that is moved counts."""
        return [
            key
            for key in self.before.members[job]
            if key in self.binds
            or (self.before.stays(key) and (key not in self.evicted or key in self.moved))
        ]


Rule = Callable[[Case], Iterator[Violation]]


# -- placing ----------------------------------------------------------------------------------------------------------


def bound_and_evicted(case: Case) -> Iterator[Violation]:
    for key in case.evicted & case.binds.keys():
        yield Violation("bound and evicted in one plan", key)
    doubled = [key for key, count in Counter(case.plan.evictions).items() if count > 1]
    if doubled:
        yield Violation("evicted twice in one plan", doubled[0])


def binds_fit(case: Case) -> Iterator[Violation]:
    rules = (*fits.EXACT, *((needs.attached,) if case.profile != "kai" else ()))
    for key, node in case.binds.items():
        if node not in case.after.nodes:
            yield Violation("bound to a node that is not there", f"{key} to {node}")
            continue
        if key in case.before.home:
            yield Violation("bound although it has a node", key)
        for rule in rules:
            said = rule(case.after, key, node)
            if said:
                yield Violation(f"bound against the rules: {rule.__name__}", f"{key} to {node}: {said}")
        said = needs.volumes(case.before, key, node)
        if said:
            yield Violation("bound against the rules: volumes", f"{key} to {node}: {said}")


def binds_fit_in_order(case: Case) -> Iterator[Violation]:
    """Rules that depend on which pods are there already. What the plan claims and evicts may count or not."""
    rules = fits.IN_ORDER if case.profile != "kai" else (fits.affinity,)
    worlds = [case.before.copy() for _ in range(4)]
    for number, world in enumerate(worlds):
        for key in case.evicted if number & 1 else ():
            world.remove(key)
        for key, node in case.plan.pipelined.items() if number & 2 else ():
            world.place(key, node)
    for key, node in case.binds.items():
        for rule in rules:
            said = [rule(world, key, node) for world in worlds]
            if all(said) and node in case.before.nodes and rule(case.after, key, node):
                yield Violation(f"bound against the rules: {rule.__name__}", f"{key} to {node}: {said[0]}")
        for world in worlds:
            world.place(key, node)


def claims_fit(case: Case) -> Iterator[Violation]:
    """What is promised to waiting pods is there once everything that leaves has left.

    A node that a pod is nominated to is held for it while others leave, whatever else stands in its way there.
    """
    for key, node in case.plan.pipelined.items():
        held = case.before.pods[key]["status"].get("nominatedNodeName") == node
        rules = (fits.room, fits.devices) if held else fits.EXACT
        for rule in rules if node in case.later.nodes else ():
            said = rule(case.later, key, node)
            if said:
                yield Violation(f"claimed against the rules: {rule.__name__}", f"{key} on {node}: {said}")


def devices_are_given_once(case: Case) -> Iterator[Violation]:
    for said in needs.device_problems(case.before, case.plan.claims, case.binds):
        yield Violation("devices of claims", said)


# -- gangs ------------------------------------------------------------------------------------------------------------


def _jobs_bound(case: Case) -> set[Job]:
    """Jobs that get pods."""
    jobs = (group_of(case.before.pods[key]) for key in case.binds)
    return {job for job in jobs if job is not None and job in case.before.groups}


def gangs_are_bound_whole(case: Case) -> Iterator[Violation]:
    for job in _jobs_bound(case):
        said = policy.broken(case.before, job, case.staying(job))
        if said:
            yield Violation("gang bound in part", f"{job[1]}: {said}")


def gangs_are_evicted_whole(case: Case) -> Iterator[Violation]:
    world = case.before
    for job in {group_of(world.pods[key]) for key in case.evicted}:
        if job is None or job not in world.groups:
            continue
        had = [key for key in world.members[job] if world.stays(key)]
        left = case.staying(job)
        if left and not policy.broken(world, job, had) and (said := policy.broken(world, job, left)):
            yield Violation("gang evicted in part", f"{job[1]}: {said}")


def topology_holds(case: Case) -> Iterator[Violation]:
    """The pods of a job with a required topology are in one domain of it."""
    for job in _jobs_bound(case):
        spec = case.before.groups[job]["spec"]
        homes = {case.moved.get(key) or case.after.home[key] for key in case.staying(job)}
        if not _together(case.before, spec, homes):
            yield Violation("topology is not kept", f"{job[1]} on {', '.join(sorted(homes))}")


def _together(world: World, spec: Raw, homes: set[str]) -> bool:
    wish = spec.get("networkTopology") or {}
    if wish.get("mode") == "hard":
        return any(homes <= names for names in _hyper_nodes(world, wish["highestTierAllowed"]))
    level = (spec.get("topologyConstraint") or {}).get("requiredTopologyLevel")
    if level:
        return len({(world.nodes[one]["metadata"].get("labels") or {}).get(level) for one in homes}) <= 1
    return True


def _hyper_nodes(world: World, tier: int) -> Iterator[set[str]]:
    known = world.kind("HyperNode")

    def nodes(name: str) -> set[str]:
        found: set[str] = set()
        for member in known[name]["spec"]["members"] if name in known else ():
            inner = member["selector"]["exactMatch"]["name"]
            found |= {inner} if member["type"] == "Node" else nodes(inner)
        return found

    for name, raw in known.items():
        if raw["spec"]["tier"] <= tier:
            yield nodes(name)


# -- queues -----------------------------------------------------------------------------------------------------------


def limits_hold(case: Case) -> Iterator[Violation]:
    for queue, added, firm_added in _growing(case):
        held = _held(case, queue)
        for name, limit in policy.limits(case.before, queue).items():
            if added.get(name) and held.get(name, Fraction(0)) > limit:
                yield Violation(
                    "queue above its limit", f"{queue}: {name} {float(held[name])} of {float(limit)}"
                )
        if case.profile == "volcano" or not firm_added:
            continue
        held = _held(case, queue, firm=True)
        for name, quota in policy.quotas(case.before, queue).items():
            if firm_added.get(name) and held.get(name, Fraction(0)) > quota:
                words = f"{queue}: {name} {float(held[name])} of {float(quota)}"
                yield Violation("jobs that may not be preempted above the quota", words)


def _growing(case: Case) -> Iterator[tuple[str, dict[str, Fraction], dict[str, Fraction]]]:
    """Queues that get pods, each with what it gets, and what of it for jobs that may not be preempted."""
    by_queue: dict[str, list[str]] = {}
    flat = case.profile == "volcano" and "enableHierarchy" not in str(case.conf)
    for key in case.binds:
        job = group_of(case.before.pods[key])
        if job in case.before.groups:
            above = policy.path(case.before, policy.queue_of(case.before, job))
            for queue in above[:1] if flat else above:
                by_queue.setdefault(queue, []).append(key)
    for queue, keys in by_queue.items():
        firm = [key for key in keys if _firm(case, key)]
        yield (
            queue,
            total(policy.counted(case.after, key, case.profile) for key in keys),
            total(policy.counted(case.after, key, case.profile) for key in firm),
        )


def _firm(case: Case, key: str) -> bool:
    job = group_of(case.before.pods[key])
    return job in case.before.groups and policy.firm(case.before, job, case.profile)


def _held(case: Case, queue: str, *, firm: bool = False) -> dict[str, Fraction]:
    world = case.after
    return total(
        policy.counted(world, key, case.profile)
        for job in world.groups
        if queue in policy.path(world, policy.queue_of(world, job))
        for key in world.members[job]
        if world.stays(key) and key not in case.evicted and (not firm or _firm(case, key))
    )


def closed_queues_take_nothing_new(case: Case) -> Iterator[Violation]:
    world = case.before
    for key in case.binds:
        job = group_of(world.pods[key])
        if job not in world.groups or not policy.is_closed(world, policy.queue_of(world, job)):
            continue
        if not any(one in world.home for one in world.members[job]):
            yield Violation("new job in a closed queue", f"{key} in {policy.queue_of(world, job)}")


# -- victims ----------------------------------------------------------------------------------------------------------


def victims_may_be_evicted(case: Case) -> Iterator[Violation]:
    world = case.before
    for key in case.evicted:
        if not world.stays(key) and key not in case.binds:
            yield Violation("evicted what is not there", key)
    for key, action, _ in case.takers():
        said = policy.protected(world, key, case.profile)
        if said:
            yield Violation("protected pod evicted", f"{key} by {action}: {said}")


def the_right_takes(case: Case) -> Iterator[Violation]:
    world = case.before
    for key, action, taker in case.takers():
        victim = group_of(world.pods[key])
        if taker is None or victim is None or victim not in world.groups or action in MOVES:
            continue
        ours, theirs = policy.queue_of(world, taker), policy.queue_of(world, victim)
        if action in PREEMPTS and taker != victim:
            if ours != theirs:
                yield Violation("preempted in another queue", f"{key} in {theirs} for {taker[1]} in {ours}")
            ranks = [policy.priority(world, one, case.profile) for one in (victim, taker)]
            if ranks[0] >= ranks[1]:
                yield Violation(
                    "preempted by a job that matters no more", f"{key} ({ranks[0]}) for {taker[1]}"
                )
            # Volcano reads it from the pods, which have what an API server would have written there.
            if policy.never_preempts(world, taker) and case.profile == "maniple":
                yield Violation("preempted for a job that never preempts", f"{key} for {taker[1]}")
        if action in RECLAIMS:
            if ours == theirs:
                yield Violation("reclaimed inside a queue", f"{key} for {taker[1]}, both in {ours}")
            above = policy.path(world, ours)
            if any(
                not policy.reclaimable(world, one)
                for one in policy.path(world, theirs)[:1]
                if one not in above
            ):
                yield Violation("reclaimed from a queue that is not reclaimable", f"{key} for {taker[1]}")


def budgets_hold(case: Case) -> Iterator[Violation]:
    if case.profile == "kai" or (case.profile == "volcano" and "pdb" not in str(case.conf)):
        return
    for budget in case.before.kind("PodDisruptionBudget").values():
        lost = [
            key
            for key, _, _ in case.takers()
            if fits.selects(budget["spec"]["selector"], case.before.pods[key])
        ]
        if len(lost) > budget["status"]["disruptionsAllowed"]:
            yield Violation(
                "more evicted than a budget allows", f"{budget['metadata']['name']}: {', '.join(lost)}"
            )


def guarantees_hold(case: Case) -> Iterator[Violation]:
    """No queue falls below what is guaranteed to it because of evictions for others."""
    if case.profile == "kai":
        return
    world = case.before
    losers = {
        queue
        for key, action, _ in case.takers()
        if action in RECLAIMS and (job := group_of(world.pods[key])) in world.groups
        for queue in policy.path(world, policy.queue_of(world, job))[:1]
    }
    for queue in losers:
        had, left = _staying(case, queue, evicted=False), _staying(case, queue, evicted=True)
        for name, promised in policy.guarantees(world, queue).items():
            lost = left.get(name, Fraction(0)) < had.get(name, Fraction(0))
            if lost and left.get(name, Fraction(0)) < promised:
                yield Violation("reclaimed below a guarantee", f"{queue}: {name} {float(left.get(name, 0))}")


def _staying(case: Case, queue: str, *, evicted: bool) -> dict[str, Fraction]:
    """What a queue has on nodes; once its victims are gone, with what its own jobs are given or claim of the room."""
    world = case.before
    given = case.binds.keys() | case.plan.pipelined.keys() if evicted else frozenset()
    return total(
        policy.counted(world, key, case.profile)
        for job in world.groups
        if queue == policy.queue_of(world, job)
        for key in world.members[job]
        if key in given or (world.stays(key) and not (evicted and key in case.evicted))
    )


# -- words ------------------------------------------------------------------------------------------------------------


def every_wait_has_a_reason(case: Case) -> Iterator[Violation]:
    for key, outcome in case.plan.tasks.items():
        if outcome.status == "Pending" and not outcome.reason:
            yield Violation("waits without a reason", key)


RULES: tuple[Rule, ...] = (
    bound_and_evicted, binds_fit, binds_fit_in_order, claims_fit, devices_are_given_once, gangs_are_bound_whole,
    gangs_are_evicted_whole, topology_holds, limits_hold, closed_queues_take_nothing_new, victims_may_be_evicted,
    the_right_takes, budgets_hold, guarantees_hold, every_wait_has_a_reason,
)  # fmt: skip


def judge(case: Case) -> list[Violation]:
    return [violation for rule in RULES for violation in rule(case)]
