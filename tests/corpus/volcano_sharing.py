"""Topics about who comes first: admission, order, shares and queues."""

from collections.abc import Callable

from tests.corpus.volcano_scene import NAMESPACE, Raw, Scene

Topic = Callable[[Scene], None]
EVERYTHING = ["enqueue", "allocate", "backfill", "reclaim", "preempt"]


def ranks(scene: Scene) -> list[str]:
    """Four classes of priority: mostly all different, so that it is clear who gives way first."""
    names = [f"p{rank}" for rank in range(10)]
    return (
        scene.random.sample(names, 4) if scene.chance(0.8) else [scene.pick("low", "mid") for _ in range(4)]
    )


def crowded(
    scene: Scene, running: tuple[int, int] = (2, 4), waiting: tuple[int, int] = (1, 3), **given: object
) -> None:
    """Nodes, classes, jobs that run and jobs that wait, of random classes."""
    for prefix, (low, high), runs in (("old", running, True), ("new", waiting, False)):
        for i in range(scene.number(low, high)):
            priority = scene.pick("low", "mid") if runs else scene.pick("mid", "high", "high")
            scene.random_job(f"{prefix}{i}", running=runs, **{"priority": priority, **given})


def enqueue(scene: Scene) -> None:
    """Votes on admission: what nodes have beyond what is used, and what queues may have."""
    scene.actions = ["enqueue"] + (["allocate"] if scene.chance(0.5) else [])
    factor = scene.pick(None, 1.0, 1.1, 1.5, 2, 0.5)
    scene.second.insert(0, "overcommit" if factor is None else ("overcommit", {"overcommit-factor": factor}))
    scene.some_nodes(1, 3)
    for i in range(scene.number(1, 3)):
        limits = {"capability": {"cpu": str(scene.number(2, 12))}} if scene.chance(0.5) else {}
        scene.queue(f"q{i}", weight=scene.number(1, 3), **limits)
    scene.some_jobs("old", 0, 2, running=True)
    if scene.chance(0.5):
        scene.random_job("in", phase="Inqueue")
    scene.some_jobs("new", 2, 5)


def allocate(scene: Scene) -> None:
    """Gangs and single pods on free nodes, with everything that scores at random weights."""
    scene.some_nodes(1, 5)
    scene.some_queues()
    scene.second[-1] = ("binpack", {"binpack.weight": scene.number(1, 5), "binpack.cpu": scene.number(0, 3)})
    for i in range(scene.number(2, 6)):
        scene.random_job(f"j{i}", priority=scene.pick("", "low", "mid", "high"), running=scene.chance(0.2))


def elastic(scene: Scene) -> None:
    """Gangs that run in part, below their least or above it, and grow."""
    scene.actions = scene.pick(["allocate"], ["enqueue", "allocate", "backfill"], ["allocate", "preempt"])
    scene.some_nodes(2, 4)
    scene.some_queues(1, 2)
    for i in range(scene.number(2, 5)):
        count = scene.number(2, 5)
        runs = scene.number(0, count - 1)
        scene.random_job(
            f"j{i}",
            count=count,
            least=scene.number(1, count),
            priority=scene.pick("low", "high"),
            running=runs,
        )


def roles(scene: Scene) -> None:
    """Jobs whose roles have a least of their own, as large as the job's, larger or smaller."""
    scene.actions = scene.pick(
        ["allocate"],
        ["enqueue", "allocate", "backfill"],
        ["allocate", "gangpreempt"],
        ["allocate", "preempt"],
    )
    scene.some_nodes(2, 4)
    scene.some_queues(1, 2)
    for i in range(scene.number(1, 4)):
        names = scene.pick(("m", "w"), ("m", "w", "e"), ("w",))
        count = scene.number(2, 6)
        leasts = {name: scene.number(0, 3) for name in names if scene.chance(0.8)}
        running = count if scene.chance(0.3) else scene.number(0, 1)
        scene.random_job(
            f"j{i}",
            count=count,
            roles=names,
            least=scene.number(1, count),
            priority=scene.pick("low", "high"),
            running=running,
            cpu=scene.pick(0.5, 1, 1.5),
            **({"minTaskMember": leasts} if leasts else {}),
        )


def proportion(scene: Scene) -> None:
    """Queues that share by weight, with ceilings, guarantees and priorities."""
    scene.actions = scene.pick(["allocate"], ["enqueue", "allocate", "backfill"])
    scene.some_nodes(1, 3)
    for i in range(scene.number(2, 4)):
        spec: Raw = {"weight": scene.number(1, 6)}
        if scene.chance(0.4):
            spec["capability"] = {"cpu": str(scene.number(1, 8)), "memory": f"{scene.number(2, 16)}Gi"}
        if scene.chance(0.3):
            spec["guarantee"] = {"resource": {"cpu": str(scene.number(1, 3))}}
        if scene.chance(0.2):
            spec["priority"] = scene.number(0, 3)
        scene.queue(f"q{i}", **spec)
    scene.some_jobs("old", 0, 2, running=True)
    scene.some_jobs("new", 2, 5)


def entitlement(scene: Scene) -> Raw:
    """What a queue deserves, may have at most and is guaranteed; the first queue of a scene seldom deserves much."""
    spec: Raw = {}
    if scene.chance(0.8):
        cores = scene.number(2, 7) if scene.queues else scene.number(1, 2)
        spec["deserved"] = {"cpu": str(cores), "memory": f"{2 * cores + scene.number(0, 2)}Gi"}
    if scene.chance(0.4):
        spec["capability"] = {"cpu": str(scene.number(2, 10)), "memory": f"{scene.number(4, 20)}Gi"}
    if scene.chance(0.25):
        spec["guarantee"] = {"resource": {"cpu": str(scene.number(1, 2))}}
    if scene.chance(0.2):
        spec["priority"] = scene.number(0, 3)
    return spec


def with_capacity(scene: Scene, **settings: object) -> None:
    scene.without("proportion")
    scene.second.insert(1, ("capacity", settings) if settings else "capacity")


def capacity_flat(scene: Scene) -> None:
    """Queues with what they deserve, at most may have and are guaranteed."""
    with_capacity(scene)
    scene.actions = scene.pick(["allocate"], ["enqueue", "allocate", "backfill"], ["allocate", "reclaim"])
    scene.some_nodes(1, 3)
    for i in range(scene.number(2, 4)):
        scene.queue(f"q{i}", **entitlement(scene))
    scene.some_jobs("old", 0, 3, running=True)
    scene.some_jobs("new", 2, 4)


def queue_tree(scene: Scene) -> None:
    """A root, two or three branches, and leaves below them; only leaves have jobs."""
    scene.queue("root", **({"capability": {"cpu": str(scene.number(8, 20))}} if scene.chance(0.2) else {}))
    for i in range(scene.number(2, 3)):
        scene.queue(f"b{i}", parent="root", **entitlement(scene))
        for j in range(scene.number(1, 2)):
            scene.queue(f"b{i}l{j}", parent=f"b{i}", **entitlement(scene))
    scene.queues = [name for name in scene.queues if "l" in name]


def capacity_tree(scene: Scene) -> None:
    """The same in a tree."""
    with_capacity(scene, enableHierarchy=True)
    scene.actions = scene.pick(["allocate"], ["enqueue", "allocate"], ["enqueue", "allocate", "backfill"])
    scene.some_nodes(1, 3)
    queue_tree(scene)
    scene.some_jobs("old", 0, 3, running=True)
    scene.some_jobs("new", 2, 4)


def drf(scene: Scene) -> None:
    """Jobs take turns by their dominant share."""
    scene.actions = scene.pick(["allocate"], ["allocate", "backfill"], ["allocate", "preempt"])
    scene.second.insert(0, "drf")
    if scene.chance(0.5):
        scene.first = ["gang"]
    scene.some_nodes(1, 3)
    scene.some_queues(1, 2)
    crowded(scene, (1, 3), (2, 4))


def hierarchical_drf(scene: Scene) -> None:
    """Queues take turns by their path's share; reclaim follows the same order."""
    scene.first = ["priority", "gang", "conformance"] if scene.chance(0.5) else []
    scene.second = [("drf", {"enableHierarchy": True}), "predicates", "nodeorder", "binpack"]
    scene.actions = scene.pick(["allocate"], ["allocate", "reclaim"], ["reclaim"], ["reclaim"])
    scene.some_nodes(1, 3)
    for i in range(scene.number(2, 4)):
        branch = scene.pick("a", "b")
        notes = {
            "volcano.sh/hierarchy": f"root/{branch}/q{i}",
            "volcano.sh/hierarchy-weights": f"1/{2 if branch == 'a' else 3}/{scene.number(1, 4)}",
        }
        scene.queue(f"q{i}", notes)
    scene.some_jobs("old", 0, 2, running=True)
    if "reclaim" in scene.actions:
        scene.one_on_each(scene.queues[: scene.number(1, 2)], ranks(scene))
    scene.some_jobs("new", 1, 4)


def backfill(scene: Scene) -> None:
    """Pods that ask for nothing, alone and beside others of their gang."""
    scene.actions = scene.pick(["backfill"], ["allocate", "backfill"], ["enqueue", "allocate", "backfill"])
    scene.some_nodes(1, 3)
    scene.some_queues(1, 2)
    for i in range(scene.number(2, 4)):
        none = scene.chance(0.6)
        for pod in scene.random_job(f"j{i}", **({"cpu": 0, "memory": 0} if none else {}), asks=False):
            if scene.chance(0.2):
                pod["spec"]["containers"][0]["resources"] = {}


def closed(scene: Scene) -> None:
    """Queues that are closed, closing, without a state, or not there."""
    scene.actions = scene.pick(EVERYTHING, ["allocate"], ["enqueue", "allocate"], ["preempt"], ["reclaim"])
    if scene.chance(0.5):
        with_capacity(scene)
    scene.some_nodes(1, 3, (2, 3, 4, 5, 6, 8))
    for i in range(scene.number(2, 3)):
        scene.queue(
            f"q{i}",
            weight=scene.number(1, 3),
            state=scene.pick("Open", "Closed", "Closing", ""),
            **entitlement(scene),
        )
    if scene.chance(0.3):
        scene.queues.append("gone")
    crowded(scene, (1, 3), (2, 4))


def nothing(scene: Scene) -> None:
    """Amounts of zero: on nodes, in queues, in what jobs ask for."""
    scene.actions = scene.pick(
        ["enqueue", "allocate", "backfill"], ["allocate", "preempt"], ["allocate", "reclaim"]
    )
    tree = scene.chance(0.4)
    if tree or scene.chance(0.3):
        with_capacity(scene, **({"enableHierarchy": True} if tree else {}))
    for size in scene.random.sample((0, 2, 3, 4, 6), scene.number(2, 3)):
        scene.node(size, size + 1, {"example.com/fpga": str(scene.pick(0, 0, 2))})
    if tree:
        scene.queue("root")
    for i in range(scene.number(1, 3)):
        spec: Raw = (
            {"capability": {"cpu": scene.pick("0", "4"), "example.com/fpga": "0"}}
            if scene.chance(0.4)
            else {}
        )
        spec.update({"deserved": {"cpu": "0"}} if scene.chance(0.3) else {})
        spec.update({"parent": "root"} if tree else {})
        scene.queue(f"q{i}", **spec)
    scene.queues = [name for name in scene.queues if name != "root"]
    for i in range(scene.number(2, 4)):
        for pod in scene.random_job(
            f"j{i}", cpu=scene.pick(0, 1, 2), memory=scene.pick(0, 1), running=scene.chance(0.3)
        ):
            if scene.chance(0.4) and "nodeName" not in pod["spec"]:
                asked = pod["spec"]["containers"][0]["resources"].setdefault("requests", {})
                asked.update({"example.com/fpga": scene.pick("0", "1")})


def deadlines(scene: Scene) -> None:
    """Jobs that have waited for as long as they were told to wait."""
    scene.actions = scene.pick(["enqueue", "allocate"], ["enqueue"], ["allocate"])
    scene.first.insert(scene.number(0, 1), ("sla", {"sla-waiting-time": scene.pick("1h", "5h", "20h")}))
    scene.second.insert(0, "overcommit")
    scene.some_nodes(1, 3, (2, 3, 4, 5, 6))
    scene.some_queues(1, 2)
    scene.some_jobs("old", 1, 2, running=True)
    for i in range(scene.number(2, 5)):
        notes = {"sla-waiting-time": scene.pick("2h", "9h", "30h")} if scene.chance(0.4) else None
        scene.random_job(f"new{i}", annotations=notes)


def quotas(scene: Scene) -> None:
    """Quotas of namespaces."""
    scene.actions = ["enqueue", "allocate"] if scene.chance(0.7) else ["enqueue"]
    scene.second.append("resourcequota")
    scene.some_nodes(1, 3)
    scene.some_queues(1, 2)
    for i in range(scene.number(1, 2)):
        hard = {
            "cpu": str(scene.number(2, 8)),
            "requests.memory": f"{scene.number(2, 12)}Gi",
            "pods": str(scene.number(2, 9)),
        }
        kept = {key: hard[key] for key in scene.random.sample(list(hard), scene.number(1, 3))}
        used = {key: scene.pick("0", "1") for key in kept}
        scene.add(
            "v1",
            "ResourceQuota",
            f"rq{i}",
            NAMESPACE,
            spec={"hard": kept},
            status={"hard": kept, "used": used},
        )
    scene.some_jobs("new", 2, 5)


def everything(scene: Scene) -> None:
    """All usual actions with the usual plugins on a cluster with something of everything."""
    scene.actions = list(EVERYTHING)
    scene.second = ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"]
    scene.some_nodes(2, 6)
    scene.some_queues(2, 3)
    crowded(scene, (2, 4), (2, 4))
    if scene.chance(0.6):
        scene.fill(scene.queues[:1], ranks(scene))


def defaults(scene: Scene) -> None:
    """The plugins and actions that Volcano comes with, and those of its chart."""
    scene.actions = ["enqueue", "allocate", "backfill"]
    scene.second = ["overcommit", "drf", "predicates", "proportion", "nodeorder"]
    if scene.chance(0.6):
        scene.first[1] = ("gang", {"enablePreemptable": False})
        scene.second = ["overcommit", ("drf", {"enablePreemptable": False}), *scene.second[2:], "binpack"]
    scene.some_nodes(1, 3, (2, 4, 8, 16))
    scene.some_queues(1, 3)
    crowded(scene, (0, 2), (2, 5))


TOPICS: dict[str, Topic] = {
    "enqueue": enqueue,
    "allocate": allocate,
    "elastic": elastic,
    "roles": roles,
    "proportion": proportion,
    "capacity-flat": capacity_flat,
    "capacity-tree": capacity_tree,
    "drf": drf,
    "hierarchical-drf": hierarchical_drf,
    "backfill": backfill,
    "closed": closed,
    "nothing": nothing,
    "deadlines": deadlines,
    "quotas": quotas,
    "everything": everything,
    "defaults": defaults,
}
