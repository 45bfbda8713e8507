"""Dimensions stand in the order of their names when a session opens, whenever the names came."""

from maniple.cluster import snapshot
from maniple.cluster.check import validate
from maniple.cluster.cluster import Cluster
from maniple.profiles.volcano import VolcanoDialect
from tests.support import group, node, pod, queue

BASE = ["cpu", "memory", "pods"]


def test_names_are_in_order_and_amounts_stay_with_their_names() -> None:
    wanted = {"z/last": "2", "a/first": "3"}
    objects = [
        node("n", wanted),
        queue("q"),
        group("g", queue="q"),
        pod("p", {"z/last": "1"}, group="g", on="n"),
    ]
    cluster = Cluster.from_objects(VolcanoDialect(), objects)
    taken = snapshot.take(cluster)
    assert taken.resources.names[:5] == [*BASE, "a/first", "z/last"]
    assert taken.resources.describe(taken.nodes.used[:, 0]) == {"pods": 1, "z/last": 1}
    assert validate(taken) == []


def test_what_an_earlier_session_says_stays_true() -> None:
    """A plan may still be read when a later object names another resource."""
    asked = pod("p", {"m/middle": "1"}, group="g")
    cluster = Cluster.from_objects(VolcanoDialect(), [queue("q"), group("g", queue="q"), asked])
    before = snapshot.take(cluster)
    cluster.apply(node("n", {"b/second": "4", "m/middle": "2"}))
    cluster.apply(pod("r", {"b/second": "1"}, group="g", on="n"))
    after = snapshot.take(cluster)
    row = cluster.tasks.index_of("default/p")
    for taken in (before, after):
        request = taken.classes[taken.tasks.class_of[row]].request
        assert taken.resources.describe(request[: len(taken.resources)]) == {"pods": 1, "m/middle": 1}
    job = cluster.jobs.index_of("default/g")
    assert before.resources.describe(before.jobs.total[:, job]) == {"pods": 1, "m/middle": 1}
    assert after.resources.describe(after.jobs.total[:, job]) == {"pods": 2, "m/middle": 1, "b/second": 1}
    assert after.resources.names.index("b/second") < after.resources.names.index("m/middle")
    assert validate(cluster) == []
    assert validate(after) == []
