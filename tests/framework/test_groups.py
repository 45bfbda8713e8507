"""What a job's pod sets say: whether it can start, is whole or broken, and which tasks are placed or evicted next."""

from typing import Any

import numpy as np
import pytest

from maniple.cluster.facts import LevelWish
from maniple.cluster.statuses import ACTIVE_ALLOCATED, Status
from maniple.framework.configuration.loading import PluginOption
from maniple.framework.groups.groups import Groups
from maniple.framework.groups.tree import PodSet
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from tests.kai_support import gpu_node, group, open_session, pod, queue, sub_group

GONE = "2026-01-01T00:00:00Z"
GATE: dict[str, Any] = {"spec": {"schedulingGates": [{"name": "g"}]}}


class Scene:
    """A job "g" with tasks p0, p1 ... each written as [sub-group:]state."""

    def __init__(
        self, minimum: int, *tasks: str, sub_groups: Any = (), strict: bool = False, **spec: Any
    ) -> None:
        written = {"subGroups": list(sub_groups), **spec}
        pods = [self._pod(number, text) for number, text in enumerate(tasks)]
        self.session = open_session(
            queue("default"), gpu_node("n", 8), group("g", minimum, spec=written), *pods, strict=strict
        )
        job = self.session.cluster.jobs.index_of("default/g")
        assert job is not None
        self.job = job

    def _pod(self, number: int, text: str) -> Object:
        role, _, state = text.rpartition(":")
        fields: dict[str, Any] = {
            "waits": {},
            "gated": GATE,
            "runs": {"on": "n"},
            "bound": {"on": "n", "phase": "Pending"},
            "leaves": {"on": "n", "deleted": GONE},
            "done": {"on": "n", "phase": "Succeeded"},
            "failed": {"on": "n", "phase": "Failed"},
        }[state]
        return pod(f"p{number}", {"cpu": "100m"}, group="g", role=role, uid=f"{number:03}", **fields)

    @property
    def sets(self) -> Groups:
        return self.session.groups

    def row(self, number: int) -> int:
        found = self.session.cluster.tasks.index_of(f"default/p{number}")
        assert found is not None
        return found

    def numbers(self, rows: Any) -> list[int]:
        return [int(self.session.task_key(row).removeprefix("default/p")) for row in rows.tolist()]

    def next(self, *, simulated: bool = False) -> list[int]:
        return self.numbers(self.sets.to_allocate(self.job, simulated=simulated))

    def leaving(self) -> tuple[list[int], bool]:
        rows, more = self.sets.to_evict(self.job)
        return self.numbers(rows), more

    def by_name(self) -> dict[str, PodSet]:
        return {one.name: one for one in self.sets.of(self.job)}

    def place(self, number: int, *, waits: bool = False) -> Transaction:
        transaction = Transaction(self.session)
        carry_out = transaction.pipeline if waits else transaction.allocate
        carry_out(np.array([self.row(number)]), np.zeros(1, dtype=np.intp))
        return transaction

    def evict(self, number: int) -> Transaction:
        transaction = Transaction(self.session)
        transaction.evict(np.array([self.row(number)]), "why")
        return transaction


TWO = (sub_group("a", 1), sub_group("b", 2))


# -- the tree ----------------------------------------------------------------------------------------------------------


def test_without_sub_groups_there_is_one_pod_set() -> None:
    scene = Scene(2, "waits", "runs")
    (only,) = scene.sets.of(scene.job)
    assert (only.name, only.minimum, only.parent is scene.sets.root(scene.job)) == ("default", 2, True)
    assert scene.numbers(only.rows) == [0, 1]


def test_groups_with_others_inside_hold_sets_and_the_rest_hold_tasks() -> None:
    wish = {"topology": "t", "requiredTopologyLevel": "rack"}
    groups = (
        sub_group("inner", 9, topologyConstraint=wish),
        sub_group("x", 0, "inner"),
        sub_group("y", 3, "inner", topologyConstraint=wish),
        sub_group("z", 2),
    )
    scene = Scene(5, "x:waits", "y:waits", "z:waits", "y:runs", sub_groups=groups)
    root = scene.sets.root(scene.job)
    (inner,) = root.groups
    assert (inner.name, inner.wish, inner.parent is root) == ("inner", LevelWish("t", "rack"), True)
    assert [(one.name, one.minimum, one.wish) for one in inner.pod_sets] == [
        ("x", 1, None),
        ("y", 3, LevelWish("t", "rack")),
    ]
    assert [one.name for one in root.pod_sets] == ["z"]
    assert {name: scene.numbers(one.rows) for name, one in scene.by_name().items()} == {
        "x": [0],
        "y": [1, 3],
        "z": [2],
    }
    assert {one.number for one in scene.sets.of(scene.job)} == {0, 1, 2}
    assert scene.sets.of_task(scene.row(3)) is scene.by_name()["y"]


def test_a_task_that_names_a_sub_group_that_is_not_there_is_in_none() -> None:
    scene = Scene(1, "waits", "other:waits", "other:runs")
    assert scene.next() == [0]
    assert scene.sets.of_task(scene.row(1)) is None
    assert not Scene(1, "other:waits").session.pending(0)
    assert not Scene(2, "other:runs").sets.stale(0)
    default = Scene(1, "default:waits", "waits")
    assert sorted(default.numbers(default.by_name()["default"].rows)) == [0, 1]


def test_with_sub_groups_a_task_without_one_is_in_none() -> None:
    scene = Scene(1, "waits", "a:waits", sub_groups=[sub_group("a")])
    assert scene.sets.of_task(scene.row(0)) is None


CAPITALS = (sub_group("All"), sub_group("x", 2, "All"))


def test_names_with_capitals_are_found() -> None:
    scene = Scene(4, "x:waits", "x:waits", sub_groups=CAPITALS)
    assert (list(scene.by_name()), scene.next()) == (["x"], [0, 1])
    assert scene.session.warnings == []
    leaf = Scene(1, "Big:waits", sub_groups=[sub_group("Big")])
    assert leaf.next() == [0]


def test_to_the_letter_a_parent_with_capitals_is_not_found_and_nothing_of_the_shape_is_left() -> None:
    wish = {"topology": "t", "requiredTopologyLevel": "rack"}
    scene = Scene(4, "x:waits", "waits", sub_groups=CAPITALS, strict=True, topologyConstraint=wish)
    (only,) = scene.sets.of(scene.job)
    assert (only.name, only.minimum, scene.sets.root(scene.job).wish) == ("default", 1, None)
    assert scene.next() == [1]
    assert "spec.subGroups" in scene.session.warnings[0]


@pytest.mark.parametrize(
    "groups",
    [
        (sub_group("a", 1, "none"),),
        (sub_group("a"), sub_group("a")),
        (sub_group("a", 1, "b"), sub_group("b", 1, "a")),
        (sub_group("a", 1, "a"),),
    ],
)
def test_sub_groups_that_make_no_tree_are_reported_and_ignored(groups: Any) -> None:
    scene = Scene(3, "waits", sub_groups=groups)
    assert list(scene.by_name()) == ["default"]
    assert "PodGroup default/g" in scene.session.warnings[0]


# -- questions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tasks", "ready"),
    [
        (("waits", "waits"), True),
        (("waits", "runs"), True),
        (("waits", "gated"), False),
        (("waits", "leaves"), False),
        (("waits", "done"), False),
        (("waits",), False),
    ],
)
def test_ready_is_a_job_with_enough_tasks_that_live_and_are_not_gated(tasks: Any, ready: bool) -> None:
    assert Scene(2, *tasks).sets.ready(0) is ready


def test_ready_are_all_pod_sets_or_none() -> None:
    assert not Scene(1, "a:waits", "a:waits", "b:waits", sub_groups=TWO).sets.ready(0)
    assert Scene(1, "a:waits", "b:waits", "b:runs", sub_groups=TWO).sets.ready(0)


@pytest.mark.parametrize(
    ("tasks", "satisfied"),
    [
        (("runs", "runs"), True),
        (("runs", "leaves"), True),
        (("runs", "bound"), True),
        (("runs", "waits"), False),
        (("runs", "done"), False),
    ],
)
def test_satisfied_is_a_job_with_enough_tasks_on_nodes(tasks: Any, satisfied: bool) -> None:
    assert Scene(2, *tasks).sets.satisfied(0) is satisfied


def test_elastic_is_a_job_with_more_tasks_than_some_pod_set_needs() -> None:
    assert not Scene(2, "waits", "runs").sets.elastic(0)
    assert Scene(2, "waits", "runs", "failed").sets.elastic(0)
    assert Scene(1, "a:runs", "a:waits", "b:waits", sub_groups=TWO).sets.elastic(0)


@pytest.mark.parametrize(
    ("tasks", "stale"),
    [
        (("runs", "waits"), True),
        (("leaves",), True),
        (("runs", "runs"), False),
        (("waits", "waits"), False),
        (("runs", "done"), False),
        (("runs", "failed"), True),
    ],
)
def test_stale_is_a_broken_gang_of_which_nothing_is_done(tasks: Any, stale: bool) -> None:
    assert Scene(2, *tasks).sets.stale(0) is stale


def test_stale_is_a_gang_of_which_one_pod_set_is_broken() -> None:
    assert Scene(1, "a:runs", "b:runs", "b:waits", sub_groups=TWO).sets.stale(0)
    assert not Scene(1, "a:runs", "b:runs", "b:runs", sub_groups=TWO).sets.stale(0)


def test_below_the_minimum() -> None:
    scene = Scene(2, "runs", "waits", "leaves")
    assert scene.sets.below_minimum(0)
    scene.place(1)
    assert not scene.sets.below_minimum(0)


def test_a_gang_waits_together_when_part_of_its_minimum_waits() -> None:
    scene = Scene(2, "runs", "waits", "waits")
    assert not scene.sets.should_pipeline(0)
    scene.place(1, waits=True)
    assert scene.sets.should_pipeline(0)
    scene.place(2)
    assert not scene.sets.should_pipeline(0)


def test_each_pod_set_waits_by_itself() -> None:
    scene = Scene(1, "a:runs", "a:waits", "b:runs", "b:runs", sub_groups=TWO)
    scene.place(1, waits=True)
    assert not scene.sets.should_pipeline(0)


# -- what is next ------------------------------------------------------------------------------------------------------


def test_what_lacks_to_the_minimum_comes_first_and_then_one_at_a_time() -> None:
    scene = Scene(2, "waits", "waits", "waits", "waits")
    assert scene.next() == [0, 1]
    scene.place(0)
    assert scene.next() == [1]
    scene.place(1)
    assert scene.next() == [2]


def test_gated_and_finished_tasks_are_not_next() -> None:
    assert Scene(2, "gated", "waits", "done", "failed").next() == [1]


def test_as_many_pod_sets_as_lack_something() -> None:
    waiting = ("a:waits", "a:waits", "b:waits", "b:waits", "b:waits")
    assert Scene(1, *waiting, sub_groups=TWO).next() == [0, 2, 3]
    assert Scene(1, "a:runs", *waiting[1:], sub_groups=TWO).next() == [1]
    assert Scene(1, "a:runs", "b:runs", "b:runs", "b:waits", "a:waits", sub_groups=TWO).next() == [4]


def test_pod_sets_without_waiting_tasks_do_not_count() -> None:
    assert Scene(1, "a:gated", "b:waits", "b:waits", sub_groups=TWO).next() == [1, 2]


class Backwards:
    """The last pod set first."""

    name = "backwards"

    def pod_set_order(self, one: PodSet) -> tuple[int]:
        return (-one.number,)


def ordered(scene: Scene) -> Scene:
    scene.session.use([[(PluginOption("backwards", {}, {}), Backwards())]])
    return scene


def test_plugins_order_the_pod_sets() -> None:
    tasks = ("a:waits", "b:waits", "b:waits")
    assert ordered(Scene(1, *tasks, sub_groups=TWO)).next() == [1, 2, 0]


def test_in_a_trial_tasks_that_it_evicted_may_come_back() -> None:
    scene = Scene(1, "runs", "leaves", "waits")
    scene.evict(0)
    assert scene.next(simulated=True) == [0]
    assert scene.next() == [2]


@pytest.mark.parametrize("strict", [False, True])
def test_in_a_trial_tasks_that_leave_anyway_do_not_come_back(strict: bool) -> None:
    scene = Scene(3, "leaves", "runs", "waits", strict=strict)
    scene.evict(1)
    assert scene.next(simulated=True) == [1, 2]


def test_to_the_letter_who_asks_first_decides_until_something_changes() -> None:
    scene = Scene(1, "runs", "waits", strict=True)
    scene.evict(0)
    assert (scene.next(simulated=True), scene.next()) == ([0], [0])
    again = Scene(1, "runs", "waits", strict=True)
    transaction = again.evict(0)
    assert (again.next(), again.next(simulated=True)) == ([1], [1])
    transaction.discard()
    assert again.next() == [1]


@pytest.mark.parametrize(("strict", "asked"), [(False, [1]), (True, [0, 1])])
def test_to_the_letter_a_job_goes_on_asking_for_what_it_lost(strict: bool, asked: list[int]) -> None:
    scene = Scene(2, "runs", "waits", strict=strict)
    transaction = scene.evict(0)
    assert scene.next(simulated=True) == [0, 1]
    transaction.commit()
    assert scene.next(simulated=True) == asked


def test_to_the_letter_nothing_is_not_remembered() -> None:
    scene = Scene(1, "runs", strict=True)
    scene.evict(0)
    assert (scene.next(), scene.next(simulated=True)) == ([], [0])


# -- what goes first ---------------------------------------------------------------------------------------------------


def test_a_job_that_can_spare_a_task_loses_its_last_one() -> None:
    assert Scene(1, "runs", "runs", "runs", "waits").leaving() == ([2], True)


def test_a_job_that_can_spare_none_loses_all() -> None:
    assert Scene(2, "runs", "bound", "waits").leaving() == ([1, 0], False)
    assert Scene(3, "runs", "leaves").leaving() == ([0], False)


def test_the_last_pod_set_loses_a_task_or_all_that_it_has() -> None:
    spare_b = Scene(1, "a:runs", "b:runs", "b:runs", "b:runs", sub_groups=TWO)
    assert spare_b.leaving() == ([3], True)
    # It is b's turn, though a could spare one.
    spare_a = Scene(1, "a:runs", "a:runs", "b:runs", "b:runs", sub_groups=TWO)
    assert spare_a.leaving() == ([3, 2], True)
    assert ordered(spare_a).leaving() == ([1], True)


def test_without_anything_to_spare_all_pod_sets_go() -> None:
    assert Scene(1, "a:runs", "b:runs", "b:runs", sub_groups=TWO).leaving() == ([2, 1, 0], False)


# -- part of a job -----------------------------------------------------------------------------------------------------


def test_for_a_while_a_job_may_consist_of_fewer_tasks() -> None:
    scene = Scene(1, "a:waits", "a:waits", "b:waits", "b:waits", sub_groups=TWO)
    before = scene.by_name()
    some = np.array([scene.row(0), scene.row(1), scene.row(2)])
    with scene.sets.narrowed(scene.job, some):
        assert scene.next() == [0, 2]
        assert not scene.sets.ready(scene.job)
    with scene.sets.narrowed(scene.job, some, all_needed=True):
        assert {name: one.minimum for name, one in scene.by_name().items()} == {"a": 2, "b": 1}
        assert scene.next() == [0, 1, 2]
    assert scene.by_name() == before
    assert scene.next() == [0, 2, 3]


def test_counting_goes_by_the_state_of_the_moment() -> None:
    scene = Scene(1, "a:runs", "a:waits", "b:waits", sub_groups=TWO)
    one = scene.by_name()["a"]
    assert scene.sets.count(one, ACTIVE_ALLOCATED) == 1
    transaction = scene.place(1)
    assert scene.sets.count(one, ACTIVE_ALLOCATED) == 2
    transaction.discard()
    assert scene.sets.count(one, ACTIVE_ALLOCATED) == 1


def test_who_may_be_preempted_and_who_waits() -> None:
    assert Scene(1, "waits").session.preemptible(0)
    assert not Scene(1, "waits", preemptibility="non-preemptible").session.preemptible(0)
    session: Session = Scene(1, "runs", "gated").session
    assert not session.pending(0)
    assert session.tasks.status.tolist().count(Status.GATED) == 1
