"""Stand-ins for the controllers of a cluster between two cycles: budgets, volumes, devices of claims.

Objects are changed in place; they belong to the cluster that is followed.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tests.soak.amounts import Raw
from tests.soak.fits import selects
from tests.soak.needs import BY_HAND, claims_of, resource_claims, suits
from tests.soak.shapes import DRIVER, ZONE, thing
from tests.soak.world import GPU_GROUP, World, labels, leaves


def kept(objects: list[Raw], now: datetime) -> list[Raw]:
    """The objects once the controllers have looked at them."""
    world = World(objects)
    for budget in world.kind("PodDisruptionBudget").values():
        healthy = [
            key
            for key, pod in world.pods.items()
            if pod["metadata"].get("namespace") == budget["metadata"]["namespace"]
            and selects(budget["spec"]["selector"], pod)
            and key in world.home
            and not leaves(pod)
        ]
        allowed = max(len(healthy) - budget["spec"]["minAvailable"], 0)
        budget["status"] = {"disruptionsAllowed": allowed, "currentHealthy": len(healthy)}
    for claim in world.kind("ResourceClaim").values():
        _release(world, claim)
    return objects


def _release(world: World, claim: Raw) -> None:
    """Pods that are gone use no claim, and a claim that no pod uses has no devices."""
    status = claim.get("status") or {}
    if "reservedFor" not in status:
        return
    present = {pod["metadata"]["uid"] for pod in world.pods.values()}
    users = [one for one in status["reservedFor"] if one["uid"] in present]
    claim["status"] = {**status, "reservedFor": users} if users else {}


def device_labels(groups: tuple[str, ...]) -> dict[str, str]:
    if len(groups) == 1:
        return {GPU_GROUP: groups[0]}
    return {f"{GPU_GROUP}/{group}": group for group in groups}


def devices_for(world: World, pod: str, node: str) -> dict[str, Raw] | None:
    """Allocations for the claims of a pod on a node; None if the node has too few devices left."""
    claims = world.kind("ResourceClaim")
    taken = {
        (one["pool"], one["device"])
        for claim in claims.values()
        for one in ((claim["status"].get("allocation") or {}).get("devices") or {}).get("results", ())
    }
    free = [
        (one["spec"]["pool"]["name"], device["name"])
        for one in world.kind("ResourceSlice").values()
        if one["spec"]["nodeName"] == node
        for device in one["spec"]["devices"]
        if (one["spec"]["pool"]["name"], device["name"]) not in taken
    ]
    found: dict[str, Raw] = {}
    for key in resource_claims(world, pod):
        known = claims[key]["status"].get("allocation")
        if known:
            if any(one["pool"] != node for one in known["devices"]["results"]):
                return None
            found[key] = known
            continue
        count = claims[key]["spec"]["devices"]["requests"][0]["exactly"]["count"]
        if len(free) < count:
            return None
        chosen, free = free[:count], free[count:]
        results = [{"request": "r", "driver": DRIVER, "pool": pool, "device": name} for pool, name in chosen]
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        found[key] = {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        }
    return found


def bind_volumes(world: World, pod: str, node: str, chosen: Mapping[str, str] | None = None) -> list[Raw]:
    """Bind the claims of a pod on its node, to the `chosen` volumes or the first that match; returns new
    volumes."""
    made: list[Raw] = []
    for key in claims_of(world, pod):
        claim = world.kind("PersistentVolumeClaim")[key]
        if claim["spec"].get("volumeName"):
            continue
        class_ = world.kind("StorageClass")[claim["spec"]["storageClassName"]]
        volumes = world.kind("PersistentVolume")
        if class_["provisioner"] == BY_HAND:
            name = (chosen or {}).get(key) or next(
                name for name, one in volumes.items() if suits(one, claim) and name == f"pv-{node}"
            )
            volume = volumes[name]
        else:
            volume = _made(claim, world.nodes[node])
            made.append(volume)
        _bind(volume, claim)
    return made


def _made(claim: Raw, node: Raw) -> Raw:
    """A volume where the pod is: in its zone, or on its node where there are no zones."""
    key = ZONE if ZONE in labels(node) else "kubernetes.io/hostname"
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [labels(node)[key]]}]}
    name = f"pvc-{claim['metadata']['name']}"
    spec: dict[str, Any] = {
        "capacity": claim["spec"]["resources"]["requests"],
        "accessModes": claim["spec"]["accessModes"],
        "storageClassName": claim["spec"]["storageClassName"],
        "csi": {"driver": "disk.example.com", "volumeHandle": name},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    return thing("v1", "PersistentVolume", name, spec=spec, status={})


def _bind(volume: Raw, claim: Raw) -> None:
    metadata = claim["metadata"]
    volume["spec"]["claimRef"] = {name: metadata[name] for name in ("namespace", "name", "uid")}
    volume["status"] = {"phase": "Bound"}
    claim["spec"]["volumeName"] = volume["metadata"]["name"]
    claim["status"] = {"phase": "Bound"}
    metadata.setdefault("annotations", {})["pv.kubernetes.io/bind-completed"] = "yes"
