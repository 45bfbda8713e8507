"""The status of this scheduler's NodeShard: which nodes it uses, and which it is to take up or to leave.

The scheduler calls `carry_out` between cycles. A node is in use while a decision may place pods on it: it is
desired here and no other shard uses it, or a bind to it has not been confirmed yet. Other schedulers take a node
up when it is in use nowhere else, so a node changes hands without being filled twice.
"""

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from maniple.live.cache import Cache
from maniple.live.effects import Effect, Effects, Urgency
from maniple.live.port import Port
from maniple.live.writing import lane
from maniple.objects.volcano import NodeShard, NodeShardStatus

log = logging.getLogger(__name__)


class NodeShards:
    """`name` is the shard of this scheduler."""

    def __init__(self, cache: Cache, effects: Effects, port: Port, name: str) -> None:
        self._cache = cache
        self._effects = effects
        self._port = port
        self._name = name
        self._written: NodeShardStatus | None = None  # until the watch shows it

    @classmethod
    def of(
        cls, options: Mapping[str, Any], cache: Cache, effects: Effects, port: Port
    ) -> "NodeShards | None":
        """The writer for a scheduler with these options; None if it uses all nodes."""
        shard: Mapping[str, Any] = options.get("shard", {})
        sharded = shard.get("mode", "none") != "none" and "nodes" not in shard
        return cls(cache, effects, port, shard.get("name", "")) if sharded else None

    def carry_out(self, when: datetime) -> None:
        """Write the status if it is another one than the cluster has."""
        own = self._cache.get(NodeShard, self._name)
        if not isinstance(own, NodeShard):
            self._written = None
            return
        status = self._status(own)
        known = self._written or own.status
        if _nodes(status) == _nodes(known):
            if _nodes(own.status) == _nodes(status):
                self._written = None
            return
        self._written = status = msgspec.structs.replace(status, last_update_time=when)
        self._effects.submit(self._write(own, status), replaces=("status",))

    def _status(self, own: NodeShard) -> NodeShardStatus:
        desired = dict.fromkeys(own.spec.nodes_desired)
        others = {
            node
            for one in self._cache.of_kind(NodeShard)
            if isinstance(one, NodeShard) and one.key != self._name
            for node in one.status.nodes_in_use
        }
        usable = [node for node in desired if node not in others]
        leaving = sorted((self._cache.unconfirmed_nodes() & {*own.status.nodes_in_use}).difference(desired))
        return NodeShardStatus(
            nodes_in_use=(*usable, *leaving),
            nodes_to_remove=tuple(leaving),
            nodes_to_add=tuple(node for node in desired if node in others),
        )

    def _write(self, own: NodeShard, status: NodeShardStatus) -> Effect:
        body = {
            "metadata": {"uid": own.metadata.uid},
            "status": {
                "lastUpdateTime": msgspec.to_builtins(status.last_update_time),
                "nodesInUse": [*status.nodes_in_use],
                "nodesToRemove": [*status.nodes_to_remove],
                "nodesToAdd": [*status.nodes_to_add],
            },
        }

        def done(error: BaseException | None) -> None:
            if error is not None:
                self._written = None
                log.warning("NodeShard %s: status not written: %s", self._name, error)

        return Effect(
            lane=lane((NodeShard, own.key)),
            aspect="status",
            urgency=Urgency.AWAITED,
            call=lambda: self._port.patch_status(NodeShard, own.key, body),
            done=done,
        )


def _nodes(status: NodeShardStatus) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    return (
        frozenset(status.nodes_in_use),
        frozenset(status.nodes_to_remove),
        frozenset(status.nodes_to_add),
    )
