"""The jobs of Kubeflow's training operator and of its MPI operator, and Kubeflow's Notebook.

A job has replicas of several types (master, worker, parameter server ...), each with a template: a set each. All of
them start together unless the job says a smaller number: `runPolicy.schedulingPolicy.minAvailable` before
`elasticPolicy.minReplicas`, both for the whole job. What is above the minimum are workers, which come last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from maniple.workloads.building import (
    child,
    first_priority,
    group_of,
    pod,
    shared,
    template_of,
    with_minimum,
)
from maniple.workloads.fields import count, fail, flag, given_count, number_in_text, section, text
from maniple.workloads.kind import Kind
from maniple.workloads.labels import foreign, labelled_number, part_of
from maniple.workloads.model import Chain, DomainWish, Group, Member, PodSet, Raw
from maniple.workloads.wishes import TOPOLOGY, domain_wish

_JOB_NAME = "training.kubeflow.org/job-name"
_OPERATOR = "training.kubeflow.org/operator-name"
_TYPE = "training.kubeflow.org/replica-type"
_INDEX = "training.kubeflow.org/replica-index"
_ROLE = "training.kubeflow.org/job-role"

_SEGMENT_SIZE = "kai.scheduler/segment-size"
_SEGMENT_REQUIRED = "kai.scheduler/segment-topology-required-placement"
_SEGMENT_PREFERRED = "kai.scheduler/segment-topology-preferred-placement"
_MOST_SEGMENTS = 10_000

_POLICY = ("spec", "runPolicy", "schedulingPolicy")
_MINIMUM = (*_POLICY, "minAvailable")
_ELASTIC_MINIMUM = ("spec", "elasticPolicy", "minReplicas")
_LAUNCHER, _WORKER = "launcher", "worker"


@dataclass(frozen=True, slots=True)
class _Framework:
    """`types` of replicas in the order of their sets; `masters`: the first of them that there is leads the job."""

    kind: str
    specs: str
    types: tuple[str, ...]
    masters: tuple[str, ...] = ()
    elastic: bool = False

    @property
    def operator(self) -> str:
        return f"{self.kind.lower()}-controller"


@dataclass(frozen=True, slots=True)
class _Role:
    """Replicas of one type."""

    name: str  # in lower case, as pods are labelled
    path: tuple[str, ...]
    replicas: int
    template: Raw


_PYTORCH = _Framework(
    "PyTorchJob", "pytorchReplicaSpecs", ("Master", "Worker"), ("master", "worker"), elastic=True
)
_TENSORFLOW = _Framework(
    "TFJob",
    "tfReplicaSpecs",
    ("Chief", "Master", "PS", "Evaluator", "Worker"),
    ("chief", "master", "worker"),
)
_MPI = _Framework("MPIJob", "mpiReplicaSpecs", ("Launcher", "Worker"), ("launcher",))
_XGBOOST = _Framework("XGBoostJob", "xgbReplicaSpecs", ("Master", "Worker"), ("master",))
_PADDLE = _Framework("PaddleJob", "paddleReplicaSpecs", ("Master", "Worker"), ("master",), elastic=True)
_JAX = _Framework("JAXJob", "jaxReplicaSpecs", ("Worker",), ("worker",))


def _roles(job: Raw, framework: _Framework) -> list[_Role]:
    """Types of replicas are written in any case, as the operator reads them."""
    path = ("spec", framework.specs)
    written = {str(key).lower(): key for key in section(job, path)}
    known = {one.lower() for one in framework.types}
    for name, key in written.items():
        if name not in known:
            raise fail(
                job, (*path, key), f"is no type of replica; expected one of {', '.join(framework.types)}"
            )
    if not written:
        raise fail(job, path, f"must have replicas of one of {', '.join(framework.types)}")
    roles = []
    for one in framework.types:
        if (name := one.lower()) in written:
            place = (*path, written[name])
            default = 0 if framework is _MPI and name == _WORKER else 1
            replicas = count(job, (*place, "replicas"), default)
            roles.append(_Role(name, place, replicas, template_of(job, (*place, "template"))))
    return roles


# -- the group ---------------------------------------------------------------------------------------------------------


def _member(chain: Chain, framework: _Framework) -> Member:
    group, roles, size = chain.once("group", lambda: _group(chain, framework))
    return Member(group, _set_name(chain.top, chain.pod, roles, size))


def _group(chain: Chain, framework: _Framework) -> tuple[Group, list[_Role], int | None]:
    """The group, its roles, and the size of the segments of workers."""
    job = chain.top
    roles = _roles(job, framework)
    total = sum(role.replicas for role in roles)
    wanted = given_count(job, _MINIMUM)
    if wanted is None and framework.elastic:
        wanted = given_count(job, _ELASTIC_MINIMUM)
    minimum = total if wanted is None else max(min(wanted, total), 1)
    sets: Sequence[PodSet] = [
        PodSet(role.name, role.replicas, domain=domain_wish(role.template), most=role.replicas)
        for role in roles
    ]
    sets = with_minimum(sets, minimum)
    if framework is _MPI and roles[-1].name == _WORKER and _launcher_waits(job):
        sets = [replace(one, after=(_WORKER,)) if one.name == _LAUNCHER else one for one in sets]
    size = _segment_size(roles) if framework is _PYTORCH else None
    if size is not None:
        sets = _segmented(job, sets, roles[-1], size)
        minimum = sum(one.minimum for one in sets if one.name != _WORKER)
    templates = [role.template for role in roles]
    group = group_of(
        shared(chain, templates),
        minimum,
        sets,
        most=total,
        queue=text(job, (*_POLICY, "queue")),
        priority_class=text(job, (*_POLICY, "priorityClass")) or first_priority(templates),
    )
    return group, roles, size


def _launcher_waits(job: Raw) -> bool:
    return text(job, ("spec", "launcherCreationPolicy")) == "WaitForWorkersReady"


def _set_name(job: Raw, pod: Raw, roles: Sequence[_Role], size: int | None) -> str:
    # The MPI operator says the type in the label in which the training operator says which pod is the master.
    name = part_of(pod, (_TYPE, _ROLE), [role.name for role in roles], job, "type of replica")
    if size is None or name != _WORKER:
        return name
    index = labelled_number(pod, _INDEX)
    if index is None or index >= roles[-1].replicas:
        raise foreign(pod, _INDEX, job, "segment")
    return f"{_WORKER}-{index // size}"


# -- segments, as KAI has them: workers in groups of a size, each of them close together ------------------------------


def _segment_size(roles: Sequence[_Role]) -> int | None:
    if not roles or roles[-1].name != _WORKER or not roles[-1].replicas:
        return None
    path = ("metadata", "annotations", _SEGMENT_SIZE)
    size = number_in_text(roles[-1].template, path)
    if size == 0:
        raise fail(roles[-1].template, path, "must be at least 1")
    return size


def _segmented(job: Raw, sets: Sequence[PodSet], workers: _Role, size: int) -> list[PodSet]:
    """As many whole segments as the minimum of the workers takes are needed; the last one may be smaller."""
    segments = -(-workers.replicas // size)
    if segments > _MOST_SEGMENTS:
        path = (*workers.path, "template", "metadata", "annotations", _SEGMENT_SIZE)
        raise fail(job, path, f"makes {segments:,} segments; at most {_MOST_SEGMENTS:,} are possible")
    worker = next(one for one in sets if one.name == _WORKER)
    needed = -(-worker.minimum // size)
    domain = _segment_domain(job, workers.template)
    parts = [
        PodSet(
            f"{_WORKER}-{number}",
            min(size, workers.replicas - number * size) if number < needed else 0,
            parent=_WORKER,
            domain=domain,
            most=min(size, workers.replicas - number * size),
        )
        for number in range(segments)
    ]
    inner = replace(worker, minimum=sum(one.minimum for one in parts))
    return [*(inner if one is worker else one for one in sets), *parts]


def _segment_domain(job: Raw, template: Raw) -> DomainWish | None:
    annotations = ("metadata", "annotations")
    wish = DomainWish(
        topology=text(template, (*annotations, TOPOLOGY)) or text(job, (*annotations, TOPOLOGY)),
        required=text(template, (*annotations, _SEGMENT_REQUIRED)),
        preferred=text(template, (*annotations, _SEGMENT_PREFERRED)),
    )
    return wish if wish.topology and (wish.required or wish.preferred) else None


# -- the pods ----------------------------------------------------------------------------------------------------------


def _children(job: Raw, framework: _Framework) -> Iterator[dict[str, Any]]:
    if flag(job, ("spec", "runPolicy", "suspend")):
        return
    name = text(job, ("metadata", "name"))
    roles = _roles(job, framework)
    present = {role.name for role in roles}
    leads = next((one for one in framework.masters if one in present), "")
    for role in roles:
        for index in range(role.replicas):
            labels = {_JOB_NAME: name, _OPERATOR: framework.operator, _TYPE: role.name, _INDEX: str(index)}
            # The first worker leads where there is no other type to do it.
            if role.name == leads and (role.name != _WORKER or index == 0):
                labels[_ROLE] = "master"
            yield pod(job, (*role.path, "template"), f"{name}-{role.name}-{index}", labels=labels)


def _mpi_children(job: Raw) -> Iterator[dict[str, Any]]:
    """Of the training operator (v1) the launcher is a pod, of the MPI operator (v2beta1) a Job."""
    if flag(job, ("spec", "runPolicy", "suspend")):
        return
    name = text(job, ("metadata", "name"))
    own_operator = text(job, ("apiVersion",)).endswith("/v2beta1")
    for role in _roles(job, _MPI):
        labels = {_JOB_NAME: name, _OPERATOR: "mpi-operator" if own_operator else _MPI.operator}
        labels |= {_ROLE: role.name} if own_operator else {_TYPE: role.name}
        if role.name == _LAUNCHER and not own_operator:
            yield pod(job, (*role.path, "template"), f"{name}-launcher", labels={**labels, _ROLE: "master"})
        elif role.name == _LAUNCHER:
            template = section(job, (*role.path, "template"))
            said = section(role.template, ("metadata",))
            metadata = {"labels": {**said["labels"], **labels}, "annotations": said["annotations"]}
            job_spec = {"template": {**template, "metadata": metadata}}
            yield child(job, "batch/v1", "Job", f"{name}-launcher", labels={"app": name}, spec=job_spec)
        else:
            first = 1 if own_operator and flag(job, ("spec", "runLauncherAsWorker")) else 0
            for index in range(role.replicas):
                numbered = {**labels, _INDEX: str(first + index)}
                yield pod(job, (*role.path, "template"), f"{name}-worker-{index}", labels=numbered)


def _notebook_children(notebook: Raw) -> Iterator[dict[str, Any]]:
    if "kubeflow-resource-stopped" in section(notebook, ("metadata", "annotations")):
        return
    name = text(notebook, ("metadata", "name"))
    labels = {**section(notebook, ("metadata", "labels")), "statefulset": name, "notebook-name": name}
    template = {
        "metadata": {"labels": labels},
        "spec": dict(section(notebook, ("spec", "template", "spec"))),
    }
    spec = {"replicas": 1, "serviceName": name, "template": template}
    yield child(notebook, "apps/v1", "StatefulSet", name, spec=spec)


# -- the table ---------------------------------------------------------------------------------------------------------


def _kind(framework: _Framework, plural: str, *more: str, versions: tuple[str, ...] = ("v1",)) -> Kind:
    return Kind(
        api_group="kubeflow.org",
        name=framework.kind,
        plural=plural,
        versions=versions,
        reads=(
            f"spec.{framework.specs}",
            "spec.runPolicy.schedulingPolicy.minAvailable",
            "spec.runPolicy.schedulingPolicy.queue",
            "spec.runPolicy.schedulingPolicy.priorityClass",
            *(("spec.elasticPolicy.minReplicas",) if framework.elastic else ()),
            *more,
            "spec.runPolicy.suspend",
        ),
        member=lambda chain: _member(chain, framework),
        reads_of_pod=(_TYPE, _ROLE, _INDEX),
        children=_mpi_children if framework is _MPI else lambda job: _children(job, framework),
    )


KINDS = (
    _kind(_PYTORCH, "pytorchjobs"),
    _kind(_TENSORFLOW, "tfjobs"),
    _kind(
        _MPI,
        "mpijobs",
        "spec.launcherCreationPolicy",
        "spec.runLauncherAsWorker",
        versions=("v2beta1", "v1"),
    ),
    _kind(_XGBOOST, "xgboostjobs"),
    _kind(_PADDLE, "paddlejobs"),
    _kind(_JAX, "jaxjobs"),
    Kind(
        api_group="kubeflow.org",
        name="Notebook",
        plural="notebooks",
        versions=("v1", "v1beta1", "v1alpha1"),
        reads=("spec.template",),
        children=_notebook_children,
    ),
)
