"""Clusters for the tests of KAI's proportion: queues, jobs of one-GPU pods, and a session with that plugin alone."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maniple.cluster import snapshot
from maniple.cluster.cluster import Cluster
from maniple.framework.configuration.loading import load_kai
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.plugins.kai.counting import GPU
from maniple.plugins.kai.proportion import Proportion
from maniple.plugins.kai.queue_accounts import Account
from maniple.profiles.catalogue import KAI
from maniple.profiles.kai import KaiDialect
from tests.support import make

ACTIONS = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")
UNLIMITED = -1.0
GIGABYTE = 10**9


def node(
    name: str = "n1", gpus: int = 8, *, labels: Mapping[str, str] | None = None, **status: Any
) -> Object:
    amounts = {"cpu": "100", "memory": "100G", "pods": "110", "nvidia.com/gpu": str(gpus)}
    amounts |= status.pop("extra", {})
    body = {"allocatable": amounts, "capacity": amounts, **status}
    return make("v1", "Node", name, labels=dict(labels or {}), spec={}, status=body)


def queue(
    name: str,
    quota: float = 0.0,
    *,
    limit: float = UNLIMITED,
    weight: float = 1.0,
    parent: str = "",
    priority: int | None = None,
    created: str = "2026-01-01T00:00:00Z",
    display: str = "",
    **others: Mapping[str, float],
) -> Object:
    """`quota`, `limit` and `weight` are of GPUs; cpu and memory are unlimited unless said otherwise."""
    open_ended = {"quota": UNLIMITED, "limit": UNLIMITED, "overQuotaWeight": 1.0}
    resources = {"gpu": {"quota": quota, "limit": limit, "overQuotaWeight": weight}}
    for resource in ("cpu", "memory"):
        resources[resource] = {**open_ended, **others.get(resource, {})}
    spec: dict[str, Any] = {"resources": resources, "parentQueue": parent, "displayName": display}
    if priority is not None:
        spec["priority"] = priority
    return make("scheduling.run.ai/v2", "Queue", name, uid=name, created=created, spec=spec)


def job(
    name: str,
    queue: str,
    *,
    running: int = 0,
    pending: int = 0,
    gpus: int = 1,
    minimum: int = 1,
    firm: bool = False,
    on: str = "n1",
    annotations: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    sub_groups: Sequence[tuple[str, int, int]] = (),
    **pod: Any,
) -> list[Object]:
    """A group with pods `name-0`, `name-1` ...: the running ones first.

    `sub_groups`: name, minimum, how many of the pods.
    """
    spec: dict[str, Any] = {"queue": queue, "minMember": minimum}
    spec["preemptibility"] = "non-preemptible" if firm else "preemptible"
    spec["subGroups"] = [{"name": one, "minMember": least} for one, least, _ in sub_groups]
    labels = [one for one, _, count in sub_groups for _ in range(count)]
    group = make("scheduling.run.ai/v2alpha2", "PodGroup", name, namespace="default", uid=name, spec=spec)
    asked = {
        "cpu": "1",
        "memory": "1G",
        **({"nvidia.com/gpu": str(gpus)} if gpus else {}),
        **(requests or {}),
    }
    pods = [
        task(
            f"{name}-{number}",
            asked,
            on=on if number < running else "",
            annotations={"pod-group-name": name, **(annotations or {})},
            labels={"kai.scheduler/subgroup-name": labels[number]} if labels else {},
            **pod,
        )
        for number in range(running + pending)
    ]
    return [group, *pods]


def task(
    name: str,
    requests: Mapping[str, str],
    *,
    on: str = "",
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    scheduler: str = "kai-scheduler",
    phase: str = "",
    deleted: str = "",
    **spec: Any,
) -> Object:
    container = {"name": "main", "image": "work:1", "resources": {"requests": dict(requests)}}
    body: dict[str, Any] = {"schedulerName": scheduler, "containers": [container], **spec}
    if on:
        body["nodeName"] = on
    return make(
        "v1",
        "Pod",
        name,
        namespace="default",
        uid=name,
        annotations=dict(annotations or {}),
        labels=dict(labels or {}),
        deleted=deleted,
        spec=body,
        status={"phase": phase or ("Running" if on else "Pending")},
    )


Part = Object | Iterable["Part"]


def _flat(part: Part) -> Iterator[Object]:
    if isinstance(part, Object):
        yield part
    else:
        for one in part:
            yield from _flat(one)


@dataclass(frozen=True)
class Trial:
    actor: int
    tasks: np.ndarray
    victims: Mapping[int, np.ndarray]


class Scene:
    """A session on objects, or lists of them, with proportion as its only plugin."""

    def __init__(
        self,
        *parts: Part,
        strict: bool = False,
        arguments: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        objects = list(_flat(parts))
        conf = {
            "actions": "allocate",
            "tiers": [{"plugins": [{"name": "proportion"}]}],
            "compat": "strict" if strict else "better",
        }
        configuration = load_kai(conf, known_actions=ACTIONS)
        self.session = Session(
            snapshot.take(Cluster.from_objects(KaiDialect(strict=strict), objects)),
            configuration,
            rules=KAI.rules_for(configuration),
            actions=ACTIONS,
            now=None,
            options=options or {},
        )
        self.plugin = Proportion(self.session, arguments or {})
        self.session.use([[(configuration.tiers[0][0], self.plugin)]])

    def queue(self, name: str) -> int:
        row = self.session.queues.index_of(name)
        assert row is not None, name
        return row

    def job(self, name: str) -> int:
        row = self.session.cluster.jobs.index_of(f"default/{name}")
        assert row is not None, name
        return row

    def task(self, name: str) -> int:
        row = self.session.cluster.tasks.index_of(f"default/{name}")
        assert row is not None, name
        return row

    def rows(self, *names: str) -> np.ndarray:
        return np.array([self.task(name) for name in names], dtype=np.int64)

    def account(self, name: str) -> Account:
        return self.plugin._books.accounts[self.queue(name)]

    def fair(self, name: str) -> float:
        """GPUs."""
        return self.account(name).fair[GPU] / 100

    def allocated(self, name: str) -> float:
        return self.account(name).allocated[GPU] / 100

    def evict(self, *names: str) -> Transaction:
        transaction = Transaction(self.session)
        transaction.evict(self.rows(*names), "")
        return transaction

    def outcome(self, actor: str, *victims: str, tasks: Sequence[str] = ()) -> "Trial":
        """What a solver would hand over: the actor's tasks, and victims by their names, job by job."""
        by_job: dict[int, list[int]] = {}
        for name in victims:
            row = self.task(name)
            by_job.setdefault(int(self.session.tasks.job[row]), []).append(row)
        rows = self.session.tasks_of(self.job(actor)) if not tasks else self.rows(*tasks)
        return Trial(self.job(actor), rows, {one: np.array(rows) for one, rows in by_job.items()})

    def first(self, *turns: tuple[str, str] | str) -> str:
        """The queue whose turn it is: each with its next job, or without one."""
        named = [(one, "") if isinstance(one, str) else one for one in turns]
        keys = {
            name: self.session.hooks.queue_turn(self.queue(name), self.job(next_) if next_ else -1, ())
            for name, next_ in named
        }
        return min(keys, key=lambda name: keys[name])


__all__ = ["Scene", "job", "node", "queue", "task"]
