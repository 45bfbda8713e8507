"""Topics about who has to give way: preemption, reclaim, whole gangs, and what protects a victim."""

from tests.corpus.volcano_scene import NAMESPACE, Entry, Raw, Scene
from tests.corpus.volcano_sharing import Topic, entitlement, queue_tree, ranks, with_capacity


def full(scene: Scene) -> None:
    """Jobs that run, mostly on all there is, and jobs that wait: in other queues, if victims are looked for there."""
    mixed = scene.chance(0.2)
    home = [] if mixed else scene.queues[:1]
    apart = any("reclaim" in action for action in scene.actions)
    takers = scene.queues if mixed else (scene.queues[1:] if apart else home) or scene.queues
    scene.some_jobs(
        "old", 1, 2, running=True, priority=scene.pick("low", "mid", "high"), count=scene.number(1, 2)
    )
    if apart and scene.chance(0.6):
        scene.one_on_each(home or scene.queues, ranks(scene))
    elif scene.chance(0.9):
        scene.fill(home or scene.queues, ranks(scene))
    for i in range(scene.number(1, 3)):
        queue = scene.random.choice(takers)
        scene.random_job(
            f"new{i}",
            queue=queue,
            priority=scene.pick("mid", "high", "high"),
            count=scene.pick(1, 1, 2, 3),
            cpu=scene.pick(0.5, 1, 1.5, 2),
            memory=1,
        )


def preempt(scene: Scene) -> None:
    """Jobs that matter more take the room of others in their queue."""
    scene.actions = scene.pick(["preempt"], ["allocate", "preempt"], ["enqueue", "allocate", "preempt"])
    if scene.chance(0.3):
        scene.second.insert(0, "drf")
    if scene.chance(0.3):
        scene.first[1] = ("gang", {"enablePreemptable": False, "enableJobStarving": scene.chance(0.5)})
    scene.some_nodes(1, 4, (2, 3, 4, 5, 6, 8))
    scene.some_queues(1, 2)
    full(scene)
    if scene.chance(0.3):
        scene.arguments["preempt"] = {"predicateErrorCacheEnable": scene.chance(0.5)}


def preempt_by_domain(scene: Scene) -> None:
    """Topology-aware preemption, also with the switches that its simulation looks at."""
    scene.actions = scene.pick(["preempt"], ["allocate", "preempt"])
    scene.arguments["preempt"] = {
        "enableTopologyAwarePreemption": True,
        **({"minCandidateNodesPercentage": 100} if scene.chance(0.8) else {}),
    }
    if scene.chance(0.4):
        with_capacity(scene)
    if scene.chance(0.3):
        name, settings = scene.pick(
            ("predicates", {"enablePreemptable": False, "enabledAllocatable": False}),
            ("proportion", {"enablePreemptable": False}),
            ("predicates", {"enablePreemptable": False}),
        )
        scene.second = [(name, settings) if entry == name else entry for entry in scene.second]
    scene.some_nodes(1, 4, (2, 3, 4, 5, 6, 8))
    scene.some_queues(1, 2)
    full(scene)
    for i, made in enumerate(scene.objects):
        if made["kind"] == "Pod" and made["spec"].get("nodeName") and scene.chance(0.9):
            made["status"]["startTime"] = scene.ago(500 - i)


def reclaim(scene: Scene) -> None:
    """Queues take back what others have beyond their share by weight."""
    scene.actions = scene.pick(["reclaim"], ["allocate", "reclaim"], ["enqueue", "allocate", "reclaim"])
    scene.some_nodes(1, 4, (2, 3, 4, 5, 6, 8))
    for i in range(scene.number(2, 3)):
        scene.queue(f"q{i}", weight=scene.number(1, 4), reclaimable=scene.chance(0.8))
    if scene.chance(0.4):
        scene.first = ["priority", "conformance"]
    if scene.chance(0.3):
        scene.first = [("gang", {"enableJobStarving": scene.chance(0.5)}), "conformance", "proportion"]
        scene.without("proportion")
        scene.first.append("proportion")
    full(scene)


def reclaim_capacity(scene: Scene) -> None:
    """The same with what queues deserve, flat and in a tree."""
    tree = scene.chance(0.5)
    settings: Raw = {"enableHierarchy": True} if tree else {}
    if tree and scene.chance(0.5):
        settings["ancestorReclaimLevel"] = scene.number(1, 2)
    scene.actions = scene.pick(["reclaim"], ["allocate", "reclaim"], ["enqueue", "allocate", "reclaim"])
    with_capacity(scene, **settings)
    if scene.chance(0.5):
        capacity: Entry = next(one for one in scene.second if one == "capacity" or one[0] == "capacity")
        scene.without("capacity")
        scene.first.append(capacity)
    scene.some_nodes(1, 3, (4, 5, 6, 8, 10))
    if tree:
        queue_tree(scene)
    else:
        for i in range(scene.number(2, 3)):
            scene.queue(f"q{i}", reclaimable=scene.chance(0.85), **entitlement(scene))
    full(scene)


def _gang_eviction(scene: Scene, action: str) -> None:
    scene.actions = scene.pick([action], ["allocate", action], ["enqueue", "allocate", action])
    if scene.chance(0.4):
        scene.arguments[action] = {"allowWholeBundle": scene.chance(0.5), "maxDomains": scene.number(1, 8)}
    scene.second.append("network-topology-aware")
    scene.some_nodes(1, 4, (2, 3, 4, 5, 6, 8))


def gangpreempt(scene: Scene) -> None:
    """Whole gangs give way to gangs of their queue."""
    _gang_eviction(scene, "gangpreempt")
    scene.some_queues(1, 2)
    full(scene)


def gangreclaim(scene: Scene) -> None:
    """Whole gangs give way to gangs of other queues."""
    _gang_eviction(scene, "gangreclaim")
    if scene.chance(0.6):
        with_capacity(scene)
    for i in range(scene.number(2, 3)):
        scene.queue(f"q{i}", weight=scene.number(1, 4), **entitlement(scene))
    full(scene)


def never(scene: Scene) -> None:
    """Pods that do not take from others, and pods and groups that may not be taken from."""
    scene.actions = scene.pick(
        ["preempt"], ["reclaim"], ["gangpreempt"], ["allocate", "preempt", "reclaim"], ["gangreclaim"]
    )
    scene.some_nodes(1, 3, (2, 3, 4, 5, 6))
    scene.some_queues(2, 3)
    full(scene)
    for made in list(scene.objects):
        if made["kind"] == "Pod" and scene.chance(0.3):
            if made["spec"].get("nodeName"):
                made["metadata"]["annotations"]["volcano.sh/preemptable"] = scene.pick(
                    "false", "true", "false"
                )
            else:
                made["spec"]["preemptionPolicy"] = "Never"
        if made["kind"] == "PodGroup" and scene.chance(0.3):
            made["metadata"].setdefault("annotations", {})["volcano.sh/preemptable"] = scene.pick(
                "true", "false"
            )


def leaving(scene: Scene) -> None:
    """Pods that are terminating, nominated, bound but not running yet, or finished."""
    scene.actions = scene.pick(
        ["allocate"], ["allocate", "preempt"], ["allocate", "backfill", "reclaim"], ["preempt"]
    )
    scene.some_nodes(1, 4, (2, 3, 4, 5, 6, 8))
    scene.some_queues(2, 3)
    full(scene)
    for made in scene.objects:
        if made["kind"] != "Pod" or not scene.chance(0.4):
            continue
        if made["spec"].get("nodeName"):
            what = scene.pick("going", "going", "bound", "done", "failed")
            if what == "going":
                made["metadata"]["deletionTimestamp"] = scene.ago(1)
            made["status"]["phase"] = {"bound": "Pending", "done": "Succeeded", "failed": "Failed"}.get(
                what, "Running"
            )
        else:
            made["status"]["nominatedNodeName"] = scene.random.choice(scene.nodes)["metadata"]["name"]


def budgets(scene: Scene) -> None:
    """PodDisruptionBudgets between victims and those who want their room."""
    scene.actions = scene.pick(
        ["preempt"], ["reclaim"], ["allocate", "preempt"], ["allocate", "reclaim"], ["shuffle"]
    )
    scene.first.append("pdb")
    scene.some_nodes(1, 3, (2, 3, 4, 5, 6))
    scene.some_queues(2, 3)
    full(scene)
    groups = [made["metadata"]["name"] for made in scene.objects if made["kind"] == "PodGroup"]
    for i, name in enumerate(scene.random.sample(groups, min(len(groups), scene.number(1, 3)))):
        chosen = {"matchLabels": {"app": name}}
        scene.add(
            "policy/v1",
            "PodDisruptionBudget",
            f"pdb{i}",
            NAMESPACE,
            spec={"selector": chosen, "minAvailable": 1},
            status={
                "disruptionsAllowed": scene.number(0, 2),
                "currentHealthy": 2,
                "desiredHealthy": 1,
                "expectedPods": 2,
            },
        )


def cooldown(scene: Scene) -> None:
    """Pods that were placed a moment ago and may not be moved yet."""
    scene.actions = scene.pick(["preempt"], ["reclaim"], ["allocate", "preempt"])
    scene.first.append("cdp")
    scene.some_nodes(1, 3, (2, 3, 4, 5, 6))
    scene.some_queues(2, 3)
    full(scene)
    for made in scene.objects:
        if made["kind"] == "Pod" and made["spec"].get("nodeName"):
            moment = scene.ago(scene.number(1, 4) * 60)
            made["status"]["conditions"] = [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": moment}
            ]
            if scene.chance(0.6):
                where = scene.pick("labels", "annotations")
                made["metadata"][where]["volcano.sh/cooldown-time"] = scene.pick("90m", "150m", "10h", "soon")


TOPICS: dict[str, Topic] = {
    "preempt": preempt,
    "topology-aware-preempt": preempt_by_domain,
    "reclaim": reclaim,
    "reclaim-capacity": reclaim_capacity,
    "gangpreempt": gangpreempt,
    "gangreclaim": gangreclaim,
    "never": never,
    "leaving": leaving,
    "budgets": budgets,
    "cooldown": cooldown,
}
