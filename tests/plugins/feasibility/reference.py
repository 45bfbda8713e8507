"""kube-scheduler's rules written out plainly: loops over nodes and pods, raw objects, no arrays.

Slow and obvious on purpose; the tests hold the filters and scores against it on random small clusters.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Raw = dict[str, Any]
Labels = Mapping[str, str]
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def labels_of(item: Raw) -> Labels:
    labels: Labels = item["metadata"].get("labels", {})
    return labels


def name_of(item: Raw) -> str:
    return str(item["metadata"]["name"])


def pods_on(node: Raw, pods: Iterable[Raw]) -> list[Raw]:
    return [pod for pod in pods if pod["spec"].get("nodeName") == name_of(node)]


# -- selectors -----------------------------------------------------------------------------------------------------


def expression_holds(expression: Raw, values: Labels) -> bool:
    key, operator, wanted = expression["key"], expression["operator"], expression.get("values", [])
    if operator == "In":
        return key in values and values[key] in wanted
    if operator == "NotIn":
        return not (key in values and values[key] in wanted)
    if operator == "Exists":
        return key in values
    if operator == "DoesNotExist":
        return key not in values
    try:
        number, bound = int(values[key]), int(wanted[0])
    except (KeyError, ValueError):
        return False
    return number > bound if operator == "Gt" else number < bound


def selects(selector: Raw | None, labels: Labels) -> bool:
    if selector is None:
        return False
    plain = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return plain and all(expression_holds(e, labels) for e in selector.get("matchExpressions", []))


def is_empty(selector: Raw | None) -> bool:
    return selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")


# -- node affinity, taints -----------------------------------------------------------------------------------------


def term_holds(term: Raw, node: Raw) -> bool:
    expressions, fields = term.get("matchExpressions", []), term.get("matchFields", [])
    if not expressions and not fields:
        return False
    return all(expression_holds(e, labels_of(node)) for e in expressions) and all(
        expression_holds(f, {"metadata.name": name_of(node)}) for f in fields
    )


def node_affinity(pod: Raw) -> Raw:
    affinity: Raw = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    return affinity


def allowed_by_node_affinity(pod: Raw, node: Raw) -> bool:
    if any(labels_of(node).get(k) != v for k, v in pod["spec"].get("nodeSelector", {}).items()):
        return False
    required = node_affinity(pod).get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(term_holds(term, node) for term in required["nodeSelectorTerms"])


def preference(pod: Raw, node: Raw) -> int:
    terms = node_affinity(pod).get("preferredDuringSchedulingIgnoredDuringExecution", [])
    return sum(term["weight"] for term in terms if term_holds(term["preference"], node))


def accepts(toleration: Raw, taint: Raw) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("value", "") == taint.get("value", ""))


def untolerated(pod: Raw, node: Raw, effects: Sequence[str]) -> int:
    tolerations = pod["spec"].get("tolerations", [])
    taints = [taint for taint in node["spec"].get("taints", []) if taint["effect"] in effects]
    return sum(not any(accepts(t, taint) for t in tolerations) for taint in taints)


# -- ports ---------------------------------------------------------------------------------------------------------


def ports_of(pod: Raw) -> list[tuple[str, str, int]]:
    sidecars = [c for c in pod["spec"].get("initContainers", []) if c.get("restartPolicy") == "Always"]
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol", "TCP"), port["hostPort"])
        for container in [*sidecars, *pod["spec"]["containers"]]
        for port in container.get("ports", [])
        if port.get("hostPort", 0) > 0
    ]


def ports_free(pod: Raw, node: Raw, pods: Iterable[Raw]) -> bool:
    used = [port for other in pods_on(node, pods) for port in ports_of(other)]
    for address, protocol, number in ports_of(pod):
        for other_address, other_protocol, other_number in used:
            if (protocol, number) != (other_protocol, other_number):
                continue
            if "0.0.0.0" in (address, other_address) or address == other_address:
                return False
    return True


# -- inter-pod affinity --------------------------------------------------------------------------------------------


def pod_terms(pod: Raw, kind: str, required: bool) -> list[Raw]:
    field = "requiredDuringScheduling" if required else "preferredDuringScheduling"
    terms: list[Raw] = pod["spec"].get("affinity", {}).get(kind, {}).get(f"{field}IgnoredDuringExecution", [])
    return terms


def term_selects(owner: Raw, term: Raw, pod: Raw, namespaces: Mapping[str, Labels]) -> bool:
    namespace = pod["metadata"]["namespace"]
    listed = term.get("namespaces", [])
    if not listed and term.get("namespaceSelector") is None:
        listed = [owner["metadata"]["namespace"]]
    inside = namespace in listed or selects(term.get("namespaceSelector"), namespaces.get(namespace, {}))
    selector = term.get("labelSelector")
    if selector is not None:
        own = labels_of(owner)
        extra = [
            {"key": key, "operator": operator, "values": [own[key]]}
            for keys, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
            for key in term.get(keys, [])
            if key in own
        ]
        selector = {**selector, "matchExpressions": [*selector.get("matchExpressions", []), *extra]}
    return inside and selects(selector, labels_of(pod))


class InterPod:
    """`leaving_too`: a pod may rely on one that is being deleted, as in Kubernetes itself."""

    def __init__(
        self,
        nodes: Sequence[Raw],
        pods: Sequence[Raw],
        namespaces: Mapping[str, Labels],
        *,
        leaving_too: bool = False,
    ) -> None:
        self.leaving_too = leaving_too
        self.nodes = nodes
        self.pods = pods
        self.namespaces = namespaces
        self.node_of = {name_of(pod): node for node in nodes for pod in pods_on(node, pods)}

    def placed(self) -> list[Raw]:
        return [pod for pod in self.pods if name_of(pod) in self.node_of]

    def together(self, pod: Raw, node: Raw, key: str) -> bool:
        """Whether a placed pod is in the domain of a node."""
        own = labels_of(self.node_of[name_of(pod)])
        return key in own and key in labels_of(node) and own[key] == labels_of(node)[key]

    def verdict(self, pod: Raw, node: Raw) -> str:
        if not self.near(pod, node):
            return "node(s) didn't match pod affinity rules"
        for term in pod_terms(pod, "podAntiAffinity", True):
            for other in self.placed():
                if term_selects(pod, term, other, self.namespaces) and self.together(
                    other, node, term["topologyKey"]
                ):
                    return "node(s) didn't match pod anti-affinity rules"
        for other in self.placed():
            for term in pod_terms(other, "podAntiAffinity", True):
                if term_selects(other, term, pod, self.namespaces) and self.together(
                    other, node, term["topologyKey"]
                ):
                    return "node(s) didn't satisfy existing pods anti-affinity rules"
        return ""

    def near(self, pod: Raw, node: Raw) -> bool:
        terms = pod_terms(pod, "podAffinity", True)
        if any(term["topologyKey"] not in labels_of(node) for term in terms):
            return False
        wanted = [o for o in self.placed() if all(term_selects(pod, t, o, self.namespaces) for t in terms)]
        stays = [o for o in wanted if self.leaving_too or "deletionTimestamp" not in o["metadata"]]
        if all(any(self.together(o, node, term["topologyKey"]) for o in stays) for term in terms):
            return True
        somewhere = any(
            term["topologyKey"] in labels_of(self.node_of[name_of(o)]) for o in wanted for term in terms
        )
        return not somewhere and all(term_selects(pod, term, pod, self.namespaces) for term in terms)

    def score(self, pod: Raw, node: Raw, hard_weight: int) -> int:
        total = 0
        for other in self.placed():
            for owner, target in ((pod, other), (other, pod)):
                wishes = [
                    *((t["weight"], t["podAffinityTerm"]) for t in pod_terms(owner, "podAffinity", False)),
                    *(
                        (-t["weight"], t["podAffinityTerm"])
                        for t in pod_terms(owner, "podAntiAffinity", False)
                    ),
                ]
                if owner is other:
                    wishes += [(hard_weight, term) for term in pod_terms(owner, "podAffinity", True)]
                for weight, term in wishes:
                    if term_selects(owner, term, target, self.namespaces) and self.together(
                        other, node, term["topologyKey"]
                    ):
                        total += weight
        return total

    def scores(self, pod: Raw, candidates: Sequence[Raw], hard_weight: int) -> dict[str, int]:
        raw = {name_of(node): self.score(pod, node, hard_weight) for node in candidates}
        least, most = min(raw.values(), default=0), max(raw.values(), default=0)
        if most == least:
            return dict.fromkeys(raw, 0)
        return {name: int(100.0 * ((value - least) / (most - least))) for name, value in raw.items()}


# -- spreading -----------------------------------------------------------------------------------------------------


class Spread:
    """Spreading of one pod over nodes; `default_selectors` are those of the services and controllers that select it."""

    def __init__(
        self, nodes: Sequence[Raw], pods: Sequence[Raw], pod: Raw, default_selectors: Sequence[Raw] = ()
    ) -> None:
        self.nodes = nodes
        self.pods = pods
        self.pod = pod
        self.default_selectors = [selector for selector in default_selectors if not is_empty(selector)]
        self.stated: list[Raw] = pod["spec"].get("topologySpreadConstraints", [])

    def selectors(self, constraint: Raw) -> list[Raw | None]:
        """A pod counts when all of these select it."""
        if "selectors" in constraint:
            selectors: list[Raw | None] = constraint["selectors"]
            return selectors
        selector = constraint.get("labelSelector")
        own = labels_of(self.pod)
        same = [
            {"key": key, "operator": "In", "values": [own[key]]}
            for key in constraint.get("matchLabelKeys", [])
            if key in own
        ]
        if selector is not None and same:
            selector = {**selector, "matchExpressions": [*selector.get("matchExpressions", []), *same]}
        return [selector]

    def counted(self, node: Raw, constraint: Raw) -> int:
        selectors = self.selectors(constraint)
        if any(is_empty(selector) for selector in selectors):
            return 0
        return sum(
            all(selects(selector, labels_of(other)) for selector in selectors)
            for other in pods_on(node, self.pods)
            if other["metadata"]["namespace"] == self.pod["metadata"]["namespace"]
            and "deletionTimestamp" not in other["metadata"]
        )

    def included(self, node: Raw, constraint: Raw) -> bool:
        if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not allowed_by_node_affinity(
            self.pod, node
        ):
            return False
        honours_taints = constraint.get("nodeTaintsPolicy", "Ignore") == "Honor"
        return not (honours_taints and untolerated(self.pod, node, ["NoSchedule", "NoExecute"]))

    def verdict(self, node: Raw) -> str:
        hard = [c for c in self.stated if c["whenUnsatisfiable"] == "DoNotSchedule"]
        labelled = [n for n in self.nodes if all(c["topologyKey"] in labels_of(n) for c in hard)]
        for constraint in hard:
            key = constraint["topologyKey"]
            if key not in labels_of(node):
                return "node(s) didn't match pod topology spread constraints (missing required label)"
            matching: dict[str, int] = {}
            for n in labelled:
                if self.included(n, constraint):
                    value = labels_of(n)[key]
                    matching[value] = matching.get(value, 0) + self.counted(n, constraint)
            least = min(matching.values(), default=0)
            if len(matching) < constraint.get("minDomains", 1):
                least = 0
            itself = all(selects(s, labels_of(self.pod)) for s in self.selectors(constraint))
            if matching.get(labels_of(node)[key], 0) + itself - least > constraint["maxSkew"]:
                return "node(s) didn't match pod topology spread constraints"
        return ""

    def soft(self) -> list[Raw]:
        if self.stated:
            return [c for c in self.stated if c["whenUnsatisfiable"] == "ScheduleAnyway"]
        if not self.default_selectors:
            return []
        return [
            {"topologyKey": HOSTNAME, "maxSkew": 3, "selectors": self.default_selectors},
            {"topologyKey": ZONE, "maxSkew": 5, "selectors": self.default_selectors},
        ]

    def scores(self, candidates: Sequence[Raw]) -> dict[str, int]:
        soft = self.soft()
        if not soft:
            return {name_of(node): 0 for node in candidates}

        def has_all(node: Raw) -> bool:
            return not self.stated or all(c["topologyKey"] in labels_of(node) for c in soft)

        scored = [node for node in candidates if has_all(node)]
        raw = {}
        for node in scored:
            total = 0.0
            for constraint in soft:
                key = constraint["topologyKey"]
                if key not in labels_of(node):
                    continue
                if key == HOSTNAME:
                    domains, count = len(scored), self.counted(node, constraint)
                else:
                    domains = len({labels_of(n).get(key, "") for n in scored})
                    count = sum(
                        self.counted(n, constraint)
                        for n in self.nodes
                        if has_all(n)
                        and self.included(n, constraint)
                        and labels_of(n).get(key, "") == labels_of(node)[key]
                    )
                total += count * math.log(domains + 2) + constraint["maxSkew"] - 1
            raw[name_of(node)] = math.floor(total + 0.5)
        least, most = min(raw.values(), default=0), max(raw.values(), default=0)
        points = {
            name: 100 if most == 0 else 100 * (most + least - value) // most for name, value in raw.items()
        }
        return {name_of(node): points.get(name_of(node), 0) for node in candidates}
