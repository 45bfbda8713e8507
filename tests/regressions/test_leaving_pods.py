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


def open_queue(profile: str) -> Raw:
    """The queue `q`, without limits."""
    if profile != "kai":
        return shapes.queue("volcano", "q", {"weight": 1})
    open_ = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    return shapes.queue("kai", "q", {"resources": {"gpu": open_, "cpu": open_, "memory": open_}})


@pytest.mark.parametrize("profile", ["maniple", "kai", "volcano"])
def test_a_place_that_a_pod_is_leaving_is_claimed(profile: str) -> None:
    node = shapes.node("n", {"cpu": "8", "memory": "8Gi", "pods": "1"}, {}, [])
    objects = [node, open_queue(profile), *job(profile, "old", "n"), *job(profile, "new")]
    plan = maniple.plan(objects, conf=EVICTING if profile == "volcano" else None, profile=profile, now=START)
    assert plan.binds == {}
    assert plan.pipelined == {f"{SPACE}/new-0": "n"}


@pytest.mark.parametrize("profile", ["maniple", "kai", "volcano"])
def test_room_is_held_while_a_pod_that_the_job_avoids_leaves_the_rack(profile: str) -> None:
    """The pod leaves another node than the one that is kept for the job: until it is gone no filter lets the job in."""
    racks = [
        shapes.node(name, {"cpu": cpu, "memory": "8Gi", "pods": "9"}, {"rack": "r"}, [])
        for name, cpu in (("a", "1"), ("b", "8"))
    ]
    new, other = job(profile, "new"), job(profile, "other")
    for _, pod in (new, other):
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "8"
    term = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"job": "old"}}}
    avoids = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    new[1]["spec"]["affinity"] = {"podAntiAffinity": avoids}
    new[1]["status"]["nominatedNodeName"] = "b"
    old = job(profile, "old", "a")
    old[1]["metadata"]["labels"] = {"job": "old"}
    objects = [*racks, open_queue(profile), *old, *new, *other]
    plan = maniple.plan(objects, conf=EVICTING if profile == "volcano" else None, profile=profile, now=START)
    assert plan.binds == {}
    assert plan.pipelined == {f"{SPACE}/new-0": "b"}


def part(name: str, number: int, node: str = "", gpus: str = "") -> Raw:
    """A pod of Volcano's job `name` in profile maniple: half a GPU, unless it asks for something else."""
    notes = {"scheduling.k8s.io/group-name": name, **({} if gpus else {"gpu-fraction": "0.5"})}
    asked = {"cpu": "1", **({"nvidia.com/gpu": gpus} if gpus else {})}
    spec: Raw = {
        "schedulerName": "maniple",
        "containers": [{"name": "main", "resources": {"requests": asked}}],
    }
    pod = shapes.thing(
        "v1", "Pod", f"{name}-{number}", SPACE, annotations=notes, spec=spec, status={"phase": "Pending"}
    )
    if node:
        spec["nodeName"], pod["status"]["phase"] = node, "Running"
        pod["metadata"]["deletionTimestamp"] = stamp(START)
    return pod


def gang(name: str, minimum: int, age: int) -> Raw:
    spec = {"queue": "q", "minMember": minimum}
    return shapes.thing(shapes.GROUP_API["volcano"], "PodGroup", name, SPACE, age, spec=spec, status={})


def test_a_shared_device_that_a_waiting_gang_claims_is_not_given_to_the_next_job() -> None:
    """The gang has two parts on an idle device and waits for a third; the job behind it finds nothing left."""
    room = {"cpu": "8", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "1"}
    objects = [
        *(shapes.node(name, room, {"nvidia.com/gpu.memory": "40000"}, []) for name in ("a", "b")),
        shapes.queue("volcano", "q", {"weight": 1}),
        *(gang("old", 1, 900), part("old", 0, "b", gpus="1")),
        *(gang("first", 3, 600), *(part("first", number) for number in range(3))),
        *(gang("next", 2, 300), *(part("next", number) for number in range(2))),
    ]
    plan = maniple.plan(objects, now=START, options={"debug": True})
    assert set(plan.pipelined) == {f"{SPACE}/first-{number}" for number in range(3)}
    assert plan.binds == {}
