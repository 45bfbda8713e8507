"""drf between jobs: dominant shares, and who may be preempted for fairness."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.plugins.fairness.drf import Drf
from tests.plugins.opening import event, job, names, session_on, task, tasks, use
from tests.support import group, node, pod, queue


def work(name: str, count: int, requests: dict[str, str], on: str = "n1") -> list[Object]:
    return [
        group(name, 1, queue="q"),
        *(pod(f"{name}-{i}", requests, group=name, on=on) for i in range(count)),
    ]


def big_cluster(*objects: Object) -> list[Object]:
    """100 cpu, 400 Gi, 220 pods."""
    half = {"cpu": "50", "memory": "200Gi", "pods": "110"}
    return [node("n1", half), node("n2", half), queue("q"), *objects]


@pytest.mark.parametrize(("cpu", "share"), [("1", 0.11), ("100m", 0.05)])
def test_the_share_is_that_of_the_dominant_resource_and_pods_are_one(cpu: str, share: float) -> None:
    session = session_on(big_cluster(*work("j", 11, {"cpu": cpu, "memory": "1Gi"})))
    assert Drf(session, {}).job_order(job(session, "j")) == pytest.approx(share)


def test_a_resource_that_the_cluster_does_not_have_does_not_count() -> None:
    session = session_on(big_cluster(*work("j", 1, {"cpu": "1", "example.com/x": "5"})))
    assert Drf(session, {}).job_order(job(session, "j")) == pytest.approx(0.01)


def test_shares_follow_placements_and_undoing_restores_them_to_the_bit() -> None:
    session = session_on(
        big_cluster(*work("j", 1, {"cpu": "1"}), *work("k", 3, {"cpu": "7", "memory": "1Gi"}, on=""))
    )
    plugin = Drf(session, {})
    use(session, plugin)
    row = job(session, "k")
    transaction = Transaction(session)
    transaction.allocate(tasks(session, "k-0", "k-1"), np.zeros(2, dtype=np.intp))
    assert plugin.job_order(row) == pytest.approx(0.14)
    transaction.pipeline(tasks(session, "k-2"), np.zeros(1, dtype=np.intp))
    assert plugin.job_order(row) == pytest.approx(0.21)
    transaction.evict(tasks(session, "k-0"), "test")
    assert plugin.job_order(row) == pytest.approx(0.14)
    transaction.discard()
    assert plugin.job_order(row) == 0.0


def test_tasks_of_no_job_change_nothing() -> None:
    session = session_on(
        big_cluster(*work("j", 1, {"cpu": "1"}), pod("stray", {"cpu": "9"}, group="gone", on="n1"))
    )
    plugin = Drf(session, {})
    plugin.on_deallocate(event(session, "stray"))
    assert plugin.job_order(job(session, "j")) == pytest.approx(0.01)
    assert not len(plugin.preemptable(task(session, "stray"), tasks(session, "j-0")))


def test_victims_come_from_jobs_that_stay_at_or_above_the_askers_share() -> None:
    session = session_on(
        big_cluster(
            *work("rich", 5, {"cpu": "2"}),
            *work("poor", 1, {"cpu": "4"}, on=""),
            pod("stray", {"cpu": "9"}, group="gone", on="n1"),
        )
    )
    candidates = tasks(session, "stray", *(f"rich-{i}" for i in range(5)))
    # the asker would have 4; the others 8, 6, 4 (equal is allowed), 2, 0
    victims = Drf(session, {}).preemptable(task(session, "poor-0"), candidates)
    assert names(session, victims) == ["rich-0", "rich-1", "rich-2"]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(0, 6)), max_size=8),
    st.integers(0, 9),
)
def test_victims_agree_with_taking_them_off_one_by_one(
    placed: list[tuple[int, int, int]], asked: int
) -> None:
    objects = big_cluster(
        *(group(f"g{i}", 1, queue="q") for i in range(3)), *work("ask", 1, {"cpu": str(asked)}, on="")
    )
    for index, (owner, cpu, memory) in enumerate(placed):
        objects.append(
            pod(f"p{index}", {"cpu": str(cpu), "memory": f"{4 * memory}Gi"}, group=f"g{owner}", on="n1")
        )
    session = session_on(objects)
    total: list[int] = session.total.tolist()

    def share(amounts: list[int]) -> float:
        return max(amount / all_of_it for amount, all_of_it in zip(amounts, total, strict=True))

    def request(name: str) -> list[int]:
        found: list[int] = session.classes[session.tasks.class_of[task(session, name)]].request.tolist()
        return found

    have = {i: [0] * len(total) for i in range(3)}
    for index, (owner, _, _) in enumerate(placed):
        have[owner] = [a + b for a, b in zip(have[owner], request(f"p{index}"), strict=True)]
    ours, expected = share(request("ask-0")), []
    for index, (owner, _, _) in enumerate(placed):
        have[owner] = [a - b for a, b in zip(have[owner], request(f"p{index}"), strict=True)]
        theirs = share(have[owner])
        if ours < theirs or abs(ours - theirs) <= 1e-6:
            expected.append(f"p{index}")
    candidates = tasks(session, *(f"p{index}" for index in range(len(placed))))
    assert names(session, Drf(session, {}).preemptable(task(session, "ask-0"), candidates)) == expected


def test_without_the_switch_queues_are_none_of_its_business() -> None:
    session = session_on(big_cluster())
    assert not hasattr(Drf(session, {}), "queue_order")
    assert not hasattr(Drf(session, {}), "reclaimable")
