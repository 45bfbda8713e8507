"""Manifests are read as an API server would keep them; what has been in a cluster stays as it is."""

import copy
from typing import Any

import pytest

from maniple.objects.admission import Policies, admitted
from maniple.objects.core import (
    LimitRange,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    ReplicationController,
    RuntimeClass,
    StorageClass,
)
from maniple.objects.load import load, load_all, load_batch
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoQueue
from tests.objects.samples import SAMPLES

Raw = dict[str, Any]
GPU = "nvidia.com/gpu"
FIVE_MINUTES = {"operator": "Exists", "effect": "NoExecute"}


def manifest(kind: type[Object], name: str = "x", /, *, namespace: str = "", **fields: Any) -> Raw:
    metadata: Raw = {"name": name} | ({"namespace": namespace} if namespace else {})
    metadata |= {key: fields.pop(key) for key in ("annotations", "labels", "uid") if key in fields}
    version = f"{kind.api_group}/v1" if kind.api_group else "v1"
    return {"apiVersion": version, "kind": kind.kind, "metadata": metadata, **fields}


def pod(*, uid: str = "", namespace: str = "", **spec: Any) -> Raw:
    written = {"uid": uid} if uid else {}
    return manifest(Pod, "p", namespace=namespace, spec={"containers": [{"name": "main"}], **spec}, **written)


def container(**resources: Any) -> Raw:
    return {"name": "main", "resources": resources}


def read(raw: Raw, *others: Raw) -> Any:
    """The object among these others, whatever the order."""
    before = copy.deepcopy(raw)
    (first, *_), (*_, last) = load_batch([raw, *others]).objects, load_batch([*others, raw]).objects
    assert first == last
    assert raw == before
    return first


# -- defaults of the schema --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["containers", "initContainers"])
@pytest.mark.parametrize("uid", ["", "u-1"], ids=["bare", "with a uid"])
def test_a_container_with_only_limits_asks_for_them(field: str, uid: str) -> None:
    containers: Raw = {field: [container(limits={GPU: 8, "cpu": "2"})]}
    spec = read(pod(uid=uid, **containers)).spec
    (found,) = spec.containers if field == "containers" else spec.init_containers
    assert found.resources.requests == {GPU: 8, "cpu": "2"}


def test_a_stated_request_stays_beside_a_larger_limit() -> None:
    one = container(requests={"cpu": "1"}, limits={"cpu": "2", "memory": "1Gi"})
    (found,) = read(pod(containers=[one])).spec.containers
    assert found.resources.requests == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("containers", "resources", "requests"),
    [
        ([container()], {"limits": {"cpu": "4"}}, {"cpu": "4"}),
        ([container(requests={"cpu": "1"})], {"limits": {"cpu": "4"}}, {"cpu": "1"}),
        (
            [container(requests={"cpu": "1"})] * 2,
            {"limits": {"memory": "1Gi"}},
            {"cpu": "2", "memory": "1Gi"},
        ),
        (
            [container(limits={"hugepages-2Mi": "4Mi"})],
            {"limits": {"hugepages-2Mi": "8Mi"}},
            {"hugepages-2Mi": "8Mi"},
        ),
        ([container(requests={"cpu": "1"})], {"requests": {"memory": "1Gi"}}, {"memory": "1Gi"}),
    ],
    ids=[
        "its own limit",
        "what its containers ask for",
        "the sum",
        "huge pages as limited",
        "without limits",
    ],
)
def test_a_pod_with_limits_of_its_own_asks_for(containers: list[Raw], resources: Raw, requests: Raw) -> None:
    assert read(pod(containers=containers, resources=resources)).spec.resources.requests == requests


def test_ports_of_a_pod_on_its_nodes_network_are_ports_of_the_node() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081}]
    (found,) = read(pod(hostNetwork=True, containers=[{"name": "main", "ports": ports}])).spec.containers
    assert [port.host_port for port in found.ports] == [80, 8081]
    (other,) = read(pod(containers=[{"name": "main", "ports": ports}])).spec.containers
    assert [port.host_port for port in other.ports] == [0, 8081]


def test_a_pod_that_names_no_scheduler_is_for_the_default_one() -> None:
    assert read(pod()).spec.scheduler_name == "default-scheduler"
    assert read(pod(schedulerName="volcano")).spec.scheduler_name == "volcano"


def test_a_node_offers_what_it_has_unless_it_says_otherwise() -> None:
    amounts = {"cpu": "8"}
    assert read(manifest(Node, status={"capacity": amounts})).status.allocatable == amounts
    said = {"capacity": amounts, "allocatable": {"cpu": "7"}}
    assert read(manifest(Node, status=said)).status.allocatable == {"cpu": "7"}


def test_a_namespace_bears_its_name_as_a_label() -> None:
    assert read(manifest(Namespace, "team")).metadata.labels == {"kubernetes.io/metadata.name": "team"}


def test_a_replication_controller_selects_the_labels_of_its_template() -> None:
    template = {"metadata": {"labels": {"app": "a"}}}
    assert read(manifest(ReplicationController, spec={"template": template})).spec.selector == {"app": "a"}
    spec = {"template": template, "selector": {"app": "b"}}
    assert read(manifest(ReplicationController, spec=spec)).spec.selector == {"app": "b"}


# -- what is filled in at creation -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "name", "priority", "policy"),
    [
        ({}, "usual", 5, "Never"),
        ({"priorityClassName": "high"}, "high", 100, "PreemptLowerPriority"),
        ({"priorityClassName": "high", "preemptionPolicy": "Never"}, "high", 100, "Never"),
        (
            {"priorityClassName": "system-node-critical"},
            "system-node-critical",
            2_000_001_000,
            "PreemptLowerPriority",
        ),
        ({"priority": 7}, "usual", 7, "Never"),
        ({"priorityClassName": "gone"}, "gone", 5, "Never"),
    ],
    ids=["none named", "named", "a policy of its own", "of the system", "a number", "one that is not there"],
)
def test_a_pod_gets_the_priority_of_its_class(spec: Raw, name: str, priority: int, policy: str) -> None:
    classes = (
        manifest(PriorityClass, "high", value=100),
        manifest(PriorityClass, "usual", value=5, globalDefault=True, preemptionPolicy="Never"),
        manifest(PriorityClass, "usual-too", value=9, globalDefault=True),
    )
    found = read(pod(**spec), *classes).spec
    assert (found.priority_class_name, found.priority, found.preemption_policy) == (name, priority, policy)


def test_of_a_class_that_is_given_twice_the_last_counts() -> None:
    usual = manifest(PriorityClass, "usual", value=5, globalDefault=True)
    (*_, found), _ = load_all([usual, {**usual, "value": 8}, pod()])
    assert isinstance(found, Pod)
    assert found.spec.priority == 8


def test_without_any_class_the_priority_is_zero() -> None:
    spec = read(pod()).spec
    assert (spec.priority, spec.preemption_policy) == (0, "PreemptLowerPriority")


def test_lost_nodes_are_tolerated_for_a_while() -> None:
    lost = [(one.key, one.effect) for one in read(pod()).spec.tolerations]
    assert lost == [
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
    ]
    own = [{"key": "node.kubernetes.io/not-ready", **FIVE_MINUTES}]
    assert [one.key for one in read(pod(tolerations=own)).spec.tolerations] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert len(read(pod(tolerations=[{"operator": "Exists"}])).spec.tolerations) == 1


def test_a_runtime_class_adds_its_overhead_and_says_where_it_can_be_had() -> None:
    sandbox = manifest(
        RuntimeClass,
        "sandbox",
        overhead={"podFixed": {"memory": "120Mi"}},
        scheduling={
            "nodeSelector": {"runtime": "sandbox"},
            "tolerations": [{"key": "s", "operator": "Exists"}],
        },
    )
    spec = read(pod(runtimeClassName="sandbox", nodeSelector={"zone": "a"}), sandbox).spec
    assert spec.overhead == {"memory": "120Mi"}
    assert spec.node_selector == {"runtime": "sandbox", "zone": "a"}
    assert "s" in [one.key for one in spec.tolerations]
    assert read(pod(), sandbox).spec.overhead == {}


@pytest.mark.parametrize(
    ("limits", "requests", "limited"),
    [
        ({"default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}, {"cpu": "1"}, {"cpu": "2"}),
        ({"default": {"cpu": "2"}}, {"cpu": "2"}, {"cpu": "2"}),
        ({"max": {"cpu": "4"}}, {"cpu": "4"}, {"cpu": "4"}),
        ({"min": {"cpu": "500m"}}, {"cpu": "500m"}, {}),
        ({"type": "Pod", "max": {"cpu": "4"}}, {}, {}),
    ],
    ids=["both", "a limit", "a maximum", "a minimum", "of pods"],
)
def test_containers_that_state_nothing_get_what_their_namespace_provides(
    limits: Raw, requests: Raw, limited: Raw
) -> None:
    spec = {"limits": [{"type": "Container", **limits}]}
    one = manifest(LimitRange, "a", namespace="team", spec=spec)
    (found,) = read(pod(namespace="team"), one).spec.containers
    assert (found.resources.requests, found.resources.limits) == (requests, limited)
    (stated,) = read(pod(namespace="team", containers=[container(limits={"cpu": "3"})]), one).spec.containers
    assert stated.resources.requests == {"cpu": "3"}
    (elsewhere,) = read(pod(), one).spec.containers
    assert elsewhere.resources.requests == {}


def test_a_claim_that_names_no_class_is_of_the_default_one() -> None:
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    classes = (
        manifest(StorageClass, "slow"),
        manifest(StorageClass, "fast", annotations=default),
        manifest(StorageClass, "fast-too", annotations=default),
    )
    assert read(manifest(PersistentVolumeClaim, spec={}), *classes).spec.storage_class_name == "fast"
    for stated in ("", "slow"):
        claim = manifest(PersistentVolumeClaim, spec={"storageClassName": stated})
        assert read(claim, *classes).spec.storage_class_name == stated
    assert read(manifest(PersistentVolumeClaim, spec={})).spec.storage_class_name is None


def test_an_unclaimed_volume_is_available() -> None:
    assert read(manifest(PersistentVolume, spec={})).status.phase == "Available"
    claimed = manifest(PersistentVolume, spec={"claimRef": {"name": "c"}})
    assert read(claimed).status.phase == ""


def test_a_volcano_queue_without_weight_has_one_and_its_path_begins_at_the_root() -> None:
    path = {"volcano.sh/hierarchy": "eng/dev", "volcano.sh/hierarchy-weights": "2/8"}
    queue = read(manifest(VolcanoQueue, annotations=path, spec={"weight": 0}))
    assert queue.spec.weight == 1
    assert list(queue.metadata.annotations.values()) == ["root/eng/dev", "1/2/8"]
    rooted = {"volcano.sh/hierarchy": "root/dev", "volcano.sh/hierarchy-weights": "1/8"}
    assert read(manifest(VolcanoQueue, annotations=rooted)).metadata.annotations == rooted


# -- what is left alone ------------------------------------------------------------------------------------------------


def test_what_has_been_created_gets_nothing_that_depends_on_other_objects() -> None:
    limits = {"limits": [{"type": "Container", "default": {"cpu": "2"}}]}
    others = (
        manifest(PriorityClass, "usual", value=5, globalDefault=True),
        manifest(LimitRange, "a", namespace="default", spec=limits),
    )
    raw = pod(uid="u-1", namespace="default", schedulerName="s")
    assert read(raw, *others) == load(raw)


@pytest.mark.parametrize("raw", SAMPLES, ids=lambda raw: raw["kind"])
def test_admission_is_done_once(raw: Raw) -> None:
    """What has been through is handed back as it is."""
    kind, metadata = type(load(raw)), {key: raw["metadata"][key] for key in raw["metadata"] if key != "uid"}
    once = admitted(kind, {**raw, "metadata": metadata}, Policies())
    kept = {**once, "metadata": {**once["metadata"], "uid": "u-1"}}
    assert admitted(kind, kept, Policies()) is kept


@pytest.mark.parametrize(
    "spec",
    [
        [],
        {"containers": "one"},
        {"containers": [3]},
        {"containers": [container(limits=["cpu"])]},
        {"containers": [container(limits={"cpu": "2"}, requests=3)]},
        {"hostNetwork": True, "containers": [{"name": "main", "ports": 80}]},
        {"hostNetwork": True, "containers": [{"name": "main", "ports": [80]}]},
        {"tolerations": 1},
        {"tolerations": [1]},
        {"resources": []},
        {"resources": {"limits": {"cpu": "much"}}},
        {"containers": [container(requests={"cpu": "much"})], "resources": {"limits": {"cpu": "1"}}},
    ],
)
def test_what_is_wrong_is_reported_as_it_was_written(spec: Any) -> None:
    raw = manifest(Pod, "p", spec=spec)
    (problem,) = load_batch([raw]).problems
    (told,) = load_batch([{**raw, "metadata": {"name": "p", "uid": "u-1", "namespace": "default"}}]).problems
    assert str(problem) == str(told)
    assert problem.object == "Pod default/p"
    assert problem.field.startswith("spec")
