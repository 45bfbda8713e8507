"""How large an object may be: many times what anybody needs, and never so much that others wait for it.

The API server accepts what is shorter than 1.5 MB. Each term of a pod or a pod group costs time for every node or every
other pod; beyond these limits all of them are left out, and the object waits with a message that names the field. A
bound pod counts nevertheless, with what is left.
"""

from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from maniple.objects.core import (
    Affinity,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSpec,
)
from maniple.objects.kai import KaiPodGroup, SubGroup
from maniple.objects.meta import LabelSelector, Object
from maniple.objects.volcano import SubGroupPolicy, VolcanoPodGroup

Some = TypeVar("Some", bound=Object)

MOST_TERMS = 512  # of one pod, each compared with all nodes or all pods
MOST_PARTS = 1024  # of one group
MOST_LEVELS = 32
# On a group that was made in memory: why its pods are not scheduled yet.
WAITS = "maniple.dev/waits"


def refusal_of(item: Object) -> str:
    """Why a group is not served, whatever the rest of the cluster is like; empty for nearly all."""
    return too_large(item) or item.metadata.annotations.get(WAITS, "")


def too_large(item: Object) -> str:
    """What is too large about an object, and how large it may be; empty for nearly all."""
    if isinstance(item, Pod):
        return _pod(item.spec)
    if isinstance(item, VolcanoPodGroup):
        return _over(
            ("spec.minTaskMember", len(item.spec.min_task_member), MOST_PARTS, "roles"),
            ("spec.subGroupPolicy", _policies(item.spec.sub_group_policy), MOST_TERMS, "terms"),
        )
    if isinstance(item, KaiPodGroup) and item.spec.sub_groups:
        groups = item.spec.sub_groups
        return _over(
            ("spec.subGroups", len(groups), MOST_PARTS, "groups"),
            ("spec.subGroups", _levels(groups[:MOST_PARTS]), MOST_LEVELS, "levels"),
        )
    return ""


def within_limits(item: Some) -> Some:
    """An object that is too large, without what may be."""
    if isinstance(item, Pod):
        spec = replace(
            item.spec,
            affinity=None,
            node_selector={},
            topology_spread_constraints=(),
        )
        return replace(item, spec=spec)
    if isinstance(item, VolcanoPodGroup):
        return replace(item, spec=replace(item.spec, min_task_member={}, sub_group_policy=()))
    if isinstance(item, KaiPodGroup):
        return replace(item, spec=replace(item.spec, sub_groups=()))
    return item


def _over(*amounts: tuple[str, int, int, str]) -> str:
    found = (
        f"{field} has {amount:,} {what}; at most {most:,} are supported"
        for field, amount, most, what in amounts
        if amount > most
    )
    return next(found, "")


# -- pods --------------------------------------------------------------------------------------------------------------


def _pod(spec: PodSpec) -> str:
    spread = spec.topology_spread_constraints
    if not spec.affinity and not spread and len(spec.node_selector) <= MOST_TERMS:
        return ""
    return _over(
        ("spec.nodeSelector", len(spec.node_selector), MOST_TERMS, "labels"),
        ("spec.affinity", _affinity(spec.affinity) if spec.affinity else 0, MOST_TERMS, "terms"),
        (
            "spec.topologySpreadConstraints",
            sum(1 + _selector(one.label_selector) + len(one.match_label_keys) for one in spread),
            MOST_TERMS,
            "terms",
        ),
    )


def _affinity(affinity: Affinity) -> int:
    """Terms and the expressions in them."""
    size = sum(_pods(one) for one in (affinity.pod_affinity, affinity.pod_anti_affinity) if one is not None)
    nodes = affinity.node_affinity
    if nodes is not None:
        required = nodes.required_during_scheduling_ignored_during_execution
        size += sum(map(_node_term, required.node_selector_terms)) if required is not None else 0
        preferred = nodes.preferred_during_scheduling_ignored_during_execution
        size += sum(_node_term(one.preference) for one in preferred)
    return size


def _pods(affinity: PodAffinity | PodAntiAffinity) -> int:
    required = affinity.required_during_scheduling_ignored_during_execution
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    return _pod_terms(required) + _pod_terms(one.pod_affinity_term for one in preferred)


def _pod_terms(terms: Iterable[PodAffinityTerm]) -> int:
    return sum(
        1
        + _selector(one.label_selector)
        + _selector(one.namespace_selector)
        + len(one.match_label_keys)
        + len(one.mismatch_label_keys)
        for one in terms
    )


def _node_term(term: NodeSelectorTerm) -> int:
    return 1 + len(term.match_expressions) + len(term.match_fields)


def _selector(selector: LabelSelector | None) -> int:
    return 0 if selector is None else len(selector.match_labels) + len(selector.match_expressions)


# -- groups ------------------------------------------------------------------------------------------------------------


def _policies(policies: Iterable[SubGroupPolicy]) -> int:
    return sum(1 + _selector(one.label_selector) + len(one.match_label_keys) for one in policies)


def _levels(groups: Iterable[SubGroup]) -> int:
    """How deep groups lie in one another; those in a circle lie nowhere."""
    above = {one.name: one.parent or "" for one in groups}
    return max((_depth(above, name) for name in above), default=0)


def _depth(above: dict[str, str], name: str) -> int:
    depth = 0
    while name in above and depth <= MOST_LEVELS:
        name, depth = above[name], depth + 1
    return depth if depth <= len(above) else 0
