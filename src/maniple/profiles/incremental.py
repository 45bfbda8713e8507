"""What a cluster knows that new objects are completed from: `Planner.apply` takes in one as `build` takes in all.

Kinds with columns of their own are kept in tables, the others in `Cluster.others`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from maniple.cluster.cluster import Cluster
from maniple.objects.admission import POLICY_KINDS
from maniple.objects.dra import ResourceClaimTemplate
from maniple.objects.generated import missing_claims
from maniple.objects.meta import Object

_TEMPLATE = {"apiVersion": f"{ResourceClaimTemplate.api_group}/v1", "kind": ResourceClaimTemplate.kind}


def policies(cluster: Cluster) -> Iterator[Object]:
    """What admission looks up."""
    yield from cluster.priorities
    for kind in sorted(POLICY_KINDS, key=lambda one: one.kind):
        yield from cluster.all(kind).values()


def templates(cluster: Cluster, given: Sequence[Any]) -> list[Mapping[str, Any]]:
    """The claim templates of the cluster, if one of the pods needs claims from them."""
    pods = [one for one in given if isinstance(one, dict) and one.get("kind") == "Pod"]
    if not any(missing_claims(one) for one in pods):
        return []
    return [{**_TEMPLATE, **msgspec.to_builtins(one)} for one in cluster.all(ResourceClaimTemplate).values()]


def queues(cluster: Cluster) -> Iterator[Object]:
    """All objects that define queues."""
    for row in cluster.queues.said:
        yield from cluster.queues.all_of(row)
