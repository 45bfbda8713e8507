"""Kubernetes' own groups: the PodGroup that a pod names in `spec.schedulingGroup`, and the Workload of 1.35.

The object that the pod names decides, whatever owns the pod. What its fields become:

| field | becomes |
|---|---|
| `schedulingPolicy.gang.minCount` (`policy.gang.minCount` of a Workload) | the minimum |
| `schedulingPolicy.basic` (`policy.basic`) | pods one by one; with a topology, pods of one group with minimum 1 |
| `schedulingConstraints.topology[0].key` | the domain that all pods have to share: one value of that node label |
| `disruptionMode` | `PodGroup` (`all` in 1.37): whole, also with `basic`; `Pod` (`single`), the default: one by one |
| `priorityClassName` | the priority class. `priority` is not read: admission derives it from the class |
| `resourceClaims` | the claims that the pods share: those whose entry in the pod is equal |
| `podGroupTemplateRef`, `workloadRef` | nothing: a PodGroup has a copy of what its template says |

Composite groups (1.37, alpha) are refused: without its siblings a part of one would start too early.
"""

from dataclasses import replace

from maniple.workloads.building import Path, group_of, independent
from maniple.workloads.fields import count, fail, section, sections, shown, text, value
from maniple.workloads.kind import Kind
from maniple.workloads.model import Chain, DomainWish, Group, Member, Owner, Raw, SharedClaim

API_GROUP = "scheduling.k8s.io"
_POD_GROUP = ("spec", "schedulingGroup", "podGroupName")
_WORKLOAD = ("spec", "workloadRef")
_EVICTED_WHOLE = {"Pod": False, "PodGroup": True, "single": False, "all": True}


def native_reference(pod: Raw) -> Owner | None:
    """The object that a pod names as its group, which counts before its owners."""
    name = text(pod, _POD_GROUP)
    if name:
        return Owner(f"{API_GROUP}/v1alpha2", "PodGroup", name)
    name = text(pod, (*_WORKLOAD, "name"))
    return Owner(f"{API_GROUP}/v1alpha1", "Workload", name) if name else None


def _pod_group_member(chain: Chain) -> Member:
    spec: Path = ("spec",)
    if text(chain.top, (*spec, "parentCompositePodGroupName")):
        raise fail(
            chain.top,
            (*spec, "parentCompositePodGroupName"),
            "composite pod groups are not supported; remove it to schedule this group for itself",
        )
    group = _group(chain, (*spec, "schedulingPolicy"), "")
    whole = _evicted_whole(chain.top, (*spec, "disruptionMode"))
    return Member(
        replace(
            group,
            independent=group.independent and not whole,
            evicted_whole=whole,
            claims=_claims(chain.top),
        )
    )


def _workload_member(chain: Chain) -> Member:
    """The pod says which of the Workload's groups it is in, and in which replica of it."""
    wanted = text(chain.pod, (*_WORKLOAD, "podGroup"))
    replica = text(chain.pod, (*_WORKLOAD, "podGroupReplicaKey"))
    for number, _ in enumerate(sections(chain.top, ("spec", "podGroups"))):
        path: Path = ("spec", "podGroups", number)
        if text(chain.top, (*path, "name")) == wanted:
            part = f"{wanted}:{replica}" if replica else wanted
            return Member(_group(chain, (*path, "policy"), part))
    raise fail(
        chain.pod,
        (*_WORKLOAD, "podGroup"),
        f"names no pod group of Workload {text(chain.top, ('metadata', 'name'))}: {shown(wanted)}",
    )


def _group(chain: Chain, policy: Path, part: str) -> Group:
    found = section(chain.top, policy)
    if len([name for name in ("basic", "gang") if found.get(name) is not None]) != 1:
        raise fail(chain.top, policy, "must have exactly one of basic and gang")
    domain = _domain(chain.top)
    priority_class = text(chain.top, ("spec", "priorityClassName"))
    if found.get("gang") is None:
        section(chain.top, (*policy, "basic"))
        group = independent(chain, part=part)
        return replace(
            group,
            independent=group.independent and domain is None,
            domain=group.domain or domain,
            priority_class=priority_class or group.priority_class,
        )
    minimum = count(chain.top, (*policy, "gang", "minCount"))
    if minimum < 1:
        raise fail(chain.top, (*policy, "gang", "minCount"), "must be 1 or more")
    return group_of(chain, minimum, part=part, priority_class=priority_class, domain=domain)


def _domain(pod_group: Raw) -> DomainWish | None:
    path: Path = ("spec", "schedulingConstraints", "topology")
    wanted = sections(pod_group, path)
    if not wanted:
        return None
    if len(wanted) > 1:
        raise fail(pod_group, path, "must not have more than one topology")
    key = text(pod_group, (*path, 0, "key"))
    if not key:
        raise fail(pod_group, (*path, 0, "key"), "must be the key of a node label")
    return DomainWish(required=key)


def _evicted_whole(pod_group: Raw, path: Path) -> bool:
    """A word until 1.36, an object with one key since."""
    found = value(pod_group, path)
    if found is None:
        return False
    if isinstance(found, str):
        mode = found
    else:
        mode = next((name for name in section(pod_group, path) if name in _EVICTED_WHOLE), "")
    if mode not in _EVICTED_WHOLE:
        raise fail(pod_group, path, "must be Pod or PodGroup")
    return _EVICTED_WHOLE[mode]


def _claims(pod_group: Raw) -> tuple[SharedClaim, ...]:
    path: Path = ("spec", "resourceClaims")
    claims = []
    for number, _ in enumerate(sections(pod_group, path)):
        name, claim, template = (
            text(pod_group, (*path, number, field))
            for field in ("name", "resourceClaimName", "resourceClaimTemplateName")
        )
        if bool(claim) == bool(template):
            wanted = "must have exactly one of resourceClaimName and resourceClaimTemplateName"
            raise fail(pod_group, (*path, number), wanted)
        claims.append(SharedClaim(name, claim, template))
    return tuple(claims)


KINDS = (
    Kind(
        api_group=API_GROUP,
        name="PodGroup",
        plural="podgroups",
        versions=("v1alpha3", "v1alpha2"),
        reads=(
            "spec.schedulingPolicy.basic",
            "spec.schedulingPolicy.gang.minCount",
            "spec.schedulingConstraints.topology[].key",
            "spec.disruptionMode",
            "spec.priorityClassName",
            "spec.resourceClaims[].name",
            "spec.resourceClaims[].resourceClaimName",
            "spec.resourceClaims[].resourceClaimTemplateName",
            "spec.parentCompositePodGroupName",
        ),
        member=_pod_group_member,
        ends_chain=True,
    ),
    Kind(
        api_group=API_GROUP,
        name="Workload",
        plural="workloads",
        versions=("v1alpha1",),
        reads=(
            "spec.podGroups[].name",
            "spec.podGroups[].policy.basic",
            "spec.podGroups[].policy.gang.minCount",
        ),
        member=_workload_member,
        ends_chain=True,
    ),
)
