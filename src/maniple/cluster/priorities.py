"""Priority classes, and what a job's class is worth. Called by `Cluster`."""

from collections.abc import Iterator

from maniple.objects.admission import SYSTEM_PRIORITIES
from maniple.objects.core import PriorityClass


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
        named = self._classes.get(name)
        if named is not None:
            return named.value
        if name in SYSTEM_PRIORITIES:  # in every cluster, and yet not in every file
            return SYSTEM_PRIORITIES[name]
        defaults = [one for one in self if one.global_default]
        return (
            max(defaults, key=lambda one: (one.value, one.metadata.name)).value if defaults else self._default
        )
