"""The cluster: objects in, columns kept up to date.

`apply` and `delete` take one object each and touch only the rows it concerns; `from_objects` is nothing but a loop over
`apply`. Objects may come in any order: a pod may name a node, a job or a queue that is not there yet.
`snapshot` (in `snapshot.py`) is what sessions open on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from maniple.cluster.accounting import account
from maniple.cluster.claims import SharedClaims, claims_of, published_gpus
from maniple.cluster.classes import ClassTable, SpecTable
from maniple.cluster.domains import DomainSources
from maniple.cluster.facts import Dialect, JobFacts, TaskFacts, job_key, seconds
from maniple.cluster.nodes import NodeFacts
from maniple.cluster.priorities import Priorities
from maniple.cluster.ranks import TaskRanks
from maniple.cluster.resources import PODS, ResourceSpace
from maniple.cluster.storage import Storage
from maniple.cluster.tables import JobTable, NodeTable, QueueTable, TaskTable
from maniple.cluster.terms import DEFAULT_NAMESPACE, TermTable
from maniple.cluster.workloads import WORKLOAD_KINDS, Workloads
from maniple.objects.core import CSINode, Namespace, Node, Pod, PriorityClass
from maniple.objects.dra import ResourceClaim, ResourceSlice
from maniple.objects.limits import refusal_of, too_large, within_limits
from maniple.objects.load import Problem
from maniple.objects.meta import Object
from maniple.objects.namespaces import queue_of_namespace

Kept = TypeVar("Kept", bound=Object)
MOST_MEMBERS = 2**31 - 1  # of a gang; the minimums of many sub-groups may add up to more
_ENDED = ("Succeeded", "Failed")
_MANY_RESOURCES, _MANY_ROLES = 100, 1000
_NAME_LABEL = "kubernetes.io/metadata.name"  # every namespace carries it


class Cluster:
    """The state of the world as far as scheduling reads it."""

    def __init__(
        self,
        dialect: Dialect,
        *,
        ignored_provisioners: Iterable[str] = (),
        affinity_keeps_others_out: bool = True,
    ) -> None:
        """`affinity_keeps_others_out`: anti-affinity counts for both, also between namespaces (see `TermTable`)."""
        self.dialect = dialect
        self.resources = ResourceSpace(dialect.counts)
        height = len(self.resources)
        self.nodes = NodeTable(height)
        self.tasks = TaskTable()
        self.jobs = JobTable(height)
        self.queues = QueueTable()
        self.terms = TermTable(keeps_others_out=affinity_keeps_others_out)
        self.workloads = Workloads(self.terms)
        self.storage = Storage(frozenset(ignored_provisioners))
        self._shared_claims = SharedClaims()
        self.specs = self._spec_table()
        self.classes = ClassTable(self.resources)
        self.domains = DomainSources()
        self.others: dict[type[Object], dict[str, Object]] = {}
        self.unlisted: set[type[Object]] = set()
        self.problems: list[Problem] = []
        self.nodes_of_others: set[str] = set()  # nodes that exist and are not this scheduler's
        # What plugins remember from cycle to cycle, each under its own key ("last evicted at", say). Nothing
        # else reads it.
        self.memory: dict[object, object] = {}
        self.priorities = Priorities(dialect.default_priority)
        # pod -> what says where it is about to be bound, by name; of several the last one holds
        self._decided: dict[str, dict[str, Object]] = {}
        self._decisions_stale = False
        # Pods in a group of ours that name another scheduler: the job and that name, for its reasons only
        self.foreign: dict[str, tuple[str, str]] = {}
        self._tasks_with_claims: set[int] = set()
        self._claims_stale = self._slices_stale = False
        self._published: dict[str, int] = {}  # node -> GPUs in the slices of drivers
        self._tasks_with_volumes: set[int] = set()
        self._volumes_stale = self._namespaces_stale = False
        self._node_facts: NodeFacts | None = None
        self.ranks = TaskRanks()
        self._editions = 0  # of pod groups, so far
        self._moves = 0  # of jobs, so far
        self._unclassed: set[int] = set()
        # With more than these, those of pods long gone are forgotten.
        self._many_resources, self._many_roles = _MANY_RESOURCES, _MANY_ROLES

    def _spec_table(self) -> SpecTable:
        claims_of = self._claims_of if self.dialect.counts_devices else _no_claims
        counted = self._shared_claims.counted
        return SpecTable(
            self.dialect, self.resources, self.terms, self.storage.drivers_of, claims_of, counted
        )

    @classmethod
    def from_objects(
        cls, dialect: Dialect, objects: Iterable[Object], *, ignored_provisioners: Iterable[str] = ()
    ) -> "Cluster":
        cluster = cls(dialect, ignored_provisioners=ignored_provisioners)
        for item in objects:
            cluster.apply(item)
        return cluster

    # -- one object at a time -------------------------------------------------------------------------------------

    def apply(self, item: Object) -> None:
        """Add an object, or replace the one of the same kind and key."""
        if not self.dialect.covers(item):
            self.delete(item)
            if isinstance(item, Node):
                self.nodes_of_others.add(item.metadata.name)
        elif isinstance(item, Pod):
            self._set_pod(item)
        elif isinstance(item, Node):
            self._set_node(item)
        elif isinstance(item, PriorityClass):
            self.priorities.put(item)
        elif not (self._set_job(item) or self._set_queue(item)):
            self._set_other(item)

    def renew(self, pod: Pod) -> None:
        """Keep a newer state of a pod that differs only in what no column depends on."""
        row = self.tasks.index_of(pod.key)
        if row is not None:
            self.tasks.pods[row] = pod

    def delete(self, item: Object) -> None:
        """Remove the object of that kind and key; nothing happens when there is none."""
        if isinstance(item, Pod):
            self._drop_pod(item.key)
        elif isinstance(item, Node):
            self.nodes_of_others.discard(item.metadata.name)
            self._drop_node(item.metadata.name)
        elif isinstance(item, PriorityClass):
            self.priorities.drop(item)
        elif (facts := self.dialect.job(item)) is not None:
            self._drop_job(job_key(item.key, facts.system))
        elif self.dialect.queue(item) is not None:
            self.queues.drop(item)
        else:
            self._drop_other(item)

    def all(self, kind: type[Kept]) -> Mapping[str, Kept]:
        """The objects of a kind that has no columns of its own, by key."""
        return self.others.get(kind, {})  # type: ignore[return-value]  # keyed by their own type

    def know(self, kind: type[Object], *, known: bool) -> bool:
        """Whether a kind could be listed: if not, an object that is not here may exist. Returns whether that is new."""
        new = known == (kind in self.unlisted)
        (self.unlisted.discard if known else self.unlisted.add)(kind)
        return new

    # -- pods -----------------------------------------------------------------------------------------------------

    def _set_pod(self, pod: Pod) -> None:
        self._drop_pod(pod.key)
        facts = self._facts_of(pod)
        if pod.spec.scheduler_name not in self.dialect.scheduler_names:
            self._note_foreign(pod, facts)
        if facts is None:
            return
        tasks = self.tasks
        spec = self.specs.hold(pod)
        self._heighten()
        row = tasks.hold(pod.key)
        tasks.pods[row] = pod
        tasks.status[row] = facts.status
        tasks.node[row] = self.nodes.hold(facts.node) if facts.node else -1
        tasks.job[row] = self.jobs.hold(facts.job) if facts.job is not None else -1
        tasks.spec[row] = spec
        tasks.created[row] = seconds(pod.metadata.creation_timestamp)
        tasks.best_effort[row] = self.specs.specs[spec].best_effort
        tasks.set_facts(row, facts, self.dialect.order_labels)
        if pod.spec.volumes:
            self._tasks_with_volumes.add(row)
        if pod.spec.resource_claims and self.dialect.counts_devices:
            self._tasks_with_claims.add(row)
            self._shared_claims.stale = True
        self.ranks.note(row)
        self._unclassed.add(row)
        self._account(row, +1)

    def _note_foreign(self, pod: Pod, facts: TaskFacts | None) -> None:
        """Remember whose a pod is that its job misses here."""
        if pod.status.phase in _ENDED or (facts is not None and facts.job is not None):
            return
        job = self.dialect.group_of(pod)
        if job is not None:
            self.foreign[pod.key] = job, pod.spec.scheduler_name

    def _facts_of(self, pod: Pod) -> TaskFacts | None:
        decisions = self._decided.get(pod.key)
        decided = decisions[max(decisions)] if decisions else None
        facts = self.dialect.task(pod, decided)
        if decided is None or facts is None or not facts.node or facts.node == pod.spec.node_name:
            return facts
        # A decision for a node that is not there is none.
        node = self.nodes.index_of(facts.node)
        there = node is not None and bool(self.nodes.defined[node])
        return facts if there else self.dialect.task(pod)

    def _drop_pod(self, key: str) -> None:
        self.foreign.pop(key, None)
        tasks = self.tasks
        row = tasks.index_of(key)
        if row is None:
            return
        self._account(row, -1)
        node, job = int(tasks.node[row]), int(tasks.job[row])
        if node >= 0:
            self.nodes.release(node)
        if job >= 0:
            self.jobs.release(job)
        self.specs.release(int(tasks.spec[row]))
        self._unclassed.discard(row)
        tasks.clear(row)
        self._tasks_with_volumes.discard(row)
        if row in self._tasks_with_claims:
            self._tasks_with_claims.remove(row)
            self._shared_claims.stale = True
        tasks.release(row)
        self.ranks.note(row)

    def _account(self, row: int, sign: int) -> None:
        job = int(self.tasks.job[row])
        if job >= 0:
            self.jobs.moved[job] = self._moves = self._moves + 1
        account(self.tasks, self.jobs, self.nodes, row, self.specs.specs[self.tasks.spec[row]], sign)

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _set_node(self, node: Node) -> None:
        name = node.metadata.name
        self.nodes_of_others.discard(name)
        row = self.nodes.index_of(name)
        if row is None or not self.nodes.defined[row]:
            row = self.nodes.hold(name)
            self._decisions_stale = True
        self.nodes.defined[row] = True
        self.nodes.objects[row] = node
        self._set_allocatable(row)
        self._node_facts = None

    def _drop_node(self, name: str) -> None:
        row = self.nodes.index_of(name)
        if row is None or not self.nodes.defined[row]:
            return
        self.nodes.defined[row] = False
        self._decisions_stale = True
        self.nodes.allocatable[:, row] = 0
        del self.nodes.objects[row]
        self.nodes.release(row)
        self._node_facts = None

    def _set_allocatable(self, row: int) -> None:
        node = self.nodes.objects[row]
        amounts = dict(self.dialect.allocatable(node, self._published.get(node.metadata.name, 0)))
        csi_node = self.all(CSINode).get(node.metadata.name)
        if csi_node is not None:
            amounts.update(self.dialect.volume_requests(self.storage.limits(csi_node)))
        vector = self.resources.vector(amounts, offered=True)
        self._heighten()
        self.nodes.allocatable[:, row] = self.resources.padded(vector)

    def node_facts(self) -> NodeFacts:
        """The nodes by name; made anew only after a node object changed."""
        if self._node_facts is None:
            rows = sorted(self.nodes.objects, key=self.nodes.keys.__getitem__)
            self._node_facts = NodeFacts(
                np.array(rows, dtype=np.int32),
                [self.nodes.keys[row] for row in rows],
                [self.nodes.objects[row] for row in rows],
            )
        return self._node_facts

    # -- jobs and queues ------------------------------------------------------------------------------------------

    def _set_job(self, item: Object) -> bool:
        facts = self.dialect.job(within_limits(item) if too_large(item) else item)
        if facts is None:
            return False
        refusal = refusal_of(item)
        jobs = self.jobs
        key = job_key(item.key, facts.system)
        self._drop_job(key)
        facts = self._with_queue(item, facts)
        facts.minimum = min(facts.minimum, MOST_MEMBERS)
        row = jobs.hold(key)
        jobs.define(row, item, facts)
        if refusal:
            jobs.refusals[row] = refusal
        jobs.edition[row] = self._editions = self._editions + 1
        jobs.moved[row] = self._moves = self._moves + 1
        jobs.queue[row] = self.queues.hold(facts.queue)
        jobs.priority[row] = self.priorities.value(facts.priority_class)
        return True

    def _with_queue(self, group: Object, facts: JobFacts) -> JobFacts:
        """A group that names no queue is in that of its namespace."""
        if facts.names_queue:
            return facts
        namespace = self.all(Namespace).get(group.metadata.namespace or DEFAULT_NAMESPACE)
        queue = queue_of_namespace(namespace) if namespace is not None else ""
        return replace(facts, queue=queue) if queue else facts

    def _find_queues_again(self) -> None:
        """Namespaces have changed: groups that name no queue may be in another."""
        for row in sorted(self.jobs.unnamed):
            item = self.jobs.objects[row]
            before, own = self.jobs.facts[row], self.dialect.job(item)
            if own is not None and self._with_queue(item, own).queue != before.queue:
                self._set_job(item)

    def _drop_job(self, key: str) -> None:
        jobs = self.jobs
        row = jobs.index_of(key)
        if row is None or not jobs.defined[row]:
            return
        self.queues.release(int(jobs.queue[row]))
        jobs.clear(row)
        jobs.release(row)

    def _set_queue(self, item: Object) -> bool:
        facts = self.dialect.queue(item)
        if facts is not None:
            self.queues.define(item, facts)
        return facts is not None

    # -- everything else ------------------------------------------------------------------------------------------

    def _set_other(self, item: Object) -> None:
        kind = self.others.setdefault(type(item), {})
        before = kind.get(item.key)
        kind[item.key] = item
        if before is not None and self.dialect.decides(before) != self.dialect.decides(item):
            self._other_changed(before, gone=True)
        self._other_changed(item)

    def _drop_other(self, item: Object) -> None:
        there = self.others.get(type(item), {}).pop(item.key, None)
        if there is not None:
            self._other_changed(there, gone=True)

    def _other_changed(self, item: Object, *, gone: bool = False) -> None:
        if isinstance(item, Namespace):
            self.terms.namespaces_changed()
            self._namespaces_stale = True
        elif isinstance(item, CSINode):
            row = self.nodes.index_of(item.metadata.name)
            if row is not None and self.nodes.defined[row]:
                self._set_allocatable(row)
                self._node_facts = None
        elif (key := self.dialect.decides(item)) is not None:
            self._note_decision(key, item, gone=gone)
        elif isinstance(item, ResourceClaim):
            self._claims_stale = self.dialect.counts_devices
        elif isinstance(item, ResourceSlice):
            self._slices_stale = self.dialect.counts_devices
        elif self.storage.note(item, gone=gone):
            self._volumes_stale = True
        elif self.workloads.note(item, gone=gone) or self.domains.note(item, gone=gone):
            pass

    def _note_decision(self, pod: str, item: Object, *, gone: bool) -> None:
        """Where a pod is about to be bound has been decided, or that is over."""
        decisions = self._decided.setdefault(pod, {})
        if gone:
            del decisions[item.key]
        else:
            decisions[item.key] = item
        if not decisions:
            del self._decided[pod]
        self._read_again(pod)

    def _is_unbound(self, pod: str) -> bool:
        """Only then it matters whether the node that was decided on is there."""
        row = self.tasks.index_of(pod)
        return row is not None and not self.tasks.pods[row].spec.node_name

    def _read_again(self, pod: str) -> None:
        row = self.tasks.index_of(pod)
        if row is not None:
            self._set_pod(self.tasks.pods[row])

    def _claims_of(self, pod: Pod) -> tuple[ResourceClaim, ...]:
        return claims_of(pod, self.all(ResourceClaim))

    def _count_published(self) -> None:
        self._published = published_gpus(self.all(ResourceSlice).values())
        for row in self.nodes.objects:
            self._set_allocatable(row)
        self._node_facts = None

    def published(self, node: str) -> int:
        """How many GPUs drivers publish for a node."""
        return self._published.get(node, 0)

    def _heighten(self) -> None:
        height = len(self.resources)
        if len(self.nodes.used) < height:
            self.nodes.heighten(height)
            self.jobs.heighten(height)

    # -- before a session -----------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Work out what depends on several objects and was put off while they came in."""
        if self.priorities.stale:
            for row, facts in self.jobs.facts.items():
                self.jobs.priority[row] = self.priorities.value(facts.priority_class)
            self.priorities.stale = False
        if self._namespaces_stale:
            self._find_queues_again()
            self._namespaces_stale = False
        if self._decisions_stale:
            for pod in sorted(filter(self._is_unbound, self._decided)):
                self._read_again(pod)
            self._decisions_stale = False
        if self._slices_stale:
            self._count_published()
            self._slices_stale = False
        self._settle_claims_and_volumes()
        if self.specs.wasteful() or self._has_many_names():
            self._forget_the_gone()
        self._heighten()  # plugins of the last session may have named resources that no node and no pod has
        self._order_resources()
        self._classify()
        self.node_facts()
        self.ranks.renew(self.tasks)

    def _settle_claims_and_volumes(self) -> None:
        if self._claims_stale:
            for row in sorted(self._tasks_with_claims):
                self._set_pod(self.tasks.pods[row])
            self._claims_stale = False
        if self._shared_claims.stale:
            changed = self._shared_claims.update(self.tasks, self._tasks_with_claims, self.all(ResourceClaim))
            for pod in sorted(changed):
                self._read_again(pod)
            self._shared_claims.stale = False  # no pod has changed its node
        if self._volumes_stale:
            for row in sorted(self._tasks_with_volumes):
                self._set_pod(self.tasks.pods[row])
            self._volumes_stale = False

    def _order_resources(self) -> None:
        order = self.resources.order()
        if order == list(range(len(order))):
            return
        self.resources = self.resources.in_order(order)
        self.nodes.reorder(order)
        self.jobs.reorder(order)
        self.specs.reorder(self.resources, order)
        self.classes.reorder(self.resources, self.specs.specs, order)
        self._node_facts = None  # plugins remember vectors there

    def _classify(self) -> None:
        """Give tasks their classes: new tasks, and those that terms may select which came or went."""
        if self.terms.changed:
            self._unclassed.update(filter(self._terms_changed, self.tasks.pods.keys() - self._unclassed))
            self.terms.changed.clear()
        specs, tasks = self.specs.specs, self.tasks
        for row in self._unclassed:
            terms = self.signature(row) if len(self.terms) else ()
            tasks.class_of[row] = self.classes.number(specs[tasks.spec[row]], terms)
        self._unclassed.clear()
        self.classes.pad()

    def _terms_changed(self, row: int) -> bool:
        meta = self.tasks.pods[row].metadata
        return self.terms.concerned(meta.namespace or DEFAULT_NAMESPACE, meta.labels)

    def _forget_the_gone(self) -> None:
        """Number resources, roles, specs, terms and classes anew, so that those of pods long gone take no room."""
        anew = self.resources.merged or len(self.resources) > _MANY_RESOURCES
        if anew:
            self._forget_resources()
        self.tasks.forget_roles()
        self.terms = TermTable(keeps_others_out=self.terms.keeps_others_out)
        self.workloads = Workloads(self.terms)
        for kind in WORKLOAD_KINDS:
            for item in self.all(kind).values():
                self.workloads.note(item, gone=False)
        self.specs = self._spec_table()
        self.classes = ClassTable(self.resources)
        for row, pod in self.tasks.pods.items():
            self.tasks.spec[row] = self.specs.hold(pod)
        self._heighten()
        for row in self.tasks if anew else ():
            self._account(row, +1)
        self._unclassed.update(self.tasks.pods)
        self._node_facts = None  # verdicts are remembered there by the number of the spec
        self._many_resources = max(_MANY_RESOURCES, 2 * len(self.resources))
        self._many_roles = max(_MANY_ROLES, 2 * len(self.tasks.roles))

    def _has_many_names(self) -> bool:
        """Some may be of pods long gone, or have shared a dimension that a node now offers one of."""
        many = len(self.resources) > self._many_resources or len(self.tasks.roles) > self._many_roles
        return many or self.resources.stale

    def _forget_resources(self) -> None:
        """Keep the resources that nodes offer; others are numbered again as pods name them, and pods accounted for."""
        self._heighten()
        for row in self.tasks:
            self._account(row, -1)
        offered = [one for one in self.resources.order() if one <= PODS or self.nodes.allocatable[one].any()]
        self.resources = self.resources.only_offered(self.resources.names[one] for one in offered)
        self.nodes.reorder(offered)
        self.jobs.reorder(offered)

    def signature(self, row: int) -> tuple[int, ...]:
        """The affinity and spread terms that select a task."""
        meta = self.tasks.pods[row].metadata
        name = meta.namespace or DEFAULT_NAMESPACE
        return self.terms.signature(name, meta.labels, self.namespace_labels(name))

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a namespace; of one that is not known, the one that every namespace carries."""
        namespace = self.all(Namespace).get(name)
        return namespace.metadata.labels if namespace is not None else {_NAME_LABEL: name}


def _no_claims(_: Pod) -> tuple[ResourceClaim, ...]:
    return ()
