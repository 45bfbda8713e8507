"""A profile: one system's names, defaults and dialect."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from maniple.cluster.cluster import Cluster
from maniple.framework.configuration.loading import Configuration
from maniple.framework.configuration.registry import Registry
from maniple.framework.rules import Rules
from maniple.objects.meta import Object
from maniple.profiles.group_forms import Form


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    registry: Registry
    # a configuration, and the names of all actions that it may use
    load: Callable[[str | Mapping[str, Any] | None, Collection[str]], Configuration]
    cluster: Callable[[Configuration, Mapping[str, Any]], Cluster]
    # How groups of pods that have none are written, with these options
    form: Callable[[Mapping[str, Any]], Form]
    # The queue that the scheduler creates for these objects, if it is missing
    default_queue: Callable[[Mapping[str, Any], Iterable[Object]], Object | None]
    checked_options: Callable[[Mapping[str, Any] | None], Mapping[str, Any]]
    rules: Rules
    strict_rules: Rules  # with `compat: strict`

    def rules_for(self, configuration: Configuration) -> Rules:
        return self.strict_rules if configuration.compat == "strict" else self.rules
