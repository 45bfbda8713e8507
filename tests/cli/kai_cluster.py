"""A small KAI cluster for tests of the commands: nodes of eight GPUs, a queue below another, gangs; a
snapshot."""

import io
import json
import zipfile
from typing import Any

from maniple.objects.kai_snapshot import FILE_NAME, LISTS

Raw = dict[str, Any]
FREE = {"quota": 0, "overQuotaWeight": 1, "limit": -1}


def node(name: str, **labels: str) -> Raw:
    room = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "8", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def queue(name: str, parent: str = "", **labels: str) -> Raw:
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name, "uid": f"queue-{name}", "labels": labels},
        "spec": {"parentQueue": parent, "resources": {"gpu": FREE, "cpu": FREE, "memory": FREE}},
    }


def gang(name: str, size: int, gpus: int, placed: str = "", **labels: str) -> list[Raw]:
    """A group and its pods, waiting, or running on the node that is named."""
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "ml", "uid": f"group-{name}", "labels": labels},
        "spec": {"minMember": size, "queue": "team"},
    }
    return [group, *(pod(f"{name}-{index}", name, gpus, placed) for index in range(size))]


def pod(name: str, group: str, gpus: int, placed: str = "") -> Raw:
    requests = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": f"pod-{name}",
            "annotations": {"pod-group-name": group},
        },
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": [{"name": "main", "image": "x", "resources": {"requests": requests}}],
            **({"nodeName": placed} if placed else {}),
        },
        "status": {"phase": "Running" if placed else "Pending"},
    }


def shard(name: str, **spec: Any) -> Raw:
    return {
        "apiVersion": "kai.scheduler/v1",
        "kind": "SchedulingShard",
        "metadata": {"name": name},
        "spec": spec,
    }


QUEUES = [queue("department"), queue("team", "department")]
TWO_NODES = [*QUEUES, node("n1"), node("n2")]


def snapshot(objects: list[Raw], **parts: Any) -> Raw:
    """As KAI writes it: lists of objects that do not say what they are."""
    names = {kind: name for name, (_, kind) in LISTS.items()}
    lists: dict[str, list[Raw]] = {name: [] for name in LISTS}
    for item in objects:
        bare = {key: value for key, value in item.items() if key not in ("apiVersion", "kind")}
        lists[names[item["kind"]]].append(bare)
    return {"rawObjects": lists, **parts}


def zipped(document: Raw, name: str = FILE_NAME) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, json.dumps(document))
    return content.getvalue()
