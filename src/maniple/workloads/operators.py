"""Owners of other operators: NVIDIA's NIM, SageMaker HyperPod and Azure ML jobs, serving, virtual machines.

Most of them create Deployments, Jobs or LeaderWorkerSets and leave the decision to those; they are in the table so that
their labels count. Kinds whose definition is not published (those of run.ai, SPOTRequest) are left out: like any owner
that is not known they leave the decision to what is below them.
"""

import re
from collections.abc import Iterator
from typing import Any

from maniple.workloads.building import child, first_priority, group_of, pod, shared, template_of, with_minimum
from maniple.workloads.fields import count, fail, flag, given_count, section, sections, shown, text, value
from maniple.workloads.kind import Kind
from maniple.workloads.model import Chain, Group, Member, PodSet, Raw
from maniple.workloads.wishes import domain_wish

Path = tuple[str | int, ...]

# -- NIM ---------------------------------------------------------------------------------------------------------------

_NIM_POD_FIELDS = (
    *("schedulerName", "priorityClassName", "runtimeClassName"),
    *("nodeSelector", "tolerations", "affinity"),
)
_PIPELINE = ("spec", "multiNode", "parallelism", "pipeline")


def _nim_service_children(service: Raw) -> Iterator[dict[str, Any]]:
    """A Deployment, or a LeaderWorkerSet if a replica takes several nodes."""
    name = text(service, ("metadata", "name"))
    replicas = count(service, ("spec", "replicas"), 1)
    if flag(service, ("spec", "scale", "enabled")):
        replicas = count(service, ("spec", "scale", "hpa", "minReplicas"), 1)
    several = section(service, ("spec", "multiNode"))
    made = f"{name}-lws" if several else name
    standard = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "nim-service"}
    labels = {**standard, **section(service, ("spec", "labels"))}
    annotations = section(service, ("spec", "annotations"))
    template = {
        "metadata": {"labels": {"app": made, **labels}, "annotations": annotations},
        "spec": _nim_pod(service, name),
    }
    if several:
        size = count(service, _PIPELINE, 1)
        if size == 0:
            raise fail(service, _PIPELINE, "must be at least 1")
        whole = {"size": size, "leaderTemplate": template, "workerTemplate": template}
        spec = {"replicas": replicas, "leaderWorkerTemplate": whole}
        version, kind = "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"
    else:
        spec = {"replicas": replicas, "template": template}
        version, kind = "apps/v1", "Deployment"
    yield child(service, version, kind, made, labels=labels, annotations=annotations, spec=spec)


def _nim_pod(service: Raw, name: str) -> dict[str, Any]:
    found = section(service, ("spec",))
    container = {"name": f"{name}-ctr", "resources": section(service, ("spec", "resources"))}
    given = {key: found[key] for key in _NIM_POD_FIELDS if found.get(key) is not None}
    return {**given, "containers": [container]}


def _nim_pipeline_children(pipeline: Raw) -> Iterator[dict[str, Any]]:
    path = ("spec", "services")
    for number in range(len(sections(pipeline, path))):
        if flag(pipeline, (*path, number, "enabled")):
            yield child(
                pipeline,
                text(pipeline, ("apiVersion",)),
                "NIMService",
                text(pipeline, (*path, number, "name")),
                spec=dict(section(pipeline, (*path, number, "spec"))),
            )


# -- SageMaker HyperPod ------------------------------------------------------------------------------------------------

_REPLICAS = ("spec", "replicaSpecs")


def _hyperpod_sets(job: Raw) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for number in range(len(sections(job, _REPLICAS))):
        place = (*_REPLICAS, number)
        name = text(job, (*place, "name"))
        if not name or name in found:
            raise fail(job, (*place, "name"), f"must be a name of its own, not {shown(name)}")
        found[name] = place
    if not found:
        raise fail(job, _REPLICAS, "must have replicas of one kind at least")
    return found


def _hyperpod_member(chain: Chain) -> Member:
    places = chain.once("places", lambda: _hyperpod_sets(chain.top))
    group = chain.once("group", lambda: _hyperpod_group(chain, places))
    return Member(group, _hyperpod_set(chain.pod, chain.top, places))


def _hyperpod_group(chain: Chain, places: dict[str, Path]) -> Group:
    job = chain.top
    templates = {name: template_of(job, (*place, "template")) for name, place in places.items()}
    replicas = {name: count(job, (*place, "replicas")) for name, place in places.items()}
    total = sum(replicas.values())
    wanted = given_count(job, ("spec", "elasticPolicy", "minReplicas"))
    minimum = total if wanted is None else max(min(wanted, total), 1)
    sets = [
        PodSet(name, replicas[name], domain=domain_wish(templates[name]), most=replicas[name])
        for name in places
    ]
    return group_of(
        shared(chain, [*templates.values()]),
        minimum,
        with_minimum(sets, minimum),
        most=total,
        priority_class=first_priority([*templates.values()]),
    )


def _hyperpod_set(pod: Raw, job: Raw, places: dict[str, Path]) -> str:
    """The operator publishes no label for it: the names of pods end in that of their replicas and a number."""
    own = text(pod, ("metadata", "name"))
    name = re.sub(r"-[0-9]+$", "", own).removeprefix(f"{text(job, ('metadata', 'name'))}-")
    if name not in places:
        raise fail(
            pod,
            ("metadata", "name"),
            f"names no replicas of {job.get('kind')} {text(job, ('metadata', 'name'))}: {shown(own)}",
        )
    return name


def _hyperpod_children(job: Raw) -> Iterator[dict[str, Any]]:
    if flag(job, ("spec", "runPolicy", "suspend")):
        return
    own = text(job, ("metadata", "name"))
    for name, place in _hyperpod_sets(job).items():
        for index in range(count(job, (*place, "replicas"))):
            yield pod(job, (*place, "template"), f"{own}-{name}-{index}", labels={"HPJob": own})


# -- Azure ML ----------------------------------------------------------------------------------------------------------

_NODES = ("spec", "job", "options", "envs", "AZUREML_NODE_COUNT")


def _aml_member(chain: Chain) -> Member:
    if value(chain.top, _NODES) is None:
        raise fail(chain.top, _NODES, "must be the number of nodes")
    return Member(group_of(chain, max(count(chain.top, _NODES), 1)))


# -- the table ---------------------------------------------------------------------------------------------------------


def _leaves(api_group: str, name: str, plural: str, *versions: str) -> Kind:
    return Kind(api_group, name, plural, versions, (), leaves_to_others=True)


KINDS = (
    Kind(
        api_group="apps.nvidia.com",
        name="NIMService",
        plural="nimservices",
        versions=("v1alpha1",),
        reads=("spec.replicas", "spec.scale", "spec.multiNode.parallelism.pipeline", "spec.resources"),
        children=_nim_service_children,
        leaves_to_others=True,
    ),
    Kind(
        api_group="apps.nvidia.com",
        name="NIMPipeline",
        plural="nimpipelines",
        versions=("v1alpha1",),
        reads=("spec.services[]",),
        children=_nim_pipeline_children,
        leaves_to_others=True,
    ),
    _leaves("apps.nvidia.com", "NIMCache", "nimcaches", "v1alpha1"),
    Kind(
        api_group="sagemaker.amazonaws.com",
        name="HyperPodPyTorchJob",
        plural="hyperpodpytorchjobs",
        versions=("v1",),
        reads=("spec.replicaSpecs[]", "spec.elasticPolicy.minReplicas", "spec.runPolicy.suspend"),
        member=_hyperpod_member,
        reads_pod_name=True,
        children=_hyperpod_children,
    ),
    Kind(
        api_group="amlarc.azureml.com",
        name="AmlJob",
        plural="amljobs",
        versions=("v1alpha1",),
        reads=("spec.job.options.envs.AZUREML_NODE_COUNT",),
        member=_aml_member,
    ),
    _leaves("serving.kserve.io", "InferenceService", "inferenceservices", "v1beta1"),
    _leaves("machinelearning.seldon.io", "SeldonDeployment", "seldondeployments", "v1", "v1alpha2"),
    _leaves("kubeflow.org", "ScheduledWorkflow", "scheduledworkflows", "v1beta1", "v1alpha1"),
    _leaves("workspace.devfile.io", "DevWorkspace", "devworkspaces", "v1alpha2"),
    _leaves("kubevirt.io", "VirtualMachine", "virtualmachines", "v1"),
    Kind("kubevirt.io", "VirtualMachineInstance", "virtualmachineinstances", ("v1",), ()),
)
