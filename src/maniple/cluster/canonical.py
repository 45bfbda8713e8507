"""The model by names instead of rows, to compare clusters that reached the same objects in different ways.

Called by tests and to verify a cache: `canonical(kept) == canonical(Cluster.from_objects(dialect, listed))`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from maniple.cluster.cluster import Cluster
from maniple.cluster.domains import DomainTree
from maniple.cluster.resources import Amounts
from maniple.cluster.snapshot import Snapshot, take
from maniple.cluster.statuses import Status
from maniple.cluster.terms import OwnTerms


def canonical(cluster: Cluster) -> dict[str, Any]:
    """The model without row numbers: equal for clusters that hold the same objects."""
    opened = take(cluster)
    return {
        "nodes": _canonical_nodes(opened),
        "unknown nodes": _canonical_unknown_nodes(cluster),
        "tasks": _canonical_tasks(opened),
        "task order": _canonical_order(opened),
        "classes": _canonical_classes(opened),
        "jobs": _canonical_jobs(opened),
        "jobs served": sorted(cluster.jobs.keys[row] for row in opened.jobs.rows.tolist()),
        "queues": _canonical_queues(cluster),
        "domains": _canonical_domains(opened.domains, opened.nodes.facts.names),
        "groups": sorted(_term(cluster, number) for number in cluster.workloads.groups()),
        "storage": (cluster.storage.claims, cluster.storage.volumes, cluster.storage.classes),
        "others": {kind.__name__: dict(kept) for kind, kept in cluster.others.items() if kept},
    }


def _amounts(cluster: Cluster, vector: Amounts) -> dict[str, int]:
    """Base units by resource name; resources with a zero amount are left out."""
    return {cluster.resources.names[i]: amount for i, amount in enumerate(vector.tolist()) if amount}


def _fields(
    cluster: Cluster, state: Any, matrices: Iterable[str], columns: Iterable[str], row: int
) -> dict[str, Any]:
    found: dict[str, Any] = {name: _amounts(cluster, getattr(state, name)[:, row]) for name in matrices}
    return found | {name: getattr(state, name)[row].item() for name in columns}


def _canonical_nodes(opened: Snapshot) -> list[tuple[str, Any, dict[str, Any]]]:
    facts = opened.nodes.facts
    matrices = ("allocatable", "used", "releasing", "pipelined", "requested")
    columns = ("pods", "nonzero_cpu", "nonzero_memory")
    return [
        (name, facts.objects[row], _fields(opened.cluster, opened.nodes, matrices, columns, row))
        for row, name in enumerate(facts.names)
    ]


def _canonical_unknown_nodes(cluster: Cluster) -> dict[str, Any]:
    nodes = cluster.nodes
    columns = ("pods", "nonzero_cpu", "nonzero_memory")
    return {
        nodes.keys[row]: _fields(cluster, nodes, nodes.MATRICES, columns, row)
        for row in nodes
        if not nodes.defined[row]
    }


def _canonical_tasks(opened: Snapshot) -> dict[str, Any]:
    cluster, tasks = opened.cluster, opened.tasks
    table, node_names = cluster.tasks, opened.nodes.facts.names
    plain = ("priority", "index", "created", "preemptable", "critical", "gated", "admissible", "best_effort")
    living = _living_terms(cluster)
    found = {}
    for key, row in ((table.keys[row], row) for row in table):
        class_ = opened.classes[tasks.class_of[row]]
        found[key] = {
            "pod": table.pods[row],
            "status": Status(tasks.status[row]),
            "node": node_names[tasks.node[row]] if tasks.node[row] >= 0 else None,
            "named node": cluster.nodes.keys[table.node[row]] if table.node[row] >= 0 else None,
            "job": cluster.jobs.keys[tasks.job[row]] if tasks.job[row] >= 0 else None,
            "role": table.roles[tasks.role[row]] if tasks.role[row] >= 0 else None,
            "nominated": table.nominated.get(row),
            "gpu": class_.spec.gpu,
            "gpu groups": table.gpu_groups.get(row),
            "request": _amounts(cluster, class_.request),
            "assumed": (class_.spec.nonzero_cpu, class_.spec.nonzero_memory),
            "own terms": _canonical_own(cluster, class_.spec.own),
            "terms": sorted(_term(cluster, number) for number in living.intersection(class_.terms)),
            **_fields(cluster, tasks, (), plain, row),
        }
    return found


def _living_terms(cluster: Cluster) -> set[int]:
    """Terms that a pod owns or a workload makes; the table may still hold terms of pods that are gone."""
    living = set(cluster.workloads.groups())
    for spec in {int(cluster.tasks.spec[row]) for row in cluster.tasks}:
        own = cluster.specs.specs[spec].own
        living.update(own.affinity, own.anti_affinity, own.anti_affinity_to_others)
        living.update(spread.term for spread in own.spread)
        living.update(number for number, _ in (*own.preferred, *own.preferred_anti))
    return living


def _term(cluster: Cluster, number: int) -> bytes:
    return cluster.terms.terms[number].identity


def _canonical_own(cluster: Cluster, own: OwnTerms) -> tuple[Any, ...]:
    return (
        [_term(cluster, number) for number in own.affinity],
        [_term(cluster, number) for number in own.anti_affinity],
        [_term(cluster, number) for number in own.anti_affinity_to_others],
        [(_term(cluster, number), weight) for number, weight in own.preferred],
        [(_term(cluster, number), weight) for number, weight in own.preferred_anti],
        [(_term(cluster, spread.term), spread.constraint) for spread in own.spread],
    )


def _canonical_order(opened: Snapshot) -> list[str]:
    keys = opened.cluster.tasks.keys
    return [keys[row] for row in sorted(opened.cluster.tasks, key=opened.tasks.rank.__getitem__)]


def _canonical_classes(opened: Snapshot) -> list[list[str]]:
    """Which tasks are alike for placement."""
    cluster, living = opened.cluster, _living_terms(opened.cluster)
    together: dict[tuple[int, frozenset[int]], list[str]] = {}
    for row in cluster.tasks:
        class_ = opened.classes[opened.tasks.class_of[row]]
        alike = (class_.spec.number, frozenset(living.intersection(class_.terms)))
        together.setdefault(alike, []).append(cluster.tasks.keys[row])
    return sorted(sorted(keys) for keys in together.values())


def _canonical_jobs(opened: Snapshot) -> dict[str, Any]:
    cluster, jobs, table = opened.cluster, opened.jobs, opened.cluster.jobs
    columns = ("minimum", "created", "priority", "pending_best_effort")
    return {
        table.keys[row]: {
            "name": table.name(row),
            "object": table.objects.get(row),
            "facts": table.facts.get(row),
            "queue": cluster.queues.keys[jobs.queue[row]] if jobs.queue[row] >= 0 else None,
            "counts": {status.word: int(jobs.counts[status, row]) for status in Status},
            **_fields(cluster, jobs, ("allocated", "pending", "total"), columns, row),
        }
        for row in table
    }


def _canonical_queues(cluster: Cluster) -> dict[str, Any]:
    queues = cluster.queues
    return {
        queues.keys[row]: (queues.said.get(row), queues.facts.get(row), float(queues.created[row]))
        for row in queues
    }


def _canonical_domains(tree: DomainTree, nodes: Sequence[str]) -> Mapping[str, Any]:
    return {
        "names": tree.names,
        "tier": tree.tier.tolist(),
        "parent": tree.parent.tolist(),
        "members": [[nodes[n] for n in tree.nodes(row).tolist()] for row in range(len(tree))],
        "leaf of": tree.leaf_of.tolist(),
        "tier names": tree.tier_names,
        "problems": tree.problems,
        "broken": tree.broken,
        "topologies": {
            name: (kai.levels, kai.paths, kai.domain_of.tolist()) for name, kai in tree.kai.items()
        },
    }
