"""NIM, HyperPod and Azure ML jobs, and owners that leave the decision to what they create."""

from typing import Any

import pytest

from maniple.workloads.expanding import expanded
from maniple.workloads.grouping import member
from maniple.workloads.kinds import KINDS, TABLE
from maniple.workloads.model import FieldError
from tests.workloads.support import example, groups, members

POD: dict[str, Any] = {"kind": "Pod", "metadata": {"name": "one", "namespace": "ml"}}


def owner(api_version: str, kind: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "mine", "namespace": "ml", "labels": labels or {}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def test_the_pods_of_a_nim_service_are_placed_one_by_one() -> None:
    found = members(*example("nimservice.yaml"))
    (only,) = groups(found).values()
    assert len(found) == 2
    assert (only.name, only.independent, only.queue) == ("deployment:llama", True, "default")


def test_a_nim_service_on_several_nodes_is_a_leader_worker_set() -> None:
    (manifest,) = example("nimservice.yaml")
    manifest["spec"]["multiNode"] = {"parallelism": {"pipeline": 2, "tensor": 8}}
    (found, *_) = expanded(manifest)
    assert (found["kind"], found["metadata"]["name"]) == ("LeaderWorkerSet", "llama-lws")
    assert (found["spec"]["replicas"], found["spec"]["leaderWorkerTemplate"]["size"]) == (2, 2)
    assert found["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["schedulerName"] == "maniple"


def test_a_nim_service_that_is_scaled_starts_with_the_least() -> None:
    (manifest,) = example("nimservice.yaml")
    manifest["spec"]["scale"] = {"enabled": True, "hpa": {"minReplicas": 3, "maxReplicas": 9}}
    assert len(members(manifest)) == 3


def test_a_nim_pipeline_has_the_services_that_are_enabled() -> None:
    (service,) = example("nimservice.yaml")
    services = [{"name": "a", "enabled": True, "spec": service["spec"]}, {"name": "b", "spec": {}}]
    assert [*groups(members(owner("apps.nvidia.com/v1alpha1", "NIMPipeline", services=services)))] == [
        "deployment:a"
    ]


def test_a_hyperpod_job_is_a_gang() -> None:
    found = members(*example("hyperpodpytorchjob.yaml"))
    (only,) = groups(found).values()
    assert [*found] == ["pretrain-pod-0", "pretrain-pod-1", "pretrain-pod-2"]
    assert (only.name, only.minimum, only.queue) == ("hyperpodpytorchjob:pretrain", 3, "default")
    assert {one.set_name for one in found.values()} == {"pod"}


def test_an_elastic_hyperpod_job_starts_at_its_minimum() -> None:
    (manifest,) = example("hyperpodpytorchjob.yaml")
    manifest["spec"]["elasticPolicy"] = {"minReplicas": 2, "maxReplicas": 3}
    (only,) = groups(members(manifest)).values()
    assert (only.minimum, [one.minimum for one in only.sets]) == (2, [2])


def test_a_suspended_hyperpod_job_has_no_pods() -> None:
    (manifest,) = example("hyperpodpytorchjob.yaml")
    manifest["spec"]["runPolicy"] = {"suspend": True}
    assert not members(manifest)


def test_a_pod_of_no_replicas_of_a_hyperpod_job_is_named() -> None:
    (manifest,) = example("hyperpodpytorchjob.yaml")
    with pytest.raises(
        FieldError, match=r"^Pod ml/one: metadata.name: names no replicas of HyperPodPyTorchJob pre"
    ):
        member(POD, [manifest])


def test_an_azure_ml_job_says_its_nodes() -> None:
    job = owner("amlarc.azureml.com/v1alpha1", "AmlJob", job={"options": {"envs": {"AZUREML_NODE_COUNT": 4}}})
    assert member(POD, [job]).group.minimum == 4
    del job["spec"]["job"]["options"]["envs"]["AZUREML_NODE_COUNT"]
    with pytest.raises(
        FieldError, match=r"^AmlJob ml/mine: spec.job.options.envs.AZUREML_NODE_COUNT: must be"
    ):
        member(POD, [job])


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("serving.kserve.io/v1beta1", "InferenceService"),
        ("machinelearning.seldon.io/v1", "SeldonDeployment"),
        ("kubeflow.org/v1beta1", "ScheduledWorkflow"),
        ("workspace.devfile.io/v1alpha2", "DevWorkspace"),
        ("apps.nvidia.com/v1alpha1", "NIMCache"),
        ("kubevirt.io/v1", "VirtualMachine"),
        ("example.com/v1", "Unknown"),
    ],
)
def test_what_is_below_decides_and_labels_above_count(api_version: str, kind: str) -> None:
    (job,) = example("pytorchjob.yaml")
    del job["spec"]["runPolicy"]
    above = owner(api_version, kind, {"kai.scheduler/queue": "vision"})
    pod = next(one for one in expanded(job) if one["kind"] == "Pod")
    group = member(pod, [job, above]).group
    assert (group.name, group.minimum, group.queue) == ("pytorchjob:train", 3, "vision")


def test_the_highest_of_owners_that_are_not_known_decides() -> None:
    owners = [owner("example.com/v1", "Part"), owner("example.com/v1", "Whole")]
    assert member(POD, owners).group.name == "whole:mine"


def test_an_owner_that_is_not_known_and_says_a_minimum_decides() -> None:
    (job,) = example("job.yaml")
    above = owner("example.com/v1", "Whole", {"maniple.dev/min-member": "6"})
    group = member(POD, [job, above]).group
    assert (group.name, group.minimum) == ("whole:mine", 6)


def test_a_virtual_machine_is_one_pod() -> None:
    group = member(POD, [owner("kubevirt.io/v1", "VirtualMachineInstance")]).group
    assert (group.name, group.minimum, group.independent) == ("virtualmachineinstance:mine", 1, True)


def test_no_kind_is_in_the_table_twice() -> None:
    assert len(TABLE) == len(KINDS)
