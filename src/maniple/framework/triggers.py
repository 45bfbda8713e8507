"""What could change a plugin's answers (Kubernetes: queueing hints).

Declared by each plugin, read by the running scheduler.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from maniple.objects.meta import Object


@dataclass(frozen=True, slots=True)
class Triggers:
    """Reasons to decide again, besides a change of an object that the profile reads anyway.

    A plugin that has any declares them as its class attribute `triggers`. `time`: its answers change as time passes, so
    a cycle runs at least once per period. `kinds`: further kinds of objects that it reads; they are watched only where
    the plugin is configured.
    """

    time: bool = False
    kinds: tuple[type[Object], ...] = ()

    @classmethod
    def of(cls, plugins: Iterable[object]) -> "Triggers":
        """Those of several plugins, or of their classes, together."""
        declared = [
            found for plugin in plugins if isinstance(found := getattr(plugin, "triggers", None), cls)
        ]
        kinds = dict.fromkeys(kind for one in declared for kind in one.kinds)
        return cls(any(one.time for one in declared), tuple(kinds))
