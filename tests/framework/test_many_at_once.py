"""Questions about many jobs at once get the answers that asking for one job after the other would give."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maniple.eviction.chunks import Chunk
from maniple.eviction.surplus_first import Selection, SurplusPool, SurplusSequence
from maniple.framework.points import ALL, ASK, JobRows, TaskRows
from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.plugins.fairness.drf import Drf
from maniple.plugins.gang.gang import Gang
from maniple.plugins.order.priority import Priority
from maniple.plugins.order.sla import Sla
from tests.plugins.opening import session_on, use
from tests.support import group, make, node, pod, queue

SMALL = {"cpu": "1"}
CREATED = ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z")


class Miser:
    """A plugin that lets every job lose its first task only."""

    name = "conformance"

    def surplus(self, _job: int, rows: TaskRows) -> TaskRows:
        return rows[:1]


def gang(number: int, minimum: int, running: int, waiting: int, created: int, priority: int) -> list[Object]:
    name = f"g{number}"
    return [
        make(
            "scheduling.volcano.sh/v1beta1",
            "PodGroup",
            name,
            namespace="default",
            spec={"minMember": minimum, "queue": f"q{number % 2}", "priorityClassName": f"p{priority}"},
            status={"phase": "Inqueue"},
            created=CREATED[created],
            uid=f"uid-{-number % 3}",
        ),
        *(pod(f"{name}-{i}", SMALL, group=name, on="n1", uid=f"{name}-{i}") for i in range(running)),
        *(pod(f"{name}-w{i}", SMALL, group=name, uid=f"{name}-w{i}") for i in range(waiting)),
    ]


def cluster_of(shapes: Sequence[tuple[int, int, int, int, int]]) -> list[Object]:
    classes = [make("scheduling.k8s.io/v1", "PriorityClass", f"p{value}", value=value) for value in range(2)]
    jobs = [item for number, shape in enumerate(shapes) for item in gang(number, *shape)]
    return [node("n1", {"cpu": "99", "pods": "99"}), queue("q0"), queue("q1"), *classes, *jobs]


# minimum, running, waiting, which time, which priority
SHAPES = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(0, 2), st.integers(0, 1), st.integers(0, 1)),
    min_size=1,
    max_size=7,
)


def opened(shapes: Sequence[tuple[int, int, int, int, int]], *more: type) -> Session:
    session = session_on(cluster_of(shapes))
    use(session, Priority(session, {}), Gang(session, {}), Drf(session, {}), *(one() for one in more))
    return session


def one_by_one(session: Session, jobs: JobRows) -> list[int]:
    return sorted(jobs.tolist(), key=session.job_key_order)


def running(session: Session) -> TaskRows:
    rows = np.flatnonzero(session.tasks.node >= 0)
    return rows[session.tasks.job[rows] >= 0]


@given(SHAPES)
def test_many_jobs_are_put_in_the_order_of_their_keys(shapes: list[tuple[int, int, int, int, int]]) -> None:
    session = opened(shapes)
    jobs = session.jobs.rows
    assert session.in_job_order(jobs).tolist() == one_by_one(session, jobs)
    assert session.in_job_order(jobs[:0]).tolist() == []


def test_a_plugin_that_knows_only_single_jobs_still_has_its_say_in_the_order() -> None:
    shapes = [(1, 1, 0, 0, 0), (1, 1, 0, 1, 0), (1, 1, 0, 0, 1)]
    session = session_on(cluster_of(shapes))
    use(session, Sla(session, {"sla-waiting-time": "1h"}), Priority(session, {}))
    jobs = session.jobs.rows
    assert "job_orders" in session.hooks.answered  # of one of them
    assert session.in_job_order(jobs).tolist() == one_by_one(session, jobs)


@given(SHAPES)
def test_what_each_job_can_spare_is_as_much_as_its_surplus(
    shapes: list[tuple[int, int, int, int, int]],
) -> None:
    session = opened(shapes)
    jobs = session.jobs.rows
    for job, spare in zip(jobs.tolist(), session.spare(jobs).tolist(), strict=True):
        rows = session.in_task_order(running(session)[session.tasks.job[running(session)] == job])
        assert rows[max(len(rows) - spare, 0) :].tolist() == session.hooks.surplus(job, rows).tolist()


def test_jobs_have_to_be_asked_where_roles_have_a_say_or_a_plugin_cannot_tell_for_many() -> None:
    roles = [pod(f"r{i}", SMALL, group="roles", role="ps", on="n1", uid=f"r{i}") for i in range(3)]
    plain = [pod(f"p{i}", SMALL, group="plain", on="n1", uid=f"p{i}") for i in range(3)]
    session = session_on(
        [
            node("n1", {"cpu": "99", "pods": "99"}),
            queue("default"),
            group("roles", 2, minTaskMember={"ps": 1}),
            group("plain", 2),
            *roles,
            *plain,
        ]
    )
    jobs = session.jobs.rows
    assert session.spare(jobs).tolist() == [ALL, ALL]
    use(session, Gang(session, {}))
    spare = {session.job_key(job): int(count) for job, count in zip(jobs, session.spare(jobs), strict=True)}
    assert spare == {"default/roles": ASK, "default/plain": 1}
    use(session, Gang(session, {}), Miser())
    assert session.spare(jobs).tolist() == [ASK, ASK]


def all_chunks(session: Session, pool: SurplusPool) -> list[Chunk]:
    queues = sorted(set(session.jobs.queue[session.jobs.rows].tolist()))
    selection = Selection(-1, queues, None, lambda rows: rows)
    return SurplusSequence(session, pool, selection, surplus=True).first(999)


def told(chunks: Sequence[Chunk]) -> list[tuple[int, list[int], bool]]:
    return [(chunk.job, chunk.rows.tolist(), chunk.core) for chunk in chunks]


@given(SHAPES, st.booleans())
def test_victims_are_per_queue_surplus_and_then_whole_jobs_the_last_in_job_order_first(
    shapes: list[tuple[int, int, int, int, int]], miser: bool
) -> None:
    session = opened(shapes, *([Miser] if miser else []))
    candidates = running(session)
    chunks = all_chunks(session, SurplusPool(session, candidates))
    expected: list[tuple[int, list[int], bool]] = []
    for whole in (False, True):
        for job in reversed(one_by_one(session, session.jobs.rows)):
            own = session.in_task_order(candidates[session.tasks.job[candidates] == job])
            spare = session.hooks.surplus(job, own)
            rows = own[~np.isin(own, spare)].tolist()
            if not whole:
                expected += [(job, [row], False) for row in spare.tolist()[::-1]]
            elif rows:
                expected.append((job, rows, True))
    of_queue = session.jobs.queue.tolist()
    for number in set(of_queue):
        assert [one for one in told(chunks) if of_queue[one[0]] == number] == [
            one for one in expected if of_queue[one[0]] == number
        ]


@given(SHAPES, st.integers(1, 6))
def test_victims_that_have_left_are_not_offered_again(
    shapes: list[tuple[int, int, int, int, int]], count: int
) -> None:
    session = opened(shapes)
    pool = SurplusPool(session, running(session))
    chunks = all_chunks(session, pool)
    pool.drop(chunks[:count])
    assert told(all_chunks(session, pool)) == told(chunks[count:])


@given(SHAPES, st.integers(0, 8), st.integers(1, 9))
def test_which_victims_plugins_give_up_does_not_depend_on_how_many_are_asked_for(
    shapes: list[tuple[int, int, int, int, int]], most: int, step: int
) -> None:
    session = opened(shapes)
    pool = SurplusPool(session, running(session))
    queues = sorted(set(session.jobs.queue[session.jobs.rows].tolist()))
    selection = Selection(-1, queues, None, lambda rows: rows[:most])

    def sequence() -> SurplusSequence:
        return SurplusSequence(session, pool, selection, surplus=True)

    gradual = sequence()
    for count in range(1, 30, step):
        found = gradual.first(count)
    assert told(found) == told(sequence().first(count))
