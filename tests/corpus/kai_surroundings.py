"""Topics of KAI's clusters, part three: node rules, volumes, pods in transition, and other objects."""

from tests.corpus.kai_scene import NAMESPACE, Job, Raw, Request, Scene, ago
from tests.corpus.kai_topics import (
    ALL_ACTIONS,
    Topic,
    any_actions,
    deep_queues,
    flat_queues,
    gpu_request,
    populate,
    some_job,
    some_nodes,
)

CLASS = "local"
DRIVER = "disks.example.com"


def _selector(scene: Scene, names: list[str]) -> Raw:
    chosen = scene.random.sample(names, scene.random.randint(1, len(names)))
    match = {
        "key": "kubernetes.io/hostname",
        "operator": scene.random.choice(["In", "In", "NotIn"]),
        "values": chosen,
    }
    return {"nodeSelectorTerms": [{"matchExpressions": [match]}]}


def node_rules(scene: Scene) -> None:
    """Taints and tolerations, selectors, node affinity, host ports."""
    random = scene.random
    some_nodes(scene, 2, 5, (0, 2, 4))
    names = list(scene.room)
    for node in scene.nodes():
        if scene.chance(0.3):
            effect = random.choice(["NoSchedule", "NoExecute", "PreferNoSchedule"])
            node["spec"]["taints"] = [{"key": "team", "value": random.choice(["a", "b"]), "effect": effect}]
        node["metadata"]["labels"]["disk"] = random.choice(["ssd", "hdd"])

    def dress(pod: Raw, index: int) -> None:
        spec = pod["spec"]
        if scene.chance(0.3):
            tolerated = {"key": "team", "operator": "Equal", "value": "a"}
            spec["tolerations"] = [random.choice([tolerated, {"operator": "Exists"}])]
        if scene.chance(0.25):
            spec["nodeSelector"] = {"disk": random.choice(["ssd", "hdd"])}
        if scene.chance(0.25):
            required = {"requiredDuringSchedulingIgnoredDuringExecution": _selector(scene, names)}
            spec["affinity"] = {"nodeAffinity": required}
        if scene.chance(0.25):
            port = {"containerPort": 80, "hostPort": random.choice([8080, 9090]), "protocol": "TCP"}
            spec["containers"][0]["ports"] = [port]

    def make(one: Scene) -> Job:
        job = some_job(one)
        job.dress = dress
        return job

    flat_queues(scene, random.randint(1, 2), most=8)
    populate(scene, (0, 3), (2, 4), make)
    any_actions(scene)


def neighbours(scene: Scene) -> None:
    """Affinity between pods, required and preferred, with and without its scorer; spread, which KAI ignores."""
    random = scene.random
    if scene.chance(0.6):
        scene.plugins["podaffinity"] = {}
    for _ in range(random.randint(2, 5)):
        scene.node(gpus=random.choice([0, 2, 4]), labels={"zone": random.choice(["a", "b"])})

    def term(name: str) -> Raw:
        key = random.choice(["kubernetes.io/hostname", "zone"])
        return {"labelSelector": {"matchLabels": {"tier": name}}, "topologyKey": key}

    def dress(pod: Raw, index: int) -> None:
        pod["metadata"]["labels"]["tier"] = random.choice(["web", "db"])
        affinity: Raw = {}
        for kind in ("podAffinity", "podAntiAffinity"):
            if scene.chance(0.3):
                terms = [term(random.choice(["web", "db"]))]
                affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
            elif scene.chance(0.3):
                weighed = [
                    {
                        "weight": random.choice([1, 50, 100]),
                        "podAffinityTerm": term(random.choice(["web", "db"])),
                    }
                ]
                affinity[kind] = {"preferredDuringSchedulingIgnoredDuringExecution": weighed}
        if affinity:
            pod["spec"]["affinity"] = affinity
        if scene.chance(0.1):
            spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
            selector = {"labelSelector": {"matchLabels": {"tier": "web"}}}
            pod["spec"]["topologySpreadConstraints"] = [spread | selector]

    def make(one: Scene) -> Job:
        job = some_job(one, gpu_request(one, (0, 0, 1)))
        job.dress = dress
        return job

    flat_queues(scene, random.randint(1, 2), most=8)
    populate(scene, (0, 3), (1, 4), make)
    any_actions(scene)


def _storage_class(
    scene: Scene, waits: bool = True, provisioner: str = "kubernetes.io/no-provisioner"
) -> None:
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    body: Raw = {"provisioner": provisioner, "volumeBindingMode": mode, "reclaimPolicy": "Delete"}
    scene.add("storage.k8s.io/v1", "StorageClass", CLASS, **body)


def _volume_claim(scene: Scene, name: str, gigabytes: int, volume: str = "") -> Raw:
    spec: Raw = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": f"{gigabytes}Gi"}},
        "storageClassName": CLASS,
        "volumeMode": "Filesystem",
    }
    bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if volume else {}
    if volume:
        spec["volumeName"] = volume
    return scene.add(
        "v1",
        "PersistentVolumeClaim",
        name,
        namespace=NAMESPACE,
        metadata=bound,
        spec=spec,
        status={"phase": "Bound" if volume else "Pending"},
    )


def _volume(scene: Scene, name: str, gigabytes: int, node: str, claim: str = "") -> None:
    match = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec: Raw = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": f"{gigabytes}Gi"},
        "storageClassName": CLASS,
        "volumeMode": "Filesystem",
        "persistentVolumeReclaimPolicy": "Retain",
        "local": {"path": f"/disks/{name}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [match]}]}},
    }
    if claim:
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": claim}
    scene.add("v1", "PersistentVolume", name, spec=spec, status={"phase": "Bound" if claim else "Available"})


def _mount(pod: Raw, claim: str) -> None:
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]


def volumes(scene: Scene) -> None:
    """Local volumes: bound ones that hold a pod to a node, and claims that wait for their first pod."""
    random = scene.random
    some_nodes(scene, 2, 4, (0, 2))
    _storage_class(scene, waits=scene.chance(0.9))
    names = list(scene.room)
    for index in range(random.randint(1, 4)):
        _volume(scene, f"free{index}", random.choice([5, 10, 20]), random.choice(names))

    def dress(pod: Raw, index: int) -> None:
        claim = f"{pod['metadata']['name']}-data"
        kind = random.choice(["none", "none", "waits", "bound", "missing"])
        if kind == "waits":
            _volume_claim(scene, claim, random.choice([3, 8, 15]))
        elif kind == "bound":
            _volume(scene, f"pv-{claim}", 10, random.choice(names), claim)
            _volume_claim(scene, claim, 10, f"pv-{claim}")
        if kind != "none":
            _mount(pod, claim if kind != "missing" or scene.chance(0.3) else "nowhere")

    def make(one: Scene) -> Job:
        job = some_job(one, gpu_request(one, (0, 0, 1)))
        job.dress = dress
        return job

    flat_queues(scene, random.randint(1, 2), most=8)
    populate(scene, (0, 1), (2, 4), lambda one: some_job(one, gpu_request(one, (0, 1))))
    populate(scene, (0, 0), (1, 3), make)
    any_actions(scene)


def storage_room(scene: Scene) -> None:
    """Room for volumes as CSI drivers report it."""
    random = scene.random
    some_nodes(scene, 2, 4, (0, 2))
    _storage_class(scene, provisioner=DRIVER)
    scene.options["scheduleCSIStorage"] = scene.chance(0.8)
    scene.add("storage.k8s.io/v1", "CSIDriver", DRIVER, spec={"storageCapacity": True})
    for name in scene.room:
        if scene.chance(0.85):
            scene.add(
                "storage.k8s.io/v1",
                "CSIStorageCapacity",
                f"room-{name}",
                namespace="kube-system",
                storageClassName=CLASS,
                capacity=f"{random.choice([0, 10, 20, 40])}Gi",
                nodeTopology={"matchLabels": {"kubernetes.io/hostname": name}},
            )
            driver = {"name": DRIVER, "nodeID": name, "topologyKeys": ["kubernetes.io/hostname"]}
            scene.add("storage.k8s.io/v1", "CSINode", name, spec={"drivers": [driver]})

    def dress(pod: Raw, index: int) -> None:
        if scene.chance(0.6):
            claim = f"{pod['metadata']['name']}-data"
            _volume_claim(scene, claim, random.choice([5, 8, 15, 30]))
            _mount(pod, claim)

    def make(one: Scene) -> Job:
        job = some_job(one, gpu_request(one, (0, 0, 1)))
        job.dress = dress
        return job

    flat_queues(scene, random.randint(1, 2), most=8)
    populate(scene, (0, 1), (0, 1), lambda one: some_job(one, gpu_request(one, (0, 1))))
    populate(scene, (0, 0), (2, 4), make)
    any_actions(scene)


def _on_the_way(scene: Scene, pod: Raw) -> None:
    """A pod that the binder is about to bind, has failed to bind, or was asked to bind to a node that is gone."""
    random = scene.random
    kind = random.choice(["live", "live", "failed", "gone", "retried"])
    node = random.choice(list(scene.room)) if kind != "gone" else "n99"
    spec: Raw = {"podName": pod["metadata"]["name"], "selectedNode": node, "receivedResourceType": "Regular"}
    status: Raw = {"failed": {"phase": "Failed", "failedAttempts": 1}}.get(kind, {"phase": "Pending"})
    if kind == "retried":
        spec["backoffLimit"], status = 3, {"phase": "Failed", "failedAttempts": 1}
    scene.add(
        "scheduling.run.ai/v1alpha2",
        "BindRequest",
        pod["metadata"]["name"],
        namespace=NAMESPACE,
        metadata={"labels": {"selected-node": node}},
        spec=spec,
        status=status,
    )


def transit(scene: Scene) -> None:
    """Pods that are leaving, that have a node in mind, or whose binding is under way."""
    random = scene.random
    some_nodes(scene, 2, 4, (2, 4))
    flat_queues(scene, random.randint(1, 3))
    populate(scene, (1, 4), (2, 4), lambda one: some_job(one, elastic=one.chance(0.2)))
    for pod in scene.running():
        if scene.chance(0.3):
            pod["metadata"] |= {"deletionTimestamp": ago(seconds=30), "deletionGracePeriodSeconds": 60}
    for pod in scene.waiting():
        if scene.chance(0.2):
            pod["status"]["nominatedNodeName"] = random.choice(list(scene.room))
        elif scene.chance(0.15):
            _on_the_way(scene, pod)
    any_actions(scene)


def pools(scene: Scene) -> None:
    """Shards of a cluster, and nodes that are only for work of one kind."""
    random = scene.random
    key = "kai.scheduler/node-pool"
    restricted = scene.chance(0.5)
    pool = random.choice(["red", "red", ""])
    some_nodes(scene, 3, 5, (0, 2, 4))
    for node in scene.nodes():
        labels = node["metadata"]["labels"]
        if pool or scene.chance(0.3):
            labels[key] = random.choice(["red", "red", "blue"])
        if restricted and scene.chance(0.8):
            kinds = ["node-role.kubernetes.io/gpu-worker", "node-role.kubernetes.io/cpu-worker"]
            labels[kinds[0] if "nvidia.com/gpu" in node["status"]["allocatable"] else kinds[1]] = "true"
    deep_queues(scene) if scene.chance(0.3) else flat_queues(scene, random.randint(1, 2), most=8)
    for one in scene.objects:
        if one["kind"] == "Queue" and pool and scene.chance(0.95):
            one["metadata"]["labels"] = {key: pool}

    def make(one: Scene) -> Job:
        job = some_job(one)
        chosen = pool if one.chance(0.8) else "blue"
        job.labels = {key: chosen} if chosen else {}
        return job

    populate(scene, (0, 2), (2, 5), make)
    if pool:
        scene.options["nodePoolLabelValue"] = pool
    if restricted:
        scene.options["restrictNodeScheduling"] = True
    any_actions(scene)


def _strangers(scene: Scene) -> None:
    """Pods of other schedulers, and a pod that belongs to no group."""
    for index in range(scene.random.randint(0, 3)):
        container = {"name": "main", "image": "x", "resources": {"requests": gpu_request(scene).resources()}}
        scene.add(
            "v1",
            "Pod",
            f"stranger{index}",
            namespace="other",
            spec={
                "schedulerName": scene.random.choice(["default-scheduler", "kai-scheduler"]),
                "nodeName": scene.random.choice(list(scene.room)),
                "containers": [container],
            },
            status={"phase": scene.random.choice(["Running", "Running", "Succeeded"])},
        )


def surroundings(scene: Scene) -> None:
    """What else there is: nodes that are not ready, strangers, gates, ConfigMaps, queues that do not exist."""
    random = scene.random
    some_nodes(scene, 2, 5, (0, 2, 4))
    for node in scene.nodes():
        if scene.chance(0.15):
            node["spec"]["unschedulable"] = True
        elif scene.chance(0.15):
            kind, status = random.choice(
                [("Ready", "False"), ("MemoryPressure", "True"), ("DiskPressure", "True")]
            )
            ready = [] if kind == "Ready" else node["status"]["conditions"]
            node["status"]["conditions"] = [*ready, {"type": kind, "status": status}]
    flat_queues(scene, random.randint(1, 2))
    scene.add("v1", "ConfigMap", "settings", namespace=NAMESPACE, data={"a": "b"})

    def dress(pod: Raw, index: int) -> None:
        if scene.chance(0.1):
            pod["spec"]["schedulingGates"] = [{"name": "later"}]
        if scene.chance(0.2):
            source = {
                "name": random.choice(["settings", "missing"]),
                **({"optional": True} if scene.chance(0.3) else {}),
            }
            pod["spec"]["containers"][0]["envFrom"] = [{"configMapRef": source}]
        if scene.chance(0.1):
            more = Request(cpu=3000).resources()
            pod["spec"]["initContainers"] = [{"name": "first", "image": "x", "resources": {"requests": more}}]
        if scene.chance(0.1):
            pod["spec"]["overhead"] = {"cpu": "500m"}

    def make(one: Scene) -> Job:
        job = some_job(one, elastic=one.chance(0.3))
        job.dress = dress
        if one.chance(0.08):
            job.queue = random.choice(["missing", "top"])
        return job

    populate(scene, (0, 2), (2, 5), make)
    _strangers(scene)
    any_actions(scene)


def mixed(scene: Scene) -> None:
    """A little of everything on a cluster that is nearly full."""
    random = scene.random
    some_nodes(scene, 2, 5, (0, 2, 4))
    deep_queues(scene) if scene.chance(0.5) else flat_queues(scene, random.randint(2, 3))

    def make(one: Scene) -> Job:
        request = gpu_request(one)
        if one.chance(0.3):
            request = Request(fraction=random.choice(["0.25", "0.5"]), cpu=250)
        job = some_job(one, request, elastic=one.chance(0.3))
        job.preemptibility = random.choice(["", "", "non-preemptible"])
        return job

    populate(scene, (2, 5), (1, 4), make)
    for pod in scene.running():
        if scene.chance(0.1):
            pod["metadata"] |= {"deletionTimestamp": ago(seconds=30), "deletionGracePeriodSeconds": 60}
    scene.actions = random.choice(
        [ALL_ACTIONS, ALL_ACTIONS, ["allocate", "reclaim"], ["allocate", "preempt"]]
    )
    if scene.chance(0.5):
        scene.plugins["podaffinity"] = {}


SURROUNDINGS: dict[str, Topic] = {
    "node rules": node_rules,
    "neighbours": neighbours,
    "volumes": volumes,
    "storage room": storage_room,
    "transit": transit,
    "pools": pools,
    "surroundings": surroundings,
    "mixed": mixed,
}
