"""The objects of a cluster with what controllers would add: pods of manifests, groups of pods that have none.

The planner has one `Completion` for each cluster that it builds or changes. What it adds follows from the objects
alone: adding and removing them one by one ends where taking all of them at once does.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from maniple.cluster.cluster import Cluster
from maniple.objects.load import Problem
from maniple.objects.meta import Object
from maniple.objects.owners import is_owner
from maniple.profiles.families import Changes, with_status
from maniple.profiles.group_forms import Form, is_made
from maniple.profiles.grouping import Grouper
from maniple.workloads.expanding import expanded
from maniple.workloads.kinds import TABLE, Table
from maniple.workloads.manifests import Key, finder, is_manifest, key_of, owners_named_by, with_pods
from maniple.workloads.model import FieldError, Raw


class Completion:
    def __init__(self, form: Form, table: Table = TABLE) -> None:
        self.grouper = Grouper(form, table)
        self._table = table
        self._manifests: dict[Key, Raw] = {}
        self._children: dict[Key, list[dict[str, Any]]] = {}
        self._errors: dict[Key, FieldError] = {}
        self._others: list[Raw] = []  # what else a controller may read of what was given

    @classmethod
    def of_cluster(cls, form: Form, cluster: Cluster, table: Table = TABLE) -> "Completion":
        """For a cluster that was not built here, whose groups have been made."""
        made = cls(form, table)
        for kept in cluster.others.values():
            for item in kept.values():
                made.grouper.take(item)
        for pod in cluster.tasks.pods.values():
            made.grouper.put(pod)
        made.grouper.settle()
        return made

    # -- manifests ---------------------------------------------------------------------------------------------------

    def expanded(self, given: Sequence[Any]) -> Sequence[Any]:
        """All objects, with the pods of manifests among them."""
        found = with_pods(given, self._table)
        self._manifests, self._children = found.manifests, found.children
        self._errors = found.errors
        return found.objects

    def renewed(
        self, cluster: Cluster, given: Sequence[Any], *, gone: bool
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Children of manifests that are to be added and to be removed, now that these objects come or go."""
        raws = [one for one in given if isinstance(one, Mapping)]
        touched = {key for one in raws for key in owners_named_by(one) if key in self._manifests}
        for one in raws:
            key = key_of(one)
            if is_manifest(one, self._table) and not gone:
                self._manifests[key] = one
                touched.add(key)
            elif self._manifests.pop(key, None) is not None:
                touched.add(key)
        if not touched:
            return [], []
        named = self._named(cluster, raws, gone=gone)
        self._others = [*self._manifests.values(), *raws]
        added: list[dict[str, Any]] = []
        removed: list[dict[str, Any]] = []
        for key in sorted(touched):
            before, after = self._children.pop(key, []), self._children_of(key, key in named)
            stay = {key_of(one) for one in after}
            removed += [one for one in before if key_of(one) not in stay]
            added += [one for one in after if one not in before]
        coming = {key_of(one) for one in raws} if not gone else set()
        return added, [one for one in removed if key_of(one) not in coming]

    def _children_of(self, key: Key, named: bool) -> list[dict[str, Any]]:
        self._errors.pop(key, None)
        manifest = self._manifests.get(key)
        if manifest is None or named:
            return []
        try:
            self._children[key] = expanded(manifest, self._table, finder(self._others, key[2]))
        except FieldError as error:
            self._errors[key] = error
        return self._children.get(key, [])

    def _named(self, cluster: Cluster, given: Sequence[Raw], *, gone: bool) -> set[Key]:
        """Owners that objects refer to which are not children of a manifest here."""
        made = {key_of(one) for children in self._children.values() for one in children}
        changed = {key_of(one) for one in given}
        named = set() if gone else {key for one in given for key in owners_named_by(one)}
        kept = (item for kind in cluster.others.values() for item in kind.values() if is_owner(item))
        for item in (*cluster.tasks.pods.values(), *kept):
            namespace, name = item.metadata.namespace or "default", item.metadata.name
            own = item.api_group, item.kind, namespace, name
            if item.metadata.owner_references and own not in made and own not in changed:
                named |= {
                    (one.api_version.rpartition("/")[0], one.kind, namespace, one.name)
                    for one in item.metadata.owner_references
                }
        return named

    # -- groups ------------------------------------------------------------------------------------------------------

    def grouped(
        self, objects: Iterable[Object], cluster: Cluster | None = None
    ) -> tuple[list[Object], Changes]:
        """These objects without those that are grouped, and what reads differently with them.

        `cluster`: where they are added to, so that groups keep their status.
        """
        others: list[Object] = []
        known: dict[str, Object] = {}
        for item in objects:
            if is_made(item):
                known[item.key] = item
            elif not self.grouper.take(item):
                others.append(item)
        return others, self._settled(cluster, known)

    def removed(self, objects: Iterable[Object], cluster: Cluster) -> tuple[list[Object], Changes]:
        """The same for objects that go."""
        gone = [item for item in objects if not is_made(item)]
        for item in gone:
            self.grouper.drop(item)
        return gone, self._settled(cluster, {})

    def _settled(self, cluster: Cluster | None, known: dict[str, Object]) -> Changes:
        changes = self.grouper.settle()
        if cluster is not None:
            for one in changes.groups:
                for row in cluster.jobs.rows_named(one.key):
                    if row in cluster.jobs.objects:
                        known.setdefault(one.key, cluster.jobs.objects[row])
        changes.groups = [with_status(one, known.get(one.key)) for one in changes.groups]
        return changes

    def problems(self) -> list[Problem]:
        """What cannot be read of workloads."""
        errors = (Problem(one.title, one.path, one.message) for one in self._errors.values())
        return [*dict.fromkeys((*errors, *self.grouper.problems()))]
