"""Clusters for the tests of Maniple's own profile: queues and gangs of both systems, and the result of a
cycle."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from maniple.cluster import snapshot
from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.planner import Plan, Planner
from maniple.plugins.maniple.fairness import Fairness
from tests.support import make

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
EARLY = "2026-01-01T00:00:00Z"
GPU = "nvidia.com/gpu"
Raw = dict[str, Any]


def node(
    name: str,
    gpus: int = 8,
    *,
    labels: Mapping[str, str] | None = None,
    more: Mapping[str, str] | None = None,
) -> Object:
    """`more`: further amounts, or others than those that all nodes have."""
    amounts = {"cpu": "100", "memory": "100Gi", "pods": "110", **(more or {})}
    if gpus:
        amounts[GPU] = str(gpus)
    status = {"allocatable": amounts, "capacity": amounts}
    return make("v1", "Node", name, labels=dict(labels or {}), spec={}, status=status)


def volcano_queue(
    name: str, *, weight: int = 1, state: str = "Open", created: str = EARLY, **spec: Any
) -> Object:
    return make(
        "scheduling.volcano.sh/v1beta1",
        "Queue",
        name,
        uid=name,
        created=created,
        spec={"weight": weight, **spec},
        status={"state": state},
    )


def kai_queue(
    name: str,
    quota: float = 0.0,
    *,
    limit: float = -1.0,
    weight: float = 1.0,
    parent: str = "",
    created: str = EARLY,
    **spec: Any,
) -> Object:
    """Of GPUs; cpu and memory are unlimited."""
    free = {"quota": -1.0, "limit": -1.0, "overQuotaWeight": 1.0}
    gpu = {"quota": quota, "limit": limit, "overQuotaWeight": weight}
    body = {"resources": {"gpu": gpu, "cpu": free, "memory": free}, "parentQueue": parent, **spec}
    return make("scheduling.run.ai/v2", "Queue", name, uid=name, created=created, spec=body)


def pod(
    name: str,
    asked: Mapping[str, str],
    *,
    on: str = "",
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    scheduler: str = "maniple",
    namespace: str = "default",
    deleted: str = "",
    nominated: str = "",
    **spec: Any,
) -> Object:
    container = {"name": "main", "image": "work:1", "resources": {"requests": dict(asked)}}
    body: Raw = {"schedulerName": scheduler, "containers": [container], **spec}
    if on:
        body["nodeName"] = on
    return make(
        "v1",
        "Pod",
        name,
        namespace=namespace,
        uid=name,
        created=EARLY,
        annotations=dict(annotations or {}),
        labels=dict(labels or {}),
        deleted=deleted,
        spec=body,
        status={"phase": "Running" if on else "Pending", "nominatedNodeName": nominated},
    )


def gang(
    name: str,
    queue: str,
    count: int,
    minimum: int | None = None,
    *,
    kai: bool = False,
    gpus: int = 1,
    asked: Mapping[str, str] | None = None,
    each: Sequence[Mapping[str, str]] = (),
    on: Sequence[str] | str = (),
    roles: Sequence[str] = (),
    created: str = EARLY,
    priority: str = "",
    firm: bool = False,
    notes: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    group: Mapping[str, Any] | None = None,
    group_notes: Mapping[str, str] | None = None,
    namespace: str = "default",
    preemptibility: str | None = None,
    status: Mapping[str, Any] | None = None,
    **more: Any,
) -> list[Object]:
    """A pod group and its pods `name-0`, `name-1` ...: the first of them on the nodes of `on`, or all on one
    node.

    `each`: what each pod requests, in place of `asked`; `group`: further fields of the group.
    """
    homes = [on] * count if isinstance(on, str) else list(on)
    wants = {"cpu": "1", "memory": "1Gi", **({GPU: str(gpus)} if gpus else {}), **(asked or {})}
    said = {} if kai or not firm else {"volcano.sh/preemptable": "false"}
    spec: Raw = {"queue": queue, "minMember": count if minimum is None else minimum, **(group or {})}
    spec["priorityClassName"] = priority
    if kai:
        said_so = "non-preemptible" if firm else "preemptible"
        spec["preemptibility"] = said_so if preemptibility is None else preemptibility
    api = "scheduling.run.ai/v2alpha2" if kai else "scheduling.volcano.sh/v1beta1"
    head = make(
        api,
        "PodGroup",
        name,
        namespace=namespace,
        uid=name,
        created=created,
        annotations={**said, **(group_notes or {})},
        spec=spec,
        status=dict(status or {}),
    )
    note = "pod-group-name" if kai else "scheduling.k8s.io/group-name"
    role = "kai.scheduler/subgroup-name" if kai else "volcano.sh/task-spec"
    pods = [
        pod(
            f"{name}-{number}",
            each[number] if each else wants,
            on=homes[number] if number < len(homes) else "",
            annotations={note: name, **(notes or {})},
            labels={**(labels or {}), **({role: roles[number]} if roles else {})},
            namespace=namespace,
            **more,
        )
        for number in range(count)
    ]
    return [head, *pods]


def flat(parts: Iterable[Any]) -> list[Object]:
    return [one for part in parts for one in ([part] if isinstance(part, Object) else flat(part))]


def planner(conf: Any = None, **options: Any) -> Planner:
    return Planner(conf=conf, profile="maniple", options={"debug": True, **options})


def cycle(
    *parts: Any,
    conf: Any = None,
    profile: str = "maniple",
    actions: Sequence[str] = (),
    now: datetime | None = NOW,
    **options: Any,
) -> Plan:
    one = Planner(
        conf=conf, profile=profile, actions=list(actions) or None, options={"debug": True, **options}
    )
    plan = one.cycle(one.build(flat(parts)), now=now)
    assert not one.problems, one.problems
    return plan


def bound(plan: Plan) -> dict[str, str]:
    return {key.removeprefix("default/"): name for key, name in plan.binds.items()}


def claims(plan: Plan) -> dict[str, str]:
    """Pods that wait for a node where something is being released."""
    return {key.removeprefix("default/"): name for key, name in plan.pipelined.items()}


def evicted(plan: Plan) -> set[str]:
    return {key.removeprefix("default/") for key in plan.evictions}


def why(plan: Plan, job: str) -> str:
    return "\n".join(plan.jobs[f"default/{job}"].reasons)


def names(job: str, count: int) -> set[str]:
    return {f"{job}-{number}" for number in range(count)}


def opened(*parts: object) -> tuple[Session, Fairness]:
    """A session of the default configuration, and its fairness."""
    one = planner()
    cluster = one.build(flat(parts))
    session = Session(
        snapshot.take(cluster),
        one.configuration,
        rules=one.rules,
        actions=one.actions,
        now=NOW,
        options=one.options,
    )
    one.registry.open_plugins(session, one.configuration)
    plugin = next(plugin for _, plugin in session.plugins if isinstance(plugin, Fairness))
    return session, plugin


def fair(name: str, *parts: object) -> dict[str, float]:
    """The fair share of a queue."""
    session, plugin = opened(*parts)
    row = session.queues.index_of(name)
    assert row is not None
    return dict(session.resources.describe(plugin._books.vector(plugin._books.accounts[row].fair)))
