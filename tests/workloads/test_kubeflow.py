"""PyTorchJob, TFJob, MPIJob, XGBoostJob, PaddleJob, JAXJob and Notebook."""

from typing import Any

import pytest

from maniple.workloads.grouping import member
from maniple.workloads.model import DomainWish, FieldError, Group
from tests.workloads.support import example, groups, members

TYPE = "training.kubeflow.org/replica-type"
INDEX = "training.kubeflow.org/replica-index"
ROLE = "training.kubeflow.org/job-role"
TOPOLOGY = "kai.scheduler/topology"
REQUIRED = "kai.scheduler/topology-required-placement"
SIZE = "kai.scheduler/segment-size"
SEGMENT_REQUIRED = "kai.scheduler/segment-topology-required-placement"


def replicas(number: int, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"annotations": annotations or {}}, "spec": {"containers": [], **spec}}
    return {"replicas": number, "template": template}


def pytorch(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    roles = {"Master": replicas(1), "Worker": replicas(4)}
    metadata = {"name": "train", "namespace": "ml", "labels": labels or {}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": metadata,
        "spec": {"pytorchReplicaSpecs": roles, **spec},
    }


def group(manifest: dict[str, Any]) -> Group:
    (found,) = groups(members(manifest)).values()
    return found


def minimums(found: Group) -> dict[str, int]:
    return {one.name: one.minimum for one in found.sets}


@pytest.mark.parametrize(
    ("file", "name", "expected"),
    [
        ("pytorchjob.yaml", "pytorchjob:train", {"master": 1, "worker": 2}),
        ("tfjob.yaml", "tfjob:recommend", {"chief": 1, "ps": 1, "worker": 2}),
        ("mpijob.yaml", "mpijob:allreduce", {"launcher": 1, "worker": 3}),
        ("xgboostjob.yaml", "xgboostjob:boost", {"master": 1, "worker": 2}),
        ("paddlejob.yaml", "paddlejob:paddle", {"master": 1, "worker": 2}),
        ("jaxjob.yaml", "jaxjob:flax", {"worker": 3}),
    ],
)
def test_every_type_of_replica_is_a_set(file: str, name: str, expected: dict[str, int]) -> None:
    found = members(*example(file))
    (only,) = groups(found).values()
    assert (only.name, minimums(only), only.minimum) == (name, expected, sum(expected.values()))
    assert {one.set_name for one in found.values()} == set(expected)


def test_pods_are_labelled_as_the_operator_labels_them() -> None:
    found = members(pytorch())
    assert [*found] == ["train-master-0", *(f"train-worker-{index}" for index in range(4))]
    labels = {TYPE: "worker", INDEX: "2", "training.kubeflow.org/job-name": "train"}
    pod = {"kind": "Pod", "metadata": {"name": "train-worker-2", "namespace": "ml", "labels": labels}}
    assert member(pod, [pytorch()]) == found["train-worker-2"]


def test_an_elastic_job_starts_at_its_minimum() -> None:
    found = group(pytorch(elasticPolicy={"minReplicas": 2, "maxReplicas": 5}))
    assert (found.minimum, minimums(found)) == (2, {"master": 1, "worker": 1})


def test_the_policy_comes_before_the_elastic_minimum() -> None:
    policy = {"minAvailable": 4, "queue": "research", "priorityClass": "high"}
    found = group(
        pytorch(elasticPolicy={"minReplicas": 2}, runPolicy={"schedulingPolicy": policy}),
    )
    assert (found.minimum, found.queue, found.priority_class) == (4, "research", "high")


def test_a_label_comes_before_the_policy() -> None:
    labels = {"maniple.dev/min-member": "3", "kai.scheduler/queue": "vision"}
    policy = {"schedulingPolicy": {"minAvailable": 4, "queue": "research"}}
    found = group(pytorch(labels, runPolicy=policy))
    assert (found.minimum, minimums(found), found.queue) == (3, {"master": 1, "worker": 2}, "vision")


def test_a_minimum_above_all_replicas_is_all_of_them() -> None:
    assert group(pytorch(runPolicy={"schedulingPolicy": {"minAvailable": 9}})).minimum == 5


def test_pods_of_different_templates_agree_on_their_group() -> None:
    roles = {
        "Master": replicas(1),
        "Worker": replicas(
            2, {"kai.scheduler/queue": "vision", TOPOLOGY: "net", REQUIRED: "rack"}, priorityClassName="high"
        ),
    }
    found = group(pytorch(pytorchReplicaSpecs=roles))
    assert (found.queue, found.priority_class, found.domain) == ("vision", "high", None)
    assert [one.domain for one in found.sets] == [None, DomainWish(topology="net", required="rack")]


def test_replica_types_are_read_in_any_case() -> None:
    found = group(pytorch(pytorchReplicaSpecs={"master": replicas(1), "WORKER": replicas(2)}))
    assert minimums(found) == {"master": 1, "worker": 2}


def test_a_suspended_job_has_no_pods() -> None:
    assert not members(pytorch(runPolicy={"suspend": True}))


def test_workers_in_segments_are_sets_below_the_workers() -> None:
    said = {SIZE: "2", TOPOLOGY: "net", SEGMENT_REQUIRED: "rack"}
    roles = {"Master": replicas(1), "Worker": replicas(5, said)}
    found = members(pytorch(pytorchReplicaSpecs=roles))
    (only,) = groups(found).values()
    expected = {"master": 1, "worker": 5, "worker-0": 2, "worker-1": 2, "worker-2": 1}
    assert (minimums(only), only.minimum) == (expected, 6)
    assert {one.parent for one in only.sets[2:]} == {"worker"}
    assert {one.domain for one in only.sets[2:]} == {DomainWish(topology="net", required="rack")}
    assert found["train-worker-4"].set_name == "worker-2"


def test_a_worker_of_no_segment_is_named() -> None:
    job = pytorch(pytorchReplicaSpecs={"Worker": replicas(4, {SIZE: "2"})})
    labels = {TYPE: "worker", INDEX: "4"}
    pod = {"kind": "Pod", "metadata": {"name": "train-worker-4", "namespace": "ml", "labels": labels}}
    message = rf'^Pod ml/train-worker-4: metadata.labels.{INDEX}: names no segment of PyTorchJob train: "4"'
    with pytest.raises(FieldError, match=message):
        member(pod, [job])


def test_the_minimum_of_an_elastic_job_in_segments_is_whole_segments() -> None:
    roles = {"Master": replicas(1), "Worker": replicas(6, {SIZE: "2"})}
    found = group(pytorch(pytorchReplicaSpecs=roles, elasticPolicy={"minReplicas": 4}))
    assert found.minimum == 5
    assert minimums(found) == {"master": 1, "worker": 4, "worker-0": 2, "worker-1": 2, "worker-2": 0}


def test_a_launcher_that_waits_for_its_workers_comes_after_them() -> None:
    (manifest,) = example("mpijob.yaml")
    launcher, worker = group(manifest).sets
    assert (launcher.after, worker.after) == (("worker",), ())
    del manifest["spec"]["launcherCreationPolicy"]
    assert {one.after for one in group(manifest).sets} == {()}


def test_the_launcher_is_a_job_of_the_mpi_operator_and_a_pod_of_the_training_operator() -> None:
    (manifest,) = example("mpijob.yaml")
    workers = ["allreduce-worker-0", "allreduce-worker-1", "allreduce-worker-2"]
    assert [*members(manifest)] == ["allreduce-launcher-0", *workers]
    manifest["apiVersion"] = "kubeflow.org/v1"
    assert [*members(manifest)] == ["allreduce-launcher", *workers]


def test_pods_of_the_mpi_operator_say_their_type_as_a_role() -> None:
    (manifest,) = example("mpijob.yaml")
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "allreduce-launcher"}}
    labels = {"training.kubeflow.org/job-name": "allreduce", ROLE: "launcher"}
    pod = {
        "kind": "Pod",
        "metadata": {"name": "allreduce-launcher-8x2kq", "namespace": "ml", "labels": labels},
    }
    found = members(manifest)["allreduce-launcher-0"]
    assert member(pod, [job, manifest]) == found
    assert found.set_name == "launcher"


def test_a_launcher_without_workers_waits_for_nothing() -> None:
    (manifest,) = example("mpijob.yaml")
    del manifest["spec"]["mpiReplicaSpecs"]["Worker"]
    assert {one.after for one in group(manifest).sets} == {()}


def test_the_first_worker_leads_where_there_is_no_master() -> None:
    roles = {"Worker": replicas(2)}
    assert minimums(group(pytorch(pytorchReplicaSpecs=roles))) == {"worker": 2}


def test_the_pod_of_a_notebook_is_one_by_itself() -> None:
    found = members(*example("notebook.yaml"))
    assert [*found] == ["explore-0"]
    only = found["explore-0"].group
    assert (only.name, only.minimum, only.independent, only.queue) == ("notebook:explore", 1, True, "default")


def test_a_stopped_notebook_has_no_pods() -> None:
    (manifest,) = example("notebook.yaml")
    manifest["metadata"]["annotations"] = {"kubeflow-resource-stopped": "2026-01-01T00:00:00Z"}
    assert not members(manifest)


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        (
            {"pytorchReplicaSpecs": {}},
            "spec.pytorchReplicaSpecs",
            "must have replicas of one of Master, Worker",
        ),
        ({"pytorchReplicaSpecs": {"Boss": {}}}, "spec.pytorchReplicaSpecs.Boss", "is no type of replica"),
        (
            {"pytorchReplicaSpecs": {"Worker": {"replicas": "4"}}},
            "spec.pytorchReplicaSpecs.Worker.replicas",
            "must be a whole number",
        ),
        ({"elasticPolicy": {"minReplicas": -1}}, "spec.elasticPolicy.minReplicas", "must be a whole number"),
        (
            {"runPolicy": {"schedulingPolicy": {"queue": 3}}},
            "spec.runPolicy.schedulingPolicy.queue",
            "must be a string",
        ),
    ],
)
def test_a_wrong_field_is_named(spec: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(FieldError) as error:
        members(pytorch(**spec))
    assert str(error.value).startswith(f"PyTorchJob ml/train: {field}: {message}")


def test_a_wrong_annotation_of_a_template_is_named() -> None:
    with pytest.raises(FieldError) as error:
        members(pytorch(pytorchReplicaSpecs={"Worker": replicas(2, {SIZE: "two"})}))
    path = f"spec.pytorchReplicaSpecs.Worker.template.metadata.annotations.{SIZE}"
    assert str(error.value).startswith(f"PyTorchJob ml/train: {path}: must be a whole number")


def test_a_pod_without_a_type_is_named() -> None:
    pod = {"kind": "Pod", "metadata": {"name": "stray", "namespace": "ml"}}
    with pytest.raises(
        FieldError, match=rf"^Pod ml/stray: metadata.labels.{TYPE}: is missing: no type of rep"
    ):
        member(pod, [pytorch()])
