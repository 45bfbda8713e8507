"""Short ways to write KAI's objects of a scenario, as users and KAI's podgrouper write them: no uid, no status."""

from typing import Any

from tests.live.objects import NAMESPACE, Raw

GROUP_NAME = "pod-group-name"
QUEUE = "team"
FREE = {"quota": 0, "overQuotaWeight": 1, "limit": -1}


def node(name: str, gpus: int = 8, **labels: str) -> Raw:
    amounts = {"cpu": "64", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def queue(name: str = QUEUE, parent: str = "", **spec: Any) -> Raw:
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"parentQueue": parent, "resources": {"gpu": FREE, "cpu": FREE, "memory": FREE}, **spec},
    }


def group(name: str, minimum: int, queue: str = QUEUE, **spec: Any) -> Raw:
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"minMember": minimum, "queue": queue, **spec},
    }


def pod(name: str, group: str = "", gpus: int = 1, **annotations: str) -> Raw:
    notes = {**({GROUP_NAME: group} if group else {}), **annotations}
    amounts = {"cpu": "1", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    container = {"name": "main", "image": "work:1", "resources": {"requests": amounts, "limits": amounts}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": notes},
        "spec": {"schedulerName": "kai-scheduler", "containers": [container]},
    }


def gang(name: str, size: int, gpus: int = 1, minimum: int | None = None, **spec: Any) -> list[Raw]:
    """A pod group and its pods."""
    members = [pod(f"{name}-{number}", name, gpus) for number in range(size)]
    return [group(name, size if minimum is None else minimum, **spec), *members]
