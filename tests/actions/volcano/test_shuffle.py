"""shuffle: which tasks the plugins get, which are evicted, and in what order."""

from typing import Any

import pytest

from maniple.actions.volcano.shuffle import Shuffle
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.placement.engine import Placement
from tests.plugins.opening import names, session_on, tasks, use
from tests.support import group, make, node, pod, queue

ONE = {"cpu": "1", "memory": "1Gi"}
FORBIDDEN: dict[str, Any] = {"annotations": {"volcano.sh/preemptable": "false"}}


class Wanting:
    """Names some tasks, and remembers the tasks that it was given."""

    name = "wanting"

    def __init__(self, session: Session, *wanted: str) -> None:
        self._wanted = tasks(session, *wanted)
        self.shown: list[str] = []
        self._session = session

    def victim_tasks(self, rows: TaskRows) -> TaskRows:
        self.shown = names(self._session, rows)
        return self._wanted


class Protecting:
    """Protects all tasks but the first."""

    name = "protecting"

    def victims_allowed(self, rows: TaskRows) -> TaskRows:
        return rows[:1]


def task(name: str, on: str = "n1", job: str = "work", **fields: Any) -> Object:
    return pod(name, ONE, group=job, uid=name, on=on, **fields)


def opened(*objects: Object, strict: bool = False) -> Session:
    return session_on([node("n1"), node("n2"), queue("default"), group("work", 1), *objects], strict=strict)


def shuffled(session: Session, *plugins: Any) -> list[tuple[str, str]]:
    """The evicted tasks, and the reason."""
    use(session, *plugins)
    Shuffle({}).run(session, Placement(session))
    return [
        (session.task_key(row).removeprefix("default/"), reason) for row, reason in session.decisions.evicted
    ]


def test_running_tasks_that_a_plugin_names_are_evicted() -> None:
    session = opened(task("a"), task("b"), task("c", on="n2"))
    assert shuffled(session, Wanting(session, "a", "c")) == [("a", "shuffle"), ("c", "shuffle")]
    assert session.jobs.ready[session.tasks.job[tasks(session, "b")[0]]] == 1


def test_only_running_tasks_of_the_sessions_jobs_are_shown() -> None:
    session = opened(
        task("runs"),
        task("bound", phase="Pending"),
        task("waits", on=""),
        task("leaves", deleted="2026-01-01T00:00:00Z"),
        task("stray", job="unknown"),
        group("homeless", 1, queue="nowhere"),
        task("far", job="homeless"),
    )
    plugin = Wanting(session)
    assert shuffled(session, plugin) == []
    assert plugin.shown == ["runs"]


def test_whoever_a_plugin_names_that_was_not_shown_stays() -> None:
    session = opened(task("runs"), task("bound", phase="Pending"))
    assert shuffled(session, Wanting(session, "bound")) == []


def test_the_least_important_are_shown_first() -> None:
    session = opened(
        task("c", priority=5), task("b", priority=9), task("a", priority=9), task("d", priority=1)
    )
    plugin = Wanting(session)
    shuffled(session, plugin)
    assert plugin.shown == ["d", "c", "a", "b"]


@pytest.mark.parametrize(("strict", "expected"), [(False, ["free"]), (True, ["free", "kept"])])
def test_tasks_that_are_not_preemptable_are_left_alone_but_not_in_the_original(
    strict: bool, expected: list[str]
) -> None:
    session = opened(task("free"), task("kept", **FORBIDDEN), strict=strict)
    plugin = Wanting(session, "free", "kept")
    assert [name for name, _ in shuffled(session, plugin)] == expected
    assert plugin.shown == expected


def test_who_is_protected_stays() -> None:
    session = opened(task("a"), task("b"), task("c"))
    assert [name for name, _ in shuffled(session, Wanting(session, "b", "c"), Protecting())] == ["b"]


def test_nobody_goes_when_nobody_is_named_or_asked() -> None:
    for plugins in ([], [Protecting()]):
        assert shuffled(opened(task("a")), *plugins) == []


def test_a_gang_may_break() -> None:
    """The plugin that names a task is responsible; shuffle checks no minimum."""
    session = opened(group("pair", 2), task("a", job="pair"), task("b", job="pair"))
    assert [name for name, _ in shuffled(session, Wanting(session, "a"))] == ["a"]


def test_the_order_of_objects_does_not_matter() -> None:
    objects = [task("a"), task("b", on="n2"), task("c", priority=3), group("two", 1), task("d", job="two")]
    outcomes = []
    for these in (objects, objects[::-1]):
        session = opened(*these)
        outcomes.append(shuffled(session, Wanting(session, "a", "b", "c", "d")))
    assert len(outcomes[0]) == 4
    assert outcomes[0] == outcomes[1]


def test_an_argument_that_it_does_not_know_is_reported() -> None:
    assert any("often" in warning for warning in Shuffle({"often": True}).arguments.warnings)


def whole_group() -> Object:
    return make(
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        "podgroup:pair",
        namespace="default",
        labels={"maniple.dev/evicted-whole": "true"},
        spec={"minMember": 1, "queue": "default"},
        status={"phase": "Inqueue"},
    )


def test_a_group_that_goes_whole_goes_with_the_task_that_was_named() -> None:
    mates = [task("a", job="podgroup:pair"), task("b", on="n2", job="podgroup:pair")]
    session = opened(whole_group(), *mates, task("c"))
    assert dict(shuffled(session, Wanting(session, "a"))).keys() == {"a", "b"}


def test_a_group_that_goes_whole_stays_if_a_task_of_it_is_protected() -> None:
    mates = [task("a", job="podgroup:pair"), task("b", on="n2", job="podgroup:pair")]
    session = opened(whole_group(), *mates)
    assert not shuffled(session, Wanting(session, "a"), Protecting())


def test_a_group_that_goes_whole_stays_if_a_task_of_it_is_not_preemptable() -> None:
    mates = [task("a", job="podgroup:pair"), task("b", on="n2", job="podgroup:pair", **FORBIDDEN)]
    session = opened(whole_group(), *mates)
    assert not shuffled(session, Wanting(session, "a"))
