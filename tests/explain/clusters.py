"""Small random clusters in which a job waits, for one reason or for two; each from its profile and its number alone.

Small, so that a search plans in milliseconds and brute force can try everything: two to four nodes, some jobs that
run, one to three that wait, of one or two roles, with rivals, queues with quotas and limits, topology, victims.
"""

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.explain import surroundings
from tests.soak import clusters as soak
from tests.soak import shapes
from tests.soak.shapes import RACK, SPACE, ZONE

Raw = dict[str, Any]
PROFILES = ("maniple", "kai", "volcano")
AILMENTS = (
    "gate",
    "typo",
    "taint",
    "closed",
    "pods",
    "no pods",
    "oversized",
    "large",
    "limit",
    "rack",
    "firm",
    "queue",
    "inner",
    "cordoned",
    "unready",
    "weight",
    "quota",
    "claim",
    "unbound",
    "zone",
    "devices",
    "no claim",
    "owner",
    "scheduler",
)
GPU = "nvidia.com/gpu"
CLASSES = {"low": 10, "mid": 50, "high": 75, "build": 100}
_TIERS = (
    ("priority", "gang", "conformance"),
    ("drf", "predicates", "capacity", "nodeorder", "binpack", "network-topology-aware"),
)
_GROUP_NAME = {"volcano": "scheduling.k8s.io/group-name", "kai": "pod-group-name"}
_ROLE = {"volcano": "volcano.sh/task-spec", "kai": "kai.scheduler/subgroup-name"}


@dataclass
class Scenario:
    profile: str
    number: int
    objects: list[Raw]
    conf: Raw | None
    ailments: frozenset[str]


def generate(profile: str, number: int) -> Scenario:
    random = Random(f"remedies {profile} {number}")
    ailments = frozenset(random.sample(AILMENTS, random.choice((0, 1, 1, 2))))
    made = _Cluster(random, profile, ailments)
    return Scenario(profile, number, made.objects, _configuration(random, profile, ailments), ailments)


def rich(profile: str, number: int) -> Scenario:
    """A cluster of `make soak`: larger, and with volumes, ports, devices, shares of GPUs, budgets."""
    made = soak.generate(profile, number)
    return Scenario(profile, number, made.objects, made.conf, frozenset())


def _configuration(random: Random, profile: str, ailments: frozenset[str]) -> Raw | None:
    if profile != "volcano":
        return None
    actions = random.choice(("enqueue, allocate, backfill", "enqueue, allocate, backfill, reclaim, preempt"))
    share = "proportion" if "weight" in ailments else random.choice(("capacity", "proportion"))
    tiers = [
        {"plugins": [{"name": share if name == "capacity" else name} for name in tier]} for tier in _TIERS
    ]
    if "quota" in ailments:
        tiers[-1]["plugins"].append({"name": "resourcequota"})
    return {"actions": actions, "tiers": tiers}


class _Cluster:
    def __init__(self, random: Random, profile: str, ailments: frozenset[str]) -> None:
        self._random, self._profile, self._ailments = random, profile, ailments
        self._gpus = random.choice((2, 4))
        self._free: dict[str, int] = {}
        self.objects: list[Raw] = [shapes.priority_class(*one) for one in CLASSES.items()]
        self._nodes(random.randint(2, 4))
        self._queues = self._made_queues()
        self.objects += surroundings.volume_objects(ailments)
        self.objects += surroundings.device_objects(random, ailments, [*self._free])
        if "quota" in ailments:
            self.objects.append(surroundings.resource_quota(random))
        for number in range(random.randint(1, 5)):
            self._running(f"r{number}", number)
        for number in range(random.randint(1, 3)):
            self._waiting(f"w{number}", ailing=number == 0)

    def _system(self) -> str:
        return self._profile if self._profile != "maniple" else self._random.choice(("volcano", "kai"))

    def _nodes(self, count: int) -> None:
        random, racks = self._random, dict[str, list[str]]()
        for number in range(count):
            rack = f"r{number // 2}"
            labels = {ZONE: "z0", RACK: rack, "disk": random.choice(("ssd", "hdd"))}
            taints = (
                [{"key": "team", "value": "b", "effect": "NoSchedule"}] if "taint" in self._ailments else []
            )
            if random.random() < 0.3:
                taints = []
            room = {"cpu": random.choice(("8", "16")), "memory": "32Gi", "pods": "20", GPU: str(self._gpus)}
            labels |= {"nvidia.com/gpu.memory": "40000", "nvidia.com/gpu.count": room[GPU]}
            self.objects.append(shapes.node(f"n{number}", room, labels, taints))
            self._ail(self.objects[-1])
            self._free[f"n{number}"] = self._gpus
            racks.setdefault(rack, []).append(f"n{number}")
        self.objects.append(shapes.topology("network", [ZONE, RACK]))
        self.objects += [shapes.hyper_node(f"s-{rack}", 1, "Node", names) for rack, names in racks.items()]
        self.objects.append(shapes.hyper_node("s-z0", 2, "HyperNode", [f"s-{rack}" for rack in racks]))

    def _ail(self, node: Raw) -> None:
        """Cordon a node, or let it be not ready, more often than not."""
        if "cordoned" in self._ailments and self._random.random() < 0.7:
            taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
            node["spec"] |= {"unschedulable": True, "taints": [*node["spec"].get("taints", ()), taint]}
        if "unready" in self._ailments and self._random.random() < 0.7:
            node["status"]["conditions"] = [{"type": "Ready", "status": "False"}]

    def _made_queues(self) -> list[str]:
        random, names = self._random, [f"q{number}" for number in range(self._random.randint(1, 2))]
        parent = "top" if self._profile != "volcano" and random.random() < 0.4 else ""
        if "inner" in self._ailments and self._profile != "volcano":
            parent = "top"
        for name in [*names, *filter(None, (parent,))]:
            quota = 0 if "weight" in self._ailments else random.choice((0, self._gpus, 2 * self._gpus))
            tight = "limit" in self._ailments and (name == parent or not parent)
            limit = random.choice((1, 2, self._gpus)) if tight else None
            self.objects.append(self._queue(name, "" if name == parent else parent, quota, limit))
        return names

    def _queue(self, name: str, parent: str, quota: int, limit: int | None) -> Raw:
        system = self._system()
        if system == "kai":
            open_ = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
            gpu = {"quota": quota, "limit": -1 if limit is None else limit, "overQuotaWeight": 1}
            spec: Raw = {"resources": {"gpu": gpu, "cpu": open_, "memory": open_}}
            return shapes.queue("kai", name, spec | ({"parentQueue": parent} if parent else {}))
        spec = {"weight": 1, "deserved": {GPU: str(quota)}} | ({"parent": parent} if parent else {})
        if limit is not None:
            spec["capability"] = {GPU: str(limit)}
        return shapes.queue("volcano", name, spec, closed="closed" in self._ailments and not parent)

    # -- jobs ---------------------------------------------------------------------------------------------------------

    def _running(self, name: str, number: int) -> None:
        random, gpus = self._random, self._random.choice((1, 1, 2))
        homes = list[str]()
        for _ in range(random.randint(1, 3)):
            roomy = [node for node, left in self._free.items() if left >= gpus]
            if roomy:
                homes.append(random.choice(roomy))
                self._free[homes[-1]] -= gpus
        if homes:
            least = random.choice((1, len(homes)))
            priority = random.choice(("low", "mid", "mid", "high", "build"))
            self._job(name, [(gpus, "", home) for home in homes], least, priority, age=5000 - number)

    def _waiting(self, name: str, *, ailing: bool) -> None:
        random, ailments = self._random, self._ailments if ailing else frozenset[str]()
        size = random.randint(5, 9) if "large" in ailments else random.randint(1, 3)
        gpus = random.choice((1, 1, 2, self._gpus))
        roles = ("head", "body") if random.random() < 0.25 and size > 1 else ("",)
        pods = [(gpus if place % 2 else 1, roles[place % len(roles)], "") for place in range(size)]
        least = size if random.random() < 0.8 else random.randint(1, size)
        priority = "build" if "firm" in ailments else random.choice(("low", "mid", "mid", "high"))
        if "pods" in ailments and size > 1:
            pods, least = pods[1:], size
        if "no pods" in ailments:
            pods = []
        self._job(name, pods, least, priority, age=random.randint(10, 900), ailments=ailments)

    def _job(
        self,
        name: str,
        pods: list[tuple[int, str, str]],
        least: int,
        priority: str,
        *,
        age: int,
        ailments: frozenset[str] = frozenset(),
    ) -> None:
        queue = self._queue_of(ailments)
        if "owner" in ailments and pods:
            self._owned(name, pods, least, queue, age, ailments)
            return
        system, roles = self._system(), [role for _, role, _ in pods if role]
        spec: Raw = {"minMember": least, "queue": queue, "priorityClassName": priority}
        if roles and least == len(pods):
            by_role = {role: roles.count(role) for role in dict.fromkeys(roles)}
            if system == "kai":
                spec["subGroups"] = [{"name": role, "minMember": count} for role, count in by_role.items()]
            else:
                spec["minTaskMember"] = by_role
        else:
            pods = [(gpus, "", node) for gpus, _, node in pods]
        if "rack" in ailments and system == "kai":
            spec["topologyConstraint"] = {"topology": "network", "requiredTopologyLevel": RACK}
        elif "rack" in ailments:
            spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
        status = {"status": {"phase": "Running" if pods and pods[0][2] else "Inqueue"}}
        if "quota" in ailments and system == "volcano":
            spec["minResources"] = {"cpu": str(least), GPU: str(sum(gpus for gpus, _, _ in pods[:least]))}
            status = {"status": {"phase": "Pending"}}
        group = shapes.thing(shapes.GROUP_API[system], "PodGroup", name, SPACE, age, spec=spec, **status)
        self.objects.append(group)
        self.objects += [
            self._pod(name, system, number, *one, age, ailments) for number, one in enumerate(pods)
        ]

    def _queue_of(self, ailments: frozenset[str]) -> str:
        if "queue" in ailments:
            return "q00"
        if "inner" in ailments and self._profile != "volcano":
            return "top"
        return self._random.choice(self._queues)

    def _owned(
        self,
        name: str,
        pods: list[tuple[int, str, str]],
        least: int,
        queue: str,
        age: int,
        ailments: frozenset[str],
    ) -> None:
        """Pods without a group, of a Job."""
        job = surroundings.owner(name, least, queue, age)
        self.objects.append(job)
        for number, (gpus, _, node) in enumerate(pods):
            pod = self._pod(name, "kai", number, gpus, "", node, age, ailments)
            del pod["metadata"]["annotations"][_GROUP_NAME["kai"]]
            pod["metadata"]["ownerReferences"] = surroundings.owned_by(job)
            self.objects.append(pod)

    def _needs(self, pod: str, spec: Raw, ailments: frozenset[str]) -> None:
        """Volumes, and claims for devices."""
        if ailments.intersection(surroundings.VOLUMES):
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        if ailments.intersection(surroundings.DEVICES):
            spec["resourceClaims"] = [{"name": "dev", "resourceClaimName": f"{pod}-dev"}]
            if "no claim" not in ailments:
                self.objects.append(surroundings.device_claim(f"{pod}-dev", self._random.randint(1, 4)))

    def _pod(
        self,
        job: str,
        system: str,
        number: int,
        gpus: int,
        role: str,
        node: str,
        age: int,
        ailments: frozenset[str],
    ) -> Raw:
        cpu = "40" if "oversized" in ailments else "1"
        amounts = {"cpu": cpu, "memory": "1Gi", GPU: str(gpus)}
        container = {
            "name": "main",
            "image": "x",
            "resources": {"requests": amounts, "limits": {GPU: str(gpus)}},
        }
        spec: Raw = {"schedulerName": shapes.SCHEDULERS[self._profile], "containers": [container]}
        if node:
            spec["nodeName"] = node
        if "gate" in ailments:
            spec["schedulingGates"] = [{"name": "example.com/wait"}]
        if "typo" in ailments:
            spec["nodeSelector"] = {"disk": "sdd"}
        if "scheduler" in ailments:
            spec["schedulerName"] = "default-scheduler"
        self._needs(f"{job}-{number}", spec, ailments)
        notes, labels = {_GROUP_NAME[system]: job}, {"job": job}
        (labels if system == "kai" else notes).update({_ROLE[system]: role} if role else {})
        return shapes.thing(
            "v1", "Pod", f"{job}-{number}", SPACE, age,
            labels=labels, annotations=notes, spec=spec, status={"phase": "Running" if node else "Pending"},
        )  # fmt: skip
