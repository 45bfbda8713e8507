"""What KAI's clusters are about, first half: who gets what. Queues, gangs, priorities, evictions."""

from collections.abc import Callable

from tests.corpus.kai_scene import NAMESPACE, PRIORITIES, Job, Raw, Request, Scene, ago

ALL_ACTIONS = ["allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"]
Topic = Callable[[Scene], None]


def some_nodes(scene: Scene, least: int = 1, most: int = 4, gpus: tuple[int, ...] = (0, 2, 4, 8)) -> None:
    """Nodes of one or two kinds; the first has GPUs."""
    kinds = [scene.random.choice([one for one in gpus if one] or gpus), scene.random.choice(gpus)]
    for index in range(scene.random.randint(least, most)):
        scene.node(
            gpus=kinds[0] if index == 0 else scene.random.choice(kinds), cpu=scene.random.choice([4, 8, 16])
        )


def promise(scene: Scene, most: int) -> tuple[float, float, float]:
    """A queue's quota, limit and weight over quota."""
    random = scene.random
    quota = random.choice([0, 0, 1, 2, 2, most // 2, most, -1])
    limit = random.choice([-1] * 7 + [max(quota, 0) + random.randint(1, 3)])
    return quota, limit, random.choice([0, 1, 1, 1, 2, 2, 3])


def flat_queues(scene: Scene, count: int | None = None, most: int = 4) -> None:
    scene.queue("top", leaf=False, gpu=(-1, -1, 1), cpu=(-1, -1, 1), memory=(-1, -1, 1))
    for index in range(count or scene.random.randint(1, 3)):
        spec: Raw = {"priority": scene.random.choice([50, 100, 200])} if scene.chance(0.25) else {}
        scene.queue(f"q{index}", "top", gpu=promise(scene, most), cpu=(-1, -1, 1), memory=(-1, -1, 1), **spec)


def deep_queues(scene: Scene, most: int = 6) -> None:
    """Two or three levels, with limits in any of the three resources."""
    random = scene.random
    for top in range(random.randint(1, 2)):
        scene.queue(f"d{top}", leaf=False, gpu=promise(scene, most), priority=random.choice([100, 100, 150]))
        for middle in range(random.randint(1, 3)):
            name = f"d{top}-{middle}"
            parent = scene.chance(0.3)
            spec: Raw = {"gpu": promise(scene, most // 2), "priority": random.choice([100, 100, 50])}
            if scene.chance(0.3):
                spec["cpu"] = random.choice([(1000, -1, 1), (4000, 8000, 2), (-1, -1, 1), (0, 2000, 1)])
            if scene.chance(0.2):
                spec["memory"] = random.choice([(4000, -1, 1), (0, 8000, 1), (-1, -1, 0)])
            scene.queue(name, f"d{top}", leaf=not parent, **spec)
            if parent:
                for low in range(random.randint(1, 2)):
                    scene.queue(f"{name}-{low}", name, gpu=promise(scene, most // 2))


def gpu_request(scene: Scene, gpus: tuple[int, ...] = (0, 1, 1, 2)) -> Request:
    random = scene.random
    return Request(
        gpus=random.choice(gpus),
        cpu=random.choice([250, 500, 1000, 2000]),
        gigabytes=random.choice([1, 2, 4]),
    )


def some_job(
    scene: Scene, request: Request | None = None, *, gang: bool = True, elastic: bool = False
) -> Job:
    """A job of up to four pods; all its pods are needed unless it is elastic."""
    random = scene.random
    pods = random.choice([1, 1, 2, 3, 4]) if gang else 1
    minimum = random.randint(1, pods) if elastic else pods
    return Job(
        queue=random.choice(scene.queues),
        pods=pods,
        minimum=minimum,
        request=request or gpu_request(scene),
        priority=random.choice(["", *PRIORITIES]) if scene.chance(0.5) else "train",
    )


def populate(
    scene: Scene,
    running: tuple[int, int] = (0, 3),
    waiting: tuple[int, int] = (1, 4),
    make: Callable[[Scene], Job] = some_job,
) -> None:
    """Jobs that run, as far as there is room, and jobs that wait."""
    for _ in range(scene.random.randint(*running)):
        job = make(scene)
        job.running = job.pods
        job.minutes = scene.random.randint(20, 40)
        scene.job(job)
    for _ in range(scene.random.randint(*waiting)):
        scene.job(make(scene))


def any_actions(scene: Scene) -> None:
    """allocate alone, with one that evicts after it, or the whole sequence; now and then one that evicts alone.

    Where something may be evicted, unimportant jobs often take the GPUs that are left.
    """
    one = scene.random.choice(["consolidation", "reclaim", "preempt"])
    choices = [["allocate"], ["allocate"], ["allocate", one], ["allocate", one], [one], ALL_ACTIONS]
    scene.actions = scene.random.choice(choices)
    if scene.actions == ["allocate"] or scene.chance(0.35):
        return
    holder = scene.random.choice(scene.queues)
    for _ in range(min(8, sum(max(room["gpus"], 0) for room in scene.room.values()))):
        request = Request(gpus=1, cpu=250)
        scene.job(
            Job(holder, request=request, priority="train", running=1, minutes=scene.random.randint(20, 40))
        )


def plain(scene: Scene) -> None:
    some_nodes(scene)
    flat_queues(scene)
    populate(scene, (0, 3), (2, 8), lambda one: some_job(one, gang=one.chance(0.4)))


def gangs(scene: Scene) -> None:
    some_nodes(scene, 2, 6)
    flat_queues(scene)
    populate(scene, (0, 3), (2, 6))
    scene.actions = scene.random.choice([["allocate"], ["allocate"], ["allocate", "reclaim", "preempt"]])


def elastic(scene: Scene) -> None:
    some_nodes(scene, 1, 4, (2, 4))
    flat_queues(scene)
    populate(scene, (0, 3), (1, 4), lambda one: some_job(one, elastic=True))
    for pod in scene.running():
        if scene.chance(0.15):
            del pod["spec"]["nodeName"]
            pod["status"] = {"phase": "Pending"}
    scene.actions = scene.random.choice(
        [["allocate"], ["reclaim"], ["preempt"], ["consolidation"], ALL_ACTIONS]
    )


def hierarchy(scene: Scene) -> None:
    some_nodes(scene, 2, 4, (2, 4))
    deep_queues(scene)
    populate(scene, (0, 3), (2, 6), lambda one: some_job(one, elastic=one.chance(0.3)))
    any_actions(scene)
    if scene.chance(0.15):
        scene.options["fullHierarchyFairness"] = False


def crowded(scene: Scene, make: Callable[[Scene], Job] | None = None) -> None:
    """A cluster that is full: unimportant jobs, most of them of one queue, run until hardly anything is left."""
    holder = scene.queues[0] if scene.chance(0.7) else scene.random.choice(scene.queues)
    for _ in range(scene.random.randint(4, 8)):
        job = (
            make(scene) if make else some_job(scene, gpu_request(scene, (1, 1, 2)), elastic=scene.chance(0.3))
        )
        job.running, job.minutes = job.pods, scene.random.randint(20, 60)
        job.queue = holder if scene.chance(0.75) else job.queue
        job.priority = "train" if scene.chance(0.8) else job.priority
        if any(room["gpus"] > 0 for room in scene.room.values()):
            scene.job(job)


def rivals(scene: Scene, most: int = 4) -> None:
    """Jobs that wait in a cluster that is full, half of them in the queue that is promised most."""
    quotas = {one["metadata"]["name"]: one["spec"] for one in scene.objects if one["kind"] == "Queue"}
    rich = max(scene.queues, key=lambda name: quotas[name]["resources"]["gpu"]["quota"] % 1000)
    for _ in range(scene.random.randint(1, most)):
        job = some_job(scene, gpu_request(scene, (0, 1, 1, 2)), elastic=scene.chance(0.2))
        job.priority = scene.random.choice(["train", "burst", "build", "inference"])
        job.queue = rich if scene.chance(0.5) else job.queue
        scene.job(job)


def reclaim(scene: Scene) -> None:
    some_nodes(scene, 1, 4, (2, 4))
    flat_queues(scene, scene.random.randint(2, 3)) if scene.chance(0.6) else deep_queues(scene)
    crowded(scene)
    rivals(scene)
    scene.actions = ["reclaim"]
    if scene.chance(0.25):
        scene.options["allowConsolidatingReclaim"] = False
    if scene.chance(0.2):
        scene.plugins["proportion"] = {"relcaimerSaturationMultiplier": scene.random.choice(["1.5", "2"])}


def preempt(scene: Scene) -> None:
    some_nodes(scene, 1, 3, (2, 4))
    flat_queues(scene, scene.random.randint(1, 2))
    crowded(scene)
    rivals(scene)
    scene.actions = ["preempt"]


def consolidation(scene: Scene) -> None:
    """Room enough, but in pieces."""
    random = scene.random
    some_nodes(scene, 2, 4, (4,))
    flat_queues(scene, random.randint(1, 2), most=8)
    for _ in range(random.randint(2, 5)):
        job = some_job(scene, gpu_request(scene, (1, 2)), gang=scene.chance(0.3), elastic=scene.chance(0.3))
        job.running, job.minutes = job.pods, random.randint(20, 40)
        scene.job(job)
    for _ in range(random.randint(1, 2)):
        job = some_job(scene, gpu_request(scene, (2, 3, 4)), gang=scene.chance(0.3))
        job.priority = random.choice(["train", "train", "burst", "build"])
        scene.job(job)
    scene.actions = random.choice([["consolidation"], ["allocate", "consolidation"], ALL_ACTIONS])
    if scene.chance(0.3):
        scene.options["maxConsolidationPreemptees"] = random.choice([-1, 0, 1, 2, 3])


def stale(scene: Scene) -> None:
    """Gangs that have lost pods, for longer or shorter than they may."""
    some_nodes(scene, 2, 4, (2, 4))
    flat_queues(scene, 2)
    random = scene.random
    for _ in range(random.randint(2, 4)):
        job = some_job(scene, gpu_request(scene, (0, 1)))
        job.running, job.minimum = job.pods, job.pods + random.choice([0, 1, 1, 2])
        if scene.chance(0.7):
            job.annotations = {
                "kai.scheduler/stale-podgroup-timestamp": ago(seconds=random.choice([45, 90, 300]))
            }
        if scene.chance(0.3):
            job.preemptibility = "non-preemptible"
        _, *pods = scene.job(job)
        if scene.chance(0.2) and "nodeName" in pods[0]["spec"]:
            pods[0]["status"] = {"phase": random.choice(["Succeeded", "Failed"])}
    populate(scene, (0, 1), (0, 2))
    scene.actions = random.choice([["stalegangeviction"], ["stalegangeviction"], ALL_ACTIONS])
    if scene.chance(0.4):
        scene.options["stalenessGracePeriod"] = random.choice(["0s", "30s", "120s", "-1s"])


def everything(scene: Scene) -> None:
    some_nodes(scene, 2, 5, (0, 2, 4))
    deep_queues(scene) if scene.chance(0.5) else flat_queues(scene, scene.random.randint(2, 3))
    if scene.chance(0.5):
        crowded(scene)
        rivals(scene)
    populate(scene, (0, 3), (1, 4), lambda one: some_job(one, elastic=one.chance(0.3)))
    scene.actions = ALL_ACTIONS


def preemptibility(scene: Scene) -> None:
    """Non-preemptible jobs stay within the quota; preemptible ones may go over it."""

    def either(one: Scene) -> Job:
        job = some_job(one, gang=one.chance(0.5))
        job.preemptibility = one.random.choice(["preemptible", "non-preemptible", "non-preemptible", ""])
        return job

    some_nodes(scene, 1, 3, (2, 4))
    flat_queues(scene, scene.random.randint(1, 3)) if scene.chance(0.7) else deep_queues(scene)
    populate(scene, (1, 4), (1, 4), either)
    scene.actions = scene.random.choice(
        [["allocate"], ["reclaim"], ["preempt"], ["consolidation"], ALL_ACTIONS]
    )


def minimum_runtime(scene: Scene) -> None:
    """Jobs that may not be evicted before they have run for a while."""
    random = scene.random
    durations = ["30s", "5m", "1h"]
    some_nodes(scene, 1, 3, (2, 4))
    flat_queues(scene, 2) if scene.chance(0.5) else deep_queues(scene)
    for one in scene.objects:
        if one["kind"] == "Queue" and scene.chance(0.5):
            one["spec"][random.choice(["preemptMinRuntime", "reclaimMinRuntime"])] = random.choice(durations)
    arguments = {}
    if scene.chance(0.4):
        arguments["defaultReclaimMinRuntime"] = random.choice(durations)
    if scene.chance(0.4):
        arguments["defaultPreemptMinRuntime"] = random.choice(durations)
    if scene.chance(0.4):
        arguments["reclaimResolveMethod"] = random.choice(["lca", "queue"])
    scene.plugins["minruntime"] = arguments

    def begun(one: Scene) -> Job:
        job = some_job(one, gpu_request(one, (1, 1, 2)), elastic=one.chance(0.5))
        if one.chance(0.85):
            since = ago(seconds=random.choice([10, 60, 600, 7200]))
            job.annotations = {"kai.scheduler/last-start-timestamp": since}
        return job

    crowded(scene, begun)
    rivals(scene)
    scene.actions = random.choice([["reclaim"], ["preempt"], ["reclaim", "preempt"], ALL_ACTIONS])


def past_usage(scene: Scene) -> None:
    random = scene.random
    some_nodes(scene, 1, 3, (2, 4))
    deep_queues(scene) if scene.chance(0.5) else flat_queues(scene, 3)
    names = [one["metadata"]["name"] for one in scene.objects if one["kind"] == "Queue"]
    parts = [0.0, 0.1, 0.25, 0.5, 0.9]
    scene.options["queueUsage"] = {
        name: {one: random.choice(parts) for one in ("gpu", "cpu", "memory")}
        for name in names
        if scene.chance(0.8)
    }
    scene.plugins["proportion"] = {"kValue": random.choice(["0", "0.5", "1", "3"])}
    populate(scene, (1, 4), (2, 4))
    any_actions(scene)


def switches(scene: Scene) -> None:
    """Depth of queues, signatures, and how many jobs consolidation may move."""
    random = scene.random
    some_nodes(scene, 1, 3, (2, 4))
    flat_queues(scene, random.randint(1, 2))
    crowded(scene)
    rivals(scene, 5)
    scene.actions = random.choice([["allocate"], ["reclaim"], ["preempt"], ["consolidation"], ALL_ACTIONS])
    if scene.chance(0.5):
        scene.conf["queueDepthPerAction"] = {
            one: random.randint(1, 3) for one in scene.actions[:-1] or scene.actions
        }
    if scene.chance(0.6):
        scene.options["useSchedulingSignatures"] = False
    if scene.chance(0.3):
        scene.options["maxConsolidationPreemptees"] = random.choice([-1, 0, 1, 4])
    if scene.chance(0.3):
        scene.options["allowConsolidatingReclaim"] = False


def _tree(scene: Scene) -> tuple[list[Raw], list[str]]:
    """Sub-groups, flat or nested, and the names of those that have pods."""
    random = scene.random
    if scene.chance(0.5):
        leaves = [f"s{index}" for index in range(random.randint(2, 3))]
        return [{"name": one, "minMember": random.randint(1, 2)} for one in leaves], leaves
    groups: list[Raw] = []
    leaves = []
    for upper in ("left", "right")[: random.randint(1, 2)]:
        groups.append({"name": upper, "minMember": 1})
        for index in range(random.randint(1, 2)):
            leaves.append(f"{upper}-{index}")
            groups.append({"name": leaves[-1], "parent": upper, "minMember": random.randint(1, 2)})
    return groups, leaves


def grouped(scene: Scene, request: Request | None = None) -> Job:
    """A job of sub-groups, with as many pods as they need or a few more."""
    job = some_job(scene, request)
    job.sub_groups, job.leaves = _tree(scene)
    lowest = [one for one in job.sub_groups if one["name"] in job.leaves]
    most = max(one["minMember"] for one in lowest)
    job.minimum = sum(one["minMember"] for one in lowest)
    job.pods = len(job.leaves) * (most + scene.random.choice([0, 0, 1]))
    return job


def sub_groups(scene: Scene) -> None:
    some_nodes(scene, 2, 4, (2, 4))
    flat_queues(scene)
    populate(
        scene,
        (0, 2),
        (1, 3),
        lambda one: grouped(one, gpu_request(one, (0, 1))) if one.chance(0.7) else some_job(one),
    )
    for pod in scene.running():
        if scene.chance(0.15):
            del pod["spec"]["nodeName"]
            pod["status"] = {"phase": "Pending"}
    any_actions(scene)


def roles(scene: Scene) -> None:
    """Which pods of a job come first: masters, heads, and those with a priority of their own."""
    random = scene.random

    def dress(pod: Raw, index: int) -> None:
        labels = pod["metadata"]["labels"]
        if scene.chance(0.3):
            labels["training.kubeflow.org/job-role"] = random.choice(["master", "launcher", "worker"])
        if scene.chance(0.2):
            labels["ray.io/node-type"] = random.choice(["head", "worker"])
        if scene.chance(0.4):
            labels["kai.scheduler/task-priority"] = random.choice(["1", "5", "-2", "high"])
        pod["metadata"]["creationTimestamp"] = ago(minutes=random.randint(1, 3))
        container = pod["spec"]["containers"][0]["resources"]["requests"]
        container["cpu"] = random.choice(["250m", "1", "2"])

    def make(one: Scene) -> Job:
        job = some_job(one, elastic=True)
        job.pods, job.dress = job.pods + 1, dress
        return job

    some_nodes(scene, 1, 3, (2, 4))
    flat_queues(scene, random.randint(1, 2))
    populate(scene, (0, 2), (1, 3), make)
    for name in ("kubeflow", "ray", "taskorder", "elastic", "subgrouporder"):
        if scene.chance(0.15):
            del scene.plugins[name]
    any_actions(scene)


def budgets(scene: Scene) -> None:
    """Disruption budgets, which KAI does not read."""
    crowd = scene.random.choice([reclaim, preempt])
    crowd(scene)
    for pod in scene.running()[:3]:
        scene.add(
            "policy/v1",
            "PodDisruptionBudget",
            f"keep-{pod['metadata']['name']}",
            namespace=NAMESPACE,
            spec={"minAvailable": 1, "selector": {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}}},
            status={"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
        )


SHARING: dict[str, Topic] = {
    "plain": plain,
    "gangs": gangs,
    "elastic": elastic,
    "hierarchy": hierarchy,
    "reclaim": reclaim,
    "preempt": preempt,
    "consolidation": consolidation,
    "stale": stale,
    "everything": everything,
    "preemptibility": preemptibility,
    "minimum runtime": minimum_runtime,
    "past usage": past_usage,
    "switches": switches,
    "sub-groups": sub_groups,
    "roles": roles,
    "disruption budgets": budgets,
}
