"""gang: minimums of jobs and of roles, what is lacking, and who may be taken."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.cluster.statuses import READY
from maniple.framework.combine import Vote
from maniple.framework.configuration.loading import PluginOption
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.plugins.gang.conformance import Conformance
from maniple.plugins.gang.gang import Gang
from tests.plugins.opening import job, names, session_on, task, tasks, use
from tests.support import group, node, pod, queue

SMALL = {"cpu": "1"}


def gang_of(minimum: int, *pods: Object, strict: bool = False, **spec: Any) -> tuple[Session, Gang, int]:
    session = session_on(
        [node("n1", {"cpu": "100"}), queue("q"), group("g", minimum, queue="q", **spec), *pods], strict=strict
    )
    plugin = Gang(session, {})
    use(session, plugin)
    return session, plugin, job(session, "g")


def place(session: Session, *pods: str, pipelined: bool = False) -> None:
    transaction = Transaction(session)
    for name in pods:
        (transaction.pipeline if pipelined else transaction.allocate)(
            tasks(session, name), np.zeros(1, dtype=np.intp)
        )


def test_a_job_is_ready_with_its_minimum_and_orders_behind_those_that_lack_something() -> None:
    session, plugin, row = gang_of(2, *(pod(f"p{i}", SMALL, group="g") for i in range(3)))
    assert (plugin.job_ready(row), plugin.job_order(row), plugin.job_starving(row)) == (False, 0, True)
    place(session, "p0")
    assert not plugin.job_ready(row)
    place(session, "p1")
    assert (plugin.job_ready(row), plugin.job_order(row), plugin.job_starving(row)) == (True, 1, False)


def test_pipelined_tasks_count_for_pipelined_and_starving_but_not_for_ready() -> None:
    session, plugin, row = gang_of(2, *(pod(f"p{i}", SMALL, group="g") for i in range(2)))
    place(session, "p0")
    assert plugin.job_pipelined(row) is Vote.REJECT
    place(session, "p1", pipelined=True)
    assert plugin.job_pipelined(row) is Vote.PERMIT
    assert not plugin.job_ready(row)
    assert not plugin.job_starving(row)


def test_waiting_best_effort_tasks_count_for_ready_but_not_against_starving() -> None:
    _, plugin, row = gang_of(2, pod("p0", SMALL, group="g", on="n1"), pod("p1", group="g"))
    assert plugin.job_ready(row)
    assert plugin.job_starving(row)


def test_finished_tasks_count_and_failed_ones_do_not() -> None:
    _, plugin, row = gang_of(1, pod("p0", SMALL, group="g", on="n1", phase="Succeeded"))
    assert plugin.job_ready(row)
    _, plugin, row = gang_of(1, pod("p0", SMALL, group="g", on="n1", phase="Failed"))
    assert not plugin.job_ready(row)


def test_a_job_with_too_few_usable_tasks_is_not_valid() -> None:
    _, plugin, row = gang_of(
        2, pod("p0", SMALL, group="g"), pod("p1", SMALL, group="g", on="n1", phase="Failed")
    )
    assert plugin.job_valid(row) == "NotEnoughTasks: the gang has 1 usable tasks and needs 2"


ROLES = [
    pod("chief", SMALL, group="g", role="chief"),
    pod("w0", SMALL, group="g", role="worker"),
    pod("w1", SMALL, group="g", role="worker"),
    pod("w2", SMALL, group="g", role="worker"),
]


def test_every_role_needs_its_minimum() -> None:
    session, plugin, row = gang_of(3, *ROLES, minTaskMember={"chief": 1, "worker": 2})
    place(session, "w0", "w1", "w2")
    assert plugin.job_order(row) == 1  # the count alone is there
    assert not plugin.job_ready(row)
    assert plugin.job_pipelined(row) is Vote.REJECT
    place(session, "chief", pipelined=True)
    assert not plugin.job_ready(row)
    assert plugin.job_pipelined(row) is Vote.PERMIT


def test_role_minimums_above_the_jobs_minimum_are_not_looked_at() -> None:
    session, plugin, row = gang_of(2, *ROLES, minTaskMember={"chief": 1, "worker": 4})
    assert plugin.job_valid(row) is None
    place(session, "w0", "w1")
    assert plugin.job_ready(row)


def test_a_role_with_too_few_tasks_makes_the_job_invalid() -> None:
    _, plugin, row = gang_of(3, *ROLES, minTaskMember={"chief": 2, "worker": 1})
    assert plugin.job_valid(row) == "NotEnoughPodsOfTask: role 'chief' has 1 usable tasks and needs 2"
    _, plugin, row = gang_of(3, *ROLES, minTaskMember={"nobody": 1})
    assert plugin.job_valid(row) == "NotEnoughPodsOfTask: role 'nobody' has 0 usable tasks and needs 1"


def test_a_role_with_exactly_its_minimum_of_tasks_is_enough() -> None:
    _, plugin, row = gang_of(4, *ROLES, minTaskMember={"chief": 1, "worker": 3})
    assert plugin.job_valid(row) is None


def test_tasks_without_a_role_may_be_named_in_a_minimum() -> None:
    session, plugin, row = gang_of(
        2, pod("p0", SMALL, group="g"), pod("w0", SMALL, group="g", role="worker"), minTaskMember={"": 1}
    )
    place(session, "w0")
    assert plugin.shortfall(row, -1, 2) == 1
    place(session, "p0")
    assert plugin.job_ready(row)


def test_shortfall_is_what_the_minimum_lacks_and_one_for_extras() -> None:
    session, plugin, row = gang_of(
        3, *(pod(f"p{i}", SMALL, group="g") for i in range(5)), pod("be", group="g")
    )
    assert plugin.shortfall(row, -1, 6) == 2  # 3 - the waiting best-effort task
    assert plugin.shortfall(row, -1, 1) == 1
    place(session, "p0", "p1")
    assert plugin.shortfall(row, -1, 6) == 1


def test_while_another_role_lacks_tasks_all_of_this_one_may_be_placed() -> None:
    session, plugin, row = gang_of(3, *ROLES, minTaskMember={"chief": 1, "worker": 2})
    chief, worker = (int(session.tasks.role[task(session, name)]) for name in ("chief", "w0"))
    assert plugin.shortfall(row, worker, 4) == 4
    place(session, "chief")
    assert plugin.shortfall(row, worker, 4) == 2
    assert plugin.shortfall(row, chief, 4) == 4


@st.composite
def gangs(draw: st.DrawFn) -> tuple[int, dict[str, int], list[tuple[str, str]]]:
    members = draw(
        st.lists(
            st.tuples(st.sampled_from(["", "a", "b"]), st.sampled_from(["waits", "runs", "free"])),
            min_size=1,
            max_size=8,
        )
    )
    minimums = draw(st.dictionaries(st.sampled_from(["", "a", "b", "c"]), st.integers(0, 3), max_size=3))
    return draw(st.integers(0, 8)), minimums, members


@given(gangs())
def test_shortfall_never_promises_too_much(shape: tuple[int, dict[str, int], list[tuple[str, str]]]) -> None:
    """With one task of the role less than the shortfall, the job is not ready yet."""
    minimum, minimums, members = shape
    pods = [
        pod(f"p{i}", {} if kind == "free" else SMALL, group="g", role=role, on="n1" if kind == "runs" else "")
        for i, (role, kind) in enumerate(members)
    ]
    session, plugin, row = gang_of(minimum, *pods, minTaskMember=minimums)
    if plugin.job_ready(row):
        assert plugin.shortfall(row, -1, 8) == 1
        return
    for role in ("", "a", "b"):
        waiting = [f"p{i}" for i, (r, kind) in enumerate(members) if r == role and kind == "waits"]
        if not waiting:
            continue
        number = int(session.tasks.role[task(session, waiting[0])])
        shortfall = plugin.shortfall(row, number, len(members))
        assert 1 <= shortfall <= len(members)
        transaction = Transaction(session)
        for count, name in enumerate(waiting, start=1):
            transaction.allocate(tasks(session, name), np.zeros(1, dtype=np.intp))
            assert count >= shortfall or not plugin.job_ready(row)
        transaction.discard()


def test_victims_are_what_a_job_has_beyond_its_minimum() -> None:
    """Minimum 3, 5 ready, 4 of them looked at: the first two are allowed."""
    pods = [pod(f"p{i}", SMALL, group="g", on="n1") for i in range(5)]
    session, plugin, _ = gang_of(3, *pods, pod("stray", SMALL, group="gone", on="n1"), strict=True)
    candidates = tasks(session, "stray", "p4", "p1", "p3", "p0")
    for answer in (plugin.preemptable, plugin.reclaimable):
        assert names(session, given_up(answer, candidates)) == ["p4", "p1"]
        assert not len(given_up(answer, candidates[:1]))
    assert names(session, plugin.unified_evictable(0, candidates)) == ["stray", "p4", "p1", "p3", "p0"]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=3),
    st.randoms(use_true_random=False),
)
def test_victims_agree_with_counting_down_one_by_one(shapes: list[tuple[int, int]], random: Any) -> None:
    objects = [node("n1", {"cpu": "100"}), queue("q")]
    for index, (minimum, size) in enumerate(shapes):
        objects.append(group(f"g{index}", minimum, queue="q"))
        objects += [pod(f"g{index}p{i}", SMALL, group=f"g{index}", on="n1") for i in range(size)]
    session = session_on(objects, strict=True)
    plugin = Gang(session, {})
    rows = np.flatnonzero(session.tasks.status >= 0).tolist()
    random.shuffle(rows)
    left = {row: session.ready(row) for row in session.jobs.rows.tolist()}
    expected = []
    for row in rows:
        of_job = int(session.tasks.job[row])
        if left[of_job] > session.jobs.minimum[of_job]:
            left[of_job] -= 1
            expected.append(row)
    assert given_up(plugin.preemptable, np.array(rows, dtype=np.int64)).tolist() == expected


def test_counts_of_the_session_are_what_ready_means() -> None:
    session, _, row = gang_of(1, pod("p0", SMALL, group="g", on="n1"))
    assert session.ready(row) == int(session.jobs.counts[READY][:, row].sum())


@pytest.mark.parametrize("action", ["preemptable", "reclaimable"])
def test_no_candidates_means_no_victims(action: str) -> None:
    _, plugin, _ = gang_of(1, strict=True)
    assert not len(given_up(getattr(plugin, action), np.zeros(0, dtype=np.int64)))


def test_unless_strict_gangs_are_spared_by_the_search_and_not_by_a_vote() -> None:
    session, plugin, row = gang_of(
        3, *(pod(f"p{i}", SMALL, group="g", on="n1", uid=f"{i}") for i in range(5))
    )
    use(session, Conformance(session, {}))
    rows = tasks(session, "p0", "p1", "p2", "p3", "p4")
    assert plugin.preemptable(0, rows) is None
    assert plugin.reclaimable(0, rows) is None
    assert names(session, plugin.surplus(row, rows)) == ["p3", "p4"]


def test_without_other_votes_gang_gives_up_what_jobs_have_beyond_their_minimum() -> None:
    session, plugin, _ = gang_of(3, *(pod(f"p{i}", SMALL, group="g", on="n1", uid=f"{i}") for i in range(5)))
    rows = tasks(session, "p4", "p3", "p2")
    for point in ("preemptable", "reclaimable"):
        assert names(session, given_up(getattr(plugin, point), rows)) == ["p4", "p3"]
    silent = PluginOption("conformance", {"enablePreemptable": False})
    session.use([[(PluginOption("gang"), plugin), (silent, Conformance(session, {}))]])
    assert names(session, given_up(plugin.preemptable, rows)) == ["p4", "p3"]
    assert plugin.reclaimable(0, rows) is None


def test_surplus_leaves_every_role_its_minimum() -> None:
    roles = ["ps", "ps", "worker", "worker", "worker"]
    pods = [pod(f"p{i}", SMALL, group="g", role=role, on="n1", uid=f"{i}") for i, role in enumerate(roles)]
    session, plugin, row = gang_of(3, *pods, minTaskMember={"ps": 1, "worker": 2})
    rows = tasks(session, "p0", "p1", "p2", "p3", "p4")
    assert names(session, plugin.surplus(row, rows)) == ["p1", "p4"]
    assert not len(plugin.surplus(row, rows[:0]))


def given_up(answer: Callable[[int, TaskRows], TaskRows | None], candidates: TaskRows) -> TaskRows:
    allowed = answer(0, candidates)
    assert allowed is not None
    return allowed
