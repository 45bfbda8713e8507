"""Which pods a service or a controller holds together, as it comes, changes and goes."""

from collections.abc import Mapping

from maniple.cluster import snapshot
from maniple.cluster.cluster import Cluster
from maniple.objects.meta import Object
from tests import support


def service(name: str, selector: Mapping[str, str], namespace: str = "default") -> Object:
    return support.make("v1", "Service", name, namespace=namespace, spec={"selector": dict(selector)})


def groups_of(cluster: Cluster, pod: str) -> int:
    """How many groups a pod belongs to, as a session would see it."""
    row = cluster.tasks.index_of(pod)
    assert row is not None
    taken = snapshot.take(cluster)
    class_ = taken.classes[taken.tasks.class_of[row]]
    return len(cluster.workloads.groups() & set(class_.terms))


def test_pods_belong_to_the_services_that_select_them_in_their_namespace() -> None:
    cluster = support.cluster_of(
        support.pod("p", labels={"app": "x", "tier": "y"}),
        support.pod("q", labels={"app": "x"}),
        support.pod("p", labels={"app": "x"}, namespace="elsewhere"),
        service("one", {"app": "x"}),
        service("two", {"tier": "y"}),
        service("none", {}),
    )
    assert [groups_of(cluster, key) for key in ("default/p", "default/q", "elsewhere/p")] == [2, 1, 0]


def test_a_service_that_goes_or_changes_takes_its_group_along() -> None:
    cluster = support.cluster_of(support.pod("p", labels={"app": "x"}), service("s", {"app": "x"}))
    assert groups_of(cluster, "default/p") == 1
    cluster.apply(service("s", {"app": "y"}))
    assert groups_of(cluster, "default/p") == 0
    cluster.apply(service("s", {"app": "x"}))
    assert groups_of(cluster, "default/p") == 1
    cluster.delete(service("s", {"app": "x"}))
    assert groups_of(cluster, "default/p") == 0


def test_two_services_with_one_selector_are_one_group_until_both_are_gone() -> None:
    one, two = service("one", {"app": "x"}), service("two", {"app": "x"})
    cluster = support.cluster_of(one, two, support.pod("p", labels={"app": "x"}))
    assert groups_of(cluster, "default/p") == 1
    cluster.delete(one)
    assert groups_of(cluster, "default/p") == 1
    cluster.delete(two)
    assert groups_of(cluster, "default/p") == 0


def test_controllers_group_by_expressions_too() -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]}
    for kind in ("ReplicaSet", "StatefulSet"):
        owner = support.make("apps/v1", kind, "r", namespace="default", spec={"selector": selector})
        cluster = support.cluster_of(owner, support.pod("p", labels={"app": "y"}))
        assert groups_of(cluster, "default/p") == 1
