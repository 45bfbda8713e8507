"""Follows a cluster until it settles and checks the course: progress, useless evictions, idle room, input
order."""

import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from types import FrameType

from maniple.planner import Plan
from tests.soak import fits, needs, policy
from tests.soak.amounts import Amounts, total
from tests.soak.clusters import Scenario
from tests.soak.follower import Follower
from tests.soak.judge import MOVES, Case, Violation, judge
from tests.soak.policy import Job
from tests.soak.world import DEVICES, FRACTION, GPU_MEMORY, World, annotations, group_of

ROUNDS = 40
QUIET = 3  # rounds in which nothing is decided, with much time between them: rest
PATIENCE = 10  # rounds until the job that others were evicted for has to run
SECONDS = 20  # of the processor, for one plan; the largest takes one or two


@dataclass
class Course:
    """What happened: every violation once by its kind, and how many rounds it took."""

    violations: list[Violation] = field(default_factory=list)
    rounds: int = 0
    evictions: int = 0

    def add(self, found: list[Violation]) -> None:
        known = {one.kind for one in self.violations}
        for one in found:
            if one.kind not in known:
                self.violations.append(replace(one, round=self.rounds))
                known.add(one.kind)


class NeverEnds(Exception):  # noqa: N818
    """A plan took longer than any plan of so small a cluster can."""


@contextmanager
def _in_time(seconds: int) -> Iterator[None]:
    """Ends what takes more of the processor's time; a busy machine makes no difference."""

    def stop(_: int, __: FrameType | None) -> None:
        raise NeverEnds

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def follow(
    scenario: Scenario, rounds: int = ROUNDS, *, shuffles: int = 1, seconds: int = SECONDS, until: str = ""
) -> Course:
    """Plan and carry out until the cluster settles, each act for so many rounds, or `until` a violation of
    that kind.

    Every plan has so many seconds; the first `shuffles` rounds are planned again with the objects in another
    order.
    """
    course, follower = Course(), Follower(scenario)
    for act in range(scenario.acts + 1):
        if act and not follower.end_a_job():
            break
        try:
            rests = _act(course, follower, scenario, rounds, shuffles, seconds, until)
        except Exception as error:
            course.add([_exception(error)])
            break
        if not rests:
            break
    return course


def _act(
    course: Course,
    follower: Follower,
    scenario: Scenario,
    rounds: int,
    shuffles: int,
    seconds: int,
    until: str,
) -> bool:
    """From one event to rest; whether it came to that."""
    debts, quiet, last = Debts(), 0, course.rounds + rounds
    while course.rounds < last:
        with _in_time(seconds):
            case, found = _round(follower, scenario, shuffle=course.rounds < shuffles)
        plan = case.plan
        course.evictions += len(plan.evictions)
        course.add([*found, *debts.look(case, course.rounds)])
        idle = not (plan.binds or plan.held or plan.evictions or follower.leaving)
        quiet = quiet + 1 if idle else 0
        if quiet == QUIET:
            course.add([*at_rest(case), *debts.unpaid()])
            return not any(one.kind == until for one in course.violations)
        if any(one.kind == until for one in course.violations):
            return False
        follower.carry_out(plan)
        follower.wait(long=idle)
        course.rounds += 1
    course.add([Violation("no rest", f"after {rounds} rounds {_doing(plan)}")])
    return False


def _round(follower: Follower, scenario: Scenario, *, shuffle: bool) -> tuple[Case, list[Violation]]:
    case = Case(scenario.profile, follower.objects, follower.plan(), scenario.conf)
    found = judge(case)
    if shuffle:
        found += _shuffled(follower, case.plan, scenario.seed)
    return case, found


def _doing(plan: Plan) -> str:
    return f"binds {sorted(plan.binds)[:4]}, evicts {sorted(plan.evictions)[:4]}"


def _exception(error: Exception) -> Violation:
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-2] if isinstance(error, NeverEnds) else frames[-1]
    if isinstance(error, NeverEnds):
        return Violation("never ends", f"in {last.name} ({_place(last)})")
    words = str(error)
    if isinstance(error, AssertionError):
        return Violation(f"assertion: {_gist(words)}", words)
    return Violation(f"exception: {type(error).__name__} in {last.name}", f"{words} ({_place(last)})")


def _place(frame: traceback.FrameSummary) -> str:
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _gist(words: str) -> str:
    """The words of an assertion without the names in it."""
    for gist in ("given more", "an object was refused", "given", "not true to its tasks"):
        if gist in words:
            return gist
    return words[:40]


def _shuffled(follower: Follower, plan: Plan, seed: int) -> Iterator[Violation]:
    objects = list(follower.objects)
    Random(seed).shuffle(objects)
    other = follower.plan(objects)
    for name in ("binds", "held", "pipelined"):
        if getattr(plan, name) != getattr(other, name):
            yield Violation(
                "another plan when shuffled", f"{name}: {getattr(plan, name)} or {getattr(other, name)}"
            )
            return
    if sorted(plan.evictions) != sorted(other.evictions):
        yield Violation("another plan when shuffled", f"evictions: {plan.evictions} or {other.evictions}")
        return
    for key, task in plan.tasks.items():
        if task.reason != other.tasks[key].reason:
            yield Violation(
                "another reason when shuffled", f"{key}: {task.reason} | {other.tasks[key].reason}"
            )
            return


# -- evictions in vain ------------------------------------------------------------------------------------------------


@dataclass
class Debt:
    """An eviction, and the jobs of which one has to be bound because of it."""

    victim: str
    action: str
    taker: Job | None
    served: frozenset[Job]
    since: int

    @property
    def creditors(self) -> frozenset[Job | None]:
        """The jobs that the room was made for: those that claim places, where the action does not name one."""
        return frozenset([self.taker]) if self.taker is not None else self.served or frozenset([None])


class Debts:
    """What evictions were for, until it is paid."""

    def __init__(self) -> None:
        self._open: list[Debt] = []
        self._took: set[tuple[Job, Job]] = set()  # who took from whom

    def look(self, case: Case, number: int) -> list[Violation]:
        bound = {job for key in case.binds if (job := group_of(case.before.pods[key])) is not None}
        # A job that loses pods to another has lost its right to what was made free for it, too.
        lost = {
            group_of(case.before.pods[victim]) for victim, action, _ in case.takers() if action not in MOVES
        }
        self._open = [
            debt
            for debt in self._open
            if not bound & ({debt.taker} | debt.served)
            and not all(job in lost or _outranked(case, job, bound) for job in debt.creditors)
        ]
        late = [debt for debt in self._open if number - debt.since > PATIENCE]
        self._open = [debt for debt in self._open if debt not in late]
        waiting = {
            job
            for key in case.plan.pipelined
            if key not in case.evicted and (job := group_of(case.before.pods[key])) is not None
        }
        found = [_vain(debt) for debt in late]
        for victim, action, taker in case.takers():
            if taker not in bound or not _limited(case, taker):
                self._open.append(Debt(victim, action, taker, frozenset(waiting), number))
            loser = group_of(case.before.pods[victim])
            if taker is None or loser is None or action in MOVES:
                continue
            if (loser, taker) in self._took:
                found.append(Violation("two jobs evict each other", f"{taker[1]} and {loser[1]}"))
            self._took.add((taker, loser))
        # As when a job ends: its queue has less, and a right to more, than when it lost pods.
        shrunk = case.queues_of_stale_gangs()
        self._took = {pair for pair in self._took if policy.queue_of(case.before, pair[1]) not in shrunk}
        return found

    def unpaid(self) -> list[Violation]:
        return [_vain(debt) for debt in self._open]


def _limited(case: Case, taker: Job | None) -> bool:
    """Whether the job's queues have limits: its victims may have been needed for the queue, not for a node."""
    if taker is None:
        return True
    world = case.before
    return policy.firm(world, taker, case.profile) or any(
        policy.limits(world, queue) for queue in policy.path(world, policy.queue_of(world, taker))
    )


def _outranked(case: Case, taker: Job | None, bound: set[Job]) -> bool:
    """A more important job of the same queue has got places, and may well have needed these."""
    world = case.before
    if taker is None or taker not in world.groups:
        return False
    rank, queue = policy.priority(world, taker, case.profile), policy.queue_of(world, taker)
    return any(
        policy.queue_of(world, job) == queue and policy.priority(world, job, case.profile) > rank
        for job in bound
        if job in world.groups
    )


def _vain(debt: Debt) -> Violation:
    taker = debt.taker[1] if debt.taker is not None else "nothing"
    return Violation("evicted in vain", f"{debt.victim} by {debt.action} for {taker} in round {debt.since}")


# -- at rest ----------------------------------------------------------------------------------------------------------


def at_rest(case: Case) -> list[Violation]:
    """What must not be once nothing is decided any more."""
    found = [
        Violation("claimed for ever", f"{key} on {node}") for key, node in sorted(case.plan.pipelined.items())
    ]
    return [*found[:1], *_idle_room(case)]


def _idle_room(case: Case) -> Iterator[Violation]:
    for job in case.before.groups:
        if _simple(case, job) and (homes := _room_for(case, job)):
            yield Violation("waits although there is room", f"{job[1]} fits on {', '.join(homes)}")
            return


def _simple(case: Case, job: Job) -> bool:
    """A job of equal pending pods without constraints between pods, which its queue would admit."""
    world, group = case.before, case.before.groups[job]
    keys, spec = _waiting(world, job), group["spec"]
    if not keys or len(keys) < _needed(world, job):
        return False
    divided = ("minTaskMember", "subGroups", "subGroupPolicy", "networkTopology", "topologyConstraint")
    if any(spec.get(name) for name in divided) or not _plain(world, keys):
        return False
    queue = policy.queue_of(world, job)
    known = bool(policy.queue_named(world, queue)) and not policy.is_closed(world, queue)
    return known and _queue_allows(case, job) and (case.profile != "volcano" or _volcano_lets_in(case, job))


def _waiting(world: World, job: Job) -> list[str]:
    return [key for key in world.members[job] if key not in world.home]


def _needed(world: World, job: Job) -> int:
    """How many pods the job needs at once: what it lacks of its minimum, or one more."""
    return max(policy.least(world, job) - (len(world.members[job]) - len(_waiting(world, job))), 1)


def _plain(world: World, keys: list[str]) -> bool:
    for key in keys:
        pod = world.pods[key]
        wishes = ("topologySpreadConstraints", "resourceClaims", *(("volumes",) if len(keys) > 1 else ()))
        if any(pod["spec"].get(name) for name in wishes) or pod["spec"].get("schedulingGates"):
            return False
        if set(pod["spec"].get("affinity") or {}) - {"nodeAffinity"}:
            return False
        if {FRACTION, GPU_MEMORY, DEVICES} & annotations(pod).keys() or "nominatedNodeName" in pod["status"]:
            return False
    first = world.asks[keys[0]]
    return all(world.asks[key] == first for key in keys)


def _volcano_lets_in(case: Case, job: Job) -> bool:
    """Admission is a matter of policy if queues compete: only one queue alone is decidable."""
    world = case.before
    admitted = world.groups[job].get("status", {}).get("phase") in ("Inqueue", "Running", "Unknown")
    return admitted and len({policy.queue_of(world, one) for one in world.groups}) == 1


def _queue_allows(case: Case, job: Job) -> bool:
    world = case.before
    asked = total(
        policy.counted(world, key, case.profile, claims=True)
        for key in _waiting(world, job)[: _needed(world, job)]
    )
    for queue in policy.path(world, policy.queue_of(world, job)):
        held = _held(world, queue, case.profile, firm=False)
        checks = [(policy.limits(world, queue), held)]
        if policy.firm(world, job, case.profile):
            checks.append((policy.quotas(world, queue), _held(world, queue, case.profile, firm=True)))
        for allowed, has in checks:
            if any(
                asked.get(name, 0) and has.get(name, 0) + asked[name] > limit
                for name, limit in allowed.items()
            ):
                return False
    return not any(policy.guarantees(world, name) for _, name in world.queues)


def _held(world: World, queue: str, profile: str, *, firm: bool) -> Amounts:
    return total(
        policy.counted(world, key, profile, claims=True)
        for job in world.groups
        if queue in policy.path(world, policy.queue_of(world, job))
        for key in world.members[job]
        if key in world.home and (not firm or policy.firm(world, job, profile))
    )


def _room_for(case: Case, job: Job) -> list[str]:
    """Nodes that could take the least of a job right now, one pod after the other; none if they do not suffice."""
    world = case.before.copy()
    homes: list[str] = []
    for key in _waiting(world, job)[: _needed(world, job)]:
        rules = (*fits.ALL, needs.volumes, needs.attached)
        home = next((node for node in world.nodes if not fits.refusals(world, key, node, rules)), None)
        if home is None:
            return []
        world.place(key, home)
        homes.append(home)
    return homes
