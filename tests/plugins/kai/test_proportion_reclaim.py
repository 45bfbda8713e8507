"""Taking back from other queues, for KAI's proportion: one test per rule, and the rules written out slowly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.framework.transactions.transaction import Transaction
from tests.plugins.kai.fairness_scenes import UNLIMITED, Scene, job, node, queue

TOP = queue("top", UNLIMITED)


def leaf(name: str, quota: float = 0.0, **more: Any) -> Any:
    return queue(name, quota, parent=more.pop("parent", "top"), **more)


def allowed(scene: Scene, actor: str, *victims: str, tasks: Sequence[str] = ()) -> bool:
    """As the reclaim action asks: the trial begins, victims are evicted, the validator is asked, and all is undone."""
    scene.session.hooks.on_job_solution_start()
    transaction = scene.evict(*victims)
    try:
        return scene.session.hooks.reclaim_scenario_validator(scene.outcome(actor, *victims, tasks=tasks))
    finally:
        transaction.discard()


# -- the gate -------------------------------------------------------------------------------------------------------


def can_reclaim(scene: Scene, name: str) -> bool:
    return scene.session.hooks.can_reclaim_resources(scene.job(name))


def test_a_job_may_try_while_its_queue_stays_within_its_fair_share() -> None:
    full = job("r", "b", running=8)
    scene = Scene(
        node(),
        TOP,
        leaf("a", 2),
        leaf("b"),
        full,
        job("j", "a", pending=1, gpus=2),
        job("k", "a", pending=1, gpus=9),
    )
    assert can_reclaim(scene, "j")
    assert not can_reclaim(scene, "k")


def test_the_fair_share_has_to_do_in_every_resource() -> None:
    no_cpu = leaf("a", 2, cpu={"quota": 0, "overQuotaWeight": 0})
    scene = Scene(node(), TOP, no_cpu, leaf("b"), job("r", "b", running=8), job("j", "a", pending=1))
    assert not can_reclaim(scene, "j")


def test_what_is_not_preemptible_has_to_stay_within_the_quota_too() -> None:
    parts = (node(), TOP, leaf("a", 1, weight=9), leaf("b"), job("r", "b", running=8))
    assert can_reclaim(Scene(*parts, job("j", "a", pending=1, gpus=2)), "j")
    assert not can_reclaim(Scene(*parts, job("j", "a", pending=1, gpus=2, firm=True)), "j")
    assert can_reclaim(Scene(*parts, job("j", "a", pending=1, gpus=1, firm=True)), "j")


def test_a_job_of_no_queue_of_the_tree_reclaims_nothing() -> None:
    assert not can_reclaim(Scene(node(), TOP, job("j", "gone", pending=1)), "j")


# -- who may be taken from ------------------------------------------------------------------------------------------


def test_a_queue_gives_what_it_has_beyond_what_it_may_have() -> None:
    """Each may have 4 of 8."""
    parts = (node(), TOP, leaf("a"), leaf("b"), job("r", "b", running=6, pending=4), job("j", "a", pending=4))
    scene = Scene(*parts)
    assert allowed(scene, "j", "r-0", "r-1", tasks=["j-0", "j-1"])
    assert not allowed(scene, "j", "r-0", "r-1", "r-2", tasks=["j-0", "j-1", "j-2"])


def test_the_last_chunk_may_leave_a_queue_with_less() -> None:
    scene = Scene(
        node(),
        TOP,
        [leaf("a"), leaf("b")],
        [job("gang", "b", running=3, minimum=3), job("r", "b", running=2, pending=4)],
        job("j", "a", pending=4, minimum=3),
    )
    # b has 5 of the 4 that it may have: the gang goes whole, and nothing more
    assert allowed(scene, "j", "gang-0", "gang-1", "gang-2", tasks=["j-0", "j-1", "j-2"])
    assert not allowed(scene, "j", "gang-0", "gang-1", "gang-2", "r-0", tasks=["j-0", "j-1", "j-2"])


def test_tasks_beyond_the_minimum_go_one_by_one() -> None:
    scene = Scene(
        node(),
        TOP,
        [leaf("a"), leaf("b")],
        [job("elastic", "b", running=5, minimum=1), job("more", "b", pending=4)],
        job("j", "a", pending=4, minimum=3),
    )
    victims = ["elastic-0", "elastic-1", "elastic-2"]
    # of three victims the first is the core: two go one by one and then the core, before which 3 of 4 would be left
    assert not allowed(scene, "j", *victims, tasks=["j-0"])
    assert allowed(scene, "j", "elastic-4", tasks=["j-0"])


def test_each_pod_set_keeps_its_own_minimum_as_core() -> None:
    scene = Scene(
        node(),
        TOP,
        [leaf("a"), leaf("b")],
        [job("g", "b", running=5, sub_groups=[("one", 1, 2), ("two", 2, 3)]), job("more", "b", pending=4)],
        job("j", "a", pending=4),
    )
    # all five: "one" has one beyond its minimum, "two" one; the last chunk is the core of three, leaving 3
    # before it
    assert not allowed(scene, "j", "g-0", "g-1", "g-2", "g-3", "g-4", tasks=["j-0"])
    # only two of "two": both are core, one chunk
    assert allowed(scene, "j", "g-2", "g-3", tasks=["j-0"])


def test_a_reclaimer_within_its_quota_takes_from_queues_above_theirs() -> None:
    """b may have all 8 since its priority is higher, but its quota is 4."""
    parts = (node(), TOP, leaf("b", 4, priority=200), job("r", "b", running=8), job("j", "a", pending=2))
    assert allowed(Scene(*parts, leaf("a", 2)), "j", "r-0", "r-1")
    assert not allowed(Scene(*parts, leaf("a", 1)), "j", "r-0", "r-1")


def test_no_queue_goes_below_its_quota_before_a_chunk() -> None:
    scene = Scene(
        node(), TOP, [leaf("a", 4), leaf("b", 4)], job("r", "b", running=4), job("j", "a", pending=1)
    )
    assert not allowed(scene, "j", "r-0")


def test_moved_victims_lose_nothing_unless_consolidation_is_not_allowed() -> None:
    parts = (
        node(),
        node("n2"),
        TOP,
        leaf("a", 4),
        leaf("b", 4),
        job("r", "b", running=4),
        job("j", "a", pending=1),
    )
    for option, expected in ((True, True), (False, False)):
        scene = Scene(*parts, options={"allowConsolidatingReclaim": option})
        scene.session.hooks.on_job_solution_start()
        transaction = scene.evict("r-0")
        transaction.move(scene.rows("r-0"), np.array([1], dtype=np.intp))
        outcome = scene.outcome("j", "r-0")
        assert scene.session.hooks.reclaim_scenario_validator(outcome) is expected


def test_victims_with_nothing_lost_still_have_to_leave_the_reclaimer_within_bounds() -> None:
    scene = Scene(node(), TOP, [leaf("a", 1), leaf("b")], job("j", "a", pending=2, firm=True))
    assert not allowed(scene, "j", tasks=["j-0", "j-1"])
    assert allowed(scene, "j", tasks=["j-0"])


def test_amounts_from_before_the_trial_count() -> None:
    """The eviction itself must not make the queue look as if it had nothing to give."""
    scene = Scene(
        node(), TOP, [leaf("a"), leaf("b")], job("r", "b", running=5, pending=4), job("j", "a", pending=4)
    )
    scene.session.hooks.on_job_solution_start()
    scene.evict("r-0")
    outcome = scene.outcome("j", "r-0", tasks=["j-0"])
    assert scene.session.hooks.reclaim_scenario_validator(outcome)
    scene.session.hooks.on_job_solution_start()  # from here on b has 4
    assert not scene.session.hooks.reclaim_scenario_validator(outcome)


# -- levels ---------------------------------------------------------------------------------------------------------


def departments(
    *jobs: Any, quotas: tuple[float, float] = (4, 4), inner: tuple[float, ...] = (0, 0, 0)
) -> Scene:
    """d1 holds a1 and a2, d2 holds b."""
    return Scene(
        node(),
        [queue("d1", quotas[0]), queue("d2", quotas[1])],
        [
            queue("a1", inner[0], parent="d1"),
            queue("a2", inner[1], parent="d1"),
            queue("b", inner[2], parent="d2"),
        ],
        jobs,
    )


def test_queues_of_different_departments_are_compared_as_departments() -> None:
    scene = departments(
        job("r1", "a1", running=3), job("r2", "a2", running=3, pending=4), job("j", "b", pending=4)
    )
    # a1 has less than its 2 + 1 would make a fault of, but d1 has 6 of 4
    assert allowed(scene, "j", "r1-0", "r2-0", tasks=["j-0", "j-1"])
    assert not allowed(scene, "j", "r1-0", "r1-1", "r2-0", tasks=["j-0", "j-1", "j-2"])


def test_queues_of_one_department_are_compared_directly() -> None:
    scene = departments(
        job("r", "a1", running=4, pending=2), job("j", "a2", pending=4), job("other", "b", running=4)
    )
    assert allowed(scene, "j", "r-0", "r-1", tasks=["j-0", "j-1"])
    assert not allowed(scene, "j", "r-0", "r-1", "r-2", tasks=["j-0", "j-1", "j-2"])


def test_two_leaves_of_a_department_add_up() -> None:
    """d1 has 5 of 4: one may go, of either leaf, and then no other."""
    scene = departments(
        job("r1", "a1", running=3), job("r2", "a2", running=2, pending=2), job("j", "b", pending=4)
    )
    assert allowed(scene, "j", "r1-0", tasks=["j-0"])
    assert not allowed(scene, "j", "r1-0", "r2-0", tasks=["j-0", "j-1"])


def test_what_a_department_loses_itself_makes_room_in_it() -> None:
    """d1 is due 4 and has 4: one of its own goes, one of d2's 5, and it is not beyond its share."""
    scene = departments(
        job("r", "a1", running=4, pending=2),
        job("s", "b", running=5),
        job("j", "a2", pending=4),
        quotas=(4, 4),
    )
    assert allowed(scene, "j", "r-0", "s-0", tasks=["j-0"])
    assert not allowed(scene, "j", "s-0", tasks=["j-0"])


# -- saturation -----------------------------------------------------------------------------------------------------


def test_a_queue_beyond_its_share_takes_only_from_siblings_that_are_more_so() -> None:
    """Both are due 4. a has 4 and wants a fifth; b has 8."""
    parts = (
        node("n1", 8),
        node("n2", 4),
        TOP,
        [leaf("a", 4, weight=0), leaf("b", 4, weight=0)],
        [job("has", "a", running=4), job("r", "b", running=8)],
        job("j", "a", pending=3),
    )
    scene = Scene(*parts)
    assert allowed(scene, "j", "r-0", tasks=["j-0"])  # 5/4 against 7/4
    assert not allowed(scene, "j", "r-0", "r-1", tasks=["j-0", "j-1"])  # 6/4 against 6/4
    strict = Scene(*parts, arguments={"reclaimerSaturationMultiplier": "1.5"})
    assert not allowed(strict, "j", "r-0", tasks=["j-0"])  # 7.5/4 against 7/4


def test_a_sibling_that_is_due_nothing_is_no_measure() -> None:
    """Not even when nothing is left to it."""
    scene = Scene(
        node(),
        TOP,
        [leaf("a", 2, weight=0), leaf("b", 0, weight=0)],
        [job("has", "a", running=2), job("r", "b", running=3)],
        job("j", "a", pending=3),
    )
    assert allowed(scene, "j", "r-0", "r-1")
    assert allowed(scene, "j", "r-0", "r-1", "r-2")


def test_only_siblings_from_which_something_is_taken_are_looked_at() -> None:
    """c has little of its share; b gives."""
    scene = Scene(
        node(),
        TOP,
        [leaf("a", 2, weight=0), leaf("b", 0, weight=0), leaf("c", 4, weight=0)],
        [job("has", "a", running=2), job("r", "b", running=5), job("s", "c", running=1, pending=3)],
        job("j", "a", pending=1),
    )
    assert allowed(scene, "j", "r-0")


def test_resources_matter_that_the_job_asks_for_or_that_victims_have() -> None:
    """a is far beyond its share of cpu, b is not."""
    without = {"cpu": "0"}
    scene = Scene(
        node(),
        TOP,
        [leaf("a", 2, cpu={"quota": 500, "overQuotaWeight": 0}), leaf("b", 0)],
        [
            job("has", "a", running=1, gpus=0),
            job("r", "b", running=5, requests=without),
            job("s", "b", running=3),
        ],
        [job("j", "a", pending=1, requests=without), job("k", "a", pending=1)],
    )
    assert allowed(scene, "j", "r-0")
    assert not allowed(scene, "j", "s-0")
    assert not allowed(scene, "k", "r-0")


def test_strictly_slices_do_not_make_gpus_matter() -> None:
    slice_ = {"nvidia.com/mig-1g.10gb": "1"}
    machine = node("n1", 0, extra={"nvidia.com/mig-1g.10gb": "6"})
    parts = (
        machine,
        TOP,
        [leaf("a", 2, weight=0), leaf("b", 2, weight=0)],
        [
            job("has", "a", running=2, gpus=0, requests=slice_),
            job("r", "b", running=4, gpus=0, requests=slice_),
        ],
        job("j", "a", pending=2, gpus=0, requests=slice_),
    )
    assert not allowed(Scene(*parts), "j", "r-0")  # 4/2 against 3/2
    assert allowed(Scene(*parts, strict=True), "j", "r-0")


def test_what_is_not_preemptible_stays_within_quotas_all_the_way_up() -> None:
    for firm in (False, True):
        scene = Scene(
            node(),
            [queue("d1", 1), queue("d2", 0, weight=0)],
            [queue("a", 4, parent="d1"), queue("b", 0, parent="d2")],
            [job("r", "b", running=8), job("j", "a", pending=2, firm=firm)],
        )
        assert allowed(scene, "j", "r-0", "r-1") is not firm


# -- against the rules written out ----------------------------------------------------------------------------------


@dataclass
class Plain:
    """One resource: GPUs. Queues are names, amounts numbers."""

    parent: dict[str, str]
    allocated: dict[str, float]
    quota: dict[str, float]
    may_have: dict[str, float]
    fair: dict[str, float]

    def path(self, name: str) -> list[str]:
        way = [name]
        while self.parent[way[-1]]:
            way.append(self.parent[way[-1]])
        return way

    def allows(self, actor: str, request: float, losses: list[tuple[str, list[float]]]) -> bool:
        left: dict[str, float] = {}
        for victim, chunks in losses:
            mine, theirs = actor, victim
            for mine, theirs in zip(reversed(self.path(actor)), reversed(self.path(victim)), strict=False):
                if mine != theirs:
                    break
            for chunk in chunks:
                has = left.get(theirs, self.allocated[theirs])
                too_much = has > self.may_have[theirs]
                promised = self.allocated[mine] + request <= self.quota[mine] and has > self.quota[theirs]
                if not too_much and not promised:
                    return False
                for one in self.path(victim):
                    left[one] = left.get(one, self.allocated[one]) - chunk
        for one in self.path(actor):
            has = left.get(one, self.allocated[one]) + request
            for sibling, rest in left.items():
                if sibling == one or self.parent[sibling] != self.parent[one]:
                    continue
                part, other = self._part(has, self.fair[one]), self._part(rest, self.fair[sibling])
                if part > 1 and self.fair[sibling] > 0 and part >= other:
                    return False
        return True

    def _part(self, has: float, fair: float) -> float:
        return has / fair if fair else (float("inf") if has > 0 else 0.0)


QUEUES = ("a", "b", "c")
few = st.integers(0, 6)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["d1", "d2"]), min_size=3, max_size=3),
    st.lists(few, min_size=5, max_size=5),
    st.lists(st.tuples(st.sampled_from("bc"), st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=4),
    st.integers(1, 4),
    few,
)
def test_it_is_the_rules_written_out(
    homes: list[str], quotas: list[int], running: list[tuple[str, int, int]], wanted: int, has: int
) -> None:
    names = ["d1", "d2", *QUEUES]
    parents = dict(zip(names, ["", "", *homes], strict=True))
    queues = [queue(name, quota, parent=parents[name]) for name, quota in zip(names, quotas, strict=True)]
    holders = [
        job(f"r{n}", home, running=count, minimum=minimum) for n, (home, count, minimum) in enumerate(running)
    ]
    scene = Scene(
        node("n1", 12),
        queues,
        holders,
        job("has", "a", running=has) if has else [],
        job("j", "a", pending=wanted, minimum=wanted),
        *[job(f"more-{one}", one, pending=2) for one in QUEUES],
    )
    plain = Plain(
        parents,
        {name: scene.allocated(name) for name in names},
        {name: scene.account(name).quota[2] / 100 for name in names},
        {name: scene.account(name).allocatable[2] / 100 for name in names},
        {name: scene.fair(name) for name in names},
    )
    for count in range(1, len(running) + 1):
        victims = [f"r{n}-{k}" for n, (_, size, _) in enumerate(running[:count]) for k in range(size)]
        losses: dict[str, list[float]] = {}
        for home, size, minimum in running[:count]:
            core = min(size, minimum)
            losses.setdefault(home, []).extend([1.0] * (size - core) + [float(core)])
        expected = plain.allows("a", wanted, list(losses.items()))
        assert allowed(scene, "j", *victims) is expected


def test_a_transaction_that_is_undone_leaves_the_books_of_the_trial_alone() -> None:
    scene = Scene(node(), TOP, [leaf("a"), leaf("b")], job("r", "b", running=8), job("j", "a", pending=1))
    scene.session.hooks.on_job_solution_start()
    for _ in range(3):
        transaction: Transaction = scene.evict("r-0", "r-1")
        transaction.discard()
    assert scene.allocated("b") == 8
    assert allowed(scene, "j", "r-0")
