"""reclaim, rule by rule: which jobs may reclaim, which tasks may be evicted, and how the original does it."""

from typing import Any

import numpy as np
import pytest

from maniple.framework.combine import Vote
from maniple.framework.reasons import Reason
from maniple.framework.session import Session
from maniple.objects.meta import Object
from tests.actions.volcano.answers import planned
from tests.support import group, hyper_node, node, pod, queue

ONE = {"cpu": "1", "memory": "1Gi"}
BOTH = pytest.mark.parametrize("compat", ["better", "strict"])


def everybody(_session: Session, _asker: int, rows: Any) -> Any:
    return rows


def reclaimed(
    objects: list[Object], *, actions: str = "reclaim", compat: str = "better", **answers: Any
) -> Any:
    """A cycle in which plugins give up every task that they are called for, unless answers are given."""
    return planned(objects, "gang", actions=actions, compat=compat, **{"reclaimable": everybody, **answers})


def scene(*more: Object, minimum: int = 1, tasks: int | None = None, **asker: Any) -> list[Object]:
    """A node full with tasks of one queue; a job of another queue waits."""
    count = minimum if tasks is None else tasks
    return [
        node("n1", {"cpu": "2"}),
        queue("mine"),
        queue("theirs"),
        group("old", 0, queue="theirs", phase="Running"),
        *(pod(f"old-{i}", ONE, group="old", on="n1", uid=f"old-{i}") for i in range(2)),
        group("new", minimum, queue="mine", phase=asker.pop("phase", "Inqueue")),
        *(pod(f"new-{i}", ONE, group="new", uid=f"new-{i}", **asker) for i in range(count)),
        *more,
    ]


# -- which jobs may reclaim ------------------------------------------------------------------------------------------


@BOTH
def test_a_job_that_lacks_something_gets_it_from_another_queue(compat: str) -> None:
    plan = reclaimed(scene(), compat=compat)
    assert plan.evictions == ["default/old-1"]  # the last in task order
    assert plan.pipelined == {"default/new-0": "n1"}
    assert [one.action for one in plan.evicted] == ["reclaim"]


@BOTH
@pytest.mark.parametrize(
    "asker", [{"phase": "Pending"}, {"schedulingGates": [{"name": "x"}]}, {"preemptionPolicy": "Never"}]
)
def test_jobs_not_yet_admitted_gated_tasks_and_those_that_must_not_preempt_do_not_ask(
    compat: str, asker: dict[str, Any]
) -> None:
    assert reclaimed(scene(**asker), compat=compat).evictions == []


@BOTH
def test_a_job_that_is_not_valid_or_does_not_starve_does_not_ask(compat: str) -> None:
    assert reclaimed(scene(), compat=compat, job_valid=lambda *_: "not like this").evictions == []
    assert reclaimed(scene(), compat=compat, job_starving=lambda *_: False).evictions == []


@BOTH
def test_an_overused_queue_does_not_ask(compat: str) -> None:
    plan = reclaimed(scene(), compat=compat, overused=lambda session, one: session.queue_name(one) == "mine")
    assert plan.evictions == []


@BOTH
def test_a_queue_that_may_not_take_so_much_gets_nothing(compat: str) -> None:
    asked: list[tuple[str, int]] = []

    def entitled(session: Session, one: int, rows: Any) -> bool:
        asked.append((session.queue_name(one), len(rows)))
        return False

    assert reclaimed(scene(), compat=compat, preemptive=entitled).evictions == []
    assert ("mine", 1) in asked


@pytest.mark.parametrize(
    ("mode", "compat", "count"), [("hard", "better", 0), ("hard", "strict", 2), ("soft", "better", 2)]
)
def test_a_job_with_a_hard_topology_is_left_to_gangreclaim_but_not_in_the_original(
    mode: str, compat: str, count: int
) -> None:
    """Two nodes, each a domain with room for one: no domain holds both tasks, whatever is evicted."""
    racks = [
        hyper_node(f"rack-{name}", 1, {"type": "Node", "selector": {"exactMatch": {"name": name}}})
        for name in ("n1", "n2")
    ]
    objects = [
        *(node(name, {"cpu": "1"}) for name in ("n1", "n2")),
        *racks,
        queue("mine"),
        queue("theirs"),
        group("old", 0, queue="theirs", phase="Running"),
        *(pod(f"old-{i}", ONE, group="old", on=f"n{i}", uid=f"old-{i}") for i in (1, 2)),
        group("new", 2, queue="mine", networkTopology={"mode": mode, "highestTierAllowed": 1}),
        *(pod(f"new-{i}", ONE, group="new", uid=f"new-{i}") for i in range(2)),
    ]
    plan = planned(
        objects,
        "gang",
        "network-topology-aware",
        actions="allocate, reclaim",
        compat=compat,
        reclaimable=everybody,
    )
    assert len(plan.evictions) == count
    told = " ".join(plan.jobs["default/new"].reasons)
    assert ("gangreclaim" in told) == (count == 0)


@BOTH
def test_a_task_that_is_ruled_out_beforehand_does_not_ask(compat: str) -> None:
    plan = reclaimed(scene(), compat=compat, pre_predicate=lambda *_: Reason("no such volume"))
    assert plan.evictions == []


# -- which tasks may be evicted --------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    "victim",
    [
        {"phase": "Pending"},  # bound, but not running yet
        {"annotations": {"volcano.sh/preemptable": "false"}},
        {"labels": {"volcano.sh/preemptable": "false"}},
        {"deleted": "2026-01-01T00:00:00Z"},
    ],
)
def test_only_running_tasks_that_may_be_preempted_are_shown_to_plugins(
    compat: str, victim: dict[str, Any]
) -> None:
    shown: set[str] = set()

    def allow(session: Session, _asker: int, rows: Any) -> Any:
        shown.update(session.task_key(row) for row in rows.tolist())
        return rows

    held = pod("old-1", ONE, group="old", on="n1", uid="old-1", **victim)
    objects = [one for one in scene() if one.key != "default/old-1"]
    reclaimed([*objects, held], compat=compat, reclaimable=allow)
    assert shown <= {"default/old-0"}


@BOTH
def test_neither_the_own_queue_nor_one_that_lets_nothing_go_loses_anything(compat: str) -> None:
    own = [one for one in scene() if one.key != "default/old"]
    plan = reclaimed([*own, group("old", 0, queue="mine", phase="Running")], compat=compat)
    assert plan.evictions == []
    kept = [one for one in scene() if one.key != "theirs"]
    assert reclaimed([*kept, queue("theirs", reclaimable=False)], compat=compat).evictions == []


@BOTH
def test_whom_plugins_protect_stays(compat: str) -> None:
    def first_only(session: Session, _asker: int, rows: Any) -> Any:
        return rows[[session.task_key(row) == "default/old-0" for row in rows.tolist()]]

    assert reclaimed(scene(), compat=compat, reclaimable=first_only).evictions == ["default/old-0"]
    none = np.zeros(0, dtype=np.int64)
    assert reclaimed(scene(), compat=compat, reclaimable=lambda *_: none).evictions == []


@BOTH
def test_with_gang_alone_jobs_lose_what_they_have_beyond_their_minimum_and_no_more(compat: str) -> None:
    assert planned(scene(), "gang", actions="reclaim", compat=compat).evictions == ["default/old-1"]
    whole = [one for one in scene() if one.key != "default/old"]
    home = "theirs"
    gang = group("old", 2, queue=home, phase="Running")
    assert planned([*whole, gang], "gang", actions="reclaim", compat=compat).evictions == []


# -- all or nothing --------------------------------------------------------------------------------------------------


@BOTH
def test_a_gang_that_does_not_become_whole_evicts_nobody(compat: str) -> None:
    """Room could be made for two of its three tasks."""
    plan = reclaimed(scene(minimum=3), compat=compat)
    assert plan.evictions == []
    assert plan.pipelined == {}


@BOTH
def test_what_counts_is_that_the_job_is_pipelined_not_that_it_is_ready(compat: str) -> None:
    plan = reclaimed(scene(), compat=compat, job_ready=lambda *_: False)
    assert plan.evictions == ["default/old-1"]
    refused = reclaimed(scene(), compat=compat, job_pipelined=lambda *_: Vote.REJECT)
    assert refused.evictions == []
    assert refused.pipelined == {}


@BOTH
def test_a_job_that_has_part_of_its_minimum_asks_for_the_rest(compat: str) -> None:
    more = [node("n2", {"cpu": "1"}), pod("new-9", ONE, group="new", on="n2", uid="new-9")]
    plan = reclaimed(scene(*more, minimum=3, tasks=2), compat=compat)
    assert sorted(plan.evictions) == ["default/old-0", "default/old-1"]
    assert sorted(plan.pipelined) == ["default/new-0", "default/new-1"]


@pytest.mark.parametrize(
    ("there", "expected"), [((), {"new-0", "new-1", "ps"}), (("ps",), {"new-0", "new-1"})]
)
def test_a_job_asks_for_the_tasks_that_its_roles_lack(there: tuple[str, ...], expected: set[str]) -> None:
    """Workers come first in task order.

    One is left out for the role that comes last, unless that has its task already.
    """
    roles = {"new-0": "worker", "new-1": "worker", "new-2": "worker", "ps": "ps"}
    objects = [
        node("n1", {"cpu": "4"}),
        node("n2", {"cpu": "1"}),
        queue("mine"),
        queue("theirs"),
        group("old", 0, queue="theirs", phase="Running"),
        *(pod(f"old-{i}", ONE, group="old", on="n1", uid=f"old-{i}") for i in range(4)),
        *([] if there else [pod("block", ONE, on="n2")]),
        group("new", 3, queue="mine", minTaskMember={"worker": 2, "ps": 1}),
        *(
            pod(name, ONE, group="new", role=role, uid=name, on="n2" if name in there else "")
            for name, role in roles.items()
        ),
    ]
    plan = reclaimed(objects)
    assert {name.removeprefix("default/") for name in plan.pipelined} == expected
    assert len(plan.evictions) == len(expected)


# -- the original, node by node --------------------------------------------------------------------------------------


def test_to_the_letter_nodes_without_victims_are_passed_over_even_if_they_have_room() -> None:
    """Quirk 10."""
    empty = node("n0", {"cpu": "2"})
    assert reclaimed(scene(empty), compat="strict").evictions == ["default/old-1"]
    better = reclaimed(scene(empty))
    assert better.evictions == []
    assert better.pipelined == {"default/new-0": "n0"}


def test_to_the_letter_room_is_used_where_somebody_could_go_though_nobody_is_given_up() -> None:
    roomy = [node("n0", {"cpu": "2"}), pod("old-9", ONE, group="old", on="n0", uid="old-9")]
    plan = reclaimed(scene(*roomy), compat="strict", reclaimable=lambda _session, _asker, rows: rows[:0])
    assert plan.evictions == []
    assert plan.pipelined == {"default/new-0": "n0"}


def test_to_the_letter_nodes_come_by_name_and_what_they_are_worth_does_not_matter() -> None:
    more = [node("n0", {"cpu": "64"}), pod("old-9", {"cpu": "64"}, group="old", on="n0", uid="old-9")]
    plan = reclaimed(scene(*more), compat="strict")
    assert plan.pipelined == {"default/new-0": "n0"}
    assert plan.evictions == ["default/old-9"]


def test_to_the_letter_a_node_that_cannot_give_enough_is_left_as_it_was() -> None:
    """n0 would have to give two and may give one; nothing is evicted there."""
    more = [
        node("n0", {"cpu": "2"}),
        pod("held", {"cpu": "1"}, on="n0"),
        pod("old-9", ONE, group="old", on="n0", uid="old-9"),
        group("big", queue="mine"),
        pod("big-0", {"cpu": "2"}, group="big"),
    ]
    objects = [one for one in scene(*more) if not one.key.startswith("default/new")]
    plan = reclaimed(objects, compat="strict")
    assert sorted(plan.evictions) == ["default/old-0", "default/old-1"]
    assert plan.pipelined == {"default/big-0": "n1"}
