"""Topics of KAI's clusters, part two: features of nodes and pods, such as devices, volumes, topology, node
rules."""

from dataclasses import replace

from tests.corpus.kai_scene import NAMESPACE, Job, Raw, Request, Scene, ago
from tests.corpus.kai_topics import (
    Topic,
    any_actions,
    flat_queues,
    gpu_request,
    grouped,
    populate,
    some_job,
    some_nodes,
)

TREE = "network"
LEVELS = ["example.com/zone", "example.com/rack", "kubernetes.io/hostname"]
GPU_CLASS = "gpu.example.com"


def _racks(scene: Scene) -> None:
    """Nodes in racks in zones; now and then one that is in none."""
    random = scene.random
    gpus = random.choice([2, 4])
    for index in range(random.randint(3, 6)):
        rack = random.randint(0, 2)
        labels = {LEVELS[0]: f"z{rack // 2}", LEVELS[1]: f"r{rack}"}
        if scene.chance(0.08):
            labels.pop(LEVELS[random.randint(0, 1)])
        scene.node(gpus=gpus if index == 0 or scene.chance(0.8) else 2, labels=labels)
    levels = LEVELS if scene.chance(0.7) else LEVELS[:2]
    scene.add(
        "kai.scheduler/v1alpha1", "Topology", TREE, spec={"levels": [{"nodeLabel": one} for one in levels]}
    )


def _constraint(scene: Scene) -> Raw:
    random = scene.random
    said = {"topology": TREE if scene.chance(0.97) else "missing"}
    kind = random.choice(["required", "preferred", "both"])
    if kind != "preferred":
        said["requiredTopologyLevel"] = random.choice(LEVELS[:2])
    if kind != "required":
        said["preferredTopologyLevel"] = random.choice(LEVELS[1:] if kind == "both" else LEVELS)
    return said


def topology(scene: Scene) -> None:
    def make(one: Scene) -> Job:
        job = some_job(one, gpu_request(one, (0, 1, 1, 2)), elastic=one.chance(0.2))
        job.pods += one.random.randint(0, 2)
        job.minimum = job.pods if one.chance(0.8) else job.minimum
        job.topology = _constraint(one) if one.chance(0.75) else {}
        return job

    _racks(scene)
    flat_queues(scene, scene.random.randint(1, 2), most=8)
    populate(scene, (0, 3), (1, 4), make)
    any_actions(scene)


def grouped_topology(scene: Scene) -> None:
    def make(one: Scene) -> Job:
        job = grouped(one, gpu_request(one, (0, 1, 1)))
        job.topology = _constraint(one) if one.chance(0.4) else {}
        for group in job.sub_groups:
            if one.chance(0.5):
                group["topologyConstraint"] = _constraint(one)
        return job

    _racks(scene)
    flat_queues(scene, scene.random.randint(1, 2), most=8)
    populate(scene, (0, 1), (1, 3), make)
    any_actions(scene)


def _part(scene: Scene) -> Request:
    random = scene.random
    if scene.chance(0.25):
        return gpu_request(scene, (0, 1, 2))
    return Request(
        fraction=random.choice(["0.25", "0.3", "0.5", "0.5", "0.7"]), cpu=random.choice([250, 500])
    )


def _memory(scene: Scene) -> Request:
    if scene.chance(0.3):
        return _part(scene)
    return Request(memory=scene.random.choice([100, 250, 300, 500, 800, 1500]), cpu=250)


def _several(scene: Scene) -> Request:
    part = _part(scene) if scene.chance(0.6) else _memory(scene)
    return replace(part, devices=scene.random.choice([1, 2, 2, 3])) if part.shares else part


def _sharing(scene: Scene, request: Request, gang: float = 0.4) -> Job:
    return some_job(scene, request, gang=scene.chance(gang), elastic=scene.chance(0.3))


def fractions(scene: Scene) -> None:
    some_nodes(scene, 1, 3, (1, 2, 4))
    flat_queues(scene)
    populate(scene, (0, 4), (1, 5), lambda one: _sharing(one, _part(one)))
    any_actions(scene)


def gpu_memory(scene: Scene) -> None:
    scene.gpu_memory = scene.random.choice([100, 1000, 1650])
    some_nodes(scene, 1, 3, (1, 2, 4))
    if scene.chance(0.3):
        scene.nodes()[0]["metadata"]["labels"].pop("nvidia.com/gpu.memory", None)
    flat_queues(scene)
    populate(scene, (0, 3), (1, 4), lambda one: _sharing(one, _memory(one)))
    any_actions(scene)


def several_devices(scene: Scene) -> None:
    some_nodes(scene, 1, 3, (2, 4))
    flat_queues(scene)
    populate(scene, (0, 3), (1, 4), lambda one: _sharing(one, _several(one)))
    any_actions(scene)


def strategies(scene: Scene) -> None:
    """Packing or spreading, over nodes and over devices; and plugins left out."""
    random = scene.random
    some_nodes(scene, 2, 5, (0, 2, 4))
    flat_queues(scene, random.randint(1, 2))
    populate(
        scene, (1, 3), (2, 5), lambda one: _sharing(one, _part(one) if one.chance(0.5) else gpu_request(one))
    )
    kinds = ["binpack", "spread"]
    scene.plugins["nodeplacement"] = {"cpu": random.choice(kinds), "gpu": random.choice(kinds)}
    if scene.chance(0.5):
        del scene.plugins["gpupack"], scene.plugins["gpusharingorder"]
        scene.plugins["gpuspread"] = {}
    for name in ("resourcetype", "nodeavailability", "priority"):
        if scene.chance(0.1):
            del scene.plugins[name]
    any_actions(scene)


def mig(scene: Scene) -> None:
    random = scene.random
    profiles = ["nvidia.com/mig-1g.5gb", "nvidia.com/mig-2g.10gb", "nvidia.com/mig-3g.20gb"]

    def slices(one: Scene) -> Request:
        if one.chance(0.25):
            return gpu_request(one, (0, 1))
        return Request(cpu=250, named=((random.choice(profiles), random.choice([1, 1, 2])),))

    for _ in range(random.randint(1, 3)):
        if scene.chance(0.7):
            named = {
                name: str(random.randint(1, 4)) for name in random.sample(profiles, random.randint(1, 3))
            }
            scene.node(gpus=0, named=named, labels={"nvidia.com/mig.strategy": "mixed"})
        else:
            single = {"nvidia.com/mig.strategy": random.choice(["single", "none"])}
            scene.node(gpus=random.choice([2, 4]), labels=single)
    flat_queues(scene)
    populate(scene, (0, 3), (1, 4), lambda one: _sharing(one, slices(one)))
    any_actions(scene)


def _device_nodes(scene: Scene) -> None:
    random = scene.random
    scene.add("resource.k8s.io/v1", "DeviceClass", GPU_CLASS, spec={"selectors": []})
    for _ in range(random.randint(1, 4)):
        plain = scene.chance(0.2)
        made = scene.node(gpus=2 if plain else 0)
        name = made["metadata"]["name"]
        if plain:
            continue
        count = random.choice([1, 2, 4])
        scene.room[name]["devices"] = count
        scene.add(
            "resource.k8s.io/v1",
            "ResourceSlice",
            f"slice-{name}",
            spec={
                "driver": GPU_CLASS,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": f"d{index}"} for index in range(count)],
            },
        )


def _claim(scene: Scene, name: str, count: int, queue: str = "", everything: bool = False) -> Raw:
    amount = {"allocationMode": "All"} if everything else {"allocationMode": "ExactCount", "count": count}
    request = {"name": "gpus", "exactly": {"deviceClassName": GPU_CLASS, **amount}}
    labels = {"labels": {"kai.scheduler/queue": queue}} if queue else {}
    return scene.add(
        "resource.k8s.io/v1",
        "ResourceClaim",
        name,
        namespace=NAMESPACE,
        metadata=labels,
        spec={"devices": {"requests": [request]}},
        status={},
    )


def _allocate(scene: Scene, claim: Raw, node: str, count: int) -> None:
    """The next devices of the node are the claim's."""
    left = scene.room[node]["devices"]
    results = [
        {"request": "gpus", "driver": GPU_CLASS, "pool": node, "device": f"d{left - 1 - index}"}
        for index in range(count)
    ]
    scene.room[node]["devices"] = left - count
    hostname = {"key": "metadata.name", "operator": "In", "values": [node]}
    claim["status"] = {
        "allocation": {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [hostname]}]},
        }
    }


def _reserve(claim: Raw, pod: Raw) -> None:
    user = {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    claim["status"].setdefault("reservedFor", []).append(user)


def _with_claim(scene: Scene, pod: Raw, claim: Raw, template: bool) -> None:
    """As the API server has it after a template's claim was made; or by name."""
    named = claim["metadata"]["name"]
    if template:
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"],
        }
        claim["metadata"]["ownerReferences"] = [owner | {"controller": True}]
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "template"}]
        pod["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": named}]
    else:
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": named}]
    pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]


def _claiming_job(scene: Scene, running: bool) -> None:
    """A job each of whose pods has a claim of its own."""
    random = scene.random
    job = _sharing(scene, Request(cpu=250))
    count = random.choice([1, 1, 2])
    group, *pods = scene.job(job)
    for pod in pods:
        claim = _claim(scene, f"{pod['metadata']['name']}-gpu", count, everything=scene.chance(0.05))
        _with_claim(scene, pod, claim, template=True)
        fitting = [name for name, room in scene.room.items() if room.get("devices", 0) >= count]
        if running and fitting:
            node = scene.run(pod, job.request, fitting)
            statuses = [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]
            pod["status"]["resourceClaimStatuses"] = statuses
            _allocate(scene, claim, node, count)
            _reserve(claim, pod)
    group["metadata"]["creationTimestamp"] = ago(minutes=30 if running else random.randint(1, 9))


def claims(scene: Scene) -> None:
    _device_nodes(scene)
    flat_queues(scene)
    for _ in range(scene.random.randint(0, 3)):
        _claiming_job(scene, running=True)
    for _ in range(scene.random.randint(1, 3)):
        _claiming_job(scene, running=False)
    populate(scene, (0, 1), (0, 2), lambda one: some_job(one, gpu_request(one, (0, 0, 1)), gang=False))
    any_actions(scene)


def shared_claims(scene: Scene) -> None:
    """Claims that several pods name, of one job or of several; some allocated already, with users or without."""
    random = scene.random
    _device_nodes(scene)
    flat_queues(scene, random.randint(1, 2), most=8)
    for index in range(random.randint(1, 2)):
        queue = random.choice(scene.queues)
        count = random.choice([1, 1, 2])
        claim = _claim(scene, f"shared{index}", count, queue if scene.chance(0.9) else "")
        fitting = [name for name, room in scene.room.items() if room.get("devices", 0) >= count]
        node = random.choice(fitting) if fitting and scene.chance(0.4) else ""
        if node:
            _allocate(scene, claim, node, count)
        for _ in range(random.randint(1, 3)):
            job = _sharing(scene, Request(cpu=250), 0.6)
            job.queue = queue if scene.chance(0.9) else job.queue
            for pod in scene.job(job)[1:]:
                _with_claim(scene, pod, claim, template=False)
                if node and scene.chance(0.5) and scene.run(pod, job.request, [node]):
                    _reserve(claim, pod)
    if scene.chance(0.5):
        _claiming_job(scene, running=scene.chance(0.5))
    any_actions(scene)


FEATURES: dict[str, Topic] = {
    "topology": topology,
    "topology of sub-groups": grouped_topology,
    "fractions": fractions,
    "gpu memory": gpu_memory,
    "several devices": several_devices,
    "strategies": strategies,
    "mig": mig,
    "resource claims": claims,
    "shared claims": shared_claims,
}
