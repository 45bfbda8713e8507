"""The two webhook configurations: which requests the API server sends here, and what it does without an answer.

What the webhook would let pass unread is not sent at all: objects of `kube-system` and of its own namespace, pods of
other schedulers, subresources such as a status. Match conditions need Kubernetes 1.28; an older API server asks for
every pod, and the rules say the same.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from maniple.admission.mutation import SCHEDULER_LABEL
from maniple.admission.world import World
from maniple.kube.kinds import KINDS, Resource
from maniple.objects.core import Pod
from maniple.objects.meta import Object

VALIDATING = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", namespaced=False
)
MUTATING = Resource("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", namespaced=False)
VALIDATE, MUTATE = "/validate", "/mutate"
_KIND = {
    VALIDATING.plural: "ValidatingWebhookConfiguration",
    MUTATING.plural: "MutatingWebhookConfiguration",
}
_SECONDS = 5
_NAME_LABEL = "kubernetes.io/metadata.name"
_OWNER_API = "rbac.authorization.k8s.io/v1"
Body = dict[str, Any]
# Volcano's PodGroup has no status subresource: most of its updates are the scheduler writing a status.
_SPEC_CHANGED = {
    "name": "spec-changed",
    "expression": "request.operation != 'UPDATE' || object.?spec != oldObject.?spec",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where the API server reaches the webhook: a Service of the cluster or, outside of it, a URL."""

    service: str = ""
    namespace: str = ""
    url: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the certificate has to have."""
        if self.url:
            return (urlsplit(self.url).hostname or "",)
        host = f"{self.service}.{self.namespace}"
        return (f"{host}.svc", host, f"{host}.svc.cluster.local")

    def client(self, path: str, bundle: bytes) -> Body:
        trusted = {"caBundle": base64.b64encode(bundle).decode("ascii")}
        if self.url:
            return {"url": self.url.rstrip("/") + path, **trusted}
        service = {"name": self.service, "namespace": self.namespace, "path": path, "port": 443}
        return {"service": service, **trusted}


@dataclass(frozen=True, slots=True)
class Registration:
    """`closed`: without an answer of the webhook, what it validates is refused. `owner`: a ClusterRole and its uid."""

    name: str
    place: Place
    closed: bool = False
    skipped_namespaces: frozenset[str] = frozenset({"kube-system"})
    owner: tuple[str, str] | None = None

    def validating(self, world: World, bundle: bytes) -> Body:
        policy = "Fail" if self.closed else "Ignore"
        changes = ["CREATE", "UPDATE"]
        webhooks = [
            self._webhook("queues", world.queue_kinds, [*changes, "DELETE"], VALIDATE, bundle, policy),
            self._webhook("podgroups", world.group_kinds, changes, VALIDATE, bundle, policy)
            | {"namespaceSelector": self._namespaces(), "matchConditions": [_SPEC_CHANGED]},
            self._webhook("pods", [Pod], ["CREATE"], VALIDATE, bundle, policy)
            | {"namespaceSelector": self._namespaces(), "matchConditions": [_ours(world)]},
        ]
        return self._configuration(VALIDATING, webhooks)

    def mutating(self, world: World, bundle: bytes) -> Body:
        """First the schedulerName, in labelled namespaces; then the queue, of what has none."""
        names = sorted(world.dialect.scheduler_names)
        labelled = {"key": SCHEDULER_LABEL, "operator": "In", "values": names}
        webhooks = [
            self._webhook("scheduler", [Pod], ["CREATE"], MUTATE, bundle, "Ignore")
            | {"namespaceSelector": self._namespaces(labelled)},
            self._webhook("queue", world.group_kinds, ["CREATE"], MUTATE, bundle, "Ignore")
            | {"namespaceSelector": self._namespaces()},
            self._webhook("pod-queue", [Pod], ["CREATE"], MUTATE, bundle, "Ignore")
            | {"namespaceSelector": self._namespaces(), "matchConditions": [_ours(world)]},
        ]
        return self._configuration(MUTATING, webhooks)

    def _configuration(self, resource: Resource, webhooks: list[Body]) -> Body:
        metadata: Body = {"name": self.name, "labels": {"app.kubernetes.io/name": "maniple-admission"}}
        if self.owner is not None:
            role, uid = self.owner
            owner = {"apiVersion": _OWNER_API, "kind": "ClusterRole", "name": role, "uid": uid}
            metadata["ownerReferences"] = [owner]
        return {
            "apiVersion": resource.api_version,
            "kind": _KIND[resource.plural],
            "metadata": metadata,
            "webhooks": webhooks,
        }

    def _webhook(
        self,
        name: str,
        kinds: Iterable[type[Object]],
        operations: Sequence[str],
        path: str,
        bundle: bytes,
        policy: str,
    ) -> Body:
        return {
            "name": f"{name}.admission.maniple.dev",
            "admissionReviewVersions": ["v1"],
            "clientConfig": self.place.client(path, bundle),
            "failurePolicy": policy,
            "matchPolicy": "Equivalent",
            "rules": [_rule(kind, operations) for kind in kinds],
            "sideEffects": "None",
            "timeoutSeconds": _SECONDS,
        }

    def _namespaces(self, *more: Body) -> Body:
        skipped = {"key": _NAME_LABEL, "operator": "NotIn", "values": sorted(self.skipped_namespaces)}
        return {"matchExpressions": [skipped, *more]}


def _rule(kind: type[Object], operations: Sequence[str]) -> Body:
    known = KINDS[kind]
    return {
        "apiGroups": [known.group],
        "apiVersions": [*known.versions],
        "operations": [*operations],
        "resources": [known.plural],
        "scope": "Namespaced" if known.namespaced else "Cluster",
    }


def _ours(world: World) -> Body:
    names = ", ".join(f"'{name}'" for name in sorted(world.dialect.scheduler_names))
    return {"name": "scheduled-here", "expression": f"object.spec.schedulerName in [{names}]"}


def differs(there: Mapping[str, Any], wanted: Body) -> bool:
    """Whether a configuration of the cluster lacks anything of ours; defaults that the server adds do not count."""
    ours = {one["name"]: one for one in wanted["webhooks"]}
    theirs = {one.get("name"): one for one in there.get("webhooks") or ()}
    return {*ours} != {*theirs} or any(
        theirs[name].get(field) != value for name, one in ours.items() for field, value in one.items()
    )
