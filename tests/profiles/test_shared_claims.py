"""A resource claim that several pods share: its devices count once, on the node and in the queues."""

from typing import Any

import pytest

from maniple.objects.meta import Object
from maniple.planner import Plan, Planner
from tests.plugins.maniple.scenes import NOW, bound, cycle, flat, gang, kai_queue, node, why
from tests.support import make

API = "resource.k8s.io/v1"
LABEL = {"kai.scheduler/queue": "q"}
LATER = "2026-01-01T01:00:00Z"


def driver(where: str, devices: int) -> list[Object]:
    spec = {
        "driver": "gpu.example.com",
        "nodeName": where,
        "pool": {"name": where, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"d{number}"} for number in range(devices)],
    }
    return [make(API, "DeviceClass", "gpu", spec={}), make(API, "ResourceSlice", where, spec=spec)]


def claim(name: str, count: int = 1, *, on: str = "", device: int = 0, users: tuple[str, ...] = ()) -> Object:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    status: dict[str, Any] = {}
    if on:
        one = {"request": "r", "driver": "gpu.example.com", "pool": on}
        results = [{**one, "device": f"d{device + number}"} for number in range(count)]
        field = {"key": "metadata.name", "operator": "In", "values": [on]}
        selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        status["allocation"] = {"devices": {"results": results}, "nodeSelector": selector}
        status["reservedFor"] = [{"resource": "pods", "name": user, "uid": user} for user in users]
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return make(
        API, "ResourceClaim", name, namespace="default", uid=name, labels=LABEL, spec=spec, status=status
    )


def job(name: str, count: int = 1, *claims: str, **more: Any) -> list[Object]:
    named = [{"name": one, "resourceClaimName": one} for one in claims]
    return gang(name, more.pop("queue", "q"), count, kai=True, gpus=0, resourceClaims=named, **more)


def kai(*parts: Any, limit: float = -1.0, strict: bool = False) -> Plan:
    options = {"debug": True, "schedulerName": "maniple"}
    planner = Planner(conf={"compat": "strict"} if strict else None, profile="kai", options=options)
    return planner.cycle(planner.build(flat([kai_queue("q", -1, limit=limit), *parts])), now=NOW)


def to_the_letter(*parts: Any, **more: Any) -> Plan:
    return kai(*parts, strict=True, **more)


def own(*parts: Any, limit: float = -1.0) -> Plan:
    return cycle(kai_queue("q", -1, limit=limit), *parts)


ALL = pytest.mark.parametrize("plan", [kai, to_the_letter, own])


def gpus(plan: Plan, queue: str = "q") -> float:
    return plan.queues[queue].allocated.get("nvidia.com/gpu", 0)


@ALL
def test_two_running_pods_on_one_claim_use_one_device(plan: Any) -> None:
    parts = [node("n", 0), driver("n", 1), claim("c", on="n", users=("r-0", "r-1")), job("r", 2, "c", on="n")]
    outcome = plan(*parts, job("plain"))
    assert outcome.nodes["n"].idle.get("nvidia.com/gpu", 0) == 0
    assert gpus(outcome) == 1
    assert bound(outcome) == {"plain-0": "n"}


@ALL
def test_a_gang_shares_an_unallocated_claim(plan: Any) -> None:
    outcome = plan(node("n", 0), driver("n", 1), claim("c"), job("j", 4, "c"))
    assert set(bound(outcome)) == {"j-0", "j-1", "j-2", "j-3"}
    assert gpus(outcome) == 1


@ALL
def test_a_pod_that_joins_needs_no_gpu_more(plan: Any) -> None:
    parts = [node("n", 0), driver("n", 2), claim("c", 2, on="n", users=("r-0",)), job("r", 1, "c", on="n")]
    outcome = plan(*parts, job("joins", 1, "c"), limit=2)
    assert bound(outcome) == {"joins-0": "n"}
    assert gpus(outcome) == 2


@ALL
def test_no_job_gets_past_a_limit_because_another_waits_for_the_same_claim(plan: Any) -> None:
    jobs = [job("a", 1, "c"), job("b", 1, "c", created=LATER)]
    outcome = plan(node("n", 0), driver("n", 2), claim("c", 2), *jobs, limit=1)
    assert bound(outcome) == {}
    for name in ("a", "b"):
        assert "limit" in why(outcome, name) or "may have" in why(outcome, name)


@ALL
def test_claims_of_their_own_count_each(plan: Any) -> None:
    jobs = [job("a", 1, "c"), job("b", 1, "d", created=LATER)]
    outcome = plan(node("n", 0), driver("n", 2), claim("c"), claim("d"), *jobs)
    assert gpus(outcome) == 2
    assert outcome.nodes["n"].idle.get("nvidia.com/gpu", 0) == 0


@ALL
def test_who_leaves_does_not_bear_a_claim_that_another_keeps(plan: Any) -> None:
    """The older one is being deleted: the device stays in use."""
    leaves = job("a", 1, "c", on="n", deleted="2026-01-01T11:59:59Z")
    stays = job("b", 1, "c", on="n", created=LATER)
    parts = [node("n", 0), driver("n", 1), claim("c", on="n", users=("a-0", "b-0"))]
    outcome = plan(*parts, leaves, stays)
    assert outcome.nodes["n"].releasing.get("nvidia.com/gpu", 0) == 0
    assert gpus(outcome) == 1


@ALL
def test_a_pod_that_joins_is_a_gpu_task_all_the_same(plan: Any) -> None:
    """It asks for nothing but a share of the claim, and the others of its gang wait for it."""
    machine = node("n", 0, labels={"node-role.kubernetes.io/gpu-worker": ""})
    named = [{"name": "c", "resourceClaimName": "c"}]
    joins = gang("j", "q", 2, kai=True, each=[{}, {"cpu": "200"}], resourceClaims=named)
    parts = [machine, driver("n", 1), claim("c", on="n", users=("r-0",)), job("r", 1, "c", on="n")]
    assert bound(plan(*parts, joins)) == {}
