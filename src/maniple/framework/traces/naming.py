"""Names for what a trace speaks of and only rows are known: a set of nodes as a domain."""

import numpy as np

from maniple.framework.criteria import NodeRows
from maniple.framework.session import Session

_SOME = 3


def domain_name(session: Session, nodes: NodeRows) -> str:
    """The HyperNode, or the domain of a topology, with exactly these nodes; otherwise the first of them."""
    mask = np.zeros(len(session.nodes), dtype=np.bool_)
    mask[nodes] = True
    same = np.flatnonzero((session.domains.members == mask).all(axis=1))
    if len(same):
        return session.domains.names[int(same[-1])]
    for topology in session.domains.kai.values():
        of = topology.domain_of[:, nodes]
        for level in range(len(of) - 1, -1, -1):
            domain = int(of[level, 0]) if of.shape[1] else -1
            if (
                domain >= 0
                and (topology.domain_of[level] == domain).sum() == len(nodes) == (of[level] == domain).sum()
            ):
                return f"{topology.levels[level]} {topology.id(domain)}"
    more = len(nodes) - _SOME
    names = ", ".join(session.node_name(int(row)) for row in nodes[:_SOME])
    return f"{names} and {more} more" if more > 0 else names


__all__ = ["domain_name"]
