"""The cache: the cluster's columns as the watch shows them, plus decisions not shown yet.

For each object there is what was *seen* last and what is *believed*: the seen object with all assumptions
about it applied. Columns contain what is believed. An assumption is made when a write is decided. It ends
when the watch shows it, or when the write fails; then what was seen counts again. So a bind counts from the
moment of the decision, and an old event cannot undo it.

The scheduler is the only caller, between cycles, never during one. Given the same objects and no assumptions,
the columns equal those built afresh from a list.
"""

from collections.abc import Collection

from maniple.live.assumptions import Assumption
from maniple.live.beliefs import Held
from maniple.live.believing import Believing
from maniple.live.essence import slim
from maniple.live.owners import OWNER_SECONDS
from maniple.live.refs import Ref
from maniple.live.set_aside import Aside
from maniple.objects.core import PersistentVolume, PersistentVolumeClaim, Pod
from maniple.objects.dra import ResourceClaim
from maniple.objects.meta import Object
from maniple.objects.owners import is_owner
from maniple.profiles.written_groups import GROUP_KINDS

_LONGEST_VERSION = 20  # digits of 64 bits

# Kinds whose writes depend on their version.
SHARED = (PersistentVolume, PersistentVolumeClaim, ResourceClaim)


class Cache(Believing):
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

    # -- planning that failed ----------------------------------------------------------------------------------------

    def set_aside(self, ref: Ref, why: str, *, item: Object | None = None, barely: bool = False) -> None:
        """Plan with a stand-in until the object has changed; `item`: as it is, if it could not be taken in."""
        if item is not None:
            self._seen[ref] = item
        self.aside.put(ref, Aside(self._seen[ref], why, barely))
        self._refresh_with_pods(ref)

    def leave_out(self, refs: Collection[Ref]) -> None:
        """Leave these objects out for a trial, and no others."""
        for ref in self.aside.leave_out(frozenset(refs)):
            self._refresh(ref)

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

    def _release_held(self, now: float) -> bool:
        due = [key for key, held in self._held.items() if held.until <= now]
        for key in due:
            del self._held[key]
            self._refresh((Pod, key))
        return bool(due)


def version_of(item: Object) -> int:
    """The version as a number, ordered for one object; 0 if the object has none."""
    text = item.metadata.resource_version
    return int(text) if text.isdecimal() and len(text) <= _LONGEST_VERSION else 0
