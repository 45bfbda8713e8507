"""The order of victims, against the pairwise rule that it stands for."""

from functools import cmp_to_key
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.victim_order import in_victim_order
from maniple.objects.meta import Object
from tests.plugins.opening import names, session_on, task, tasks, use
from tests.support import group, node, pod, queue

QUEUES = ("qa", "qb", "qc")
JOBS = ("j0", "j1", "j2", "j3")


class Orders:
    """Keys by name, as a plugin would give them."""

    name = "priority"

    def __init__(
        self, session: Session, jobs: dict[str, int], queues: dict[str, int], near: dict[str, int]
    ) -> None:
        self.session = session
        self.jobs = jobs
        self.queues = queues
        self.near = near

    def job_order(self, row: int) -> int:
        return self.jobs.get(self.session.job_key(row).partition("/")[2], 0)

    def queue_order(self, row: int) -> int:
        return self.queues[self.session.queue_name(row)]

    def victim_queue_order(self, row: int, _asking: int) -> int:
        return self.near[self.session.queue_name(row)]

    def task_order(self, rows: TaskRows) -> Any:
        return -self.session.tasks.priority[rows]


small = st.integers(0, 1)


@st.composite
def scenes(draw: st.DrawFn) -> tuple[list[Object], dict[str, int], dict[str, int], dict[str, int]]:
    objects: list[Object] = [node("n1", {"cpu": "100"}), *(queue(name) for name in QUEUES)]
    objects += [group(name, 1, queue=draw(st.sampled_from(QUEUES))) for name in JOBS]
    forms = draw(st.sampled_from([["x-y-{}"], ["p{}"], ["x-y-{}", "p{}"]]))
    for number in range(draw(st.integers(2, 8))):
        name = draw(st.sampled_from(forms)).format(number)
        of = draw(st.sampled_from([*JOBS, "gone"]))
        day = draw(st.integers(1, 2))
        objects.append(
            pod(name, group=of, on="n1", priority=draw(small), uid=name, created=f"2026-01-0{day}T00:00:00Z")
        )
    objects += [group("asking", 1, queue="qa"), pod("asks", group="asking")]
    keys = [{name: draw(small) for name in kind} for kind in (JOBS, QUEUES, QUEUES)]
    return objects, keys[0], keys[1], keys[2]


@settings(max_examples=60)
@given(scenes(), st.booleans())
def test_it_is_the_order_of_the_pairwise_rule(
    scene: tuple[list[Object], dict[str, int], dict[str, int], dict[str, int]], orphaned: bool
) -> None:
    objects, jobs, queues, near = scene
    if orphaned:  # the asker's own job is not there
        objects = [one for one in objects if one.key != "default/asking"]
    session = session_on(objects)
    use(session, Orders(session, jobs, queues, near))
    asker = task(session, "asks")
    rows = np.array([row for row in range(len(session.tasks)) if row != asker])
    found = in_victim_order(session, asker, rows).tolist()
    assert sorted(found) == rows.tolist()
    numbered = all(session.tasks.index[row] >= 0 for row in rows)
    if numbered or (session.tasks.index[rows] < 0).all():  # otherwise the pairwise rule may have circles

        def compare(one: int, other: int) -> int:
            return -1 if goes_first(session, asker, one, other) else 1

        assert found == sorted(rows.tolist(), key=cmp_to_key(compare))


def goes_first(session: Session, asker: int, one: int, other: int) -> bool:
    jobs = session.tasks.job
    served = set(session.jobs.rows.tolist())
    mine, theirs = int(jobs[one]), int(jobs[other])
    if mine == theirs:
        return not task_before(session, one, other)
    if mine not in served or theirs not in served:
        return (
            not task_before(session, one, other) if {mine, theirs}.isdisjoint(served) else mine not in served
        )
    queues = int(session.jobs.queue[mine]), int(session.jobs.queue[theirs])
    if int(jobs[asker]) in served and queues[0] != queues[1]:
        near = [session.hooks.victim_queue_order(row, 0) for row in queues]
        if near[0] != near[1]:
            return near[0] < near[1]
        return not session.queue_key_order(queues[0]) < session.queue_key_order(queues[1])
    orders = session.hooks.job_order(mine), session.hooks.job_order(theirs)
    return orders[0] > orders[1] if orders[0] != orders[1] else not task_before(session, one, other)


def task_before(session: Session, one: int, other: int) -> bool:
    tasks_ = session.tasks
    rows = (one, other)
    priorities = [-int(tasks_.priority[row]) for row in rows]
    numbers = [int(tasks_.index[row]) for row in rows]
    last = [(float(tasks_.created[row]), int(tasks_.rank[row])) for row in rows]
    if priorities[0] != priorities[1]:
        return priorities[0] < priorities[1]
    if min(numbers) >= 0 and numbers[0] != numbers[1]:
        return numbers[0] < numbers[1]
    return last[0] < last[1]


def test_one_victim_is_in_order() -> None:
    session = session_on([node("n1"), queue("qa"), group("j0", 1, queue="qa"), pod("p", group="j0", on="n1")])
    assert names(session, in_victim_order(session, 0, tasks(session, "p"))) == ["p"]
    assert len(in_victim_order(session, 0, np.zeros(0, dtype=np.int64))) == 0


@pytest.mark.parametrize("wide", [False, True])
def test_numbers_in_names_decide_only_among_jobs_where_all_have_one(wide: bool) -> None:
    """a-b-9 is older than a-b-1; a task without a number beside them makes age decide."""
    extra = [pod("plain", group="j1", on="n1", created="2026-01-02T00:00:00Z")] if wide else []
    session = session_on(
        [
            node("n1"),
            queue("qa"),
            group("j0", 1, queue="qa"),
            group("j1", 1, queue="qa"),
            pod("a-b-9", group="j0", on="n1", created="2026-01-01T00:00:00Z"),
            pod("a-b-1", group="j0", on="n1", created="2026-01-03T00:00:00Z"),
            *extra,
        ]
    )
    asked = ["a-b-9", "a-b-1", *(["plain"] if wide else [])]
    found = names(session, in_victim_order(session, task(session, "a-b-1"), tasks(session, *asked)))
    assert found == (["a-b-1", "plain", "a-b-9"] if wide else ["a-b-9", "a-b-1"])
