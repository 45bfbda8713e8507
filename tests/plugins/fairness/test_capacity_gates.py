"""capacity: queues keep places for tasks that come through a scheduling gate."""

from typing import Any

import numpy as np

from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.planner import plan
from maniple.plugins.fairness.capacity import Capacity
from tests.plugins.fairness.capacity_scenes import child, opened, room, work
from tests.plugins.opening import event, tasks
from tests.support import group, pod, queue

GATE = "scheduling.volcano.sh/queue-allocation-gate"
CPU = {"cpu": "1"}


def admitted(name: str, of: str = "j", **more: Any) -> Object:
    """A pod that opted in; its gate is gone."""
    return pod(name, CPU, group=of, annotations={GATE: "true"}, **more)


def gated(name: str, of: str = "j") -> Object:
    return admitted(name, of, schedulingGates=[{"name": GATE}])


def small(*objects: Object, cpu: str = "3", strict: bool = False) -> tuple[Session, Capacity]:
    return opened(
        queue("q", capability={"cpu": cpu}),
        group("j", 1, queue="q"),
        *work("other", 4, CPU, of="q"),
        *objects,
        strict=strict,
    )


def place(session: Session, *names: str) -> Transaction:
    transaction = Transaction(session)
    for name in names:
        transaction.allocate(tasks(session, name), np.zeros(1, dtype=np.intp))
    return transaction


def test_a_task_whose_gate_is_gone_has_a_place_until_it_is_allocated() -> None:
    session, plugin = small(admitted("a"), admitted("b"))
    assert room(session, plugin, "other-0", count=4) == 1
    transaction = place(session, "a")
    assert room(session, plugin, "other-0", count=4) == 1  # allocated instead of reserved
    transaction.discard()
    assert room(session, plugin, "other-0", count=4) == 1


def test_such_a_task_needs_no_second_place() -> None:
    for strict in (False, True):
        session, plugin = small(admitted("a"), admitted("b"), cpu="2", strict=strict)
        assert room(session, plugin, "other-0") == 0
        assert room(session, plugin, "a", count=2) == 2


def test_reservations_beyond_the_ceiling_delay_no_task_unless_strict() -> None:
    pods = [admitted(name) for name in "abc"]
    session, plugin = small(*pods, cpu="2")
    assert room(session, plugin, "a", count=3) == 2
    session, plugin = small(*pods, cpu="2", strict=True)
    assert room(session, plugin, "a", count=3) == 0


def test_a_task_behind_the_gate_asks_for_a_place_like_any_other() -> None:
    session, plugin = small(admitted("a"), gated("b"), gated("c"), gated("d"))
    assert room(session, plugin, "b", count=3) == 2


def test_a_place_is_reserved_when_the_gate_may_go() -> None:
    session, plugin = small(gated("a"), gated("b"))
    plugin.on_admit(event(session, "a", "b"))
    assert room(session, plugin, "other-0", count=4) == 1


def test_ancestors_keep_places_too() -> None:
    session, plugin = opened(
        queue("root"),
        child("p", capability={"cpu": "2"}),
        child("q", "p"),
        child("r", "p"),
        group("j", 1, queue="q"),
        admitted("a"),
        *work("other", 4, CPU, of="r"),
        tree=True,
    )
    assert room(session, plugin, "other-0", count=4) == 1


def test_an_evicted_task_keeps_no_place_unless_strict() -> None:
    for strict, left in ((False, 3), (True, 2)):
        session, plugin = small(admitted("a", on="n1"), strict=strict)
        transaction = Transaction(session)
        assert room(session, plugin, "other-0", count=4) == 2
        transaction.evict(tasks(session, "a"), "test")
        assert room(session, plugin, "other-0", count=4) == left
        transaction.discard()
        assert room(session, plugin, "other-0", count=4) == 2


def test_allocate_opens_the_gate_for_as_many_tasks_as_their_queue_has_room_for() -> None:
    made = plan([*NODE, *(gated_pod(f"p{i}") for i in range(3))], profile="volcano", conf=CONF)
    assert made.binds == {}
    assert made.admitted == ["default/p0", "default/p1"]
    assert made.tasks["default/p0"].reason == (
        "waiting for its scheduling gate to be removed, for which queue 'q' has room"
    )
    assert made.tasks["default/p2"].reason == "queue 'q' has no room for a pod of this size"


def test_tasks_in_front_of_and_behind_the_gate_are_distinguished() -> None:
    made = plan([*NODE, gated_pod("p0"), free_pod("p1"), gated_pod("p2")], profile="volcano", conf=CONF)
    assert list(made.binds) == ["default/p1"]
    assert made.admitted == ["default/p0"]


CONF = {"actions": "allocate", "tiers": [{"plugins": [{"name": "capacity"}]}]}
GROUP = {"scheduling.k8s.io/group-name": "j", GATE: "true"}


def raw(api: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **fields}


NODE = [
    raw("v1", "Node", "n1", status={"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"}}),
    raw("scheduling.volcano.sh/v1beta1", "Queue", "q", spec={"capability": {"cpu": "2"}}),
    raw(
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        "j",
        spec={"queue": "q", "minMember": 1},
        status={"phase": "Inqueue"},
    ),
]


def free_pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "resources": {"requests": CPU}}]
    body = raw("v1", "Pod", name, spec={"schedulerName": "volcano", "containers": containers, **spec})
    body["metadata"]["annotations"] = GROUP
    return body


def gated_pod(name: str) -> dict[str, Any]:
    return free_pod(name, schedulingGates=[{"name": GATE}])
