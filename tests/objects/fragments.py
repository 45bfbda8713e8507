"""Parts that several sample objects share, and the sample pod.

Every field is set to something other than its default.
"""

from typing import Any

TIME = "2026-03-01T12:00:00Z"
EXPRESSION = {"key": "zone", "operator": "In", "values": ["a", "b"]}
SELECTOR = {"matchLabels": {"app": "web"}, "matchExpressions": [EXPRESSION]}
NODE_SELECTOR = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [{"key": "size", "operator": "Gt", "values": ["3"]}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
        }
    ]
}
POD_TERM = {
    "topologyKey": "zone",
    "labelSelector": SELECTOR,
    "namespaces": ["team"],
    "namespaceSelector": {"matchLabels": {"env": "test"}},
    "matchLabelKeys": ["hash"],
    "mismatchLabelKeys": ["tenant"],
}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
POD_TERMS = {REQUIRED: [POD_TERM], PREFERRED: [{"weight": 7, "podAffinityTerm": POD_TERM}]}
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Why",
    "message": "text",
    "lastTransitionTime": TIME,
}
CLAIM_SPEC = {
    "volumeName": "v1",
    "storageClassName": "fast",
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "10Gi"}},
    "selector": SELECTOR,
    "volumeMode": "Block",
}
RESOURCES = {
    "requests": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": 1},
    "limits": {"cpu": 1.5, "memory": "2Gi"},
}
CONTAINER = {
    "name": "main",
    "image": "registry/app:1",
    "resources": {**RESOURCES, "claims": [{"name": "gpus", "request": "one"}]},
    "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "UDP"}],
}
STATUS = {
    "name": "main",
    "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}},
    "allocatedResources": {"cpu": "500m"},
}
ALLOCATION = {
    "devices": {
        "results": [
            {
                "request": "one",
                "driver": "gpu.example.com",
                "pool": "n1",
                "device": "gpu-0",
                "adminAccess": True,
                "shareID": "s1",
                "consumedCapacity": {"memory": "10Gi"},
            }
        ]
    },
    "nodeSelector": NODE_SELECTOR,
}
DEVICE_BODY = {
    "attributes": {"a": {"int": 1}, "b": {"bool": True}, "c": {"string": "x"}, "d": {"version": "1.0.0"}},
    "capacity": {
        "memory": {
            "value": "80Gi",
            "requestPolicy": {
                "default": "1Gi",
                "validValues": ["1Gi", "2Gi"],
                "validRange": {"min": "1Gi", "max": "8Gi", "step": "1Gi"},
            },
        }
    },
    "consumesCounters": [{"counterSet": "s", "counters": {"slices": {"value": "2"}}}],
    "nodeName": "n1",
    "nodeSelector": NODE_SELECTOR,
    "allNodes": True,
    "taints": [{"key": "broken", "value": "yes", "effect": "NoSchedule"}],
    "allowMultipleAllocations": True,
}
DEMAND = {
    "deviceClassName": "gpu.example.com",
    "selectors": [{"cel": {"expression": "true"}}],
    "count": 2,
    "adminAccess": True,
    "tolerations": [{"key": "broken", "operator": "Exists"}],
    "capacity": {"requests": {"memory": "10Gi"}},
}


def sample_of(api_version: str, kind: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "sample"}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


SHARING_POD = sample_of(
    "v1",
    "Pod",
    spec={
        "containers": [CONTAINER],
        "initContainers": [
            {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
        ],
        "nodeName": "n1",
        "schedulerName": "volcano",
        "priority": 10,
        "priorityClassName": "high",
        "preemptionPolicy": "Never",
        "schedulingGates": [{"name": "wait"}],
        "nodeSelector": {"disk": "ssd"},
        "affinity": {
            "nodeAffinity": {
                REQUIRED: NODE_SELECTOR,
                PREFERRED: [{"weight": 5, "preference": {"matchExpressions": [EXPRESSION]}}],
            },
            "podAffinity": POD_TERMS,
            "podAntiAffinity": POD_TERMS,
        },
        "tolerations": [{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": SELECTOR,
                "minDomains": 2,
                "nodeAffinityPolicy": "Honor",
                "nodeTaintsPolicy": "Ignore",
                "matchLabelKeys": ["hash"],
            }
        ],
        "volumes": [
            {"name": "a", "persistentVolumeClaim": {"claimName": "c1", "readOnly": True}},
            {
                "name": "b",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
                        "spec": CLAIM_SPEC,
                    }
                },
            },
            {"name": "c", "csi": {"driver": "csi.example.com", "readOnly": True}},
            {"name": "d", "gcePersistentDisk": {"pdName": "disk", "readOnly": True}},
            {"name": "e", "awsElasticBlockStore": {"volumeID": "vol-1", "readOnly": True}},
            {"name": "f", "azureDisk": {"diskName": "disk", "readOnly": True}},
            {"name": "g", "rbd": {"monitors": ["m1"], "image": "i", "pool": "p", "readOnly": True}},
            {"name": "h", "iscsi": {"targetPortal": "t", "iqn": "q", "lun": 1, "readOnly": True}},
        ],
        "overhead": {"cpu": "250m"},
        "resources": {"requests": {"cpu": "4"}},
        "resourceClaims": [
            {"name": "gpus", "resourceClaimName": "rc"},
            {"name": "nics", "resourceClaimTemplateName": "template"},
        ],
        "hostNetwork": True,
        "restartPolicy": "Never",
    },
    status={
        "phase": "Running",
        "conditions": [CONDITION],
        "nominatedNodeName": "n2",
        "startTime": TIME,
        "containerStatuses": [STATUS],
        "initContainerStatuses": [{**STATUS, "name": "side"}],
        "resourceClaimStatuses": [{"name": "nics", "resourceClaimName": "made"}],
        "resize": "Proposed",
    },
)
SHARING_POD["metadata"] = {
    "name": "sample",
    "namespace": "team",
    "uid": "u-1",
    "labels": {"app": "web"},
    "annotations": {"scheduling.k8s.io/group-name": "job"},
    "creationTimestamp": TIME,
    "deletionTimestamp": TIME,
    "ownerReferences": [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u-2", "controller": True},
    ],
    "resourceVersion": "42",
}
