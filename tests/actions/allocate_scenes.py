"""Clusters for the tests of KAI's allocate and topology.

Gangs of any shape, a whole cycle, and a job placer on an open session.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from maniple.actions.placing.job_placer import JobPlacer
from maniple.cluster import snapshot
from maniple.cluster.statuses import Status
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.placement.engine import Placement
from maniple.planner import Plan, Planner
from tests.plugins.kai.fairness_scenes import node, queue, task
from tests.support import make, topology

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LEAVING = "2026-01-01T00:00:00Z"


def gang(
    name: str,
    count: int,
    minimum: int | None = None,
    *,
    queue: str = "q",
    gpus: int = 1,
    created: str = "2026-01-01T00:00:00Z",
    wish: Mapping[str, str] | None = None,
    groups: Sequence[Mapping[str, Any]] = (),
    roles: Sequence[str] = (),
    requests: Sequence[Mapping[str, str]] = (),
    on: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
    priority: str = "",
    **pod: Any,
) -> list[Object]:
    """A group and its pods `name-0`, `name-1` ... `roles`, `requests` and `on` are theirs, in that order."""
    spec: dict[str, Any] = {"queue": queue, "minMember": count if minimum is None else minimum}
    spec |= {"subGroups": list(groups), "preemptibility": "preemptible", "priorityClassName": priority}
    if wish:
        spec["topologyConstraint"] = dict(wish)
    api = "scheduling.run.ai/v2alpha2"
    head = make(api, "PodGroup", name, namespace="default", uid=name, created=created, spec=spec)
    plain = {"cpu": "1", "memory": "1G", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    pods = [
        task(
            f"{name}-{number}",
            requests[number] if requests else plain,
            on=on[number] if number < len(on) else "",
            annotations={"pod-group-name": name, **(annotations or {})},
            labels={"kai.scheduler/subgroup-name": roles[number]} if roles else {},
            **pod,
        )
        for number in range(count)
    ]
    return [head, *pods]


def flat(parts: Iterable[Any]) -> list[Object]:
    return [one for part in parts for one in ([part] if isinstance(part, Object) else flat(part))]


def planner(*, strict: bool = False, debug: bool = True, **conf: Any) -> Planner:
    settings = {"actions": "allocate", "compat": "strict" if strict else "better", **conf}
    return Planner(conf=settings, profile="kai", options={"debug": debug})


def cycle(*parts: Any, strict: bool = False, debug: bool = True, **conf: Any) -> Plan:
    one = planner(strict=strict, debug=debug, **conf)
    return one.cycle(one.build(flat(parts)), now=NOW)


def placed(plan: Plan) -> dict[str, str]:
    """Bound pods and their nodes."""
    return {key.removeprefix("default/"): name for key, name in plan.binds.items()}


def waiting(plan: Plan) -> dict[str, str]:
    """Pods that claim what is being released, and their nodes."""
    return {key.removeprefix("default/"): name for key, name in plan.pipelined.items()}


def reasons(plan: Plan, job: str) -> list[str]:
    """Of the job itself, without those of its tasks."""
    return plan.groups[f"default/{job}"].refusals


class Bench:
    """A session of the default configuration with a placer, to be driven by hand."""

    def __init__(self, *parts: Any, strict: bool = False) -> None:
        one = planner(strict=strict)
        cluster = one.build(flat(parts))
        conf, options = one.configuration, one.options
        self.session = Session(
            snapshot.take(cluster), conf, rules=one.rules, actions=one.actions, now=NOW, options=options
        )
        one.registry.open_plugins(self.session, conf)
        self.placement = Placement(self.session)
        self.placer = JobPlacer(self.session, self.placement)
        self.transaction = Transaction(self.session)

    def job(self, name: str) -> int:
        row = self.session.cluster.jobs.index_of(f"default/{name}")
        assert row is not None, name
        return row

    def rows(self, *names: str) -> TaskRows:
        found = [self.session.cluster.tasks.index_of(f"default/{name}") for name in names]
        return np.array(found, dtype=np.int64)

    def place(
        self, job: str, *, real: bool = True, nodes: Iterable[str] = (), rows: Sequence[str] = ()
    ) -> bool:
        """The job, or some of its pods, for good or in a dry run, on all nodes or on some."""
        mask = np.isin(self.session.nodes.facts.names, list(nodes)) if nodes else None
        return self.placer.allocate(
            self.transaction,
            self.job(job),
            mask,
            pipeline_only=not real,
            real=real,
            rows=self.rows(*rows) if rows else None,
        )

    def evict(self, *names: str) -> None:
        self.transaction.evict(self.rows(*names), "make room")

    def where(self, *names: str) -> list[tuple[str, str]]:
        """Status and node of pods."""
        tasks = self.session.tasks
        return [
            (
                Status(tasks.status[row]).word,
                self.session.node_name(int(tasks.node[row])) if tasks.node[row] >= 0 else "",
            )
            for row in self.rows(*names).tolist()
        ]


__all__ = [
    "LEAVING",
    "NOW",
    "Bench",
    "cycle",
    "flat",
    "gang",
    "node",
    "placed",
    "queue",
    "reasons",
    "task",
    "topology",
    "waiting",
]
