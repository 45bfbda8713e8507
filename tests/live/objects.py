"""Short ways to write the objects of a scenario, as a user writes them: no uid, no status."""

from typing import Any

Raw = dict[str, Any]
NAMESPACE = "team"
GROUP_NAME = "scheduling.k8s.io/group-name"


def node(name: str, cpu: int = 8, **fields: Any) -> Raw:
    amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}, **fields},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def group(name: str, minimum: int, queue: str = "default") -> Raw:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"minMember": minimum, "queue": queue},
    }


def queue(name: str, **spec: Any) -> Raw:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
    }


def pod(name: str, group: str = "", cpu: str = "1", **annotations: str) -> Raw:
    notes = {**({GROUP_NAME: group} if group else {}), **annotations}
    container = {"name": "main", "image": "work:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": notes},
        "spec": {"schedulerName": "volcano", "containers": [container]},
    }


def gang(name: str, size: int, cpu: str = "1", minimum: int | None = None) -> list[Raw]:
    """A pod group and its pods."""
    members = [pod(f"{name}-{number}", name, cpu) for number in range(size)]
    return [group(name, size if minimum is None else minimum), *members]
