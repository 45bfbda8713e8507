"""KAI's predicates: which nodes are ruled out, in which words, and which pods are not considered at all."""

from typing import Any

import numpy as np
import pytest

from maniple.framework.points import Capacity
from maniple.framework.transactions.transaction import Transaction
from maniple.planner import Planner
from maniple.plugins.feasibility.volume_binding import NO_ROOM
from maniple.plugins.kai import node_rules
from maniple.plugins.kai.gpupack import GpuPack
from maniple.plugins.kai.predicates import Predicates
from tests.actions.allocate_scenes import cycle, gang, placed, reasons
from tests.plugins.kai.asking import Asking
from tests.plugins.kai.fairness_scenes import job, node, queue, task
from tests.plugins.kai.test_scores import GPU_MEMORY, LEAVING, sharing
from tests.support import make

PODS_FULL = "node(s) pod number exceeded"
SLICE = "nvidia.com/mig-1g.5gb"


def ask(*parts: Any, **more: Any) -> Asking:
    return Asking([Predicates, GpuPack], *parts, **more)


def member(name: str, requests: dict[str, str] | None = None, **spec: Any) -> Any:
    return task(name, requests or {"cpu": "1"}, annotations={"pod-group-name": "g"}, **spec)


# -- GPUs of the right kind ---------------------------------------------------------------------------------------


def mig_node(name: str, strategy: str, gpus: int = 2) -> Any:
    labels = {"node-role.kubernetes.io/mig-enabled": "true", "nvidia.com/mig.strategy": strategy}
    return node(name, gpus, labels={**labels, **GPU_MEMORY}, extra={SLICE: "7"})


def _kinds() -> list[Any]:
    return [
        job("whole", "q", pending=1, gpus=1),
        job("slice", "q", pending=1, gpus=0, requests={SLICE: "1"}),
        job("cpu", "q", pending=1, gpus=0),
        sharing("part", "0.5"),
    ]


def test_nodes_with_divided_gpus_take_what_their_strategy_says() -> None:
    nodes = [node("plain", 2, labels=GPU_MEMORY), mig_node("single", "single"), mig_node("mixed", "mixed")]
    asking = ask(*nodes, mig_node("unsaid", ""), _kinds())
    assert asking.refused("whole-0") == {"mixed": node_rules.ONLY_MIG}
    assert asking.refused("slice-0") == {"plain": node_rules.NO_MIG, "single": node_rules.ONLY_WHOLE}
    assert asking.refused("part-0") == {"single": node_rules.ONLY_WHOLE, "mixed": node_rules.ONLY_MIG}
    assert asking.refused("cpu-0") == {}


def test_slices_that_a_node_offers_make_it_divided_unless_its_label_denies_it() -> None:
    denied = node("denied", 0, labels={"node-role.kubernetes.io/mig-enabled": "false"}, extra={SLICE: "7"})
    asking = ask(node("offers", 0, extra={SLICE: "7"}), denied, _kinds())
    assert asking.refused("slice-0") == {"denied": node_rules.NO_MIG}


def test_a_slice_that_only_an_annotation_tells_of_is_not_scheduled_anew() -> None:
    legacy = job("legacy", "q", pending=1, gpus=0, annotations={SLICE: "1"})
    asking = ask(mig_node("mixed", "mixed"), legacy)
    assert asking.refused("legacy-0") == {"mixed": node_rules.LEGACY_MIG}


def test_a_part_of_a_gpu_that_cannot_be_read_is_reported_instead_of_left_out() -> None:
    asking = ask(node("n1", 4), job("p", "q", pending=1, gpus=0, annotations={"gpu-fraction": "half"}))
    assert asking.refused("p-0") == {
        "n1": "the pod's annotation gpu-fraction must be a part of a GPU from 0.01 to 1, such as 0.5"
    }


def test_no_new_slice_beside_a_legacy_one() -> None:
    legacy = job("legacy", "q", running=1, gpus=0, annotations={SLICE: "1"}, on="a")
    asking = ask(mig_node("a", "mixed"), mig_node("b", "mixed"), legacy, _kinds())
    assert asking.refused("slice-0") == {"a": node_rules.AMONG_LEGACY_MIG}


def test_devices_of_a_driver_are_not_for_the_device_plugins_requests() -> None:
    devices = {"driver": "gpu.example.com", "nodeName": "dra", "devices": [{"name": "0"}]}
    published = make("resource.k8s.io/v1", "ResourceSlice", "s", spec={"pool": {"name": "dra"}, **devices})
    asking = ask(node("dra", 0, labels=GPU_MEMORY), node("plain", 1, labels=GPU_MEMORY), published, _kinds())
    assert asking.refused("whole-0") == {"dra": node_rules.DRA_ONLY}
    assert asking.refused("part-0") == {"dra": node_rules.DRA_ONLY}
    assert asking.refused("cpu-0") == {}


def test_an_amount_of_gpu_memory_needs_a_node_that_says_how_much_it_has() -> None:
    asks = job("m", "q", pending=1, gpus=0, annotations={"gpu-memory": "500"})
    asking = ask(node("told", 1, labels=GPU_MEMORY), node("untold", 1), asks, sharing("part", "0.5"))
    assert asking.refused("m-0") == {"untold": node_rules.NOT_SYNCED}
    assert asking.refused("part-0") == {}


# -- the queue's capacity on a node -------------------------------------------------------------------------------


def test_what_gpu_memory_counts_is_checked_on_the_node() -> None:
    small, large = {"nvidia.com/gpu.memory": "1000"}, {"nvidia.com/gpu.memory": "4000"}
    asks = job("m", "capped", pending=1, gpus=0, annotations={"gpu-memory": "1000"})
    planner = Planner(conf={"actions": "allocate"}, profile="kai")
    queues = [queue("top", -1, limit=-1), queue("capped", 0, limit=0.5, parent="top")]
    nodes = [node("a-small", 1, labels=small), node("b-large", 1, labels=large)]
    plan = planner.cycle(planner.build([*queues, *nodes, *asks]))
    assert placed(plan) == {"m-0": "b-large"}


def test_jobs_of_one_class_are_refused_by_their_own_queue() -> None:
    class Quota:
        name = "quota"

        def __init__(self, session: Any, _: Any) -> None:
            self._session = session

        def is_task_allocation_on_node_over_capacity(self, row: int, _: int) -> Capacity:
            facts = self._session.job_facts(int(self._session.tasks.job[row]))
            return Capacity(facts.queue == "rich", "OverLimit", "too much")

    notes = {"gpu-memory": "500"}
    asking = Asking(
        [Predicates, Quota],
        queue("rich"),
        queue("poor"),
        node("n", 1, labels=GPU_MEMORY),
        job("a", "rich", pending=1, gpus=0, annotations=notes),
        job("b", "poor", pending=1, gpus=0, annotations=notes),
    )
    assert asking.refused("a-0") == {}
    assert asking.refused("b-0") == {"n": "node does not have enough capacity. Reason: OverLimit"}


# -- a place for the pod ------------------------------------------------------------------------------------------


def _crowded(free: int, *parts: Any, strict: bool = False, group: str = "0b6a-uuid") -> Asking:
    """A node with one shared GPU, one whole one, and so many places left."""
    return ask(
        node("n", 2, labels=GPU_MEMORY, extra={"pods": str(1 + free)}),
        sharing("neighbour", "0.5", on="n", group=group),
        sharing("joins", "0.5"),
        sharing("opens", "0.6"),
        *parts,
        strict=strict,
    )


def test_opening_a_gpu_takes_two_places_and_joining_one() -> None:
    assert _crowded(2).refused("opens-0") == {}
    tight = _crowded(1)
    assert tight.refused("opens-0") == {"n": PODS_FULL}
    assert tight.refused("joins-0") == {}
    assert _crowded(0).refused("joins-0") == {"n": PODS_FULL}


def test_strictly_joining_takes_two_places_unless_the_gpu_s_name_is_a_number() -> None:
    assert _crowded(1, strict=True).refused("joins-0") == {"n": PODS_FULL}
    assert _crowded(2, strict=True).refused("joins-0") == {}
    assert _crowded(1, strict=True, group="0").refused("joins-0") == {}


def test_imagined_tasks_take_places() -> None:
    assert _crowded(2).refused("opens-0", extra=1) == {"n": PODS_FULL}


def test_what_asks_for_nothing_still_takes_a_place() -> None:
    tiny = task("tiny", {}, annotations={"pod-group-name": "g"})
    assert _crowded(1, tiny).refused("tiny") == {}
    assert _crowded(0, tiny).refused("tiny") == {"n": PODS_FULL}


def test_places_that_are_being_freed_count_as_free() -> None:
    asking = ask(
        node("n", 1, extra={"pods": "1"}),
        job("leaving", "q", running=1, gpus=0, on="n", deleted=LEAVING),
        task("tiny", {}, annotations={"pod-group-name": "g"}),
    )
    assert asking.refused("tiny") == {}


# -- the node's conditions ----------------------------------------------------------------------------------------


def conditioned(name: str, **conditions: str) -> Any:
    written = [{"type": kind, "status": status} for kind, status in conditions.items()]
    return node(name, 1, conditions=written)


def test_nodes_in_a_bad_way_are_out() -> None:
    cordoned = make(
        "v1",
        "Node",
        "cordoned",
        spec={"unschedulable": True},
        status={"allocatable": {"cpu": "8", "pods": "9"}},
    )
    asking = ask(
        conditioned("fine", Ready="True", MemoryPressure="False", Unheard="True"),
        conditioned("silent"),
        conditioned("lost", Ready="Unknown"),
        conditioned("tight", Ready="True", MemoryPressure="True"),
        conditioned("full", DiskPressure="Unknown"),
        conditioned("busy", PIDPressure="True"),
        conditioned("cut-off", Ready="False", NetworkUnavailable="True"),
        cordoned,
        member("p", tolerations=[{"operator": "Exists"}]),
    )
    assert asking.refused("p") == {
        "lost": "node has NotReady condition",
        "tight": "node has MemoryPressure condition",
        "full": "node has DiskPressure condition",
        "busy": "node has PIDPressure condition",
        "cut-off": "node has NotReady condition; node has NetworkUnavailable condition",
        "cordoned": "node is unschedulable",
    }


# -- what Kubernetes' own filters say -----------------------------------------------------------------------------


def test_taints_labels_and_ports_are_minded() -> None:
    tainted = make(
        "v1",
        "Node",
        "tainted",
        spec={"taints": [{"key": "k", "effect": "NoSchedule"}]},
        status={"allocatable": {"cpu": "8", "pods": "9"}},
    )
    ports = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    user = task("user", {}, on="right", containers=ports)
    asking = ask(
        tainted,
        node("right", labels={"disk": "ssd"}),
        node("wrong"),
        user,
        member("selects", nodeSelector={"disk": "ssd"}),
        member("listens", containers=ports),
    )
    assert set(asking.refused("selects")) == {"tainted", "wrong"}
    assert set(asking.refused("listens")) == {"tainted", "right"}


def test_pods_are_kept_apart_that_want_to_be() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [node(name, labels={"kubernetes.io/hostname": name}) for name in ("n1", "n2")]
    asking = ask(nodes, task("a", {}, on="n1", labels={"app": "a"}), member("p", affinity=apart))
    assert set(asking.refused("p")) == {"n1"}


def test_spread_volume_limits_and_preferred_terms_are_none_of_its_business() -> None:
    names = {one.name for one in ask(node("n")).session.hooks.filters()}
    assert names.isdisjoint({"PodTopologySpread", "NodeVolumeLimits", "VolumeZone", "NodeUnschedulable"})


@pytest.mark.parametrize(("strict", "still_there"), [(True, True), (False, False)])
def test_an_evicted_pod_keeps_its_port_strictly_only(strict: bool, still_there: bool) -> None:
    ports = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    user = task("user", {"cpu": "1"}, on="n", annotations={"pod-group-name": "g"}, containers=ports)
    for early in (True, False):
        asking = ask(node("n"), user, member("p", containers=ports), strict=strict)
        if early:  # counted before the eviction, and after it
            assert set(asking.refused("p")) == {"n"}
        transaction = asking.evict("user")
        assert set(asking.refused("p")) == ({"n"} if still_there else set())
        transaction.discard()
        assert set(asking.refused("p")) == {"n"}


def test_an_evicted_pod_that_the_session_itself_placed_keeps_its_port_too() -> None:
    ports = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    for early in (True, False):
        asking = ask(node("n"), member("user", containers=ports), member("p", containers=ports), strict=True)
        if early:
            assert set(asking.refused("p")) == set()
        placing = Transaction(asking.session)
        placing.pipeline(np.array([asking.row("user")]), np.array([asking.node("n")], dtype=np.intp))
        placing.commit()
        transaction = asking.evict("user")
        assert set(asking.refused("p")) == {"n"}
        transaction.discard()
        assert set(asking.refused("p")) == {"n"}


def test_a_pod_that_moves_counts_at_both_ends_strictly() -> None:
    ports = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    user = task("user", {"cpu": "1"}, on="a", annotations={"pod-group-name": "g"}, containers=ports)
    for early in (True, False):
        asking = ask(node("a"), node("b"), node("c"), user, member("p", containers=ports), strict=True)
        if early:
            assert set(asking.refused("p")) == {"a"}
        transaction = asking.evict("user")
        transaction.move(np.array([asking.row("user")]), np.array([asking.node("b")], dtype=np.intp))
        assert set(asking.refused("p")) == {"a", "b"}
        transaction.discard()
        assert set(asking.refused("p")) == {"a"}


def test_a_pod_that_moved_and_is_evicted_again_counts_wherever_it_was_strictly() -> None:
    ports = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    user = task("user", {"cpu": "1"}, on="a", annotations={"pod-group-name": "g"}, containers=ports)
    for early in (True, False):
        asking = ask(node("a"), node("b"), node("c"), user, member("p", containers=ports), strict=True)
        if early:
            assert set(asking.refused("p")) == {"a"}
        transaction = asking.evict("user")
        transaction.move(np.array([asking.row("user")]), np.array([asking.node("b")], dtype=np.intp))
        transaction.commit()
        again = asking.evict("user")
        assert set(asking.refused("p")) == {"a", "b"}
        again.discard()
        assert set(asking.refused("p")) == {"a", "b"}


def test_with_csi_storage_scheduling_the_room_for_volumes_is_kept_books_of() -> None:
    storage_class = make(
        "storage.k8s.io/v1",
        "StorageClass",
        "disk",
        provisioner="csi.example.com",
        volumeBindingMode="WaitForFirstConsumer",
    )
    driver = make("storage.k8s.io/v1", "CSIDriver", "csi.example.com", spec={"storageCapacity": True})
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    wanted = make(
        "v1",
        "PersistentVolumeClaim",
        "c",
        namespace="default",
        spec={"storageClassName": "disk", "resources": {"requests": {"storage": "1Gi"}}},
    )
    parts = [node("n"), storage_class, driver, wanted, member("p", volumes=volumes)]
    assert ask(*parts).refused("p") == {"n": NO_ROOM}
    booked = ask(*parts, options={"scheduleCSIStorage": True})
    assert booked.refused("p") == {"n": "no allocatable storage from storageclass disk found"}


# -- nodes that are kept for GPU or CPU tasks ---------------------------------------------------------------------


def test_restricted_nodes_take_tasks_of_their_own_kind() -> None:
    gpu_worker = node("g", 2, labels={"node-role.kubernetes.io/gpu-worker": ""})
    cpu_worker = node("c", 2, labels={"cpus": "yes"})
    parts = [gpu_worker, cpu_worker, job("gpu", "q", pending=1, gpus=1), job("cpu", "q", pending=1, gpus=0)]
    options = {"restrictNodeScheduling": True, "cpuWorkerNodeLabelKey": "cpus"}
    asking = ask(*parts, options=options)
    assert asking.refused("gpu-0") == {"c": node_rules.NO_GPU_WORKER}
    assert asking.refused("cpu-0") == {"g": node_rules.NO_CPU_WORKER}
    assert ask(*parts).refused("gpu-0") == {}


# -- pods that are not considered at all --------------------------------------------------------------------------


def test_more_than_any_node_has_is_reported_with_the_most_there_is() -> None:
    plan = cycle(
        queue("top", -1),
        queue("q", -1, parent="top"),
        node("a", 2),
        node("b", 4),
        gang("wants", 1, gpus=5),
    )
    assert placed(plan) == {}
    assert reasons(plan, "wants")[0] == (
        "Resources were not found for pod default/wants-0 due to: "
        "Scheduling conditions were not met for pod default/wants-0:\n"
        "MaxNodePoolResources: The pod default/wants-0 requires GPU: 5, CPU: 1 (cores), memory: 1 (GB), pods: 1. "
        "Max GPU resources available in a single node in the default node-pool is topped at 4."
    )


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        (
            {"cpu": "200"},
            "Max CPU resources available in a single node in the east node-pool is topped at 100 cores",
        ),
        (
            {"memory": "200G"},
            "Max memory resources available in a single node in the east node-pool is topped at 100 GB",
        ),
        (
            {"ephemeral-storage": "3G"},
            "Max ephemeral-storage resources available in a single node in the east node-pool is topped at 2 GB",
        ),
        ({"example.com/card": "1"}, "No node in the east node-pool has example.com/card resources"),
    ],
)
def test_every_resource_is_compared(requests: dict[str, str], words: str) -> None:
    asking = ask(
        node("n", 1, extra={"ephemeral-storage": "2G"}),
        member("p", requests),
        options={"nodePoolLabelValue": "east"},
    )
    assert words in asking.refusal("p")
    assert asking.refusal("p").startswith("Scheduling conditions were not met for pod")


def test_parts_of_gpus_need_as_many_gpus_and_memory_is_for_the_nodes_to_tell() -> None:
    several = {"gpu-fraction-num-devices": "4"}
    asking = ask(
        node("n", 1, labels=GPU_MEMORY),
        sharing("few", "0.25", annotations=several),
        sharing("many", "0.5", annotations=several),
        job("memory", "q", pending=1, gpus=0, annotations={"gpu-memory": "99999"}),
    )
    assert asking.refusal("few-0") == asking.refusal("memory-0") == ""
    assert "requires GPU: 2" in asking.refusal("many-0")


def test_everything_that_is_wrong_is_reported_together() -> None:
    one = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    other = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [one, other]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}]
    env = [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "x"}}}]
    containers = [{"name": "c", "env": env, "resources": {"requests": {"cpu": "500"}}}]
    asking = ask(node("n"), member("p", affinity=affinity, volumes=volumes, containers=containers))
    told = asking.refusal("p").splitlines()
    assert [line.partition(":")[0] for line in told[1:]] == [
        "NodeAffinity",
        "VolumeBinding",
        "MaxNodePoolResources",
        "ConfigMap",
    ]
    assert told[1] == "NodeAffinity: pod affinity terms conflict."
    assert told[2] == 'VolumeBinding: persistentvolumeclaim "gone" not found.'
    assert told[4] == "ConfigMap: Missing required configmaps: [settings]."


def test_config_maps_that_exist_or_are_not_needed_stop_no_pod() -> None:
    env = [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "x"}}}]
    containers = [{"name": "c", "env": env}]
    there = make("v1", "ConfigMap", "settings", namespace="default")
    elsewhere = make("v1", "ConfigMap", "settings", namespace="other")
    assert ask(node("n"), member("p", containers=containers), there).refusal("p") == ""
    assert "[settings]" in ask(node("n"), member("p", containers=containers), elsewhere).refusal("p")


def test_pods_that_differ_in_the_config_maps_they_need_are_distinguished() -> None:
    def needing(name: str, config_map: str) -> Any:
        sources = [{"configMapRef": {"name": config_map}}]
        return member(name, containers=[{"name": "c", "envFrom": sources}])

    there = make("v1", "ConfigMap", "there", namespace="default")
    asking = ask(node("n"), there, needing("a", "there"), needing("b", "gone"))
    assert asking.refusal("a") == ""
    assert "[gone]" in asking.refusal("b")
