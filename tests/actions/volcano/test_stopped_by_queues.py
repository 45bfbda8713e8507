"""A queue that takes only a part of a gang: the gang is refused without being placed, in the same words."""

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.actions.volcano.placing import TaskPlacer
from maniple.objects.meta import Object
from maniple.planner import Plan
from tests.actions.volcano.scenes import cycle
from tests.support import group, node, pod, queue

SHARING = ("proportion", "capacity")
JOBS = st.tuples(
    st.integers(1, 5),  # pods
    st.integers(2, 5),  # of which it needs
    st.integers(1, 3),  # CPU of each
    st.sampled_from(["a", "a", "a", "b"]),
    st.sampled_from(["", "", "worker"]),
    st.sampled_from(["waits", "waits", "waits", "runs", "leaves"]),
)


def jobs(number: int, job: tuple[int, int, int, str, str, str], nodes: int) -> list[Object]:
    pods, minimum, cpu, name, role, state = job
    made = [group(f"j{number}", min(pods, minimum), queue=name, created=f"2026-01-01T00:00:{number:02d}Z")]
    for one in range(pods):
        uid = f"j{number}-{one}"
        on = f"n{(number + one) % nodes}" if state != "waits" else ""
        deleted = "2026-01-01T01:00:00Z" if state == "leaves" else ""
        request = {"cpu": str(cpu), "memory": "1Gi"}
        made.append(pod(uid, request, group=f"j{number}", uid=uid, role=role, on=on, deleted=deleted))
    return made


@settings(max_examples=150)
@given(st.integers(2, 8), st.integers(1, 9), st.lists(JOBS, min_size=2, max_size=8), st.sampled_from(SHARING))
def test_the_plan_is_as_if_the_pods_had_been_placed_and_taken_back(
    nodes: int, limit: int, made: list[tuple[int, int, int, str, str, str]], sharing: str
) -> None:
    objects = [node(f"n{number}", {"cpu": "6"}) for number in range(nodes)]
    objects += [queue("a", capability={"cpu": str(limit)}), queue("b")]
    for number, job in enumerate(made):
        objects += jobs(number, job, nodes)

    def plan() -> Plan:
        names = ("priority", "gang", "drf", sharing, "predicates", "nodeorder")
        return cycle(*objects, plugins=tuple({"name": name} for name in names))

    with patch.object(TaskPlacer, "_is_stopped", lambda *_: False):
        tried = plan()
    assert plan() == tried


def test_nothing_is_placed_for_a_gang_that_its_queue_takes_in_part() -> None:
    objects = [
        *(node(f"n{number}") for number in range(4)),
        queue("a", capability={"cpu": "3"}),
        group("j", 4, queue="a"),
        *(pod(f"j-{number}", {"cpu": "1"}, group="j", uid=f"j-{number}") for number in range(4)),
    ]
    with patch.object(TaskPlacer, "_propose", side_effect=AssertionError("placed")):
        plan = cycle(*objects)
    assert not plan.binds
    assert "queue 'a' has no room" in str(plan.tasks)
