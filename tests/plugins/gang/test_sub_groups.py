"""gang and sub-groups: policies need their sub-jobs, sub-jobs need their tasks."""

from typing import Any

import numpy as np
import pytest

from maniple.framework.combine import Vote
from maniple.framework.groups.tree import PodSet
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.plugins.gang.gang import Gang
from tests.networks import ONE, nodes, policy
from tests.plugins.opening import job, names, session_on, tasks, use
from tests.support import group, pod, queue


def part(name: str, value: str, **fields: Any) -> Object:
    return pod(name, ONE, group="g", labels={"part": value}, **fields)


def opened(*pods: Object, minimum: int = 1, **policy_fields: Any) -> tuple[Session, Gang, int]:
    objects = [queue("default"), *nodes("n1", cpu=99), *pods]
    session = session_on([*objects, group("g", minimum, subGroupPolicy=[policy(**policy_fields)])])
    plugin = Gang(session, {})
    use(session, plugin)
    return session, plugin, job(session, "g")


def place(session: Session, *pods: str, pipelined: bool = False) -> None:
    transaction = Transaction(session)
    for name in pods:
        (transaction.pipeline if pipelined else transaction.allocate)(
            tasks(session, name), np.zeros(1, dtype=np.intp)
        )


def pod_set(session: Session, name: str) -> PodSet:
    return next(one for one in session.groups.root(job(session, "g")).members if one.name == name)


def test_a_job_with_too_few_sub_groups_is_not_valid() -> None:
    _, plugin, one = opened(part("p0", "x"), least=2)
    assert plugin.job_valid(one) == "NotEnoughPodsOfTask: policy 'p' has 1 sub-groups and needs 2"
    _, plugin, one = opened(part("p0", "x"), part("p1", "y"), least=2)
    assert plugin.job_valid(one) is None


def test_a_job_is_ready_when_its_policies_have_their_sub_groups() -> None:
    session, plugin, one = opened(*(part(f"p{i}", "xy"[i % 2]) for i in range(4)), minimum=2, size=2, least=1)
    place(session, "p0", "p1")
    assert not plugin.job_ready(one)  # two tasks, but one in each sub-group
    assert plugin.job_pipelined(one) is Vote.REJECT
    place(session, "p2", pipelined=True)
    assert not plugin.job_ready(one)
    assert plugin.job_pipelined(one) is Vote.PERMIT
    place(session, "p3")
    assert plugin.job_ready(one)


def test_a_policy_that_needs_no_sub_groups_holds_nothing_up() -> None:
    session, plugin, one = opened(part("p0", "x"), part("p1", "y"), size=2, least=0)
    place(session, "p0")
    assert plugin.job_ready(one)


def test_a_sub_job_is_ready_with_its_size_and_orders_behind_those_that_lack_something() -> None:
    session, plugin, _ = opened(part("p0", "x"), part("p1", "x"), size=2)
    one = pod_set(session, "p-x")
    assert (plugin.pod_set_ready(one), plugin.pod_set_order(one)) == (False, 0)
    assert (plugin.pod_set_lack(one), plugin.pod_set_lack_pipelined(one)) == (2, 2)
    place(session, "p0")
    place(session, "p1", pipelined=True)
    assert not plugin.pod_set_ready(one)
    assert plugin.pod_set_pipelined(one) is Vote.PERMIT
    assert (plugin.pod_set_lack(one), plugin.pod_set_lack_pipelined(one)) == (1, 0)


def test_a_sub_job_that_is_ready_orders_last() -> None:
    session, plugin, _ = opened(part("p0", "x"), size=1)
    place(session, "p0")
    assert plugin.pod_set_order(pod_set(session, "p-x")) == 1


def test_waiting_best_effort_tasks_count_for_their_sub_job() -> None:
    session, plugin, _ = opened(part("p0", "x"), pod("p1", group="g", labels={"part": "x"}), size=2)
    assert plugin.pod_set_lack(pod_set(session, "p-x")) == 1


def test_a_job_lacks_its_minimum() -> None:
    session, plugin, one = opened(*(part(f"p{i}", "x") for i in range(4)), minimum=3)
    assert (plugin.job_lack(one), plugin.job_lack_pipelined(one)) == (3, 3)
    place(session, "p0")
    place(session, "p1", pipelined=True)
    assert (plugin.job_lack(one), plugin.job_lack_pipelined(one)) == (2, 1)


def test_without_policies_the_sub_job_is_the_job() -> None:
    session = session_on([queue("default"), group("g", 2), part("p0", "x"), part("p1", "x")])
    plugin = Gang(session, {})
    only = session.groups.root(job(session, "g")).members[0]
    assert (plugin.pod_set_lack(only), plugin.pod_set_lack_pipelined(only)) == (2, 2)


@pytest.mark.parametrize(
    ("least", "minimum", "expected"),
    [
        (0, 0, ["x0", "x1", "y0", "y1", "y2"]),
        (2, 0, ["y2"]),  # only what is beyond the size of a sub-group
        (1, 0, ["y0", "y1", "y2"]),  # one sub-group may go, whole
        (1, 4, ["y2"]),  # but the job needs the tasks
    ],
)
def test_what_a_job_can_lose_leaves_its_policies_their_sub_groups(
    least: int, minimum: int, expected: list[str]
) -> None:
    running = [
        part(f"{value}{i}", value, on="n1") for value, count in (("x", 2), ("y", 3)) for i in range(count)
    ]
    session, plugin, one = opened(*running, minimum=minimum, size=2, least=least)
    rows = tasks(session, "x0", "x1", "y0", "y1", "y2")
    assert names(session, plugin.surplus(one, rows)) == expected
