"""Classes of one session: tasks that a plugin tells apart."""

import numpy as np
import pytest

from tests.plugins.opening import session_again, session_on, task, tasks, use
from tests.support import group, node, pod, queue

OBJECTS = [
    node("n1"),
    queue("default"),
    group("g", 1),
    *(pod(name, {"cpu": "1"}, group="g") for name in "abcd"),
    pod("big", {"cpu": "2"}, group="g"),
]


def test_tasks_with_different_marks_get_classes_of_their_own() -> None:
    session = session_on(OBJECTS)
    before = session.classes[session.tasks.class_of[task(session, "a")]]
    session.refine("who", tasks(session, "a", "b", "c", "big"), np.array([0, 1, 1, 1]))
    a, b, c, d, big = session.tasks.class_of[tasks(session, "a", "b", "c", "d", "big")].tolist()
    assert len({a, b, d, big}) == 4
    assert b == c
    assert d == before.number
    assert [dict(session.classes[n].marks) for n in (a, b, d, big)] == [
        {"who": 0},
        {"who": 1},
        {},
        {"who": 1},
    ]
    assert [session.classes[n].number for n in (a, b, d, big)] == [a, b, d, big]
    assert session.classes[a].spec is before.spec
    assert session.classes[a].request is before.request


def test_marks_of_several_plugins_add_up() -> None:
    session = session_on(OBJECTS)
    session.refine("one", tasks(session, "a", "b"), np.array([0, 1]))
    session.refine("other", tasks(session, "b", "c"), np.array([0, 0]))
    marks = [
        dict(session.classes[n].marks) for n in session.tasks.class_of[tasks(session, "a", "b", "c", "d")]
    ]
    assert marks == [{"one": 0}, {"one": 1, "other": 0}, {"other": 0}, {}]
    assert session.requests(tasks(session, "a", "b", "big"))[0].tolist() == [1000, 1000, 2000]


def test_the_cluster_and_the_next_session_know_nothing_of_it() -> None:
    session = session_on(OBJECTS)
    count = len(session.cluster.classes.classes)
    session.refine("who", tasks(session, "a"), np.array([7]))
    again = session_again(session.cluster)
    assert len(session.cluster.classes.classes) == count == len(again.classes)
    assert again.tasks.class_of[task(again, "a")] == again.tasks.class_of[task(again, "b")]


def test_nothing_to_mark_changes_nothing() -> None:
    session = session_on(OBJECTS)
    session.refine("who", np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    assert session.classes is session.cluster.classes.classes


def test_it_is_too_late_once_plugins_answer() -> None:
    class Late:
        name = "late"

    session = session_on(OBJECTS)
    use(session, Late())
    with pytest.raises(RuntimeError, match="late"):
        session.refine("late", tasks(session, "a"), np.array([0]))
