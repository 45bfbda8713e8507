"""Short ways to write devices and claims, and to ask where a pod with claims may go."""

from collections.abc import Iterable
from typing import Any

from tests.plugins.asking import NAMESPACE, Raw, World, other, pod, where
from tests.support import GROUP_NAME

API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"
CLASS = "gpu"


def device(name: str, **body: Any) -> Raw:
    """A device; `attributes` are given as plain values, `capacity` as amounts."""
    attributes = {key: _attribute(value) for key, value in body.pop("attributes", {}).items()}
    capacity = {
        key: amount if isinstance(amount, dict) else {"value": str(amount)}
        for key, amount in body.pop("capacity", {}).items()
    }
    return {"name": name, "attributes": attributes, "capacity": capacity, **body}


def _attribute(value: Any) -> Raw:
    kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"
    return {kind: value}


def resource_slice(name: str, devices: Iterable[Raw], *, pool: str = "", **spec: Any) -> Raw:
    """A slice of its own pool, unless one is named; `count` and `generation` are the pool's."""
    about = {
        "name": pool or name,
        "generation": spec.pop("generation", 1),
        "resourceSliceCount": spec.pop("count", 1),
    }
    body = {"driver": spec.pop("driver", DRIVER), "pool": about, "devices": list(devices), **spec}
    return other(API, "ResourceSlice", name, spec=body)


def device_class(name: str = CLASS, *expressions: str, **spec: Any) -> Raw:
    selectors = [{"cel": {"expression": one}} for one in expressions]
    return other(API, "DeviceClass", name, spec={"selectors": selectors, **spec})


def demand(*expressions: str, **more: Any) -> Raw:
    selectors = [{"cel": {"expression": one}} for one in expressions]
    return {"deviceClassName": CLASS, "allocationMode": "ExactCount", "selectors": selectors, **more}


def exactly(name: str, *expressions: str, **more: Any) -> Raw:
    return {"name": name, "exactly": demand(*expressions, **more)}


def first_of(name: str, *choices: Raw) -> Raw:
    numbered = [{"name": f"choice{number}", **one} for number, one in enumerate(choices)]
    return {"name": name, "firstAvailable": numbered}


def claim(name: str, *requests: Raw, owner: str = "", **more: Any) -> Raw:
    """`owner` is its pod; `constraints` and `config` go to the devices, `status` beside the spec."""
    metadata: Raw = {"namespace": NAMESPACE, "uid": f"uid-{name}", **more.pop("metadata", {})}
    if owner:
        metadata["ownerReferences"] = [{"kind": "Pod", "name": owner, "uid": owner, "controller": True}]
    status = more.pop("status", {})
    spec = {"devices": {"requests": list(requests) or [exactly("r")], **more}}
    return other(API, "ResourceClaim", name, metadata=metadata, spec=spec, status=status)


def holding(*devices: tuple[str, str], on: str = "", **result: Any) -> Raw:
    """The status of a claim that has devices, each a pool and a name; `on` ties it to a node."""
    results = [
        {"request": "r", "driver": DRIVER, "pool": pool, "device": name, **result} for pool, name in devices
    ]
    allocation: Raw = {"devices": {"results": results}}
    if on:
        field = {"key": "metadata.name", "operator": "In", "values": [on]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"allocation": allocation}


# What makes the pods below ones to be bound.
JOB = [
    other("scheduling.volcano.sh/v1beta1", "Queue", "default", spec={"weight": 1}, status={"state": "Open"}),
    other(
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        "job",
        metadata={"namespace": NAMESPACE},
        spec={"minMember": 1, "queue": "default"},
        status={"phase": "Inqueue"},
    ),
]


def _member(name: str, on: str, claims: list[Raw]) -> Raw:
    raw = pod(name, on, resourceClaims=claims)
    raw["metadata"]["annotations"] = {GROUP_NAME: "job"}
    return raw


def claiming(name: str, *claims: str, on: str = "") -> Raw:
    """A pod that uses claims by name."""
    named = [{"name": f"c{number}", "resourceClaimName": one} for number, one in enumerate(claims)]
    return _member(name, on, named)


def templated(name: str, made: str | None, *, known: bool = True) -> Raw:
    """A pod with a claim from a template: the one that was made, or None if none was needed, or not `known` yet."""
    raw = _member(name, "", [{"name": "c", "resourceClaimTemplateName": "template"}])
    if known:
        raw["status"]["resourceClaimStatuses"] = [
            {"name": "c", **({"resourceClaimName": made} if made else {})}
        ]
    return raw


def possible(world: World, name: str) -> set[str]:
    return where(world.verdicts("DynamicResources", name))
