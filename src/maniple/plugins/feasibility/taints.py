"""TaintToleration, NodeUnschedulable and NodeConditions: a node rejects pods that do not tolerate its taints.

Filter: every taint with effect NoSchedule or NoExecute is tolerated; an unschedulable node counts as if it
had the taint `node.kubernetes.io/unschedulable:NoSchedule`, and one in a bad condition as if it had the taint
that the node controller is about to add (`node.kubernetes.io/not-ready` and so on). Score: the fewer
PreferNoSchedule taints are not tolerated the better, in proportion to the worst candidate. Work is per
distinct list of taints.
"""

from collections.abc import Sequence

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.framework.criteria import Cells, Dependence, Filter, NodeRows, Scorer, Scores
from maniple.framework.reasons import FITS, Code, Detail, Verdicts
from maniple.framework.session import Session
from maniple.objects.core import Taint, Toleration
from maniple.objects.selectors import tolerates, untolerated
from maniple.plugins.feasibility.node_affinity import Mask
from maniple.plugins.normalise import reversed_by_maximum

UNTOLERATED = "node(s) had untolerated taint(s)"
CORDONED = "node(s) were unschedulable"

CORDON_DETAIL = Detail("NodeUnschedulable", "cordoned (spec.unschedulable)", "spec.unschedulable")
KEEPING_OUT = ("NoSchedule", "NoExecute")
_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_DISCOURAGING = "PreferNoSchedule"
# By type and status of a condition, its taint, and the message about the node.
_CONDITIONS = {
    ("Ready", "False"): ("not-ready", "node(s) were not ready"),
    ("Ready", "Unknown"): ("unreachable", "node(s) were unreachable"),
    ("MemoryPressure", "True"): ("memory-pressure", "node(s) were short of memory"),
    ("DiskPressure", "True"): ("disk-pressure", "node(s) were short of disk space"),
    ("PIDPressure", "True"): ("pid-pressure", "node(s) were short of process ids"),
    ("NetworkUnavailable", "True"): ("network-unavailable", "node(s) had no network"),
}
_WORDS = {
    f"node.kubernetes.io/{name}": text.removeprefix("node(s) ").removeprefix("were ")
    for name, text in _CONDITIONS.values()
}


def written(taint: Taint) -> str:
    """A taint as kubectl writes it."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


class Taints:
    """Both filters and the score, for one session."""

    def __init__(self, session: Session) -> None:
        self._facts = session.nodes.facts
        self._untolerated = session.reasons.number(UNTOLERATED, Code.UNRESOLVABLE)
        self._cordoned = session.reasons.number(CORDONED, Code.UNRESOLVABLE)
        effects = {taint.effect for taints in self._facts.taint_sets for taint in taints}
        self._keep_out = not effects.isdisjoint(KEEPING_OUT)
        self._discourage = _DISCOURAGING in effects
        self._any_cordoned = bool(self._facts.unschedulable.any())
        self._bad_conditions = _bad_conditions(session)

    def filter(self) -> Filter:
        return Filter(
            "TaintToleration", Dependence.STATIC, self._check, lambda _: self._keep_out, detail=self._detail
        )

    def cordon_filter(self) -> Filter:
        return Filter(
            "NodeUnschedulable",
            Dependence.STATIC,
            self._check_cordon,
            lambda _: self._any_cordoned,
            detail=lambda _class, _node: CORDON_DETAIL,
        )

    def condition_filter(self) -> Filter:
        return Filter(
            "NodeConditions",
            Dependence.STATIC,
            self._check_conditions,
            lambda _: bool(self._bad_conditions),
            detail=self._condition_detail,
        )

    def scorer(self, weight: int) -> Scorer:
        """Without such a taint anywhere all nodes score alike, which decides nothing."""
        return Scorer(
            "TaintToleration",
            weight,
            Dependence.STATIC,
            self._raw,
            reversed_by_maximum,
            lambda _: self._discourage,
        )

    def tolerated_mask(self, tolerations: Sequence[Toleration]) -> Mask:
        """Nodes without a taint that rejects such a pod."""
        kept_out = [
            untolerated(tolerations, taints, KEEPING_OUT) is not None for taints in self._facts.taint_sets
        ]
        return ~np.array(kept_out, dtype=np.bool_)[self._facts.taint_codes]

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        fits = self.tolerated_mask(class_.spec.pod.spec.tolerations)
        return np.where(fits, FITS, self._untolerated).astype(np.int16)[cells.rows]

    def _detail(self, class_: TaskClass, node: int) -> Detail:
        """The taints that a pod does not tolerate."""
        tolerations = class_.spec.pod.spec.tolerations
        taints = [
            one
            for one in self._facts.taint_sets[self._facts.taint_codes[node]]
            if one.effect in KEEPING_OUT and not tolerates(tolerations, one)
        ]
        if any(one.key == _CORDON.key for one in taints):
            return CORDON_DETAIL
        listed = ", ".join(written(one) for one in taints)
        word = "taint" if len(taints) == 1 else "taints"
        verb = "is" if len(taints) == 1 else "are"
        return Detail("Taint", f"{word} {listed} {verb} not tolerated", listed)

    def _condition_detail(self, class_: TaskClass, node: int) -> Detail:
        taints = (taint for taint, _, rows in self._bad_conditions if node in rows)
        keys = [one.key for one in taints if not tolerates(class_.spec.pod.spec.tolerations, one)]
        words = [_WORDS.get(key, key) for key in keys]
        return Detail("NodeNotReady", " and ".join(words), ", ".join(keys))

    def _check_cordon(self, class_: TaskClass, cells: Cells) -> Verdicts:
        verdict = np.zeros(len(self._facts), dtype=np.int16)
        if not tolerates(class_.spec.pod.spec.tolerations, _CORDON):
            verdict[self._facts.unschedulable] = self._cordoned
        return verdict[cells.rows]

    def _check_conditions(self, class_: TaskClass, cells: Cells) -> Verdicts:
        verdict = np.zeros(len(self._facts), dtype=np.int16)
        tolerations = class_.spec.pod.spec.tolerations
        for taint, number, rows in self._bad_conditions:
            if not tolerates(tolerations, taint):
                some = rows[verdict[rows] == FITS]
                verdict[some] = number
        return verdict[cells.rows]

    def _raw(self, class_: TaskClass, cells: Cells) -> Scores:
        tolerations = class_.spec.pod.spec.tolerations
        counts = [
            sum(taint.effect == _DISCOURAGING and not tolerates(tolerations, taint) for taint in taints)
            for taints in self._facts.taint_sets
        ]
        return np.array(counts, dtype=np.float64)[self._facts.taint_codes][cells.rows]


def _bad_conditions(session: Session) -> list[tuple[Taint, int, NodeRows]]:
    """For each bad condition of some nodes: its taint, the number of the reason, and the nodes."""
    rows = session.nodes.facts.by_condition
    return [
        (
            Taint(key=f"node.kubernetes.io/{name}", effect="NoSchedule"),
            session.reasons.number(text, Code.UNRESOLVABLE),
            rows[state],
        )
        for state, (name, text) in _CONDITIONS.items()
        if state in rows
    ]
