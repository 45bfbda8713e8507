"""What remedies are held to: plain objects are changed one way after the other and planned from scratch.

It knows nothing of how remedies are searched for. `helps` finds out by brute force whether any single kind of change
of a generous size starts a job, or several of them together; `starts` reads a plan.
"""

from collections.abc import Iterator
from copy import deepcopy
from datetime import datetime
from itertools import combinations
from typing import Any

from maniple.planner import Plan, Planner
from tests.explain.clusters import Scenario
from tests.explain.oracle_objects import KINDS, mended, object_changes

Raw = dict[str, Any]
_NODES = (1, 2, 4, 8, 16)
_PLENTY = 10**6
_GROUP_NAMES = ("scheduling.k8s.io/group-name", "pod-group-name")


def planned(scenario: Scenario, objects: list[Raw], now: datetime) -> Plan:
    planner = Planner(conf=scenario.conf, profile=scenario.profile)
    return planner.cycle(planner.build(objects), now=now)


def starts(plan: Plan, objects: list[Raw], job: str) -> bool:
    """Whether a job has its minimum, also of every part, on nodes or claiming them."""
    outcome, group = plan.jobs.get(job), plan.group(job.partition("@")[0]) or plan.group(job)
    if outcome is None or group is None:
        return False
    # A pod that moves to another node counts for the plan's state, and not among those that start.
    if outcome.state not in ("placed", "starting") and outcome.ready + outcome.starting < max(
        outcome.minimum, 1
    ):
        return False
    raw = next(
        (one for one in objects if one["kind"] == "PodGroup" and _key(one) == job.partition("@")[0]), None
    )
    roles: dict[str, int] = (raw or {}).get("spec", {}).get("minTaskMember") or {}
    there = [
        _role(one)
        for one in objects
        if one["kind"] == "Pod" and _key(one) in plan.tasks and plan.tasks[_key(one)].job == job
        and plan.tasks[_key(one)].status not in ("Pending", "Gated", "Releasing", "Failed")
    ]  # fmt: skip
    return all(there.count(role) >= least for role, least in roles.items()) and group.satisfied


def waiting(plan: Plan, objects: list[Raw]) -> list[str]:
    return [
        job for job, one in plan.jobs.items() if one.state == "waiting" and not starts(plan, objects, job)
    ]


def helps(scenario: Scenario, job: str, now: datetime) -> str:
    """A kind of change that starts a job, or kinds that do so together; empty if there is none."""
    for changes in (_changed(scenario.objects, job), _together(scenario.objects, job)):
        for kind, objects in changes:
            if starts(planned(scenario, objects, now), objects, job):
                return kind
    return ""


def kinds_that_help(scenario: Scenario, job: str, now: datetime) -> dict[str, tuple[str, ...]]:
    """Changes of what surrounds a job that start it, each by itself; with the kinds of remedies that would say so."""
    found: dict[str, tuple[str, ...]] = {}
    pods = _of_job(scenario.objects, job)
    for name, objects in object_changes(scenario.objects, job, pods):
        is_new = name not in found and objects != scenario.objects
        if is_new and starts(planned(scenario, objects, now), objects, job):
            found[name] = KINDS[name]
    return found


def _together(objects: list[Raw], job: str) -> Iterator[tuple[str, list[Raw]]]:
    """Everything that holds a job's pods back is removed; then also more pods, smaller ones, queues, nodes."""
    free = mended(objects, job, _of_job(objects, job))
    for kind in ("gates", "toleration", "selector", "affinity", "spread"):
        free = next(made for name, made in _pod_changes(free, job) if name == kind)
    free = next(made for name, made in _group_changes(free, job) if name == "topology")
    open_ = free
    for field in ("open", "limit", "quota"):
        open_ = next((made for name, made in _queue_changes(open_, job) if name == field), open_)
    for name, base in (("constraints", free), ("constraints+queues", open_)):
        for more in (base, *(made for kind, made in _pod_changes(base, job) if kind in ("pods", "request"))):
            yield name, more
            nodes = [one for one in more if one["kind"] == "Node"]
            for node in nodes:
                yield f"{name}+nodes", [*more, *(_like(node, number) for number in range(8))]
            yield f"{name}+members", next(m for kind, m in _lowest(more, job) if kind == "members")


def _lowest(objects: list[Raw], job: str) -> Iterator[tuple[str, list[Raw]]]:
    """The group's changes, the lowest minimum first."""
    return iter([*_group_changes(objects, job)][3:])


def _key(raw: Raw) -> str:
    return f"{raw['metadata'].get('namespace', 'default')}/{raw['metadata']['name']}"


def _role(pod: Raw) -> str:
    meta = pod["metadata"]
    role: str = meta.get("annotations", {}).get("volcano.sh/task-spec") or meta.get("labels", {}).get(
        "volcano.sh/task-spec", ""
    )
    return role


def _of_job(objects: list[Raw], job: str) -> list[Raw]:
    name = job.partition("@")[0].partition("/")[2]
    return [one for one in objects if one["kind"] == "Pod" and name in (_group(one), _owner(one))]


def _owner(pod: Raw) -> str:
    """The name of the group that a pod without one gets in memory."""
    owners = pod["metadata"].get("ownerReferences", ())
    return next((f"{one['kind'].lower()}:{one['name']}" for one in owners), "")


def _group(pod: Raw) -> str:
    notes = pod["metadata"].get("annotations", {})
    return next((notes[name] for name in _GROUP_NAMES if notes.get(name)), "")


def _changed(objects: list[Raw], job: str) -> Iterator[tuple[str, list[Raw]]]:
    yield from _pod_changes(objects, job)
    yield from _group_changes(objects, job)
    yield from _queue_changes(objects, job)
    yield from object_changes(objects, job, _of_job(objects, job))
    for count in _NODES:
        for node in [one for one in objects if one["kind"] == "Node"]:
            yield "nodes", [*objects, *(_like(node, number) for number in range(count))]
    yield from _ended(objects, job)


def _pod_changes(objects: list[Raw], job: str) -> Iterator[tuple[str, list[Raw]]]:
    def with_pods(edit: Any) -> list[Raw]:
        made = deepcopy(objects)
        for pod in _of_job(made, job):
            if not pod["spec"].get("nodeName"):
                edit(pod)
        return made

    def without(*fields: str) -> Any:
        def edit(pod: Raw) -> None:
            for field in fields:
                pod["spec"].pop(field, None)

        return edit

    def smaller(pod: Raw) -> None:
        for container in pod["spec"]["containers"]:
            for amounts in container.get("resources", {}).values():
                for name in amounts:
                    amounts[name] = "1" if "/" in name else "100m" if name == "cpu" else "64Mi"

    taints = [t for one in objects if one["kind"] == "Node" for t in one["spec"].get("taints", ())]

    def tolerant(pod: Raw) -> None:
        pod["spec"]["tolerations"] = [{"key": one["key"], "operator": "Exists"} for one in taints]

    yield "gates", with_pods(without("schedulingGates"))
    yield "toleration", with_pods(tolerant)
    yield "selector", with_pods(lambda pod: _without_selector(pod["spec"]))
    yield "affinity", with_pods(lambda pod: _without_pod_affinity(pod["spec"]))
    yield "spread", with_pods(without("topologySpreadConstraints"))
    yield "request", with_pods(smaller)
    own = _of_job(objects, job)
    for count in (1, 2, 4) if own else ():
        yield "pods", [*objects, *(_new_pod(own[0], number) for number in range(count))]


def _without_selector(spec: Raw) -> None:
    spec.pop("nodeSelector", None)
    spec.get("affinity", {}).pop("nodeAffinity", None)


def _without_pod_affinity(spec: Raw) -> None:
    for side in ("podAffinity", "podAntiAffinity"):
        spec.get("affinity", {}).pop(side, None)


def _new_pod(pod: Raw, number: int) -> Raw:
    made = _like(pod, number)
    made["spec"].pop("nodeName", None)
    made["status"] = {"phase": "Pending"}
    return made


def _like(one: Raw, number: int) -> Raw:
    made = deepcopy(one)
    made["metadata"]["name"] += f"-o{number}"
    made["metadata"]["uid"] = made["metadata"]["name"]
    if "kubernetes.io/hostname" in made["metadata"].get("labels", {}):
        made["metadata"]["labels"]["kubernetes.io/hostname"] = made["metadata"]["name"]
    return made


def _group_changes(objects: list[Raw], job: str) -> Iterator[tuple[str, list[Raw]]]:
    classes = sorted({one["value"]: one["metadata"]["name"] for one in objects if one["kind"] == "PriorityClass"
                      and one.get("preemptionPolicy") != "Never"}.items())  # fmt: skip

    def with_group(edit: Any) -> list[Raw]:
        made = deepcopy(objects)
        for one in made:
            if one["kind"] == "PodGroup" and _key(one) == job.partition("@")[0]:
                edit(one)
        return made

    def minimum(count: int) -> Any:
        def edit(group: Raw) -> None:
            spec = group["spec"]
            spec["minMember"] = min(spec.get("minMember", 1), count)
            for part in spec.get("subGroups", ()):
                part["minMember"] = min(part.get("minMember", 1), count)
            roles = spec.get("minTaskMember") or {}
            for role in roles:
                roles[role] = min(roles[role], count)

        return edit

    def near(group: Raw) -> None:
        spec = group["spec"]
        for part in (spec, *spec.get("subGroups", ()), *spec.get("subGroupPolicy", ())):
            part.pop("topologyConstraint", None)
            part.pop("networkTopology", None)

    for count in (4, 3, 2, 1):
        yield "members", with_group(minimum(count))
    yield "topology", with_group(near)
    for _, name in classes:
        yield "priority", with_group(lambda group, name=name: group["spec"].update(priorityClassName=name))
    yield "preemptible", with_group(lambda group: group["spec"].update(preemptibility="preemptible"))


def _queue_changes(objects: list[Raw], job: str) -> Iterator[tuple[str, list[Raw]]]:
    group = next(
        (one for one in objects if one["kind"] == "PodGroup" and _key(one) == job.partition("@")[0]), None
    )
    if group is None:
        return
    path, name = list[str](), group["spec"].get("queue", "")
    parents = {
        one["metadata"]["name"]: one["spec"].get("parentQueue") or one["spec"].get("parent", "")
        for one in objects
        if one["kind"] == "Queue"
    }
    while name in parents and name not in path:
        path.append(name)
        name = parents[name]
    for field in ("open", "limit", "quota"):
        made = deepcopy(objects)
        for one in made:
            if one["kind"] == "Queue" and one["metadata"]["name"] in path:
                _generous(one, field)
        yield field, made


def _generous(queue: Raw, field: str) -> None:
    if field == "open":
        queue["status"] = {"state": "Open"}
    elif "resources" in queue["spec"]:
        for one in queue["spec"]["resources"].values():
            one[field] = -1 if field == "limit" else _PLENTY
    elif field == "limit":
        queue["spec"].pop("capability", None)
    elif "parentQueue" not in queue["spec"]:
        queue["spec"]["deserved"] = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "32"}


def _ended(objects: list[Raw], job: str) -> Iterator[tuple[str, list[Raw]]]:
    """Without one or two other jobs."""
    others = sorted({_group(one) for one in objects if one["kind"] == "Pod"} - {"", job.partition("/")[2]})
    for count in (1, 2):
        for gone in combinations(others, count):
            yield "ended", [one for one in objects if one["kind"] != "Pod" or _group(one) not in gone]
