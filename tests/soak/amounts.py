"""Amounts as Kubernetes writes them, read by the oracle's own small parser: exact, and independent of Maniple's."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

Raw = dict[str, Any]
Amounts = dict[str, Fraction]

_SUFFIXES = {
    **{name: Fraction(1024) ** (power + 1) for power, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi"))},
    **{name: Fraction(1000) ** (power + 1) for power, name in enumerate(("k", "M", "G", "T", "P"))},
    "m": Fraction(1, 1000),
}


def quantity(text: Any) -> Fraction:
    return _quantity(str(text))


@cache
def _quantity(written: str) -> Fraction:
    for suffix, factor in _SUFFIXES.items():
        if written.endswith(suffix):
            return Fraction(written.removesuffix(suffix)) * factor
    return Fraction(written)


def amounts(resources: Mapping[str, Any] | None) -> Amounts:
    return {name: quantity(value) for name, value in (resources or {}).items()}


def total(parts: Iterable[Mapping[str, Fraction]]) -> Amounts:
    found: Amounts = {}
    for part in parts:
        for name, value in part.items():
            found[name] = found.get(name, Fraction(0)) + value
    return found


def pod_requests(pod: Raw) -> Amounts:
    """What a pod reserves on its node: containers together, or the largest init container, and its overhead."""
    spec = pod["spec"]
    beside = [
        one for one in spec.get("initContainers", ()) if one.get("restartPolicy") == "Always"
    ]  # sidecars stay
    found = total(_asked(one) for one in [*spec.get("containers", ()), *beside])
    started: list[Amounts] = []
    for one in spec.get("initContainers", ()):
        if one.get("restartPolicy") == "Always":
            started.append(_asked(one))
            continue
        for name, value in total([*started, _asked(one)]).items():
            found[name] = max(found.get(name, Fraction(0)), value)
    return total([found, amounts(spec.get("overhead"))])


def _asked(container: Raw) -> Amounts:
    resources = container.get("resources") or {}
    return {**amounts(resources.get("limits")), **amounts(resources.get("requests"))}
