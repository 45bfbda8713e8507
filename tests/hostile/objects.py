"""A small cluster with healthy gangs, and short ways to write objects beside them that mean no good."""

from typing import Any

Raw = dict[str, Any]
CREATED = "2026-11-01T00:00:00Z"
HEALTHY, HOSTILE = "good", "evil"
AMOUNTS = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8", "ephemeral-storage": "1Ti"}


class Writer:
    """Objects in the form of a profile's system: KAI's for `kai`, Volcano's for the others unless `kai` is set."""

    GROUP_NAMES = ("scheduling.k8s.io/group-name", "pod-group-name")  # of Volcano, of KAI

    def __init__(self, profile: str, *, kai: bool = False) -> None:
        self.kai = kai or profile == "kai"
        self.scheduler = {"kai": "kai-scheduler"}.get(profile, profile)

    def group(
        self, name: str, minimum: int = 1, namespace: str = HOSTILE, queue: str = "mean", **spec: Any
    ) -> Raw:
        return {
            "apiVersion": "scheduling.run.ai/v2alpha2" if self.kai else "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": _metadata(name, namespace),
            "spec": {"minMember": minimum, "queue": queue, **spec},
            "status": {} if self.kai else {"phase": "Inqueue"},
        }

    def pod(
        self,
        name: str,
        group: str,
        namespace: str = HOSTILE,
        requests: Raw | None = None,
        labels: Raw | None = None,
        annotations: Raw | None = None,
        **spec: Any,
    ) -> Raw:
        named = {self.GROUP_NAMES[self.kai]: group} if group else {}
        metadata = _metadata(name, namespace)
        metadata |= {"labels": labels or {}, "annotations": {**named, **(annotations or {})}}
        container = {"name": "main", "image": "work:1", "resources": {"requests": requests or {"cpu": "1"}}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"schedulerName": self.scheduler, "containers": [container], **spec},
            "status": {"phase": "Pending"},
        }

    def lone(self, **fields: Any) -> list[Raw]:
        """A group with one pod."""
        return [self.group("bad"), self.pod("bad-0", "bad", **fields)]

    def queue(self, name: str, **spec: Any) -> Raw:
        metadata = {"name": name, "creationTimestamp": CREATED}
        if not self.kai:
            api, status = "scheduling.volcano.sh/v1beta1", {"state": "Open"}
            body = {"weight": 1, **spec}
            return {"apiVersion": api, "kind": "Queue", "metadata": metadata, "spec": body, "status": status}
        share = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
        resources = {"cpu": share, "memory": share, "gpu": share}
        body = {"resources": resources, **({} if name == "top" else {"parentQueue": "top"}), **spec}
        return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": metadata, "spec": body}

    def queues(self) -> list[Raw]:
        """One for healthy jobs and one for the others."""
        return [self.queue(name) for name in (["top"] if self.kai else []) + ["kind", "mean"]]

    def healthy(self, nodes: int, gangs: int) -> list[Raw]:
        """Nodes, queues and gangs of four that fit."""
        groups = [self.group(f"gang-{one}", 4, HEALTHY, "kind") for one in range(gangs)]
        pods = [
            self.pod(f"gang-{one}-{member}", f"gang-{one}", HEALTHY)
            for one in range(gangs)
            for member in range(4)
        ]
        return [*self.queues(), *map(node, range(nodes)), *groups, *pods]


def _metadata(name: str, namespace: str) -> Raw:
    return {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "creationTimestamp": CREATED}


def node(number: int) -> Raw:
    name = f"node-{number:04}"
    labels = {"kubernetes.io/hostname": name, "zone": f"zone-{number % 10}", "rack": f"rack-{number % 100}"}
    status = {
        "capacity": AMOUNTS,
        "allocatable": AMOUNTS,
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": status,
    }
