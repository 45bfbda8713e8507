"""capacity on random trees of queues: ceilings hold, sums add up, undo is exact, victims follow the rule."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.cluster.resources import PODS
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.framework.victim_order import in_victim_order
from maniple.objects.meta import Object
from maniple.plugins.fairness.capacity import Capacity
from maniple.plugins.fairness.queue_lineage import lineage
from tests.plugins.fairness.capacity_scenes import GPU, child, opened, running, work
from tests.plugins.opening import names, task, tasks
from tests.support import queue

QUEUES = [f"q{i}" for i in range(7)]
RESOURCES = ("cpu", "memory", GPU)
OFFERED = {"cpu": "100", "memory": "100", GPU: "100"}

lists = st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 6), max_size=3).map(
    lambda amounts: {name: str(amount) for name, amount in amounts.items()}
)
requests = st.dictionaries(st.sampled_from(RESOURCES), st.integers(1, 2), min_size=1, max_size=2).map(
    lambda amounts: {name: str(amount) for name, amount in amounts.items()}
)


@st.composite
def trees(draw: st.DrawFn) -> list[Object]:
    """Each queue below the root or below one before it."""
    made = [queue("root")]
    for place, name in enumerate(QUEUES):
        parent = draw(st.sampled_from(["", *QUEUES[:place]]))
        spec = {"deserved": draw(lists), "capability": draw(lists), "guarantee": {"resource": draw(lists)}}
        made.append(child(name, parent, priority=draw(st.integers(0, 1)), **spec))
    return made


@st.composite
def scenes(draw: st.DrawFn, *, on: str = "") -> list[Object]:
    """A tree with a job of three equal tasks in some queues."""
    objects = draw(trees())
    for number in range(draw(st.integers(1, 6))):
        of = draw(st.sampled_from(QUEUES))
        objects += work(f"j{number}", 3, draw(requests), of=of, on=on)
    return objects


def below(session: Session) -> dict[int, set[int]]:
    """By queue, itself and all queues below it."""
    found = {row: {row} for row in session.queues.facts}
    for row, above in lineage(session).above.items():
        for ancestor in above:
            found[ancestor].add(row)
    return found


def assert_sums(session: Session, plugin: Capacity) -> None:
    jobs = session.jobs
    for row, members in below(session).items():
        own = jobs.rows[np.isin(jobs.queue[jobs.rows], list(members))]
        assert np.array_equal(
            np.asarray(plugin.queue_report(row)["allocated"]), jobs.allocated[:, own].sum(axis=1)
        )


def reports(session: Session, plugin: Capacity) -> list[Any]:
    told = [plugin.queue_report(row) for row in session.queues.facts]
    return [(np.asarray(one["allocated"]).tolist(), one["share"]) for one in told]


@settings(max_examples=60)
@given(scenes(), st.data())
def test_no_queue_exceeds_its_ceiling_and_sums_add_up_and_return(
    objects: list[Object], data: st.DataObject
) -> None:
    session, plugin = opened(*objects, total=OFFERED, tree=True)
    before = reports(session, plugin)
    transaction = Transaction(session)
    for _ in range(data.draw(st.integers(1, 12))):
        waiting = [row for row in range(len(session.tasks)) if session.tasks.status[row] == 0]
        if not waiting:
            break
        row = data.draw(st.sampled_from(waiting))
        class_ = session.classes[session.tasks.class_of[row]]
        if plugin.allocatable(int(session.jobs.queue[session.tasks.job[row]]), class_, 1):
            transaction.allocate(np.array([row]), np.zeros(1, dtype=np.intp))
        elif len(transaction) and data.draw(st.booleans()):
            transaction.rollback(len(transaction) - 1)
        assert_sums(session, plugin)
        for queue_ in session.queues.facts:
            report = plugin.queue_report(queue_)
            allocated, ceiling = np.asarray(report["allocated"]), np.asarray(report["capability"])
            assert (np.delete(allocated, PODS) <= np.delete(ceiling, PODS)).all()
    transaction.discard()
    assert reports(session, plugin) == before


@settings(max_examples=60)
@given(scenes(), st.integers(1, 3))
def test_as_many_fit_at_once_as_one_after_the_other(objects: list[Object], count: int) -> None:
    session, plugin = opened(*objects, total=OFFERED, tree=True)
    rows = tasks(session, "j0-0", "j0-1", "j0-2")
    class_ = session.classes[session.tasks.class_of[rows[0]]]
    of = int(session.jobs.queue[session.tasks.job[rows[0]]])
    at_once = plugin.allocatable(of, class_, count)
    placed, transaction = 0, Transaction(session)
    for row in rows[:count]:
        if plugin.allocatable(of, class_, 1):
            transaction.allocate(np.array([row]), np.zeros(1, dtype=np.intp))
            placed += 1
    assert at_once == placed


@settings(max_examples=60)
@given(scenes(on="n1"), st.randoms(use_true_random=False))
def test_the_order_of_queues_does_not_depend_on_where_one_starts(objects: list[Object], random: Any) -> None:
    session, _ = opened(*objects, total=OFFERED, tree=True)
    inner = lineage(session).inner
    leaves = [row for row in session.queues.facts if row not in inner]
    order = sorted(leaves, key=session.queue_key_order)
    shuffled = list(leaves)
    random.shuffle(shuffled)
    assert sorted(shuffled, key=session.queue_key_order) == order
    keys = [session.queue_key_order(row) for row in order]
    assert all(one < other for one, other in pairwise(keys))


# -- victims, read off the written rule -------------------------------------------------------------------------------


def meaning(amounts: Mapping[str, str]) -> dict[str, int]:
    return {name: int(amount) for name, amount in amounts.items()}


class Rule:
    """Who may be taken, with amounts as plain dictionaries."""

    def __init__(self, session: Session, levels: int) -> None:
        self.levels = levels
        self.above = {
            session.queue_name(row): [session.queue_name(ancestor) for ancestor in above]
            for row, above in lineage(session).above.items()
        }
        self.deserved: dict[str, dict[str, int]] = {}
        self.guarantee: dict[str, dict[str, int]] = {}
        for row, found in session.queues.objects.items():
            spec: Any = found.spec  # type: ignore[attr-defined]
            guarantee, deserved = meaning(spec.guarantee.resource), meaning(spec.deserved)
            names_of_both = {*guarantee, *deserved}
            self.guarantee[session.queue_name(row)] = guarantee
            self.deserved[session.queue_name(row)] = {
                name: max(guarantee.get(name, 0), deserved.get(name, 0)) for name in names_of_both
            }
        self.has: dict[str, dict[str, int]] = {name: dict.fromkeys(RESOURCES, 0) for name in self.above}

    def add(self, of: str, request: Mapping[str, int], sign: int = 1) -> None:
        for name in (of, *self.above[of]):
            self.add_to(name, request, sign)

    def add_to(self, name: str, request: Mapping[str, int], sign: int) -> None:
        for resource, amount in request.items():
            self.has[name][resource] += sign * amount

    def immediate(self, name: str, request: Mapping[str, int]) -> bool:
        return not any(self.deserved[name].get(resource, 0) > 0 for resource in request)

    def exceeds(self, name: str, request: Mapping[str, int]) -> bool:
        deserved = self.deserved[name]
        known = [r for r in request if (deserved.get(r, 0) > 0 if r in ("cpu", "memory") else r in deserved)]
        return any(self.has[name][resource] > deserved[resource] for resource in known)

    def victims(
        self, asker: str, wanted: Mapping[str, int], candidates: Sequence[tuple[str, str, Mapping[str, int]]]
    ) -> list[str]:
        return [name for name, of, request in candidates if self.takes(asker, wanted, of, request)]

    def takes(self, asker: str, wanted: Mapping[str, int], of: str, request: Mapping[str, int]) -> bool:
        if not set(wanted) & set(request):
            return False
        if any(self.has[of][r] - request.get(r, 0) < amount for r, amount in self.guarantee[of].items()):
            return False
        if self.immediate(of, request):
            shared = set(self.above[asker][: self.levels]) & set(self.above[of][: self.levels]) - {"root"}
            if shared and self.immediate(asker, wanted):
                return False
        elif not self.exceeds(of, request):
            return False
        looked_at = []
        for level in range(min(self.levels, len(self.above[of]))):
            ancestor = self.above[of][level]
            if ancestor != "root" and self.above[asker][level : level + 1] != [ancestor]:
                looked_at.append(ancestor)
        if not all(self.immediate(name, request) or self.exceeds(name, request) for name in looked_at):
            return False
        for name in (of, *looked_at):
            self.add_to(name, request, -1)
        return True


@settings(max_examples=60)
@given(
    trees(),
    st.lists(st.tuples(st.sampled_from(QUEUES), requests), min_size=1, max_size=5),
    requests,
    st.integers(0, 3),
)
def test_victims_are_those_of_the_written_rule(
    objects: list[Object], jobs: list[tuple[str, dict[str, str]]], wanted: dict[str, str], levels: int
) -> None:
    inner = {one.spec.parent for one in objects}  # type: ignore[attr-defined]
    leaves = [name for name in QUEUES if name not in inner]
    asker, *others = [leaves[0], *leaves]
    objects = [*objects, *work("asks", 1, wanted, of=asker)]
    taken: list[tuple[str, str, dict[str, str]]] = []
    for number, (drawn, request) in enumerate(jobs):
        of = others[QUEUES.index(drawn) % len(others)]
        objects += running(f"j{number}", 2, request, of=of)
        taken += [(f"j{number}-{i}", of, request) for i in range(2)]
    # To the letter: by default an asker leaves alone what its queue would have too much of.
    arguments = {"ancestorReclaimLevel": levels}
    session, plugin = opened(*objects, total=OFFERED, tree=True, arguments=arguments, strict=True)
    rule = Rule(session, levels)
    by_name = {name: (name, of, meaning(request)) for name, of, request in taken}
    for _, of, needs in by_name.values():
        rule.add(of, needs)
    rows = tasks(session, *by_name)
    every = names(session, in_victim_order(session, task(session, "asks-0"), rows))
    found = names(session, plugin.reclaimable(task(session, "asks-0"), rows))
    assert found == rule.victims(asker, meaning(wanted), [by_name[name] for name in every])
