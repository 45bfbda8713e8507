"""Why a job that runs is where it is, and why one that is evicted leaves: for which job, and at what cost."""

from datetime import timedelta

import msgspec
import pytest

from maniple.explaining.diagnosis import Diagnosis
from maniple.explaining.model import Explanation
from maniple.planner import Planner
from tests.explain.reasons import EVICTING
from tests.explain.scene import JOB, Scene

PROFILES = ["volcano", "kai", "maniple"]


def explained(scene: Scene, name: str = JOB) -> Explanation:
    planner = Planner(conf=scene.conf, profile=scene.profile, options=scene.options)
    cluster = planner.build(scene.objects)
    before = planner.cycle(cluster, scene.now)
    found = Diagnosis(planner, cluster, scene.now).of(name)
    assert planner.cycle(cluster, scene.now) == before, "what is tried is undone"
    assert msgspec.json.decode(msgspec.json.encode(found))["state"] == found.state
    return found


@pytest.mark.parametrize("profile", PROFILES)
def test_a_running_job_says_what_speaks_for_its_node(profile: str) -> None:
    scene = Scene(profile)
    scene.nodes(3)
    scene.node("tainted", spec={"taints": [{"key": "gpu", "effect": "NoSchedule"}]})
    scene.queue()
    scene.job(pods=2, on=("n0",))
    found = explained(scene)
    assert found.state == "running"
    (place,) = found.places
    assert (place.node, place.pods) == ("n0", 2)
    assert place.why.startswith("ml/job-0: 3 of 4 nodes would take it now (1 had untolerated taint")
    assert "points" in place.why


@pytest.mark.parametrize("profile", PROFILES)
def test_a_node_that_is_the_only_one_needs_no_points(profile: str) -> None:
    scene = Scene(profile)
    scene.nodes(2)
    scene.queue()
    scene.job("other", pods=1, requests={"cpu": "8"}, on=("n1",))
    scene.job(pods=1, requests={"cpu": "8"}, on=("n0",))
    (place,) = explained(scene).places
    assert place.why == "ml/job-0: 1 of 2 nodes would take it now (1 Insufficient cpu): n0"


@pytest.mark.parametrize("profile", PROFILES)
def test_a_job_that_is_placed_in_this_cycle_says_so_of_the_node_that_it_gets(profile: str) -> None:
    scene = Scene(profile)
    scene.nodes(2)
    scene.queue()
    scene.job(pods=1)
    found = explained(scene)
    assert found.state == "placed"
    (place,) = found.places
    assert f"{place.node} has" in place.why
    assert "would have more points" not in place.why


@pytest.mark.parametrize("profile", PROFILES)
def test_an_evicted_job_says_for_which_job_by_which_rule_and_what_it_cost(profile: str) -> None:
    scene = Scene(profile)
    scene.conf = EVICTING if profile == "volcano" else None
    scene.priority("high", 90)
    scene.nodes(1)
    scene.queue()
    scene.job("old", pods=2, minimum=1, on=("n0",), requests={"cpu": "4"})
    scene.job(requests={"cpu": "4"}, priority="high")
    for raw in scene.objects:
        if raw["kind"] == "Pod" and raw["spec"].get("nodeName"):
            raw["status"]["startTime"] = f"{scene.now - timedelta(hours=3):%Y-%m-%dT%H:%M:%SZ}"
    found = explained(scene, "ml/old")
    (one,) = found.departures
    assert (one.node, one.by, one.action) == ("n0", JOB, "preempt")
    assert (one.seconds, one.lost["cpu"]) == (3 * 3600, 4 * 3 * 3600)
    assert JOB in one.why
    assert found.sentence.endswith("up to 3h 0m of work is lost: 12 core hours")


@pytest.mark.parametrize("profile", PROFILES)
def test_a_pod_that_was_evicted_before_and_is_not_gone_says_what_was_written_on_it(profile: str) -> None:
    scene = Scene(profile)
    scene.nodes(2)
    scene.queue()
    scene.job(pods=2, minimum=1, on=("n0",))
    leaving = next(raw for raw in scene.objects if raw["metadata"]["name"] == "job-1")
    leaving["metadata"]["deletionTimestamp"] = f"{scene.now:%Y-%m-%dT%H:%M:%SZ}"
    condition = {"type": "DisruptionTarget", "status": "True", "message": "makes room for job ml/first"}
    leaving["status"]["conditions"] = [condition]
    (one,) = explained(scene).departures
    assert (one.pod, one.why) == ("ml/job-1", "makes room for job ml/first")
