"""A queue that takes only a part of a gang: the gang is refused without being placed, in the same words."""

from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.actions.volcano.placing import TaskPlacer
from maniple.actions.volcano.queue_room import QueueRoom
from maniple.objects.meta import Object
from maniple.planner import Plan, Planner
from tests.actions.volcano.scenes import cycle
from tests.support import cluster_of, group, node, pod, queue

NOW = datetime(2026, 1, 1, 2, tzinfo=UTC)
SHARING: tuple[dict[str, object], ...] = (
    {"name": "proportion"},
    {"name": "capacity"},
    {"name": "capacity", "enableHierarchy": True},
)
JOBS = st.tuples(
    st.lists(st.integers(0, 3), min_size=1, max_size=5),  # CPU of each pod; 0: it requests nothing
    st.integers(2, 5),  # pods that it needs
    st.sampled_from(["a", "a", "a", "b"]),
    st.sampled_from(["", "", "worker"]),
    st.sampled_from(["", "", "", "1s"]),  # how long it may wait
    st.sampled_from(["waits", "waits", "waits", "runs", "leaves"]),
)


Job = tuple[list[int], int, str, str, str, str]


def jobs(number: int, job: Job, nodes: int) -> list[Object]:
    pods, minimum, name, role, waits, state = job
    made = [
        group(
            f"j{number}",
            min(len(pods), minimum),
            queue=name,
            created=f"2026-01-01T00:00:{number:02d}Z",
            annotations={"sla-waiting-time": waits} if waits else None,
        )
    ]
    for one, cpu in enumerate(pods):
        uid = f"j{number}-{one}"
        on = f"n{(number + one) % nodes}" if state != "waits" else ""
        deleted = "2026-01-01T01:00:00Z" if state == "leaves" else ""
        request = {"cpu": str(cpu), "memory": "1Gi"} if cpu else {}
        made.append(pod(uid, request, group=f"j{number}", uid=uid, role=role, on=on, deleted=deleted))
    return made


@settings(max_examples=250)
@given(
    st.integers(1, 8),
    st.integers(1, 9),
    st.lists(JOBS, min_size=2, max_size=8),
    st.sampled_from(SHARING),
    st.sampled_from(["better", "strict"]),
    st.booleans(),
)
def test_the_plan_is_as_if_the_pods_had_been_placed_and_taken_back(
    nodes: int, limit: int, made: list[Job], sharing: dict[str, object], compat: str, closed: bool
) -> None:
    objects = [node(f"n{number}", {"cpu": "6"}) for number in range(nodes)]
    objects += [queue("root"), queue("top", parent="root", capability={"cpu": str(limit)})]
    objects += [
        queue(
            "a", parent="top", capability={"cpu": str(limit + 1 if "enableHierarchy" in sharing else limit)}
        ),
        queue("b", parent="root", state="Closed" if closed else "Open"),
    ]
    for number, job in enumerate(made):
        objects += jobs(number, job, nodes)

    def plan() -> Plan:
        first = [{"name": name} for name in ("priority", "sla")]
        plugins = [{"name": name} for name in ("gang", "drf", "predicates", "nodeorder")]
        conf = {"tiers": [{"plugins": first}, {"plugins": [*plugins, sharing]}], "compat": compat}
        planner = Planner(profile="volcano", conf={**conf, "actions": "allocate, backfill"})
        return planner.cycle(cluster_of(*objects), now=NOW)

    with patch.object(QueueRoom, "stops", lambda *_: False):
        tried = plan()
    assert plan() == tried


def waiting(*cpu: int, queue: str = "a", name: str = "j", **more: Any) -> list[Object]:
    """A gang that needs all of its pods."""
    pods = [
        pod(f"{name}-{i}", {"cpu": str(c)}, group=name, uid=f"{name}-{i}", **more) for i, c in enumerate(cpu)
    ]
    created = "2026-01-01T00:00:00Z" if name == "first" else "2026-01-01T00:01:00Z"
    return [group(name, len(cpu), queue=queue, created=created), *pods]


def placed(*objects: Object) -> tuple[Plan, list[str]]:
    """The plan, and the gangs that were placed, if only to be taken back."""
    tried: list[str] = []
    fill = TaskPlacer.fill

    def counted(placer: TaskPlacer, transaction: Any, sheet: Any, ground: Any) -> bool:
        tried.append(transaction._session.job_key(ground.job))
        return fill(placer, transaction, sheet, ground)

    with patch.object(TaskPlacer, "fill", counted):
        return cycle(*(node(f"n{number}") for number in range(5)), *objects), tried


FIRST = waiting(1, 1, 1, 1, 1, 1, 1, name="first")


def test_nothing_is_placed_for_a_gang_that_its_queue_takes_in_part_once_it_refused_another() -> None:
    plan, tried = placed(queue("a", capability={"cpu": "3"}), *FIRST, *waiting(1, 1, 1, 1))
    assert tried == ["default/first"]
    assert not plan.binds
    assert "queue 'a' has no room" in plan.tasks["default/j-3"].reason
    assert "3 more can be placed, but the gang needs 4 pods" in plan.tasks["default/j-2"].reason


def test_nothing_is_placed_for_a_gang_of_pods_that_differ() -> None:
    plan, tried = placed(queue("a", capability={"cpu": "4"}), *FIRST, *waiting(1, 4, 2, 3, 1))
    assert tried == ["default/first"]
    full = [
        name for name, task in plan.tasks.items() if "/j-" in name and "queue 'a' has no room" in task.reason
    ]
    assert sorted(full) == ["default/j-1", "default/j-3"]
    assert "3 more can be placed, but the gang needs 5 pods" in plan.tasks["default/j-4"].reason


def test_what_one_queue_refused_says_nothing_about_another() -> None:
    queues = queue("a", capability={"cpu": "3"}), queue("b", capability={"cpu": "3"})
    _, tried = placed(*queues, *FIRST, *waiting(1, 1, 1, 1, queue="b"))
    assert sorted(tried) == ["default/first", "default/j"]


def test_where_nodes_are_scarce_they_have_to_be_looked_at() -> None:
    first = waiting(2, 2, 2, 2, name="first")
    objects = [node("n0", {"cpu": "2"}), queue("a", capability={"cpu": "5"}), *first, *waiting(2, 2, 2)]
    plan = cycle(*objects, node("n1"))
    with patch.object(QueueRoom, "stops", lambda *_: False):
        assert plan == cycle(*objects, node("n1"))
    with patch.object(TaskPlacer, "fill", autospec=True, side_effect=TaskPlacer.fill) as fill:
        cycle(*objects, node("n1"))
    assert fill.call_count == 2


def test_a_plugin_that_limits_queues_by_more_than_amounts_is_asked_pod_by_pod() -> None:
    objects = [*(node(f"n{number}") for number in range(5)), queue("a", capability={"cpu": "3"})]
    gate = {"scheduling.volcano.sh/queue-allocation-gate": "true"}
    gated = [*waiting(1, 1, 1, 1, 1, name="first", annotations=gate), *waiting(1, 1, 1, 1, annotations=gate)]
    plugins = tuple({"name": name} for name in ("gang", "capacity", "predicates", "nodeorder"))
    with patch.object(TaskPlacer, "fill", autospec=True, side_effect=TaskPlacer.fill) as fill:
        cycle(*objects, *gated, plugins=plugins)
    assert fill.call_count == 2
