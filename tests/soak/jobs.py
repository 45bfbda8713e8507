"""The jobs of a generated cluster: groups with pods, budgets, claims; some running, by the oracle's rules."""

from datetime import timedelta
from random import Random
from typing import Any

from tests.soak import cluster_keepers as keepers
from tests.soak import fits, shapes
from tests.soak.amounts import Raw
from tests.soak.needs import attached, volumes
from tests.soak.shapes import RACK, SPACE, START, ZONE, stamp
from tests.soak.world import DEVICES, FRACTION, GPU, GPU_MEMORY, World, annotations, fraction, key_of

_PORT = 8080
_ORDINARY = ("", "", "low", "mid", "high")
_RULES: tuple[fits.Rule, ...] = (*fits.ALL, volumes, attached)


class Jobs:
    def __init__(self, random: Random, profile: str, features: frozenset[str], objects: list[Raw]) -> None:
        self._random = random
        self._profile = profile
        self._features = features
        self._objects = objects
        queues = [one for one in objects if one["kind"] == "Queue"]
        self._queue_names = [
            one["metadata"]["name"] for one in queues if one["metadata"]["name"].startswith("q")
        ]

    def made(self) -> list[Raw]:
        """All objects of the cluster."""
        random = self._random
        if "others" in self._features:
            self._other_pods()
        for number in range(random.randint(4, 12)):
            self._job(f"j{number}", number)
        return keepers.kept(self._objects, START)

    def _has(self, feature: str, rate: float) -> bool:
        return feature in self._features and self._random.random() < rate

    def _other_pods(self) -> None:
        """Pods of another scheduler hold room that is nobody's."""
        for number in range(2):
            spec = {"schedulerName": "default-scheduler", "containers": [_container({"cpu": "1"})]}
            pod = shapes.thing(
                "v1", "Pod", f"daemon-{number}", "kube-system", spec=spec, status={"phase": "Pending"}
            )
            self._objects.append(pod)
            self._place([pod], None)
            if "nodeName" not in pod["spec"]:
                self._objects.remove(pod)

    # -- one job ------------------------------------------------------------------------------------------------------

    def _job(self, name: str, number: int) -> None:
        random = self._random
        system = self._profile if self._profile != "maniple" else random.choice(("volcano", "kai"))
        state = random.choices(("runs", "half", "waits"), (55, 10, 35))[0]
        size = random.choice((1, 1, 2, 2, 3, 4, 5, 6))
        least = random.randint(1, size) if self._has("elastic", 0.6) else size
        age = 600 + 60 * (20 - number) if state != "waits" else random.choice((30, 60, 60, 90))
        shape = self._pod_shape(name)
        group = self._group(system, name, least, age)
        pods = [self._pod(system, group, name, one, shape, age) for one in range(size)]
        self._divide(system, group, pods, least)
        self._objects += [group, *pods]
        self._claim(group, pods, shape)
        if "budgets" in self._features and random.random() < 0.4:
            self._objects.append(shapes.budget(f"keep-{name}", name, random.randint(0, size)))
        if state != "waits":
            wanted = pods if state == "runs" else pods[: random.randint(1, size)]
            self._start(group, pods, wanted, least)

    def _group(self, system: str, name: str, least: int, age: int) -> Raw:
        random = self._random
        spec: Raw = {"queue": random.choice(self._queue_names), "minMember": least}
        priority = (
            random.choice((*_ORDINARY, "never")) if "never" in self._features else random.choice(_ORDINARY)
        )
        notes: Raw = {}
        if self._has("firm", 0.3):
            if system == "volcano":
                notes["volcano.sh/preemptable"] = "false"
            elif random.random() < 0.5:
                spec["preemptibility"] = "non-preemptible"
            else:
                priority = random.choice(("build", "urgent"))
        elif system == "volcano" and (self._profile == "volcano" or random.random() < 0.3):
            notes["volcano.sh/preemptable"] = "true"
        if self._has("critical", 0.2):
            notes["critical"] = "yes"
        if priority:
            spec["priorityClassName"] = priority
        if self._has("topology", 0.4):
            self._wish(system, spec)
        status = {"status": {"phase": random.choice(("Pending", "Inqueue"))}} if system == "volcano" else {}
        return shapes.thing(
            shapes.GROUP_API[system], "PodGroup", name, SPACE, age, annotations=notes, spec=spec, **status
        )

    def _wish(self, system: str, spec: Raw) -> None:
        random = self._random
        if system == "volcano":
            mode = random.choice(("hard", "hard", "soft"))
            spec["networkTopology"] = {"mode": mode, "highestTierAllowed": random.choice((1, 2))}
            return
        level = random.choice(("requiredTopologyLevel", "requiredTopologyLevel", "preferredTopologyLevel"))
        spec["topologyConstraint"] = {"topology": "network", level: random.choice((ZONE, RACK))}

    def _pod(self, system: str, group: Raw, job: str, number: int, shape: Raw, age: int) -> Raw:
        notes = {shapes_note(system): group["metadata"]["name"], **shape["annotations"]}
        if "volcano.sh/preemptable" in annotations(group):
            notes["volcano.sh/preemptable"] = annotations(group)["volcano.sh/preemptable"]
        spec = {"schedulerName": shapes.SCHEDULERS[self._profile], **shape["spec"]}
        if "priorityClassName" in group["spec"]:
            spec["priorityClassName"] = group["spec"]["priorityClassName"]
        if group["metadata"].get("annotations", {}).get("critical"):
            spec["priorityClassName"] = "system-cluster-critical"
        return shapes.thing(
            "v1", "Pod", f"{job}-{number}", SPACE, age, labels={"job": job, **shape["labels"]},
            annotations=notes, spec=spec, status={"phase": "Pending"},
        )  # fmt: skip

    def _divide(self, system: str, group: Raw, pods: list[Raw], least: int) -> None:
        """Roles or sub-groups, each with a minimum; together they are the job's."""
        random, size = self._random, len(pods)
        if size < 2:
            return
        first = random.randint(1, size - 1)
        parts = [pods[:first], pods[first:]]
        if system == "kai" and self._has("sub-groups", 0.5):
            minimums = [random.randint(1, len(part)) for part in parts]
            group["spec"]["subGroups"] = [
                {"name": f"part{number}", "minMember": one} for number, one in enumerate(minimums)
            ]
            group["spec"]["minMember"] = sum(minimums)
            for number, part in enumerate(parts):
                for pod in part:
                    pod["metadata"]["labels"]["kai.scheduler/subgroup-name"] = f"part{number}"
        elif system == "volcano" and self._has("roles", 0.5):
            lowest = 0 if random.random() < 0.15 else 1
            minimums = [random.randint(lowest, len(part)) for part in parts]
            names = ("a", "b")
            roles = dict(zip(names, minimums, strict=True))
            if random.random() < 0.1:
                del roles["b"]
            group["spec"]["minTaskMember"] = roles
            group["spec"]["minMember"] = max(sum(roles.values()), 1)
            for name, part in zip(names, parts, strict=True):
                for pod in part:
                    pod["metadata"]["annotations"]["volcano.sh/task-spec"] = name
        elif system == "volcano" and size % 2 == 0 and self._has("sub-groups", 0.4):
            self._sub_groups(group, pods)

    def _sub_groups(self, group: Raw, pods: list[Raw]) -> None:
        """Sub-groups of two, told apart by a label."""
        count = len(pods) // 2
        needed = self._random.randint(1, count)
        selector = {"matchLabels": {"job": group["metadata"]["name"]}}
        policy: Raw = {"name": "slices", "subGroupSize": 2, "minSubGroups": needed}
        group["spec"]["subGroupPolicy"] = [{**policy, "labelSelector": selector, "matchLabelKeys": ["slice"]}]
        group["spec"]["minMember"] = 2 * needed
        for number, pod in enumerate(pods):
            pod["metadata"]["labels"]["slice"] = f"s{number // 2}"

    # -- pods ---------------------------------------------------------------------------------------------------------

    def _pod_shape(self, job: str) -> Raw:
        """What the pods of a job have in common."""
        random = self._random
        shape: Raw = {"annotations": {}, "labels": {}, "claims": "", "spec": {}}
        requests: Raw = {
            "cpu": random.choice(("500m", "1", "2", "4")),
            "memory": random.choice(("1Gi", "4Gi")),
        }
        kind = random.random()
        if self._has("fractions", 0.4):
            _share(random, shape)
        elif self._has("mig", 0.3):
            requests["nvidia.com/mig-1g.5gb"] = random.choice(("1", "2"))
        elif self._has("devices", 0.35):
            shape["claims"] = "devices"
        elif kind < 0.8:
            maker = "amd.com/gpu" if self._has("makers", 0.4) else GPU
            requests[maker] = random.choice(("1", "1", "2", "2", "4"))
        elif kind < 0.84:
            requests = {}
        container = _container(requests)
        if self._has("limits-only", 0.3):
            container["resources"] = {"limits": requests}
        if self._has("ports", 0.25):
            container["ports"] = [{"containerPort": 80, "hostPort": _PORT + random.randint(0, 1)}]
        shape["spec"] = {"containers": [container], **self._where(job)}
        if random.random() < 0.08:
            shape["spec"]["initContainers"] = [_container({"cpu": "6"}, "init")]
        if self._has("taints", 0.6):
            shape["spec"]["tolerations"] = [{"key": "dedicated", "operator": "Equal", "value": "ml"}]
        if self._has("volumes", 0.35):
            shape["volumes"] = random.choice(("made", "local"))
        return shape

    def _where(self, job: str) -> Raw:
        random = self._random
        found: Raw = {}
        if self._has("selectors", 0.35):
            found["nodeSelector"] = random.choice(({"disk": "ssd"}, {RACK: "r0"}, {ZONE: "z0"}))
        if self._has("spread", 0.4):
            found["topologySpreadConstraints"] = [
                {
                    "maxSkew": random.choice((1, 2)),
                    "topologyKey": random.choice((ZONE, shapes.HOST)),
                    "whenUnsatisfiable": random.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
                    "labelSelector": {"matchLabels": {"job": job}},
                }
            ]
        if self._has("affinity", 0.4):
            found["affinity"] = self._affinity(job)
        return found

    def _affinity(self, job: str) -> Raw:
        random = self._random
        other = random.choice((job, job, f"j{random.randrange(6)}"))
        term = {
            "topologyKey": random.choice((shapes.HOST, RACK)),
            "labelSelector": {"matchLabels": {"job": other}},
        }
        kind = random.choice(("podAffinity", "podAntiAffinity", "podAntiAffinity", "preferred", "node"))
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        if kind == "node":
            wanted = {"key": "disk", "operator": random.choice(("In", "NotIn")), "values": ["ssd"]}
            return {"nodeAffinity": {required: {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}}
        if kind == "preferred":
            weighed = [{"weight": 10, "podAffinityTerm": term}]
            return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighed}}
        return {kind: {required: [term]}}

    def _claim(self, group: Raw, pods: list[Raw], shape: Raw) -> None:
        """Every pod has its own claims, by name; devices may be shared by all pods of a job."""
        shared = bool(shape["claims"]) and self._random.random() < 0.25
        for number, pod in enumerate(pods):
            name = pod["metadata"]["name"]
            if shape["claims"]:
                claim = f"{group['metadata']['name']}-gpu" if shared else f"{name}-gpu"
                if not (shared and number):
                    self._objects.append(shapes.resource_claim(claim, "gpu", 1, group["spec"]["queue"]))
                pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
            if "volumes" in shape:
                self._objects.append(shapes.volume_claim(f"{name}-data", shape["volumes"], "10Gi"))
                source = {"persistentVolumeClaim": {"claimName": f"{name}-data"}}
                pod["spec"]["volumes"] = [{"name": "data", **source}]

    # -- what runs already --------------------------------------------------------------------------------------------

    def _start(self, group: Raw, pods: list[Raw], wanted: list[Raw], least: int) -> None:
        self._place(wanted, self._inside(group))
        running = [pod for pod in pods if "nodeName" in pod["spec"]]
        if "status" in group and len(running) >= least:
            group["status"]["phase"] = "Running"
        if running and self._has("leaving", 0.4):
            pod = self._random.choice(running)
            pod["metadata"]["deletionTimestamp"] = stamp(START)
        elif len(running) < len(pods) and self._has("nominated", 0.5):
            self._nominate(next(pod for pod in pods if "nodeName" not in pod["spec"]))
        if running and group["apiVersion"].startswith("scheduling.run.ai"):
            started = stamp(START - timedelta(seconds=300))
            group["metadata"].setdefault("annotations", {})["kai.scheduler/last-start-timestamp"] = started

    def _nominate(self, pod: Raw) -> None:
        """To a node where room is being made."""
        nodes = [
            one["spec"]["nodeName"]
            for one in self._objects
            if one["kind"] == "Pod" and "deletionTimestamp" in one["metadata"]
        ]
        if nodes:
            pod["status"]["nominatedNodeName"] = self._random.choice(nodes)

    def _inside(self, group: Raw) -> tuple[str, str] | None:
        """The domain that a job with a topology is in: a label and a value."""
        spec = group["spec"]
        if "networkTopology" not in spec and "topologyConstraint" not in spec:
            return None
        racks = sorted({one["metadata"]["labels"][RACK] for one in self._objects if one["kind"] == "Node"})
        return RACK, self._random.choice(racks)

    def _place(self, pods: list[Raw], inside: tuple[str, str] | None) -> None:
        world = World(self._objects)
        for pod in pods:
            names = [
                name
                for name, node in world.nodes.items()
                if inside is None or node["metadata"]["labels"][inside[0]] == inside[1]
            ]
            self._random.shuffle(names)
            for name in names:
                if self._try(world, pod, name):
                    break

    def _try(self, world: World, pod: Raw, node: str) -> bool:
        key = key_of(pod)
        world.devices[key] = _free_devices(world, pod, node)
        held = keepers.devices_for(world, key, node)
        if held is None or fits.refusals(world, key, node, _RULES):
            del world.devices[key]
            return False
        world.place(key, node, world.devices[key])
        pod["spec"]["nodeName"], pod["status"] = node, {"phase": "Running"}
        pod["metadata"].setdefault("labels", {}).update(keepers.device_labels(world.devices[key]))
        consumer = {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        for claim, allocation in held.items():
            claim_of = world.kind("ResourceClaim")[claim]
            users = claim_of["status"].get("reservedFor", [])
            claim_of["status"] = {"allocation": allocation, "reservedFor": [*users, consumer]}
        for made in keepers.bind_volumes(world, key, node):
            self._objects.append(made)
            world.kinds.setdefault("PersistentVolume", {})[key_of(made)] = made
        return True


def _share(random: Random, shape: Raw) -> None:
    if random.random() < 0.75:
        shape["annotations"][FRACTION] = random.choice(("0.25", "0.5", "0.5", "0.7"))
        if random.random() < 0.15:
            shape["annotations"][DEVICES] = "2"
    else:
        shape["annotations"][GPU_MEMORY] = random.choice(("10000", "20000"))


def _free_devices(world: World, pod: Raw, node: str) -> tuple[str, ...]:
    """Devices for a pod that shares: those that others share already first, then new ones."""
    part = fraction(pod, world.nodes[node])
    if not part:
        return ()
    used: dict[str, Any] = {}
    for one in world.on(node):
        for group in world.devices.get(one, ()):
            used[group] = used.get(group, 0) + fraction(world.pods[one], world.nodes[node])
    count = int(annotations(pod).get(DEVICES, "1"))
    open_ = sorted(group for group, taken in used.items() if taken + part <= 1)
    fresh = (f"{pod['metadata']['name']}-{number}" for number in range(count))
    return tuple([*open_, *fresh][:count])


def _container(requests: Raw, name: str = "main") -> Raw:
    return {"name": name, "image": "x", "resources": {"requests": requests}}


def shapes_note(system: str) -> str:
    return "scheduling.k8s.io/group-name" if system == "volcano" else "pod-group-name"
