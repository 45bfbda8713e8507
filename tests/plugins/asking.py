"""Run one filter or scorer on one pod, with the result by node name; objects are raw, as Kubernetes writes
them."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.framework.criteria import Cells, Dependence, Filter, Scorer
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.load import load
from maniple.plugins.feasibility.predicates import Predicates
from maniple.plugins.score.nodeorder import NodeOrder
from tests.plugins.opening import session_on, task, use

Raw = dict[str, Any]
NAMESPACE = "work"


def node(name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> Raw:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": spec,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(name: str, on: str = "", labels: Mapping[str, str] | None = None, **spec: Any) -> Raw:
    body = {"schedulerName": "volcano", "containers": [{"name": "main"}], **spec}
    if on:
        body["nodeName"] = on
    metadata = {"name": name, "namespace": NAMESPACE, "uid": name, "labels": dict(labels or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": body,
        "status": {"phase": "Running" if on else "Pending"},
    }


def other(api: str, kind: str, name: str, *, metadata: Mapping[str, Any] | None = None, **fields: Any) -> Raw:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **(metadata or {})}, **fields}


class World:
    """A session with both plugins on raw objects."""

    def __init__(
        self, raws: Iterable[Raw], arguments: Mapping[str, Any] | None = None, *, strict: bool = False
    ) -> None:
        self.session: Session = session_on([load(raw) for raw in raws], strict=strict)
        self.predicates = Predicates(self.session, arguments or {})
        self.node_order = NodeOrder(self.session, {"mostrequested.weight": 1})
        use(self.session, self.predicates, self.node_order)
        self.filters = {one.name: one for one in self.session.hooks.filters()}
        self.scorers = {one.name: one for one in self.session.hooks.scorers()}

    def class_of(self, name: str) -> TaskClass:
        row = task(self.session, name, NAMESPACE)
        class_: TaskClass = self.session.classes[self.session.tasks.class_of[row]]
        return class_

    def refusal(self, name: str) -> str:
        reason = self.session.hooks.pre_predicate(self.class_of(name))
        return "" if reason is None else reason.text

    def verdicts(self, filter_name: str, pod_name: str) -> dict[str, str]:
        """The words of a filter by node; empty where the pod may go."""
        one, class_ = self.filters[filter_name], self.class_of(pod_name)
        names = self.session.nodes.facts.names
        if not one.applies(class_):
            return dict.fromkeys(names, "")
        numbers = one.check(class_, Cells(self.session.nodes, class_))
        texts = ["" if n == 0 else self.session.reasons.reasons[n].text for n in numbers.tolist()]
        return dict(zip(names, texts, strict=True))

    def scores(self, scorer_name: str, pod_name: str, among: Iterable[str] | None = None) -> dict[str, int]:
        """The points of a scorer by candidate, without its weight; all zero when it has no opinion."""
        one, class_ = self.scorers[scorer_name], self.class_of(pod_name)
        index = self.session.nodes.facts.index
        names = sorted(index if among is None else among)
        rows = np.array([index[name] for name in names], dtype=np.intp)
        if not one.applies(class_) or not len(rows):
            return dict.fromkeys(names, 0)
        everywhere = one.depends is Dependence.STATIC
        raw = one.raw(class_, Cells(self.session.nodes, class_, slice(None) if everywhere else rows))
        raw = raw[rows] if everywhere else raw
        points = raw if one.normalise is None else one.normalise(raw)
        assert all(value == int(value) for value in points.tolist())
        return {name: int(value) for name, value in zip(names, points.tolist(), strict=True)}

    def applying(self, pod_name: str) -> list[Filter | Scorer]:
        """The criteria that concern a pod."""
        class_ = self.class_of(pod_name)
        every: list[Filter | Scorer] = [*self.filters.values(), *self.scorers.values()]
        return [one for one in every if one.applies(class_)]

    def place(self, pod_name: str, node_name: str, transaction: Transaction | None = None) -> Transaction:
        transaction = transaction or Transaction(self.session)
        rows = np.array([task(self.session, pod_name, NAMESPACE)])
        transaction.allocate(rows, np.array([self.session.nodes.facts.index[node_name]], dtype=np.intp))
        return transaction

    def evict(self, pod_name: str, transaction: Transaction | None = None) -> Transaction:
        transaction = transaction or Transaction(self.session)
        transaction.evict(np.array([task(self.session, pod_name, NAMESPACE)]), "test")
        return transaction


def where(verdicts: Mapping[str, str]) -> set[str]:
    """The nodes that a filter lets a pod onto."""
    return {name for name, text in verdicts.items() if not text}
