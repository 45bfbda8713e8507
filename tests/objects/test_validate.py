"""Each rule of validity: one value replaced in a valid object, and the problem names that field."""

import re
from typing import Any

import pytest

from maniple.objects.load import load_all
from tests.objects.fragments import PREFERRED, REQUIRED
from tests.objects.samples import placed, sample


def field_of(path: str) -> str:
    return re.sub(r"/(\d+)", r"[\1]", path).replace("/", ".")


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Pod", "metadata/name", "a b"),
        ("Pod", "metadata/name", "a/b"),
        ("Pod", "metadata/name", "a" * 254),
        ("Pod", "metadata/namespace", "a/b"),
        ("Pod", "metadata/namespace", "a\n"),
        ("Pod", "metadata/creationTimestamp", "yesterday"),
        ("Pod", "metadata/creationTimestamp", "2026-03-01T12:00:00"),
        ("Pod", "spec/nodeName", "n 1"),
        ("Pod", "spec/priority", 2**31),
        ("Pod", "spec/containers/0/resources/requests/cpu", "1 Gi"),
        ("Pod", "spec/containers/0/resources/requests/cpu", "-1"),
        ("Pod", "spec/containers/0/resources/requests/cpu", -0.5),
        ("Pod", "spec/containers/0/resources/requests/cpu", True),
        ("Pod", "spec/containers/0/resources/requests/cpu", []),
        ("Pod", "spec/containers/0/resources/limits/cpu", "x"),
        ("Pod", "spec/containers/0/ports/0/hostPort", 65536),
        ("Pod", "spec/containers/0/ports/0/protocol", "ICMP"),
        ("Pod", "spec/initContainers/0/resources/requests/cpu", "x"),
        ("Pod", "spec/overhead/cpu", "x"),
        ("Pod", "spec/resources/requests/cpu", "x"),
        ("Pod", "spec/tolerations/0/effect", "x"),
        ("Pod", "spec/tolerations/0/operator", "x"),
        ("Pod", "spec/topologySpreadConstraints/0/maxSkew", 0),
        ("Pod", "spec/topologySpreadConstraints/0/minDomains", 0),
        ("Pod", "spec/topologySpreadConstraints/0/whenUnsatisfiable", "x"),
        ("Pod", "spec/topologySpreadConstraints/0/nodeTaintsPolicy", "x"),
        ("Pod", "spec/topologySpreadConstraints/0/topologyKey", ""),
        ("Pod", "status/containerStatuses/0/allocatedResources/cpu", "x"),
        ("Pod", "status/initContainerStatuses/0/resources/requests/cpu", "x"),
        ("Pod", "spec/volumes/1/ephemeral/volumeClaimTemplate/spec/resources/requests/storage", "x"),
        ("Pod", f"spec/affinity/podAffinity/{REQUIRED}/0/topologyKey", ""),
        ("Pod", f"spec/affinity/podAntiAffinity/{PREFERRED}/0/weight", 101),
        ("Pod", f"spec/affinity/nodeAffinity/{PREFERRED}/0/weight", 0),
        ("Node", "status/allocatable/cpu", "eight"),
        ("Node", "status/capacity/cpu", "-8"),
        ("Node", "spec/taints/0/effect", "NoRun"),
        ("Node", "spec/taints/0/key", ""),
        ("PersistentVolumeClaim", "spec/resources/requests/storage", "x"),
        ("PersistentVolume", "spec/capacity/storage", "x"),
        ("StorageClass", "volumeBindingMode", "Later"),
        ("CSINode", "spec/drivers/0/allocatable/count", -1),
        ("CSIStorageCapacity", "capacity", "x"),
        ("CSIStorageCapacity", "maximumVolumeSize", "x"),
        ("ResourceQuota", "spec/hard/cpu", "x"),
        ("ResourceQuota", "status/used/cpu", "x"),
        ("PodDisruptionBudget", "spec/minAvailable", "30"),
        ("PodDisruptionBudget", "spec/maxUnavailable", -1),
        ("ResourceClaim", "spec/devices/requests/0/exactly/count", 0),
        ("ResourceClaim", "spec/devices/requests", [{"name": f"r{number}"} for number in range(33)]),
        ("ResourceClaim", "spec/devices/requests/0/exactly/selectors", [{}] * 33),
        ("ResourceClaim", "spec/devices/requests/0/exactly/tolerations", [{}] * 17),
        ("ResourceClaim", "spec/devices/requests/1/firstAvailable", [{"name": "a"}] * 9),
        ("ResourceClaim", "spec/devices/constraints", [{}] * 33),
        ("ResourceClaim", "spec/devices/constraints/0/requests", ["r"] * 33),
        ("ResourceClaim", "spec/devices/requests/1/firstAvailable/0/allocationMode", "x"),
        ("ResourceClaim", "spec/devices/requests/0/exactly/capacity/requests/memory", "x"),
        ("ResourceClaim", "status/allocation/devices/results/0/consumedCapacity/memory", "x"),
        ("ResourceSlice", "spec/devices/0/capacity/memory/value", "x"),
        ("ResourceSlice", "spec/devices/0/capacity/memory/requestPolicy/validRange/step", "x"),
        ("ResourceSlice", "spec/devices/0/consumesCounters/0/counters/slices/value", "x"),
        ("ResourceSlice", "spec/sharedCounters/0/counters/slices/value", "x"),
        ("HyperNode", "spec/members/0/type", "Rack"),
        ("HyperNode", "spec/members/0/selector", {}),
        ("HyperNode", "spec/members/0/selector/exactMatch/name", ""),
        ("HyperNode", "spec/tier", -1),
        ("Numatopology", "spec/resReserved/cpu", "x"),
        ("Numatopology", "spec/cpuDetail", {"first": {}}),
        (
            "BindRequest",
            "spec/resourceClaimAllocations/0/allocation/devices/results/0/consumedCapacity/memory",
            "x",
        ),
        ("scheduling.volcano.sh:Queue", "spec/weight", 65536),
        ("scheduling.volcano.sh:Queue", "spec/capability/cpu", "x"),
        ("scheduling.volcano.sh:Queue", "spec/guarantee/resource/cpu", "x"),
        ("scheduling.volcano.sh:PodGroup", "spec/minMember", -1),
        ("scheduling.volcano.sh:PodGroup", "spec/minResources/cpu", "x"),
        ("scheduling.volcano.sh:PodGroup", "spec/networkTopology/mode", "firm"),
        ("scheduling.run.ai:Queue", "spec/resources/gpu/quota", float("inf")),
        ("scheduling.run.ai:Queue", "spec/resources/gpu/limit", "many"),
        ("scheduling.run.ai:PodGroup", "spec/preemptibility", "maybe"),
        ("scheduling.run.ai:PodGroup", "spec/subGroups/0/name", ""),
        ("scheduling.run.ai:PodGroup", "status/resourcesStatus/requested/cpu", "x"),
    ],
)
def test_the_problem_names_the_field(kind: str, path: str, value: Any) -> None:
    objects, problems = load_all([placed(sample(kind), path, value)])
    assert objects == []
    assert [problem.field for problem in problems] == [field_of(path)]
    assert problems[0].object.startswith(f"{kind.rpartition(':')[2]} ")


@pytest.mark.parametrize(
    ("kind", "path", "value", "part"),
    [
        (
            "Pod",
            f"spec/affinity/podAffinity/{REQUIRED}/0/labelSelector/matchExpressions/0/operator",
            "Near",
            f"spec.affinity.podAffinity.{REQUIRED}[0].labelSelector",
        ),
        (
            "Pod",
            f"spec/affinity/nodeAffinity/{REQUIRED}/nodeSelectorTerms",
            [],
            f"spec.affinity.nodeAffinity.{REQUIRED}",
        ),
        ("PersistentVolumeClaim", "spec/selector/matchLabels/app", "-", "spec.selector"),
        (
            "PersistentVolume",
            "spec/nodeAffinity/required/nodeSelectorTerms",
            [],
            "spec.nodeAffinity.required",
        ),
        ("PodDisruptionBudget", "spec/selector/matchExpressions/0/values", [], "spec.selector"),
        ("ReplicaSet", "spec/selector/matchExpressions/0/operator", "x", "spec.selector"),
        ("HyperNode", "spec/members/2/type", "HyperNode", "spec.members[2].selector.labelMatch"),
        ("HyperNode", "spec/members/1/selector/exactMatch", {"name": "n"}, "spec.members[1].selector"),
        (
            "scheduling.volcano.sh:PodGroup",
            "spec/subGroupPolicy/0/labelSelector/matchLabels/app",
            "-",
            "spec.subGroupPolicy[0].labelSelector",
        ),
    ],
)
def test_the_problem_names_the_part_that_is_wrong_as_a_whole(
    kind: str, path: str, value: Any, part: str
) -> None:
    objects, problems = load_all([placed(sample(kind), path, value)])
    assert objects == []
    assert [problem.field for problem in problems] == [part]


@pytest.mark.parametrize("amount", ["0.5", 0.5, "500m", "1.5"])
def test_a_part_of_a_device_is_refused(amount: Any) -> None:
    path = "spec/containers/0/resources/requests"
    objects, problems = load_all([placed(sample("Pod"), path, {"nvidia.com/gpu": amount})])
    assert objects == []
    assert problems[0].message.startswith(f"must be a whole number, found {amount}; for a part of a GPU use")
    path = "status/allocatable"
    assert load_all([placed(sample("Node"), path, {"example.com/x": amount})])[1]


@pytest.mark.parametrize("amount", ["2", 2, "2.0", "2k", "1e3", 2.0])
def test_whole_devices_may_be_spelled_in_any_way(amount: Any) -> None:
    path = "spec/containers/0/resources/requests"
    _, problems = load_all([placed(sample("Pod"), path, {"nvidia.com/gpu": amount, "cpu": "500m"})])
    assert problems == []
