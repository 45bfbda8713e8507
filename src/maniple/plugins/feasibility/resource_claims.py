"""The resource claims of a pod, by what has to happen to them before the pod can run.

- allocated: the claim has its devices; the node must be able to reach them
- open: devices are chosen together with the node

Everything else keeps the pod from being considered at all, with kube-scheduler's message. Called by
`dynamic_resources.py`.

Claims created from a template are named in a pod's status, so pods of one class have claims of their own. If
these are equal the pods stay equal; if not, `mark` distinguishes them for the session.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec
import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import ON_NODE, Status
from maniple.framework.reasons import Detail
from maniple.framework.session import Session
from maniple.objects import dra
from maniple.objects.core import Pod
from maniple.objects.group_claims import (
    group_name,
    is_groups,
    is_owned,
    is_reserved,
    named_claims,
    of_group,
)
from maniple.objects.pod import PodResourceClaim
from maniple.objects.printable import printable

MOST_CONSUMERS = 256  # a claim can be reserved for at most this many pods
_OWNER = "predicates: resource claims"
_encoder = msgspec.json.Encoder(order="deterministic")


class NotCreated(str):
    """Why a pod is not considered: a claim has not been created from its template yet."""

    __slots__ = ()


class NotFound(str):
    """Why a pod is not considered: a claim of this name does not exist."""

    name: str

    def __new__(cls, text: str, name: str) -> "NotFound":
        one = super().__new__(cls, text)
        one.name = name
        return one


@dataclass(slots=True, eq=False)
class PodClaims:
    """The claims of a pod, by state."""

    allocated: list[dra.ResourceClaim] = field(default_factory=list)
    open: list[dra.ResourceClaim] = field(default_factory=list)
    refusal: str = ""
    own: set[str] = field(
        default_factory=set
    )  # open claims of this pod only: another of the class has its own

    @property
    def claims(self) -> list[dra.ResourceClaim]:
        return [*self.allocated, *self.open]


def claims_anything(class_: TaskClass) -> bool:
    return bool(class_.spec.pod.spec.resource_claims)


class ResourceClaims:
    """For one session; `evictable`: evicted pods free their own claims' devices, and may be placed again."""

    def __init__(
        self, session: Session, claims: Mapping[str, dra.ResourceClaim], *, evictable: bool = False
    ) -> None:
        self._session = session
        self._claims = claims
        self._evictable = evictable
        self.spec_keys = SpecKeys()
        self._device_classes = session.cluster.all(dra.DeviceClass)
        self._by_spec: dict[int, PodClaims] = {}
        self._by_mark: list[PodClaims] = []
        users = [one for one in session.classes if claims_anything(one)]
        self._named = {
            _key(one.spec.pod, claim.resource_claim_name)
            for one in users
            for claim in one.spec.pod.spec.resource_claims
            if claim.resource_claim_name
        }
        self._mark([one.number for one in users if self._differ(one)])

    def of_class(self, class_: TaskClass) -> PodClaims:
        mark = class_.marks.get(_OWNER)
        if mark is not None:
            return self._by_mark[mark]
        spec = class_.spec
        if spec.number not in self._by_spec:
            self._by_spec[spec.number] = self.of_pod(spec.pod)
        return self._by_spec[spec.number]

    # -- pods of one class that differ ----------------------------------------------------------------------------

    def _differ(self, class_: TaskClass) -> bool:
        """Whether the claims of a class's pods are each pod's own, or reserved for some of them only."""
        pod = class_.spec.pod
        return any(
            not one.resource_claim_name or _is_full(self._claims.get(_key(pod, one.resource_claim_name)))
            for one in pod.spec.resource_claims
        )

    def _mark(self, numbers: list[int]) -> None:
        tasks = self._session.tasks
        if not numbers:
            return
        concerned = ON_NODE[tasks.status] if self._evictable else np.zeros(len(tasks), dtype=np.bool_)
        concerned |= tasks.status == Status.PENDING
        rows = np.flatnonzero(np.isin(tasks.class_of, numbers) & concerned)
        marks: dict[bytes, int] = {}
        given = []
        for row in rows.tolist():
            pod = self._session.cluster.tasks.pods[row]
            asked = self.of_pod(pod)
            if tasks.status[row] != Status.PENDING:
                asked = _once_evicted(asked, pod)
            number = marks.setdefault(self._likeness(asked), len(marks))
            if number == len(self._by_mark):
                self._by_mark.append(asked)
            given.append(number)
        if given:
            self._session.refine(_OWNER, rows, np.array(given, dtype=np.int64))

    def _likeness(self, asked: PodClaims) -> bytes:
        """Equal for pods of one class that fit the same nodes."""
        key = self.spec_keys.of
        found = [claim.status.allocation for claim in asked.allocated if claim.status.allocation is not None]
        return _encoder.encode(
            (
                str(asked.refusal),
                [(one.node_selector, one.devices.results) for one in found],
                [key(claim) for claim in asked.allocated],
                [("" if claim.key in asked.own else claim.key, key(claim)) for claim in asked.open],
            )
        )

    # -- one pod --------------------------------------------------------------------------------------------------

    def of_pod(self, pod: Pod) -> PodClaims:
        asked = PodClaims()
        made = {status.name for status in pod.status.resource_claim_statuses}
        seen: set[str] = set()
        for number, (one, name) in enumerate(named_claims(pod)):
            if name is None and one.name in made and one.resource_claim_template_name:
                continue  # none was needed
            asked.refusal = self._add(asked, pod, one, name, seen)
            if asked.refusal:
                if of_group(pod, one.name):
                    asked.refusal = _of_its_group(pod, one, number, asked.refusal)
                break
        return asked

    def _add(
        self,
        asked: PodClaims,
        pod: Pod,
        one: PodResourceClaim,
        name: str | None,
        seen: set[str],
    ) -> str:
        """Sort a claim into its list; returns why that is not possible."""
        if name is None:
            if one.resource_claim_template_name:
                return NotCreated(f'claim "{one.name}": ResourceClaim not created yet')
            return f'claim "{one.name}": none of the supported fields are set'
        key = _key(pod, name)
        if key in seen:  # named twice, but one claim
            return ""
        seen.add(key)
        claim = self._claims.get(key)
        own = one.resource_claim_name is None
        if claim is None:
            return NotFound(f'resourceclaim "{printable(name)}" not found', name)
        message = self._unusable(pod, claim, own=own)
        if not message:
            if claim.status.allocation is not None:
                asked.allocated.append(claim)
            else:
                asked.open.append(claim)
                if own and key not in self._named and not of_group(pod, one.name):
                    asked.own.add(key)
        return message

    def _unusable(self, pod: Pod, claim: dra.ResourceClaim, *, own: bool) -> str:
        if claim.metadata.deletion_timestamp is not None:
            return f'resourceclaim "{claim.metadata.name}" is being deleted'
        if own and not is_owned(claim, pod) and not is_groups(claim, pod):
            whose = f"{pod.metadata.namespace}/{pod.metadata.name}"
            return f"ResourceClaim {claim.key} was not created for Pod {whose} (Pod is not owner)"
        if claim.status.allocation is not None:
            return "resourceclaim in use" if _is_full(claim) and not is_reserved(claim, pod) else ""
        return next((problem for one in claim.spec.devices.requests if (problem := self._lacking(one))), "")

    def _lacking(self, request: dra.DeviceRequest) -> str:
        exact = request.exact
        demands = [(request.name, exact)] if exact is not None else []
        demands += [(f"{request.name}/{one.name}", one) for one in request.first_available if exact is None]
        for name, demand in demands:
            if not demand.device_class_name:
                return f"request {name}: unsupported request type"
            if demand.device_class_name not in self._device_classes:
                return f"request {name}: device class {demand.device_class_name} does not exist"
        return ""


def requested(claim: dra.ResourceClaim) -> list[str]:
    """What a claim requests, as "4 of gpu.example.com"."""
    found = []
    for request in claim.spec.devices.requests:
        demands = [request.exact] if request.exact is not None else [*request.first_available]
        ways = [
            f"{'all' if one.allocation_mode == 'All' else one.count or 1} of {one.device_class_name}"
            for one in demands
        ]
        found.append(" or ".join(ways))
    return found


def claim_detail(pod: Pod, message: str) -> Detail:
    """Of a pod that a resource claim keeps from being considered at all."""
    if isinstance(message, NotCreated) and (detail := _not_created(pod)):
        return detail
    if isinstance(message, NotFound):
        name = printable(message.name)
        return Detail("ResourceClaimMissing", f"ResourceClaim {name} does not exist", name)
    names = ", ".join(
        printable(one.resource_claim_name or one.resource_claim_template_name or one.name)
        for one in pod.spec.resource_claims
    )
    return Detail("ResourceClaim", f"ResourceClaim {names}: {message}", names)


def _not_created(pod: Pod) -> Detail | None:
    """Of a pod with a claim from a template that its controller has not created yet."""
    made = {status.name for status in pod.status.resource_claim_statuses}
    for number, one in enumerate(pod.spec.resource_claims):
        if one.resource_claim_template_name and one.name not in made:
            template, field = printable(one.resource_claim_template_name), _field(pod, one, number)
            text = f"no ResourceClaim has been created from ResourceClaimTemplate {template} yet ({field})"
            return Detail("ResourceClaimMissing", text, template)
    return None


def _of_its_group(pod: Pod, one: PodResourceClaim, number: int, message: str) -> str:
    """A refusal because of a claim of the pod's group, with the field that names it; of the same kind as before."""
    told = f"{_field(pod, one, number)}: {message}"
    return NotFound(told, message.name) if isinstance(message, NotFound) else type(message)(told)


def _field(pod: Pod, one: PodResourceClaim, number: int) -> str:
    """What names a claim, and the PodGroup whose claim it is, if any."""
    field = f"spec.resourceClaims[{number}]."
    field += "resourceClaimName" if one.resource_claim_name else "resourceClaimTemplateName"
    if not of_group(pod, one.name):
        return field
    group = printable(f"{pod.metadata.namespace or 'default'}/{group_name(pod)}")
    return f"{field}, shared with PodGroup {group}"


class SpecKeys:
    """Keys that are equal for claims with equal specs; a large spec is read once in a session."""

    def __init__(self) -> None:
        self._known: dict[
            int, tuple[dra.ResourceClaimSpec, bytes]
        ] = {}  # by identity; the spec is kept alive

    def of(self, claim: dra.ResourceClaim) -> bytes:
        known = self._known.get(id(claim.spec))
        if known is None:
            digest = blake2b(_encoder.encode(claim.spec), digest_size=32).digest()
            known = self._known[id(claim.spec)] = (claim.spec, digest)
        return known[1]


def _is_full(claim: dra.ResourceClaim | None) -> bool:
    return claim is not None and len(claim.status.reserved_for) >= MOST_CONSUMERS


def _key(pod: Pod, name: str) -> str:
    return f"{pod.metadata.namespace or 'default'}/{name}"


def _once_evicted(asked: PodClaims, pod: Pod) -> PodClaims:
    """A running pod's claims if it were evicted: those that only it uses are open again."""
    freed = [
        claim
        for claim in asked.allocated
        if all(one.uid == pod.metadata.uid for one in claim.status.reserved_for)
    ]
    kept = [claim for claim in asked.allocated if claim not in freed]
    return PodClaims(
        kept, [*asked.open, *freed], asked.refusal, asked.own.union(claim.key for claim in freed)
    )
