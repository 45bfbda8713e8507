"""Volcano's Job, CronJob and JobFlow."""

from typing import Any

import pytest

from maniple.workloads.expanding import expanded
from maniple.workloads.grouping import member
from maniple.workloads.model import DomainWish, FieldError, PodSet
from tests.workloads.support import example, groups, members

POD = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}


def task(name: str, replicas: int, minimum: int | None = None, **rest: Any) -> dict[str, Any]:
    found = {"name": name, "replicas": replicas, "template": POD, **rest}
    return found if minimum is None else {**found, "minAvailable": minimum}


def vcjob(*tasks: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "mpi", "namespace": "ml"},
        "spec": {"tasks": list(tasks), **spec},
    }


def after(*names: str, **rest: Any) -> dict[str, Any]:
    return {"dependsOn": {"name": list(names), **rest}}


def test_tasks_are_sets_and_all_of_their_replicas_are_needed() -> None:
    found = members(vcjob(task("ps", 1), task("worker", 3)))
    (group,) = groups(found).values()
    assert (group.name, group.minimum) == ("vcjob:mpi", 4)
    assert group.sets == (PodSet("ps", 1, most=1), PodSet("worker", 3, most=3))
    assert found["mpi-worker-2"].set_name == "worker"


def test_a_larger_minimum_that_is_said_goes_to_tasks_that_have_room() -> None:
    manifest = vcjob(task("worker", 4, 2), task("master", 1))
    manifest["metadata"]["labels"] = {"maniple.dev/min-member": "5"}
    (group,) = groups(members(manifest)).values()
    assert (group.minimum, [one.minimum for one in group.sets]) == (5, [4, 1])


def test_a_task_without_pods_holds_up_nothing() -> None:
    (group,) = groups(members(vcjob(task("a", 0), task("b", 2, **after("a"))))).values()
    assert group.sets[1].after == ()


def test_a_task_may_need_fewer() -> None:
    (group,) = groups(members(vcjob(task("ps", 1), task("worker", 3, 2)))).values()
    assert (group.minimum, group.sets[1].minimum) == (3, 2)


def test_a_minimum_below_that_of_the_tasks_counts_alone() -> None:
    found = members(vcjob(task("ps", 1), task("worker", 3), minAvailable=2))
    (group,) = groups(found).values()
    assert (group.minimum, group.sets) == (2, ())
    assert {one.set_name for one in found.values()} == {""}


def test_a_minimum_above_that_of_the_tasks_is_the_minimum_of_the_group() -> None:
    (group,) = groups(members(vcjob(task("ps", 1), task("worker", 3, 1), minAvailable=3))).values()
    assert (group.minimum, [one.minimum for one in group.sets]) == (3, [1, 1])


def test_a_task_comes_after_those_that_it_depends_on() -> None:
    (group,) = groups(members(*example("vcjob.yaml"))).values()
    assert (group.minimum, group.queue) == (3, "default")
    assert group.sets == (PodSet("worker", 2, most=4), PodSet("master", 1, after=("worker",), most=1))


def test_a_task_after_any_of_several_has_no_minimum() -> None:
    tasks = (task("a", 1), task("b", 1), task("c", 2, **after("a", "b", iteration="any")))
    for said in (0, 4):
        (group,) = groups(members(vcjob(*tasks, minAvailable=said))).values()
        assert (group.minimum, group.sets[2]) == (2, PodSet("c", 0, most=2))


def test_start_order_is_kept_with_a_low_minimum() -> None:
    tasks = (task("a", 1), task("b", 3, **after("a")))
    (group,) = groups(members(vcjob(*tasks, minAvailable=2))).values()
    assert group.sets == (PodSet("a", 1, most=1), PodSet("b", 1, after=("a",), most=3))


def test_partitions_are_sets_with_a_tier_of_their_own() -> None:
    policy = {
        "totalPartitions": 3,
        "partitionSize": 2,
        "minPartitions": 2,
        "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
    }
    found = members(vcjob(task("worker", 6, partitionPolicy=policy)))
    (group,) = groups(found).values()
    tier = DomainWish(highest_tier=1)
    assert group.minimum == 4
    assert group.sets == (
        PodSet("worker", 4, most=6),
        PodSet("worker-0", 2, parent="worker", domain=tier, most=2),
        PodSet("worker-1", 2, parent="worker", domain=tier, most=2),
        PodSet("worker-2", 0, parent="worker", domain=tier, most=2),
    )
    assert [one.set_name for one in found.values()] == [f"worker-{index // 2}" for index in range(6)]


def test_the_network_topology_is_the_domain_of_the_group() -> None:
    topology = {"mode": "soft", "highestTierName": "rack"}
    (group,) = groups(members(vcjob(task("worker", 2), networkTopology=topology))).values()
    assert group.domain == DomainWish(highest_tier_name="rack", mode="soft")


def test_the_job_says_queue_and_priority_unless_a_label_does() -> None:
    manifest = vcjob(task("worker", 2), queue="night", priorityClassName="high", schedulerName="maniple")
    (group,) = groups(members(manifest)).values()
    assert (group.queue, group.priority_class) == ("night", "high")
    manifest["metadata"]["labels"] = {"maniple.dev/queue": "day"}
    (group,) = groups(members(manifest)).values()
    assert group.queue == "day"


def test_pods_carry_the_labels_of_the_controller() -> None:
    manifest = vcjob(task("worker", 2), queue="q", schedulerName="maniple", priorityClassName="high")
    manifest["metadata"]["annotations"] = {"volcano.sh/preemptable": "true"}
    pod = expanded(manifest)[1]
    assert pod["metadata"]["labels"] == {
        "volcano.sh/task-spec": "worker",
        "volcano.sh/task-index": "1",
        "volcano.sh/job-name": "mpi",
        "volcano.sh/job-namespace": "ml",
        "volcano.sh/queue-name": "q",
    }
    assert pod["metadata"]["annotations"]["volcano.sh/preemptable"] == "true"
    assert (pod["spec"]["schedulerName"], pod["spec"]["priorityClassName"]) == ("maniple", "high")


def test_the_job_of_a_cron_job_decides() -> None:
    (group,) = groups(members(*example("vccronjob.yaml"))).values()
    assert (group.name, group.minimum) == ("vcjob:nightly-next", 2)


def test_the_job_of_a_flow_decides() -> None:
    flow = {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": "f"}}
    job = vcjob(task("worker", 2))
    pod = expanded(job)[0]
    assert member(pod, [job, flow]).group.name == "vcjob:mpi"


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (vcjob(task("a", 1), task("a", 1)), r"spec.tasks\[1\].name: must be there once"),
        (vcjob(task("a", 1, **after("b"))), r'spec.tasks\[0\].dependsOn.name: names no other part: "b"'),
        (
            vcjob(task("a", 1, **after("b")), task("b", 1, **after("a"))),
            r"spec.tasks\[0\].dependsOn.name: depends on",
        ),
        (vcjob(task("a", 1), minAvailable=2), "spec.minAvailable: must not be above the 1 replicas"),
        (vcjob(task("a", 1, 2)), r"spec.tasks\[0\]: asks for a minimum of 2 pods and has 1 replicas"),
        (vcjob(task("a", 1, partitionPolicy={"partitionSize": 0})), "partitionSize: must be 1 or more"),
        (vcjob(task("a", 1), networkTopology={"mode": "loose"}), "networkTopology.mode: must be one of"),
    ],
)
def test_a_wrong_field_is_named(manifest: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError, match=rf"^Job ml/mpi: .*{message}"):
        members(manifest)
