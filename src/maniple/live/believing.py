"""Keeps the columns up to what is believed of each object, and of what is grouped with it.

`cache.py` calls `_refresh` for every object about which something new was seen or assumed. A pod without a group gets
the one that its owners ask for, which may be a new one: so groups are settled here, too.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from maniple.cluster.cluster import Cluster
from maniple.live.beliefs import Beliefs
from maniple.live.essence import essence, starts
from maniple.live.refs import Ref
from maniple.live.set_aside import gated
from maniple.objects.core import Namespace, Pod, SchedulingGate
from maniple.objects.load import Problem
from maniple.objects.meta import Object
from maniple.objects.owners import WorkloadOwner, is_owner
from maniple.profiles.families import with_status
from maniple.profiles.written_groups import GROUP_KINDS

# A pod whose bind failed is excluded from decisions by a gate that exists only in the cache.
BACK_OFF_GATE = SchedulingGate(name="maniple.dev/back-off")


class Believing(Beliefs):
    # -- one object ---------------------------------------------------------------------------------------------------

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

    def _drop_kept(self, key: str) -> None:
        placeholder = self._barred.kept.pop(key, None)
        if placeholder is not None:
            self.cluster.delete(placeholder)

    # -- all objects --------------------------------------------------------------------------------------------------

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

    def read_again(self) -> bool:
        """How pods are read has changed; returns whether a decision may depend on it."""
        changed = [self._refresh(ref) for ref in [*self._seen] if ref[0] is Pod]
        return any(changed)

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

    # -- what is set aside --------------------------------------------------------------------------------------------

    def let_back(self, ref: Ref) -> bool:
        """Plan with an object as it is again; returns whether it had been set aside."""
        if not self.aside.let_back(ref):
            return False
        self._refresh_with_pods(ref)
        return True

    def _refresh_with_pods(self, ref: Ref) -> None:
        self._refresh(ref)
        if ref[0] in GROUP_KINDS:
            for key in self._waiting_in(ref[1].partition("/")[0]):
                self._refresh((Pod, key))
