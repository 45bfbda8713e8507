"""Resource claims of Kubernetes' own PodGroups, which their pods share, and who a claim is reserved for.

An entry of a pod's `spec.resourceClaims` is its group's if the PodGroup has an equal one: the same name, and the same
claim or template. Such a claim is allocated once and reserved for the PodGroup, not for each pod. Pods know the name of
their PodGroup only; grouping notes its uid and these entries on the pod as it is read in memory. One that came from a
template has its name in the status of the pod, as any other.
"""

from collections.abc import Iterable, Iterator

from maniple.objects.core import Pod
from maniple.objects.dra import Consumer, ResourceClaim
from maniple.objects.pod import PodResourceClaim

# On a pod in memory: the uid of its PodGroup, and the names of the entries that are the group's, as "uid:a,b".
GROUP_CLAIMS = "maniple.dev/group-claims"
_API_GROUP, _KIND, _PLURAL = "scheduling.k8s.io", "PodGroup", "podgroups"


def note(uid: str, names: Iterable[str]) -> str:
    return f"{uid}:{','.join(names)}"


def group_name(pod: Pod) -> str:
    """The PodGroup that a pod names."""
    name = (pod.spec.scheduling_group or {}).get("podGroupName")
    return name if isinstance(name, str) else ""


def of_group(pod: Pod, entry: str) -> bool:
    """Whether an entry of the pod's claims, by its name, is the PodGroup's."""
    noted = pod.metadata.annotations.get(GROUP_CLAIMS, "")
    return bool(noted) and entry in noted.partition(":")[2].split(",") and bool(group_name(pod))


def named_claims(pod: Pod) -> Iterator[tuple[PodResourceClaim, str | None]]:
    """The entries of a pod, each with the name of its claim; None if there is none, or none yet."""
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    return ((one, one.resource_claim_name or made.get(one.name)) for one in pod.spec.resource_claims)


def group_claims(pod: Pod) -> list[str]:
    """The keys of the claims that a pod shares with its PodGroup."""
    if not pod.metadata.annotations.get(GROUP_CLAIMS):
        return []
    namespace = pod.metadata.namespace or "default"
    return [f"{namespace}/{name}" for one, name in named_claims(pod) if name and of_group(pod, one.name)]


def consumer_of(pod: Pod, claim: str) -> Consumer:
    """What a claim, by its key, is reserved for if the pod uses it: the pod, or its PodGroup."""
    if claim not in group_claims(pod):
        return Consumer(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
    uid = pod.metadata.annotations[GROUP_CLAIMS].partition(":")[0]
    return Consumer(api_group=_API_GROUP, resource=_PLURAL, name=group_name(pod), uid=uid)


def is_group(consumer: Consumer) -> bool:
    """Whether a claim is reserved for a PodGroup."""
    return consumer.api_group == _API_GROUP and consumer.resource == _PLURAL


def is_reserved(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the pod may use the devices of a claim: it is reserved for the pod, or for its PodGroup."""
    named = group_name(pod)
    return any(
        one.uid == pod.metadata.uid or (bool(named) and is_group(one) and one.name == named)
        for one in claim.status.reserved_for
    )


def is_owned(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim was created from a template for the pod."""
    return any(
        owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references
    )


def is_groups(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim was created from a template for the pod's PodGroup."""
    named = group_name(pod)
    return bool(named) and any(
        owner.controller
        and owner.kind == _KIND
        and owner.name == named
        and owner.api_version.startswith(f"{_API_GROUP}/")
        for owner in claim.metadata.owner_references
    )
