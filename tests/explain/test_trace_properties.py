"""Over random clusters and recorded ones: tracing changes no plan, tables are complete, and the best node of a table is
the node of the plan."""

from datetime import UTC, datetime
from typing import Any

import pytest

from maniple.explaining import story
from maniple.framework.traces.events import TaskTried, Trace
from tests.corpus import store
from tests.explain.trace_checks import followed, problems, traced
from tests.soak.clusters import PROFILES, generate

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
CLUSTERS = 24
FOLLOWED = 2  # jobs of each cluster
EVERY = 40  # recorded cases


def _conf(conf: Any, compat: str) -> Any:
    return {**(conf or {}), "compat": compat} if compat == "strict" else conf


def _tables(trace: Trace, job: str) -> list[TaskTried]:
    return [event for event in trace.flat() if isinstance(event, TaskTried) and event.job == job]


@pytest.mark.parametrize("number", range(CLUSTERS))
@pytest.mark.parametrize("compat", ["better", "strict"])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_random_cluster_is_traced_truly(profile: str, compat: str, number: int) -> None:
    scenario = generate(profile, number)
    settings = {"profile": profile, "conf": _conf(scenario.conf, compat)}
    plain, plan, trace = traced(scenario.objects, now=NOW, **settings)
    assert [*problems(plain, plan, trace)] == []
    assert Trace.from_json(trace.to_json()) == trace
    waiting = [key for key, job in plan.jobs.items() if job.waiting]
    for job in waiting[:FOLLOWED]:
        again, own = followed(scenario.objects, job, now=NOW, **settings)
        assert again == plain
        assert _tables(own, job) == _tables(trace, job)


def test_a_promised_node_is_kept_in_so_many_words() -> None:
    """Its claim cannot be allocated yet on the node that was cleared for it."""
    scenario = generate("maniple", 20_577)
    plain, plan, trace = traced(scenario.objects, now=NOW, profile="maniple", conf=scenario.conf)
    assert [*problems(plain, plan, trace)] == []
    assert [(one.node, one.promised) for one in _tables(trace, "ml/j5")] == [("", False), ("n2", True)]
    told = [line for line in map(story.sentence, trace.flat()) if line.startswith("pod ml/j5-0 keeps n2")]
    assert told == ["pod ml/j5-0 keeps n2, where room was made for it, and waits until it can start there"]


def test_pods_that_change_places_while_they_move_are_traced_where_they_go() -> None:
    """Those that were on a node before come back to it, whatever their order."""
    scenario = generate("maniple", 20_690)
    plain, plan, trace = traced(scenario.objects, now=NOW, profile="maniple", conf=scenario.conf)
    assert [*problems(plain, plan, trace)] == []
    assert plan.pipelined["ml/j2-4"] == "n2"


@pytest.mark.long
@pytest.mark.parametrize("compat", ["better", "strict"])
@pytest.mark.parametrize("name", store.names())
def test_recorded_clusters_are_traced_truly(name: str, compat: str) -> None:
    for case in store.recorded(name)[1][::EVERY]:
        plain, plan, trace = traced(
            case["objects"],
            now=datetime.fromisoformat(case["now"]) if "now" in case else None,
            conf={**case["conf"], "compat": compat},
            profile=case["profile"],
            actions=case["actions"],
            options=case.get("options"),
        )
        assert [*problems(plain, plan, trace)] == [], case["id"]
