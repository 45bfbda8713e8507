"""The key `policy` of a configuration file: what tenants may name. Ours alone; Volcano and KAI ignore it.

The fields are options of the planner, and what is given there (by a flag) comes first. What they mean is in
`framework/rights.py` and docs/security.md.
"""

from collections.abc import Mapping
from typing import Any

from maniple.framework.configuration.document import Place

CHOICES: Mapping[str, tuple[str, ...]] = {
    "queueAccess": ("open", "closed"),
    "systemPriorities": ("any", "kube-system"),
    "affinityAcrossNamespaces": ("any", "own"),
}
PRIORITY_CLASSES = "priorityClasses"


def read_policy(place: Place | None) -> dict[str, Any]:
    """The fields that are given, checked. A mistake is an error: a policy must not be open by a slip of the pen."""
    if place is None or place.value is None:
        return {}
    found: dict[str, Any] = {}
    for name, field in place.fields("policy").items():
        if name == PRIORITY_CLASSES:
            found[name] = [one.text(f"a name in policy.{name}") for one in field.entries(f"policy.{name}")]
        elif name in CHOICES:
            if field.value not in CHOICES[name]:
                raise field.error(f"must be one of {', '.join(CHOICES[name])}")
            found[name] = field.value
        else:
            known = ", ".join(sorted((*CHOICES, PRIORITY_CLASSES)))
            raise field.error(f"unknown field; expected one of {known}")
    return found


__all__ = ["CHOICES", "read_policy"]
