"""Raw storage objects, and kube-scheduler's rules about them written out plainly."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.plugins.asking import NAMESPACE, Raw, other, pod
from tests.plugins.feasibility.reference import labels_of, name_of, pods_on, selects, term_holds

BOUND = "pv.kubernetes.io/bind-completed"
SELECTED = "volume.kubernetes.io/selected-node"


def claim(
    name: str, volume: str = "", storage_class: str = "", size: int = 1, *, bound: bool = False, **more: Any
) -> Raw:
    annotations = {**({BOUND: "yes"} if bound else {}), **more.pop("annotations", {})}
    metadata = {"namespace": NAMESPACE, "uid": f"uid-{name}", "annotations": annotations}
    metadata |= more.pop("metadata", {})
    spec = {
        "volumeName": volume,
        "storageClassName": storage_class,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": str(size)}},
        **more,
    }
    return other("v1", "PersistentVolumeClaim", name, metadata=metadata, spec=spec)


def volume(name: str, storage_class: str = "", size: int = 1, **more: Any) -> Raw:
    metadata = {"labels": more.pop("labels", {})}
    phase = more.pop("phase", "Available")
    spec = {
        "capacity": {"storage": str(size)},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        **more,
    }
    return other("v1", "PersistentVolume", name, metadata=metadata, spec=spec, status={"phase": phase})


def only_on(key: str, *values: str) -> Raw:
    expression = {"key": key, "operator": "In", "values": list(values)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def storage_class(
    name: str, provisioner: str = "kubernetes.io/no-provisioner", *, waits: bool = True, **more: Any
) -> Raw:
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    return other(
        "storage.k8s.io/v1", "StorageClass", name, provisioner=provisioner, volumeBindingMode=mode, **more
    )


def csi_node(name: str, limits: Mapping[str, int | None]) -> Raw:
    drivers = [
        {"name": driver, "nodeID": name, **({"allocatable": {"count": count}} if count is not None else {})}
        for driver, count in limits.items()
    ]
    return other("storage.k8s.io/v1", "CSINode", name, spec={"drivers": drivers})


def claiming(name: str, *claims: str, on: str = "") -> Raw:
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    return pod(name, on, volumes=volumes)


# -- the rules -----------------------------------------------------------------------------------------------------


def reaches(node: Raw, one: Raw) -> bool:
    affinity = one["spec"].get("nodeAffinity")
    return affinity is None or any(term_holds(t, node) for t in affinity["required"]["nodeSelectorTerms"])


def bytes_of(amounts: Mapping[str, Any]) -> int:
    return int(amounts.get("storage", 0))


def matching_volume(one: Raw, volumes: Sequence[Raw], node: Raw, taken: set[str]) -> Raw | None:
    """The volume that a claim gets on a node."""
    spec, fits = one["spec"], []
    for offered in sorted(volumes, key=lambda v: (bytes_of(v["spec"]["capacity"]), name_of(v))):
        there = offered["spec"]
        if name_of(offered) in taken or there["storageClassName"] != spec["storageClassName"]:
            continue
        reference = there.get("claimRef")
        if reference is not None and (
            (reference["namespace"], reference["name"]) != (NAMESPACE, name_of(one))
            or reference.get("uid", one["metadata"]["uid"]) != one["metadata"]["uid"]
        ):
            continue
        if bytes_of(there["capacity"]) < bytes_of(spec["resources"]["requests"]):
            continue
        if there.get("volumeMode", "Filesystem") != spec.get("volumeMode", "Filesystem"):
            continue
        if reference is not None:
            return offered if reaches(node, offered) else None
        selector = spec.get("selector")
        if (
            offered["status"]["phase"] == "Available"
            and (selector is None or selects(selector, labels_of(offered)))
            and reaches(node, offered)
            and set(spec["accessModes"]) <= set(there["accessModes"])
        ):
            fits.append(offered)
    return fits[0] if fits else None


class Binding:
    """What VolumeBinding says of one node for a pod whose claims all wait for their first consumer or are bound."""

    def __init__(self, volumes: Sequence[Raw], classes: Mapping[str, Raw], capacities: Sequence[Raw]) -> None:
        self.volumes = volumes
        self.classes = classes
        self.capacities = capacities  # of drivers that want them looked at

    def verdict(self, claims: Sequence[Raw], node: Raw) -> str:
        by_name = {name_of(v): v for v in self.volumes}
        for one in claims:
            if BOUND in one["metadata"]["annotations"]:
                if one["spec"]["volumeName"] not in by_name:
                    return "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
                if not reaches(node, by_name[one["spec"]["volumeName"]]):
                    return "node(s) didn't match PersistentVolume's node affinity"
        waiting = [one for one in claims if BOUND not in one["metadata"]["annotations"]]
        chosen = [one for one in waiting if SELECTED in one["metadata"]["annotations"]]
        if any(one["metadata"]["annotations"][SELECTED] != name_of(node) for one in chosen):
            return "node(s) didn't find available persistent volumes to bind"
        to_make = list(chosen)
        taken: set[str] = set()
        open_claims = [one for one in waiting if one not in chosen]
        for one in sorted(open_claims, key=lambda c: bytes_of(c["spec"]["resources"]["requests"])):
            found = matching_volume(one, self.volumes, node, taken)
            if found is None:
                to_make.append(one)
            else:
                taken.add(name_of(found))
        return next((text for one in to_make if (text := self.making(one, node))), "")

    def making(self, one: Raw, node: Raw) -> str:
        found = self.classes[one["spec"]["storageClassName"]]
        terms = found.get("allowedTopologies", [])
        labels = labels_of(node)
        allowed = not terms or any(
            term["matchLabelExpressions"]
            and all(labels.get(e["key"]) in e["values"] for e in term["matchLabelExpressions"])
            for term in terms
        )
        if found["provisioner"] == "kubernetes.io/no-provisioner" or not allowed:
            return "node(s) didn't find available persistent volumes to bind"
        if found["provisioner"] == "measured.example.com" and not any(
            capacity["storageClassName"] == name_of(found)
            and int(capacity.get("maximumVolumeSize") or capacity["capacity"])
            >= bytes_of(one["spec"]["resources"]["requests"])
            and selects(capacity.get("nodeTopology"), labels)
            for capacity in self.capacities
        ):
            return "node(s) did not have enough free storage"
        return ""


def attached(one: Raw, claims: Mapping[str, Raw], volumes: Mapping[str, Raw]) -> set[tuple[str, str]]:
    """Driver and handle of a pod's volumes."""
    found = set()
    for mounted in one["spec"].get("volumes", []):
        held = claims[mounted["persistentVolumeClaim"]["claimName"]]
        name = held["spec"]["volumeName"]
        if name in volumes:
            csi = volumes[name]["spec"]["csi"]
            found.add((csi["driver"], csi["volumeHandle"]))
        else:
            found.add((held["spec"]["storageClassName"], f"claim {name_of(held)}"))
    return found


def within_limits(
    asking: Raw,
    node: Raw,
    pods: Sequence[Raw],
    limits: Mapping[str, int | None],
    claims: Mapping[str, Raw],
    volumes: Mapping[str, Raw],
) -> bool:
    there: set[tuple[str, str]] = set()
    for one in pods_on(node, pods):
        there |= attached(one, claims, volumes)
    new = attached(asking, claims, volumes) - there
    for driver, limit in limits.items():
        added = sum(d == driver for d, _ in new)
        if added and limit is not None and added + sum(d == driver for d, _ in there) > limit:
            return False
    return True
