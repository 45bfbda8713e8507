"""What the oracle knows of a cluster: the objects by kind, and where every pod is.

Read from plain objects with nothing of Maniple's engine in between. `home` changes as the oracle follows a
plan bind by bind.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from fractions import Fraction

from tests.soak.amounts import Amounts, Raw, pod_requests, quantity

GPU = "nvidia.com/gpu"
GPU_GROUP = "runai-gpu-group"
FRACTION, GPU_MEMORY, DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
VOLCANO_GROUP, KAI_GROUP = "scheduling.k8s.io/group-name", "pod-group-name"
VOLCANO, KAI = "volcano", "kai"
_OVER = ("Succeeded", "Failed")


def key_of(item: Raw) -> str:
    metadata = item["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else str(metadata["name"])


def labels(item: Raw) -> dict[str, str]:
    return item["metadata"].get("labels") or {}


def annotations(item: Raw) -> dict[str, str]:
    return item["metadata"].get("annotations") or {}


def leaves(pod: Raw) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def system_of(item: Raw) -> str:
    return KAI if str(item["apiVersion"]).startswith("scheduling.run.ai/") else VOLCANO


def group_of(pod: Raw) -> tuple[str, str] | None:
    """The system and the key of the group that a pod belongs to."""
    notes = annotations(pod)
    for system, note in ((VOLCANO, VOLCANO_GROUP), (KAI, KAI_GROUP)):
        if note in notes:
            return system, f"{pod['metadata']['namespace']}/{notes[note]}"
    return None


class World:
    def __init__(self, objects: Iterable[Raw]) -> None:
        self.kinds: dict[str, dict[str, Raw]] = {}
        self.groups: dict[tuple[str, str], Raw] = {}
        self.queues: dict[tuple[str, str], Raw] = {}
        for item in objects:
            if item["kind"] == "PodGroup":
                self.groups[system_of(item), key_of(item)] = item
            elif item["kind"] == "Queue":
                self.queues[system_of(item), key_of(item)] = item
            else:
                self.kinds.setdefault(item["kind"], {})[key_of(item)] = item
        self.nodes = self.kinds.get("Node", {})
        every = self.kinds.get("Pod", {})
        self.pods = {key: pod for key, pod in every.items() if pod["status"].get("phase") not in _OVER}
        self.home = {
            key: pod["spec"]["nodeName"] for key, pod in self.pods.items() if "nodeName" in pod["spec"]
        }
        self.devices = {key: shared_devices(pod) for key, pod in self.pods.items() if key in self.home}
        self.asks: dict[str, Amounts] = {key: pod_requests(pod) for key, pod in self.pods.items()}
        self.members: dict[tuple[str, str], list[str]] = {one: [] for one in self.groups}
        for key, pod in self.pods.items():
            group = group_of(pod)
            if group in self.members:
                self.members[group].append(key)

    def copy(self) -> "World":
        """The same objects, with places of its own."""
        other = copy(self)
        other.home, other.devices = self.home.copy(), self.devices.copy()
        return other

    def kind(self, name: str) -> dict[str, Raw]:
        return self.kinds.get(name, {})

    def on(self, node: str) -> Iterator[str]:
        return (key for key, home in self.home.items() if home == node)

    def stays(self, key: str) -> bool:
        """Whether a pod is on a node and not about to leave it."""
        return key in self.home and not leaves(self.pods[key])

    def place(self, key: str, node: str, devices: tuple[str, ...] = ()) -> None:
        self.home[key], self.devices[key] = node, devices

    def remove(self, key: str) -> None:
        self.home.pop(key, None)


def shared_devices(pod: Raw) -> tuple[str, ...]:
    found = [value for name, value in sorted(labels(pod).items()) if name.partition("/")[0] == GPU_GROUP]
    return tuple(found)


def fraction(pod: Raw, node: Raw) -> Fraction:
    """The part of one device that a pod asks for; none: 0."""
    notes = annotations(pod)
    if FRACTION in notes:
        return Fraction(notes[FRACTION])
    if GPU_MEMORY in notes:
        return Fraction(notes[GPU_MEMORY]) / quantity(labels(node).get("nvidia.com/gpu.memory", "100"))
    return Fraction(0)
