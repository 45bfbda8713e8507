"""The queues as a tree: a queue without a path to the top is left out, and only leaves take jobs."""

from maniple.framework.queue_tree import ROOT, QueueTree
from maniple.objects.meta import Object
from tests.kai_support import cluster_of, group, queue


class Scene:
    def __init__(self, *objects: Object, flat: bool = False) -> None:
        self.queues = cluster_of(*objects).queues
        self.tree = QueueTree(self.queues, flat=flat)

    def row(self, name: str) -> int:
        found = self.queues.index_of(name)
        assert found is not None
        return found

    def names(self, rows: list[int]) -> list[str]:
        return [self.queues.keys[row] for row in rows]


def three_levels() -> Scene:
    return Scene(
        queue("leaf", "team"), queue("team", "top"), queue("other", "top"), queue("top"), queue("alone")
    )


def test_paths_lead_from_a_queue_to_the_top() -> None:
    scene = three_levels()
    assert scene.names(scene.tree.path(scene.row("leaf"))) == ["leaf", "team", "top"]
    assert scene.names(scene.tree.path(scene.row("alone"))) == ["alone"]


def test_parents_and_children() -> None:
    scene = three_levels()
    tree = scene.tree
    assert tree.parent(scene.row("leaf")) == scene.row("team")
    assert tree.parent(scene.row("top")) == ROOT
    assert scene.names(tree.children(scene.row("top"))) == ["other", "team"]
    assert tree.children(scene.row("leaf")) == []
    assert scene.names(tree.roots) == scene.names(tree.children(ROOT)) == ["alone", "top"]


def test_only_leaves_serve_jobs() -> None:
    scene = three_levels()
    assert {
        name for name in ("leaf", "team", "other", "top", "alone") if scene.tree.serves(scene.row(name))
    } == {
        "leaf",
        "other",
        "alone",
    }
    assert not scene.tree.leaf(scene.row("team"))


def test_queues_come_by_name() -> None:
    scene = three_levels()
    assert scene.names(list(scene.tree)) == ["alone", "leaf", "other", "team", "top"]
    assert len(scene.tree) == 5


def test_orphans_and_all_below_them_are_not_there() -> None:
    scene = Scene(queue("orphan", "gone"), queue("child", "orphan"), queue("fine"))
    assert scene.names(list(scene.tree)) == ["fine"]
    assert scene.row("orphan") not in scene.tree
    assert not scene.tree.serves(scene.row("child"))


def test_a_parent_that_is_only_named_by_a_job_is_not_there() -> None:
    scene = Scene(queue("child", "named"), group("g", queue="named"))
    assert len(scene.tree) == 0
    assert not scene.tree.serves(scene.row("named"))


def test_queues_in_a_circle_are_not_there() -> None:
    scene = Scene(queue("a", "b"), queue("b", "a"), queue("self", "self"), queue("below", "a"), queue("fine"))
    assert scene.names(list(scene.tree)) == ["fine"]


def test_an_orphan_is_no_child_of_anybody_so_that_its_grandparent_may_be_a_leaf() -> None:
    scene = Scene(queue("top"), queue("middle", "nowhere"), queue("leaf", "middle"))
    assert scene.tree.serves(scene.row("top"))


def test_flat_all_that_have_a_parent_stand_side_by_side() -> None:
    scene = Scene(
        queue("leaf", "team"), queue("team", "top"), queue("top"), queue("orphan", "gone"), flat=True
    )
    assert scene.names(list(scene.tree)) == ["leaf", "orphan", "team"]
    assert scene.names(scene.tree.roots) == ["leaf", "orphan", "team"]
    assert scene.tree.serves(scene.row("team"))
    assert not scene.tree.serves(scene.row("top"))
