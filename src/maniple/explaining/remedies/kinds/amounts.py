"""Amounts in sensible steps, and how they are written."""

from collections.abc import Iterable
from fractions import Fraction

from maniple.objects.quantity import Exact, format_quantity

MOST_STEPS = 64
_DECIMAL = [Fraction(factor * 10**power, 1000) for power in range(10) for factor in (1, 2, 5)]
_BINARY = [2**power for power in range(20, 51)]  # from 1Mi


def is_bytes(resource: str) -> bool:
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")


def is_device(resource: str) -> bool:
    return "/" in resource


def step(resource: str, amount: Exact) -> Exact:
    """The step in which an amount is changed: whole devices, and otherwise at most 64 steps of a round size."""
    if is_device(resource):
        return 1
    sizes: Iterable[Exact] = _BINARY if is_bytes(resource) else _DECIMAL
    return next((size for size in sizes if size * MOST_STEPS >= amount), amount)


def smaller(resource: str, amount: Exact) -> list[Exact]:
    """Round amounts below one, the largest first; none of them is nothing."""
    size = step(resource, amount)
    count = -(-amount // size) - 1
    return [size * number for number in range(int(count), 0, -1)][:MOST_STEPS]


def written(resource: str, amount: Exact) -> str:
    return format_quantity(amount, binary=is_bytes(resource))


def listed(parts: Iterable[str]) -> str:
    """a, b and c."""
    found = list(parts)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"


def plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count:,} {word}s"
