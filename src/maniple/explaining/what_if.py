"""A cycle that does not count: what plugins remember from cycle to cycle (`Cluster.memory`) is put back after it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from maniple.cluster.cluster import Cluster


@contextmanager
def own_memory(cluster: Cluster) -> Iterator[None]:
    """Let cycles remember what they like for as long as it lasts; afterwards the same is remembered as before."""
    memory = cluster.memory
    cluster.memory = {key: _copied(value) for key, value in memory.items()}
    try:
        yield
    finally:
        cluster.memory = memory


def _copied(value: Any) -> Any:
    """A copy as deep as there are containers; values in them do not change."""
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    if isinstance(value, list | set):
        return type(value)(value)
    return value


__all__ = ["own_memory"]
