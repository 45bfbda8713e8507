"""Topics about where a pod may go: filters, scores and network topology."""

from collections.abc import Callable
from typing import Any

from tests.corpus.volcano_scene import Raw, Scene
from tests.corpus.volcano_sharing import ranks

Topic = Callable[[Scene], None]
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
TOPOLOGY = "topology.volcano.sh/v1alpha1"


def _zoned_nodes(scene: Scene, low: int = 2, high: int = 5) -> None:
    scene.some_nodes(low, high)
    for i, node in enumerate(scene.nodes):
        node["metadata"]["labels"][ZONE] = f"z{i % 2}"


def _hyper_node(scene: Scene, name: str, tier: int, members: list[str], kind: str, by: str = "exact") -> None:
    if by == "exact":
        chosen = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
    elif by == "regex":
        chosen = [{"type": kind, "selector": {"regexMatch": {"pattern": f"^({'|'.join(members)})$"}}}]
    else:
        for node in scene.nodes:
            if node["metadata"]["name"] in members:
                node["metadata"]["labels"]["leaf"] = name
        chosen = [{"type": kind, "selector": {"labelMatch": {"matchLabels": {"leaf": name}}}}]
    scene.add(TOPOLOGY, "HyperNode", name, spec={"tier": tier, "tierName": f"t{tier}", "members": chosen})


def _network(scene: Scene) -> int:
    """Nodes below leaves below spines; gives the highest tier."""
    names = [node["metadata"]["name"] for node in scene.nodes]
    cut = scene.number(1, max(1, len(names) - 1))
    by = scene.pick("exact", "exact", "regex", "label")
    _hyper_node(scene, "s0", 1, names[:cut], "Node", by)
    if names[cut:]:
        _hyper_node(scene, "s1", 1, names[cut:], "Node", by)
    if scene.chance(0.7):
        _hyper_node(scene, "s2", 2, ["s0", "s1"] if names[cut:] else ["s0"], "HyperNode")
        return 2
    return 1


def _wish(scene: Scene, mode: str, top: int) -> Raw:
    if mode == "soft" and scene.chance(0.5):
        return {"mode": "soft"}
    if scene.chance(0.15):
        return {"mode": mode, "highestTierName": f"t{scene.number(1, top)}"}
    return {"mode": mode, "highestTierAllowed": scene.number(1, top)}


def _topology(scene: Scene, mode: str) -> None:
    scene.actions = scene.pick(["allocate"], ["enqueue", "allocate", "backfill"], ["allocate"])
    settings: dict[str, Any] = {"weight": scene.number(1, 10)}
    if scene.chance(0.3):
        settings.update(
            {"hypernode.binpack.cpu": scene.number(1, 5), "hypernode.binpack.normal-pod.fading": 0.5}
        )
    scene.second.append(("network-topology-aware", settings))
    scene.some_nodes(2, 5)
    scene.some_queues(1, 2)
    top = _network(scene)
    for i in range(scene.number(1, 4)):
        count = scene.number(1, 4)
        wish = {"networkTopology": _wish(scene, mode, top)} if scene.chance(0.8) else {}
        running = scene.number(0, count) if scene.chance(0.3) else 0
        scene.random_job(f"j{i}", count=count, running=running, cpu=scene.pick(1, 1.5, 2), **wish)


def topology_hard(scene: Scene) -> None:
    """Gangs that must stay within one part of the network."""
    _topology(scene, "hard")


def topology_soft(scene: Scene) -> None:
    """Gangs that would rather stay together, and pods that do not care."""
    _topology(scene, "soft")


def topology_evicting(scene: Scene) -> None:
    """Gangs that must stay together and take the room of others."""
    scene.actions = scene.pick(
        ["gangpreempt"], ["gangreclaim"], ["allocate", "gangpreempt"], ["allocate", "gangreclaim"]
    )
    scene.second.append("network-topology-aware")
    scene.some_nodes(2, 4, (2, 3, 4, 5, 6))
    scene.some_queues(1, 2)
    top = _network(scene)
    scene.some_jobs("old", 1, 3, running=True, priority="low")
    scene.fill(scene.queues, ranks(scene))
    for i in range(scene.number(1, 2)):
        scene.random_job(f"new{i}", priority="high", networkTopology=_wish(scene, "hard", top))


def sub_groups(scene: Scene) -> None:
    """Jobs in parts, each part with a size and perhaps a place in the network of its own."""
    scene.actions = scene.pick(["allocate"], ["enqueue", "allocate"], ["allocate", "gangpreempt"])
    scene.second.append("network-topology-aware")
    scene.some_nodes(2, 5)
    scene.some_queues(1, 1)
    top = _network(scene)
    for i in range(scene.number(1, 2)):
        size, parts = scene.number(1, 2), scene.number(1, 3)
        policy: Raw = {"name": "part", "matchLabelKeys": ["part"], "subGroupSize": size}
        policy["labelSelector"] = {"matchExpressions": [{"key": "part", "operator": "Exists"}]}
        if scene.chance(0.6):
            policy["minSubGroups"] = scene.number(0, parts)
        if scene.chance(0.6):
            policy["networkTopology"] = _wish(scene, scene.pick("hard", "hard", "soft"), top)
        spec: Raw = {"subGroupPolicy": [policy]}
        if scene.chance(0.4):
            spec["networkTopology"] = _wish(scene, "hard", top)
        count = size * parts + (scene.number(0, 1))
        pods = scene.random_job(f"j{i}", count=count, cpu=scene.pick(0.5, 1, 1.5), **spec)
        for j, pod in enumerate(pods[: size * parts]):
            pod["metadata"]["labels"]["part"] = str(j // size)


def filters(scene: Scene) -> None:
    """Selectors, node affinity, taints, cordons and host ports."""
    scene.actions = scene.pick(["allocate"], ["allocate", "backfill"], ["allocate", "preempt"])
    _zoned_nodes(scene)
    scene.some_queues(1, 1)
    for node in scene.nodes:
        if scene.chance(0.3):
            node["spec"]["taints"] = [
                {
                    "key": "gpu",
                    "value": "yes",
                    "effect": scene.pick("NoSchedule", "PreferNoSchedule", "NoExecute"),
                }
            ]
        if scene.chance(0.1):
            node["spec"]["unschedulable"] = True
    for i in range(scene.number(2, 5)):
        running = scene.chance(0.3)
        for pod in scene.random_job(f"j{i}", running=running, priority="low" if running else "high"):
            _filtered(scene, pod)


def _filtered(scene: Scene, pod: Raw) -> None:
    spec = pod["spec"]
    if scene.chance(0.3):
        spec["nodeSelector"] = {ZONE: scene.pick("z0", "z1")}
    if scene.chance(0.3):
        operator = scene.pick("In", "NotIn", "Exists")
        values = {"values": [scene.pick("n0", "n1", "n2")]} if operator != "Exists" else {}
        terms = [{"matchExpressions": [{"key": HOST, "operator": operator, **values}]}]
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        }
    if scene.chance(0.3):
        spec["tolerations"] = [
            {
                "key": "gpu",
                "operator": scene.pick("Exists", "Equal"),
                **({"value": "yes"} if scene.chance(0.5) else {}),
            }
        ]
        if spec["tolerations"][0]["operator"] == "Exists":
            spec["tolerations"][0].pop("value", None)
    if scene.chance(0.3):
        port = scene.pick(80, 80, 443)
        spec["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port, "protocol": "TCP"}]


def inter_pod(scene: Scene) -> None:
    """Pods that seek or shun each other."""
    scene.actions = scene.pick(["allocate"], ["allocate", "preempt"], ["allocate", "backfill"])
    _zoned_nodes(scene)
    scene.some_queues(1, 1)
    for i in range(scene.number(2, 4)):
        running = scene.chance(0.4)
        for pod in scene.random_job(f"j{i}", running=running, priority="low" if running else "high"):
            if scene.chance(0.6):
                pod["spec"]["affinity"] = {scene.pick("podAffinity", "podAntiAffinity"): _inter_pod(scene)}


def _inter_pod(scene: Scene) -> Raw:
    term = {
        "labelSelector": {"matchLabels": {"app": f"j{scene.number(0, 2)}"}},
        "topologyKey": scene.pick(ZONE, HOST),
    }
    if scene.chance(0.6):
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    weighted = [{"weight": scene.number(1, 100), "podAffinityTerm": term}]
    return {"preferredDuringSchedulingIgnoredDuringExecution": weighted}


def spread(scene: Scene) -> None:
    """Pods that are to be spread evenly."""
    scene.actions = scene.pick(["allocate"], ["allocate", "backfill"])
    _zoned_nodes(scene, 2, 5)
    if scene.chance(0.3):
        scene.nodes[0]["metadata"]["labels"].pop(ZONE)
    scene.some_queues(1, 1)
    for i in range(scene.number(1, 3)):
        for pod in scene.random_job(
            f"j{i}", count=scene.number(2, 5), running=scene.chance(0.3), cpu=scene.pick(0.5, 1)
        ):
            rule: Raw = {
                "maxSkew": scene.number(1, 2),
                "topologyKey": scene.pick(ZONE, HOST),
                "whenUnsatisfiable": scene.pick("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"),
                "labelSelector": {"matchLabels": {"app": f"j{i}"}},
            }
            if rule["whenUnsatisfiable"] == "DoNotSchedule" and scene.chance(0.2):
                rule["minDomains"] = scene.number(1, 3)
            if scene.chance(0.8):
                pod["spec"]["topologySpreadConstraints"] = [rule]


def node_groups(scene: Scene) -> None:
    """Queues that are bound to groups of nodes."""
    settings: Raw = {"strict": scene.chance(0.6), "enablePreferredOrder": scene.chance(0.4)}
    scene.second.append(("nodegroup", settings))
    scene.some_nodes(2, 5)
    for node in scene.nodes:
        if scene.chance(0.85):
            node["metadata"]["labels"]["volcano.sh/nodegroup-name"] = scene.pick("ga", "gb", "gc")
    for i in range(scene.number(1, 3)):
        groups = ["ga", "gb", "gc"]
        scene.random.shuffle(groups)
        affinity: Raw = {}
        if scene.chance(0.8):
            kind = scene.pick("required", "preferred")
            affinity["nodeGroupAffinity"] = {
                f"{kind}DuringSchedulingIgnoredDuringExecution": groups[: scene.number(1, 2)]
            }
        if scene.chance(0.4):
            kind = scene.pick("required", "preferred")
            affinity["nodeGroupAntiAffinity"] = {f"{kind}DuringSchedulingIgnoredDuringExecution": groups[2:]}
        scene.queue(f"q{i}", **({"affinity": affinity} if affinity else {}))
    scene.some_jobs("j", 2, 5)


def order_of_nodes(scene: Scene) -> None:
    """Weights of nodeorder, images on nodes, preferred node affinity and preferred taints."""
    names = (
        "leastrequested",
        "mostrequested",
        "nodeaffinity",
        "balancedresource",
        "tainttoleration",
        "imagelocality",
    )
    weights = {f"{name}.weight": scene.number(0, 5) for name in names if scene.chance(0.6)}
    scene.second = ["predicates", "proportion", ("nodeorder", weights), ("binpack", {"binpack.weight": 1})]
    _zoned_nodes(scene, 2, 5)
    images = [{"names": [f"img{i}:v1"], "sizeBytes": scene.number(50, 900) * 1048576} for i in range(2)]
    for node in scene.nodes:
        if scene.chance(0.5):
            node["status"]["images"] = scene.random.sample(images, scene.number(1, 2))
        if scene.chance(0.3):
            node["spec"]["taints"] = [{"key": "spot", "effect": "PreferNoSchedule"}]
    scene.some_queues(1, 1)
    for i in range(scene.number(1, 4)):
        for pod in scene.random_job(f"j{i}", running=scene.chance(0.2)):
            pod["spec"]["containers"][0]["image"] = f"img{scene.number(0, 1)}:v1"
            if scene.chance(0.5):
                preference = {
                    "matchExpressions": [{"key": ZONE, "operator": "In", "values": [scene.pick("z0", "z1")]}]
                }
                preferred = [{"weight": scene.number(1, 100), "preference": preference}]
                pod["spec"]["affinity"] = {
                    "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
                }


def strategy_fit(scene: Scene) -> None:
    """Resources that are to be packed or spread, each in its own way; scarce ones kept for those who want them."""
    settings: Raw = {"resourceStrategyFitWeight": scene.number(1, 10)}
    settings["resources"] = {
        name: {"type": scene.pick("MostAllocated", "LeastAllocated"), "weight": scene.number(1, 3)}
        for name in ("cpu", "memory", "nvidia.com/*")
        if scene.chance(0.8)
    }
    if scene.chance(0.4):
        settings["sra"] = {
            "enable": True,
            "resources": "nvidia.com/gpu",
            "weight": scene.number(1, 10),
            "resourceWeight": {"nvidia.com/gpu": 1},
        }
    if scene.chance(0.4):
        settings["proportional"] = {
            "enable": True,
            "resources": "nvidia.com/gpu",
            "resourceProportion": {"nvidia.com/gpu.cpu": 1, "nvidia.com/gpu.memory": 2},
        }
    scene.second = ["predicates", "proportion", ("resource-strategy-fit", settings)]
    if scene.chance(0.5):
        scene.second.append("binpack")
    for size in scene.random.sample((4, 5, 6, 8, 10, 12), scene.number(2, 4)):
        scene.node(
            size,
            2 * size + scene.number(0, 4),
            {"nvidia.com/gpu": str(scene.number(1, 4))} if scene.chance(0.6) else None,
        )
    scene.some_queues(1, 1)
    for i in range(scene.number(2, 4)):
        for pod in scene.random_job(f"j{i}"):
            if scene.chance(0.4):
                pod["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
            if scene.chance(0.2):
                pod["metadata"]["annotations"]["volcano.sh/resource-strategy-scoring-type"] = scene.pick(
                    "MostAllocated", "LeastAllocated"
                )
                pod["metadata"]["annotations"]["volcano.sh/resource-strategy-weight"] = (
                    '{"cpu": 2, "memory": 1}'
                )


def task_topology(scene: Scene) -> None:
    """Roles that belong together or apart."""
    scene.second.append(("task-topology", {"task-topology.weight": scene.number(1, 10)}))
    scene.some_nodes(2, 4)
    scene.some_queues(1, 1)
    for i in range(scene.number(1, 3)):
        notes = {}
        if scene.chance(0.8):
            notes["volcano.sh/task-topology-affinity"] = scene.pick("ps,w", "w", "ps,w;e", "ps,x")
        if scene.chance(0.5):
            notes["volcano.sh/task-topology-anti-affinity"] = scene.pick("ps", "w", "e,w")
        if scene.chance(0.5):
            notes["volcano.sh/task-topology-task-order"] = scene.pick("ps,w,e", "w,ps")
        scene.random_job(
            f"j{i}",
            count=scene.number(2, 6),
            roles=("ps", "w", "e")[: scene.number(2, 3)],
            annotations=notes,
            cpu=scene.pick(0.5, 1, 1.5),
            running=scene.pick(0, 0, 1, 2),
        )


def usage(scene: Scene) -> None:
    """What nodes really use."""
    settings: Raw = {"usage.weight": scene.number(1, 8)}
    if scene.chance(0.6):
        settings["thresholds"] = {"cpu": scene.number(30, 90), "mem": scene.number(30, 90)}
    scene.second.append(("usage", settings))
    scene.some_nodes(2, 5)
    scene.some_queues(1, 1)
    measured = {}
    for node in scene.nodes:
        if scene.chance(0.9):
            at = scene.ago(0) if scene.chance(0.85) else scene.ago(30)
            measured[node["metadata"]["name"]] = {
                "cpu": scene.number(0, 95),
                "memory": scene.number(0, 95),
                "at": at,
            }
    scene.options["nodeUsage"] = measured
    scene.some_jobs("j", 2, 4)


def zones_by_time(scene: Scene) -> None:
    """Nodes that are lent out for a part of the day; windows are open all day or for its first minute only."""
    windows = {f"tdm.revocable-zone.rz{i}": scene.pick("00:00-23:59", "00:00-00:01") for i in range(2)}
    scene.actions = scene.pick(["allocate"], ["preempt"], ["allocate", "preempt"], ["shuffle"])
    scene.first = [("tdm", windows), *scene.first] if scene.chance(0.5) else scene.first
    if len(scene.first) == 3:
        scene.second.append(("tdm", windows))
    scene.some_nodes(2, 4, (2, 3, 4, 5, 6))
    for node in scene.nodes:
        if scene.chance(0.5):
            node["metadata"]["labels"]["volcano.sh/revocable-zone"] = scene.pick("rz0", "rz1", "rz9")
    scene.some_queues(1, 1)
    for i in range(scene.number(3, 6)):
        running = scene.chance(0.6)
        notes = {}
        if scene.chance(0.5):
            notes["volcano.sh/preemptable"] = scene.pick("true", "true", "false")
        if scene.chance(0.3):
            notes[
                "volcano.sh/jdb-min-available" if scene.chance(0.5) else "volcano.sh/jdb-max-unavailable"
            ] = scene.pick("1", "2", "50%")
        for pod in scene.random_job(
            f"j{i}", running=running, priority="low" if running else "high", annotations=notes
        ):
            pod["metadata"]["annotations"].update(
                {key: value for key, value in notes.items() if "jdb" not in key}
            )


TOPICS: dict[str, Topic] = {
    "topology-hard": topology_hard,
    "topology-soft": topology_soft,
    "topology-evicting": topology_evicting,
    "sub-groups": sub_groups,
    "filters": filters,
    "inter-pod": inter_pod,
    "spread": spread,
    "node-groups": node_groups,
    "order-of-nodes": order_of_nodes,
    "strategy-fit": strategy_fit,
    "task-topology": task_topology,
    "usage": usage,
    "tdm": zones_by_time,
}
