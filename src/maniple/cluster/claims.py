"""What resource claims and slices mean for rows: the claims of a pod, and the GPUs published for a node.

Called by `Cluster`. A claim shared by several pods has its devices once, so its GPUs count with one of the
pods: with a pod that is on a node, if there is one, for as long as it stays there. Until then every job
pending for the claim counts it once, since any of them may be the first to get it. Afterwards a pod that
joins requests no GPU of the claim.
"""

from collections.abc import Iterable, Mapping

from maniple.cluster.statuses import ON_NODE, WAITING, Status
from maniple.cluster.tables import TaskTable
from maniple.cluster.terms import DEFAULT_NAMESPACE
from maniple.objects.core import Pod
from maniple.objects.dra import ResourceClaim, ResourceSlice

Claims = tuple[ResourceClaim, ...]


def claims_of(pod: Pod, claims: Mapping[str, ResourceClaim]) -> Claims:
    """The resource claims of a pod that exist, its own and the ones made for it."""
    namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    names = [one.resource_claim_name or made.get(one.name) for one in pod.spec.resource_claims]
    found = [claims.get(f"{namespace}/{name}") for name in dict.fromkeys(names)]
    return tuple(claim for claim in found if claim is not None)


def claimed_gpus(claim: ResourceClaim) -> int:
    """Devices of GPU classes that a claim wants; "all of them" counts as one."""
    wanted = 0
    for request in claim.spec.devices.requests:
        exact = request.exact
        if exact is not None and "gpu" in exact.device_class_name.lower():
            wanted += 1 if exact.allocation_mode == "All" else max(exact.count, 1)
    return wanted


def published_gpus(slices: Iterable[ResourceSlice]) -> dict[str, int]:
    """GPUs that drivers publish in slices, by node."""
    published: dict[str, int] = {}
    for one in slices:
        if one.spec.node_name and not one.spec.all_nodes and "gpu" in one.spec.driver.lower():
            name = one.spec.node_name
            published[name] = published.get(name, 0) + len(one.spec.devices)
    return published


class SharedClaims:
    """With which of their pods shared GPU claims count."""

    def __init__(self) -> None:
        self.stale = False  # a pod with claims came, went or changed
        self._bearers: dict[str, frozenset[str]] = {}  # claim -> pods, if there are several users

    def counted(self, pod: Pod, claims: Claims) -> Claims:
        """Of a pod's claims, those that count with it."""
        return tuple(
            one for one in claims if one.key not in self._bearers or pod.key in self._bearers[one.key]
        )

    def update(self, tasks: TaskTable, rows: Iterable[int], claims: Mapping[str, ResourceClaim]) -> set[str]:
        """Look again at the tasks that have claims; the pods with which other claims count than before."""
        users: dict[str, list[int]] = {}
        for row in rows:
            for claim in claims_of(tasks.pods[row], claims):
                if claimed_gpus(claim):
                    users.setdefault(claim.key, []).append(row)
        before = self._bearers
        self._bearers = {key: _bearers(tasks, some) for key, some in users.items() if len(some) > 1}
        self.stale = False
        changed: set[str] = set()
        for key in before.keys() | self._bearers.keys():
            if before.get(key) != self._bearers.get(key):
                changed |= {tasks.pods[row].key for row in users.get(key, ())}
        return changed


def _bearers(tasks: TaskTable, rows: list[int]) -> frozenset[str]:
    """The pods with which a claim counts that all these tasks use."""
    rows = sorted(
        rows,
        key=lambda row: (bool(tasks.gated[row]), -tasks.priority[row], tasks.created[row], tasks.keys[row]),
    )
    there = [row for row in rows if tasks.node[row] >= 0 and ON_NODE[tasks.status[row]]]
    staying = [row for row in there if tasks.status[row] != Status.RELEASING]
    if staying:
        return frozenset([tasks.keys[staying[0]]])
    first_of_job: dict[int, int] = {}
    for row in rows:
        if WAITING[tasks.status[row]]:
            first_of_job.setdefault(int(tasks.job[row]), row)
    return frozenset(tasks.keys[row] for row in [*first_of_job.values()] or there[:1])


__all__ = ["Claims", "SharedClaims", "claimed_gpus", "claims_of", "published_gpus"]
