"""Scores and verdicts of one class over nodes, for tests of plugins that have them."""

from typing import Any

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.framework.criteria import Cells
from maniple.framework.session import Session
from tests.plugins.opening import task


def class_of(session: Session, name: str) -> TaskClass:
    return session.classes[int(session.tasks.class_of[task(session, name)])]


def scores(session: Session, plugin: Any, name: str, *, extra: int = 0) -> dict[str, float]:
    """The sum of a plugin's scores by node, with `extra` tasks of the pod's class imagined on each."""
    class_ = class_of(session, name)
    total = np.zeros(len(session.nodes))
    for scorer in plugin.scorers():
        if scorer.applies(class_):
            total += scorer.raw(class_, Cells(session.nodes, class_, extra=extra)) * scorer.weight
    return dict(zip(session.nodes.facts.names, total.tolist(), strict=True))


def verdicts(session: Session, plugin: Any, name: str, *, extra: int = 0) -> dict[str, str]:
    """By node, the first reason to refuse; nodes that are fine are left out."""
    class_ = class_of(session, name)
    refused: dict[str, str] = {}
    for each in plugin.filters():
        if each.applies(class_):
            found = each.check(class_, Cells(session.nodes, class_, extra=extra))
            for node, number in zip(session.nodes.facts.names, found.tolist(), strict=True):
                if number:
                    refused.setdefault(node, session.reasons.reasons[number].text)
    return refused
