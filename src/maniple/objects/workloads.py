"""Objects that create pods, and kinds that are not supported here at all.

`plan` and `run` ask this of their input. Workloads of known kinds are expanded into their pods (`workloads/`); any
other whose pods are not in the input is work that cannot be judged. A pod template anywhere in the spec makes a
workload, so that custom kinds are recognised without a list of them.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from maniple.objects.load import KINDS, Problem, struct_of, title_of
from maniple.objects.owners import OWNERS
from maniple.workloads.kinds import TABLE, Table
from maniple.workloads.manifests import is_manifest

Raw = Mapping[str, Any]

_DEEPEST = 64


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Create pods, even if no template is to be found in the object itself.
_POD_CREATORS = _names(
    """AppWrapper CronJob CronWorkflow DaemonSet Deployment JAXJob Job JobFlow JobSet LeaderWorkerSet MPIJob
    Notebook PaddleJob PipelineRun PodCliqueSet PyTorchJob RayCluster RayJob RayService ReplicaSet
    ReplicationController ScheduledSparkApplication SparkApplication StatefulSet TFJob TaskRun TrainJob
    Workflow XGBoostJob"""
)
# Have a template of pods that another object creates.
_TEMPLATES_ONLY = _names(
    """ClusterTrainingRuntime ClusterWorkflowTemplate ControllerRevision JobTemplate PodTemplate
    TrainingRuntime Workload WorkflowTemplate"""
)
_READ_BY_CONTROLLERS = frozenset({"ClusterTrainingRuntime", "TrainingRuntime"})
# How many pods these create depends on nodes or on time.
_UNCOUNTED = frozenset({"CronJob", "DaemonSet"})
# Kinds of Kubernetes itself that no scheduling decision depends on.
_BUILT_IN_GROUPS = frozenset({"", "apps", "autoscaling", "policy"})
_IRRELEVANT = _names(
    """APIService CSIDriver CertificateSigningRequest ClusterRole ClusterRoleBinding ClusterTrustBundle
    ComponentStatus ControllerRevision CustomResourceDefinition EndpointSlice Endpoints Event FlowSchema
    HorizontalPodAutoscaler IPAddress Ingress IngressClass Lease LeaseCandidate LimitRange
    MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration NetworkPolicy
    NodeMetrics PodMetrics PodTemplate PriorityLevelConfiguration Role RoleBinding Secret ServiceAccount
    ServiceCIDR StorageVersion ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
    ValidatingWebhookConfiguration VolumeAttachment VolumeAttributesClass"""
)


def unsupported(raw: Raw) -> str:
    """What to say of an object whose kind is not supported."""
    return f"kind {raw.get('kind')} ({raw.get('apiVersion')}) is not supported{_meant(raw)}; ignored"


def _meant(raw: Raw) -> str:
    """The kind that was probably meant, or the group of a kind that is supported in another one."""
    name = str(raw.get("kind"))
    own = [kind for kind in KINDS if kind not in OWNERS]
    groups = [kind.api_group or "v1" for kind in own if kind.kind == name]
    if groups:
        return f" (it is in {' and '.join(groups)})"
    kinds = {kind.kind.lower(): kind.kind for kind in own}
    close = get_close_matches(name.lower(), kinds, n=1, cutoff=0.85)
    return f" (did you mean {kinds[close[0]]}?)" if close else ""


def is_irrelevant(raw: Raw) -> bool:
    """Whether the kind is one of Kubernetes' own that scheduling never reads, or one that only expanding reads."""
    group = str(raw.get("apiVersion")).rpartition("/")[0]
    if str(raw.get("kind")) in _READ_BY_CONTROLLERS:
        return True
    return str(raw.get("kind")) in _IRRELEVANT and (group in _BUILT_IN_GROUPS or group.endswith(".k8s.io"))


class Workloads:
    """Finds workloads whose pods are missing from the input."""

    def __init__(self, objects: Iterable[Any], table: Table = TABLE) -> None:
        self._table = table
        raws = (raw for raw in objects if isinstance(raw, Mapping) and raw.get("kind") == "Pod")
        self._owners = {owner for raw in raws for owner in _owners(raw)}

    def problem(self, raw: Raw) -> Problem | None:
        """What to say of a workload that cannot be judged; None for anything else, and for those that are expanded."""
        pods = "" if is_manifest(raw, self._table) else self._missing_pods(raw)
        if not pods:
            return None
        said = f"kind {raw.get('kind')} ({raw.get('apiVersion')}) creates no pods here"
        message = unsupported(raw) if struct_of(raw) is None else f"{said}; ignored"
        return Problem(title_of(raw), "", f"{message}, with {pods}")

    def _missing_pods(self, raw: Raw) -> str:
        """The pods that an object would create, in words; empty if it creates none or they exist.

        An object with a uid has been in a cluster, where its controller has created them.
        """
        kind, metadata = raw.get("kind"), _section(raw.get("metadata"))
        if metadata.get("uid") or not isinstance(kind, str) or kind in _TEMPLATES_ONLY or kind == "Pod":
            return ""
        if (_namespace(metadata), kind, str(metadata.get("name"))) in self._owners:
            return ""
        count = _pods(raw.get("spec"), 0)
        if count is None:
            return "its pods" if kind in _POD_CREATORS and struct_of(raw) is None else ""
        if not count:
            return ""
        if kind in _UNCOUNTED:
            return "its pods"
        return "its pod" if count == 1 else f"its {count:,} pods"


def unjudged(objects: Iterable[Any], table: Table = TABLE) -> list[Problem]:
    """A problem for each workload among the objects whose pods are not there."""
    raws = [raw for raw in objects if isinstance(raw, Mapping) and _may_create(raw)]
    workloads = Workloads(objects if raws else (), table)
    return [problem for raw in raws if (problem := workloads.problem(raw)) is not None]


def _may_create(raw: Raw) -> bool:
    if raw.get("kind") == "Pod":
        return False  # nearly all objects are
    kind = struct_of(raw)
    return kind is None or kind.kind in _POD_CREATORS


def _owners(pod: Raw) -> Iterable[tuple[str, str, str]]:
    metadata = _section(pod.get("metadata"))
    owners = metadata.get("ownerReferences")
    for one in owners if isinstance(owners, list) else ():
        if isinstance(one, Mapping):
            yield _namespace(metadata), str(one.get("kind")), str(one.get("name"))


def _pods(value: Any, depth: int) -> int | None:
    """The pods of all templates inside a value, each as often as the fields around it say; None without
    one."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, list):
        return _sum(_pods(part, depth + 1) for part in value)
    if not isinstance(value, Mapping):
        return None
    containers = value.get("containers")
    if isinstance(containers, list) and all(isinstance(one, Mapping) for one in containers):
        return 1
    if isinstance(value.get("workerTemplate"), Mapping) and "size" in value:
        return _count(value, "size")  # of a LeaderWorkerSet, the leader included
    inside = _sum(_pods(part, depth + 1) for part in value.values())
    return None if inside is None else inside * _times(value)


def _times(value: Raw) -> int:
    """How many copies a level asks for: replicas, or pods of a Job at a time."""
    parallel = _count(value, "parallelism")
    if "completions" in value:
        parallel = min(parallel, _count(value, "completions"))
    return parallel * _count(value, "replicas")


def _count(value: Raw, field: str) -> int:
    number = value.get(field)
    return max(number, 0) if isinstance(number, int) and not isinstance(number, bool) else 1


def _sum(parts: Iterable[int | None]) -> int | None:
    counts = [part for part in parts if part is not None]
    return sum(counts) if counts else None


def _section(value: Any) -> Raw:
    return value if isinstance(value, Mapping) else {}


def _namespace(metadata: Raw) -> str:
    return str(metadata.get("namespace") or "default")
