"""One small cluster for each reason for which a job waits, and what a true answer has to name.

`REASONS` holds them by name. `kind` is that of the cause that binds; `says` are words without which the sentence would
be vague. Profiles that do not know a reason are left out of `profiles`, with the reason in a comment.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.explain.scene import GPU, SPACE, Scene
from tests.soak.amounts import Raw
from tests.soak.shapes import HOST, ZONE

ALL = ("volcano", "kai", "maniple")
EVICTING = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
CAPACITY = """
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: capacity
    enableHierarchy: true
  - name: nodeorder
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """`kind`: of the binding cause, by profile where they differ."""

    name: str
    build: Callable[[Scene], None]
    kind: str | Mapping[str, str]
    says: tuple[str, ...]
    profiles: tuple[str, ...] = ALL

    def scene(self, profile: str) -> Scene:
        made = Scene(profile)
        self.build(made)
        return made


REASONS: dict[str, Waiting] = {}
Build = Callable[[Scene], None]


def waits(
    kind: str | Mapping[str, str], *says: str, profiles: tuple[str, ...] = ALL
) -> Callable[[Build], Build]:
    def noted(build: Build) -> Build:
        name = build.__name__.replace("_", "-")
        REASONS[name] = Waiting(name, build, kind, says, profiles)
        return build

    return noted


# -- room ------------------------------------------------------------------------------------------------------------


@waits("GangTooLarge", "20", "16", "cpu")
def gang_larger_than_the_idle_cluster(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    scene.job(pods=20)


@waits("PodTooLarge", "cpu 12", "8", "no node")
def pod_larger_than_any_node(scene: Scene) -> None:
    scene.nodes(3)
    scene.queue()
    scene.job(requests={"cpu": "12"})


@waits("Fragmented", "6", "2", "cpu")
def enough_but_fragmented(scene: Scene) -> None:
    scene.nodes(3)
    scene.queue()
    scene.job("old", pods=3, on=("n0", "n1", "n2"), requests={"cpu": "6"}, preemptible=False)
    scene.job(requests={"cpu": "4"})


@waits("Full", "cpu")
def full_of_equals(scene: Scene) -> None:
    scene.conf = EVICTING if scene.profile == "volcano" else None
    scene.nodes(2)
    scene.queue()
    scene.job("old", pods=4, minimum=4, on=("n0", "n1"), requests={"cpu": "4"})
    scene.job(pods=2, requests={"cpu": "4"})


# -- nodes that do not suit -------------------------------------------------------------------------------------------


@waits("Taint", "dedicated=research:NoSchedule", "2")
def taint(scene: Scene) -> None:
    scene.nodes(2, spec={"taints": [{"key": "dedicated", "value": "research", "effect": "NoSchedule"}]})
    scene.queue()
    scene.job(pods=2)


@waits("NodeAffinity", "accelerator=nvidia-a10O", "nvidia-a100")
def selector_with_a_typo(scene: Scene) -> None:
    scene.nodes(2, {"accelerator": "nvidia-a100"})
    scene.node("cpu", {"accelerator": "none"})
    scene.queue()
    scene.job(spec={"nodeSelector": {"accelerator": "nvidia-a10O"}})


@waits("NodeAffinity", "zone", "eu-west-1", "eu-west-1a")
def affinity_with_a_typo(scene: Scene) -> None:
    scene.nodes(2, {ZONE: "eu-west-1a"})
    scene.queue()
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["eu-west-1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    scene.job(spec={"affinity": {"nodeAffinity": required}})


def _apart(app: str, key: str = HOST) -> Raw:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


@waits("AntiAffinity", "3", "app=job", HOST)
def anti_affinity_within_the_gang(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    scene.job(pods=3, spec=_apart("job"))


@waits("AntiAffinityOfOthers", "hermit-0", HOST)
def anti_affinity_of_another_pod(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    scene.job("hermit", pods=2, on=("n0", "n1"), spec=_apart("job"), preemptible=False)
    scene.job()


@waits("Affinity", "app=cache", HOST)
def affinity_to_a_pod_that_is_not_there(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    term = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": HOST}
    scene.job(spec={"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})


@waits("NodeNotReady", "2", "not ready")
def node_not_ready(scene: Scene) -> None:
    scene.nodes(2, ready="False")
    scene.queue()
    scene.job()


@waits("NodeUnschedulable", "2", "cordon")
def cordoned(scene: Scene) -> None:
    taint_ = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    scene.nodes(2, spec={"unschedulable": True, "taints": [taint_]})
    scene.queue()
    scene.job()


@waits("Full", "dedicated=research:NoSchedule", "cpu")
def full_and_tainted(scene: Scene) -> None:
    scene.nodes(2)
    taint_ = {"key": "dedicated", "value": "research", "effect": "NoSchedule"}
    scene.node("t0", spec={"taints": [taint_]})
    scene.queue()
    scene.job("old", pods=2, on=("n0", "n1"), requests={"cpu": "8"}, preemptible=False)
    scene.job(requests={"cpu": "4"})


@waits("Taint", "dedicated=research:NoSchedule", "1 node")
def shortage_hides_a_taint(scene: Scene) -> None:
    """The only node is tainted, and full besides."""
    scene.node("n0", spec={"taints": [{"key": "dedicated", "value": "research", "effect": "NoSchedule"}]})
    scene.queue()
    scene.job("old", on=("n0",), requests={"cpu": "8"}, preemptible=False)
    scene.job(requests={"cpu": "4"})


# -- amounts of single resources -------------------------------------------------------------------------------------


@waits("Full", "cpu", GPU)
def short_of_cpu_and_gpu(scene: Scene) -> None:
    scene.nodes(2, {"nvidia.com/gpu.memory": "40000"}, room={GPU: "4"})
    scene.queue()
    scene.job("old", pods=2, on=("n0", "n1"), requests={"cpu": "7", GPU: "3"}, preemptible=False)
    scene.job(requests={"cpu": "4", GPU: "2"})


@waits("UnknownResource", "nvidia.com/gpus", GPU)
def resource_name_with_a_typo(scene: Scene) -> None:
    scene.nodes(2, room={GPU: "4"})
    scene.queue()
    scene.job(requests={"nvidia.com/gpus": "1"})


@waits("PodsPerNode", "pods", "2")
def pods_per_node(scene: Scene) -> None:
    scene.nodes(2, room={"pods": "2"})
    scene.queue()
    scene.job("old", pods=4, on=("n0", "n1"), requests={"cpu": "100m"}, preemptible=False)
    scene.job(requests={"cpu": "100m"})


@waits("InitContainerTooLarge", "init container", "prepare", "cpu 12")
def init_container_above_any_node(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    init = {"name": "prepare", "image": "work:1", "resources": {"requests": {"cpu": "12"}}}
    scene.job(spec={"initContainers": [init]})


@waits("DaemonSets", "DaemonSet", "cpu 8")
def daemon_sets_in_the_way(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    for number in range(2):
        made = scene.pod(
            f"agent-{number}", on=f"n{number}", scheduler="default-scheduler", space="kube-system"
        )
        made["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "ds", "controller": True}
        ]
    scene.job(requests={"cpu": "8"})


@waits("HostPort", "8080")
def host_port_within_the_gang(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    scene.job(pods=3, container={"ports": [{"containerPort": 8080, "hostPort": 8080}]})


# -- queues ---------------------------------------------------------------------------------------------------------


@waits("QueueLimit", "team", "cpu", "4")
def queue_at_its_limit(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue(limit={"cpu": "4"})
    scene.job("old", pods=4, on=("n0",), preemptible=False)
    scene.job()


@waits("QueueLimit", "dep", "cpu", "4", "cousin")
def parent_at_its_limit(scene: Scene) -> None:
    scene.conf = CAPACITY if scene.profile == "volcano" else None
    scene.nodes(2)
    if scene.dialect == "volcano":
        scene.queue("root")
    scene.queue("dep", parent="root" if scene.dialect == "volcano" else "", limit={"cpu": "4"})
    scene.queue("team", parent="dep")
    scene.queue("other", parent="dep")
    scene.job("cousin", queue="other", pods=4, on=("n0",), preemptible=False)
    scene.job()


# KAI's queues have no state.
@waits("QueueClosed", "team", "closed", profiles=("volcano", "maniple"))
def queue_closed(scene: Scene) -> None:
    scene.dialect = "volcano"
    scene.nodes(2)
    scene.queue(closed=True)
    scene.job(phase="Pending")


@waits("QueueClosed", "team", "closed", profiles=("volcano", "maniple"))
def queue_closed_and_no_pods(scene: Scene) -> None:
    scene.dialect = "volcano"
    scene.nodes(2)
    scene.queue(closed=True)
    scene.job(pods=0, minimum=2, phase="Pending")


@waits("QueueMissing", "taem", "team")
def unknown_queue(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    scene.job(queue="taem")


# Volcano gives jobs of any queue their turn unless its capacity plugin is told of a hierarchy.
@waits("QueueNotLeaf", "dep", "team")
def queue_that_is_no_leaf(scene: Scene) -> None:
    scene.conf = CAPACITY if scene.profile == "volcano" else None
    scene.nodes(2)
    scene.queue("dep", parent="root" if scene.dialect == "volcano" else "")
    if scene.dialect == "volcano":
        scene.queue("root")
    scene.queue("team", parent="dep")
    scene.job(queue="dep", phase="Pending")


# Volcano has no such rule.
@waits("NonPreemptibleOverQuota", "team", "quota", "cpu", "4", profiles=("kai", "maniple"))
def non_preemptible_over_quota(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue(quota={"cpu": "4"})
    scene.job("old", pods=4, on=("n0",), preemptible=False)
    scene.job(pods=2, preemptible=False)


@waits("ResourceQuota", "compute", "cpu", profiles=("volcano",))  # only Volcano's plugin reads ResourceQuota
def resource_quota(scene: Scene) -> None:
    scene.conf = EVICTING.replace("  - name: proportion\n", "  - name: proportion\n  - name: resourcequota\n")
    scene.nodes(2)
    scene.queue()
    hard = {"cpu": "4"}
    scene.add(
        "v1",
        "ResourceQuota",
        "compute",
        SPACE,
        spec={"hard": hard},
        status={"hard": hard, "used": {"cpu": "3"}},
    )
    scene.job(pods=2, phase="Pending", group={"minResources": {"cpu": "2"}})


# -- victims --------------------------------------------------------------------------------------------------------


@waits("Full", "not preemptible")
def victims_not_preemptible(scene: Scene) -> None:
    scene.conf = EVICTING if scene.profile == "volcano" else None
    scene.priority("high", 90)
    scene.nodes(2)
    scene.queue()
    scene.job("old", pods=4, minimum=1, on=("n0", "n1"), requests={"cpu": "4"}, preemptible=False)
    scene.job(pods=2, requests={"cpu": "4"}, priority="high")


@waits("Full", "share")
def nothing_over_its_share(scene: Scene) -> None:
    scene.conf = EVICTING if scene.profile == "volcano" else None
    scene.nodes(2)
    scene.queue("team", quota={"cpu": "8"})
    scene.queue("other", quota={"cpu": "8"})
    scene.job("mine", pods=2, minimum=2, on=("n0",), requests={"cpu": "4"}, preemptible=False)
    scene.job("theirs", queue="other", pods=2, minimum=1, on=("n1",), requests={"cpu": "4"})
    scene.job(requests={"cpu": "4"})


@waits("Full", "priority")
def priority_too_low(scene: Scene) -> None:
    scene.conf = EVICTING if scene.profile == "volcano" else None
    scene.priority("high", 90)
    scene.priority("low", 10)
    scene.nodes(2)
    scene.queue()
    scene.job("old", pods=4, minimum=1, on=("n0", "n1"), requests={"cpu": "4"}, priority="high")
    scene.job(pods=2, requests={"cpu": "4"}, priority="low")


@waits("Full", "not known yet", "searchBudget", profiles=("kai", "maniple"))
def search_for_victims_not_ended(scene: Scene) -> None:
    scene.options = {"searchBudget": 1}
    scene.priority("low", 10)
    scene.priority("high", 90)
    scene.nodes(4)
    scene.queue()
    for number in range(4):
        scene.job(f"old{number}", on=(f"n{number}",), requests={"cpu": "8"}, priority="low")
    scene.job("large", pods=9, requests={"cpu": "8"}, age=7200, priority="high")
    scene.job(pods=2, requests={"cpu": "4"}, priority="high")
    # What is kept for jobs from one place in line on is kept for the last ones of these, at this time.
    for number in range(4):
        scene.job(f"later{number}", pods=9, requests={"cpu": "8"}, age=60, priority="high")


# KAI does not look at disruption budgets when it chooses victims.
@waits("Full", "PodDisruptionBudget", "keep", profiles=("volcano", "maniple"))
def disruption_budget(scene: Scene) -> None:
    scene.conf = (
        EVICTING.replace("  - name: conformance\n", "  - name: conformance\n  - name: pdb\n")
        if scene.profile == "volcano"
        else None
    )
    scene.priority("high", 90)
    scene.nodes(2)
    scene.queue()
    scene.job("old", pods=4, minimum=1, on=("n0", "n1"), requests={"cpu": "4"})
    spec = {"selector": {"matchLabels": {"app": "old"}}, "minAvailable": 4}
    status = {"disruptionsAllowed": 0, "currentHealthy": 4, "desiredHealthy": 4, "expectedPods": 4}
    scene.add("policy/v1", "PodDisruptionBudget", "keep", SPACE, spec=spec, status=status)
    scene.job(pods=1, requests={"cpu": "4"}, priority="high")


@waits("Rival", "rival", "ahead")
def rival_ahead(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    scene.job("rival", pods=4, requests={"cpu": "4"}, age=7200)
    scene.job(pods=2, requests={"cpu": "4"}, age=60)


@waits("BeingServed", "old", "left n0")
def being_served_by_eviction(scene: Scene) -> None:
    scene.conf = EVICTING if scene.profile == "volcano" else None
    scene.priority("high", 90)
    scene.nodes(1)
    scene.queue()
    scene.job("old", pods=2, minimum=1, on=("n0",), requests={"cpu": "4"})
    scene.job(requests={"cpu": "4"}, priority="high")


# -- volumes and devices --------------------------------------------------------------------------------------------


def _volume(name: str) -> Raw:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


def _claim(scene: Scene, name: str, class_: str, **spec: str) -> None:
    body = {
        "storageClassName": class_,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        **spec,
    }
    phase = "Bound" if "volumeName" in spec else "Pending"
    notes = {"pv.kubernetes.io/bind-completed": "yes"} if "volumeName" in spec else {}
    scene.add(
        "v1", "PersistentVolumeClaim", name, SPACE, annotations=notes, spec=body, status={"phase": phase}
    )


@waits("VolumeClaimMissing", "data-set")
def claim_missing(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    scene.job(spec=_volume("data-set"))


@waits("VolumeClaimUnbound", "data-set", "fast")
def claim_unbound(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    scene.add(
        "storage.k8s.io/v1",
        "StorageClass",
        "fast",
        provisioner="disk.example.com",
        volumeBindingMode="Immediate",
    )
    _claim(scene, "data-set", "fast")
    scene.job(spec=_volume("data-set"))


def _zoned_volume(scene: Scene, zone: str, **more: Raw) -> None:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "claimRef": {"namespace": SPACE, "name": "data-set", "uid": "PersistentVolumeClaim-data-set"},
        **more,
    }
    scene.add("v1", "PersistentVolume", "pv-7", labels={ZONE: zone}, spec=spec, status={"phase": "Bound"})
    scene.add(
        "storage.k8s.io/v1",
        "StorageClass",
        "fast",
        provisioner="disk.example.com",
        volumeBindingMode="WaitForFirstConsumer",
    )


@waits("VolumeZone", "pv-7", "zone-b")
def zone_of_a_volume(scene: Scene) -> None:
    scene.nodes(2, {ZONE: "zone-a"})
    scene.queue()
    _zoned_volume(scene, "zone-b")
    _claim(scene, "data-set", "fast", volumeName="pv-7")
    scene.job(spec=_volume("data-set"))


@waits("VolumeUnavailable", "data-set", "disk.example.com")
def csi_driver_on_no_node(scene: Scene) -> None:
    scene.nodes(2, {ZONE: "zone-a"})
    scene.queue()
    scene.add("storage.k8s.io/v1", "CSIDriver", "disk.example.com", spec={"storageCapacity": True})
    scene.add(
        "storage.k8s.io/v1",
        "StorageClass",
        "fast",
        provisioner="disk.example.com",
        volumeBindingMode="WaitForFirstConsumer",
    )
    _claim(scene, "data-set", "fast")
    scene.job(spec=_volume("data-set"))


def _devices(scene: Scene, count: int) -> None:
    scene.add("resource.k8s.io/v1", "DeviceClass", "gpu.example.com", spec={"selectors": []})
    for number in range(2):
        pool = {"name": f"n{number}", "generation": 1, "resourceSliceCount": 1}
        made = [{"name": f"gpu-{one}", "attributes": {}, "capacity": {}} for one in range(count)]
        spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": f"n{number}", "devices": made}
        scene.add("resource.k8s.io/v1", "ResourceSlice", f"n{number}-slice", spec=spec)


@waits("DevicesShort", "gpu.example.com", "4")
def dra_devices_short(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    _devices(scene, 2)
    demand = {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 4}
    spec = {"devices": {"requests": [{"name": "r", "exactly": demand}]}}
    scene.add(
        "resource.k8s.io/v1",
        "ResourceClaim",
        "gpus",
        SPACE,
        labels={"kai.scheduler/queue": "team"},
        spec=spec,
        status={},
    )
    scene.job(spec={"resourceClaims": [{"name": "gpus", "resourceClaimName": "gpus"}]})


def _claims(scene: Scene, *others: tuple[str, Mapping[str, str]]) -> Raw:
    """What a pod says that has a claim which exists, and others."""
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
    labels = {"kai.scheduler/queue": "team"}
    scene.add("resource.k8s.io/v1", "ResourceClaim", "node", SPACE, labels=labels, spec=spec, status={})
    claims = ("node", {"resourceClaimName": "node"}), *others
    return {"resourceClaims": [{"name": name, **named} for name, named in claims]}


@waits("ResourceClaimMissing", "ResourceClaim gpus does not exist")
def resource_claim_missing(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    _devices(scene, 2)
    scene.job(spec=_claims(scene, ("gpus", {"resourceClaimName": "gpus"})))


@waits("ResourceClaimMissing", "has been created from", "gpus", "spec.resourceClaims[1]")
def resource_claim_not_created_from_its_template(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    _devices(scene, 2)
    scene.job(spec=_claims(scene, ("own", {"resourceClaimTemplateName": "gpus"})))


@waits("GpuFraction", "0.5", "GPU", profiles=("kai", "maniple"))
def gpu_fraction(scene: Scene) -> None:
    scene.node("n0", {"nvidia.com/gpu.memory": "40000"}, room={GPU: "1"})
    scene.queue()
    scene.job("old", on=("n0",), requests={GPU: "1"}, preemptible=False)
    scene.job(annotations={"gpu-fraction": "0.5"})


@waits("GpuMemoryTooLarge", "80000", "40000", profiles=("kai", "maniple"))
def gpu_memory_above_any_device(scene: Scene) -> None:
    scene.node("n0", {"nvidia.com/gpu.memory": "40000"}, room={GPU: "1"})
    scene.queue()
    scene.job(annotations={"gpu-memory": "80000"})


@waits("GpuMemoryUnknown", "nvidia.com/gpu.memory", profiles=("kai", "maniple"))
def gpu_memory_label_absent(scene: Scene) -> None:
    scene.node("n0", room={GPU: "1"})
    scene.queue()
    scene.job(annotations={"gpu-memory": "8000"})


@waits("UnknownResource", "nvidia.com/mig-1g.10gb")
def mig_profile_absent(scene: Scene) -> None:
    labels = {
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mig.capable": "true",
        "nvidia.com/gpu.memory": "40000",
    }
    scene.node("n0", labels, room={"nvidia.com/mig-3g.20gb": "2"})
    scene.queue()
    scene.job(requests={"nvidia.com/mig-1g.10gb": "1"})


# -- gangs ----------------------------------------------------------------------------------------------------------


@waits("SchedulingGate", "example.com/quota")
def scheduling_gate(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    scene.job(pods=2, spec={"schedulingGates": [{"name": "example.com/quota"}]})


@waits("PodsMissing", "5", "2")
def minimum_above_the_pods(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    scene.job(pods=2, minimum=5)


@waits("OtherScheduler", "default-scheduler")
def pods_of_another_scheduler(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    scene.job(pods=2, scheduler="default-scheduler")


def _roles(scene: Scene, pods: Mapping[str, tuple[int, Raw]]) -> None:
    least = sum(count for count, _ in pods.values())
    if scene.dialect == "volcano":
        group: Raw = {"minTaskMember": {role: count for role, (count, _) in pods.items()}}
    else:
        group = {"subGroups": [{"name": role, "minMember": count} for role, (count, _) in pods.items()]}
    scene.job(pods=0, minimum=least, group=group)
    for role, (count, requests) in pods.items():
        for number in range(count):
            scene.pod(f"job-{role}-{number}", "job", role=role, requests=requests)


@waits("GangTooLarge", "worker", "cpu 4")
def one_role_short(scene: Scene) -> None:
    scene.nodes(2)
    scene.queue()
    _roles(scene, {"master": (1, {"cpu": "1"}), "worker": (4, {"cpu": "4"})})


@waits("SeveralParts", "worker", "server")
def two_roles_short(scene: Scene) -> None:
    scene.nodes(2)
    scene.node("g0", room={GPU: "1"})
    scene.queue()
    _roles(scene, {"master": (1, {"cpu": "1"}), "server": (2, {"cpu": "12"}), "worker": (4, {GPU: "1"})})


# -- topology -------------------------------------------------------------------------------------------------------


def _racks(scene: Scene) -> None:
    for rack in ("r1", "r2"):
        for number in range(2):
            scene.node(f"{rack}-{number}", {"rack": rack, ZONE: "zone-a"})
    if scene.dialect == "volcano":
        for rack in ("r1", "r2"):
            said = [
                {"type": "Node", "selector": {"exactMatch": {"name": f"{rack}-{number}"}}}
                for number in range(2)
            ]
            scene.add("topology.volcano.sh/v1alpha1", "HyperNode", rack, spec={"tier": 1, "members": said})
    else:
        levels = [{"nodeLabel": "rack"}, {"nodeLabel": HOST}]
        scene.add("kai.scheduler/v1alpha1", "Topology", "network", spec={"levels": levels})


def _near(scene: Scene, topology: str = "network", level: str = "rack") -> Raw:
    if scene.dialect == "volcano":
        return {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    return {"topologyConstraint": {"topology": topology, "requiredTopologyLevel": level}}


TOPOLOGY_CONF = EVICTING.replace(
    "  - name: nodeorder\n", "  - name: nodeorder\n  - name: network-topology-aware\n"
)


@waits("DomainTooSmall", "r1", "4", "6")
def topology_domain_too_small(scene: Scene) -> None:
    scene.conf = TOPOLOGY_CONF if scene.profile == "volcano" else None
    _racks(scene)
    scene.queue()
    scene.job(pods=6, requests={"cpu": "4"}, group=_near(scene))


@waits("DomainTooSmall", "1 more pod has to be with the one that has its place", "r1 has room for 0")
def rest_of_a_gang_outside_its_domain(scene: Scene) -> None:
    """There is room, but not where the gang has begun."""
    scene.conf = TOPOLOGY_CONF if scene.profile == "volcano" else None
    _racks(scene)
    scene.queue()
    for number in range(2):
        scene.job(f"other{number}", on=(f"r1-{number}",), requests={"cpu": "5"}, preemptible=False)
    scene.job(pods=1, minimum=2, on=("r1-0",), requests={"cpu": "2"}, group=_near(scene))
    scene.pod("job-1", "job", requests={"cpu": "4"})


@waits("Rival", "rival", "ahead")
def rival_in_every_domain(scene: Scene) -> None:
    scene.conf = TOPOLOGY_CONF if scene.profile == "volcano" else None
    _racks(scene)
    scene.queue()
    scene.job("rival", pods=8, requests={"cpu": "4"}, age=7200)
    scene.job(pods=4, requests={"cpu": "4"}, age=60, group=_near(scene))


# Volcano names no topology.
@waits("TopologyMissing", "netwrok", "network", profiles=("kai", "maniple"))
def topology_name_with_a_typo(scene: Scene) -> None:
    _racks(scene)
    scene.queue()
    scene.job(pods=2, group=_near(scene, "netwrok"))


@waits("TopologyLabelMissing", "rakc", "did you mean rack", profiles=("kai", "maniple"))
def topology_label_on_no_node(scene: Scene) -> None:
    _racks(scene)
    scene.add("kai.scheduler/v1alpha1", "Topology", "other", spec={"levels": [{"nodeLabel": "rakc"}]})
    scene.queue()
    scene.job(pods=2, group=_near(scene, "other", "rakc"))


# KAI does not read topologySpreadConstraints.
@waits("TopologySpread", ZONE, profiles=("volcano", "maniple"))
def topology_spread(scene: Scene) -> None:
    scene.node("n0", {ZONE: "zone-a"})
    scene.node("n1", {ZONE: "zone-b"}, spec={"taints": [{"key": "x", "effect": "NoSchedule"}]})
    scene.queue()
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "job"}},
    }
    scene.job(pods=3, spec={"topologySpreadConstraints": [constraint]})


@waits("PodTooLarge", "cpu 12", "8")
def queue_full_and_node_too_small(scene: Scene) -> None:
    """The queue has no room either, but more of it would not help."""
    scene.nodes(2)
    scene.queue(limit={"cpu": "10"})
    scene.job(requests={"cpu": "12"})
