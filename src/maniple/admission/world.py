"""What the rules know of the cluster: queues, namespaces, priority classes, and the queue of every pod group.

It is kept up to date by `following.py`. Queues and the policy are read as the scheduler reads them, by the same code
and the same configuration: a `Cluster` of the profile, which here holds no pods and no nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from maniple.cluster.facts import AT, QueueFacts
from maniple.framework.rights import Rights
from maniple.objects.admission import SYSTEM_PRIORITIES
from maniple.objects.core import Namespace, Pod, PriorityClass
from maniple.objects.kai import KaiPodGroup, KaiQueue
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue
from maniple.planner import Planner
from maniple.plugins.kai.labelled import queue_label
from maniple.profiles.group_forms import VOLCANO_QUEUE

Queue = VolcanoQueue | KaiQueue
Group = VolcanoPodGroup | KaiPodGroup

QUEUES: Mapping[str, tuple[type[Queue], ...]] = {
    "volcano": (VolcanoQueue,),
    "kai": (KaiQueue,),
    "maniple": (VolcanoQueue, KaiQueue),
}
GROUPS: Mapping[str, tuple[type[Group], ...]] = {
    "volcano": (VolcanoPodGroup,),
    "kai": (KaiPodGroup,),
    "maniple": (VolcanoPodGroup, KaiPodGroup),
}
# Of every cluster that Volcano schedules; it is often not an object of its own in ours.
ROOT = "root"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says of the rules; the policy is in the planner's options."""

    skipped_namespaces: frozenset[str] = frozenset({"kube-system"})
    # Warn instead of refusing: with some tools the order in which objects are created is not known.
    unknown_queue_warns: bool = False


class World:
    """The state of the cluster, as far as the rules read it."""

    def __init__(self, planner: Planner) -> None:
        self.profile = planner.profile.name
        self.queue_kinds, self.group_kinds = QUEUES[self.profile], GROUPS[self.profile]
        self._options = planner.options
        self._cluster = planner.profile.cluster(planner.configuration, planner.options)
        self.dialect = self._cluster.dialect
        self.form = planner.profile.form(planner.options)
        self.default_queue = (
            "" if self.profile == "kai" else str(self._options.get("defaultQueue", "default"))
        )
        self._groups: dict[tuple[type[Object], str], str] = {}
        self._unlisted: set[type[Object]] = set()
        self._rights: Rights | None = None

    @property
    def kinds(self) -> tuple[type[Object], ...]:
        """All that has to be followed."""
        return (*self.queue_kinds, *self.group_kinds, Namespace, PriorityClass)

    @property
    def queue_key(self) -> tuple[str, str]:
        """Where a pod without a group names its queue: the field of its metadata, and the key."""
        if self.profile == "kai":
            return "labels", queue_label(self._options)
        return "annotations", VOLCANO_QUEUE

    # -- changes ------------------------------------------------------------------------------------------------------

    def apply(self, item: Object) -> None:
        if isinstance(item, self.group_kinds):
            facts = self.dialect.job(item)
            if facts is not None:
                self._groups[type(item), item.key] = facts.queue
            return
        self._cluster.apply(item)
        self._rights = None

    def delete(self, item: Object) -> None:
        if isinstance(item, self.group_kinds):
            self._groups.pop((type(item), item.key), None)
            return
        self._cluster.delete(item)
        self._rights = None

    def know(self, kind: type[Object], *, known: bool) -> None:
        """Whether a kind could be listed: if not, an object of it that is not here may exist."""
        (self._unlisted.discard if known else self._unlisted.add)(kind)

    # -- questions ----------------------------------------------------------------------------------------------------

    @property
    def knows_queues(self) -> bool:
        return self._unlisted.isdisjoint(self.queue_kinds)

    @property
    def rights(self) -> Rights:
        if self._rights is None:
            self._rights = Rights(self._cluster, self._options)
        return self._rights

    def row(self, queue: str) -> int:
        """The number by which `rights` knows a queue; -1 if it does not exist."""
        row = self._cluster.queues.index_of(queue)
        return row if row is not None and row in self._cluster.queues.facts else -1

    def queue(self, name: str) -> QueueFacts | None:
        return self._cluster.queues.facts.get(self.row(name))

    def queue_objects(self, name: str) -> list[Object]:
        row = self.row(name)
        return self._cluster.queues.all_of(row) if row >= 0 else []

    def children(self, name: str) -> list[str]:
        """The queues right below one, by name."""
        table = self._cluster.queues
        return sorted(table.keys[row] for row, facts in table.facts.items() if facts.parent == name)

    def jobs_in(self, queue: str) -> int:
        return sum(1 for one in self._groups.values() if one == queue)

    def queue_of(self, pod: Pod) -> str | None:
        """The queue of the group that a pod names; None if it names none, or one that is not known."""
        found = self.dialect.group_of(pod)
        if found is None:
            return None
        name, _, system = found.partition(AT)
        kinds = [one for one in self.group_kinds if not system or _SYSTEM[one] == system]
        return next((self._groups[kind, name] for kind in kinds if (kind, name) in self._groups), None)

    def namespace(self, name: str) -> Namespace | None:
        return self._cluster.all(Namespace).get(name)

    def knows_priority_class(self, name: str) -> bool:
        known = (one.metadata.name for one in self._cluster.priorities)
        return PriorityClass in self._unlisted or name in SYSTEM_PRIORITIES or name in known


_SYSTEM: Mapping[type[Object], str] = {VolcanoPodGroup: "volcano", KaiPodGroup: "kai"}
