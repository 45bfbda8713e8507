"""The cache: the cluster's columns as the watch shows them, plus decisions not shown yet.

For each object there is what was *seen* last and what is *believed*: the seen object with all assumptions
about it applied. Columns contain what is believed. An assumption is made when a write is decided. It ends
when the watch shows it, or when the write fails; then what was seen counts again. So a bind counts from the
moment of the decision, and an old event cannot undo it.

The scheduler is the only caller, between cycles, never during one. Given the same objects and no assumptions,
the columns equal those built afresh from a list.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from msgspec.structs import replace

from maniple.cluster.cluster import Cluster
from maniple.cluster.facts import AT
from maniple.cluster.statuses import Status
from maniple.live.assumptions import Assumption
from maniple.live.barred import Barred
from maniple.live.deferred import Deferred
from maniple.live.essence import essence, slim, starts
from maniple.live.owners import OWNER_SECONDS, Owners
from maniple.live.refs import Ref
from maniple.live.set_aside import Aside, SetAside, gated
from maniple.objects.core import Namespace, PersistentVolume, PersistentVolumeClaim, Pod, SchedulingGate
from maniple.objects.dra import ResourceClaim
from maniple.objects.group_claims import group_name
from maniple.objects.load import Problem
from maniple.objects.meta import Object
from maniple.objects.owners import NATIVE_GROUP, WorkloadOwner, is_owner
from maniple.profiles.families import with_status
from maniple.profiles.grouping import Grouper
from maniple.profiles.named_grouping import NamedGrouper
from maniple.profiles.written_groups import GROUP_KINDS
from maniple.workloads.model import Owner

_LONGEST_VERSION = 20  # digits of 64 bits

# Kinds whose writes depend on their version.
SHARED = (PersistentVolume, PersistentVolumeClaim, ResourceClaim)
# A pod whose bind failed is excluded from decisions by a gate that exists only in the cache.
BACK_OFF_GATE = SchedulingGate(name="maniple.dev/back-off")


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


class Cache:
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

    # -- watch events ------------------------------------------------------------------------------------------------

    def put(self, item: Object) -> bool:
        """Take in an object; returns whether a decision may depend on the change, and is not better deferred."""
        whole, version = item, version_of(item)
        item = slim(item) if self._reading is None else self._reading.trimmed(slim(item))
        ref = (type(item), item.key)
        made = self._seen[ref] if ref in self._made else None
        if self._named is not None and isinstance(item, GROUP_KINDS):
            self._named.seen(item)
            self._others_matter |= self._settle_groups()
            item = self._named.believed(item)
        seen = self._seen.get(ref)
        if seen is not None and seen.metadata.uid != item.metadata.uid:
            self._forget(ref)
        elif (
            isinstance(item, Pod)
            and isinstance(seen, Pod)
            and seen.spec.node_name
            and not item.spec.node_name
        ):
            return False  # a pod never loses its node: this is older than the known state
        self._seen[ref] = item
        is_back = self.aside.has_changed(ref, item) and self.let_back(ref)
        if isinstance(whole, SHARED):
            self._versions[ref] = version
            self.answered(whole)
        assumed = self._assumed.get(ref)
        if assumed is not None:
            for aspect, assumption in [*assumed.items()]:
                late = assumption.written and not assumption.lasting
                if late or assumption.shown(item) or 0 < assumption.version <= version:
                    self._drop(ref, aspect)
        is_new = ref not in self._believed
        matters = self._refresh(ref)
        if made is not None and self._named is not None and self._named.written(ref):
            matters |= self.group_written(ref, made)
        if self._grouper is not None:
            matters = self._note_owner(item, matters=matters)
        if matters and is_new and self._awaits_members(item):
            self.deferred.members += 1
            return False
        return matters or is_back

    def answered(self, item: Object) -> None:
        """The state of an object in the response to a write, known before the watch shows it."""
        ref = (type(item), item.key)
        known = self._whole.get(ref)
        if known is None or known.metadata.uid != item.metadata.uid or version_of(known) < version_of(item):
            self._whole[ref] = item

    def gone(self, item: Object) -> bool:
        """Take out an object."""
        ref = (type(item), item.key)
        if self._owners is not None and is_owner(item) and self._owners.departs(item):
            return False
        if self._named is not None and isinstance(item, GROUP_KINDS) and self._named.unseen(item):
            self._forget(ref)
            return self._settle_groups()  # it counts as it is here, until it is written again
        owners = self._owners_of(ref)
        self._forget(ref)
        self._whole.pop(ref, None)
        self._versions.pop(ref, None)
        was_seen = self._seen.pop(ref, None) is not None
        matters = was_seen and self._refresh(ref)
        matters |= self._forget_owner(item, owners)
        self.changed.pop(ref, None)
        return self.let_back(ref) or matters

    # -- owners and groups -------------------------------------------------------------------------------------------

    def kind_is(self, kind: type[Object], *, there: bool) -> bool:
        """Whether the cluster has a kind is now known; returns whether a decision may depend on it."""
        return (
            self._grouper is not None and self._grouper.kind_is(kind, there=there) and self._settle_groups()
        )

    def group_problems(self) -> list[Problem]:
        """What could not be read of owners, once each time that it comes up."""
        return self._grouper.new_problems() if self._grouper is not None else []

    def _note_owner(self, item: Object, *, matters: bool) -> bool:
        """Take in a pod, an owner or a namespace as far as groups go; returns whether a decision may depend on it."""
        assert self._grouper is not None
        assert self._owners is not None
        if isinstance(item, Pod):
            self._owners.seen(item)
            return matters
        if not is_owner(item) and not isinstance(item, Namespace):
            return matters
        self._grouper.take(item)
        regrouped = self._settle_groups()
        for key in self._owners.arrived(item):
            self._held.pop(key, None)
            regrouped |= self._refresh((Pod, key))
        return regrouped or (matters and not isinstance(item, WorkloadOwner))

    def _owners_of(self, ref: Ref) -> list[Ref]:
        known = self._grouper is not None and ref[0] is Pod
        return self._grouper.owners_of(ref[1]) if known and self._grouper is not None else []

    def _forget_owner(self, item: Object, owners: Iterable[Ref]) -> bool:
        """An object is gone; so are the owners of a pod that left before it."""
        if self._grouper is None or self._owners is None:
            return False
        if isinstance(item, Pod):
            self._owners.forget(item.key)
            left = self._owners.without_pods(owners)
            for kind, key in left:
                self._grouper.drop(self._seen.pop((kind, key)))
                self._refresh((kind, key))
            return False
        self._grouper.drop(item)
        return self._settle_groups()

    def _settle_groups(self, besides: str = "") -> bool:
        """Take in groups and pods that read differently; returns whether a decision may depend on that."""
        assert self._grouper is not None
        changes, matters = self._grouper.settle(), False
        for group in changes.gone:
            matters |= self._take_out_group((type(group), group.key))
        for group in changes.groups:
            ref = (type(group), group.key)
            if self._named is not None and self._named.written(ref):
                self._made.pop(ref, None)
            else:
                self._made[ref] = None
            self._seen[ref] = made = with_status(group, self._seen.get(ref))
            if self.aside.has_changed(ref, made):
                self.let_back(ref)
            matters |= self._refresh(ref)
        for pod in changes.pods:
            if pod.key != besides:
                matters |= self._refresh((Pod, pod.key))
        return matters

    def _take_out_group(self, ref: Ref) -> bool:
        """A group has no pods any more; what is in the cluster of that name is left."""
        self._made.pop(ref, None)
        left = self._named.objects.get(ref) if self._named is not None else None
        if left is not None:
            self._seen[ref] = left
        else:
            self.group_gone(self._seen.pop(ref))
            self._assumed.pop(ref, None)
        return self._refresh(ref) | self.let_back(ref)

    # -- decisions ---------------------------------------------------------------------------------------------------

    def assume(self, ref: Ref, aspect: str, assumption: Assumption) -> bool:
        """Count a decision as carried out.

        A newer one about the same aspect of the object replaces the older.
        """
        if ref not in self._seen and not assumption.makes:
            return False
        self._assumed.setdefault(ref, {})[aspect] = assumption
        return self._refresh(ref)

    def settle(self, ref: Ref, aspect: str, assumption: Assumption, *, failed: bool) -> bool:
        """The write is over; returns whether it failed and a decision may depend on that."""
        if self._assumed.get(ref, {}).get(aspect) is not assumption:
            return False
        assumption.written = True
        seen = self._seen.get(ref)
        passed = 0 < assumption.version <= self._versions.get(ref, 0)
        if failed or passed or (seen is not None and assumption.shown(seen)):
            self._drop(ref, aspect)
        return self._refresh(ref)

    def give_up(self, ref: Ref) -> bool:
        """An object that was to be created is no longer needed."""
        makes = [aspect for aspect, one in self._assumed.get(ref, {}).items() if one.makes]
        for aspect in makes:
            self._drop(ref, aspect)
        return bool(makes) and self._refresh(ref)

    def listed(self, kind: type[Object]) -> bool:
        """All objects of a kind have been listed: one that was created and is not among them is gone again."""
        unseen = [
            ref
            for ref, aspects in self._assumed.items()
            if ref[0] is kind and any(one.makes and one.written for one in aspects.values())
        ]
        dropped = [self.give_up(ref) for ref in unseen]
        return any(dropped)

    def keep_made(self, group: Object) -> bool:
        """The new state of a group that exists only here."""
        ref = (type(group), group.key)
        if ref not in self._made:
            return False
        self._seen[ref] = group
        return self._refresh(ref)

    def hold(self, key: str, uid: str, until: float, why: str) -> bool:
        """Exclude a pending pod until a time of the event loop's clock."""
        pod = self.pod(key)
        if pod is None or pod.metadata.uid != uid or pod.spec.node_name:
            return False
        self._held[key] = Held(uid, until, why)
        return self._refresh((Pod, key))

    def refused(self, key: str, uid: str, node: str, until: float, why: str, *, keep: bool) -> None:
        """A node refused a pod: it is avoided for a while.

        `keep`: no other pod may take the room meanwhile.
        """
        pod = self._seen.get((Pod, key))
        if not isinstance(pod, Pod) or pod.metadata.uid != uid or pod.spec.node_name:
            return
        self._drop_kept(key)
        all_alike = self._barred.refused(pod, node, until, why)
        if keep:
            self.cluster.apply(self._barred.keep(pod, node))
        for each in [key, *(self._waiting_in(pod.metadata.namespace) if all_alike else ())]:
            self._refresh((Pod, each))

    def accepted(self, key: str, node: str) -> None:
        """A pod was bound to the node: pods like it need not avoid it."""
        pod = self._seen.get((Pod, key))
        if isinstance(pod, Pod):
            self._barred.accepted(pod, node)

    def _waiting_in(self, namespace: str) -> list[str]:
        return [
            key
            for (kind, key), pod in self._believed.items()
            if kind is Pod and pod.metadata.namespace == namespace and self.waits(key)
        ]

    # -- planning that failed ----------------------------------------------------------------------------------------

    def set_aside(self, ref: Ref, why: str, *, item: Object | None = None, barely: bool = False) -> None:
        """Plan with a stand-in until the object has changed; `item`: as it is, if it could not be taken in."""
        if item is not None:
            self._seen[ref] = item
        self.aside.put(ref, Aside(self._seen[ref], why, barely))
        self._refresh_with_pods(ref)

    def let_back(self, ref: Ref) -> bool:
        """Plan with an object as it is again; returns whether it had been set aside."""
        if not self.aside.let_back(ref):
            return False
        self._refresh_with_pods(ref)
        return True

    def leave_out(self, refs: Collection[Ref]) -> None:
        """Leave these objects out for a trial, and no others."""
        for ref in self.aside.leave_out(frozenset(refs)):
            self._refresh(ref)

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

    def _refresh_with_pods(self, ref: Ref) -> None:
        self._refresh(ref)
        if ref[0] in GROUP_KINDS:
            for key in self._waiting_in(ref[1].partition("/")[0]):
                self._refresh((Pod, key))

    def release(self, now: float) -> bool:
        """Release the pods whose back-off is over; returns whether there was one.

        Pods whose owners have not come with them wait from now on.
        """
        for key, why in self._owners.begin_to_wait() if self._owners is not None else ():
            pod = self.pod(key)
            if pod is not None:
                self.hold(key, pod.metadata.uid, now + OWNER_SECONDS, why)
        return self._release_barred(now) | self._release_held(now)

    def _release_barred(self, now: float) -> bool:
        if not self._barred.release(now):
            return False
        for key in [*self._barred.kept]:
            pod = self._seen.get((Pod, key))
            if not isinstance(pod, Pod) or not self._barred.why(pod):
                self._drop_kept(key)
        for key in [*self._avoiding]:
            self._refresh((Pod, key))
        return True

    def _drop_kept(self, key: str) -> None:
        placeholder = self._barred.kept.pop(key, None)
        if placeholder is not None:
            self.cluster.delete(placeholder)

    def _release_held(self, now: float) -> bool:
        due = [key for key, held in self._held.items() if held.until <= now]
        for key in due:
            del self._held[key]
            self._refresh((Pod, key))
        return bool(due)

    def next_release(self) -> float | None:
        moments = [held.until for held in self._held.values()]
        barred = self._barred.next_release()
        return min(moments if barred is None else [*moments, barred], default=None)

    # -- reading -----------------------------------------------------------------------------------------------------

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

    def read_again(self) -> bool:
        """How pods are read has changed; returns whether a decision may depend on it."""
        changed = [self._refresh(ref) for ref in [*self._seen] if ref[0] is Pod]
        return any(changed)

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

    def rebuild(self, cluster: Cluster) -> list[tuple[Object, Exception]]:
        """Fill new columns with what is believed; decisions that are not confirmed stay, and so does kept room.

        Returns the objects that could not be taken in.
        """
        for kind in self.cluster.unlisted:
            cluster.know(kind, known=False)
        self.cluster = cluster
        failed: list[tuple[Object, Exception]] = []
        for item in (*self._believed.values(), *self._barred.kept.values()):
            try:
                cluster.apply(item)
            except Exception as error:
                failed.append((item, error))
        return failed

    # -- updating the columns ----------------------------------------------------------------------------------------

    def _refresh(self, ref: Ref) -> bool:
        """Update the columns to what is believed of an object now, and of what is grouped with it.

        Returns whether a decision may depend on the difference. That a pod starts is deferred.
        """
        matters = self._refresh_one(ref)
        others, self._others_matter = self._others_matter, False
        return matters or others

    def _refresh_one(self, ref: Ref) -> bool:
        before, after = self._believed.get(ref), self._believe(ref)
        if after == before:
            return False
        self.taken_in(ref, after)
        if isinstance(before, Pod) and isinstance(after, Pod) and essence(before) == essence(after):
            self._believed[ref] = after
            self.cluster.renew(after)
            return False
        self._note_change(ref)
        counted, requested = self._counts(ref), self._requested(ref)
        if after is not None:
            self._believed[ref] = after
            self.cluster.apply(after)
        elif before is not None:
            del self._believed[ref]
            self.cluster.delete(before)
        if not counted and not self._counts(ref):
            return False
        if starts(before, after) and self._requested(ref) == requested:
            self.deferred.starts += 1
            return False
        return before is None or after is None or essence(before) != essence(after)

    def _note_change(self, ref: Ref) -> None:
        self.changed.pop(ref, None)
        self.changed[ref] = None

    def _believe(self, ref: Ref) -> Object | None:
        """What was seen, with every assumption applied; a pod without a group gets one here."""
        item = self._seen.get(ref)
        for assumption in self._assumed.get(ref, {}).values():
            if item is not None or assumption.makes:
                item = assumption.change(item)
        item = self.aside.applied(ref, item)
        if ref[0] is not Pod:
            return item
        if not isinstance(item, Pod):
            if self._grouper is not None:
                self._grouper.gone(ref[1])
                self._others_matter |= self._settle_groups()
            return item
        item = self._avoid(item)
        if ref[1] in self._held and not item.spec.node_name:
            gates = (*item.spec.scheduling_gates, BACK_OFF_GATE)
            item = replace(item, spec=replace(item.spec, scheduling_gates=gates))
        item = self._grouped(item)
        if self.aside and self._groups_aside(item):
            item = gated(item)
        return item if self._reading is None else self._reading.read(item)

    def _grouped(self, pod: Pod) -> Pod:
        """A pod without a group in the one that its owners ask for."""
        if self._grouper is None:
            return pod
        self._grouper.put(pod)
        self._others_matter |= self._settle_groups(besides=pod.key)
        return self._grouper.pod(pod.key) or pod

    def _avoid(self, pod: Pod) -> Pod:
        """A pod without a node avoids those that refused it; one with a node needs no room elsewhere."""
        if pod.spec.node_name:
            self._drop_kept(pod.key)
        avoiding = pod if pod.spec.node_name else self._barred.applied(pod)
        (self._avoiding.discard if avoiding is pod else self._avoiding.add)(pod.key)
        return avoiding

    def _counts(self, ref: Ref) -> bool:
        """Pods that no task stands for are in no column."""
        return ref[0] is not Pod or self.cluster.tasks.index_of(ref[1]) is not None

    def _awaits_members(self, item: Object) -> bool:
        """Whether it is of a gang that has fewer pods than it needs, or a pod whose group is not known yet."""
        tasks, jobs = self.cluster.tasks, self.cluster.jobs
        if isinstance(item, Pod):
            task = tasks.index_of(item.key)
            rows = [int(tasks.job[task])] if task is not None and not item.spec.node_name else []
        else:
            rows = [row for row in jobs.rows_named(item.key) if jobs.objects.get(row) is item]
        return bool(rows) and all(row >= 0 and self._is_short(row) for row in rows)

    def _is_short(self, job: int) -> bool:
        facts = self.cluster.jobs.facts.get(job)
        return facts is None or int(self.cluster.jobs.counts[:, job].sum()) < facts.minimum

    def _requested(self, ref: Ref) -> list[int]:
        """What a pod requests, in base units; nothing for other objects."""
        row = self.cluster.tasks.index_of(ref[1]) if ref[0] is Pod else None
        return (
            self.cluster.specs.specs[self.cluster.tasks.spec[row]].request.tolist() if row is not None else []
        )

    def _forget(self, ref: Ref) -> None:
        for aspect, assumption in [*self._assumed.get(ref, {}).items()]:
            if not assumption.makes:  # what is deleted is another object of that name
                self._drop(ref, aspect)
        if ref[0] is Pod:
            self._held.pop(ref[1], None)
            self._avoiding.discard(ref[1])
            self._drop_kept(ref[1])

    def _drop(self, ref: Ref, aspect: str) -> None:
        aspects = self._assumed[ref]
        del aspects[aspect]
        if not aspects:
            del self._assumed[ref]


def version_of(item: Object) -> int:
    """The version as a number, ordered for one object; 0 if the object has none."""
    text = item.metadata.resource_version
    return int(text) if text.isdecimal() and len(text) <= _LONGEST_VERSION else 0
