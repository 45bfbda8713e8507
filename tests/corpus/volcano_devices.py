"""Topics about further needs of a pod: cards, parts of cards, claimed devices, volumes, CPUs of one NUMA
node."""

from collections.abc import Callable, Mapping

from tests.corpus.volcano_scene import NAMESPACE, Raw, Scene, amount

Topic = Callable[[Scene], None]
DRIVER = "gpu.example.com"
STORAGE_DRIVER = "csi.example.com"
_ACTIONS = (["allocate"], ["allocate"], ["allocate", "backfill"], ["allocate", "preempt"])


def _asks(pod: Raw, wanted: Mapping[str, str]) -> None:
    """Extended resources: limits, which are requests as well."""
    resources = pod["spec"]["containers"][0]["resources"]
    resources["limits"] = dict(wanted)
    resources.setdefault("requests", {}).update(wanted)


def _gpu_share(scene: Scene, argument: str, wanted: Callable[[], Mapping[str, str]]) -> None:
    scene.actions = scene.pick(*_ACTIONS)
    scene.second.append(("deviceshare", {argument: True}))
    for size in scene.random.sample((4, 5, 6, 8, 10), scene.number(1, 3)):
        cards = scene.number(1, 3)
        more = {
            "volcano.sh/gpu-number": str(cards),
            "volcano.sh/gpu-memory": str(cards * scene.pick(8, 12, 16)),
        }
        notes = {"volcano.sh/gpu-unhealthy-ids": "0"} if scene.chance(0.1) else {}
        scene.node(size, 2 * size, more if scene.chance(0.85) else None, annotations=notes)
    scene.some_queues(1, 1)
    for i in range(scene.number(2, 4)):
        running = scene.chance(0.3)
        for pod in scene.random_job(
            f"j{i}", running=running, cpu=scene.pick(0.5, 1), priority="low" if running else "high"
        ):
            if scene.chance(0.8):
                _asks(pod, wanted())
                if pod["spec"].get("nodeName"):
                    index = {"volcano.sh/gpu-index": "0", "volcano.sh/predicate-time": "1790000000000000000"}
                    pod["metadata"]["annotations"].update(index)


def gpu_memory(scene: Scene) -> None:
    """Cards shared by memory."""
    _gpu_share(
        scene, "deviceshare.GPUSharingEnable", lambda: {"volcano.sh/gpu-memory": str(scene.number(1, 12))}
    )


def gpu_number(scene: Scene) -> None:
    """Whole cards of nodes that could share them."""
    _gpu_share(
        scene, "deviceshare.GPUNumberEnable", lambda: {"volcano.sh/gpu-number": str(scene.number(1, 2))}
    )


def virtual_gpus(scene: Scene) -> None:
    """Cards shared by memory and cores."""
    scene.actions = scene.pick(*_ACTIONS)
    settings: Raw = {"deviceshare.VGPUEnable": True}
    if scene.chance(0.7):
        settings.update(
            {
                "deviceshare.SchedulePolicy": scene.pick("binpack", "spread"),
                "deviceshare.ScheduleWeight": scene.number(1, 10),
            }
        )
    scene.second.append(("deviceshare", settings))
    for size in scene.random.sample((4, 5, 6, 8, 10), scene.number(1, 3)):
        cards = scene.number(1, 3)
        memory = scene.pick(8000, 16000)
        kinds = [scene.pick("NVIDIA-A100", "NVIDIA-T4") for _ in range(cards)]
        name = f"n{len(scene.nodes)}"
        register = "".join(
            f"GPU-{name}-{i},{scene.pick(2, 10)},{memory},{kind},true,hami-core:"
            for i, kind in enumerate(kinds)
        )
        more = {
            "volcano.sh/vgpu-number": str(cards * 10),
            "volcano.sh/vgpu-memory": str(cards * memory),
            "volcano.sh/vgpu-cores": str(cards * 100),
        }
        scene.node(size, 2 * size, more, annotations={"volcano.sh/node-vgpu-register": register})
    scene.some_queues(1, 1)
    for i in range(scene.number(2, 4)):
        for pod in scene.random_job(f"j{i}", cpu=scene.pick(0.5, 1), priority="high"):
            _asks(pod, _part_of_a_card(scene))
            if scene.chance(0.2):
                which = scene.pick("nvidia.com/use-gputype", "nvidia.com/nouse-gputype")
                pod["metadata"]["annotations"][which] = scene.pick("A100", "T4")


def _part_of_a_card(scene: Scene) -> Raw:
    wanted = {"volcano.sh/vgpu-number": str(scene.pick(1, 1, 1, 2))}
    if scene.chance(0.8):
        wanted["volcano.sh/vgpu-memory"] = str(scene.pick(1000, 3000, 5000, 9000))
    if scene.chance(0.6):
        wanted["volcano.sh/vgpu-cores"] = str(scene.pick(10, 30, 50, 100))
    return wanted


def claims(scene: Scene) -> None:
    """Devices by claims, of one pod or shared."""
    scene.actions = scene.pick(["allocate"], ["allocate", "backfill"], ["enqueue", "allocate"])
    if scene.chance(0.3):
        scene.without("proportion")
        scene.second.insert(1, "capacity")
    _devices(scene)
    limit = (
        {"capability": {"cpu": "50", "deviceclass/gpu": str(scene.number(1, 4))}} if scene.chance(0.3) else {}
    )
    scene.queue("q0", **limit)
    held: set[str] = set()
    for i in range(scene.number(2, 4)):
        shared = scene.chance(0.3)
        if shared:
            _claim(scene, f"j{i}-all", held)
        for j, pod in enumerate(scene.random_job(f"j{i}", cpu=scene.pick(0.5, 1))):
            if scene.chance(0.8):
                name = f"j{i}-all" if shared else f"j{i}-{j}"
                if not shared:
                    _claim(scene, name, held)
                pod["spec"]["resourceClaims"] = [{"name": "d", "resourceClaimName": name}]
                pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "d"}]


def _devices(scene: Scene) -> None:
    scene.some_nodes(1, 3)
    scene.add(
        "resource.k8s.io/v1",
        "DeviceClass",
        "gpu",
        spec={"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
    )
    for node in scene.nodes:
        name = node["metadata"]["name"]
        devices = [
            {
                "name": f"d{i}",
                "attributes": {"model": {"string": scene.pick("a100", "h100")}, "index": {"int": i}},
                "capacity": {"memory": {"value": f"{scene.pick(40, 80)}Gi"}},
            }
            for i in range(scene.number(0, 3))
        ]
        if devices:
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            spec = {"nodeName": name, "driver": DRIVER, "pool": pool, "devices": devices}
            scene.add("resource.k8s.io/v1", "ResourceSlice", f"slice-{name}", spec=spec)


def _claim(scene: Scene, name: str, held: set[str]) -> None:
    wish: Raw = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": scene.pick(1, 1, 1, 2)}
    if scene.chance(0.4):
        text = scene.pick(
            'device.attributes["gpu.example.com"].model == "h100"',
            'device.attributes["gpu.example.com"].index >= 1',
        )
        wish["selectors"] = [{"cel": {"expression": text}}]
    if scene.chance(0.1):
        wish = {"deviceClassName": "gpu", "allocationMode": "All"}
    spec = {"devices": {"requests": [{"name": "r", "exactly": wish}]}}
    status: Raw = {}
    slices = [
        made
        for made in scene.objects
        if made["kind"] == "ResourceSlice" and made["spec"]["nodeName"] not in held
    ]
    if slices and scene.chance(0.15):
        taken = scene.random.choice(slices)["spec"]
        held.add(taken["nodeName"])
        results = [
            {
                "request": "r",
                "driver": DRIVER,
                "pool": taken["nodeName"],
                "device": taken["devices"][0]["name"],
            }
        ]
        field = {"key": "metadata.name", "operator": "In", "values": [taken["nodeName"]]}
        status["allocation"] = {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        }
    scene.add("resource.k8s.io/v1", "ResourceClaim", name, NAMESPACE, spec=spec, status=status)


def volumes(scene: Scene) -> None:
    """Claims of volumes that are bound, wait for their pod, or find none; limits of what a node can attach."""
    scene.actions = scene.pick(["allocate"], ["allocate", "backfill"])
    scene.some_nodes(2, 4)
    for i, node in enumerate(scene.nodes):
        node["metadata"]["labels"]["topology.kubernetes.io/zone"] = f"z{i % 2}"
        if scene.chance(0.7):
            driver: Raw = {"name": STORAGE_DRIVER, "nodeID": node["metadata"]["name"]}
            if scene.chance(0.7):
                driver["allocatable"] = {"count": scene.number(1, 3)}
            scene.add("storage.k8s.io/v1", "CSINode", node["metadata"]["name"], spec={"drivers": [driver]})
    for name, provisioner, mode in (
        ("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
        ("cloud", STORAGE_DRIVER, "WaitForFirstConsumer"),
        ("now", STORAGE_DRIVER, "Immediate"),
    ):
        scene.add("storage.k8s.io/v1", "StorageClass", name, provisioner=provisioner, volumeBindingMode=mode)
    for i in range(scene.number(1, 3)):
        _volume(scene, f"pv{i}", "local", scene.random.choice(scene.nodes)["metadata"]["name"], "")
    scene.some_queues(1, 1)
    for i in range(scene.number(1, 4)):
        for j, pod in enumerate(scene.random_job(f"j{i}", cpu=scene.pick(0.5, 1))):
            if scene.chance(0.7):
                _mounts(scene, pod, f"c{i}{j}")


def _volume(scene: Scene, name: str, storage_class: str, node: str, claim: str) -> None:
    spec: Raw = {
        "capacity": {"storage": f"{scene.number(3, 9)}Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
    }
    spec["persistentVolumeReclaimPolicy"] = "Delete"
    if storage_class == "local":
        spec["local"] = {"path": "/data"}
    else:
        spec["csi"] = {"driver": STORAGE_DRIVER, "volumeHandle": name}
    if node:
        expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    if claim:
        spec["claimRef"] = {
            "kind": "PersistentVolumeClaim",
            "namespace": NAMESPACE,
            "name": claim,
            "uid": f"pe-{claim}",
        }
    scene.add("v1", "PersistentVolume", name, spec=spec, status={"phase": "Bound" if claim else "Available"})


def _mounts(scene: Scene, pod: Raw, name: str) -> None:
    kind = scene.pick("local", "cloud", "now", "bound", "bound")
    storage_class = "cloud" if kind == "bound" else kind
    spec: Raw = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": f"{scene.number(2, 6)}Gi"}},
    }
    notes = {}
    if kind == "bound":
        node = scene.random.choice(scene.nodes)["metadata"]["name"] if scene.chance(0.4) else ""
        _volume(scene, f"pv-{name}", "cloud", node, name)
        spec["volumeName"] = f"pv-{name}"
        notes["pv.kubernetes.io/bind-completed"] = "yes"
    phase = "Bound" if kind == "bound" else "Pending"
    scene.add(
        "v1", "PersistentVolumeClaim", name, NAMESPACE, annotations=notes, spec=spec, status={"phase": phase}
    )
    pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]


def memory_regions(scene: Scene) -> None:
    """Cores that have to be of one memory region."""
    scene.second.append(("numa-aware", {"weight": scene.number(1, 10)}))
    policies = ("single-numa-node", "restricted", "best-effort", "none")
    for size in scene.random.sample((4, 6, 8, 12), scene.number(1, 3)):
        name = scene.node(size, 3 * size)["metadata"]["name"]
        half = size // 2
        detail = {str(i): {"numa": i // half, "socket": i // half, "core": i} for i in range(size)}
        free = sorted(scene.random.sample(range(size), scene.number(max(1, size - 3), size)))
        spec: Raw = {
            "policies": {
                "CPUManagerPolicy": scene.pick("static", "static", "static", "none"),
                "TopologyManagerPolicy": scene.pick(*policies),
            },
            "numares": {"cpu": {"allocatable": ",".join(map(str, free)), "capacity": size}},
            "cpuDetail": detail,
        }
        if scene.chance(0.3):
            spec["resReserved"] = {"cpu": "1"}
        if scene.chance(0.9):
            scene.add("nodeinfo.volcano.sh/v1alpha1", "Numatopology", name, spec=spec)
    scene.some_queues(1, 1)
    for i in range(scene.number(1, 4)):
        for pod in scene.random_job(f"j{i}", count=scene.number(1, 2), cpu=scene.pick(1, 2, 3, 4)):
            resources = pod["spec"]["containers"][0]["resources"]
            if scene.chance(0.9):
                resources["limits"] = dict(resources["requests"])
            if scene.chance(0.7):
                pod["metadata"]["annotations"]["volcano.sh/numa-topology-policy"] = scene.pick(*policies)


def gates(scene: Scene) -> None:
    """Pods that may not be scheduled yet."""
    scene.actions = scene.pick(
        ["enqueue", "allocate"], ["allocate"], ["allocate", "preempt"], ["enqueue", "allocate", "backfill"]
    )
    if scene.chance(0.5):
        scene.without("proportion")
        scene.second.insert(1, "capacity")
    scene.second.insert(0, "overcommit")
    scene.some_nodes(1, 3)
    scene.queue("q0", **({"capability": {"cpu": str(scene.number(2, 8))}} if scene.chance(0.5) else {}))
    scene.some_jobs("old", 0, 2, running=True, priority="low")
    for i in range(scene.number(2, 4)):
        for pod in scene.random_job(f"new{i}", priority="high"):
            if scene.chance(0.4):
                pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]


def oversubscription(scene: Scene) -> None:
    """Nodes that offer more than they have, extended resources, init containers, sidecars and overhead."""
    scene.actions = scene.pick(["allocate"], ["enqueue", "allocate", "backfill"])
    for size in scene.random.sample((2, 3, 4, 6, 8), scene.number(1, 3)):
        notes = {}
        if scene.chance(0.5):
            notes["volcano.sh/oversubscription-cpu"] = str(scene.number(1, 3) * 1000)
            notes["volcano.sh/oversubscription-memory"] = str(scene.number(1, 3) * 1073741824)
        more = {"nvidia.com/gpu": str(scene.number(1, 4))} if scene.chance(0.5) else None
        scene.node(size, 2 * size, more, annotations=notes)
    scene.some_queues(1, 2)
    for i in range(scene.number(2, 5)):
        for pod in scene.random_job(f"j{i}"):
            spec = pod["spec"]
            if scene.chance(0.3):
                _asks(pod, {"nvidia.com/gpu": "1"})
            if scene.chance(0.3):
                always = {"restartPolicy": "Always"} if scene.chance(0.5) else {}
                requests = {"cpu": amount(scene.pick(0.5, 2, 4)), "memory": "1Gi"}
                spec["initContainers"] = [{"name": "i", "resources": {"requests": requests}, **always}]
            if scene.chance(0.15):
                spec["overhead"] = {"cpu": "250m", "memory": "128Mi"}


TOPICS: dict[str, Topic] = {
    "gpu-memory": gpu_memory,
    "gpu-number": gpu_number,
    "virtual-gpus": virtual_gpus,
    "claims": claims,
    "volumes": volumes,
    "numa": memory_regions,
    "gates": gates,
    "oversubscription": oversubscription,
}
