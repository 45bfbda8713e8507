"""Specs and classes: pods that are alike for placement, recognised by their bytes.

Two pods share a spec when everything that filters, scores and accounting read from them is the same. Deciding
that costs one encoding and one look-up per pod; requests and the rest are worked out once per spec. A pod's
labels are part of its spec only if its own terms read their values (`matchLabelKeys`). All other labels
matter only through the terms that they match, of any pod in the cluster including itself (`terms.py`): a
class is a spec together with those terms.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np

from maniple.cluster.claims import Claims, claimed_gpus
from maniple.cluster.facts import Dialect, GpuAsk
from maniple.cluster.resources import LARGEST_REQUEST, PODS, Amounts, ResourceSpace
from maniple.cluster.terms import OwnTerms, TermTable, label_keys
from maniple.objects.config_maps import required_config_maps
from maniple.objects.core import Container, Pod
from maniple.objects.limits import too_large, within_limits
from maniple.objects.requests import nonzero_requests, pod_requests

_encoder = msgspec.json.Encoder(order="deterministic")
_MANY_SPECS = 1000
_MANY_BYTES = 256 * 2**20


@dataclass(slots=True, eq=False)
class Spec:
    """What all tasks of a spec have in common."""

    number: int
    pod: Pod  # one of them; read only what the key covers
    request: Amounts
    best_effort: bool
    nonzero_cpu: int  # milli; kube-scheduler's assumption where a container states nothing
    nonzero_memory: int
    own: OwnTerms
    gpu: GpuAsk | None = None
    kind: int = -1  # equal for specs that differ in amounts only, not in which resources they request
    refusal: str = ""  # why tasks of this spec are not placed at all: it is too large


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """What one task adds to all of a node's books (`snapshot.NodeState`)."""

    allocated: Amounts  # when it is placed
    pipelined: Amounts  # when it claims what is being released
    released: (
        Amounts  # when it is evicted: it stays there as being released, but leaves kube-scheduler's books
    )
    held: Amounts  # when it is evicted from a claim: that counts as held

    @classmethod
    def of(cls, spec: Spec, request: Amounts) -> "Entries":
        none = np.zeros_like(request)
        theirs = np.concatenate([request, [spec.nonzero_cpu, spec.nonzero_memory]])
        return cls(
            allocated=np.concatenate([none, none, request, theirs]),
            pipelined=np.concatenate([none, request, none, theirs]),
            released=np.concatenate([request, none, none, -theirs]),
            held=np.concatenate([none, -request, request, np.zeros_like(theirs)]),
        )


@dataclass(slots=True, eq=False)
class TaskClass:
    """Tasks that are alike for placement: one spec, and labels that match the same terms."""

    number: int
    spec: Spec
    terms: tuple[int, ...]  # terms of the cluster that select these tasks
    request: Amounts  # in the session's dimensions
    entries: "Entries"
    # What sets these tasks apart in one session only, by the plugin that said so (see `Session.refine`)
    marks: Mapping[str, int] = field(default_factory=dict)

    @property
    def best_effort(self) -> bool:
        return self.spec.best_effort

    @property
    def share(self) -> GpuAsk | None:
        """The parts of devices that it asks for."""
        gpu = self.spec.gpu
        return gpu if gpu is not None and gpu.shares else None


class ClassTable:
    """The classes of a cluster's specs and terms, numbered as they are met."""

    def __init__(self, resources: ResourceSpace) -> None:
        self._resources = resources
        self.classes: list[TaskClass] = []
        self._numbers: dict[tuple[int, tuple[int, ...]], int] = {}

    def number(self, spec: Spec, terms: tuple[int, ...]) -> int:
        key = (spec.number, terms)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.classes)
            request = self._resources.padded(spec.request)
            self.classes.append(TaskClass(number, spec, terms, request, Entries.of(spec, request)))
        return number

    def reorder(self, resources: ResourceSpace, specs: Sequence[Spec], order: list[int]) -> None:
        """Number the dimensions anew. The classes that sessions have stay as they were."""
        old, self._resources = self._resources, resources
        classes = []
        for one in self.classes:
            spec, request = specs[one.spec.number], old.padded(one.request)[order]
            classes.append(replace(one, spec=spec, request=request, entries=Entries.of(spec, request)))
        self.classes = classes

    def pad(self) -> None:
        """Bring the requests up to the dimensions known by now."""
        if self.classes and len(self.classes[0].request) < len(self._resources):
            for one in self.classes:
                one.request = self._resources.padded(one.request)
                one.entries = Entries.of(one.spec, one.request)


class SpecTable:
    """All specs seen so far, numbered."""

    def __init__(
        self,
        dialect: Dialect,
        resources: ResourceSpace,
        terms: TermTable,
        volume_drivers: Callable[[Pod], Mapping[str, int]],
        claims_of: Callable[[Pod], Claims],
        counted: Callable[[Pod, Claims], Claims],
    ) -> None:
        """`counted`: of a pod's claims, those of which the devices count with it."""
        self._dialect = dialect
        self._resources = resources
        self._terms = terms
        self._volume_drivers = volume_drivers
        self._claims_of = claims_of
        self._counted = counted
        self.specs: list[Spec] = []
        self._users: list[int] = []
        self._sizes: list[int] = []  # bytes of what they were recognised by
        self._unused = 0  # the same, of those without a user
        self._numbers: dict[bytes, int] = {}
        self._kinds: dict[bytes, int] = {}

    def hold(self, pod: Pod) -> int:
        """The spec of a pod, made if it is the first of its kind, with one user more."""
        number = self._number(pod)
        if not self._users[number]:
            self._unused -= self._sizes[number]
        self._users[number] += 1
        return number

    def release(self, number: int) -> None:
        self._users[number] -= 1
        if not self._users[number]:
            self._unused += self._sizes[number]

    def wasteful(self) -> bool:
        """Most specs are of pods long gone, or these are large."""
        if self._unused > _MANY_BYTES:
            return True
        return len(self.specs) > _MANY_SPECS and self._users.count(0) > len(self.specs) // 2

    def reorder(self, resources: ResourceSpace, order: list[int]) -> None:
        """Number the dimensions anew. The specs that sessions have stay as they were."""
        old, self._resources = self._resources, resources
        self.specs = [replace(one, request=old.padded(one.request)[order]) for one in self.specs]

    def _number(self, pod: Pod) -> int:
        refusal = too_large(pod)
        pod = within_limits(pod) if refusal else pod
        drivers = self._volume_drivers(pod) if pod.spec.volumes else {}
        claims = self._claims_of(pod) if pod.spec.resource_claims else ()
        counted = self._counted(pod, claims) if claims else ()
        gpu = self._dialect.gpu(pod)
        counts = [(claim.spec, claim in counted) for claim in claims]
        key = _encoder.encode((self._key(pod), drivers, counts, gpu, refusal))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.specs)
            made = self._make(number, pod, drivers, counted, gpu, claims)
            self.specs.append(replace(made, kind=self._kind(made, drivers, counts), refusal=refusal))
            self._users.append(0)
            self._sizes.append(len(key))
            self._unused += len(key)
        return number

    def _kind(self, spec: Spec, drivers: Mapping[str, int], counts: Sequence[Any]) -> int:
        """The number of all that a spec is recognised by, with the names of resources in place of amounts."""
        names = self._resources.names
        asked = [names[dimension] for dimension in spec.request.nonzero()[0].tolist()]
        # Where annotations or claims replace what containers request, that is not among the names.
        replaced = spec.gpu is not None or bool(counts)
        key = (self._key(spec.pod, amounts=replaced), drivers, counts, spec.gpu, spec.best_effort, asked)
        return self._kinds.setdefault(_encoder.encode(key), len(self._kinds))

    def _key(self, pod: Pod, *, amounts: bool = True) -> tuple[Any, ...]:
        spec, meta = pod.spec, pod.metadata
        annotations = meta.annotations
        key: tuple[Any, ...] = (
            _of_containers(spec.containers, amounts=amounts),
            _of_containers(spec.init_containers, amounts=amounts),
            spec.node_selector,
            spec.tolerations,
            (spec.overhead, spec.resources) if amounts else None,
            spec.host_network,
            [annotations.get(name) for name in self._dialect.placement_annotations] if annotations else None,
        )
        status = pod.status
        if status.container_statuses or status.init_container_statuses:
            resizes = [c.reason for c in status.conditions if c.type == "PodResizePending"]
            key += (status.container_statuses, status.init_container_statuses, status.resize, resizes)
        if spec.affinity or spec.topology_spread_constraints:
            read = [(name, meta.labels.get(name)) for name in label_keys(pod)]
            key += (spec.affinity, spec.topology_spread_constraints, meta.namespace, read)
        volumes = [volume for volume in spec.volumes if volume.ties]
        if volumes or spec.resource_claims:
            key += (volumes, spec.resource_claims, meta.namespace)
            if any(volume.ephemeral for volume in volumes):
                key += (meta.name,)  # an ephemeral volume's claim is named after its pod
        if self._dialect.minds_config_maps and (needed := required_config_maps(pod)):
            key += (needed, meta.namespace)
        return key

    def _make(
        self,
        number: int,
        pod: Pod,
        drivers: Mapping[str, int],
        counted: Claims,
        gpu: GpuAsk | None,
        claims: Claims,
    ) -> Spec:
        amounts: dict[str, Any] = dict(self._dialect.requests(pod, pod_requests(pod), counted))
        for resource, count in self._dialect.volume_requests(drivers).items():
            amounts[resource] = amounts.get(resource, 0) + count
        request = self._resources.vector(amounts)
        least = [self._dialect.negligible(name) for name in self._resources.names[: len(request)]]
        nothing = not np.delete(request >= np.array(least), PODS).any()
        best_effort = gpu is None and nothing and not any(map(claimed_gpus, claims))
        request[PODS] = 1
        cpu, memory = nonzero_requests(pod)
        return Spec(
            number=number,
            pod=pod,
            request=request,
            best_effort=best_effort,
            nonzero_cpu=min(cpu, LARGEST_REQUEST),
            nonzero_memory=min(memory, LARGEST_REQUEST),
            own=self._terms.own(pod),
            gpu=gpu,
        )


def _of_containers(containers: Sequence[Container], *, amounts: bool) -> list[tuple[Any, ...]]:
    """Of containers, what makes a difference to where they run; `amounts`: also how much they request."""
    return [
        (one.name, one.image, one.resources if amounts else None, one.ports, one.restart_policy)
        for one in containers
    ]
