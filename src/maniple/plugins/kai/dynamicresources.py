"""dynamicresources: claims are allocated and freed as their pods are placed and evicted.

A pod is not considered if one of its claims does not exist, if a claim has as many consumers as it can have,
or if it names a shared GPU claim without the label of its job's queue: queues would otherwise use each
other's GPUs uncounted. The argument `maxCelCacheEntries` is accepted and has no effect: compiled selectors
are kept as long as slices and classes stay the same.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from maniple.cluster.claims import claimed_gpus
from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import Status
from maniple.framework.configuration.arguments import TextArguments
from maniple.framework.criteria import Cells, Dependence, Filter
from maniple.framework.points import CLAIMS_FIRST, Event
from maniple.framework.reasons import FITS, Code, Reason, Verdicts
from maniple.framework.session import Session
from maniple.objects import dra
from maniple.objects.group_claims import group_claims
from maniple.objects.kai import KaiPodGroup
from maniple.objects.printable import printable
from maniple.plugins.feasibility.resource_claims import (
    MOST_CONSUMERS,
    NotCreated,
    NotFound,
    claim_detail,
    claims_anything,
)
from maniple.plugins.kai.holdings import Holdings
from maniple.plugins.kai.labelled import queue_label
from maniple.plugins.settings import report


class DynamicResources:
    name = "dynamicresources"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        given = TextArguments(arguments, self.name)
        given.int("maxCelCacheEntries", 10)
        report(session, given)
        self._session = session
        self._holdings = Holdings.shared(session)
        self._label = queue_label(session.options)
        self._full = session.reasons.number("a resource claim has as many consumers as it can have")
        self._refusals: list[str] = []
        self._mark()

    def _mark(self) -> None:
        """Pods of one class may differ in their own claims and in their queues."""
        session = self._session
        users = [one.number for one in session.classes if claims_anything(one)]
        if not users:
            return
        waiting = session.tasks.status == Status.PENDING
        rows = np.flatnonzero(waiting & np.isin(session.tasks.class_of, users))
        refused: dict[int, str] = {}
        for row in rows.tolist():
            text = self._refusal(row)
            if text:
                refused[row] = text
        numbers = {text: number for number, text in enumerate(dict.fromkeys(refused.values()))}
        self._refusals = list(numbers)
        session.refine(
            self.name,
            np.array(list(refused), dtype=np.int64),
            np.array([numbers[text] for text in refused.values()], dtype=np.int64),
        )

    def _refusal(self, row: int) -> str:
        session = self._session
        pod = session.cluster.tasks.pods[row]
        namespace = pod.metadata.namespace or "default"
        for own, name, claim in self._holdings.claims_of(pod):
            if not name:
                return NotCreated("no resource claim has been created yet")
            if claim is None:
                key = f"{namespace}/{printable(name)}"
                return NotFound(f"failed to get resource claim {key}: it does not exist", name)
            job = int(session.tasks.job[row])
            # A pod whose pod group does not exist has no queue, and waits for it. A PodGroup of Kubernetes' own
            # shares its claims with its own pods only.
            shared = not own and claim.key not in group_claims(pod)
            if shared and job in session.cluster.jobs.facts and claimed_gpus(claim):
                wrong = self._wrong_label(claim, job)
                if wrong:
                    return wrong
        return ""

    def _wrong_label(self, claim: dra.ResourceClaim, job: int) -> str:
        """The label is a custom of KAI's: pods of other systems' jobs may use a claim without one."""
        of_kai = isinstance(self._session.cluster.jobs.objects.get(job), KaiPodGroup)
        if not of_kai and self._label not in claim.metadata.labels:
            return ""
        queue, label = self._session.job_facts(job).queue, claim.metadata.labels.get(self._label, "")
        if not label:
            return (
                f"DRA claim {claim.metadata.name} is a shared GPU claim "
                f"but does not have a queue label ({self._label})"
            )
        if label != queue:
            return (
                f"DRA claim {claim.metadata.name} is a shared GPU claim with wrong queue label "
                f"(expected queue: {queue}, claim queue label: {label})"
            )
        return ""

    # -- answers --------------------------------------------------------------------------------------------------

    def pre_predicate(self, class_: TaskClass) -> Reason | None:
        if not claims_anything(class_):
            return None
        mark = class_.marks.get(self.name)
        if mark is not None:
            text = self._refusals[mark]
            return Reason(str(text), Code.UNRESOLVABLE, claim_detail(class_.spec.pod, text))
        for claim in self._shared_claims(class_):
            if self._holdings.is_full(claim):
                text = f"resource claim {claim.key} has reached its maximum number of consumers ({MOST_CONSUMERS})"
                return Reason(text)
        text = self._holdings.cut_short(class_)
        return Reason(text, Code.ERROR) if text else None

    def filters(self) -> list[Filter]:
        return [Filter("claim consumers", Dependence.CLUSTER, self._check_full, claims_anything)]

    def _check_full(self, class_: TaskClass, cells: Cells) -> Verdicts:
        """Tasks that are placed together fill a claim one after the other."""
        full = any(self._holdings.is_full(claim) for claim in self._shared_claims(class_))
        return np.full(cells.node_rows().shape, self._full if full else FITS, dtype=np.int16)

    def _shared_claims(self, class_: TaskClass) -> list[dra.ResourceClaim]:
        """Claims that all pods of a class name, each for itself: a PodGroup is one consumer, with all of its pods."""
        if not claims_anything(class_):
            return []
        pod = class_.spec.pod
        ours = group_claims(pod)
        found = self._holdings.claims_of(pod)
        return [claim for own, _, claim in found if not own and claim is not None and claim.key not in ours]

    def pre_bind(self, class_: TaskClass) -> str | None:
        return CLAIMS_FIRST if self._holdings.has_claims(class_) else None

    def claims_to_write(self, rows: Iterable[int]) -> dict[str, dict[str, Any]]:
        """What these tasks need written into the status of resource claims, by claim."""
        return self._holdings.to_write(rows)

    def on_allocate(self, event: Event) -> None:
        if claims_anything(event.class_):
            self._holdings.on_allocate(event)

    def on_deallocate(self, event: Event) -> None:
        if claims_anything(event.class_):
            self._holdings.on_deallocate(event)
