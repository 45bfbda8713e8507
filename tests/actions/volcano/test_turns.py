"""The order of turns of jobs that have one turn each is the one that they would have if they could come back."""

from hypothesis import given
from hypothesis import strategies as st

from maniple.actions.volcano.turns import JobTurns
from maniple.planner import Planner
from tests.support import cluster_of, group, pod, priority_class, queue

CONF = {
    "actions": "allocate",
    "tiers": [{"plugins": [{"name": name} for name in ("priority", "gang", "drf")]}],
}
JOBS = st.tuples(st.sampled_from("ab"), st.sampled_from(["", "high"]), st.integers(0, 2))


def handed_out(turns: JobTurns) -> list[int]:
    found = []
    while (queue := turns.next_queue()) is not None:
        while (job := turns.next_job(queue)) is not None:
            found.append(job)
    return found


@given(st.lists(JOBS, max_size=80))
def test_one_turn_each_or_several(made: list[tuple[str, str, int]]) -> None:
    objects = [queue("a"), queue("b"), priority_class("high", 10)]
    for number, (name, priority, age) in enumerate(made):
        created = f"2026-01-01T00:00:0{age}Z"
        objects.append(
            group(f"j{number}", 1, queue=name, created=created, priorityClassName=priority, phase="Inqueue")
        )
        objects.append(pod(f"p{number}", {"cpu": "1"}, group=f"j{number}"))
    session = Planner(profile="volcano", conf=CONF).session(cluster_of(*objects))
    jobs = session.jobs.rows.tolist()
    assert handed_out(JobTurns(session, jobs, once=True)) == handed_out(JobTurns(session, jobs))
