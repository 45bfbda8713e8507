"""Argo Workflow and CronWorkflow, Tekton PipelineRun and TaskRun: their pods are steps, each for itself.

What a step creates (a Job, a PyTorchJob) is grouped by its own kind. Of a manifest come the pods that start first:
a step that waits for others has no place to be planned for yet. Templates and tasks that are only named are in other
objects; their pods are not known.
"""

from collections.abc import Iterator
from typing import Any

from maniple.workloads.building import Path, child
from maniple.workloads.fields import fail, flag, items_of, section, sections, shown, text, value
from maniple.workloads.kind import Kind
from maniple.workloads.model import Raw

_DEEPEST = 64  # templates in templates
_LISTS: Path = ("spec", "templates")
_PODS = ("nodeSelector", "tolerations", "affinity", "schedulerName", "priorityClassName")


def _workflow_children(workflow: Raw) -> Iterator[dict[str, Any]]:
    paths = {
        text(workflow, (*_LISTS, number, "name")): (*_LISTS, number)
        for number, _ in enumerate(sections(workflow, _LISTS))
    }
    entrypoint = text(workflow, ("spec", "entrypoint"))
    if entrypoint and paths and entrypoint not in paths:
        raise fail(workflow, ("spec", "entrypoint"), f"names no template: {shown(entrypoint)}")
    number = 0
    for path, pods in _first_pods(workflow, paths, entrypoint, {}, 0).items():
        for _ in range(pods):
            yield _workflow_pod(workflow, path, number)
            number += 1


_Pods = dict[Path, int]


def _first_pods(
    workflow: Raw, paths: dict[str, Path], name: str, known: dict[str, _Pods], depth: int
) -> _Pods:
    """The templates of the pods that start at once, each with the number of pods. `known`: those counted before."""
    path = paths.get(name)
    if path is None:
        return {}  # of a WorkflowTemplate
    if depth > _DEEPEST:
        raise fail(workflow, path, f"is more than {_DEEPEST} templates below the entrypoint")
    if name not in known:
        pods: _Pods = {}
        if any(
            value(workflow, (*path, field)) is not None for field in ("container", "script", "containerSet")
        ):
            pods[path] = 1
        for step in _first_steps(workflow, path):
            items = items_of(workflow, (*step, "withItems"), value(workflow, (*step, "withItems")))
            below = _first_pods(workflow, paths, text(workflow, (*step, "template")), known, depth + 1)
            for one, number in below.items():
                pods[one] = pods.get(one, 0) + number * max(len(items), 1)
        known[name] = pods
    return known[name]


def _first_steps(workflow: Raw, path: Path) -> Iterator[Path]:
    tasks: Path = (*path, "dag", "tasks")
    for number, task in enumerate(sections(workflow, tasks)):
        if not task.get("dependencies") and not task.get("depends"):
            yield (*tasks, number)
    steps: Path = (*path, "steps")
    if items_of(workflow, steps, value(workflow, steps)):
        for number, _ in enumerate(sections(workflow, (*steps, 0))):
            yield (*steps, 0, number)


def _workflow_pod(workflow: Raw, path: Path, number: int) -> dict[str, Any]:
    name = text(workflow, ("metadata", "name"))
    spec = {
        field: found
        for field in _PODS
        if (found := value(workflow, (*path, field)) or value(workflow, ("spec", field)))
    }
    priority = text(workflow, ("spec", "podPriorityClassName"))
    containers: list[dict[str, Any]] = [
        dict(one) for one in sections(workflow, (*path, "containerSet", "containers"))
    ]
    single = section(workflow, (*path, "container")) or section(workflow, (*path, "script"))
    if single:
        containers.append({"name": "main", **single})
    return child(
        workflow,
        "v1",
        "Pod",
        f"{name}-{text(workflow, (*path, 'name'))}-{number}",
        labels={
            **section(workflow, ("spec", "podMetadata", "labels")),
            **section(workflow, (*path, "metadata", "labels")),
            "workflows.argoproj.io/workflow": name,
            "workflows.argoproj.io/completed": "false",
        },
        annotations={
            **section(workflow, ("spec", "podMetadata", "annotations")),
            **section(workflow, (*path, "metadata", "annotations")),
        },
        spec={**spec, **({"priorityClassName": priority} if priority else {}), "containers": containers},
    )


def _cron_workflow_children(cron: Raw) -> Iterator[dict[str, Any]]:
    """The Workflow of the next time."""
    if flag(cron, ("spec", "suspend")):
        return
    metadata: Path = ("spec", "workflowMetadata")
    yield child(
        cron,
        "argoproj.io/v1alpha1",
        "Workflow",
        f"{text(cron, ('metadata', 'name'))}-next",
        labels=section(cron, (*metadata, "labels")),
        annotations=section(cron, (*metadata, "annotations")),
        spec=dict(section(cron, ("spec", "workflowSpec"))),
    )


def _pipeline_run_children(run: Raw) -> Iterator[dict[str, Any]]:
    """The TaskRuns of the tasks that wait for no other."""
    name = text(run, ("metadata", "name"))
    tasks: Path = ("spec", "pipelineSpec", "tasks")
    template = section(run, ("spec", "taskRunTemplate", "podTemplate")) or section(
        run, ("spec", "podTemplate")
    )
    for number, task in enumerate(sections(run, tasks)):
        task_name = text(run, (*tasks, number, "name"))
        inner = section(run, (*tasks, number, "taskSpec"))
        if inner and not task.get("runAfter"):
            labels = {"tekton.dev/pipelineRun": name, "tekton.dev/pipelineTask": task_name}
            yield child(
                run,
                "tekton.dev/v1",
                "TaskRun",
                f"{name}-{task_name}",
                labels={**section(run, ("metadata", "labels")), **labels},
                spec={"taskSpec": dict(inner), "podTemplate": dict(template)},
            )


def _task_run_children(run: Raw) -> Iterator[dict[str, Any]]:
    """All steps of a task are containers of one pod."""
    steps = sections(run, ("spec", "taskSpec", "steps"))
    if not steps:
        return
    name = text(run, ("metadata", "name"))
    labels = {**section(run, ("metadata", "labels")), "tekton.dev/taskRun": name}
    containers = []
    for number, step in enumerate(steps):
        title = text(run, ("spec", "taskSpec", "steps", number, "name")) or f"unnamed-{number}"
        container = {key: step[key] for key in ("image", "command", "args") if key in step}
        resources = step.get("computeResources") or step.get("resources") or {}
        containers.append({**container, "name": f"step-{title}", "resources": resources})
    template = section(run, ("spec", "podTemplate"))
    spec = {key: template[key] for key in _PODS if key in template}
    yield child(
        run,
        "v1",
        "Pod",
        f"{name}-pod",
        labels=labels,
        spec={"restartPolicy": "Never", **spec, "containers": containers},
    )


def _argo(name: str, plural: str, reads: tuple[str, ...], children: Any) -> Kind:
    return Kind("argoproj.io", name, plural, ("v1alpha1",), reads, children=children, leaves_to_others=True)


KINDS = (
    _argo(
        "Workflow",
        "workflows",
        (
            "spec.entrypoint",
            "spec.templates[].name",
            "spec.templates[].container",
            "spec.podPriorityClassName",
        ),
        _workflow_children,
    ),
    _argo("CronWorkflow", "cronworkflows", ("spec.workflowSpec", "spec.suspend"), _cron_workflow_children),
    Kind(
        api_group="tekton.dev",
        name="PipelineRun",
        plural="pipelineruns",
        versions=("v1", "v1beta1"),
        reads=(
            "spec.pipelineSpec.tasks[].name",
            "spec.pipelineSpec.tasks[].taskSpec",
            "spec.taskRunTemplate",
        ),
        children=_pipeline_run_children,
    ),
    Kind(
        api_group="tekton.dev",
        name="TaskRun",
        plural="taskruns",
        versions=("v1", "v1beta1"),
        reads=("spec.taskSpec.steps[].name", "spec.podTemplate"),
        children=_task_run_children,
    ),
)
