"""What was seen of every object, and what is believed of it: the state of the cache, and how it is read.

For each object there is what was *seen* last and what is *believed*: the seen object with all assumptions about it
applied. `believing.py` keeps the columns up to what is believed, `cache.py` takes in changes and decisions.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from maniple.cluster.cluster import Cluster
from maniple.cluster.facts import AT
from maniple.cluster.statuses import Status
from maniple.live.assumptions import Assumption
from maniple.live.barred import Barred
from maniple.live.deferred import Deferred
from maniple.live.owners import Owners
from maniple.live.refs import Ref
from maniple.live.set_aside import SetAside
from maniple.objects.core import Pod
from maniple.objects.group_claims import group_name
from maniple.objects.meta import Object
from maniple.objects.owners import NATIVE_GROUP
from maniple.profiles.grouping import Grouper
from maniple.profiles.named_grouping import NamedGrouper
from maniple.profiles.written_groups import GROUP_KINDS
from maniple.workloads.model import Owner


class Reading(Protocol):
    """How objects are read."""

    def trimmed(self, item: Object) -> Object:
        """An object without the fields that are not read."""

    def read(self, pod: Pod) -> Pod:
        """A pod, with its group, as it is to be read."""


@dataclass(slots=True)
class Held:
    """A pod that is backed off for a while."""

    uid: str
    until: float
    why: str


class Beliefs:
    def __init__(
        self,
        cluster: Cluster,
        reading: Reading | None = None,
        grouper: Grouper | NamedGrouper | None = None,
    ) -> None:
        """`grouper`: how pods without a group become jobs, if they do; a `NamedGrouper` if their groups are written."""
        self.cluster = cluster
        self._reading = reading
        self._grouper = grouper
        self._named = grouper if isinstance(grouper, NamedGrouper) else None
        self._owners = Owners(grouper) if grouper is not None else None
        self._seen: dict[Ref, Object] = {}
        # the newest known state of objects that other clients change, too
        self._whole: dict[Ref, Object] = {}
        self._versions: dict[Ref, int] = {}  # of these, the version that was seen
        self._believed: dict[Ref, Object] = {}
        self._assumed: dict[Ref, dict[str, Assumption]] = {}
        self._held: dict[str, Held] = {}
        self._barred = Barred()
        self._avoiding: set[str] = set()  # pods that are believed to avoid a node
        self._made: dict[Ref, None] = {}  # groups that exist only here
        self._others_matter = False  # a decision may depend on what was refreshed besides
        # called with a group that existed only here
        self.group_gone: Callable[[Object], None] = lambda group: None
        # called with a group that was written and is in the cluster now, and as it was here before
        self.group_written: Callable[[Ref, Object], bool] = lambda ref, before: False
        # called with what is believed anew of an object, None if it is gone, for a journal
        self.taken_in: Callable[[Ref, Object | None], None] = lambda ref, item: None
        self.deferred = Deferred()
        self.aside = SetAside()
        # what has changed since planning last succeeded, the latest last; the guard clears it
        self.changed: dict[Ref, None] = {}

    def get(self, kind: type[Object], key: str) -> Object | None:
        """An object as it is believed to be."""
        return self._believed.get((kind, key))

    def whole(self, kind: type[Object], key: str) -> Object | None:
        """The newest known state of an object that other clients change, too, with its version and no
        assumptions."""
        return self._whole.get((kind, key))

    def pod(self, key: str) -> Pod | None:
        found = self._believed.get((Pod, key))
        return found if isinstance(found, Pod) else None

    def waits(self, key: str) -> bool:
        """Whether a pod has no node yet, decided or seen."""
        tasks = self.cluster.tasks
        row = tasks.index_of(key)
        return row is not None and tasks.status[row] in (Status.PENDING, Status.GATED)

    def held(self, key: str) -> Held | None:
        return self._held.get(key)

    def refusal(self, pod: Pod) -> str:
        """Why a pod avoids the node that it had been given; empty for most."""
        return self._barred.why(pod)

    def ref(self, item: Object) -> Ref:
        """The name that the cache has for an object; for the group of a single pod that exists only here, the pod's."""
        ref = (type(item), item.key)
        pods = self._grouper.members(item) if self._grouper is not None and ref in self._made else []
        return (Pod, pods[0].key) if len(pods) == 1 else ref

    def refs(self) -> list[Ref]:
        """Everything that was seen, except groups that exist only here."""
        return [ref for ref in self._seen if ref not in self._made]

    def seen(self, ref: Ref) -> Object | None:
        """An object as the watch showed it last."""
        return self._seen.get(ref)

    def is_made(self, ref: Ref) -> bool:
        """Whether a group exists only here."""
        return ref in self._made

    def regarded(self, ref: Ref) -> Object | None:
        """What events about a group that exists only here are about: its pod if it has one, or its owner."""
        group = self._seen.get(ref)
        if group is None or ref not in self._made or self._grouper is None:
            return None
        if (alone := self.lone_pod(ref)) is not None:
            return alone
        pods = self._grouper.members(group)
        owners = self._owners_of((Pod, pods[0].key)) if pods else []
        owner = self._grouper.owner_of(group)
        named = (self._seen.get(one) for one in owners)
        found = next((one for one in named if one is not None and owner and one.kind == owner.kind), None)
        return found or (self.pod(pods[0].key) if pods else None)

    def group_of_pod(self, pod: Pod) -> Ref | None:
        """The group of a pod that is a job of its own, if the group exists only here."""
        group = self.cluster.dialect.group_of(self.pod(pod.key) or pod)
        if group is None:
            return None
        refs: list[Ref] = [(kind, group.partition(AT)[0]) for kind in GROUP_KINDS]
        return next((ref for ref in refs if self.lone_pod(ref) is not None), None)

    def lone_pod(self, ref: Ref) -> Pod | None:
        """The only pod of a group that exists only here."""
        if ref not in self._made or self._grouper is None:
            return None
        key = self._grouper.lone_pod(self._seen[ref])
        return self.pod(key) if key is not None else None

    def owner_of(self, ref: Ref) -> Owner | None:
        """The owner of a group that exists only here."""
        group = self._seen.get(ref)
        if group is None or ref not in self._made or self._grouper is None:
            return None
        return self._grouper.owner_of(group)

    def pods_of(self, owner: Ref) -> list[Pod]:
        """The pods that are grouped with an owner."""
        item = self._seen.get(owner)
        keys = self._grouper.pods_of(item) if item is not None and self._grouper is not None else ()
        return [pod for key in keys if (pod := self.pod(key)) is not None]

    def pods_of_native(self, group: str) -> list[Pod]:
        """The pods that are grouped here by a PodGroup of Kubernetes' own."""
        return self.pods_of((NATIVE_GROUP, group))

    def mates(self, pod: Pod) -> list[Pod]:
        """The pods that are grouped here by the PodGroup that a pod names, with the pod itself."""
        name = group_name(pod)
        return self.pods_of_native(f"{pod.metadata.namespace or 'default'}/{name}") if name else []

    def made_named(self, key: str) -> list[Ref]:
        """The groups of a name that exist only here."""
        refs: list[Ref] = [(kind, key) for kind in GROUP_KINDS]
        return [ref for ref in refs if ref in self._made]

    def assumes(self, ref: Ref, aspect: str) -> bool:
        """Whether a decision about an object counts that the watch has not shown yet."""
        return aspect in self._assumed.get(ref, {})

    def made(self) -> list[Object]:
        """The groups that exist only here."""
        return [self._seen[ref] for ref in self._made]

    def of_kind(self, kind: type[Object]) -> Iterator[Object]:
        return (item for (known, _), item in self._believed.items() if known is kind)

    def objects(self) -> Iterator[Object]:
        """Everything, as it is believed to be."""
        return iter(self._believed.values())

    def placeholders(self) -> Iterator[Pod]:
        """What keeps the room of pods that were refused."""
        return iter(self._barred.kept.values())

    def reasons_aside(self) -> Mapping[Ref, str]:
        """The objects that are set aside, and why."""
        return self.aside.reasons()

    def seen_objects(self) -> Iterator[Object]:
        """Everything as the watch showed it."""
        return (item for ref, item in self._seen.items() if ref not in self._made)

    def assumptions(self) -> dict[Ref, list[str]]:
        """What the watch has not shown yet: the aspects of each object."""
        return {ref: list(aspects) for ref, aspects in self._assumed.items()}

    @property
    def unconfirmed(self) -> int:
        """Decisions that the watch has not shown yet."""
        return sum(len(aspects) for aspects in self._assumed.values())

    def unconfirmed_nodes(self) -> set[str]:
        """The nodes of pods with decisions that the watch has not shown yet."""
        pods = (self.pod(key) for kind, key in self._assumed if kind is Pod)
        return {pod.spec.node_name for pod in pods if pod is not None and pod.spec.node_name}

    def next_release(self) -> float | None:
        moments = [held.until for held in self._held.values()]
        barred = self._barred.next_release()
        return min(moments if barred is None else [*moments, barred], default=None)

    def why_aside(self, pod: Pod) -> str:
        """Why a pod is excluded from decisions: it or its group is set aside. Empty for most."""
        if not self.aside:
            return ""
        why = self.aside.why((Pod, pod.key))
        return why or next((self.aside.why(ref) for ref in self._groups_aside(pod)), "")

    def _groups_aside(self, pod: Pod) -> list[Ref]:
        """The groups of a pod that are set aside."""
        group = self.cluster.dialect.group_of(pod)
        if group is None:
            return []
        refs: list[Ref] = [(kind, group.partition(AT)[0]) for kind in GROUP_KINDS]
        return [ref for ref in refs if ref in self.aside]

    def _waiting_in(self, namespace: str) -> list[str]:
        return [
            key
            for (kind, key), pod in self._believed.items()
            if kind is Pod and pod.metadata.namespace == namespace and self.waits(key)
        ]

    def _owners_of(self, ref: Ref) -> list[Ref]:
        known = self._grouper is not None and ref[0] is Pod
        return self._grouper.owners_of(ref[1]) if known and self._grouper is not None else []
