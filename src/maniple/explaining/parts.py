"""What each part of a gang lacks: how many of its pods could be placed now, and every node's answer to the next.

The parts are tried in the order in which the engine serves them, each with those before it in their places, in a
transaction that is undone: the same placement that decides. All parts are tried, also after one that is short.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import PODS
from maniple.cluster.statuses import ACTIVE_ALLOCATED, ON_NODE, Status
from maniple.explaining.model import Cause, NodeGroup, Part
from maniple.explaining.names import Names
from maniple.explaining.nodes import FITS, Nodes, placed_as_far_as_possible
from maniple.framework.groups.growing import grown
from maniple.framework.groups.tree import DEFAULT, PodSet
from maniple.framework.points import TaskRows
from maniple.framework.reasons import POD, Reason
from maniple.framework.sentences import asked
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.printable import printable
from maniple.placement.engine import Mask, Placement

_GROUPS_LISTED = 4


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """A part that was tried: the task that found no node, if one did not, and why no node is considered for it."""

    part: Part
    class_: TaskClass | None = None
    task: int = -1
    refusal: Reason | None = None
    alike: bool = True  # all of its next pods request the same
    unshared: bool = False  # nothing else holds room on the nodes that suit it
    spread: str = ""  # what is free in all, if that is enough for the next pod, only not on one node


def roles_of(session: Session, job: int) -> list[PodSet]:
    """The parts that the roles of a job need, where these are a condition on one pod set."""
    divided = session.job_facts(job).role_minimums and not session.rules.gangs.roles_are_pod_sets
    return grown(session, job, undivided=False).all_pod_sets() if divided else []


class Parts:
    """The parts of jobs in one session."""

    def __init__(self, session: Session, placement: Placement, names: Names) -> None:
        self._session = session
        self._placement = placement
        self.nodes = Nodes(session, placement, names)

    def wanted(self, job: int) -> list[tuple[PodSet, TaskRows]]:
        """By part, the tasks that the job needs next: up to its minimum, or one more."""
        groups = self._session.groups
        pod_sets = roles_of(self._session, job) or groups.of(job)
        return [(one, self._next(one)) for one in groups.in_order(pod_sets)]

    def rows(self, job: int) -> TaskRows:
        """All of these together."""
        parts = [rows for _, rows in self.wanted(job)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    def _next(self, one: PodSet) -> TaskRows:
        session = self._session
        waits = (session.tasks.status[one.rows] == Status.PENDING) & ~session.tasks.gated[one.rows]
        rows = session.in_task_order(one.rows[waits])
        lacks = one.minimum - session.groups.count(one, ACTIVE_ALLOCATED)
        return rows[: max(lacks, 1)]

    def tried(self, job: int, within: Mask | None = None) -> list[Tried]:
        transaction = Transaction(self._session)
        try:
            return [self._try(transaction, one, rows, within) for one, rows in self.wanted(job)]
        finally:
            transaction.discard()

    def room(self, job: int, within: Mask) -> int:
        """How many of the job's next pods these nodes hold together."""
        transaction = Transaction(self._session)
        try:
            rows = self.rows(job).tolist()
            return placed_as_far_as_possible(self._session, self._placement, transaction, rows, within)
        finally:
            transaction.discard()

    def _try(self, transaction: Transaction, one: PodSet, rows: TaskRows, within: Mask | None) -> Tried:
        session = self._session
        found = placed_as_far_as_possible(session, self._placement, transaction, rows.tolist(), within)
        stuck = int(rows[found]) if found < len(rows) else -1
        class_ = (
            session.classes[int(session.tasks.class_of[stuck if stuck >= 0 else rows[0]])]
            if len(rows)
            else None
        )
        refusal = session.hooks.pre_predicate(class_) if class_ is not None and stuck >= 0 else None
        groups = self.nodes.groups(class_, within) if class_ is not None and stuck >= 0 else ()
        waits = int((session.tasks.status[one.rows] == Status.PENDING).sum())
        made = Part(
            name="" if one.name == DEFAULT else printable(one.name),
            minimum=one.minimum,
            have=session.groups.count(one, ACTIVE_ALLOCATED) - found,
            found=found,
            waiting=waits + found,
            request=self._request(class_) if class_ is not None else "",
            nodes=len(session.nodes) if within is None else int(within.sum()),
            empty=self.nodes.room_when_empty(class_) if class_ is not None and stuck >= 0 else None,
            groups=groups,
        )
        if class_ is None or stuck < 0:
            return Tried(made, class_, stuck, refusal)
        return Tried(
            part=made,
            class_=class_,
            task=stuck,
            refusal=refusal,
            alike=len(np.unique(session.tasks.class_of[rows])) == 1,
            unshared=self._unshared(class_, one.job),
            spread=self._spread(class_, groups),
        )

    def _request(self, class_: TaskClass) -> str:
        """What a pod requests; devices of its claims count as a resource in some profiles, which it does not name."""
        spec, resources = class_.spec.pod.spec, self._session.resources
        named = {name for one in (*spec.containers, *spec.init_containers) for name in one.resources.requests}
        claimed = [
            dimension
            for dimension in np.flatnonzero(class_.request).tolist()
            if spec.resource_claims and dimension != PODS and resources.names[dimension] not in named
        ]
        request = class_.request.copy()
        request[claimed] = 0
        stated = asked(resources, request, class_.share)
        names = ", ".join(printable(one.resource_claim_name or one.name) for one in spec.resource_claims)
        return f"{stated} and the devices of resource claim {names}" if names else stated

    def _unshared(self, class_: TaskClass, job: int) -> bool:
        """Whether only the gang itself, and DaemonSets, have pods on the nodes that suit it."""
        tasks = self._session.tasks
        there = ON_NODE[tasks.status] | (tasks.status == Status.PIPELINED)
        rows = np.flatnonzero((tasks.node >= 0) & there & (tasks.job != job))
        rows = rows[~self._placement.judging.shut(class_)[tasks.node[rows]]]
        return all(self.nodes.is_of_daemon_set(row) for row in rows.tolist())

    def _spread(self, class_: TaskClass, groups: Sequence[NodeGroup]) -> str:
        """What the nodes that suit a pod have free together, if that would be enough for it."""
        session = self._session
        if not any(one.kind == "InsufficientResources" for one in groups):
            return ""
        suited = ~self._placement.judging.shut(class_)
        idle = np.maximum(session.nodes.future_idle(), 0)[:, suited]
        if not (idle.sum(axis=1) >= class_.request).all():
            return ""
        short = [
            dimension
            for dimension in np.flatnonzero(class_.request).tolist()
            if dimension != PODS and not (idle[dimension] >= class_.request[dimension]).any()
        ]
        written = session.resources.written
        listed = [
            f"{session.resources.names[d]} {written(d, int(idle[d].sum()))} is free on all of them together"
            f" and at most {written(d, int(idle[d].max()))} on one"
            for d in short
        ]
        return " and ".join(listed) or "no node has enough of all of them"

    # -- causes -------------------------------------------------------------------------------------------------------

    def cause(self, tried: Tried) -> Cause:
        """Why a part is short."""
        if tried.refusal is not None and tried.refusal.detail is not None:
            detail = tried.refusal.detail
            return Cause(
                kind=detail.kind,
                sentence=f"{self._lead(tried)}: {detail.phrase}",
                lasting=True,
                subject=detail.subject,
                part=tried.part.name,
            )
        binding = self._binding(tried)
        kind = self._kind(tried, binding)
        return Cause(
            kind=kind,
            sentence=f"{self._lead(tried)}: {self._answers(tried)}",
            lasting=binding.lasting or kind == "GangTooLarge",
            subject=binding.subject,
            part=tried.part.name,
            needed={"pods": str(max(tried.part.minimum - tried.part.have, 1)), "request": tried.part.request},
            there={"pods": str(tried.part.found)},
        )

    def _lead(self, tried: Tried) -> str:
        part, where = tried.part, f" of {tried.part.name}" if tried.part.name else ""
        if part.minimum > 1 and part.short:
            have = f" ({part.have} have theirs)" if part.have else ""
            each = "each requesting" if tried.alike else "the next one requesting"
            return (
                f"gang needs {part.minimum} pods{where} placed together{have}, {each} {part.request}; "
                f"{part.found or 'none'} can be placed now"
            )
        return f"no node fits pod {self._session.task_key(tried.task)}{where}, which requests {part.request}"

    def _binding(self, tried: Tried) -> NodeGroup:
        """The largest group of nodes that could take the pod if something ended; else the largest of all."""
        groups = [one for one in tried.part.groups if one.kind != FITS]
        passing = [one for one in groups if not one.lasting]
        best = max(passing or groups, key=lambda one: one.count, default=None)
        return best or NodeGroup(kind="NoNodes", phrase="there is no node", count=0, lasting=True)

    def _kind(self, tried: Tried, binding: NodeGroup) -> str:
        if binding.kind != "InsufficientResources":
            return binding.kind
        if self._is_too_large(tried):
            return "GangTooLarge"
        return "Fragmented" if tried.spread else "Full"

    def _is_too_large(self, tried: Tried) -> bool:
        """Whether the gang would not fit even if nothing else ran on the nodes that suit it."""
        part = tried.part
        if not part.short or all(one.lasting for one in part.groups):
            return False
        return tried.unshared or (part.empty is not None and part.have + part.empty < part.minimum)

    def _answers(self, tried: Tried) -> str:
        part = tried.part
        if not part.nodes:
            return "there is no node"
        listed = [
            f"{one.count} node{'' if one.count == 1 else 's'}: {one.phrase}"
            for one in part.groups
            if one.kind != FITS
        ]
        if tried.refusal is not None and not listed:
            return printable(tried.refusal.text.replace(POD, self._session.task_key(tried.task)))
        more = f"; and {len(listed) - _GROUPS_LISTED} more reasons" if len(listed) > _GROUPS_LISTED else ""
        text = "; ".join(listed[:_GROUPS_LISTED]) + more
        too_large = self._kind(tried, self._binding(tried)) == "GangTooLarge"
        if too_large and tried.unshared:
            text += "; nothing else runs on the nodes that suit these pods"
        elif too_large:
            text += f"; even if they were empty, the nodes that suit these pods have room for {part.empty}"
        elif tried.spread:
            text += f"; {tried.spread}"
        return text


__all__ = ["Parts", "Tried"]
