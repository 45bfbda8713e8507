"""Room that a pod is still leaving can be claimed, also where it is the number of pods that is short."""

import pytest

import maniple
from tests.soak import shapes
from tests.soak.amounts import Raw
from tests.soak.shapes import SPACE, START, stamp

EVICTING = {
    "actions": "enqueue, allocate, backfill",
    "tiers": [{"plugins": [{"name": "gang"}, {"name": "predicates"}]}],
}


def job(profile: str, name: str, node: str = "") -> list[Raw]:
    system = "kai" if profile == "kai" else "volcano"
    note = "pod-group-name" if system == "kai" else "scheduling.k8s.io/group-name"
    status: Raw = {"status": {"phase": "Running" if node else "Inqueue"}} if system == "volcano" else {}
    group = shapes.thing(
        shapes.GROUP_API[system], "PodGroup", name, SPACE, spec={"queue": "q", "minMember": 1}, **status
    )
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    spec: Raw = {"schedulerName": shapes.SCHEDULERS[profile], "containers": [container]}
    pod = shapes.thing(
        "v1", "Pod", f"{name}-0", SPACE, annotations={note: name}, spec=spec, status={"phase": "Pending"}
    )
    if node:
        spec["nodeName"], pod["status"]["phase"] = node, "Running"
        pod["metadata"]["deletionTimestamp"] = stamp(START)
    return [group, pod]


@pytest.mark.parametrize("profile", ["maniple", "kai", "volcano"])
def test_a_place_that_a_pod_is_leaving_is_claimed(profile: str) -> None:
    open_ = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    queue = (
        shapes.queue("kai", "q", {"resources": {"gpu": open_, "cpu": open_, "memory": open_}})
        if profile == "kai"
        else shapes.queue("volcano", "q", {"weight": 1})
    )
    node = shapes.node("n", {"cpu": "8", "memory": "8Gi", "pods": "1"}, {}, [])
    objects = [node, queue, *job(profile, "old", "n"), *job(profile, "new")]
    plan = maniple.plan(objects, conf=EVICTING if profile == "volcano" else None, profile=profile, now=START)
    assert plan.binds == {}
    assert plan.pipelined == {f"{SPACE}/new-0": "n"}
