"""What a cluster knows that new objects are completed from: `Planner.apply` takes in one as `build` takes in all.

Kinds with columns of their own are kept in tables, the others in `Cluster.others`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from maniple.cluster.cluster import Cluster
from maniple.objects.admission import POLICY_KINDS
from maniple.objects.dra import ResourceClaim, ResourceClaimTemplate
from maniple.objects.generated import missing_claims
from maniple.objects.meta import Object
from maniple.objects.owners import NATIVE_GROUP, raw_owner


def policies(cluster: Cluster) -> Iterator[Object]:
    """What admission looks up."""
    yield from cluster.priorities
    for kind in sorted(POLICY_KINDS, key=lambda one: one.kind):
        yield from cluster.all(kind).values()


def templates(cluster: Cluster, given: Sequence[Any]) -> list[Mapping[str, Any]]:
    """The claim templates of the cluster, if one of the pods needs claims from them; and the claims that there are
    already, with the groups that may share them.
    """
    pods = [one for one in given if isinstance(one, dict) and one.get("kind") == "Pod"]
    if not any(missing_claims(one) for one in pods):
        return []
    return [
        *(_raw(one) for kind in (ResourceClaimTemplate, ResourceClaim) for one in cluster.all(kind).values()),
        *(dict(raw_owner(one)) for one in cluster.all(NATIVE_GROUP).values()),
    ]


def _raw(item: Object) -> Mapping[str, Any]:
    return {"apiVersion": f"{item.api_group}/v1", "kind": item.kind, **msgspec.to_builtins(item)}


def queues(cluster: Cluster) -> Iterator[Object]:
    """All objects that define queues."""
    for row in cluster.queues.said:
        yield from cluster.queues.all_of(row)
