"""A group of `workloads/` as the PodGroup that a profile reads, and its pods as they are read then.

Volcano's form has a minimum for each role, and tiers of HyperNodes; KAI's has a tree of sub-groups, and levels of a
topology. What a form cannot say is left out: profile `volcano` sees the sets at the ends of a tree side by side. The
default profile reads both forms. It takes KAI's for a group whose sets lie in one another or that wishes for levels of
a topology, and Volcano's for all others.

A group that is written here exists in memory only. Its name has a colon, which no object's has, so that nothing refers
to it by accident.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from msgspec.structs import replace

from maniple.objects.core import Pod
from maniple.objects.group_claims import GROUP_CLAIMS, note
from maniple.objects.kai import (
    KaiPodGroup,
    KaiPodGroupSpec,
    SubGroup,
    Topology,
    TopologyConstraint,
    TopologyLevel,
    TopologySpec,
)
from maniple.objects.limits import WAITS
from maniple.objects.meta import LabelSelector, Object, ObjectMeta, ResourceList
from maniple.objects.quantity import format_quantity
from maniple.objects.requests import pod_requests
from maniple.objects.switches import EVICTED_WHOLE
from maniple.objects.volcano import NetworkTopology, SubGroupPolicy, VolcanoPodGroup, VolcanoPodGroupSpec
from maniple.plugins.kai.labelled import QUEUE_LABEL, queue_label
from maniple.profiles import kai, volcano
from maniple.profiles.maniple import SCHEDULER_NAME
from maniple.profiles.options import strings
from maniple.workloads.model import DomainWish, Group, PodSet

_PROJECT = "project"  # KAI's older label for the queue
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
KAI_DEFAULT_QUEUE = "default-queue"
_KAI_DEFAULT_PRIORITY = "train"
_KAI_PRIORITIES = {"Deployment": "inference", "Notebook": "build", "SPOTRequest": "inference"}
_KAI_PREEMPTIBILITY = {True: "preemptible", False: "non-preemptible", None: ""}
_LABEL = "label:"
# Which keys a pod was given with its group, each with the value that it had: "annotation:key=value" or "label:key".
ADDED = "maniple.dev/added"


@dataclass(frozen=True, slots=True)
class AskedGroup:
    """What is to be written: a group, or the part of one whose pods wait for others.

    `pods`: the first pod of each set, by name, as far as a form may read it (`sample_of`); what differs between pods of
    a set is taken from it.
    """

    name: str
    metadata: ObjectMeta  # of the owner, or of the first pod if the owner is not there
    group: Group
    pods: Mapping[str, Pod] = field(default_factory=dict)
    why: str = ""  # the group waits, with this reason

    @property
    def first(self) -> Pod:
        return next(iter(self.pods.values()))


def sample_of(pod: Pod) -> Pod:
    """A pod without what changes as it is scheduled and runs, so that its group is not written again for that."""
    meta = ObjectMeta(name=pod.metadata.name, namespace=pod.metadata.namespace, labels=pod.metadata.labels)
    spec = (
        replace(pod.spec, node_name="", scheduling_gates=())
        if pod.spec.node_name or pod.spec.scheduling_gates
        else pod.spec
    )
    return Pod(metadata=meta, spec=spec)


class Form(Protocol):
    """How a profile reads groups."""

    one_by_one: bool  # pods that have nothing to do with one another get a group each

    def takes(self, pod: Pod) -> bool:
        """Whether a pod is of this scheduler and has no group."""

    def group(self, asked: AskedGroup) -> Object:
        """The group as an object."""

    def pod(self, pod: Pod, name: str, group: Group, set_name: str) -> Pod:
        """A pod as it is read in the group of this name."""

    def marks(self, group: Group) -> object:
        """What `pod` reads of a group."""


class VolcanoForm:
    one_by_one = False

    def __init__(self, scheduler_names: Collection[str], label_of_queues: str = "") -> None:
        """`label_of_queues`: of pods, besides those that `workloads/` reads."""
        self._names = frozenset(scheduler_names)
        self._queue_label = label_of_queues

    def takes(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._names and not pod.metadata.annotations.get(volcano.GROUP_NAME)

    def group(self, asked: AskedGroup) -> Object:
        group = asked.group
        leaves = _leaves(group)
        annotations = _waits(asked)
        if group.preemptible is not None:
            annotations[volcano.PREEMPTABLE] = str(group.preemptible).lower()
        return VolcanoPodGroup(
            metadata=_metadata(asked, annotations=annotations),
            spec=VolcanoPodGroupSpec(
                min_member=group.minimum,
                min_task_member={one.name: one.minimum for one in leaves if one.minimum},
                queue=asked.first.metadata.labels.get(self._queue_label) or group.queue,
                priority_class_name=group.priority_class,
                min_resources=_min_resources(asked, leaves),
                network_topology=_tier(group.domain),
                sub_group_policy=tuple(_policy(one) for one in leaves if _tier(one.domain) is not None),
            ),
        )

    def pod(self, pod: Pod, name: str, group: Group, set_name: str) -> Pod:
        role = {volcano.ROLE: set_name} if set_name else {}
        labels = role if set_name in _tiered(group) else {}
        added = {**role, **_shared_claims(pod, group)}
        return _in_group(pod, {volcano.GROUP_NAME: name}, added, labels)

    def marks(self, group: Group) -> object:
        return _tiered(group), group.claims, group.owner.uid


class KaiForm:
    one_by_one = True

    def __init__(
        self,
        scheduler_names: Collection[str],
        pool: kai.NodePool,
        label_of_queues: str = QUEUE_LABEL,
        *,
        defaults: bool = True,
    ) -> None:
        """`defaults`: a group that names no queue or priority class gets those of KAI's podgrouper."""
        self._names = frozenset(scheduler_names)
        self._pool = pool
        self._queue_label = label_of_queues
        self._defaults = defaults

    def takes(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._names and not pod.metadata.annotations.get(kai.GROUP_NAME)

    def group(self, asked: AskedGroup) -> Object:
        group, labels = asked.group, asked.first.metadata.labels
        pool = {self._pool.key: labels[self._pool.key]} if self._pool.key in labels else {}
        return KaiPodGroup(
            metadata=_metadata(asked, labels=pool, annotations=_waits(asked)),
            spec=KaiPodGroupSpec(
                min_member=group.minimum,
                queue=labels.get(self._queue_label) or group.queue or self._default_queue(labels),
                priority_class_name=group.priority_class or self._default_priority(group),
                preemptibility=_KAI_PREEMPTIBILITY[group.preemptible],
                topology_constraint=_level(group.domain) or TopologyConstraint(),
                sub_groups=tuple(
                    SubGroup(
                        name=one.name,
                        min_member=one.minimum,
                        parent=one.parent or None,
                        topology_constraint=_level(one.domain),
                    )
                    for one in group.sets
                ),
            ),
        )

    def _default_queue(self, labels: Mapping[str, str]) -> str:
        if labels.get(_PROJECT):
            return "-".join(filter(None, (labels[_PROJECT], labels.get(self._pool.key))))
        return KAI_DEFAULT_QUEUE if self._defaults else ""

    def _default_priority(self, group: Group) -> str:
        return _KAI_PRIORITIES.get(group.owner.kind, _KAI_DEFAULT_PRIORITY) if self._defaults else ""

    def pod(self, pod: Pod, name: str, group: Group, set_name: str) -> Pod:
        added = {kai.SUB_GROUP: set_name} if set_name else {}
        return _in_group(pod, {kai.GROUP_NAME: name}, _shared_claims(pod, group), added)

    def marks(self, group: Group) -> object:
        return group.claims, group.owner.uid


class ManipleForm:
    """KAI's form where only that will do, and Volcano's otherwise."""

    one_by_one = False

    def __init__(
        self, scheduler_names: Collection[str], pool: kai.NodePool, label_of_queues: str = QUEUE_LABEL
    ) -> None:
        # The usual label is one of those that `workloads/` reads, in their order.
        label = "" if label_of_queues == QUEUE_LABEL else label_of_queues
        self._volcano = VolcanoForm(scheduler_names, label)
        self._kai = KaiForm(scheduler_names, pool, label, defaults=False)

    def takes(self, pod: Pod) -> bool:
        return self._volcano.takes(pod) and self._kai.takes(pod)

    def group(self, asked: AskedGroup) -> Object:
        return self._of(asked.group).group(asked)

    def pod(self, pod: Pod, name: str, group: Group, set_name: str) -> Pod:
        return self._of(group).pod(pod, name, group, set_name)

    def marks(self, group: Group) -> object:
        form = self._of(group)
        return form, form.marks(group)

    def _of(self, group: Group) -> VolcanoForm | KaiForm:
        wishes = (group.domain, *(one.domain for one in group.sets))
        return (
            self._kai
            if any(map(has_level, wishes)) or any(one.parent for one in group.sets)
            else self._volcano
        )


def volcano_form(options: Mapping[str, Any]) -> Form:
    return VolcanoForm(strings(options, "schedulerName") or ("volcano",))


def kai_form(options: Mapping[str, Any]) -> Form:
    names = strings(options, "schedulerName") or ("kai-scheduler",)
    return KaiForm(names, _pool(options), queue_label(options))


def maniple_form(options: Mapping[str, Any]) -> Form:
    names = strings(options, "schedulerName") or (SCHEDULER_NAME,)
    return ManipleForm(names, _pool(options), queue_label(options))


def _pool(options: Mapping[str, Any]) -> kai.NodePool:
    default = kai.NodePool()
    return kai.NodePool(
        options.get("nodePoolLabelKey", default.key), options.get("nodePoolLabelValue", default.value)
    )


# -- groups that exist only in memory ----------------------------------------------------------------------------------


def is_made(item: Object) -> bool:
    """Whether a group, or a topology that one refers to, was written here and exists in memory only."""
    return isinstance(item, VolcanoPodGroup | KaiPodGroup | Topology) and ":" in item.metadata.name


def ungrouped(pod: Pod) -> Pod:
    """The pod without the group that it was given here."""
    known = pod.metadata.annotations
    made = [key for key in (volcano.GROUP_NAME, kai.GROUP_NAME) if ":" in known.get(key, "")]
    return without_group(pod, made) if made else pod


def without_group(pod: Pod, names: Collection[str]) -> Pod:
    """The pod without these annotations, and with what it had before it was given a group."""
    known = pod.metadata.annotations
    annotations = {key: text for key, text in known.items() if key not in (*names, ADDED)}
    labels = dict(pod.metadata.labels)
    for entry in filter(None, known.get(ADDED, "").split(",")):
        place, _, rest = entry.partition(":")
        key, had, before = rest.partition("=")
        kept = annotations if place == "annotation" else labels
        kept.pop(key, None)
        if had:
            kept[key] = before
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations, labels=labels))


def _shared_claims(pod: Pod, group: Group) -> dict[str, str]:
    """The note of the claims that the pod shares with its group; an empty one in place of a note that is not ours."""
    shared = {(one.name, one.claim, one.template) for one in group.claims}
    names = [
        one.name
        for one in pod.spec.resource_claims
        if (one.name, one.resource_claim_name or "", one.resource_claim_template_name or "") in shared
    ]
    if names:
        return {GROUP_CLAIMS: note(group.owner.uid, names)}
    return {GROUP_CLAIMS: ""} if GROUP_CLAIMS in pod.metadata.annotations else {}


def _in_group(
    pod: Pod, group: Mapping[str, str], annotations: Mapping[str, str], labels: Mapping[str, str]
) -> Pod:
    known = pod.metadata
    added = [
        f"{place}:{key}={before[key]}" if key in before else f"{place}:{key}"
        for place, new, before in (
            ("annotation", annotations, known.annotations),
            ("label", labels, known.labels),
        )
        for key in new
        if before.get(key) != new[key]
    ]
    note = {ADDED: ",".join(added)} if added else {}
    metadata = replace(known, annotations={**known.annotations, **annotations, **group, **note})
    if labels:
        metadata = replace(metadata, labels={**known.labels, **labels})
    return replace(pod, metadata=metadata)


def _metadata(
    asked: AskedGroup, annotations: dict[str, str], labels: dict[str, str] | None = None
) -> ObjectMeta:
    return ObjectMeta(
        name=asked.name,
        namespace=asked.first.metadata.namespace,
        uid=asked.metadata.uid,
        creation_timestamp=asked.metadata.creation_timestamp,
        # A label, since annotations that a group in memory had stay with it (`grouping.with_status`).
        labels={**(labels or {}), **({EVICTED_WHOLE: "true"} if asked.group.evicted_whole else {})},
        annotations=annotations,
    )


def _waits(asked: AskedGroup) -> dict[str, str]:
    return {WAITS: asked.why} if asked.why else {}


def _leaves(group: Group) -> list[PodSet]:
    parents = {one.parent for one in group.sets}
    return [one for one in group.sets if one.name not in parents]


def _min_resources(asked: AskedGroup, leaves: list[PodSet]) -> ResourceList:
    """What the minimum requests, if the pods of a set are like its first."""
    parts = [(one.minimum, asked.pods.get(one.name)) for one in leaves] or [
        (asked.group.minimum, asked.first)
    ]
    total: dict[str, Fraction | int] = {}
    for number, pod in parts:
        for name, amount in (pod_requests(pod) if pod is not None else {}).items():
            total[name] = total.get(name, 0) + number * amount
    return {name: format_quantity(amount) for name, amount in total.items()}


def _tier(wish: DomainWish | None) -> NetworkTopology | None:
    if wish is None or (wish.highest_tier is None and not wish.highest_tier_name):
        return None
    return NetworkTopology(
        mode=wish.mode, highest_tier_allowed=wish.highest_tier, highest_tier_name=wish.highest_tier_name
    )


def _tiered(group: Group) -> Collection[str]:
    """The sets of which pods are told apart by a label."""
    return {one.name for one in group.sets if _tier(one.domain) is not None}


def _policy(one: PodSet) -> SubGroupPolicy:
    return SubGroupPolicy(
        name=one.name,
        sub_group_size=max(one.minimum, 1),
        min_sub_groups=min(one.minimum, 1),
        label_selector=LabelSelector(match_labels={volcano.ROLE: one.name}),
        match_label_keys=(volcano.ROLE,),
        network_topology=_tier(one.domain),
    )


def _level(wish: DomainWish | None) -> TopologyConstraint | None:
    if wish is None or not has_level(wish):
        return None
    return TopologyConstraint(
        topology=wish.topology or f"{_LABEL}{wish.required or wish.preferred}",
        required_topology_level=wish.required,
        preferred_topology_level=wish.preferred,
    )


def has_level(wish: DomainWish | None) -> bool:
    """Whether pods are to be close by the levels of a topology, or by one node label."""
    return wish is not None and bool(wish.topology or wish.required or wish.preferred)


def topologies_of(group: Object) -> dict[str, Topology]:
    """By name, the topologies of one level that a group refers to and that exist in memory only: those of node labels
    that a workload names without a topology."""
    if not isinstance(group, KaiPodGroup):
        return {}
    wanted = (group.spec.topology_constraint, *(one.topology_constraint for one in group.spec.sub_groups))
    return {
        one.topology: Topology(
            metadata=ObjectMeta(name=one.topology),
            spec=TopologySpec(levels=(TopologyLevel(node_label=one.topology.removeprefix(_LABEL)),)),
        )
        for one in wanted
        if one is not None and one.topology.startswith(_LABEL)
    }
