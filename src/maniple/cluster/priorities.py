"""Priority classes, and what a job's class is worth. Called by `Cluster`."""

from collections.abc import Iterator

from maniple.objects.admission import SYSTEM_PRIORITIES
from maniple.objects.core import PriorityClass

NEVER = "Never"  # the preemption policy


class Priorities:
    """The priority classes by name. `default` is what counts where nothing says otherwise."""

    def __init__(self, default: int) -> None:
        self._default = default
        self._classes: dict[str, PriorityClass] = {}
        self.stale = False  # jobs' priorities are to be worked out again

    def __iter__(self) -> Iterator[PriorityClass]:
        return iter(self._classes.values())

    def put(self, item: PriorityClass) -> None:
        self._classes[item.metadata.name] = item
        self.stale = True

    def drop(self, item: PriorityClass) -> None:
        self._classes.pop(item.metadata.name, None)
        self.stale = True

    def value(self, name: str) -> int:
        """The value of a priority class; the global default for a name that does not exist."""
        if name in SYSTEM_PRIORITIES and name not in self._classes:
            # These two are in every cluster, and yet not in every file.
            return SYSTEM_PRIORITIES[name]
        found = self._found(name)
        return found.value if found is not None else self._default

    def never_preempts(self, name: str) -> bool:
        """Pods of that priority class never preempt."""
        found = self._found(name)
        return found is not None and found.preemption_policy == NEVER

    def _found(self, name: str) -> PriorityClass | None:
        """The class of that name, or else the global default."""
        defaults = [one for one in self if one.global_default]
        named = self._classes.get(name)
        return named or max(defaults, key=lambda one: (one.value, one.metadata.name), default=None)
