"""Objects of KAI to draw edits from; see `pools.py`."""

from itertools import product
from typing import Any

from maniple.objects.meta import Object
from tests.kai_support import bind_request, claim, device_slice, group, pod, queue, sub_group
from tests.support import node, priority_class

GPU, POOL = "nvidia.com/gpu", {"kai.scheduler/node-pool": "a"}
LATER = "2026-01-02T00:00:00Z"
SHAPES: list[dict[str, Any]] = [
    {},
    {"requests": {"cpu": "1", GPU: "1"}, "group": "g0"},
    {
        "requests": {"cpu": "1", GPU: "1"},
        "labels": {"app": "kai-resource-reservation"},
        "on": "n0",
        "spec": {"schedulerName": "default-scheduler"},
    },
    {"requests": {"cpu": "1", GPU: "1"}, "on": "n0"},
    {"requests": {"amd.com/gpu": "2"}, "group": "g0", "role": "a"},
    {"group": "g0", "fraction": "0.5"},
    {"group": "g0", "fraction": "0.501"},
    {"group": "g0", "fraction": "0.5", "on": "n0", "groups": ("x",)},
    {"group": "g1", "fraction": "0.5", "devices": "2", "on": "n1", "groups": ("x", "y"), "deleted": LATER},
    {"group": "g1", "memory": "500", "uid": "u1"},
    {"group": "g1", "annotations": {"nvidia.com/mig-1g.5gb": "2"}, "on": "n1"},
    {"group": "g1", "requests": {"nvidia.com/mig-1g.5gb": "2"}},
    {"group": "g0", "spec": {"schedulingGates": [{"name": "wait"}]}},
    {"group": "g0", "on": "n1", "phase": "Unknown"},
    {"group": "g0", "deleted": LATER},
    {"group": "g0", "spec": {"schedulerName": "other"}, "on": "n0"},
    {"group": "g0", "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "c0"}]}},
    {
        "group": "g0",
        "spec": {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]},
        "status": {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "c1"}]},
    },
]
PODS = [pod(name, **shape) for name, shape in product(("p0", "p1"), SHAPES)]
REQUESTS = [
    bind_request(target, where, name=name, selectedGPUGroups=list(groups), status={"phase": phase})
    for target, where, name, groups, phase in product(
        ("p0", "p1"), ("n0", "gone"), ("r0", "r1"), ((), ("z",)), ("Pending", "Failed")
    )
]
NODES = [
    node(name, offered, labels=labels)
    for name, offered, labels in product(("n0", "n1"), ({}, {GPU: "4", "amd.com/gpu": "1"}), ({}, POOL))
]
TRIED: dict[str, Any] = {
    "schedulingConditions": [{"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True"}]
}
SAID: list[dict[str, Any]] = [
    {},
    {"spec": {"schedulingBackoff": 1}, "status": TRIED},
    {"spec": {"subGroups": [sub_group("a", 2)], "priorityClassName": "high"}},
]
GROUPS = [
    group(name, 2, queue=served, labels=labels, **more)
    for name, served, labels, more in product(("g0", "g1"), ("q0", "q1"), ({}, POOL), SAID)
]
QUEUES = [
    queue(name, parent, labels=labels)
    for name, parent, labels in product(("q0", "q1"), ("", "q1"), ({}, POOL))
]
CLAIMS = [claim(name, kind, count=2) for name, kind in product(("c0", "c1"), ("gpu.example.com", "nic"))]
SLICES = [
    device_slice(name, where, devices, driver)
    for name, where, devices, driver in product(
        ("s0", "s1"), ("n0", "n1"), (1, 3), ("gpu.example.com", "nic")
    )
]
PRIORITIES = [priority_class("high", value) for value in (75, 150)]

# Few enough that a pod, its request and the node meet in every order.
FEW_PODS = [
    pod("p0", group="g0", fraction="0.5"),
    pod("p0", group="g0", on="n0", groups=("x",), fraction="0.5"),
]
FEW_REQUESTS = [one for one in REQUESTS if one.metadata.name == "r0"][:4]
FEW_NODES = [one for one in NODES if one.metadata.name == "n0"]

FAMILIES: dict[str, list[list[Object]]] = {
    "decisions": [FEW_PODS, FEW_REQUESTS, FEW_NODES],
    "devices": [PODS, CLAIMS, SLICES, NODES],
    "pools": [NODES, GROUPS, QUEUES, PODS],
    "everything": [PODS, PODS, REQUESTS, NODES, GROUPS, QUEUES, CLAIMS, SLICES, PRIORITIES],
}
