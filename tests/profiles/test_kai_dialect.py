"""How KAI's objects are read: every field, label and annotation that decides something."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from maniple.cluster import snapshot
from maniple.cluster.cluster import Cluster
from maniple.cluster.facts import GpuAsk, GroupFacts, JobFacts, LevelWish, QueueFacts, TaskFacts
from maniple.cluster.statuses import Status
from maniple.objects.core import Pod
from maniple.objects.meta import Object
from maniple.profiles.kai import KaiDialect, NodePool
from tests.kai_support import (
    bind_request,
    claim,
    cluster_of,
    device_slice,
    gpu_node,
    group,
    pod,
    queue,
    sub_group,
)
from tests.support import make, node

GPU = "nvidia.com/gpu"
DELETED = "2026-01-01T00:00:00Z"


def task(item: Object, decided: Object | None = None, *, strict: bool = False) -> TaskFacts:
    assert isinstance(item, Pod)
    facts = KaiDialect(strict=strict).task(item, decided)
    assert facts is not None
    return facts


def ask(item: Object) -> GpuAsk | None:
    assert isinstance(item, Pod)
    return KaiDialect().gpu(item)


def job(item: Object, *, strict: bool = False) -> JobFacts:
    facts = KaiDialect(strict=strict).job(item)
    assert facts is not None
    return facts


def requested(cluster: Cluster, name: str) -> dict[str, int | float]:
    cluster.settle()
    row = cluster.tasks.index_of(f"default/{name}")
    assert row is not None
    return cluster.resources.describe(cluster.specs.specs[cluster.tasks.spec[row]].request)


def offered(cluster: Cluster, name: str) -> dict[str, int | float]:
    cluster.settle()
    row = cluster.nodes.index_of(name)
    assert row is not None
    return cluster.resources.describe(cluster.nodes.allocatable[:, row])


def status_of(cluster: Cluster, name: str) -> tuple[Status, str]:
    """With the node that it is on, as far as that is there."""
    taken = snapshot.take(cluster)
    row = cluster.tasks.index_of(f"default/{name}")
    assert row is not None
    place = int(taken.tasks.node[row])
    return Status(taken.tasks.status[row]), taken.nodes.facts.names[place] if place >= 0 else ""


# -- pods --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "fields", "status"),
    [
        ("Running", {"on": "n"}, Status.RUNNING),
        ("Running", {"on": "n", "deleted": DELETED}, Status.RELEASING),
        ("Pending", {}, Status.PENDING),
        ("Pending", {"deleted": DELETED}, Status.RELEASING),
        ("Pending", {"on": "n"}, Status.BOUND),
        ("Pending", {"spec": {"schedulingGates": [{"name": "g"}]}}, Status.GATED),
        ("Succeeded", {"on": "n"}, Status.SUCCEEDED),
        ("Succeeded", {"on": "n", "deleted": DELETED}, Status.SUCCEEDED),
        ("Failed", {"on": "n"}, Status.FAILED),
        ("Unknown", {"on": "n"}, Status.UNKNOWN),
    ],
)
def test_the_state_of_a_pod(phase: str, fields: dict[str, Any], status: Status) -> None:
    facts = task(pod("p", group="g", phase=phase, **fields))
    assert facts.status is status
    assert facts.gated is (status is Status.GATED)


def test_a_pod_in_an_unknown_phase_takes_room_unless_strict() -> None:
    lost = pod("p", group="g", on="n", phase="Unknown")
    assert task(lost).node == "n"
    assert task(lost, strict=True).node == ""


def test_a_pod_is_a_task_of_the_group_that_its_annotation_names() -> None:
    assert task(pod("p", group="g")).job == "default/g"
    assert task(pod("p", on="n")).job is None


def test_a_label_names_the_sub_group_and_the_status_the_node_that_was_promised() -> None:
    facts = task(pod("p", group="g", role="workers", status={"nominatedNodeName": "n"}))
    assert (facts.role, facts.nominated) == ("workers", "n")


def test_a_pod_of_another_scheduler_counts_only_where_it_is() -> None:
    other: dict[str, Any] = {"spec": {"schedulerName": "default-scheduler"}}
    dialect = KaiDialect()
    waiting, there, done = (
        pod("p", group="g", **other),
        pod("p", group="g", on="n", **other),
        pod("p", group="g", on="n", phase="Succeeded", **other),
    )
    assert isinstance(waiting, Pod)
    assert isinstance(done, Pod)
    assert dialect.task(waiting) is None
    assert dialect.task(done) is None
    assert (task(there).job, task(there).node) == (None, "n")


def test_scheduler_names_are_given() -> None:
    ours = pod("p", group="g", spec={"schedulerName": "mine"})
    assert isinstance(ours, Pod)
    assert KaiDialect(scheduler_names=["mine"]).task(ours) is not None
    assert KaiDialect().task(ours) is None


# -- bind requests -----------------------------------------------------------------------------------------------------


def test_a_bind_request_says_where_a_pod_is_about_to_be_bound() -> None:
    facts = task(pod("p", group="g"), bind_request("p", "n", selectedGPUGroups=["x", "y"]))
    assert (facts.status, facts.node, facts.gpu_groups) == (Status.BINDING, "n", ("x", "y"))


def test_the_node_of_a_bound_pod_is_its_own() -> None:
    facts = task(pod("p", group="g", on="m", phase="Pending"), bind_request("p", "n"))
    assert (facts.status, facts.node) == (Status.BOUND, "m")


def test_a_leaving_pod_that_is_about_to_be_bound_leaves_from_there() -> None:
    facts = task(pod("p", group="g", deleted=DELETED), bind_request("p", "n"))
    assert (facts.status, facts.node) == (Status.RELEASING, "n")


@pytest.mark.parametrize(
    ("status", "limit", "holds"),
    [
        ({"phase": "Pending"}, None, True),
        ({"phase": "Succeeded"}, None, True),
        ({"phase": "Failed"}, None, False),
        ({"phase": "Failed", "failedAttempts": 1}, 2, True),
        ({"phase": "Failed", "failedAttempts": 2}, 2, False),
    ],
)
def test_a_request_that_was_given_up_decides_nothing(
    status: dict[str, Any], limit: int | None, holds: bool
) -> None:
    more: dict[str, Any] = {} if limit is None else {"backoffLimit": limit}
    facts = task(pod("p", group="g"), bind_request("p", "n", status=status, **more))
    assert facts.status is (Status.BINDING if holds else Status.PENDING)


def test_the_life_of_a_request_for_a_node_that_comes_and_goes() -> None:
    cluster = cluster_of(queue("default"), group("g"), pod("p", group="g"), bind_request("p", "n"))
    assert status_of(cluster, "p") == (Status.PENDING, "")
    cluster.apply(node("n"))
    assert status_of(cluster, "p") == (Status.BINDING, "n")
    cluster.delete(node("n"))
    assert status_of(cluster, "p") == (Status.PENDING, "")
    cluster.apply(node("n"))
    cluster.delete(bind_request("p", "n"))
    assert status_of(cluster, "p") == (Status.PENDING, "")


def test_a_request_may_be_named_otherwise_and_turn_to_another_pod() -> None:
    cluster = cluster_of(queue("default"), group("g"), node("n"), pod("p", group="g"), pod("q", group="g"))
    cluster.apply(bind_request("p", "n", name="r"))
    assert status_of(cluster, "p")[0] is Status.BINDING
    cluster.apply(bind_request("q", "n", name="r"))
    assert [status_of(cluster, one)[0] for one in "pq"] == [Status.PENDING, Status.BINDING]
    cluster.delete(bind_request("p", "n", name="r"))
    assert status_of(cluster, "q")[0] is Status.PENDING


# -- parts of GPUs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "hundredths"),
    [
        ("0.5", 50),
        ("1", 100),
        ("1.0", 100),
        (".25", 25),
        ("5e-1", 50),
        ("0.333", 33),
        ("0.335", 34),
        ("0.001", 1),
        ("0", 0),
        ("-0.5", 0),
        ("1.5", 0),
        ("1/2", 0),
        (" 0.5", 0),
        ("0_5", 0),
        ("nan", 0),
        ("half", 0),
        ("٠.٥", 0),
    ],
)
def test_a_fraction_is_a_decimal_above_0_and_up_to_1(text: str, hundredths: int) -> None:
    found = ask(pod("p", fraction=text))
    assert (found.portion if found is not None else 0) == hundredths


def test_a_fraction_keeps_what_was_written() -> None:
    assert ask(pod("p", fraction="0.333")) == GpuAsk(33, exact=0.333)


@pytest.mark.parametrize(
    ("text", "memory"), [("2000", 2000), ("0", 0), ("-5", 0), ("1.5", 0), ("2Gi", 0), ("²", 0)]
)
def test_gpu_memory_is_a_whole_number(text: str, memory: int) -> None:
    found = ask(pod("p", memory=text))
    assert (found.memory if found is not None else 0) == memory


def test_an_annotation_that_cannot_be_read_is_remembered_unless_strict() -> None:
    assert ask(pod("p", fraction="half")) == GpuAsk(unreadable="gpu-fraction")
    assert ask(pod("p", memory="2Gi")) == GpuAsk(unreadable="gpu-memory")
    item = pod("p", fraction="half")
    assert isinstance(item, Pod)
    assert KaiDialect(strict=True).gpu(item) is None


@pytest.mark.parametrize("text", ["1e-9", "0.0099", "0.00000000001"])
def test_a_fraction_below_a_hundredth_counts_as_one_and_is_refused_unless_strict(text: str) -> None:
    assert ask(pod("p", fraction=text)) == GpuAsk(1, exact=0.01, unreadable="gpu-fraction")
    item = pod("p", fraction=text)
    assert isinstance(item, Pod)
    assert KaiDialect(strict=True).gpu(item) == GpuAsk(1, exact=float(text))


def test_a_fraction_comes_before_memory() -> None:
    assert ask(pod("p", fraction="0.5", memory="2000")) == GpuAsk(50, 0, exact=0.5)


@pytest.mark.parametrize(("text", "devices"), [("3", 3), ("", 1), ("0", 1), ("-1", 1), ("many", 1)])
def test_the_same_part_of_several_devices(text: str, devices: int) -> None:
    for found in (
        ask(pod("p", fraction="0.5", devices=text)),
        ask(pod("p", memory="10", devices=text)),
    ):
        assert found is not None
        assert found.devices == devices


def test_the_number_of_devices_alone_asks_for_nothing() -> None:
    assert ask(pod("p", devices="2")) is None


def test_a_part_replaces_what_containers_ask_of_gpus() -> None:
    asked = {"cpu": "1", GPU: "1", "nvidia.com/mig-1g.5gb": "1"}
    cluster = cluster_of(pod("part", asked, group="g", fraction="0.5"), pod("whole", asked, group="g"))
    assert requested(cluster, "part") == {"cpu": 1000, "pods": 1}
    assert requested(cluster, "whole") == {"cpu": 1000, "pods": 1, GPU: 1, "nvidia.com/mig-1g.5gb": 1}


def test_a_part_is_never_nothing() -> None:
    cluster = cluster_of(pod("p", group="g", memory="10"))
    row = cluster.tasks.index_of("default/p")
    assert not cluster.tasks.best_effort[row]
    assert cluster.resources.known(GPU) is not None


def test_slices_that_only_annotations_tell_of() -> None:
    old = pod("old", {GPU: "1"}, group="g", on="n", annotations={"nvidia.com/mig-1g.5gb": "2"})
    assert ask(old) == GpuAsk(legacy_mig=True, slices=(("nvidia.com/mig-1g.5gb", 2),))
    assert requested(cluster_of(old), "old") == {"pods": 1, "nvidia.com/mig-1g.5gb": 2}
    assert ask(pod("p", annotations={"nvidia.com/mig-1g.5gb": "some"})) is None


def test_slices_that_containers_ask_for_are_not_of_the_old_kind() -> None:
    name = "nvidia.com/mig-1g.5gb"
    assert ask(pod("p", {name: "1"}, annotations={name: "1"})) is None


def test_the_binder_notes_the_shared_devices_in_labels() -> None:
    assert task(pod("p", on="n", groups=("x",))).gpu_groups == ("x",)
    three = {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "3"}
    assert task(pod("p", on="n", groups=("x", "y", "z"), annotations=three)).gpu_groups == ("x", "y", "z")


def test_labels_name_no_more_devices_than_the_pod_requests() -> None:
    assert task(pod("p", on="n", groups=("x", "y", "z"))).gpu_groups == ("x",)


def test_of_several_devices_the_original_sees_none_unless_one_is_noted_as_the_only_one() -> None:
    labels, two = {"runai-gpu-group/x": "x", "runai-gpu-group/y": "y"}, {"gpu-fraction-num-devices": "2"}
    several = pod("p", on="n", labels=labels, annotations=two)
    assert task(several).gpu_groups == ("x", "y")
    assert task(several, strict=True).gpu_groups == ()


def test_a_request_knows_the_devices_better_than_labels_do() -> None:
    facts = task(pod("p", group="g", groups=("x",)), bind_request("p", "n", selectedGPUGroups=["y"]))
    assert facts.gpu_groups == ("y",)


BY_BINDER = {"schedulerName": "default-scheduler"}  # it has a node from the beginning


def test_reservation_pods_take_no_gpu_and_are_not_taken_for_their_like() -> None:
    asked, labels = {"cpu": "1", GPU: "1"}, {"app": "kai-resource-reservation"}
    cluster = cluster_of(
        pod("like", asked, on="n", spec=BY_BINDER),
        pod("reserves", asked, on="n", labels=labels, spec=BY_BINDER),
        pod("forged", asked, on="n", labels=labels),
    )
    assert requested(cluster, "reserves") == {"cpu": 1000, "pods": 1}
    assert requested(cluster, "like") == {"cpu": 1000, "pods": 1, GPU: 1}
    assert requested(cluster, "forged") == {"cpu": 1000, "pods": 1, GPU: 1}


def test_the_label_of_reservation_pods_is_given() -> None:
    item = pod("r", {GPU: "1"}, on="n", labels={"app": "mine"}, spec=BY_BINDER)
    assert requested(cluster_of(item, dialect=KaiDialect(reservation_app="mine")), "r") == {"pods": 1}


# -- resources ---------------------------------------------------------------------------------------------------------


def test_gpus_of_each_maker_are_counted_by_name() -> None:
    cluster = cluster_of(
        node("n", {GPU: "2", "amd.com/gpu": "3"}), pod("p", {"amd.com/gpu": "2", GPU: "1"}, group="g")
    )
    assert offered(cluster, "n")[GPU] == 2
    assert requested(cluster, "p") == {"pods": 1, GPU: 1, "amd.com/gpu": 2}


def test_strictly_gpus_of_every_maker_are_one_pool() -> None:
    cluster = cluster_of(
        node("n", {GPU: "2", "amd.com/gpu": "3"}),
        pod("p", {"amd.com/gpu": "2", GPU: "1"}, group="g"),
        dialect=KaiDialect(strict=True),
    )
    assert offered(cluster, "n")[GPU] == 5
    assert requested(cluster, "p") == {"pods": 1, GPU: 3}
    assert "amd.com/gpu" not in cluster.resources.names


@pytest.mark.parametrize(
    ("resource", "counts"),
    [
        ("cpu", True),
        ("memory", True),
        ("pods", True),
        ("ephemeral-storage", True),
        ("hugepages-2Mi", True),
        ("attachable-volumes-csi", True),
        ("example.com/fpga", True),
        ("nvidia.com/mig-1g.5gb", True),
        ("fpga", False),
    ],
)
def test_which_resources_count(resource: str, counts: bool) -> None:
    assert KaiDialect().counts(resource) is counts


@pytest.mark.parametrize(
    ("asked", "nothing"),
    [
        ({}, True),
        ({"cpu": "9m"}, True),
        ({"cpu": "10m"}, False),
        ({"memory": "9Mi"}, True),
        ({"memory": "10Mi"}, False),
        ({"ephemeral-storage": "9"}, True),
        ({"example.com/fpga": "1"}, False),
        ({GPU: "1"}, False),
    ],
)
def test_asking_for_next_to_nothing_is_asking_for_nothing(asked: dict[str, str], nothing: bool) -> None:
    cluster = cluster_of(pod("p", asked, group="g"))
    assert bool(cluster.tasks.best_effort[cluster.tasks.index_of("default/p")]) is nothing


def test_devices_of_gpu_claims_count_as_gpus() -> None:
    uses = {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}
    cluster = cluster_of(pod("p", {GPU: "1"}, group="g", spec=uses))
    assert requested(cluster, "p")[GPU] == 1
    for item, devices in (
        (claim("c", count=3), 3),
        (claim("c"), 1),
        (claim("c", "Vendor-GPU", count=2), 2),
        (claim("c", allocationMode="All"), 1),
        (claim("c", "nic.example.com", count=4), 0),
    ):
        cluster.apply(item)
        assert requested(cluster, "p")[GPU] == 1 + devices
    cluster.delete(claim("c"))
    assert requested(cluster, "p")[GPU] == 1


def test_devices_of_which_the_first_available_is_taken_count_as_none() -> None:
    choice = {"name": "one", "deviceClassName": "gpu.example.com", "count": 2}
    spec = {"devices": {"requests": [{"name": "r", "firstAvailable": [choice]}]}}
    either = make("resource.k8s.io/v1", "ResourceClaim", "c", namespace="default", spec=spec)
    uses = {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}
    cluster = cluster_of(pod("p", {GPU: "1"}, group="g", spec=uses), either)
    assert requested(cluster, "p")[GPU] == 1


def test_a_claim_that_was_made_for_a_pod_counts_and_one_named_twice_counts_once() -> None:
    made = {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "p-c-x"}]}
    template = {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]}
    twice = {"resourceClaims": [{"name": one, "resourceClaimName": "p-c-x"} for one in "ab"]}
    for user in (pod("p", group="g", spec=template, status=made), pod("p", group="g", spec=twice)):
        cluster = cluster_of(user)
        cluster.apply(claim("p-c-x", count=2))
        assert requested(cluster, "p")[GPU] == 2


def test_devices_in_slices_are_gpus_of_their_node() -> None:
    cluster = cluster_of(node("n", {GPU: "1"}), node("m"))
    cluster.apply(device_slice("s", "n", 3))
    cluster.apply(device_slice("t", "n", 2, driver="Vendor.GPU"))
    cluster.apply(device_slice("u", "m", 4, driver="nic.example.com"))
    assert offered(cluster, "n")[GPU] == 6
    assert GPU not in offered(cluster, "m")
    assert (cluster.published("n"), cluster.published("m")) == (5, 0)
    cluster.delete(device_slice("s", "n", 3))
    assert offered(cluster, "n")[GPU] == 3


# -- node pools --------------------------------------------------------------------------------------------------------

POOL = "kai.scheduler/node-pool"


def of_kinds(labels: dict[str, str]) -> list[Object]:
    return [node("n", labels=labels), queue("q", labels=labels), group("g", labels=labels)]


def test_without_a_pool_those_count_that_are_in_none() -> None:
    dialect = KaiDialect()
    assert all(dialect.covers(item) for item in of_kinds({}))
    assert not any(dialect.covers(item) for item in of_kinds({POOL: "a"}))
    assert not any(dialect.covers(item) for item in of_kinds({POOL: ""}))


def test_with_a_pool_those_count_that_are_in_it() -> None:
    dialect = KaiDialect(pool=NodePool("pool", "a"))
    assert all(dialect.covers(item) for item in of_kinds({"pool": "a"}))
    assert not any(dialect.covers(item) for item in of_kinds({"pool": "b"}))
    assert not any(dialect.covers(item) for item in of_kinds({}))


def test_pods_and_everything_else_belong_to_all_pools() -> None:
    dialect = KaiDialect(pool=NodePool("pool", "a"))
    assert dialect.covers(pod("p", group="g", labels={"pool": "b"}))
    assert dialect.covers(bind_request("p", "n"))


def test_only_workers_count_if_that_is_asked_for() -> None:
    dialect = KaiDialect(worker_labels=("cpu-worker", "gpu-worker"))
    assert not dialect.covers(node("n"))
    assert dialect.covers(node("n", labels={"gpu-worker": ""}))
    assert dialect.covers(node("n", labels={"cpu-worker": "false"}))
    assert not dialect.covers(node("n", labels={"cpu-worker": "", POOL: "a"}))


def test_a_node_that_leaves_the_pool_is_gone() -> None:
    cluster = cluster_of(node("n"), pod("p", on="n", group="g"), group("g"), queue("default"))
    assert status_of(cluster, "p") == (Status.RUNNING, "n")
    cluster.apply(node("n", labels={POOL: "a"}))
    assert status_of(cluster, "p") == (Status.RUNNING, "")


# -- groups ------------------------------------------------------------------------------------------------------------


def told(*conditions: tuple[str, str]) -> dict[str, Any]:
    return {
        "schedulingConditions": [
            {"type": "UnschedulableOnNodePool", "nodePool": pool, "transitionID": number, "status": "True"}
            for pool, number in conditions
        ]
    }


@pytest.mark.parametrize(
    ("backoff", "conditions", "tried"),
    [
        (None, [("default", "1")], True),
        (-1, [("default", "1")], True),
        (1, [], True),
        (1, [("default", "1")], False),
        (1, [("other", "1")], True),
        (1, [("default", "1"), ("other", "2")], True),
        (1, [("default", "2"), ("other", "1")], False),
        (1, [("other", "none"), ("default", "0")], False),
    ],
)
def test_a_group_that_asked_to_be_tried_once_is_not_tried_again(
    backoff: int | None, conditions: list[tuple[str, str]], tried: bool
) -> None:
    spec = {} if backoff is None else {"schedulingBackoff": backoff}
    assert KaiDialect().covers(group("g", spec=spec, status=told(*conditions))) is tried


def test_a_group_in_another_pool_than_where_it_failed_is_tried() -> None:
    failed = told(("a", "1"))
    backs_off: dict[str, Any] = {"spec": {"schedulingBackoff": 1}, "status": failed}
    assert KaiDialect(pool=NodePool(POOL, "b")).covers(group("g", labels={POOL: "b"}, **backs_off))
    assert not KaiDialect(pool=NodePool(POOL, "a")).covers(group("g", labels={POOL: "a"}, **backs_off))


def test_the_fields_of_a_group() -> None:
    wish = {"topology": "t", "requiredTopologyLevel": "zone", "preferredTopologyLevel": "rack"}
    facts = job(
        group(
            "g",
            3,
            queue="q",
            spec={
                "priorityClassName": "train",
                "preemptibility": "non-preemptible",
                "topologyConstraint": wish,
            },
            status={"phase": "Running"},
            annotations={
                "kai.scheduler/last-start-timestamp": "2026-01-01T10:00:00Z",
                "kai.scheduler/stale-podgroup-timestamp": "2026-01-01T11:00:00Z",
            },
        )
    )
    assert (facts.queue, facts.minimum, facts.phase, facts.priority_class) == ("q", 3, "Running", "train")
    assert facts.level_wish == LevelWish("t", "zone", "rack")
    assert facts.preemptible is False
    assert facts.started == datetime(2026, 1, 1, 10, tzinfo=UTC)
    assert facts.stale_since == datetime(2026, 1, 1, 11, tzinfo=UTC)


def test_what_a_group_does_not_say() -> None:
    facts = job(group("g", 0, spec={"topologyConstraint": {"requiredTopologyLevel": "zone"}}))
    assert (facts.minimum, facts.preemptible, facts.level_wish) == (1, None, None)
    assert (facts.started, facts.stale_since, facts.groups) == (None, None, ())


def test_a_moment_that_cannot_be_read_is_none() -> None:
    written = {"kai.scheduler/last-start-timestamp": "yesterday"}
    assert job(group("g", annotations=written)).started is None


def test_priorities_come_from_classes_and_decide_preemptibility() -> None:
    cluster = cluster_of(queue("default"), group("g", spec={"priorityClassName": "build"}), group("h"))
    cluster.settle()
    rows = np.array([cluster.jobs.index_of(f"default/{one}") for one in "gh"], dtype=np.intp)
    assert cluster.jobs.priority[rows].tolist() == [50, 50]
    cluster.apply(make("scheduling.k8s.io/v1", "PriorityClass", "build", value=100))
    cluster.apply(make("scheduling.k8s.io/v1", "PriorityClass", "any", value=75, globalDefault=True))
    cluster.settle()
    assert cluster.jobs.priority[rows].tolist() == [100, 75]


def test_sub_groups_as_they_are_written() -> None:
    wish = {"topology": "t", "requiredTopologyLevel": "rack"}
    written = [
        sub_group("all", 9),
        sub_group("leader", 0, "all"),
        sub_group("workers", 4, "all", topologyConstraint=wish),
    ]
    facts = job(group("g", 7, spec={"subGroups": written}))
    assert facts.groups == (
        GroupFacts("all", 9),
        GroupFacts("leader", 1, "all"),
        GroupFacts("workers", 4, "all", LevelWish("t", "rack")),
    )
    assert facts.minimum == 5


def test_a_parent_with_capitals_is_found_unless_strict() -> None:
    written = {"subGroups": [sub_group("All"), sub_group("workers", 2, "All")]}
    assert job(group("g", spec=written)).groups[1].parent == "All"
    assert job(group("g", spec=written), strict=True).groups[1].parent == "all"
    small = {"subGroups": [sub_group("all"), sub_group("Workers", 2, "ALL")]}
    for strict in (False, True):
        facts = job(group("g", spec=small), strict=strict)
        assert [(one.name, one.parent) for one in facts.groups] == [("all", ""), ("Workers", "all")]


# -- queues ------------------------------------------------------------------------------------------------------------


def test_the_fields_of_a_queue() -> None:
    dialect = KaiDialect()
    assert dialect.queue(queue("q", "p", spec={"priority": 7})) == QueueFacts(parent="p", priority=7)
    assert dialect.queue(queue("q", spec={"priority": 0})) == QueueFacts(priority=0)
    assert dialect.queue(queue("q")) == QueueFacts(priority=100, states_priority=False)


def test_objects_of_others_are_no_groups_and_no_queues() -> None:
    dialect = KaiDialect()
    assert dialect.job(queue("q")) is None
    assert dialect.queue(group("g")) is None
    assert dialect.decides(gpu_node("n")) is None
