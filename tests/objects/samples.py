"""One valid object of every kind, with every field that is read set to something other than its default."""

import copy
import json
from typing import Any

from tests.objects.fragments import (
    ALLOCATION,
    CLAIM_SPEC,
    CONDITION,
    DEMAND,
    DEVICE_BODY,
    NODE_SELECTOR,
    PREFERRED,
    REQUIRED,
    SELECTOR,
    SHARING_POD,
    TIME,
    sample_of,
)

_SHARING: list[dict[str, Any]] = [
    SHARING_POD,
    sample_of(
        "v1",
        "Node",
        spec={"unschedulable": True, "taints": [{"key": "gpu", "value": "yes", "effect": "NoExecute"}]},
        status={
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "allocatable": {"cpu": "7500m", "memory": "30Gi", "pods": 110},
            "images": [{"names": ["registry/app:1"], "sizeBytes": 1000}],
            "conditions": [CONDITION],
        },
    ),
    sample_of("v1", "Namespace"),
    sample_of("v1", "ConfigMap", "team", data={"device-config.yaml": "nvidia: {}"}),
    sample_of(
        "scheduling.k8s.io/v1", "PriorityClass", value=1000, globalDefault=True, preemptionPolicy="Never"
    ),
    sample_of(
        "node.k8s.io/v1",
        "RuntimeClass",
        overhead={"podFixed": {"memory": "100Mi"}},
        scheduling={
            "nodeSelector": {"runtime": "sandbox"},
            "tolerations": [{"key": "sandbox", "operator": "Exists"}],
        },
    ),
    sample_of(
        "v1",
        "LimitRange",
        "team",
        spec={
            "limits": [
                {
                    "type": "Container",
                    "max": {"cpu": "8"},
                    "min": {"cpu": "100m"},
                    "default": {"cpu": "2"},
                    "defaultRequest": {"cpu": "1"},
                }
            ]
        },
    ),
    sample_of("v1", "PersistentVolumeClaim", "team", spec=CLAIM_SPEC, status={"phase": "Bound"}),
    sample_of(
        "v1",
        "PersistentVolume",
        spec={
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "team", "name": "c1", "uid": "u-3"},
            "nodeAffinity": {"required": NODE_SELECTOR},
            "storageClassName": "fast",
            "volumeMode": "Block",
            "csi": {"driver": "csi.example.com", "volumeHandle": "h1"},
        },
        status={"phase": "Bound"},
    ),
    sample_of(
        "storage.k8s.io/v1",
        "StorageClass",
        provisioner="csi.example.com",
        volumeBindingMode="WaitForFirstConsumer",
        allowedTopologies=[{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
    ),
    sample_of(
        "storage.k8s.io/v1",
        "CSINode",
        spec={"drivers": [{"name": "d", "topologyKeys": ["zone"], "allocatable": {"count": 0}}]},
    ),
    sample_of("storage.k8s.io/v1", "CSIDriver", spec={"attachRequired": False, "storageCapacity": True}),
    sample_of(
        "storage.k8s.io/v1",
        "CSIStorageCapacity",
        "kube-system",
        storageClassName="fast",
        nodeTopology=SELECTOR,
        capacity="100Gi",
        maximumVolumeSize="10Gi",
    ),
    sample_of(
        "v1",
        "ResourceQuota",
        "team",
        spec={"hard": {"cpu": "10"}},
        status={"hard": {"cpu": "10"}, "used": {"cpu": "2"}},
    ),
    sample_of(
        "policy/v1",
        "PodDisruptionBudget",
        "team",
        spec={"selector": SELECTOR, "minAvailable": "30%", "maxUnavailable": 1},
        status={
            "disruptionsAllowed": 1,
            "currentHealthy": 3,
            "desiredHealthy": 2,
            "expectedPods": 4,
            "disruptedPods": {"p": TIME},
        },
    ),
    sample_of("v1", "Service", "team", spec={"selector": {"app": "web"}}),
    sample_of("v1", "ReplicationController", "team", spec={"selector": {"app": "web"}}),
    sample_of("apps/v1", "ReplicaSet", "team", spec={"selector": SELECTOR}),
    sample_of("apps/v1", "StatefulSet", "team", spec={"selector": SELECTOR}),
    sample_of(
        "resource.k8s.io/v1",
        "ResourceClaim",
        "team",
        spec={
            "devices": {
                "requests": [
                    {"name": "one", "exactly": DEMAND},
                    {"name": "two", "firstAvailable": [{"name": "big", **DEMAND}]},
                    {"name": "three", "exactly": {"deviceClassName": "c", "allocationMode": "All"}},
                ],
                "constraints": [
                    {"requests": ["one"], "matchAttribute": "a/b", "distinctAttribute": "c/d"},
                ],
            }
        },
        status={
            "allocation": ALLOCATION,
            "reservedFor": [{"apiGroup": "g", "resource": "pods", "name": "p", "uid": "u-4"}],
        },
    ),
    sample_of(
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
        "team",
        spec={"spec": {"devices": {"requests": [{"name": "one", "exactly": DEMAND}]}}},
    ),
    sample_of(
        "resource.k8s.io/v1",
        "ResourceSlice",
        spec={
            "driver": "gpu.example.com",
            "pool": {"name": "n1", "generation": 2, "resourceSliceCount": 3},
            "nodeName": "n1",
            "nodeSelector": NODE_SELECTOR,
            "allNodes": True,
            "perDeviceNodeSelection": True,
            "devices": [{"name": "gpu-0", **DEVICE_BODY}],
            "sharedCounters": [{"name": "s", "counters": {"slices": {"value": "8"}}}],
        },
    ),
    sample_of(
        "resource.k8s.io/v1",
        "DeviceClass",
        spec={
            "selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}],
            "extendedResourceName": "example.com/gpu",
        },
    ),
    sample_of(
        "scheduling.volcano.sh/v1beta1",
        "Queue",
        spec={
            "weight": 4,
            "capability": {"cpu": "-1", "memory": "1Ti"},
            "reclaimable": False,
            "guarantee": {"resource": {"cpu": "2"}},
            "affinity": {
                "nodeGroupAffinity": {REQUIRED: ["g1"], PREFERRED: ["g2"]},
                "nodeGroupAntiAffinity": {REQUIRED: ["g3"]},
            },
            "parent": "team",
            "deserved": {"cpu": "10"},
            "priority": 3,
        },
        status={"state": "Open", "allocated": {"cpu": "1"}},
    ),
    sample_of(
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        "team",
        spec={
            "minMember": 4,
            "minTaskMember": {"worker": 3},
            "queue": "q",
            "priorityClassName": "high",
            "minResources": {"cpu": "4", "nvidia.com/gpu": "4"},
            "networkTopology": {"mode": "soft", "highestTierAllowed": 2, "highestTierName": "rack"},
            "subGroupPolicy": [
                {
                    "name": "s",
                    "networkTopology": {"mode": "soft", "highestTierAllowed": 0},
                    "subGroupSize": 2,
                    "minSubGroups": 1,
                    "labelSelector": SELECTOR,
                    "matchLabelKeys": ["volcano.sh/task-spec"],
                }
            ],
        },
        status={
            "phase": "Inqueue",
            "conditions": [{**CONDITION, "transitionID": "t1"}],
            "running": 1,
            "succeeded": 2,
            "failed": 3,
        },
    ),
    sample_of(
        "topology.volcano.sh/v1alpha1",
        "HyperNode",
        spec={
            "tier": 2,
            "tierName": "spine",
            "members": [
                {"type": "HyperNode", "selector": {"exactMatch": {"name": "s0"}}},
                {"type": "Node", "selector": {"regexMatch": {"pattern": "n.*"}}},
                {"type": "Node", "selector": {"labelMatch": SELECTOR}},
            ],
        },
    ),
    sample_of(
        "nodeinfo.volcano.sh/v1alpha1",
        "Numatopology",
        spec={
            "policies": {"CPUManagerPolicy": "static"},
            "resReserved": {"cpu": "1"},
            "numares": {"cpu": {"allocatable": "0-3", "capacity": 4}},
            "cpuDetail": {"3": {"numa": 1, "socket": 1, "core": 3}},
            "podAllocations": [
                {
                    "uid": "u-5",
                    "name": "p",
                    "namespace": "team",
                    "containerAllocations": [{"name": "main", "allocations": {"cpu": "0-1"}}],
                }
            ],
        },
    ),
    sample_of(
        "shard.volcano.sh/v1alpha1",
        "NodeShard",
        spec={"nodesDesired": ["n1"]},
        status={
            "lastUpdateTime": TIME,
            "nodesInUse": ["n1"],
            "nodesToRemove": ["n2"],
            "nodesToAdd": ["n3"],
        },
    ),
    sample_of(
        "scheduling.run.ai/v2",
        "Queue",
        spec={
            "displayName": "Team",
            "parentQueue": "department",
            "priority": 50,
            "preemptMinRuntime": "10m",
            "reclaimMinRuntime": "1h",
            "resources": {
                "gpu": {"quota": 1.5, "overQuotaWeight": 2.0, "limit": -1.0},
                "cpu": {"quota": -1.0},
                "memory": {"limit": 1000.0},
            },
        },
        status={
            "childQueues": ["c"],
            "allocated": {"nvidia.com/gpu": "1"},
            "allocatedNonPreemptible": {"nvidia.com/gpu": "1"},
            "requested": {"nvidia.com/gpu": "2"},
        },
    ),
    sample_of(
        "scheduling.run.ai/v2alpha2",
        "PodGroup",
        "team",
        spec={
            "minMember": 4,
            "queue": "q",
            "priorityClassName": "train",
            "preemptibility": "non-preemptible",
            "markUnschedulable": False,
            "schedulingBackoff": 1,
            "topologyConstraint": {
                "topology": "t",
                "requiredTopologyLevel": "rack",
                "preferredTopologyLevel": "host",
            },
            "subGroups": [
                {"name": "a", "minMember": 2, "parent": "b", "topologyConstraint": {"topology": "t"}}
            ],
        },
        status={
            "phase": "Running",
            "conditions": [CONDITION],
            "resourcesStatus": {
                "allocated": {"cpu": "1"},
                "allocatedNonPreemptible": {"cpu": "1"},
                "requested": {"cpu": "2"},
            },
            "schedulingConditions": [{**CONDITION, "nodePool": "default", "transitionID": "1"}],
        },
    ),
    sample_of(
        "scheduling.run.ai/v1alpha2",
        "BindRequest",
        "team",
        spec={
            "podName": "p",
            "selectedNode": "n1",
            "receivedResourceType": "Fraction",
            "receivedGPU": {"count": 1, "portion": "0.50"},
            "selectedGPUGroups": ["g"],
            "resourceClaimAllocations": [{"name": "gpus", "allocation": ALLOCATION}],
            "backoffLimit": 3,
        },
        status={"phase": "Failed", "reason": "why", "failedAttempts": 1},
    ),
    sample_of(
        "kai.scheduler/v1alpha1", "Topology", spec={"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "host"}]}
    ),
    sample_of(
        "kai.scheduler/v1",
        "SchedulingShard",
        spec={
            "args": {"v": "4"},
            "placementStrategy": {"gpu": "spread", "cpu": "binpack"},
            "partitionLabelValue": "pool",
            "queueDepthPerAction": {"reclaim": 5},
            "minRuntime": {"preemptMinRuntime": "1m", "reclaimMinRuntime": "2m"},
            "kValue": 0.5,
            "usageDBConfig": {"clientType": "prometheus"},
            "plugins": {"elastic": {"enabled": False, "priority": 7, "arguments": {"a": "b"}}},
            "actions": {"consolidation": {"enabled": False, "priority": 1}},
        },
    ),
    sample_of(
        "kai.scheduler/v1",
        "Config",
        spec={
            "namespace": "kai",
            "global": {"schedulerName": "kai", "nodePoolLabelKey": "pool", "queueLabelKey": "queue"},
            "binder": {"resourceReservation": {"appLabel": "reservation"}},
            "prometheus": {"enabled": True, "externalPrometheusUrl": "http://prometheus"},
        },
    ),
    sample_of(
        "coordination.k8s.io/v1",
        "Lease",
        spec={
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000001Z",
            "renewTime": "2026-01-01T00:00:10.000001Z",
            "leaseTransitions": 2,
        },
    ),
]

# The parts above are shared between objects; a test that changes one must not change the others.
SAMPLES: list[dict[str, Any]] = json.loads(json.dumps(_SHARING))
POD = SAMPLES[0]


def sample(name: str) -> dict[str, Any]:
    """The sample of a kind; where two groups have it, `group:Kind`."""
    group, _, kind = name.rpartition(":")
    return next(raw for raw in SAMPLES if raw["kind"] == kind and raw["apiVersion"].startswith(group))


def placed(raw: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of an object with one value replaced, at a path such as `spec/containers/0/name`."""
    raw = copy.deepcopy(raw)
    *steps, last = path.split("/")
    part: Any = raw
    for step in steps:
        part = part[int(step) if isinstance(part, list) else step]
    part[int(last) if isinstance(part, list) else last] = value
    return raw
