"""TrainJob, with its runtime."""

from typing import Any

import pytest

from maniple.workloads.expanding import expanded
from maniple.workloads.kinds import TABLE
from maniple.workloads.model import FieldError, Owner, Raw
from tests.workloads.support import example, groups, members

STEP = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}


def job_set(runtime: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    """The JobSet of a TrainJob; what comes of it is the matter of that kind."""

    def find(owner: Owner) -> Raw | None:
        return runtime if (owner.kind, owner.name) == (runtime["kind"], runtime["metadata"]["name"]) else None

    found = next(iter(expanded(job, TABLE, find)))
    assert (found["kind"], found["metadata"]["ownerReferences"][0]["kind"]) == ("JobSet", "TrainJob")
    return found


def replicated(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    pod = {"spec": {"containers": [{"name": "node", "image": "busybox"}]}}
    return {
        "name": name,
        "template": {"metadata": {"labels": labels or {}}, "spec": {"template": pod, **spec}},
    }


def spec_of(found: dict[str, Any], number: int = 0) -> dict[str, Any]:
    spec: dict[str, Any] = found["spec"]["replicatedJobs"][number]["template"]["spec"]
    return spec


def test_a_train_job_is_the_job_set_of_its_runtime_with_its_own_nodes() -> None:
    runtime, job = example("trainjob.yaml")
    found = job_set(runtime, job)
    assert found["metadata"]["name"] == "tune-model"
    spec = spec_of(found)
    assert (spec["parallelism"], spec["completions"]) == (3, 3)
    (container,) = spec["template"]["spec"]["containers"]
    assert container == {"name": "node", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    assert "parallelism" not in runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]


def test_the_job_set_decides_and_labels_of_the_train_job_count() -> None:
    found = members(*example("trainjob.yaml"))
    (only,) = groups(found).values()
    assert (only.name, only.minimum, only.queue, len(found)) == ("jobset:tune-model", 3, "default", 3)


def test_without_a_number_of_its_own_the_runtime_says_how_many_nodes() -> None:
    runtime, job = example("trainjob.yaml")
    del job["spec"]["trainer"]["numNodes"]
    runtime["spec"]["mlPolicy"]["numNodes"] = 2
    assert spec_of(job_set(runtime, job))["parallelism"] == 2


def test_jobs_that_prepare_the_training_stay_as_they_are() -> None:
    runtime, job = example("trainjob.yaml")
    runtime["spec"]["template"]["spec"]["replicatedJobs"].insert(0, replicated("dataset-initializer"))
    found = job_set(runtime, job)
    assert "parallelism" not in spec_of(found, 0)
    assert spec_of(found, 1)["parallelism"] == 3


@pytest.mark.parametrize(("launcher_is_node", "nodes"), [(False, 3), (True, 2)])
def test_of_an_mpi_runtime_the_launcher_may_be_one_of_the_nodes(launcher_is_node: bool, nodes: int) -> None:
    runtime, job = example("trainjob.yaml")
    runtime["spec"]["mlPolicy"] = {"mpi": {"runLauncherAsNode": launcher_is_node}}
    runtime["spec"]["template"]["spec"]["replicatedJobs"] = [replicated("node"), replicated("launcher", STEP)]
    found = job_set(runtime, job)
    assert spec_of(found, 0)["parallelism"] == nodes
    assert "parallelism" not in spec_of(found, 1)
    asked = ["resources" in spec_of(found, one)["template"]["spec"]["containers"][0] for one in (0, 1)]
    assert asked == [launcher_is_node, True]


def test_patches_change_the_template() -> None:
    runtime, job = example("trainjob.yaml")
    pod = {"spec": {"nodeSelector": {"pool": "a"}, "containers": [{"name": "node", "env": []}]}}
    patched = {"name": "node", "template": {"spec": {"template": pod}}}
    template = {"metadata": {"labels": {"team": "a"}}, "spec": {"replicatedJobs": [patched]}}
    job["spec"]["runtimePatches"] = [{"manager": "me", "trainingRuntimeSpec": {"template": template}}]
    found = job_set(runtime, job)
    assert found["metadata"]["labels"] == {"team": "a"}
    spec = spec_of(found)["template"]["spec"]
    assert spec["nodeSelector"] == {"pool": "a"}
    assert spec["schedulerName"] == "maniple"
    assert [(one["name"], one["image"], one["env"]) for one in spec["containers"]] == [
        ("node", "busybox", [])
    ]


def test_a_suspended_job_creates_nothing() -> None:
    _, job = example("trainjob.yaml")
    job["spec"]["suspend"] = True
    assert expanded(job) == []


def test_a_runtime_that_is_not_there_is_named() -> None:
    _, job = example("trainjob.yaml")
    message = "^TrainJob ml/tune-model: spec.runtimeRef: names TrainingRuntime torch, which is not there"
    with pytest.raises(FieldError, match=message):
        expanded(job)


def test_a_wrong_field_of_a_runtime_is_named() -> None:
    runtime, job = example("trainjob.yaml")
    runtime["spec"]["mlPolicy"]["numNodes"] = "many"
    del job["spec"]["trainer"]["numNodes"]
    with pytest.raises(
        FieldError, match=r"^TrainingRuntime ml/torch: spec.mlPolicy.numNodes: must be a whole"
    ):
        job_set(runtime, job)
