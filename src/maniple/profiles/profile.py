"""A profile: one system's names, defaults and way of reading objects."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from maniple.cluster.cluster import Cluster
from maniple.framework.configuration import Configuration
from maniple.framework.registry import Registry


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    registry: Registry
    load: Callable[[str | Mapping[str, Any] | None], Configuration]
    cluster: Callable[[Configuration, Mapping[str, Any]], Cluster]
    checked_options: Callable[[Mapping[str, Any] | None], Mapping[str, Any]]
