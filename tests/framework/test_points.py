"""The extension points as Volcano combines them: the switch for each answer, and how several answers combine."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest

from maniple.framework import points
from maniple.framework.configuration.loading import VOLCANO_SWITCHES, PluginOption
from maniple.framework.points import POINTS, Event, Hooks, Purpose
from maniple.framework.reasons import Reason
from tests.plugins.opening import session_on
from tests.support import node, queue

CANDIDATES = np.array([1, 2, 3], dtype=np.int64)

# behaviour/volcano.md 2.1 and 3.2: the spelling is Volcano's own
SWITCHES: dict[str, str | None] = {
    "job_order": "enableJobOrder",
    "queue_order": "enableQueueOrder",
    "pod_set_order": "enabledSubJobOrder",
    "task_order": "enableTaskOrder",
    "job_ready": "enableJobReady",
    "pod_set_ready": "enabledSubJobReady",
    "job_pipelined": "enableJobPipelined",
    "pod_set_pipelined": "enabledSubJobPipelined",
    "job_enqueueable": "enableJobEnqueued",
    "job_enqueued": "enableJobEnqueued",
    "job_starving": "enableJobStarving",
    "overused": "enabledOverused",
    "preemptive": "enablePreemptive",
    "allocatable": "enabledAllocatable",
    "pre_predicate": "enablePredicate",
    "filters": "enablePredicate",
    "scorers": "enableNodeOrder",
    "best_node": "enableBestNode",
    "hyper_node_order": "enabledHyperNodeOrder",
    "hyper_node_gradient_for_job": "enabledHyperNodeGradient",
    "hyper_node_gradient_for_pod_set": "enabledHyperNodeGradient",
    "preemptable": "enablePreemptable",
    "reclaimable": "enableReclaimable",
    "victim_tasks": "enabledVictim",
    "job_valid": None,
    "victim_queue_order": None,
    "unified_evictable": None,
    "on_allocate": None,
    "on_deallocate": None,
    "pre_bind": None,
}


class Recorder:
    """A plugin that answers one point, and remembers that it was asked."""

    name = "recorder"

    def __init__(self, point: str, answer: Any = 1) -> None:
        self.asked = 0
        self._answer = answer
        setattr(self, point, self._say)

    def _say(self, *_: Any) -> Any:
        self.asked += 1
        return self._answer


def asked(point: str, switches: dict[str, bool]) -> bool:
    """Whether a plugin with these switches has a say at a point."""
    session = session_on([node("n1"), queue("default")])
    session.use([[(PluginOption("recorder", switches), Recorder(point))]])
    return point in session.hooks.answered


@pytest.mark.parametrize("point", sorted(SWITCHES))
def test_each_point_is_turned_off_by_its_own_switch_and_no_other(point: str) -> None:
    own = SWITCHES[point]
    others: dict[str, bool] = {name: False for name in VOLCANO_SWITCHES if name != own}
    assert asked(point, {**others, **({own: True} if own else {})})
    if own is not None:
        on: dict[str, bool] = dict.fromkeys(VOLCANO_SWITCHES, True)
        assert not asked(point, {**on, own: False})


def hooks(point: str, *tiers: list[Any]) -> Hooks:
    """The hooks of a session with plugins, tier by tier, that give these answers."""
    said: list[list[Callable[..., Any]]] = [
        [lambda *_, answer=answer: answer for answer in tier] for tier in tiers
    ]
    return Hooks({point: said})


def test_everybody_in_every_tier_has_to_call_a_job_ready() -> None:
    for point in ("job_ready", "pod_set_ready"):
        assert getattr(hooks(point, [True], [True, True]), point)(0)
        assert not getattr(hooks(point, [True], [True, False]), point)(0)


@pytest.mark.parametrize("point", ["job_pipelined", "pod_set_pipelined", "job_enqueueable"])
def test_votes_end_with_the_first_rejection_or_with_the_first_tier_that_permits(point: str) -> None:
    assert not getattr(hooks(point, [1, -1]), point)(0)
    assert getattr(hooks(point, [0, 1], [-1]), point)(0)
    assert not getattr(hooks(point, [0], [-1, 1]), point)(0)
    assert getattr(hooks(point, [0], [0]), point)(0)


def test_the_first_tier_with_a_say_decides_who_starves() -> None:
    assert hooks("job_starving", [], [True], [False]).job_starving(0)
    assert not hooks("job_starving", [True, False], [True]).job_starving(0)


def test_the_first_complaint_about_a_job_or_a_class_is_the_one_that_counts() -> None:
    assert hooks("job_valid", [None], ["first", "second"]).job_valid(0) == "first"
    told = Reason("no such volume")
    said = hooks("pre_predicate", [None, told], [Reason("later")])
    assert said.pre_predicate(None) is told  # type: ignore[arg-type]  # no plugin reads the class


def test_one_plugin_is_enough_to_call_a_queue_overused() -> None:
    assert hooks("overused", [False], [True]).overused(0)
    assert not hooks("overused", [False], [False]).overused(0)


def test_a_queue_may_take_what_everybody_allows() -> None:
    assert not hooks("preemptive", [True], [False]).preemptive(0, CANDIDATES)
    several = hooks("allocatable", [5], [0, 7])
    assert several.allocatable(0, None, 9) == 0  # type: ignore[arg-type]  # no plugin reads the class


def test_all_are_told_that_a_job_was_admitted() -> None:
    told: list[int] = []
    one = Hooks({"job_enqueued": [[told.append], [told.append, told.append]]})
    one.job_enqueued(4)
    assert told == [4, 4, 4]


def test_points_of_domains_add_up_and_the_first_plugin_alone_names_them() -> None:
    scores = hooks("hyper_node_order", [np.array([1.0, 2.0])], [np.array([10.0, 0.0])])
    assert scores.hyper_node_order(ANY, np.array([0, 1])).tolist() == [11.0, 2.0]
    for point in ("hyper_node_gradient_for_job", "hyper_node_gradient_for_pod_set"):
        named = getattr(hooks(point, [[[5], [6]]], [[[7]]]), point)
        assert named(0, 3, Purpose.ALLOCATE) == [[5], [6]]
        assert getattr(Hooks({}), point)(0, 3, Purpose.ALLOCATE) == [[3]]


def test_nobody_goes_where_nobody_has_a_say() -> None:
    silent = Hooks({})
    for point in ("preemptable", "reclaimable", "unified_evictable"):
        assert getattr(silent, point)(0, CANDIDATES).tolist() == []
    assert silent.victim_tasks(CANDIDATES).tolist() == []


@pytest.mark.parametrize("point", ["preemptable", "reclaimable", "unified_evictable"])
def test_to_the_letter_gang_hides_the_fair_share_behind_it(point: str) -> None:
    """Appendix B8: a (above its minimum) and b (at it); gang, conformance, then the fair share."""
    a, b = 1, 2
    both, only_a, none = np.array([a, b]), np.array([a]), np.zeros(0, dtype=np.int64)

    def chosen(gang: Any, share: Any, *, alternatives: bool) -> list[int]:
        tiers = [[lambda *_: gang, lambda *_: both], [lambda *_: share]]
        victims: list[int] = getattr(Hooks({point: tiers}, alternatives=alternatives), point)(
            0, both
        ).tolist()
        return victims

    assert chosen(only_a, none, alternatives=True) == [a]  # the second tier is not asked
    assert chosen(none, np.array([b]), alternatives=True) == [b]  # and gang is bypassed
    better = [] if point == "reclaimable" else [a]  # for reclaim all tiers have to agree
    assert chosen(only_a, none, alternatives=False) == better
    assert chosen(none, np.array([b]), alternatives=False) == []


def test_events_reach_every_plugin_whatever_its_switches_say() -> None:
    session = session_on([node("n1"), queue("default")])
    plugins = [Recorder("on_allocate"), Recorder("on_allocate")]
    off: dict[str, bool] = dict.fromkeys(VOLCANO_SWITCHES, False)
    session.use(
        [[(PluginOption("recorder", off), plugins[0])], [(PluginOption("recorder", off), plugins[1])]]
    )
    nobody = np.zeros(0, dtype=np.int64)
    session.hooks.on_allocate(Event(None, -1, nobody, nobody.astype(np.intp)))  # type: ignore[arg-type]
    assert [plugin.asked for plugin in plugins] == [1, 1]


def test_the_table_has_every_switch_that_gates_a_point() -> None:
    """Points of our own, which tell the same in another form, go by the switch of the one that they stand beside."""
    assert {point.switch for point in POINTS.values() if point.switch} == set(SWITCHES.values()) - {None}


def test_every_point_is_asked_somewhere() -> None:
    """By attribute of the hooks, or by name."""
    package = Path(points.__file__).parents[1]
    texts = [file.read_text() for file in package.rglob("*.py") if file != Path(points.__file__)]
    asked = {name for text in texts for name in re.findall(r"""(?:hooks\.|["'])(\w+)""", text)}
    assert sorted(POINTS.keys() - asked) == []
