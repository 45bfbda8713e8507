"""KAI's stalegangeviction: broken gangs lose the rest of their tasks once their time is over."""

from datetime import timedelta
from typing import Any

import pytest

from maniple.objects.load import load
from maniple.objects.meta import Object
from maniple.planner import Plan, Planner
from tests.actions.allocate_scenes import NOW, flat, gang, node, queue
from tests.support import make


def broken(since: int | None = 120, *, firm: bool = False, needed: int = 2, **job: Any) -> list[Object]:
    """A gang of two with one running and one missing, for so many seconds if that has been noted."""
    head, *pods = gang("job", job.pop("count", 1), needed, on=["n1"], **job)
    when = NOW - timedelta(seconds=since or 0)
    noted = {"kai.scheduler/stale-podgroup-timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ")}
    spec = {"queue": "q", "minMember": needed, "preemptibility": "non-preemptible" if firm else "preemptible"}
    if groups := job.get("groups"):
        spec["subGroups"] = list(groups)
    api, name = "scheduling.run.ai/v2alpha2", head.metadata.name
    annotations = {} if since is None else noted
    return [
        make(api, "PodGroup", name, namespace="default", uid=name, annotations=annotations, spec=spec),
        *pods,
    ]


def run(*parts: Any, grace: str = "60s", now: Any = NOW) -> Plan:
    conf = {"actions": "stalegangeviction"}
    one = Planner(conf=conf, profile="kai", options={"debug": True, "stalenessGracePeriod": grace})
    return one.cycle(one.build(flat([queue("q"), node("n1"), *parts])), now=now)


@pytest.mark.parametrize(("since", "evicted"), [(59, False), (60, True), (None, False)])
def test_a_broken_gang_is_evicted_when_the_grace_period_is_over(since: int | None, evicted: bool) -> None:
    plan = run(broken(since))
    assert (plan.evictions == ["default/job-0"]) is evicted


def test_the_moment_is_noted_when_it_was_not_yet_and_forgotten_when_it_is_over() -> None:
    plan = run(broken(None))
    assert list(plan.stale_since.values()) == [NOW]
    assert not run(broken(59)).stale_since
    whole = broken(59, count=2)
    healed = run(whole[0], gang("job", 2, on=["n1", "n1"])[1:])
    assert list(healed.stale_since.values()) == [None]
    assert not healed.evictions


def test_without_a_grace_period_it_happens_at_once_and_with_a_negative_one_never() -> None:
    assert run(broken(None), grace="0s").evictions
    assert not run(broken(3600), grace="-1s").evictions


def test_it_does_not_matter_whether_the_job_may_be_preempted() -> None:
    assert run(broken(firm=True)).evictions


def test_a_gang_of_which_something_has_succeeded_or_nothing_is_left_is_not_broken() -> None:
    done = gang("job", 2, on=["n1", "n1"], phase="Succeeded")[1:]
    assert not run(broken(), done[1:]).evictions
    assert not run(broken()[:1]).evictions


def test_what_leaves_already_is_not_evicted_again() -> None:
    """Of three that are needed one runs, and one is on its way out."""
    head, runs = broken(needed=3)
    leaves = gang("job", 2, on=["n1", "n1"], deleted="2026-01-01T00:00:00Z")[2]
    assert run(head, runs, leaves).evictions == ["default/job-0"]


def test_every_pod_set_needs_its_minimum() -> None:
    groups = [{"name": "a", "minMember": 1}, {"name": "b", "minMember": 1}]
    plan = run(broken(count=2, groups=groups, roles=["a", "a"]))
    assert plan.evictions == ["default/job-0"]
    (one,) = plan.evicted
    assert one.text.endswith("(1) in sub-group a, evicting remaining pod: default/job-0")


def test_the_text_names_the_minimum_and_the_pod() -> None:
    (one,) = run(broken()).evicted
    assert one.text == (
        "Workload doesn't meet the minimum required number of pods (2), evicting remaining pod: default/job-0"
    )


def test_without_a_clock_nothing_is_evicted() -> None:
    assert not run(broken(), now=None).evictions


def test_a_gang_that_breaks_is_noticed_in_the_next_cycle_although_it_has_as_many_pods() -> None:
    """What is known of a gang with several pod sets holds while none of its pods changes."""
    groups = [{"name": "a", "minMember": 1}, {"name": "b", "minMember": 1}]
    head = make(
        "scheduling.run.ai/v2alpha2",
        "PodGroup",
        "job",
        namespace="default",
        uid="job",
        spec={"queue": "q", "minMember": 2, "subGroups": groups},
    )

    def pod(name: str, group: str) -> Object:
        raw = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": name,
                "annotations": {"pod-group-name": "job"},
                "labels": {"kai.scheduler/subgroup-name": group},
            },
            "spec": {"nodeName": "n1", "schedulerName": "kai-scheduler", "containers": [{"name": "main"}]},
            "status": {"phase": "Running"},
        }
        return load(raw)

    planner = Planner(conf={"actions": "stalegangeviction"}, profile="kai", options={"debug": True})
    cluster = planner.build(flat([queue("q"), node("n1"), head, pod("one", "a"), pod("two", "b")]))
    whole = [planner.cycle(cluster, now=NOW) for _ in range(2)]
    assert [(one.stale_since, one.evictions) for one in whole] == [({}, [])] * 2
    assert [[part.used for part in one.groups["default/job"].pod_sets] for one in whole] == [[1, 1]] * 2
    planner.delete(cluster, [pod("two", "b")])
    planner.apply(cluster, [pod("three", "a")])
    broken = planner.cycle(cluster, now=NOW)
    assert broken.stale_since == {"default/job": NOW}
    assert [part.used for part in broken.groups["default/job"].pod_sets] == [2, 0]
