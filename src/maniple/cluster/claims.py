"""What resource claims and slices mean for rows: which claims a pod has, and how many GPUs drivers publish for a node. Called by `Cluster`."""

from collections.abc import Iterable, Mapping

from maniple.cluster.terms import DEFAULT_NAMESPACE
from maniple.objects.core import Pod
from maniple.objects.dra import ResourceClaim, ResourceSlice


def claims_of(pod: Pod, claims: Mapping[str, ResourceClaim]) -> tuple[ResourceClaim, ...]:
    """The resource claims of a pod that exist, its own and the ones made for it."""
    namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    names = [one.resource_claim_name or made.get(one.name) for one in pod.spec.resource_claims]
    found = [claims.get(f"{namespace}/{name}") for name in dict.fromkeys(names)]
    return tuple(claim for claim in found if claim is not None)


def published_gpus(slices: Iterable[ResourceSlice]) -> dict[str, int]:
    """GPUs that drivers publish in slices, by node."""
    published: dict[str, int] = {}
    for one in slices:
        if one.spec.node_name and not one.spec.all_nodes and "gpu" in one.spec.driver.lower():
            name = one.spec.node_name
            published[name] = published.get(name, 0) + len(one.spec.devices)
    return published
