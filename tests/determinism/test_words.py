"""Messages do not depend on the order of objects either: pending reasons are equal in every profile."""

from random import Random
from typing import Any

import pytest

import maniple
from tests.determinism.plans import shuffled

Raw = dict[str, Any]
PROFILES = ("maniple", "kai", "volcano")
CLUSTERS = 12  # of each profile
KAI, VOLCANO = "scheduling.run.ai", "scheduling.volcano.sh/v1beta1"
EXTENDED = (
    "rdma/hca",
    "nvidia.com/gpu",
    "example.com/fpga",
    "amd.com/gpu",
    "ephemeral-storage",
    "hugepages-2Mi",
)
SCHEDULERS = {"maniple": "maniple", "kai": "kai-scheduler", "volcano": "volcano"}


def made(api: str, kind: str, name: str, spec: Raw, namespace: str = "", **metadata: Any) -> Raw:
    scope = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **scope, **metadata}, "spec": spec}


def some(random: Random, most: int) -> dict[str, str]:
    """Amounts of a few extended resources, in any order."""
    names = random.sample(EXTENDED, random.randint(0, 4))
    return {name: str(random.randint(1, most)) for name in names}


def machine(number: int, random: Random) -> Raw:
    room = {"cpu": str(random.choice((2, 4))), "memory": "4Gi", "pods": "4", **some(random, 4)}
    taints = [{"key": key, "effect": "NoSchedule"} for key in random.sample("xyz", random.randint(0, 1))]
    ready = "False" if random.random() < 0.1 else "True"
    spec: Raw = {"taints": taints, "unschedulable": random.random() < 0.1}
    node = made("v1", "Node", f"n{number}", spec, labels={"zone": random.choice("ab")})
    conditions = [{"type": "Ready", "status": ready}]
    return {**node, "status": {"allocatable": room, "capacity": room, "conditions": conditions}}


def queue(name: str, kai: bool, random: Random) -> Raw:
    if not kai:
        capability = {"cpu": "6", **some(random, 6)} if random.random() < 0.5 else {}
        found = made(VOLCANO, "Queue", name, {"weight": 1, "capability": capability})
        return {**found, "status": {"state": "Open"}}
    bounds = {
        kind: {"quota": random.choice((-1, 1, 2)), "limit": random.choice((-1, 2, 3)), "overQuotaWeight": 1}
        for kind in ("gpu", "cpu", "memory")
    }
    return made(f"{KAI}/v2", "Queue", name, {"resources": bounds})


def job(name: str, kai: bool, profile: str, queues: list[str], random: Random) -> list[Raw]:
    size = random.randint(1, 3)
    spec = {"queue": random.choice([*queues, "gone"]), "minMember": random.randint(1, size + 1)}
    group = made(f"{KAI}/v2alpha2" if kai else VOLCANO, "PodGroup", name, spec, "ml")
    annotation = {"pod-group-name" if kai else "scheduling.k8s.io/group-name": name}
    asked = {"cpu": str(random.randint(1, 3)), **some(random, 5)}
    body: Raw = {"schedulerName": SCHEDULERS[profile]}
    body["containers"] = [{"name": "c", "image": "i", "resources": {"requests": asked}}]
    if random.random() < 0.3:
        body["nodeSelector"] = {"zone": random.choice("abc")}
    if random.random() < 0.2:
        claims = [{"claimName": one} for one in random.sample(("here", "lost", "gone"), 2)]
        body["volumes"] = [{"name": one["claimName"], "persistentVolumeClaim": one} for one in claims]
    pods = [
        made("v1", "Pod", f"{name}-{n}", body, "ml", annotations=annotation, uid=f"{name}-{n}")
        for n in range(size)
    ]
    return [group, *pods]


def cluster(profile: str, number: int) -> list[Raw]:
    random = Random(f"{profile} {number}")
    kinds = {"maniple": (False, True), "kai": (True,), "volcano": (False,)}[profile]
    queues = [queue(f"q{n}", random.choice(kinds), random) for n in range(3)]
    names = [one["metadata"]["name"] for one in queues]
    jobs = [one for n in range(8) for one in job(f"j{n}", random.choice(kinds), profile, names, random)]
    claims = [
        made("v1", "PersistentVolumeClaim", name, {"volumeName": name}, "ml") for name in ("here", "lost")
    ]
    return [*(machine(n, random) for n in range(5)), *queues, *jobs, *claims]


def words(profile: str, objects: list[Raw], conf: Raw | None) -> Raw:
    plan = maniple.plan(objects, profile=profile, conf=conf)
    return {
        "jobs": {name: (one.reasons, one.conditions) for name, one in plan.jobs.items()},
        "tasks": {name: (one.status, one.reason) for name, one in plan.tasks.items()},
        "evictions": plan.evictions,
        "warnings": sorted(plan.warnings),
    }


@pytest.mark.parametrize("number", range(CLUSTERS))
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("conf", [None, {"compat": "strict"}], ids=["default", "strict"])
def test_why_jobs_wait_does_not_depend_on_the_order_of_objects(
    profile: str, number: int, conf: Raw | None
) -> None:
    objects = cluster(profile, number)
    expected = words(profile, objects, conf)
    assert any(reasons for reasons, _ in expected["jobs"].values())
    for order in range(3):
        assert words(profile, shuffled(objects, Random(order)), conf) == expected
