"""The benchmark clusters as Kubernetes objects of each dialect; called through `shapes.DIALECTS`."""

from collections.abc import Iterable
from datetime import UTC, datetime

from maniple.cli.shape_model import FIRST_CREATED, UNLIMITED, Job, NodeKind, Object, Shape, Share

NAMESPACE = "bench"
SUB_GROUP_LABEL = "sub-group"
SPINE_LEVEL, RACK_LEVEL = "bench/spine", "bench/rack"
KAI_PARENT = "everything"
KAI_TOPOLOGY = "network"


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _quantities(requests: dict[str, int], times: int = 1) -> dict[str, str]:
    return {name: f"{amount * times}{'Mi' if name == 'memory' else ''}" for name, amount in requests.items()}


def _node(shape: Shape, name: str, labels: dict[str, str] | None = None) -> Object:
    room = {**shape.kinds.get(name, NodeKind()).allocatable, "pods": "110"}
    labels = {**shape.labels.get(name, {}), **(labels or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "creationTimestamp": _time(FIRST_CREATED),
            **({"labels": labels} if labels else {}),
        },
        "spec": {},
        "status": {
            "capacity": room,
            "allocatable": dict(room),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _priority_class(value: int) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"priority-{value}"},
        "value": value,
    }


def _pod(job: Job, index: int, scheduler: str, annotations: dict[str, str], sub_group_label: str) -> Object:
    """`sub_group_label` is written on the pods of jobs that have sub-groups."""
    name = f"{job.name}-task-{index}"
    labels = {sub_group_label: str(index // job.sub_group)} if job.sub_group else {}
    if job.asks:
        labels |= {"job": job.name, "idx": str(index)}
    spec: Object = {
        "schedulerName": scheduler,
        "priority": job.priority,
        "priorityClassName": f"priority-{job.priority}",
        "containers": [
            {"name": "main", "image": "bench", "resources": {"requests": _requests(job, index)}},
        ],
        **job.constraints,
    }
    if job.placed:
        spec["nodeName"] = job.placed[index]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"pod-{name}",
            "annotations": annotations,
            "creationTimestamp": _time(job.created),
            **({"labels": labels} if labels else {}),
        },
        "spec": spec,
        "status": {"phase": "Running" if job.placed else "Pending"},
    }


def _requests(job: Job, index: int) -> dict[str, str]:
    return dict(job.asks[index]) if job.asks else _quantities(job.requests)


def _volcano_queue(name: str) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "uid": f"queue-{name}", "creationTimestamp": _time(FIRST_CREATED)},
        "spec": {"weight": 1, "reclaimable": True},
        "status": {"state": "Open"},
    }


def _hyper_node(name: str, tier: int, kind: str, members: Iterable[str]) -> Object:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name, "uid": f"hypernode-{name}"},
        "spec": {
            "tier": tier,
            "members": [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members],
        },
    }


def _hyper_nodes(racks: tuple[tuple[str, ...], ...]) -> list[Object]:
    names = [f"rack{index:04d}" for index in range(len(racks))]
    found = [_hyper_node(name, 1, "Node", nodes) for name, nodes in zip(names, racks, strict=True)]
    return [*found, _hyper_node("spine", 2, "HyperNode", names)] if found else []


def _sub_groups(job: Job) -> Object:
    """Hard limits for the job and for each of its sub-groups."""
    if not job.sub_group:
        return {}
    policy = {
        "name": "group",
        "subGroupSize": job.sub_group,
        "minSubGroups": job.tasks // job.sub_group,
        "matchLabelKeys": [SUB_GROUP_LABEL],
        "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
    }
    return {"networkTopology": {"mode": "hard", "highestTierAllowed": 2}, "subGroupPolicy": [policy]}


def _volcano_pod_group(job: Job) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": job.name,
            "namespace": NAMESPACE,
            "uid": f"podgroup-{job.name}",
            "creationTimestamp": _time(job.created),
        },
        "spec": {
            "minMember": job.minimum,
            "queue": job.queue,
            "priorityClassName": f"priority-{job.priority}",
            **({} if job.asks else {"minResources": _quantities(job.requests, job.minimum)}),
            **_sub_groups(job),
        },
        "status": {"phase": "Running" if job.placed else "Inqueue" if job.admitted else "Pending"},
    }


def volcano_objects(shape: Shape) -> list[Object]:
    """The shape as Volcano's objects; every pod is a dictionary of its own, as if read from a file."""
    objects = [_node(shape, name) for name in shape.nodes]
    objects += [_priority_class(value) for value in sorted({job.priority for job in shape.jobs})]
    objects += [_volcano_queue(name) for name in shape.queues]
    objects += _hyper_nodes(shape.racks)
    for job in shape.jobs:
        objects.append(_volcano_pod_group(job))
        objects += [_volcano_pod(job, index) for index in range(job.tasks)]
    return objects


def _volcano_pod(job: Job, index: int, scheduler: str = "volcano") -> Object:
    annotations = {"scheduling.k8s.io/group-name": job.name, "volcano.sh/task-spec": "task"}
    return _pod(job, index, scheduler, annotations, SUB_GROUP_LABEL)


# -- KAI -------------------------------------------------------------------------------------------------------------


def _kai_queue(name: str, parent: str, share: Share) -> Object:
    """A queue without limits; KAI counts CPU in millicores and memory in millions of bytes."""
    quotas = {"gpu": share.gpus, "cpu": share.cores * 1000, "memory": share.memory * 2**20 / 10**6}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name, "uid": f"queue-{name}", "creationTimestamp": _time(FIRST_CREATED)},
        "spec": {
            **({"parentQueue": parent} if parent else {}),
            "resources": {
                resource: {
                    "quota": max(quota, UNLIMITED),
                    "overQuotaWeight": share.weight,
                    "limit": UNLIMITED,
                }
                for resource, quota in quotas.items()
            },
        },
    }


def _wish(level: str) -> Object:
    return {"topologyConstraint": {"topology": KAI_TOPOLOGY, "requiredTopologyLevel": level}}


def _kai_pod_group(job: Job) -> Object:
    spec: Object = {
        "minMember": job.minimum,
        "queue": job.queue,
        "priorityClassName": f"priority-{job.priority}",
    }
    if job.sub_group:
        groups = range(job.tasks // job.sub_group)
        spec |= _wish(SPINE_LEVEL)
        spec["subGroups"] = [
            {"name": str(group), "minMember": job.sub_group, **_wish(RACK_LEVEL)} for group in groups
        ]
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {
            "name": job.name,
            "namespace": NAMESPACE,
            "uid": f"podgroup-{job.name}",
            "creationTimestamp": _time(job.created),
        },
        "spec": spec,
    }


def _kai_topology() -> Object:
    return {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": KAI_TOPOLOGY, "uid": f"topology-{KAI_TOPOLOGY}"},
        "spec": {"levels": [{"nodeLabel": SPINE_LEVEL}, {"nodeLabel": RACK_LEVEL}]},
    }


def kai_objects(shape: Shape) -> list[Object]:
    """The shape as KAI's objects: every queue below one without limits, with the shape's quotas only."""
    objects = _labelled_nodes(shape)
    objects += [_priority_class(value) for value in sorted({job.priority for job in shape.jobs})]
    objects.append(_kai_queue(KAI_PARENT, "", Share(UNLIMITED, UNLIMITED, UNLIMITED)))
    objects += [_kai_queue(name, KAI_PARENT, shape.shares.get(name, Share())) for name in shape.queues]
    if shape.racks:
        objects.append(_kai_topology())
    for job in shape.jobs:
        objects.append(_kai_pod_group(job))
        objects += [_kai_pod(job, index) for index in range(job.tasks)]
    return objects


def _labelled_nodes(shape: Shape) -> list[Object]:
    """Nodes with labels for their topology, if it matters."""
    rack_of = {node: f"rack{index:04d}" for index, rack in enumerate(shape.racks) for node in rack}
    return [
        _node(shape, name, {SPINE_LEVEL: "spine", RACK_LEVEL: rack_of[name]} if name in rack_of else None)
        for name in shape.nodes
    ]


def _kai_pod(job: Job, index: int, scheduler: str = "kai-scheduler") -> Object:
    return _pod(job, index, scheduler, {"pod-group-name": job.name}, "kai.scheduler/subgroup-name")


# -- both ------------------------------------------------------------------------------------------------------------


def maniple_objects(shape: Shape) -> list[Object]:
    """The shape as objects of both systems: every other queue and job is KAI's, the first of each Volcano's.

    Queues with a quota in the shape are all KAI's: Volcano cannot express an unlimited quota.
    """
    objects = _labelled_nodes(shape)
    objects += [_priority_class(value) for value in sorted({job.priority for job in shape.jobs})]
    for number, name in enumerate(shape.queues):
        of_kai = number % 2 == 1 or name in shape.shares
        objects.append(
            _kai_queue(name, "", shape.shares.get(name, Share())) if of_kai else _volcano_queue(name)
        )
    objects += _hyper_nodes(shape.racks)
    if shape.racks:
        objects.append(_kai_topology())
    for number, job in enumerate(shape.jobs):
        group, pod = (_kai_pod_group, _kai_pod) if number % 2 else (_volcano_pod_group, _volcano_pod)
        objects.append(group(job))
        objects += [pod(job, index, "maniple") for index in range(job.tasks)]
    return objects
