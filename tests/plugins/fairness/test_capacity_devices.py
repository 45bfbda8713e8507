"""capacity: quotas on devices that pods get through resource claims."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from maniple.framework.combine import Vote
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.plugins.fairness.capacity import Capacity
from tests.plugins.fairness.capacity_scenes import child, opened, room
from tests.plugins.opening import job, tasks
from tests.support import group, make, pod, queue

CPU = {"cpu": "1"}
GPUS = "deviceclass/gpu.com"
MEMORY = "memory.deviceclass/gpu.com"


def claim(
    name: str, count: int = 1, *, of: str = "gpu.com", capacity: Mapping[str, str] | None = None
) -> Object:
    exactly: dict[str, Any] = {"deviceClassName": of, "count": count}
    if capacity:
        exactly["capacity"] = {"requests": dict(capacity)}
    return claim_of(name, {"name": "r", "exactly": exactly})


def claim_of(name: str, *requests: Mapping[str, Any], version: str = "v1") -> Object:
    spec = {"devices": {"requests": list(requests)}}
    return make(f"resource.k8s.io/{version}", "ResourceClaim", name, namespace="default", spec=spec)


def user(name: str, *claims: str, of: str = "j", on: str = "", role: str = "") -> Object:
    """A pod that uses claims by their names."""
    used = [{"name": f"c{i}", "resourceClaimName": used} for i, used in enumerate(claims)]
    return pod(name, CPU, group=of, on=on, role=role, resourceClaims=used)


def maker(name: str, made: str = "", *, of: str = "j", on: str = "") -> Object:
    """A pod that gets a claim from a template; `made` is the claim, if it exists yet."""
    statuses = [{"name": "c", "resourceClaimName": made}] if made else []
    return pod(
        name,
        CPU,
        group=of,
        on=on,
        resourceClaims=[{"name": "c", "resourceClaimTemplateName": "template"}],
        status={"resourceClaimStatuses": statuses},
    )


def quota(*objects: Object, strict: bool = False, **limits: Any) -> tuple[Session, Capacity]:
    """One queue with a job `j` and these limits, written with _ for . and __ for /."""
    capability = {key.replace("__", "/").replace("_", "."): value for key, value in limits.items()}
    return opened(queue("q", capability=capability), group("j", 1, queue="q"), *objects, strict=strict)


def place(session: Session, *names: str) -> Transaction:
    transaction = Transaction(session)
    for name in names:
        transaction.allocate(tasks(session, name), np.zeros(1, dtype=np.intp))
    return transaction


def test_devices_count_up_to_the_capability() -> None:
    session, plugin = quota(
        claim("had", 2),
        user("old", "had", on="n1"),
        claim("c1"),
        user("p1", "c1"),
        claim("c2", 2),
        user("p2", "c2"),
        deviceclass__gpu_com="3",
    )
    assert room(session, plugin, "p1") == 1
    assert room(session, plugin, "p2") == 0


def test_events_hold_and_give_back() -> None:
    session, plugin = quota(
        claim("c1"), user("p1", "c1"), claim("c2"), user("p2", "c2"), deviceclass__gpu_com="1"
    )
    transaction = place(session, "p1")
    assert room(session, plugin, "p2") == 0
    transaction.discard()
    assert room(session, plugin, "p2") == 1


def test_an_evicted_task_gives_its_devices_back() -> None:
    session, plugin = quota(
        claim("c1"), user("p1", "c1", on="n1"), claim("c2"), user("p2", "c2"), deviceclass__gpu_com="1"
    )
    assert room(session, plugin, "p2") == 0
    Transaction(session).evict(tasks(session, "p1"), "test")
    assert room(session, plugin, "p2") == 1


def test_a_class_that_the_capability_does_not_mention_is_not_limited() -> None:
    session, plugin = quota(claim("c", 100, of="nic.com"), user("p", "c"), deviceclass__gpu_com="1")
    assert room(session, plugin, "p") == 1


def test_a_claim_that_several_tasks_use_is_charged_once() -> None:
    session, plugin = quota(
        claim("c", 2), user("p1", "c"), user("p2", "c"), user("p3", "c"), deviceclass__gpu_com="2"
    )
    assert room(session, plugin, "p1", count=3) == 3
    transaction = place(session, "p1", "p2")
    assert room(session, plugin, "p3") == 1
    transaction.rollback(1)  # one user is left
    assert room(session, plugin, "p3") == 1


def test_a_shared_claim_is_given_back_by_its_last_user() -> None:
    session, plugin = quota(
        claim("c", 2),
        user("p1", "c", on="n1"),
        user("p2", "c", on="n1"),
        claim("d"),
        user("p3", "d"),
        deviceclass__gpu_com="2",
    )
    transaction = Transaction(session)
    transaction.evict(tasks(session, "p1"), "test")
    assert room(session, plugin, "p3") == 0
    transaction.evict(tasks(session, "p2"), "test")
    assert room(session, plugin, "p3") == 1


def test_claims_from_a_template_are_charged_each() -> None:
    session, plugin = quota(
        *(claim(f"c{i}", 2) for i in range(4)),
        *(maker(f"p{i}", f"c{i}") for i in range(4)),
        deviceclass__gpu_com="5",
    )
    assert room(session, plugin, "p0", count=4) == 2


def test_a_claim_that_does_not_exist_yet_counts_for_nothing() -> None:
    session, plugin = quota(maker("p0"), maker("p1", "later"), user("p2", "never"), deviceclass__gpu_com="1")
    assert [room(session, plugin, name) for name in ("p0", "p1", "p2")] == [1, 1, 1]


def test_the_older_form_of_a_claim_is_read() -> None:
    old = claim_of("c", {"name": "r", "deviceClassName": "gpu.com", "count": 2}, version="v1beta1")
    session, plugin = quota(old, user("p", "c"), deviceclass__gpu_com="1")
    assert room(session, plugin, "p") == 0


@pytest.mark.parametrize(
    "request_",
    [
        {"name": "r", "exactly": {"deviceClassName": "gpu.com", "allocationMode": "All"}},
        {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "gpu.com", "count": 9}]},
    ],
)
def test_requests_of_unknown_size_do_not_count_and_are_reported(request_: Mapping[str, Any]) -> None:
    session, plugin = quota(claim_of("c", request_), user("p", "c"), deviceclass__gpu_com="1")
    assert room(session, plugin, "p") == 1
    assert session.warnings == ["capacity: request 'r' of claim default/c does not count for device quotas"]


def test_huge_counts_do_not_wrap_around() -> None:
    huge = 2**63 - 1
    session, plugin = quota(
        claim("had", huge),
        user("old", "had", on="n1"),
        claim("c", huge),
        user("p", "c"),
        deviceclass__gpu_com="1",
    )
    assert room(session, plugin, "p") == 0


# -- capacities of devices ------------------------------------------------------------------------------------------


def test_capacities_are_counted_per_device() -> None:
    session, plugin = quota(
        claim("c", 2, capacity={"memory": "10Gi"}),
        user("p", "c"),
        claim("d", 2, capacity={"memory": "11Gi"}),
        user("r", "d"),
        memory_deviceclass__gpu_com="20Gi",
    )
    assert room(session, plugin, "p") == 1
    assert room(session, plugin, "r") == 0


def test_a_dimension_that_the_capability_does_not_name_is_not_to_be_had() -> None:
    session, plugin = quota(
        claim("c", capacity={"memory": "1Gi"}),
        user("p", "c"),
        claim("d"),
        user("r", "d"),
        deviceclass__gpu_com="9",
    )
    assert room(session, plugin, "p") == 0
    assert room(session, plugin, "r") == 1


def scene(**arguments: bool) -> int:
    session, plugin = opened(
        queue("q", capability={GPUS: "1"}),
        group("j", 1, queue="q"),
        claim("c", 1, capacity={"memory": "1Gi"}),
        user("p", "c"),
        arguments={f"capacity.{key}": value for key, value in arguments.items()},
    )
    return room(session, plugin, "p")


def test_both_kinds_of_quota_can_be_turned_off() -> None:
    assert scene() == 0
    assert scene(DRAConsumableCapacityEnable=False) == 1
    assert scene(DynamicResourceAllocationEnable=False) == 1


def test_a_count_of_zero_allows_none_unless_strict() -> None:
    objects = [claim("c"), user("p", "c")]
    session, plugin = quota(*objects, deviceclass__gpu_com="0")
    assert room(session, plugin, "p") == 0
    session, plugin = quota(*objects, deviceclass__gpu_com="0", strict=True)
    assert room(session, plugin, "p") == 1


# -- ancestors ---------------------------------------------------------------------------------------------------------


def test_ancestors_quotas_count_also_for_queues_that_have_none() -> None:
    session, plugin = opened(
        queue("root"),
        child("a", capability={GPUS: "2"}),
        child("b", "a"),
        child("c", "a"),
        group("j", 1, queue="b"),
        group("k", 1, queue="c"),
        claim("had"),
        user("old", "had", on="n1"),
        claim("c1"),
        user("p1", "c1", of="k"),
        claim("c2", 2),
        user("p2", "c2", of="k"),
        user("p3", "had", of="k"),
        tree=True,
    )
    assert [room(session, plugin, name) for name in ("p1", "p2", "p3")] == [1, 0, 1]
    place(session, "p1")
    assert room(session, plugin, "p3") == 1  # a shares that claim already


# -- the door ----------------------------------------------------------------------------------------------------------


def door(*objects: Object, strict: bool = False, **spec: Any) -> tuple[Session, Capacity]:
    return opened(
        queue("q", capability={GPUS: "2"}),
        group("j", phase="Pending", queue="q", **spec),
        *objects,
        strict=strict,
    )


def test_a_job_with_only_devices_to_ask_for_is_checked_too() -> None:
    session, plugin = door(claim("c", 3), user("p", "c"))
    assert plugin.job_enqueueable(job(session, "j")) is Vote.REJECT
    assert session.refusals.jobs[job(session, "j")] == [
        "queue resource quota insufficient: insufficient deviceclass/gpu.com"
    ]


def test_the_minimum_is_that_of_the_first_tasks() -> None:
    pods = [claim("c1", 2), user("p1", "c1"), claim("c2", 2), user("p2", "c2")]
    session, plugin = door(*pods, minimum=1)
    assert plugin.job_enqueueable(job(session, "j")) is Vote.PERMIT
    session, plugin = door(*pods, minimum=2)
    assert plugin.job_enqueueable(job(session, "j")) is Vote.REJECT


def test_minimums_of_roles_say_how_many_tasks_count() -> None:
    pods = [
        *(claim(f"c{i}") for i in range(3)),
        *(user(f"w{i}", f"c{i}", role="worker") for i in range(3)),
    ]
    session, plugin = door(*pods, minTaskMember={"worker": 2})
    assert plugin.job_enqueueable(job(session, "j")) is Vote.PERMIT
    session, plugin = door(*pods, minTaskMember={"worker": 3})
    assert plugin.job_enqueueable(job(session, "j")) is Vote.REJECT


def test_a_shared_claim_is_wanted_once_unless_strict() -> None:
    pods = [claim("c", 2), user("p1", "c"), user("p2", "c")]
    session, plugin = door(*pods, minimum=2)
    assert plugin.job_enqueueable(job(session, "j")) is Vote.PERMIT
    session, plugin = door(*pods, minimum=2, strict=True)
    assert plugin.job_enqueueable(job(session, "j")) is Vote.REJECT


def test_devices_kept_for_jobs_that_were_let_in_count_at_the_door() -> None:
    session, plugin = door(
        claim("c1"),
        user("p1", "c1"),
        group("k", phase="Pending", queue="q"),
        claim("c2", 2),
        user("p2", "c2", of="k"),
    )
    assert plugin.job_enqueueable(job(session, "k")) is Vote.PERMIT
    plugin.job_enqueued(job(session, "j"))
    assert plugin.job_enqueueable(job(session, "k")) is Vote.REJECT
    assert room(session, plugin, "p2") == 1  # only at the door


def test_they_count_in_later_sessions_as_well_unless_strict() -> None:
    objects = [
        group("in", phase="Inqueue", queue="q"),
        claim("c1"),
        user("p1", "c1", of="in"),
        claim("c2", 2),
        user("p2", "c2"),
    ]
    session, plugin = door(*objects)
    assert plugin.job_enqueueable(job(session, "j")) is Vote.REJECT
    session, plugin = door(*objects, strict=True)
    assert plugin.job_enqueueable(job(session, "j")) is Vote.PERMIT


def test_a_claim_that_is_kept_for_one_job_is_not_kept_for_another_again() -> None:
    session, plugin = door(
        claim("c", 2),
        user("p1", "c"),
        group("k", phase="Pending", queue="q"),
        user("p2", "c", of="k"),
    )
    plugin.job_enqueued(job(session, "j"))
    assert plugin.job_enqueueable(job(session, "k")) is Vote.PERMIT


def test_a_claim_that_the_queue_holds_already_is_not_wanted_again() -> None:
    session, plugin = door(
        claim("c", 2),
        user("p1", "c"),
        group("k", queue="q", phase="Running"),
        user("p2", "c", of="k", on="n1"),
    )
    assert plugin.job_enqueueable(job(session, "j")) is Vote.PERMIT
