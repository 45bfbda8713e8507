"""proportion: shares of queues, what they may take, and who may enter."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.cluster.resources import CPU
from maniple.framework.combine import Vote
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.plugins.fairness.proportion import Proportion
from tests.plugins.opening import event, job, names, queue_row, session_on, task, tasks, use
from tests.support import group, node, pod, queue

GPU = "nvidia.com/gpu"


def work(name: str, count: int, *, of: str, cpu: str = "1", on: str = "", **more: Any) -> list[Object]:
    """A job with `count` pods."""
    pods = [pod(f"{name}-{i}", {"cpu": cpu}, group=name, on=on) for i in range(count)]
    return [group(name, 1, queue=of, **more), *pods]


def opened(
    *objects: Object, cpu: str = "12", strict: bool = False, **more: Any
) -> tuple[Session, Proportion]:
    session = session_on([node("n1", {"cpu": cpu, **more}), *objects], strict=strict)
    return session, Proportion(session, {})


def cpu_of(plugin: Proportion, session: Session, name: str) -> float:
    return float(plugin.deserved(queue_row(session, name))[CPU])


THREE = [
    queue("a", weight=1),
    queue("b", weight=2),
    queue("c", weight=3),
    *work("ja", 1, of="a"),
    *work("jb", 10, of="b"),
    *work("jc", 10, of="c"),
]


def test_queues_deserve_the_cluster_by_weight_up_to_their_requests() -> None:
    session, plugin = opened(*THREE)
    assert [cpu_of(plugin, session, name) for name in "abc"] == pytest.approx([1000, 4400, 6600])


def test_only_queues_with_a_job_take_part() -> None:
    session, plugin = opened(*THREE, queue("idle", weight=1000))
    assert cpu_of(plugin, session, "c") == pytest.approx(6600)
    assert plugin.queue_report(queue_row(session, "idle")) == {}


def test_a_report_shows_what_a_queue_has_and_may_have() -> None:
    session, plugin = opened(
        queue("q", capability={"cpu": "4"}), *work("j", 2, of="q", on="n1"), *work("k", 9, of="q")
    )
    report = plugin.queue_report(queue_row(session, "q"))
    described = {
        key: session.resources.describe(np.asarray(report[key]))
        for key in ("deserved", "allocated", "capability")
    }
    assert described["deserved"]["cpu"] == 4000
    assert described["allocated"] == {"cpu": 2000, "pods": 2}
    assert described["capability"]["cpu"] == 4000
    assert report["share"] == 0.5


def test_the_smaller_share_goes_first_and_priority_before_it() -> None:
    session, plugin = opened(
        queue("full"),
        queue("empty"),
        queue("proud", priority=7),
        *work("jf", 4, of="full", on="n1"),
        *work("je", 4, of="empty"),
        *work("jp", 4, of="proud", on="n1"),
    )
    order = sorted(("full", "empty", "proud"), key=lambda name: plugin.queue_order(queue_row(session, name)))
    assert order == ["proud", "empty", "full"]


def test_a_queue_is_overused_when_nothing_of_what_it_deserves_is_left() -> None:
    session, plugin = opened(queue("q"), *work("j", 2, of="q", on="n1"))
    assert plugin.overused(queue_row(session, "q"))
    session, plugin = opened(queue("q"), *work("j", 2, of="q", on="n1"), *work("k", 1, of="q"))
    assert not plugin.overused(queue_row(session, "q"))


def test_allocatable_counts_tasks_in_a_row() -> None:
    session, plugin = opened(*THREE)
    row, class_ = queue_row(session, "b"), session.classes[session.tasks.class_of[task(session, "jb-0")]]
    assert plugin.allocatable(row, class_, 10) == 4  # 4.4 cpu
    assert plugin.allocatable(row, class_, 3) == 3
    plugin.on_allocate(event(session, "jb-0", "jb-1", "jb-2", "jb-3"))
    assert plugin.allocatable(row, class_, 1) == 0


def test_a_closed_queue_gets_nothing_and_admits_no_job() -> None:
    session, plugin = opened(
        queue("q", state="Closed"), *work("j", 1, of="q", phase="Pending", minResources={"cpu": "1"})
    )
    row, class_ = queue_row(session, "q"), session.classes[0]
    assert plugin.allocatable(row, class_, 1) == 0
    assert not plugin.preemptive(row, tasks(session, "j-0"))
    assert plugin.job_enqueueable(job(session, "j")) is Vote.REJECT
    assert session.refusals.jobs[job(session, "j")] == ["queue q is not open"]


@given(st.integers(1, 30), st.integers(1, 5), st.integers(1, 5), st.integers(0, 12), st.booleans())
def test_allocatable_agrees_with_asking_for_one_task_at_a_time(
    cpu: int, weight: int, request: int, count: int, strict: bool
) -> None:
    session, plugin = opened(
        queue("q", weight=weight),
        queue("r", weight=3),
        *work("j", 12, of="q", cpu=str(request)),
        *work("k", 30, of="r"),
        cpu=str(cpu),
        strict=strict,
    )
    row, class_ = queue_row(session, "q"), session.classes[session.tasks.class_of[task(session, "j-0")]]
    at_once = plugin.allocatable(row, class_, count)
    one_by_one = 0
    while one_by_one < count and plugin.allocatable(row, class_, 1):
        plugin.on_allocate(event(session, f"j-{one_by_one}"))
        one_by_one += 1
    assert at_once == one_by_one
    assert at_once * request * 1000 <= cpu_of(plugin, session, "q") + 0.1


def test_preemptive_adds_the_requests_up() -> None:
    session, plugin = opened(queue("q", capability={"cpu": "2"}), *work("j", 5, of="q"))
    row = queue_row(session, "q")
    assert plugin.preemptive(row, tasks(session, "j-0", "j-1"))
    assert not plugin.preemptive(row, tasks(session, "j-0", "j-1", "j-2"))


def test_tasks_are_reclaimable_while_their_queue_has_more_than_it_deserves() -> None:
    session, plugin = opened(
        queue("rich"),
        queue("poor"),
        *work("jr", 5, of="rich", on="n1"),
        *work("jp", 5, of="poor"),
        pod("stray", {"cpu": "1"}, group="gone", on="n1"),
        cpu="6",
    )
    assert cpu_of(plugin, session, "rich") == 3000
    candidates = tasks(session, "stray", "jr-4", "jr-0", "jr-1")
    assert names(session, plugin.reclaimable(task(session, "jp-0"), candidates)) == ["jr-4", "jr-0"]


@pytest.mark.parametrize(
    ("strict", "victims"), [(False, ["small-0", "cpus-0"]), (True, ["large-0", "small-0"])]
)
def test_reclaim_leaves_a_queue_its_guarantee_except_to_the_letter(strict: bool, victims: list[str]) -> None:
    """Without the large one too little would be left; a resource without a guarantee does not protect its pods."""

    def running(name: str, **requests: str) -> list[Object]:
        return [group(name, 1, queue="safe"), pod(f"{name}-0", requests, group=name, on="n1")]

    session, plugin = opened(
        queue("safe", guarantee={"resource": {GPU: "2"}}),
        queue("asking", weight=9),
        *running("large", cpu="4", **{GPU: "2"}),
        *running("small", cpu="4", **{GPU: "1"}),
        *running("cpus", cpu="4"),
        *work("ask", 12, of="asking"),
        strict=strict,
        **{GPU: "4"},
    )
    candidates = tasks(session, "large-0", "small-0", "cpus-0")
    assert names(session, plugin.reclaimable(task(session, "ask-0"), candidates))[:2] == victims


@given(
    st.lists(st.integers(0, 1), min_size=1, max_size=8), st.lists(st.integers(1, 4), min_size=8, max_size=8)
)
def test_reclaimable_agrees_with_counting_down_one_by_one(owners: list[int], sizes: list[int]) -> None:
    objects = [queue("q0"), queue("q1"), queue("asking", weight=5), *work("ask", 8, of="asking", cpu="2")]
    for index, owner in enumerate(owners):
        objects += work(f"j{index}", 1, of=f"q{owner}", cpu=str(sizes[index]), on="n1")
    session, plugin = opened(*objects)
    candidates = tasks(session, *(f"j{index}-0" for index in range(len(owners))))
    have = {owner: np.zeros(len(session.total)) for owner in (0, 1)}
    for index, owner in enumerate(owners):
        have[owner] += session.classes[session.tasks.class_of[task(session, f"j{index}-0")]].request
    expected = []
    for index, owner in enumerate(owners):
        deserved = plugin.deserved(queue_row(session, f"q{owner}"))
        if not all(h < d or abs(h - d) < 0.1 for h, d in zip(have[owner], deserved, strict=True)):
            have[owner] -= session.classes[session.tasks.class_of[task(session, f"j{index}-0")]].request
            expected.append(f"j{index}-0")
    assert names(session, plugin.reclaimable(task(session, "ask-0"), candidates)) == expected


# -- ceilings -----------------------------------------------------------------------------------------------------


def test_a_guarantee_is_kept_from_all_other_queues() -> None:
    session, plugin = opened(
        queue("safe", guarantee={"resource": {"cpu": "8"}}),
        queue("greedy", weight=9),
        *work("js", 1, of="safe"),
        *work("jg", 20, of="greedy"),
    )
    assert cpu_of(plugin, session, "safe") == 8000
    assert cpu_of(plugin, session, "greedy") == pytest.approx(4000)


def test_a_guarantee_of_an_idle_queue_counts_too() -> None:
    session, plugin = opened(
        queue("idle", guarantee={"resource": {"cpu": "8"}}), queue("q"), *work("j", 20, of="q")
    )
    assert cpu_of(plugin, session, "q") == 4000


def test_a_capability_of_zero_cpu_is_no_limit() -> None:
    session, plugin = opened(queue("q", capability={"cpu": "0", GPU: "1"}), *work("j", 20, of="q"))
    assert cpu_of(plugin, session, "q") == 12000


def gpu_work(name: str, count: int, of: str) -> list[Object]:
    return [group(name, 1, queue=of), *(pod(f"{name}-{i}", {GPU: "1"}, group=name) for i in range(count))]


@pytest.mark.parametrize(("strict", "deserved"), [(False, 0.0), (True, 4000.0)])
def test_a_scalar_that_is_guaranteed_away_limits_others_unless_strict(strict: bool, deserved: float) -> None:
    session, plugin = opened(
        queue("safe", guarantee={"resource": {GPU: "8"}}),
        queue("q"),
        *gpu_work("js", 8, "safe"),
        *gpu_work("j", 8, "q"),
        strict=strict,
        **{GPU: "8"},
    )
    gpu = session.resources.known(GPU)
    assert plugin.deserved(queue_row(session, "q"))[gpu] == deserved
    assert plugin.deserved(queue_row(session, "safe"))[gpu] == 8000


@pytest.mark.parametrize("strict", [False, True])
def test_cpu_that_is_guaranteed_away_and_scalars_under_a_capability_are_limited_in_both_modes(
    strict: bool,
) -> None:
    session, plugin = opened(
        queue("safe", guarantee={"resource": {"cpu": "12"}}),
        queue("q", capability={GPU: "2"}),
        *work("js", 12, of="safe"),
        *work("j", 8, of="q"),
        *gpu_work("k", 8, "q"),
        strict=strict,
        **{GPU: "8"},
    )
    assert cpu_of(plugin, session, "q") == 0
    assert plugin.deserved(queue_row(session, "q"))[session.resources.known(GPU)] == 2000


@pytest.mark.parametrize(("strict", "tasks_allowed"), [(True, 14), (False, 15)])
def test_a_hair_lost_in_rounding_costs_no_task_unless_strict(strict: bool, tasks_allowed: int) -> None:
    """3 of 11 parts of 55 cpu come out as 14999.999999999998 milli-cpu."""
    session, plugin = opened(
        queue("q", weight=3),
        queue("r", weight=8),
        *work("j", 20, of="q"),
        *work("k", 50, of="r"),
        cpu="55",
        strict=strict,
    )
    assert cpu_of(plugin, session, "q") < 15000
    assert plugin.allocatable(queue_row(session, "q"), session.classes[0], 99) == tasks_allowed


# -- the door -----------------------------------------------------------------------------------------------------


def waiting(name: str, minimum: Mapping[str, str] | None, of: str = "q") -> Object:
    spec: dict[str, Any] = {} if minimum is None else {"minResources": dict(minimum)}
    return group(name, 1, queue=of, phase="Pending", **spec)


def test_a_job_enters_while_the_queue_has_room_for_its_minimum() -> None:
    session, plugin = opened(
        queue("q", capability={"cpu": "6"}),
        *work("running", 2, of="q", on="n1", phase="Running", minResources={"cpu": "2"}),
        waiting("fits", {"cpu": "4"}),
        waiting("big", {"cpu": "5", "memory": "1Gi"}),
        waiting("silent", None),
        waiting("strange", {"example.com/x": "1"}),
    )
    votes = {
        name: plugin.job_enqueueable(job(session, name)) for name in ("fits", "big", "silent", "strange")
    }
    assert votes == {"fits": Vote.PERMIT, "big": Vote.REJECT, "silent": Vote.PERMIT, "strange": Vote.REJECT}
    assert session.refusals.jobs[job(session, "big")] == [
        "queue resource quota insufficient: insufficient cpu"
    ]
    assert session.refusals.jobs[job(session, "strange")] == [
        "queue resource quota insufficient: insufficient example.com/x"
    ]


def test_a_job_that_entered_takes_room_and_a_vote_alone_does_not() -> None:
    session, plugin = opened(
        queue("q", capability={"cpu": "6"}), waiting("one", {"cpu": "4"}), waiting("two", {"cpu": "4"})
    )
    one, two = job(session, "one"), job(session, "two")
    assert plugin.job_enqueueable(one) is Vote.PERMIT
    assert plugin.job_enqueueable(two) is Vote.PERMIT
    plugin.job_enqueued(one)
    assert plugin.job_enqueueable(two) is Vote.REJECT


@pytest.mark.parametrize(
    ("running", "room"),
    [
        # admitted, nothing placed: all of its minimum is kept
        (group("r", 2, queue="q", phase="Inqueue", minResources={"cpu": "5"}), 3),
        # one of its pods runs: what is allocated is not kept a second time
        (group("r", 2, queue="q", phase="Inqueue", minResources={"cpu": "2"}), 6),
        # runs with fewer tasks than its minimum: winding down, nothing is kept
        (group("r", 2, queue="q", phase="Running", minResources={"cpu": "5"}), 7),
        (group("r", 1, queue="q", phase="Running", minResources={"cpu": "5"}), 3),
        # what it has beyond its minimum could be given back
        (group("r", 1, queue="q", phase="Running", minResources={"cpu": "0"}), 8),
        # nothing stated: everything is elastic, nothing is kept
        (group("r", 1, queue="q", phase="Running"), 8),
    ],
)
def test_room_at_the_door_follows_what_jobs_have_and_need(running: Object, room: int) -> None:
    """The queue may have 8 cpu; one pod of the job holds 1."""
    sizes = range(1, 13)
    session, plugin = opened(
        queue("q", capability={"cpu": "8"}),
        running,
        pod("r-0", {"cpu": "1"}, group="r", on="n1"),
        *(waiting(f"w{size}", {"cpu": str(size)}) for size in sizes),
    )
    entering = [size for size in sizes if plugin.job_enqueueable(job(session, f"w{size}")) is Vote.PERMIT]
    assert entering[-1] == room


# -- undoing ------------------------------------------------------------------------------------------------------


def state(session: Session, plugin: Proportion) -> list[Any]:
    return [
        (row, report["share"], np.asarray(report["allocated"]).tolist())
        for row in session.queues.facts
        if (report := plugin.queue_report(row))
    ]


def test_undoing_restores_shares_to_the_bit() -> None:
    session, plugin = opened(*THREE)
    use(session, plugin)
    before = state(session, plugin)
    transaction = Transaction(session)
    transaction.allocate(tasks(session, "jb-0", "jb-1", "jb-2"), np.zeros(3, dtype=np.intp))
    transaction.pipeline(tasks(session, "jc-0"), np.zeros(1, dtype=np.intp))
    transaction.evict(tasks(session, "jb-1"), "test")
    assert state(session, plugin) != before
    transaction.discard()
    assert state(session, plugin) == before


def test_tasks_of_no_job_change_nothing() -> None:
    session, plugin = opened(*THREE, pod("stray", {"cpu": "1"}, group="gone", on="n1"))
    before = state(session, plugin)
    plugin.on_deallocate(event(session, "stray"))
    assert state(session, plugin) == before
