"""The oracle's rules for what a pod needs besides room: volumes, and devices through resource claims."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tests.soak.amounts import Raw, quantity
from tests.soak.fits import matches_terms
from tests.soak.world import World, key_of, labels

BY_HAND = "kubernetes.io/no-provisioner"
WAITS = "WaitForFirstConsumer"


def claims_of(world: World, pod: str) -> list[str]:
    raw = world.pods[pod]
    space = raw["metadata"]["namespace"]
    return [
        f"{space}/{one['persistentVolumeClaim']['claimName']}"
        for one in raw["spec"].get("volumes") or ()
        if "persistentVolumeClaim" in one
    ]


def volumes(world: World, pod: str, node: str) -> str:
    for key in claims_of(world, pod):
        claim = world.kind("PersistentVolumeClaim").get(key)
        if claim is None:
            return f"no claim {key}"
        others = [one for one in world.home if one != pod and key in claims_of(world, one)]
        if "ReadWriteOncePod" in claim["spec"]["accessModes"] and others:
            return f"claim {key} is for one pod only"
        said = _bound(world, claim, node) if claim["spec"].get("volumeName") else _unbound(world, claim, node)
        if said:
            return f"claim {key}: {said}"
    return ""


def _bound(world: World, claim: Raw, node: str) -> str:
    volume = world.kind("PersistentVolume").get(claim["spec"]["volumeName"])
    if volume is None:
        return "its volume is gone"
    return "" if _reaches(volume, world.nodes[node]) else "its volume is elsewhere"


def _reaches(volume: Raw, node: Raw) -> bool:
    wanted = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return wanted is None or matches_terms(wanted["nodeSelectorTerms"], node)


def _unbound(world: World, claim: Raw, node: str) -> str:
    class_ = world.kind("StorageClass").get(claim["spec"].get("storageClassName", ""))
    if class_ is None or class_.get("volumeBindingMode") != WAITS:
        return "unbound"
    if class_["provisioner"] != BY_HAND:
        return "" if _provisions(class_, world.nodes[node]) else "no volume is made in that zone"
    fitting = (one for one in world.kind("PersistentVolume").values() if suits(one, claim))
    return "" if any(_reaches(one, world.nodes[node]) for one in fitting) else "no volume there"


def _provisions(class_: Raw, node: Raw) -> bool:
    terms = class_.get("allowedTopologies") or []
    return not terms or any(
        all(labels(node).get(one["key"]) in one["values"] for one in term["matchLabelExpressions"])
        for term in terms
    )


def suits(volume: Raw, claim: Raw) -> bool:
    """Whether a volume that is free could be the claim's."""
    wanted = claim["spec"]
    return (
        not volume["spec"].get("claimRef")
        and volume["spec"].get("storageClassName", "") == wanted.get("storageClassName", "")
        and set(wanted["accessModes"]) <= set(volume["spec"]["accessModes"])
        and quantity(volume["spec"]["capacity"]["storage"])
        >= quantity(wanted["resources"]["requests"]["storage"])
    )


def attached(world: World, pod: str, node: str) -> str:
    """The number of volumes that a driver attaches to a node, where its CSINode states one."""
    entry = world.kind("CSINode").get(node)
    limits = {
        one["name"]: one["allocatable"]["count"]
        for one in ((entry or {}).get("spec") or {}).get("drivers") or ()
        if "count" in (one.get("allocatable") or {})
    }
    used = Counter(
        _driver(world, claim)
        for claim in {claim for one in {*world.on(node), pod} for claim in claims_of(world, one)}
    )
    mine = {_driver(world, claim) for claim in claims_of(world, pod)}
    over = [driver for driver in mine if driver in limits and used[driver] > limits[driver]]
    return f"too many volumes of {', '.join(over)}" if over else ""


def _driver(world: World, key: str) -> str:
    claim = world.kind("PersistentVolumeClaim").get(key)
    if claim is None:
        return ""
    volume = world.kind("PersistentVolume").get(claim["spec"].get("volumeName", ""))
    if volume is not None:
        return str((volume["spec"].get("csi") or {}).get("driver", ""))
    class_ = world.kind("StorageClass").get(claim["spec"].get("storageClassName", ""))
    return str(class_["provisioner"]) if class_ is not None else ""


# -- devices ----------------------------------------------------------------------------------------------------------


def resource_claims(world: World, pod: str) -> list[str]:
    raw = world.pods[pod]
    space = raw["metadata"]["namespace"]
    made = {
        one["name"]: one.get("resourceClaimName") for one in raw["status"].get("resourceClaimStatuses") or ()
    }
    names = [
        one.get("resourceClaimName") or made.get(one["name"])
        for one in raw["spec"].get("resourceClaims") or ()
    ]
    return [f"{space}/{name}" for name in names]


def device_problems(world: World, written: Mapping[str, Raw], bound: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the devices of claims once a plan's pods are bound."""
    claims: dict[str, Raw] = world.kind("ResourceClaim")
    allocations = {key: _allocation(claim, written.get(key, {})) for key, claim in claims.items()}
    holders: dict[tuple[str, str, str], str] = {}
    for key, results in allocations.items():
        for one in results or ():
            device = one["driver"], one["pool"], one["device"]
            if device in holders:
                yield f"device {'/'.join(device)} is given to {holders[device]} and {key}"
            holders[device] = key
    where = _devices(world)
    for pod, node in bound.items():
        for key in resource_claims(world, pod):
            if key not in claims or not allocations[key]:
                yield f"{pod} is bound without the devices of {key}"
                continue
            wanted = sum(one["exactly"].get("count", 1) for one in claims[key]["spec"]["devices"]["requests"])
            if len(allocations[key] or ()) != wanted:
                yield f"{key} has {len(allocations[key] or ())} devices of {wanted}"
            far = [one for one in allocations[key] or () if where.get((one["pool"], one["device"])) != node]
            if far:
                yield f"{pod} is bound to {node}, away from its device {far[0]['device']}"


def _allocation(claim: Raw, change: Raw) -> list[Any] | None:
    status = {**(claim.get("status") or {}), **change}
    allocation = status.get("allocation")
    return list(allocation["devices"]["results"]) if allocation else None


def _devices(world: World) -> dict[tuple[str, str], str]:
    return {
        (one["spec"]["pool"]["name"], device["name"]): one["spec"]["nodeName"]
        for one in world.kind("ResourceSlice").values()
        for device in one["spec"]["devices"]
    }


__all__ = ["attached", "claims_of", "device_problems", "key_of", "resource_claims", "suits", "volumes"]
