"""Which queues and priority classes the jobs of a namespace may use.

Administrators say so in annotations of queues and namespaces, and in options. Without any, every job may use
everything, as in the original schedulers. A queue and all queues above it have to allow a namespace, so that a
queue below another can only narrow what that one allows; the namespace has to allow the queue, too.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from maniple.cluster.cluster import Cluster
from maniple.objects.core import Namespace
from maniple.objects.meta import Object
from maniple.objects.selector_text import parse_selector
from maniple.objects.selectors import matches

NAMESPACES = "maniple.dev/namespaces"  # of a queue
NAMESPACE_SELECTOR = "maniple.dev/namespace-selector"  # of a queue
QUEUES = "maniple.dev/queues"  # of a namespace
PRIORITY_CLASSES = "maniple.dev/priority-classes"  # of a queue or a namespace
EVERY = "*"
SYSTEM_NAMESPACE, SYSTEM_PREFIX = "kube-system", "system-"
_SHOWN = 5


class Rights:
    """The rules of a cluster at one moment."""

    def __init__(self, cluster: Cluster, options: Mapping[str, Any]) -> None:
        self._cluster = cluster
        self._closed = options.get("queueAccess") == "closed"
        self._system_only = options.get("systemPriorities") == SYSTEM_NAMESPACE
        classes = options.get("priorityClasses")
        self._classes = listed(classes) if isinstance(classes, str) else classes
        self._namespaces = cluster.all(Namespace)
        self._queue_answers: dict[tuple[str, int], str] = {}
        self._class_answers: dict[tuple[str, int, str], str] = {}

    # -- whether there are any ----------------------------------------------------------------------------------------

    @cached_property
    def limit_queues(self) -> bool:
        """Whether some namespace may not use some queue."""
        return (
            self._closed
            or _any_has(self._queues(), (NAMESPACES, NAMESPACE_SELECTOR))
            or _any_has(self._namespaces.values(), (QUEUES,))
        )

    @cached_property
    def limit_priorities(self) -> bool:
        """Whether some priority class does not count somewhere."""
        return (
            self._system_only
            or self._classes is not None
            or _any_has(self._queues(), (PRIORITY_CLASSES,))
            or _any_has(self._namespaces.values(), (PRIORITY_CLASSES,))
        )

    def unreadable(self) -> Iterator[str]:
        """Selectors that are wrong; they select no namespace."""
        for item in self._queues():
            text = item.metadata.annotations.get(NAMESPACE_SELECTOR)
            found = parse_selector(text) if text is not None else ""
            if found and isinstance(found, str):
                name = item.metadata.name
                yield f"Queue {name}: annotation {NAMESPACE_SELECTOR} {found}; it selects no namespace"

    def _queues(self) -> Iterator[Object]:
        for row in self._cluster.queues.objects:
            yield from self._cluster.queues.all_of(row)

    # -- queues -------------------------------------------------------------------------------------------------------

    def queue_problem(self, namespace: str, queue: int) -> str:
        """Why jobs of a namespace may not use a queue; empty if they may."""
        if not self.limit_queues:
            return ""
        known = self._queue_answers.get((namespace, queue))
        if known is None:
            known = self._by_queues(namespace, queue) or self._by_namespace(namespace, queue)
            self._queue_answers[namespace, queue] = known
        return known

    def _by_queues(self, namespace: str, queue: int) -> str:
        refused = f"namespace {namespace!r} may not use queue {self._name(queue)!r}"
        labels, says = self._cluster.namespace_labels(namespace), False
        for item in self._path(queue):
            names, text = (item.metadata.annotations.get(one) for one in (NAMESPACES, NAMESPACE_SELECTOR))
            if names is None and text is None:
                continue
            says = True
            selector = parse_selector(text) if text is not None else None
            chosen = not isinstance(selector, str) and matches(selector, labels)
            if not chosen and not {namespace, EVERY}.intersection(listed(names)):
                return (
                    f"{refused}: {_allowed(item, names, text)}; "
                    "name another queue, or ask an administrator of that queue to allow the namespace"
                )
        if says or not self._closed:
            return ""
        return (
            f"{refused}: queueAccess is closed, and neither the queue nor one above it has the annotation "
            f"{NAMESPACES} or {NAMESPACE_SELECTOR}; ask an administrator of queues to add it"
        )

    def _by_namespace(self, namespace: str, queue: int) -> str:
        names = self._said_by(namespace, QUEUES)
        if names is None or {self._name(queue), EVERY}.intersection(listed(names)):
            return ""
        return (
            f"namespace {namespace!r} may not use queue {self._name(queue)!r}: annotation {QUEUES} of the "
            f"namespace allows {shown(listed(names))}; name one of these, or ask an administrator of the "
            "namespace to add the queue"
        )

    def _path(self, queue: int) -> list[Object]:
        """The objects of a queue and of those above it."""
        table = self._cluster.queues
        return [item for row in table.way_up(queue) if row in table.said for item in table.all_of(row)]

    def _name(self, queue: int) -> str:
        return self._cluster.queues.keys[queue]

    # -- priority classes ---------------------------------------------------------------------------------------------

    def class_problem(self, namespace: str, queue: int, name: str) -> str:
        """Why a priority class does not count for jobs of a namespace in a queue; empty if it does."""
        if not name or not self.limit_priorities:
            return ""
        known = self._class_answers.get((namespace, queue, name))
        if known is None:
            known = self._class_answers[namespace, queue, name] = self._of_class(namespace, queue, name)
        return known

    def _of_class(self, namespace: str, queue: int, name: str) -> str:
        refused = f"priority class {name!r} may not be used in namespace {namespace!r}"
        if self._system_only and name.startswith(SYSTEM_PREFIX) and namespace != SYSTEM_NAMESPACE:
            return f"{refused}: systemPriorities allows it in {SYSTEM_NAMESPACE} only; name another class"
        # The API server gives the default class to every pod that names none.
        if any(one.global_default and one.metadata.name == name for one in self._cluster.priorities):
            return ""
        for holder, classes in self._lists(namespace, queue):
            if not {name, EVERY}.intersection(classes):
                return (
                    f"{refused}: {holder} allows {shown(classes)}; "
                    "name one of these or none, or ask an administrator to add the class"
                )
        return ""

    def _lists(self, namespace: str, queue: int) -> Iterator[tuple[str, Collection[str]]]:
        """The lists that a class has to be in, each with where it is."""
        own = self._said_by(namespace, PRIORITY_CLASSES)
        if own is not None:
            yield f"annotation {PRIORITY_CLASSES} of the namespace", listed(own)
        elif self._classes is not None:
            yield "option priorityClasses of the scheduler", tuple(self._classes)
        for item in self._path(queue):
            text = item.metadata.annotations.get(PRIORITY_CLASSES)
            if text is not None:
                yield f"annotation {PRIORITY_CLASSES} of Queue {item.metadata.name}", listed(text)

    def _said_by(self, namespace: str, annotation: str) -> str | None:
        found = self._namespaces.get(namespace)
        return found.metadata.annotations.get(annotation) if found is not None else None


def listed(text: str | None) -> tuple[str, ...]:
    """The names of a list with commas."""
    return tuple(name for one in (text or "").split(",") if (name := one.strip()))


def shown(names: Collection[str]) -> str:
    some = ", ".join(list(names)[:_SHOWN])
    return f"{some} ..." if len(names) > _SHOWN else some or "none"


def _allowed(item: Object, names: str | None, text: str | None) -> str:
    """What the annotations of a queue allow."""
    parts = []
    if names is not None:
        parts.append(f"namespaces {shown(listed(names))} ({NAMESPACES})")
    if text is not None:
        parts.append(f"namespaces with labels {text} ({NAMESPACE_SELECTOR})")
    return f"Queue {item.metadata.name} allows {' and '.join(parts)}"


def _any_has(items: Iterable[Object], annotations: tuple[str, ...]) -> bool:
    return any(one in item.metadata.annotations for item in items for one in annotations)
