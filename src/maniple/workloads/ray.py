"""KubeRay's RayCluster, and RayJob, RayCronJob and RayService, which have one.

A cluster is a gang: the head, and of every worker group as many pods as it never has fewer of: its replicas, or with
the autoscaler `minReplicas`, times the hosts of a replica. Workers wait for the head in an init container, so head and
workers start together.

A RayJob that is tried again and a RayService that is updated get another cluster: the cluster decides, not its owner.
The Job that submits a RayJob comes when the cluster runs, and decides for its own pod.
"""

from collections.abc import Iterator
from typing import Any

from maniple.workloads.building import child, first_priority, group_of, pod, shared, template_of
from maniple.workloads.fields import count, fail, flag, given_count, section, sections, shown, text
from maniple.workloads.kind import Kind
from maniple.workloads.labels import part_of
from maniple.workloads.model import Chain, Member, PodSet, Raw
from maniple.workloads.wishes import domain_wish

_CLUSTER = "ray.io/cluster"
_NODE_TYPE = "ray.io/node-type"
_GROUP = "ray.io/group"
_PRIORITY = "ray.io/priority-class-name"
_HEAD_GROUP = "headgroup"
_HEAD = ("spec", "headGroupSpec", "template")

Path = tuple[str | int, ...]


def _workers(cluster: Raw) -> Iterator[tuple[str, Path]]:
    """The names and places of the worker groups."""
    path = ("spec", "workerGroupSpecs")
    seen = {_HEAD_GROUP}
    for number in range(len(sections(cluster, path))):
        place = (*path, number)
        name = text(cluster, (*place, "groupName"))
        if not name or name in seen:
            raise fail(cluster, (*place, "groupName"), f"must be a name of its own, not {shown(name)}")
        seen.add(name)
        yield name, place


def _replicas(owner: Raw, group: Path) -> int:
    """The replicas that KubeRay creates, within the limits of the group."""
    least = count(owner, (*group, "minReplicas"))
    most = given_count(owner, (*group, "maxReplicas"))
    wanted = max(count(owner, (*group, "replicas"), least), least)
    return wanted if most is None or wanted <= most else most


def _pods_of(owner: Raw, group: Path, replicas: int) -> int:
    if flag(owner, (*group, "suspend")):
        return 0
    return replicas * max(count(owner, (*group, "numOfHosts"), 1), 1)


def _member(chain: Chain) -> Member:
    cluster = chain.top
    autoscaling = flag(cluster, ("spec", "enableInTreeAutoscaling"))
    head = template_of(cluster, _HEAD)
    templates, sets, most = [head], [PodSet(_HEAD_GROUP, 1, domain=domain_wish(head), most=1)], 1
    for name, place in _workers(cluster):
        replicas = _replicas(cluster, place)
        least = count(cluster, (*place, "minReplicas")) if autoscaling else replicas
        template = template_of(cluster, (*place, "template"))
        templates.append(template)
        pods = _pods_of(cluster, place, replicas)
        least = _pods_of(cluster, place, least)
        sets.append(PodSet(name, least, domain=domain_wish(template), most=pods))
        most += pods
    group = group_of(
        shared(chain, templates),
        sum(one.minimum for one in sets),
        sets,
        most=most,
        priority_class=text(cluster, ("metadata", "labels", _PRIORITY)) or first_priority(templates),
    )
    return Member(group, part_of(chain.pod, (_GROUP,), [one.name for one in sets], cluster, "worker group"))


# -- the pods ----------------------------------------------------------------------------------------------------------


def _cluster_children(cluster: Raw) -> Iterator[dict[str, Any]]:
    """The random endings of names are numbers here."""
    if flag(cluster, ("spec", "suspend")):
        return
    name = text(cluster, ("metadata", "name"))
    labels = {"ray.io/is-ray-node": "yes", _CLUSTER: name}
    head = {**labels, _NODE_TYPE: "head", _GROUP: _HEAD_GROUP, "ray.io/identifier": f"{name}-head"}
    yield pod(cluster, _HEAD, f"{name}-head", labels=head)
    for group, place in _workers(cluster):
        own = {**labels, _NODE_TYPE: "worker", _GROUP: group, "ray.io/identifier": f"{name}-worker"}
        for index in range(_pods_of(cluster, place, _replicas(cluster, place))):
            yield pod(cluster, (*place, "template"), f"{name}-{group}-worker-{index}", labels=own)


def _cluster_of(owner: Raw, field: str) -> dict[str, Any]:
    name = text(owner, ("metadata", "name"))
    labels = {
        **section(owner, ("metadata", "labels")),
        "ray.io/originated-from-cr-name": name,
        "ray.io/originated-from-crd": text(owner, ("kind",)),
    }
    return child(
        owner,
        text(owner, ("apiVersion",)),
        "RayCluster",
        f"{name}-new",
        labels=labels,
        annotations=section(owner, ("metadata", "annotations")),
        spec=dict(section(owner, ("spec", field))),
    )


def _job_children(job: Raw) -> Iterator[dict[str, Any]]:
    """With a `clusterSelector` the job runs on a cluster that is there already."""
    if flag(job, ("spec", "suspend")):
        return
    if not section(job, ("spec", "clusterSelector")):
        yield _cluster_of(job, "rayClusterSpec")
    if text(job, ("spec", "submissionMode"), "K8sJobMode") != "K8sJobMode":
        return
    template = section(job, ("spec", "submitterPodTemplate")) or _default_submitter()
    yield child(job, "batch/v1", "Job", text(job, ("metadata", "name")), spec={"template": template})


def _default_submitter() -> dict[str, Any]:
    requests = {"cpu": "500m", "memory": "200Mi"}
    container = {"name": "ray-job-submitter", "resources": {"requests": requests}}
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


def _cron_job_children(cron: Raw) -> Iterator[dict[str, Any]]:
    """The RayJob of the next time."""
    if flag(cron, ("spec", "suspend")):
        return
    name = text(cron, ("metadata", "name"))
    labels = {**section(cron, ("metadata", "labels")), "ray.io/cronjob-name": name}
    job_spec = dict(section(cron, ("spec", "jobTemplate")))
    yield child(cron, text(cron, ("apiVersion",)), "RayJob", f"{name}-next", labels=labels, spec=job_spec)


def _service_children(service: Raw) -> Iterator[dict[str, Any]]:
    if not flag(service, ("spec", "suspend")):
        yield _cluster_of(service, "rayClusterConfig")


# -- the table ---------------------------------------------------------------------------------------------------------


_VERSIONS = ("v1", "v1alpha1")
_WORKER_FIELDS = ("groupName", "replicas", "minReplicas", "maxReplicas", "numOfHosts", "suspend", "template")

KINDS = (
    Kind(
        api_group="ray.io",
        name="RayCluster",
        plural="rayclusters",
        versions=_VERSIONS,
        reads=(
            "spec.headGroupSpec.template",
            *(f"spec.workerGroupSpecs[].{one}" for one in _WORKER_FIELDS),
            "spec.enableInTreeAutoscaling",
            "spec.suspend",
            f"metadata.labels.{_PRIORITY}",
        ),
        member=_member,
        reads_of_pod=(_GROUP,),
        children=_cluster_children,
    ),
    Kind(
        api_group="ray.io",
        name="RayJob",
        plural="rayjobs",
        versions=_VERSIONS,
        reads=(
            "spec.rayClusterSpec",
            "spec.clusterSelector",
            "spec.submissionMode",
            "spec.submitterPodTemplate",
            "spec.suspend",
        ),
        children=_job_children,
        leaves_to_others=True,
    ),
    Kind(
        api_group="ray.io",
        name="RayCronJob",
        plural="raycronjobs",
        versions=("v1",),
        reads=("spec.jobTemplate", "spec.suspend"),
        children=_cron_job_children,
        leaves_to_others=True,
    ),
    Kind(
        api_group="ray.io",
        name="RayService",
        plural="rayservices",
        versions=_VERSIONS,
        reads=("spec.rayClusterConfig", "spec.suspend"),
        children=_service_children,
        leaves_to_others=True,
    ),
)
