"""Kubeflow Trainer's TrainJob: a JobSet that its runtime describes, and which decides.

What a TrainJob creates is in the TrainingRuntime or ClusterTrainingRuntime that it names: the JobSet of that template,
with the job's number of nodes, the resources of a node, and its patches. So a manifest is expanded only together with
its runtime.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from maniple.workloads.building import child
from maniple.workloads.fields import count, fail, flag, given_count, section, sections, text, value
from maniple.workloads.kind import Find, Kind
from maniple.workloads.model import Owner, Raw

_GROUP, _VERSION = "trainer.kubeflow.org", "v1alpha1"
_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_TRAINER, _NODE = "trainer", "node"
_REFERENCE = ("spec", "runtimeRef")
_TEMPLATE = ("spec", "template")
_POLICY = ("spec", "mlPolicy")
_PATCHES = ("spec", "runtimePatches")
_JOBS = ("spec", "replicatedJobs")

Path = tuple[str | int, ...]


def _children(job: Raw, find: Find) -> Iterator[dict[str, Any]]:
    if flag(job, ("spec", "suspend")):
        return
    runtime = _patched(_runtime(job, find), job)
    metadata = (*_TEMPLATE, "metadata")
    made = child(
        job,
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        text(job, ("metadata", "name")),
        labels=section(runtime, (*metadata, "labels")),
        annotations=section(runtime, (*metadata, "annotations")),
        spec=dict(section(runtime, (*_TEMPLATE, "spec"))),
    )
    jobs = [_with_nodes(job, runtime, made, number) for number in range(len(sections(made, _JOBS)))]
    made["spec"]["replicatedJobs"] = jobs
    yield made


def _runtime(job: Raw, find: Find) -> Raw:
    kind = text(job, (*_REFERENCE, "kind"), "ClusterTrainingRuntime")
    name = text(job, (*_REFERENCE, "name"))
    group = text(job, (*_REFERENCE, "apiGroup"), _GROUP)
    runtime = find(Owner(f"{group}/{_VERSION}", kind, name))
    if runtime is None:
        raise fail(job, _REFERENCE, f"names {kind} {name}, which is not there; give its manifest as well")
    return runtime


def _patched(runtime: Raw, job: Raw) -> Raw:
    template = section(runtime, _TEMPLATE)
    for number in range(len(sections(job, _PATCHES))):
        template = _merged(template, section(job, (*_PATCHES, number, "trainingRuntimeSpec", "template")))
    return {**runtime, "spec": {**section(runtime, ("spec",)), "template": template}}


def _with_nodes(job: Raw, runtime: Raw, made: Raw, number: int) -> dict[str, Any]:
    """A replicated job of the JobSet with as many pods, and the resources, that the TrainJob asks for."""
    path: Path = (*_JOBS, number)
    name = text(made, (*path, "name"))
    trains = section(made, (*path, "template", "metadata", "labels")).get(_STEP) == _TRAINER
    mpi = value(runtime, (*_POLICY, "mpi")) is not None
    launcher_is_node = mpi and flag(runtime, (*_POLICY, "mpi", "runLauncherAsNode"))
    changes: dict[str, Any] = {}
    # Of an MPI runtime the launcher is the job that trains, and the nodes are another.
    if (name == _NODE) if mpi else trains:
        pods = given_count(job, ("spec", "trainer", "numNodes"))
        if pods is None and not mpi:
            pods = count(runtime, (*_POLICY, "numNodes"), 1)
        if pods is not None:
            pods = max(pods - 1, 1) if launcher_is_node else pods
            changes = {"parallelism": pods, "completions": pods}
    resources = section(job, ("spec", "trainer", "resourcesPerNode"))
    if resources and (trains or (launcher_is_node and name == _NODE)):
        containers = sections(made, (*path, "template", "spec", "template", "spec", "containers"))
        if any(one.get("name") == _NODE for one in containers):
            changes["template"] = {"spec": {"containers": [{"name": _NODE, "resources": resources}]}}
    replicas = {"replicas": 1} if trains else {}
    return _merged(section(made, path), {**replicas, "template": {"spec": changes}})


def _merged(source: Raw, patch: Raw) -> dict[str, Any]:
    """As a strategic merge patch: objects field by field, lists of named entries by name, anything else replaced."""
    found = dict(source)
    for key, said in patch.items():
        there = found.get(key)
        if isinstance(there, Mapping) and isinstance(said, Mapping):
            found[key] = _merged(there, said)
        elif _are_named(there) and _are_named(said):
            entries = {one["name"]: one for one in there or ()}
            for one in said or ():
                entries[one["name"]] = _merged(entries.get(one["name"], {}), one)
            found[key] = list(entries.values())
        else:
            found[key] = said
    return found


def _are_named(found: Any) -> bool:
    return isinstance(found, list) and all(
        isinstance(one, Mapping) and isinstance(one.get("name"), str) for one in found
    )


KINDS = (
    Kind(
        api_group=_GROUP,
        name="TrainJob",
        plural="trainjobs",
        versions=(_VERSION,),
        reads=(
            "spec.runtimeRef",
            "spec.trainer.numNodes",
            "spec.trainer.resourcesPerNode",
            "spec.runtimePatches",
            "spec.suspend",
        ),
        children_with=_children,
        leaves_to_others=True,
    ),
)
