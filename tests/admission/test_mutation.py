"""What is filled in: only where a namespace says so, only at creation, and nothing that an object states."""

from typing import Any

import pytest

from tests.admission.scene import Raw, group, kai_group, namespace, pod, reviewed, world

SCHEDULER = {"maniple.dev/scheduler": "maniple"}
QUEUE = "scheduling.volcano.sh/queue-name"


def patch(raw: Raw, *there: Raw, operation: str = "CREATE", profile: str = "maniple") -> list[Raw]:
    verdict = reviewed(raw, world(*there, profile=profile), operation, mutating=True)
    assert verdict.allowed
    return [*verdict.patch]


def unscheduled(**fields: Any) -> Raw:
    return pod("p", scheduler="default-scheduler", **fields)


def test_the_scheduler_of_pods_in_labelled_namespaces() -> None:
    wanted = [{"op": "add", "path": "/spec/schedulerName", "value": "maniple"}]
    labelled = namespace(labels=SCHEDULER)
    assert patch(unscheduled(), labelled) == wanted
    nameless = unscheduled()
    del nameless["spec"]["schedulerName"]
    assert patch(nameless, labelled) == wanted
    assert patch(unscheduled()) == []
    assert patch(unscheduled(), namespace(labels={"maniple.dev/scheduler": "volcano"})) == []
    assert patch(unscheduled(), namespace(annotations=SCHEDULER)) == []


def test_pods_that_no_scheduler_of_ours_should_have() -> None:
    labelled = namespace(labels=SCHEDULER)
    assert patch(pod("p", scheduler="other"), labelled) == []
    assert patch(unscheduled(nodeName="n1"), labelled) == []
    daemon = unscheduled()
    daemon["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "d"}]
    assert patch(daemon, labelled) == []
    assert patch(unscheduled(), labelled, operation="UPDATE") == []
    assert reviewed(pod("p", "kube-system", "default-scheduler"), world(), mutating=True).patch == ()


@pytest.mark.parametrize(
    "key", ["maniple.dev/queue", QUEUE, "kai.scheduler/queue", "kueue.x-k8s.io/queue-name"]
)
@pytest.mark.parametrize("place", ["labels", "annotations"])
def test_the_queue_of_the_namespace(key: str, place: str) -> None:
    keys: Raw = {place: {key: "gold"}}
    home = namespace(**keys)
    added = [{"op": "add", "path": "/spec/queue", "value": "gold"}]
    assert patch(group("g"), home) == patch(kai_group("g"), home) == added
    assert patch(group("g", "default"), home) == added  # written where none was named
    assert patch(kai_group("g", "default"), home) == []
    assert patch(group("g", "own"), home) == []
    assert patch(pod("p"), home) == [{"op": "add", "path": "/metadata/annotations", "value": {QUEUE: "gold"}}]
    assert patch(pod("p", annotations={"a": "b"}), home) == [
        {"op": "add", "path": "/metadata/annotations/scheduling.volcano.sh~1queue-name", "value": "gold"}
    ]


def test_pods_that_name_a_queue_or_a_group_keep_it() -> None:
    home = namespace(annotations={"maniple.dev/queue": "gold"})
    for notes in ({QUEUE: "own"}, {"scheduling.k8s.io/group-name": "g"}, {"pod-group-name": "g"}):
        assert patch(pod("p", annotations=notes), home) == []
    assert patch(pod("p", labels={"kai.scheduler/queue": "own"}), home) == []
    assert patch(unscheduled(), home) == []  # of another scheduler


def test_scheduler_and_queue_together() -> None:
    home = namespace(labels={**SCHEDULER, "maniple.dev/queue": "gold"})
    assert [one["path"] for one in patch(unscheduled(), home)] == [
        "/spec/schedulerName",
        "/metadata/annotations",
    ]


def test_kai_reads_a_label() -> None:
    home = namespace(annotations={"maniple.dev/queue": "gold"})
    assert patch(pod("p", scheduler="kai-scheduler"), home, profile="kai") == [
        {"op": "add", "path": "/metadata/labels", "value": {"kai.scheduler/queue": "gold"}}
    ]


def test_a_namespace_that_the_caches_lack_is_looked_up() -> None:
    verdict = reviewed(pod("p", "new"), world(), mutating=True)
    assert [(one.what, one.name) for one in verdict.missing] == [("namespace", "new")]
