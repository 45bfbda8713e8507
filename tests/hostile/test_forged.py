"""What the scheduler notes on objects and reads again, written by a tenant: it gains nothing at the cost of others."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from maniple.objects.pod import MOVES_TO
from maniple.planner import Plan, Planner
from tests.hostile.objects import HEALTHY, HOSTILE, Raw, Writer

NOW = datetime(2026, 11, 17, tzinfo=UTC)
KAI_GROUPS = pytest.mark.parametrize("profile", ["kai", "maniple"])
LATER, EARLIER = "2099-01-01T00:00:00Z", "2026-11-01T00:00:00Z"


def planned(profile: str, *objects: Any) -> Plan:
    planner = Planner(profile=profile)
    return planner.cycle(planner.build([one for part in objects for one in part]), now=NOW)


def running(writer: Writer, name: str, node: int = 0, **fields: Any) -> Raw:
    """A pod of the tenant, by default with a whole node."""
    given = {"requests": {"cpu": "64"}, **fields}
    pod = writer.pod(f"{name}-0", name, nodeName=f"node-{node:04}", **given)
    return {**pod, "status": {"phase": "Running", "startTime": EARLIER}}


def healthy_job(writer: Writer, queue: str = "kind", **requests: str) -> list[Raw]:
    return [
        writer.group("needs", 1, HEALTHY, queue),
        writer.pod("needs-0", "needs", HEALTHY, requests=requests or {"cpu": "64"}),
    ]


# -- where a pod moves to ----------------------------------------------------------------------------------------------


def leaving(writer: Writer, *, forged: bool) -> list[Raw]:
    """A pod that terminates, and is to be placed on the other node next."""
    pod = running(writer, "bad", annotations={MOVES_TO: "node-0001"} if forged else {})
    pod["metadata"]["deletionTimestamp"] = LATER
    if not forged:
        condition = {"type": MOVES_TO, "status": "True", "message": "node-0001"}
        pod["status"] = {**pod["status"], "conditions": [condition]}
    return [writer.group("bad"), pod]


@KAI_GROUPS
def test_an_annotation_keeps_no_second_node_for_a_pod_that_terminates(profile: str) -> None:
    writer = Writer(profile)
    forged = planned(profile, writer.healthy(2, 0), leaving(writer, forged=True), healthy_job(writer))
    assert forged.binds == {f"{HEALTHY}/needs-0": "node-0001"}
    own = planned(profile, writer.healthy(2, 0), leaving(writer, forged=False), healthy_job(writer))
    assert own.binds == {}, "its status does, which tenants cannot write"


# -- times -------------------------------------------------------------------------------------------------------------


def served_by_reclaim(profile: str, started: str, oldest: str) -> bool:
    """Whether a queue gets back what a job has that is said to have started at this time."""
    writer = Writer(profile, kai=True)
    queues = [writer.queue("top"), writer.queue("kind")]
    none = {"quota": 0, "limit": -1, "overQuotaWeight": 1}
    mean = writer.queue(
        "mean", reclaimMinRuntime="1h", resources=dict.fromkeys(("cpu", "memory", "gpu"), none)
    )
    group = writer.group("bad")
    group["metadata"]["annotations"] = {"kai.scheduler/last-start-timestamp": started}
    pods = [running(writer, "bad", requests={"cpu": "64", "nvidia.com/gpu": "8"})]
    pods[0]["status"] = {"phase": "Running", "startTime": oldest}
    nodes = [one for one in writer.healthy(1, 0) if one["kind"] == "Node"]
    job = healthy_job(writer, cpu="64", **{"nvidia.com/gpu": "8"})
    plan = planned(profile, queues, [mean, group], nodes, pods, job)
    return plan.evictions == [f"{HOSTILE}/bad-0"]


def test_a_start_in_the_future_does_not_protect_a_job_whose_pods_have_run_long_enough() -> None:
    soon = (NOW - timedelta(minutes=10)).isoformat()
    assert served_by_reclaim("kai", EARLIER, EARLIER)
    assert not served_by_reclaim("kai", soon, soon), "a job that has just started is protected"
    assert served_by_reclaim("kai", LATER, EARLIER)
    assert served_by_reclaim("kai", soon, EARLIER)


@KAI_GROUPS
def test_half_a_gang_that_is_said_to_break_in_the_future_breaks_now(profile: str) -> None:
    writer = Writer(profile, kai=True)
    group = writer.group("bad", 2)
    group["metadata"]["annotations"] = {"kai.scheduler/stale-podgroup-timestamp": LATER}
    plan = planned(profile, writer.healthy(1, 0), [group, running(writer, "bad")])
    assert [since for job, since in plan.stale_since.items() if job.startswith(f"{HOSTILE}/bad")] == [NOW]


# -- devices -----------------------------------------------------------------------------------------------------------


@KAI_GROUPS
def test_labels_hold_no_more_shared_devices_than_a_pod_requests(profile: str) -> None:
    writer = Writer(profile, kai=True)
    labels = {f"runai-gpu-group/{number}": f"device-{number}" for number in range(8)}
    fields: dict[str, Any] = {"requests": {"cpu": "1"}, "annotations": {"gpu-fraction": "0.01"}}
    pod = running(writer, "bad", labels=labels, **fields)
    job = healthy_job(writer, cpu="1", **{"nvidia.com/gpu": "7"})
    plan = planned(profile, writer.healthy(1, 0), [writer.group("bad"), pod], job)
    assert plan.binds == {f"{HEALTHY}/needs-0": "node-0000"}


@KAI_GROUPS
def test_a_pod_with_the_label_of_a_reservation_pod_takes_the_gpus_that_it_requests(profile: str) -> None:
    writer = Writer(profile, kai=True)
    gpus = {"cpu": "1", "nvidia.com/gpu": "8"}
    pod = writer.pod("bad-0", "bad", requests=gpus, labels={"app": "kai-resource-reservation"})
    plan = planned(profile, writer.healthy(1, 0), [writer.group("bad"), pod], healthy_job(writer, **gpus))
    assert len(plan.binds) == 1
