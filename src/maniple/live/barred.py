"""Nodes that refused a pod: avoided for a while, so that the next decision goes elsewhere.

`retries.py` reports refusals and successes, the cache applies them: in what is believed of a pod, a node affinity
excludes the nodes that refused it, and the room that it was refused is kept by a placeholder while its gang is half
bound. One refusal counts for the pod, a second one by another pod for all pods alike; a success clears the node.
"""

from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from maniple.objects.affinity import Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm
from maniple.objects.core import Pod
from maniple.objects.meta import ObjectMeta, Requirement

NODE_NAME = "metadata.name"
NEVER_PREEMPTS = "Never"
PLACEHOLDER = "~kept"  # not a valid name, so that no pod has it


@dataclass(slots=True)
class _Refusals:
    """Of pods alike, by one node."""

    until: float = 0.0
    pods: set[str] = field(default_factory=set)


class Barred:
    """Times are the event loop's, in seconds."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, float]] = {}  # by the uid of a pod: nodes, and until when
        self._why: dict[str, str] = {}  # by the uid of a pod: the latest refusal
        self._alike: dict[bytes, dict[str, _Refusals]] = {}  # by what pods have in common
        self.kept: dict[str, Pod] = {}  # placeholders, by the key of the pod

    # -- refusals ----------------------------------------------------------------------------------------------------

    def refused(self, pod: Pod, node: str, until: float, why: str) -> bool:
        """A node refused a pod; returns whether all pods alike now avoid the node."""
        self._pods.setdefault(pod.metadata.uid, {})[node] = until
        self._why[pod.metadata.uid] = why
        refusals = self._alike.setdefault(_signature(pod), {}).setdefault(node, _Refusals())
        refusals.pods.add(pod.metadata.uid)
        refusals.until = max(refusals.until, until)
        return len(refusals.pods) > 1

    def accepted(self, pod: Pod, node: str) -> None:
        """A pod was bound to the node."""
        self.forget(pod)
        if self._alike:
            self._alike.get(_signature(pod), {}).pop(node, None)

    def forget(self, pod: Pod) -> None:
        """It is bound, or gone."""
        self._pods.pop(pod.metadata.uid, None)
        self._why.pop(pod.metadata.uid, None)

    # -- what follows for decisions ----------------------------------------------------------------------------------

    def applied(self, pod: Pod) -> Pod:
        """The pod, which avoids the nodes that refused it or pods like it."""
        if not self._pods and not self._alike:
            return pod
        nodes = {*self._pods.get(pod.metadata.uid, ())}
        alike = self._alike.get(_signature(pod), {}) if self._alike else {}
        nodes.update(name for name, refusals in alike.items() if len(refusals.pods) > 1)
        return _avoiding(pod, sorted(nodes)) if nodes else pod

    def keep(self, pod: Pod, node: str) -> Pod:
        """A placeholder for the room of a pod on a node."""
        self.kept[pod.key] = placeholder = _placeholder(pod, node)
        return placeholder

    # -- time --------------------------------------------------------------------------------------------------------

    def release(self, now: float) -> bool:
        """Drop what is over; returns whether there was any."""
        before = self.next_release()
        if before is None or before > now:
            return False
        left = {
            uid: {name: until for name, until in nodes.items() if until > now}
            for uid, nodes in self._pods.items()
        }
        alike = {
            signature: {name: one for name, one in nodes.items() if one.until > now}
            for signature, nodes in self._alike.items()
        }
        self._pods = {uid: nodes for uid, nodes in left.items() if nodes}
        self._why = {uid: why for uid, why in self._why.items() if uid in self._pods}
        self._alike = {signature: nodes for signature, nodes in alike.items() if nodes}
        return True

    def why(self, pod: Pod) -> str:
        """The refusal of a pod that avoids the node; empty for others."""
        return self._why.get(pod.metadata.uid, "")

    def next_release(self) -> float | None:
        moments = [until for nodes in self._pods.values() for until in nodes.values()]
        moments += [one.until for nodes in self._alike.values() for one in nodes.values()]
        return min(moments, default=None)


def _signature(pod: Pod) -> bytes:
    """Equal for pods of a namespace that differ in their names only; short, however large the pods are."""
    spec = replace(pod.spec, node_name="", scheduling_gates=())
    return blake2b(
        (pod.metadata.namespace or "default").encode() + b"/" + msgspec.json.encode(spec), digest_size=32
    ).digest()


def _avoiding(pod: Pod, nodes: list[str]) -> Pod:
    elsewhere = Requirement(key=NODE_NAME, operator="NotIn", values=tuple(nodes))
    affinity = pod.spec.affinity or Affinity()
    of_node = affinity.node_affinity or NodeAffinity()
    required = of_node.required_during_scheduling_ignored_during_execution
    terms = required.node_selector_terms if required is not None else (NodeSelectorTerm(),)
    narrowed = tuple(replace(one, match_fields=(*one.match_fields, elsewhere)) for one in terms)
    selector = NodeSelector(node_selector_terms=narrowed)
    of_node = replace(of_node, required_during_scheduling_ignored_during_execution=selector)
    # Other nodes are tried if they have room. Nobody has to leave them for a refusal that may be over in a second.
    spec = replace(
        pod.spec, affinity=replace(affinity, node_affinity=of_node), preemption_policy=NEVER_PREEMPTS
    )
    return replace(pod, spec=spec)


def _placeholder(pod: Pod, node: str) -> Pod:
    """Of no job, with the pod's requests and ports alone."""
    spec = replace(
        pod.spec,
        node_name=node,
        scheduler_name="",
        scheduling_gates=(),
        affinity=None,
        topology_spread_constraints=(),
        volumes=(),
        resource_claims=(),
    )
    metadata = ObjectMeta(
        name=pod.metadata.name + PLACEHOLDER,
        namespace=pod.metadata.namespace,
        uid=pod.metadata.uid + PLACEHOLDER,
        creation_timestamp=pod.metadata.creation_timestamp,
    )
    return replace(
        pod, metadata=metadata, spec=spec, status=replace(pod.status, phase="Running", conditions=())
    )
