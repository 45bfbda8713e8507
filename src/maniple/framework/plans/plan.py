"""A plan: the decisions of one cycle as a value, by name. It can be compared, pickled and written as JSON.

A plan holds what was taken out of the session when the cycle closed (`freezing.py`), and nothing of the session or the
cluster: whatever becomes of them, a plan stays as it is. Its parts are made when they are first read, so that a cycle
costs what it decides and not what could be said about it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache, cached_property
from typing import Any, NoReturn, get_type_hints

import msgspec
import numpy as np

from maniple.cluster.cluster import Cluster
from maniple.framework.plans import telling
from maniple.framework.plans.backlog import Backlog
from maniple.framework.plans.causes import Causes
from maniple.framework.plans.evictions import Evictions
from maniple.framework.plans.freezing import Closed, Placed
from maniple.framework.plans.news import leaves_work, news
from maniple.framework.plans.outcome import (
    Eviction,
    GpuShare,
    GroupOutcome,
    JobOutcome,
    NodeOutcome,
    QueueAccount,
    QueueHolding,
    QueueOutcome,
    Starting,
    TaskOutcome,
    WaitingPod,
)
from maniple.framework.plans.retelling import retold
from maniple.framework.points import PodVolumes
from maniple.objects.load import Problem
from maniple.objects.meta import Object


class Plan:
    """The decisions of one cycle, and what they leave behind.

    Two plans are equal if they say the same, however long they took.
    """

    problems: list[Problem]
    warnings: list[str]
    timings: dict[str, float]
    _closed: Closed

    def __init__(
        self,
        closed: Closed,
        problems: Sequence[Problem] = (),
        warnings: Sequence[str] = (),
        timings: Mapping[str, float] | None = None,
    ) -> None:
        vars(self).update(
            _closed=closed, problems=[*problems], warnings=[*warnings], timings=dict(timings or {})
        )

    # -- decisions ----------------------------------------------------------------------------------------------------

    @cached_property
    def binds(self) -> dict[str, str]:
        """Committed allocations, in the order of the decisions. Their `claims` are to be written first."""
        return self._named(self._closed.decided.bound)

    @cached_property
    def held(self) -> dict[str, str]:
        """Committed allocations whose volumes have to be bound to the node first."""
        return self._named(self._closed.decided.held)

    @cached_property
    def annotations(self) -> dict[str, dict[str, str]]:
        """What the bindings carry: the devices that were chosen, as the agents on the nodes read them."""
        decided, names = self._closed.decided, self._closed.names.tasks
        if not decided.annotations:
            return {}
        placed = [row for rows, _ in (*decided.bound, *decided.held) for row in rows.tolist()]
        return {names[row]: decided.annotations[row] for row in placed if row in decided.annotations}

    @cached_property
    def claims(self) -> dict[str, dict[str, Any]]:
        """What to write into the status of resource claims before the tasks in `binds` and `held` are bound, by claim.

        `allocation` where the claim has none yet, and the pods to add to `reservedFor`, as Kubernetes writes both.
        """
        return dict(self._closed.decided.claims)

    @cached_property
    def volumes(self) -> dict[str, PodVolumes]:
        """What has to become of the volumes of the tasks in `held` before they are bound, by task."""
        return dict(self._closed.decided.volumes)

    @cached_property
    def gpu_shares(self) -> dict[str, GpuShare]:
        """The tasks in `binds` and `held` that get parts of GPUs, and which."""
        return telling.gpu_shares(self._closed)

    @cached_property
    def evictions(self) -> list[str]:
        """The evicted pods, in order."""
        return [one.pod for one in self.evicted]

    @cached_property
    def evicted(self) -> tuple[Eviction, ...]:
        """The evicted pods, each with its job, for which job it leaves, and by which action and rule."""
        return tuple(self._evictions.all())

    @cached_property
    def eviction_notices(self) -> tuple[Eviction, ...]:
        """`evicted` for the owners of the pods: jobs, pods and queues of other namespaces are not named.

        With the rule `words.name_others`, they are.
        """
        return tuple(self._evictions.notices())

    @cached_property
    def admitted(self) -> list[str]:
        """Pods whose scheduling gate may be removed."""
        names = self._closed.names.tasks
        return [names[row] for rows in self._closed.decided.admitted for row in rows.tolist()]

    @cached_property
    def started(self) -> dict[str, datetime]:
        """Jobs that got their first place in this cycle, and when."""
        job = self._closed.names.job
        return {job(row): since for row, since in self._closed.decided.started.items()}

    @cached_property
    def stale_since(self) -> dict[str, datetime | None]:
        """Jobs whose gang broke in this cycle, and when; None for those that are whole again."""
        job = self._closed.names.job
        return {job(row): since for row, since in self._closed.decided.stale_since.items()}

    @cached_property
    def pipelined(self) -> dict[str, str]:
        """Tasks that get what is being released on a node, once it is."""
        closed = self._closed
        rows = closed.decided.pipelined
        return self._named(((rows, closed.tasks.node[rows].astype(np.intp)),))

    @cached_property
    def starting(self) -> dict[str, Starting]:
        """The tasks in `pipelined`, and which others have to leave before they start."""
        return self._evictions.starting()

    @cached_property
    def nominations(self) -> dict[str, str]:
        """Tasks for which room is being made, and the nodes where: what to write as `status.nominatedNodeName`."""
        names = self._closed.names
        return {names.tasks[row]: names.nodes[node] for row, node in self._closed.decided.nominated.items()}

    def _named(self, placed: Placed) -> dict[str, str]:
        names = self._closed.names
        return {
            names.tasks[row]: names.nodes[node]
            for rows, nodes in placed
            for row, node in zip(rows.tolist(), nodes.tolist(), strict=True)
        }

    # -- how everything stands at the end -----------------------------------------------------------------------------

    @cached_property
    def tasks(self) -> dict[str, TaskOutcome]:
        return telling.tasks(self._closed, self._causes, self._evictions)

    @cached_property
    def jobs(self) -> dict[str, JobOutcome]:
        return telling.jobs(self._closed, self._causes, self._evictions)

    def job(self, row: int) -> JobOutcome:
        """One of `jobs`, by its row, without the others."""
        (found,) = telling.jobs(self._closed, self._causes, self._evictions, (row,)).values()
        return found

    @cached_property
    def queues(self) -> dict[str, QueueOutcome]:
        return telling.queues(self._closed)

    @cached_property
    def nodes(self) -> dict[str, NodeOutcome]:
        return telling.nodes(self._closed)

    @cached_property
    def _causes(self) -> Causes:
        return Causes(self._closed, self._invalid)

    @cached_property
    def _causes_for_owners(self) -> Causes:
        return Causes(self._closed, self._invalid, discreet=not self._closed.names_others)

    @property
    def _invalid(self) -> dict[str, str]:
        return {one.object: ": ".join(filter(None, (one.field, one.message))) for one in self.problems}

    @cached_property
    def _evictions(self) -> Evictions:
        return Evictions(self._closed)

    # -- what statuses are written from -------------------------------------------------------------------------------

    @cached_property
    def groups(self) -> dict[str, GroupOutcome]:
        """Every pod group, by job."""
        return telling.groups(self._closed, self._causes_for_owners, [*self._closed.jobs.groups])

    def group(self, job: str) -> GroupOutcome | None:
        """The pod group of one job; None if it has none."""
        row = self._backlog.rows.get(job)
        if row is None:
            return None
        if job not in self._told:
            self._told.update(telling.groups(self._closed, self._causes_for_owners, [row]))
        return self._told[job]

    def groups_since(self, before: "Plan | None") -> dict[str, GroupOutcome]:
        """The pod groups whose outcome may differ from that of an earlier plan for the same cluster."""
        rows = news(self._closed, None if before is None else before._closed)
        found = telling.groups(self._closed, self._causes_for_owners, rows)
        self._told.update(found)
        return found

    def retold(self, cluster: Cluster) -> "Plan | None":
        """This plan once it was carried out and nothing has happened in the cluster but that pods started.

        None if something else has happened.
        """
        closed = retold(self._closed, cluster)
        if closed is None:
            return None
        found = Plan(closed, self.problems, self.warnings, self.timings)
        vars(found)["holdings"] = self.holdings  # what queues hold does not depend on whether it runs
        return found

    @cached_property
    def _told(self) -> dict[str, GroupOutcome]:
        """The pod groups that were asked about."""
        return {}

    @cached_property
    def waiting(self) -> dict[str, WaitingPod]:
        """The pods of jobs that are on no node yet, and why."""
        return telling.waiting(self._closed, self._causes_for_owners)

    @cached_property
    def holdings(self) -> dict[str, QueueHolding]:
        """What the jobs of every queue hold."""
        return telling.holdings(self._closed)

    @cached_property
    def accounts(self) -> dict[str, QueueAccount]:
        """Queues of a tree as they stood before a cycle that evicted pods: what explains its evictions."""
        return telling.accounts(self._closed)

    @cached_property
    def leaves_work(self) -> bool:
        """Whether the next cycle may decide more for no other reason than what this one decided."""
        return leaves_work(self._closed)

    @cached_property
    def time_matters(self) -> bool:
        """Whether the next cycle may decide otherwise for no other reason than that time has passed."""
        return telling.time_matters(self._closed)

    # -- what metrics are made from; not parts of the value ------------------------------------------------------------

    @property
    def backlog(self) -> Backlog:
        return self._backlog

    @cached_property
    def _backlog(self) -> Backlog:
        return Backlog(self._closed)

    def group_of(self, job: str) -> Object | None:
        """The pod group of a job, as it was."""
        row = self._backlog.rows.get(job)
        return self._closed.jobs.groups[row] if row is not None else None

    # -- as a value ---------------------------------------------------------------------------------------------------

    def content(self) -> dict[str, Any]:
        """All parts by name, with their records."""
        return {name: getattr(self, name) for name in _parts()}

    def to_dict(self) -> dict[str, Any]:
        """All parts as JSON has them."""
        plain: dict[str, Any] = msgspec.to_builtins(self.content())
        return plain

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "Plan":
        """The plan that `to_dict` was asked of. Raises msgspec.ValidationError where it was not."""
        return cls.of_content({name: msgspec.convert(raw[name], kind) for name, kind in _parts().items()})

    def to_json(self) -> str:
        return msgspec.json.encode(self.content()).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Plan":
        return cls.from_dict(msgspec.json.decode(text))

    @classmethod
    def of_content(cls, content: Mapping[str, Any]) -> "Plan":
        """A plan with these parts, as `content` gives them."""
        plan = cls.__new__(cls)
        vars(plan).update(content)
        return plan

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan.of_content, (self.content(),)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return self is other or all(
            getattr(self, name) == getattr(other, name) for name in _parts() if name != "timings"
        )

    __hash__ = None  # type: ignore[assignment]  # its parts are dictionaries

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a plan is a value: {name} cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a plan is a value: {name} cannot be removed")

    def __repr__(self) -> str:
        decided = f"{len(self.binds)} bound, {len(self.pipelined)} pipelined, {len(self.evictions)} evicted"
        return f"<Plan: {decided}>"


@cache
def _parts() -> dict[str, Any]:
    """The public parts of a plan and their types: every cached property, and what is given to it."""
    made = {
        name: get_type_hints(part.func)["return"]
        for name, part in vars(Plan).items()
        if isinstance(part, cached_property) and not name.startswith("_")
    }
    given = {name: kind for name, kind in get_type_hints(Plan).items() if not name.startswith("_")}
    return made | given
