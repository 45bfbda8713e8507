"""Node shards: the nodes that belong to this scheduler where several share a cluster."""

import numpy as np
from numpy.typing import NDArray

from maniple.framework.reasons import FITS, Code, Verdicts
from maniple.framework.session import Session
from maniple.objects.volcano import NodeShard

OUTSIDE_SHARD = "node isn't in scheduler node shard"


def shard_of(session: Session) -> tuple[NDArray[np.bool_] | None, Verdicts | None]:
    """Our own nodes when another shard's are second choice (soft), and the verdicts when they are none (hard)."""
    shard = session.options.get("shard")
    if not shard or shard.get("mode", "none") == "none":
        return None, None
    index = session.nodes.facts.index
    named = shard["nodes"] if "nodes" in shard else _usable_nodes(session, shard.get("name", ""))
    own = np.zeros(len(session.nodes), dtype=np.bool_)
    own[[index[name] for name in named if name in index]] = True
    if shard["mode"] == "soft":
        return own, None
    number = session.reasons.number(OUTSIDE_SHARD, Code.ERROR)
    return None, np.where(own, FITS, number).astype(np.int16)


def _usable_nodes(session: Session, name: str) -> set[str]:
    """The nodes desired for a shard, without those that other shards still use."""
    shards = session.cluster.all(NodeShard)
    wanted = set(shards[name].spec.nodes_desired) if name in shards else set()
    return wanted.difference(*(one.status.nodes_in_use for key, one in shards.items() if key != name))
