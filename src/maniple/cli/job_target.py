"""The objects behind the name of a job on a cluster: its pod group, its pods, and the owners above them.

A job is suspended where its kind says so, by a field of the highest owner that has one; otherwise by our annotation on
its pod group. The controllers of owners that are suspended delete their pods; the annotation leaves those that run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from maniple.cli import InputError
from maniple.objects.kai import KaiPodGroup
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoPodGroup

if TYPE_CHECKING:
    from maniple.kube.editing import Editor
    from maniple.kube.kinds import Resource

Raw = dict[str, Any]

_SPEC, _RUN_POLICY = ("spec", "suspend"), ("spec", "runPolicy", "suspend")
_TRAINING = ("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob", "MXJob")
# Where kinds say that they are suspended, by API group and kind.
SUSPENDABLE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("batch", "Job"): _SPEC,
    ("jobset.x-k8s.io", "JobSet"): _SPEC,
    ("trainer.kubeflow.org", "TrainJob"): _SPEC,
    ("ray.io", "RayJob"): _SPEC,
    ("ray.io", "RayCluster"): _SPEC,
    **{("kubeflow.org", kind): _RUN_POLICY for kind in _TRAINING},
}
# They create one job after another: a job of theirs ends below them.
_RECURRING = ("CronJob", "CronWorkflow", "ScheduledWorkflow", "ScheduledSparkApplication")
_GROUP_NAMES: Mapping[type[Object], str] = {
    VolcanoPodGroup: "scheduling.k8s.io/group-name",
    KaiPodGroup: "pod-group-name",
}
_SYSTEMS: Mapping[str, type[Object]] = {"volcano": VolcanoPodGroup, "kai": KaiPodGroup}
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Found:
    """One object of the cluster."""

    resource: "Resource"
    kind: str
    raw: Raw

    @property
    def key(self) -> str:
        meta = self.raw["metadata"]
        return "/".join(filter(None, (meta.get("namespace", ""), meta["name"])))

    @property
    def name(self) -> str:
        """As kubectl writes it, with its namespace."""
        group = f".{self.resource.group}" if self.resource.group else ""
        return f"{self.kind.lower()}{group}/{self.key}"

    @property
    def uid(self) -> str:
        return str(self.raw["metadata"]["uid"])

    @property
    def suspend_path(self) -> tuple[str, ...] | None:
        return SUSPENDABLE.get((self.resource.group, self.kind))


@dataclass(frozen=True, slots=True)
class Target:
    """A job. `owners`: the nearest first."""

    group: Found | None
    pods: list[Raw] = field(default_factory=list)
    owners: list[Found] = field(default_factory=list)

    @property
    def suspendable(self) -> Found | None:
        """The highest owner that can be suspended."""
        return next((one for one in reversed(self.owners) if one.suspend_path), None)


async def find_job(editor: "Editor", name: str) -> Target:
    """A pod group or a pod by namespace and name; `@kai` or `@volcano` tells groups of one name apart."""
    key, _, system = name.partition("@")
    namespace, _, own = key.partition("/")
    pods = await editor.pods_in(namespace)
    groups = await _groups(editor, key, system)
    if len(groups) > 1:
        raise InputError(f"both systems have a pod group {key!r}; name it {key}@volcano or {key}@kai")
    if not groups:
        pod = next((one for one in pods if one["metadata"]["name"] == own.removeprefix("pod:")), None)
        if pod is None:
            raise InputError(
                f"no pod group and no pod {key!r} on the cluster; `maniple job list` has the names"
            )
        groups = await _groups_of_pod(editor, pod, namespace)
        if not groups:
            return Target(None, [pod], await _owners(editor, pod))
    struct, group = groups[0]
    members = [
        one for one in pods if _annotations(one).get(_GROUP_NAMES[struct]) == group.raw["metadata"]["name"]
    ]
    owners = await _owners(editor, group.raw)
    if not owners and members:
        owners = await _owners(editor, members[0])
    return Target(group, members, owners)


async def _groups(editor: "Editor", key: str, system: str = "") -> list[tuple[type[Object], Found]]:
    if system and system not in _SYSTEMS:
        raise InputError(f"unknown system {system!r}; expected one of {', '.join(_SYSTEMS)}")
    found = []
    for struct in (_SYSTEMS[system],) if system else _SYSTEMS.values():
        resource = await editor.known(struct)
        raw = await editor.get(resource, key) if resource is not None else None
        if resource is not None and raw is not None:
            found.append((struct, Found(resource, "PodGroup", raw)))
    return found


async def _groups_of_pod(editor: "Editor", pod: Raw, namespace: str) -> list[tuple[type[Object], Found]]:
    for system, struct in _SYSTEMS.items():
        name = _annotations(pod).get(_GROUP_NAMES[struct])
        if name:
            return await _groups(editor, f"{namespace}/{name}", system)
    return []


async def _owners(editor: "Editor", raw: Raw) -> list[Found]:
    """The controllers above an object, the nearest first, up to what the server has and this user may read."""
    found: list[Found] = []
    while len(found) < _DEEPEST:
        references = raw["metadata"].get("ownerReferences", [])
        owner = next((one for one in references if one.get("controller")), None)
        if owner is None or owner["kind"] in _RECURRING:
            break
        resource = await editor.named(owner["apiVersion"], owner["kind"])
        namespace = raw["metadata"].get("namespace", "")
        above = await editor.get(resource, f"{namespace}/{owner['name']}") if resource is not None else None
        if resource is None or above is None or above["metadata"]["uid"] != owner["uid"]:
            break
        found.append(Found(resource, owner["kind"], above))
        raw = above
    return found


def _annotations(raw: Raw) -> Mapping[str, str]:
    found: Mapping[str, str] = raw["metadata"].get("annotations") or {}
    return found


def is_at(raw: Raw, path: tuple[str, ...]) -> bool:
    """Whether a field of an object is true."""
    value: Any = raw
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value is True


def setting_of(path: tuple[str, ...], value: Any) -> Raw:
    """A merge patch that sets one field."""
    made: Any = value
    for step in reversed(path):
        made = {step: made}
    found: Raw = made
    return found
