"""A resource claim's status once devices are chosen: results, node selector, parameters for the drivers.

Called by `dynamic_resources.py`. Nothing here decides; it writes a decision in Kubernetes' form.
"""

import uuid
from collections.abc import Sequence

from maniple.objects import dra
from maniple.objects.affinity import NodeSelector, NodeSelectorTerm
from maniple.objects.meta import Requirement
from maniple.plugins.feasibility.device_catalogue import DeviceCatalogue
from maniple.plugins.feasibility.device_search import DeviceChoice


def allocation(
    catalogue: DeviceCatalogue, claim: dra.ResourceClaim, choices: Sequence[DeviceChoice], node: str
) -> dra.AllocationResult:
    """The allocation of a claim on a node."""
    who = claim.metadata.uid or claim.key
    results = tuple(
        choice.result(str(uuid.uuid5(uuid.NAMESPACE_OID, f"{who}/{place}")))
        for place, choice in enumerate(choices)
    )
    devices = dra.DeviceResults(results=results, config=_configuration(catalogue, claim, choices))
    return dra.AllocationResult(devices=devices, node_selector=_selector(choices, node))


def _selector(choices: Sequence[DeviceChoice], node: str) -> NodeSelector | None:
    """Nodes that reach all the devices; None for all nodes.

    One device of a single node ties the claim to it.
    """
    expressions: list[Requirement] = []
    fields: list[Requirement] = []
    for choice in choices:
        place = choice.offer.place
        selector = place.node_selector
        # Alternatives cannot be combined; no valid slice has any.
        if place.node_name or (selector is not None and len(selector.node_selector_terms) > 1):
            named = Requirement(key="metadata.name", operator="In", values=(node,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(named,)),))
        for term in selector.node_selector_terms if selector is not None else ():
            expressions += [one for one in term.match_expressions if one not in expressions]
            fields += [one for one in term.match_fields if one not in fields]
    if not expressions and not fields:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))
    return NodeSelector(node_selector_terms=(term,))


def _configuration(
    catalogue: DeviceCatalogue, claim: dra.ResourceClaim, choices: Sequence[DeviceChoice]
) -> tuple[dra.DeviceConfiguration, ...]:
    """The parameters of the classes, each class once, then those of the claim for the chosen requests."""
    requests = list(dict.fromkeys(choice.request for choice in choices))
    by_class: dict[str, list[str]] = {}
    for choice in choices:
        users = by_class.setdefault(choice.demand.device_class_name, [])
        if choice.request not in users:
            users.append(choice.request)
    of_classes = [
        _word("FromClass", users, requests, one)
        for name, users in by_class.items()
        if (class_ := catalogue.classes.get(name)) is not None
        for one in class_.spec.config
    ]
    of_claim = [
        _word("FromClaim", one.requests, requests, one)
        for one in claim.spec.devices.config
        if not one.requests or any(_is_named(request, one.requests) for request in requests)
    ]
    return (*of_classes, *of_claim)


def _word(
    source: str, concerned: Sequence[str], requests: Sequence[str], given: dra.DeviceConfiguration
) -> dra.DeviceConfiguration:
    """An empty list means all requests."""
    everybody = all(_is_named(request, concerned) for request in requests)
    return dra.DeviceConfiguration(
        source=source, requests=() if everybody else tuple(concerned), opaque=given.opaque
    )


def _is_named(request: str, names: Sequence[str]) -> bool:
    return request in names or request.partition("/")[0] in names
