"""tdm: zones by the hour, whom they take, and who has to leave."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from maniple.framework.combine import Vote
from maniple.framework.reasons import Code
from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.plugins.feasibility.tdm import CLOSED_ZONE, NOT_ALLOWED, PREEMPTABLE, UNKNOWN_ZONE, ZONE, Tdm
from maniple.plugins.job_budget import MOST_UNAVAILABLE
from tests.plugins.opening import job, names, session_again, session_on, task, tasks
from tests.plugins.planning import planned
from tests.plugins.score.cells import scores, verdicts
from tests.support import group, node, pod, queue

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DAY = {"tdm.revocable-zone.day": "08:00-20:00", "tdm.revocable-zone.night": "20:00-08:00"}
NODES = [
    node("n0"),
    node("n1", labels={ZONE: "day"}),
    node("n2", labels={ZONE: "night"}),
    node("n3", labels={ZONE: "dusk"}),
    node("n4", labels={ZONE: ""}),
]
YES, NO = {PREEMPTABLE: "true"}, {PREEMPTABLE: "false"}


def opened(
    *objects: Object,
    now: datetime | None = NOON,
    strict: bool = False,
    arguments: dict[str, Any] | None = None,
    nodes: Iterable[Object] = NODES,
) -> tuple[Session, Tdm]:
    session = session_on([*nodes, queue("default"), *objects], now=now, strict=strict)
    return session, Tdm(session, DAY if arguments is None else arguments)


# -- nodes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotations", "allowed"),
    [
        ({ZONE: "*"}, True),
        ({ZONE: "day"}, False),
        ({ZONE: "day", **YES}, False),
        (YES, True),
        (NO, False),
        ({PREEMPTABLE: "maybe"}, False),
        ({}, False),
    ],
)
def test_a_zone_takes_only_tasks_that_allow_it_and_only_while_it_is_open(
    annotations: dict[str, str], allowed: bool
) -> None:
    session, plugin = opened(group("g", 1), pod("p", group="g", annotations=annotations))
    found = verdicts(session, plugin, "p")
    assert found.pop("n1", "") == ("" if allowed else NOT_ALLOWED)
    assert found == {"n2": CLOSED_ZONE, "n3": UNKNOWN_ZONE}
    expected = {"n0": 0.0, "n1": 100.0 if allowed else 0.0, "n2": 0.0, "n3": 0.0, "n4": 0.0}
    assert scores(session, plugin, "p") == expected


def test_a_label_that_says_preemptable_does_not_allow_zones() -> None:
    session, plugin = opened(group("g", 1), pod("p", group="g", labels=YES))
    assert verdicts(session, plugin, "p")["n1"] == NOT_ALLOWED


def test_no_eviction_opens_a_zone() -> None:
    session, plugin = opened(group("g", 1), pod("p", group="g"))
    verdicts(session, plugin, "p")
    texts = {CLOSED_ZONE, UNKNOWN_ZONE, NOT_ALLOWED}
    assert {r.code for r in session.reasons.reasons if r.text in texts} == {Code.UNRESOLVABLE}


@pytest.mark.parametrize(("strict", "closed"), [(False, {"n1", "n3"}), (True, {"n1", "n2", "n3"})])
def test_a_window_over_midnight_is_open_after_midnight_but_not_in_volcano(
    strict: bool, closed: set[str]
) -> None:
    session, plugin = opened(
        group("g", 1), pod("p", group="g", annotations=YES), now=NOON - timedelta(hours=9), strict=strict
    )
    assert set(verdicts(session, plugin, "p")) == closed


def test_without_a_clock_every_zone_is_closed() -> None:
    session, plugin = opened(group("g", 1), pod("p", group="g", annotations=YES), now=None)
    assert set(verdicts(session, plugin, "p")) == {"n1", "n2", "n3"}


def test_where_no_node_has_a_zone_there_is_nothing_to_ask() -> None:
    session, plugin = opened(group("g", 1), pod("p", group="g", annotations=YES), nodes=NODES[:1])
    assert (plugin.filters(), plugin.scorers()) == ([], [])
    assert session.classes is session.cluster.classes.classes


def test_equal_pods_of_both_kinds_are_placed_by_their_kind() -> None:
    work = [
        group("g", 2),
        pod("lent", {"cpu": "1"}, group="g", annotations={ZONE: "*"}),
        pod("kept", {"cpu": "1"}, group="g"),
    ]
    objects = [*NODES[:2], queue("default"), *work]
    entry = {"name": "tdm", "arguments": DAY}
    assert planned(objects, entry, now=NOON).binds == {"default/kept": "n0", "default/lent": "n1"}
    assert set(planned(objects, entry, now=NOON + timedelta(hours=9)).binds.values()) == {"n0"}


# -- jobs ---------------------------------------------------------------------------------------------------------


def test_jobs_that_are_not_preemptable_come_first_and_starve_while_a_task_waits() -> None:
    session, plugin = opened(
        group("firm", 1),
        group("soft", 1, annotations=YES),
        group("idle", 1),
        pod("a", group="firm"),
        pod("b", group="soft"),
        pod("c", group="idle", on="n0"),
    )
    firm, soft, idle = (job(session, name) for name in ("firm", "soft", "idle"))
    assert [plugin.job_order(row) for row in (firm, soft, idle)] == [0, 1, 0]
    assert [plugin.job_starving(row) for row in (firm, soft, idle)] == [True, False, False]


@pytest.mark.parametrize(("minimum", "vote"), [(2, Vote.PERMIT), (3, Vote.REJECT)])
def test_a_job_may_wait_for_releases_when_its_minimum_is_placed(minimum: int, vote: Vote) -> None:
    session, plugin = opened(
        group("g", minimum),
        pod("a", {"cpu": "1"}, group="g", on="n0"),
        pod("b", group="g"),
        pod("c", {"cpu": "1"}, group="g"),
    )
    assert plugin.job_pipelined(job(session, "g")) == vote


# -- victims ------------------------------------------------------------------------------------------------------


def running(name: str, on: str, in_group: str = "g", **more: Any) -> Object:
    return pod(name, {"cpu": "1"}, on=on, group=in_group, **more)


def asker(annotations: dict[str, str]) -> list[Object]:
    return [group("asks", 1), pod("asker", {"cpu": "1"}, group="asks", annotations=annotations)]


def test_victims_are_preemptable_running_tasks_outside_zones_as_many_as_a_job_may_lose() -> None:
    session, plugin = opened(
        *asker(NO),
        group("g", 1, annotations={MOST_UNAVAILABLE: "2"}),
        group("h", 1),
        *(running(f"g{n}", "n0") for n in range(3)),
        *(running(f"h{n}", "n4", "h") for n in range(2)),
        running("zoned", "n1"),
        running("firm", "n0", annotations=NO),
        pod("bound", group="g", on="n0", phase="Pending"),
        running("orphan", "n0", "nobody"),
    )
    candidates = tasks(session, "firm", "g2", "h1", "zoned", "bound", "orphan", "g0", "g1", "h0")
    # One of g's six tasks is not running, so that it may lose one more; h states no budget.
    assert names(session, plugin.preemptable(task(session, "asker"), candidates)) == ["g2", "h1"]


@pytest.mark.parametrize("annotations", [YES, {}, {ZONE: "*", **NO}])
def test_a_task_that_is_preemptable_or_allows_zones_gets_no_victims(annotations: dict[str, str]) -> None:
    session, plugin = opened(*asker(annotations), group("g", 1), running("g0", "n0"))
    assert not len(plugin.preemptable(task(session, "asker"), tasks(session, "g0")))


def everyone(session: Session) -> Any:
    return np.flatnonzero(session.tasks.node >= 0)


def test_closed_zones_are_cleared_once_per_period() -> None:
    objects = [
        group("g", 1, annotations={MOST_UNAVAILABLE: "100%"}),
        *(
            running(name, on)
            for name, on in (("free", "n0"), ("open", "n1"), ("closed", "n2"), ("unknown", "n3"))
        ),
        running("firm", "n2", annotations=NO),
    ]
    session, plugin = opened(*objects)
    assert names(session, plugin.victim_tasks(everyone(session))) == ["closed"]
    for seconds, expected in ((0, []), (59, []), (60, ["closed"]), (119, []), (120, ["closed"])):
        later = session_again(session.cluster, now=NOON + timedelta(seconds=seconds))
        assert names(later, Tdm(later, DAY).victim_tasks(everyone(later))) == expected


def test_the_period_is_an_argument() -> None:
    session, plugin = opened(group("g", 1), running("p", "n2"), arguments={**DAY, "tdm.evict.period": "1h"})
    plugin.victim_tasks(everyone(session))
    later = session_again(session.cluster, now=NOON + timedelta(minutes=59))
    assert not len(Tdm(later, {**DAY, "tdm.evict.period": "1h"}).victim_tasks(everyone(later)))
    assert len(Tdm(later, {**DAY, "tdm.evict.period": "59m"}).victim_tasks(everyone(later)))


def test_a_job_loses_no_more_than_it_may_over_all_closed_zones() -> None:
    arguments = {f"tdm.revocable-zone.{zone}": "20:00-21:00" for zone in ("day", "night")}
    session, plugin = opened(
        group("g", 1, annotations={MOST_UNAVAILABLE: "2"}),
        *(running(f"{on}-{n}", on) for on in ("n1", "n2") for n in range(2)),
        arguments=arguments,
    )
    assert len(plugin.victim_tasks(everyone(session))) == 2


def test_without_a_clock_nothing_is_cleared() -> None:
    session, plugin = opened(group("g", 1), running("p", "n2"), now=None)
    assert not len(plugin.victim_tasks(everyone(session)))


@pytest.mark.parametrize(("strict", "cleared"), [(False, []), (True, ["p"])])
def test_a_zone_whose_window_cannot_be_read_is_closed_but_cleared_only_by_volcano(
    strict: bool, cleared: list[str]
) -> None:
    session, plugin = opened(
        group("g", 1),
        running("p", "n1"),
        pod("w", group="g", annotations=YES),
        arguments={"tdm.revocable-zone.day": "always"},
        strict=strict,
    )
    assert verdicts(session, plugin, "w")["n1"] == CLOSED_ZONE
    assert names(session, plugin.victim_tasks(everyone(session))) == cleared
    assert any("tdm.revocable-zone.day" in warning for warning in session.warnings)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"tdm.evict.perod": "1m"}, ["tdm.evict.perod", "tdm.evict.period"]),
        ({"tdm.evict.period": 60}, ["tdm.evict.period", "text"]),
        ({"tdm.evict.period": "often"}, ["tdm.evict.period", "1m"]),
        ({"tdm.revocable-zones.x": "08:00-09:00"}, ["tdm.revocable-zones.x"]),
        ({"tdm.revocable-zone.x": 8}, ["tdm.revocable-zone.x"]),
    ],
)
def test_what_is_not_understood_is_reported(arguments: dict[str, Any], words: list[str]) -> None:
    session, _ = opened(arguments=arguments)
    assert session.warnings
    assert all(any(word in warning for warning in session.warnings) for word in words)


def test_a_cluster_without_nodes_is_no_trouble() -> None:
    session, plugin = opened(*asker(NO), group("g", 1), running("lost", "gone"), nodes=[])
    assert not len(plugin.preemptable(task(session, "asker"), tasks(session, "lost")))
    assert not len(plugin.victim_tasks(tasks(session, "lost")))
