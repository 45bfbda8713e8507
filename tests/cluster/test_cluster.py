"""Single rules of the cluster model that the random edits would meet too rarely."""

from maniple.cluster import snapshot
from maniple.cluster.check import overfull, validate
from maniple.cluster.snapshot import Snapshot
from maniple.cluster.statuses import Status
from tests.support import cluster_of, group, make, node, pod, queue


def terms_of(opened: Snapshot, key: str) -> int:
    """How many terms select a task."""
    row = opened.cluster.tasks.index_of(key)
    assert row is not None
    return len(opened.classes[opened.tasks.class_of[row]].terms)


NEAR_A = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
        ]
    }
}


def test_no_namespace_is_the_default_namespace_for_terms_too() -> None:
    owner = pod("owner", namespace="", affinity=NEAR_A)
    meant = pod("meant", namespace="default", labels={"app": "a"})
    same = pod("same", namespace="", labels={"app": "a"})
    opened = snapshot.take(cluster_of(owner, meant, same))
    assert terms_of(opened, "default/meant") == 1
    assert terms_of(opened, "default/same") == 1


def test_no_namespace_is_the_default_namespace_for_services_too() -> None:
    service = make("v1", "Service", "s", spec={"selector": {"app": "a"}})
    opened = snapshot.take(cluster_of(service, pod("meant", namespace="default", labels={"app": "a"})))
    assert terms_of(opened, "default/meant") == 1


def test_a_resource_that_only_a_plugin_named_does_not_upset_the_next_session() -> None:
    cluster = cluster_of(node("n"), pod("p", {"cpu": "1"}, group="g"), group("g"), queue("default"))
    snapshot.take(cluster)
    cluster.resources.vector({"example.com/never-seen": "1"})
    opened = snapshot.take(cluster)
    assert len(opened.classes[0].request) == len(opened.nodes.used) == len(opened.jobs.pending)
    assert validate(opened) == []


def test_storage_of_a_large_cluster_adds_up() -> None:
    # In thousandths of a byte this would be more than 64 bits hold.
    nodes = [node(f"n{i}", {"ephemeral-storage": "4000Gi", "hugepages-2Mi": "4000Gi"}) for i in range(5000)]
    allocatable = snapshot.take(cluster_of(*nodes)).nodes.allocatable
    for dimension in range(len(allocatable)):
        assert allocatable[dimension].sum() == sum(allocatable[dimension].tolist())


def test_requests_beyond_all_measure_add_up() -> None:
    absurd = {"cpu": "9000P", "memory": "8Ei", "nvidia.com/gpu": "8E"}
    there = [pod(f"p{i}", absurd, group="g", on="n") for i in range(2)]
    waiting = [pod(f"q{i}", absurd, group="g") for i in range(2)]
    cluster = cluster_of(node("n"), group("g"), queue("default"), *there, *waiting)
    assert validate(cluster) == []
    assert validate(snapshot.take(cluster)) == []


def test_amounts_are_told_in_whole_units() -> None:
    cluster = cluster_of(node("n", {"ephemeral-storage": "1Ki", "nvidia.com/gpu": "3"}))
    told = cluster.resources.describe(snapshot.take(cluster).nodes.allocatable[:, 0] // 2)
    assert told == {
        "cpu": 4000,
        "memory": 8 * 2**30,
        "pods": 55,
        "ephemeral-storage": 512,
        "nvidia.com/gpu": 1.5,
    }


def test_in_place_resizes_tell_pods_of_one_spec_apart() -> None:
    statuses = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    stuck = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    asking = pod("asking", {"cpu": "4"}, on="n", status={"containerStatuses": statuses})
    refused = pod(
        "refused", {"cpu": "4"}, on="n", status={"containerStatuses": statuses, "conditions": stuck}
    )
    opened = snapshot.take(cluster_of(node("n"), asking, refused))
    assert opened.nodes.used[0].tolist() == [5000]


class TestChecks:
    """The checks themselves must be able to find something."""

    def opened(self) -> Snapshot:
        return snapshot.take(
            cluster_of(
                node("n", {"cpu": "2"}),
                pod("p", {"cpu": "1"}, group="g", on="n"),
                pod("q", {"cpu": "3"}, group="g"),
                group("g"),
                queue("default"),
            )
        )

    def test_a_wrong_sum_is_named(self) -> None:
        opened = self.opened()
        assert validate(opened) == []
        opened.nodes.used[0, 0] += 5
        assert validate(opened) == ["node n: used cpu is 1005, the tasks sum to 1000"]

    def test_a_wrong_count_is_named(self) -> None:
        opened = self.opened()
        opened.jobs.counts[Status.RUNNING, 0] -= 1
        assert validate(opened) == ["job default/g: count Running is 0, the tasks sum to 1"]

    def test_a_placed_task_without_a_node_is_named(self) -> None:
        opened = self.opened()
        row = opened.cluster.tasks.index_of("default/q")
        opened.tasks.status[row] = Status.ALLOCATED
        assert "task default/q: is Allocated on no node" in validate(opened)

    def test_a_wrong_table_is_named(self) -> None:
        cluster = self.opened().cluster
        assert validate(cluster) == []
        cluster.nodes.pods[0] += 1
        assert validate(cluster) == ["node n: pods is 2, the tasks sum to 1"]

    def test_a_row_held_for_nobody_is_named(self) -> None:
        cluster = self.opened().cluster
        cluster.jobs.hold("default/lost")
        assert validate(cluster) == ["job row 1 ('default/lost') is held for nobody"]

    def test_a_node_that_was_given_too_much_is_named(self) -> None:
        opened = self.opened()
        row = opened.cluster.tasks.index_of("default/q")
        assert overfull(opened) == []
        opened.tasks.status[row], opened.tasks.node[row] = Status.ALLOCATED, 0
        opened.nodes.used[0, 0] += 3000
        assert overfull(opened) == ["node n: was given more cpu than it has"]

    def test_a_node_that_held_too_much_before_is_not_a_sessions_fault(self) -> None:
        full = cluster_of(node("n", {"cpu": "2"}), *(pod(f"p{i}", {"cpu": "2"}, on="n") for i in range(2)))
        assert overfull(snapshot.take(full)) == []
