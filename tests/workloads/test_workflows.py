"""Argo Workflow and CronWorkflow, Tekton PipelineRun and TaskRun."""

from typing import Any

import pytest

from maniple.workloads.expanding import expanded
from maniple.workloads.grouping import member
from maniple.workloads.model import FieldError
from tests.workloads.support import example, groups, members

RUN = {"name": "run", "container": {"image": "busybox"}}


def workflow(*templates: dict[str, Any], entrypoint: str = "main") -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "prepare", "namespace": "ml"},
        "spec": {"entrypoint": entrypoint, "templates": list(templates)},
    }


def test_steps_are_pods_for_themselves_and_the_first_ones_come() -> None:
    found = members(*example("workflow.yaml"))
    assert [*found] == ["prepare-run-0", "prepare-run-1"]
    (group,) = groups(found).values()
    assert (group.minimum, group.independent) == (1, True)


def test_the_first_of_the_steps_comes() -> None:
    steps = [
        [{"name": "a", "template": "run"}, {"name": "b", "template": "run"}],
        [{"name": "c", "template": "run"}],
    ]
    assert len(members(workflow({"name": "main", "steps": steps}, RUN))) == 2


def test_many_items_in_many_templates_are_counted_not_visited() -> None:
    deep = [
        {"name": f"t{number}", "steps": [[{"template": f"t{number + 1}", "withItems": [*range(1000)]}]]}
        for number in range(20)
    ]
    assert expanded(workflow(*deep, entrypoint="t0")) == []


def test_a_template_inside_itself_is_an_error() -> None:
    circle = {"name": "main", "steps": [[{"name": "again", "template": "main"}]]}
    with pytest.raises(FieldError, match=r"^Workflow ml/prepare: spec.templates\[0\]: is more than 64"):
        expanded(workflow(circle))


def test_an_unknown_entrypoint_is_named() -> None:
    with pytest.raises(FieldError, match=r'spec.entrypoint: names no template: "other"'):
        expanded(workflow(RUN, entrypoint="other"))


def test_what_a_step_creates_is_grouped_by_its_kind() -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "count", "namespace": "ml", "labels": {"maniple.dev/min-member": "2"}},
        "spec": {"parallelism": 2},
    }
    pod = expanded(job)[0]
    above = workflow(RUN)
    above["metadata"]["labels"] = {"maniple.dev/queue": "night"}
    group = member(pod, [job, above]).group
    assert (group.name, group.minimum, group.queue) == ("job:count", 2, "night")


def test_the_workflow_of_a_cron_workflow_decides() -> None:
    (group,) = groups(members(*example("cronworkflow.yaml"))).values()
    assert group.name == "workflow:hourly-next"


def test_a_pipeline_begins_with_the_tasks_that_wait_for_no_other() -> None:
    found = members(*example("pipelinerun.yaml"))
    assert [*found] == ["build-compile-pod"]
    assert found["build-compile-pod"].group.name == "pipelinerun:build"
    assert found["build-compile-pod"].group.independent


def test_the_steps_of_a_task_are_one_pod() -> None:
    (pod,) = expanded(example("taskrun.yaml")[0])
    assert pod["spec"]["schedulerName"] == "maniple"
    assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "100m"}}
    assert pod["metadata"]["labels"]["tekton.dev/taskRun"] == "lint"
