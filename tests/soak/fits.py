"""Whether a node may take a pod, by the rules of kube-scheduler's filters and KAI's for shared GPUs.

Each rule names what it refuses by, or says nothing. Every rule here is decidable from the objects and where
pods are; devices of claims and volumes that are still to be bound are judged in `needs.py`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from tests.soak.amounts import Raw, amounts, total
from tests.soak.world import DEVICES, GPU, World, annotations, fraction, labels, leaves

Rule = Callable[[World, str, str], str]
_HARD = ("NoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def refusals(world: World, pod: str, node: str, rules: tuple[Rule, ...]) -> list[str]:
    """What speaks against the pod on this node, all other pods where they are."""
    return [said for rule in rules if (said := rule(world, pod, node))]


# -- room -------------------------------------------------------------------------------------------------------------


def room(world: World, pod: str, node: str) -> str:
    others = [one for one in world.on(node) if one != pod]
    has = amounts(world.nodes[node]["status"]["allocatable"])
    used = total(world.asks[one] for one in others)
    asked = world.asks[pod]
    short = [
        name
        for name, value in asked.items()
        if value > 0 and used.get(name, 0) + value > has.get(name, Fraction(0))
    ]
    if len(others) + 1 > has.get("pods", Fraction(0)):
        short.append("pods")
    return f"not enough {', '.join(sorted(short))}" if short else ""


def devices(world: World, pod: str, node: str) -> str:
    """Parts of one device sum to at most one, and shared and whole devices to at most the node's."""
    has = amounts(world.nodes[node]["status"]["allocatable"]).get(GPU, Fraction(0))
    shared: Counter[str] = Counter()
    whole, asks = Fraction(0), False
    for one in {*world.on(node), pod}:
        raw = world.pods[one]
        part = fraction(raw, world.nodes[node])
        whole += world.asks[one].get(GPU, Fraction(0))
        asks = asks or (one == pod and bool(part))
        if part:
            groups = world.devices.get(one, ())
            if one == pod and len(groups) != int(annotations(raw).get(DEVICES, "1")):
                return f"{len(groups)} devices chosen"
            for group in groups:
                shared[group] += part  # type: ignore[assignment]
    over = sorted(group for group, part in shared.items() if part > 1)
    if over and any(group in over for group in world.devices.get(pod, ())):
        return f"more than all of device {', '.join(over)}"
    if (asks or world.asks[pod].get(GPU)) and whole + len(shared) > has:
        return f"{whole} whole and {len(shared)} shared devices of {has}"
    return ""


# -- labels and taints ------------------------------------------------------------------------------------------------


def node_selector(world: World, pod: str, node: str) -> str:
    return "" if _chosen(world.pods[pod], world.nodes[node]) else "node selector or affinity"


def _chosen(pod: Raw, node: Raw) -> bool:
    has = labels(node)
    if any(has.get(name) != value for name, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return False
    wanted = _affinity(pod, "nodeAffinity").get(_REQUIRED)
    return wanted is None or matches_terms(wanted["nodeSelectorTerms"], node)


def matches_terms(terms: list[Raw], node: Raw) -> bool:
    fields = {"metadata.name": str(node["metadata"]["name"])}
    return any(
        all(_expression(one, labels(node)) for one in term.get("matchExpressions", ()))
        and all(_expression(one, fields) for one in term.get("matchFields", ()))
        for term in terms
    )


def _expression(one: Raw, has: Mapping[str, str]) -> bool:
    name, values = one["key"], one.get("values") or []
    match one["operator"]:
        case "In":
            return has.get(name) in values
        case "NotIn":
            return has.get(name) not in values
        case "Exists":
            return name in has
        case "DoesNotExist":
            return name not in has
        case "Gt":
            return name in has and int(has[name]) > int(values[0])
        case "Lt":
            return name in has and int(has[name]) < int(values[0])
    raise AssertionError(one["operator"])


def taints(world: World, pod: str, node: str) -> str:
    spec = world.nodes[node].get("spec") or {}
    found = [one for one in spec.get("taints", ()) if one["effect"] in _HARD]
    if spec.get("unschedulable"):
        found.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    tolerations = world.pods[pod]["spec"].get("tolerations") or ()
    bad = [one["key"] for one in found if not any(_tolerates(other, one) for other in tolerations)]
    return f"taint {', '.join(bad)}" if bad else ""


def _tolerates(toleration: Raw, taint: Raw) -> bool:
    if toleration.get("effect", taint["effect"]) != taint["effect"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return bool(
        toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", "")
    )


# -- other pods -------------------------------------------------------------------------------------------------------


def ports(world: World, pod: str, node: str) -> str:
    wanted = _ports(world.pods[pod])
    for one in world.on(node):
        if one != pod:
            for a in wanted:
                for b in _ports(world.pods[one]):
                    if a[:2] == b[:2] and (a[2] == b[2] or "0.0.0.0" in (a[2], b[2])):
                        return f"port {a[1]} taken by {one}"
    return ""


def _ports(pod: Raw) -> list[tuple[str, int, str]]:
    return [
        (one.get("protocol", "TCP"), one["hostPort"], one.get("hostIP") or "0.0.0.0")
        for container in pod["spec"].get("containers", ())
        for one in container.get("ports", ())
        if one.get("hostPort")
    ]


def _affinity(pod: Raw, kind: str) -> Raw:
    found: Raw = (pod["spec"].get("affinity") or {}).get(kind) or {}
    return found


def selects(selector: Raw | None, pod: Raw) -> bool:
    if selector is None:
        return False
    has = labels(pod)
    return all(has.get(name) == value for name, value in (selector.get("matchLabels") or {}).items()) and all(
        _expression(one, has) for one in selector.get("matchExpressions", ())
    )


def _term_selects(term: Raw, owner: Raw, other: Raw) -> bool:
    spaces = term.get("namespaces") or [owner["metadata"]["namespace"]]
    return other["metadata"]["namespace"] in spaces and selects(term.get("labelSelector"), other)


def _domain(world: World, node: str, term: Raw) -> str | None:
    return labels(world.nodes[node]).get(term["topologyKey"])


def anti_affinity(world: World, pod: str, node: str) -> str:
    """Required anti-affinity, its own and that of the pods that are there."""
    mine = world.pods[pod]
    for one, home in world.home.items():
        if one == pod or home not in world.nodes:
            continue
        other = world.pods[one]
        for owner, target in ((mine, other), (other, mine)):
            for term in _affinity(owner, "podAntiAffinity").get(_REQUIRED, ()):
                domain = _domain(world, node, term)
                near = domain is not None and domain == _domain(world, home, term)
                if near and _term_selects(term, owner, target):
                    return f"anti-affinity with {one}"
    return ""


def affinity(world: World, pod: str, node: str) -> str:
    """Required affinity; the first of pods that want each other may go anywhere."""
    mine = world.pods[pod]
    terms = _affinity(mine, "podAffinity").get(_REQUIRED, ())
    others = {one: home for one, home in world.home.items() if one != pod and home in world.nodes}
    found = [
        [home for one, home in others.items() if all(_term_selects(t, mine, world.pods[one]) for t in terms)]
    ] * len(terms)
    if any(_domain(world, node, term) is None for term in terms):
        return "affinity to a domain that the node is not in"
    if terms and not any(found) and all(_term_selects(term, mine, mine) for term in terms):
        return ""
    for term, homes in zip(terms, found, strict=True):
        if _domain(world, node, term) not in {_domain(world, home, term) for home in homes}:
            return "affinity"
    return ""


def spread(world: World, pod: str, node: str) -> str:
    """DoNotSchedule constraints with the defaults of nodeAffinityPolicy (Honor) and nodeTaintsPolicy (Ignore)."""
    mine = world.pods[pod]
    hard = [
        one
        for one in mine["spec"].get("topologySpreadConstraints") or ()
        if one["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    for one in hard:
        if one["topologyKey"] not in labels(world.nodes[node]):
            return f"spread over {one['topologyKey']}, which the node lacks"
        skew = _skew(world, pod, node, one, [other["topologyKey"] for other in hard])
        if skew > one["maxSkew"]:
            return f"spread over {one['topologyKey']}: skew {skew}"
    return ""


def _skew(world: World, pod: str, node: str, constraint: Raw, keys: list[str]) -> int:
    mine, key = world.pods[pod], constraint["topologyKey"]
    counts: Counter[str] = Counter()
    for name, raw in world.nodes.items():
        if _chosen(mine, raw) and all(one in labels(raw) for one in keys):
            counts[labels(raw)[key]] += sum(
                1
                for one in world.on(name)
                if one != pod
                and not leaves(world.pods[one])
                and _spreads_with(mine, world.pods[one], constraint)
            )
    least = min(counts.values(), default=0)
    if len(counts) < constraint.get("minDomains", 1):
        least = 0
    itself = 1 if selects(constraint.get("labelSelector"), mine) else 0
    return counts[labels(world.nodes[node])[key]] + itself - least


def _spreads_with(mine: Raw, other: Raw, constraint: Raw) -> bool:
    same = mine["metadata"]["namespace"] == other["metadata"]["namespace"]
    return same and selects(constraint.get("labelSelector"), other)


def ready(world: World, pod: str, node: str) -> str:
    conditions: list[Any] = world.nodes[node]["status"].get("conditions") or []
    bad = any(one["type"] == "Ready" and one["status"] != "True" for one in conditions)
    return "the node is not ready" if bad else ""


STATIC: tuple[Rule, ...] = (node_selector, taints, ready)
EXACT: tuple[Rule, ...] = (room, devices, *STATIC, ports, anti_affinity)
IN_ORDER: tuple[Rule, ...] = (affinity, spread)
ALL: tuple[Rule, ...] = (*EXACT, *IN_ORDER)
